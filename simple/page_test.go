package simple

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/settings"
)

const (
	page  = "../docs/strategies/simple.md"
	fence = "```dialogue\n"
)

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestPageExample runs the example of the page, a dialogue as in testdata/cases.
func TestPageExample(t *testing.T) {
	before, rest, _ := strings.Cut(readPage(t), fence)
	example, after, closed := strings.Cut(rest, "\n```\n")
	if !closed {
		t.Fatalf("%s has no example", page)
	}
	file := filepath.Join(t.TempDir(), "example")
	if err := os.WriteFile(file, []byte(example+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := newDialogue()
	datadriven.RunTest(t, file, func(t *testing.T, c *datadriven.TestData) string { return d.answer(t, c) })
	if flag.Lookup("rewrite").Value.String() != "true" {
		return
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte(before+fence+strings.TrimRight(string(text), "\n")+"\n```\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPageKeys compares the keys of the page with the settings.
func TestPageKeys(t *testing.T) {
	keys := 0
	for line := range strings.Lines(readPage(t)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		keys++
		name := strings.Trim(cells[1], " `")
		k, ok := settings.Lookup(name)
		if !ok {
			t.Errorf("%s is no key", name)
			continue
		}
		if got := strings.Trim(cells[2], " `"); got != k.Default {
			t.Errorf("%s: default %s, the page says %s", name, k.Default, got)
		}
		if got := strings.TrimSpace(cells[3]); got != k.Unit {
			t.Errorf("%s: unit %q, the page says %q", name, k.Unit, got)
		}
		if !strings.Contains(k.Users, "S") {
			t.Errorf("%s: the Simple load manager does not read it", name)
		}
	}
	if keys < 20 {
		t.Errorf("the page lists %d keys", keys)
	}
}

// TestPageRepairs compares the table of repairs with the options.
func TestPageRepairs(t *testing.T) {
	_, table, _ := strings.Cut(readPage(t), "| option | repairs |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed, want []string
	for line := range strings.Lines(table) {
		listed = append(listed, strings.Trim(strings.Split(line, "|")[1], " `"))
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Options]()) {
		want = append(want, strings.ToLower(f.Name[:1])+f.Name[1:])
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("repairs (-code +page):\n%s", diff)
	}
}
