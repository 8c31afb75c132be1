package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Each file in testdata is a dialogue: events as `go test -json` prints them, then what is shown, the counts and the
// document.
func TestReport(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var r *results
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "read":
				var out bytes.Buffer
				var err error
				if r, err = read(strings.NewReader(d.Input), &out); err != nil {
					t.Fatal(err)
				}
				return out.String()
			case "counts":
				return r.counts().String()
			case "document":
				return document([]namedRun{{"Pulsar 4.2.4", r}}, "2026-11-30 02:40 UTC, commit 0123456789ab")
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

func TestRunSavesAndSums(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.json"), filepath.Join(dir, "two.json")
	const passed = `{"Action":"pass","Package":"p","Test":"TestA"}` + "\n"
	const failed = `{"Action":"fail","Package":"p","Test":"TestB"}` + "\n"
	var out bytes.Buffer
	if ok, err := run(one, "", nil, strings.NewReader(passed), &out); !ok || err != nil {
		t.Fatalf("a run that passes: %v, %v", ok, err)
	}
	if ok, err := run(two, "", nil, strings.NewReader(failed), &out); ok || err != nil {
		t.Fatalf("a run that fails: %v, %v", ok, err)
	}
	if saved, err := os.ReadFile(one); err != nil || string(saved) != passed {
		t.Errorf("saved %q, %v", saved, err)
	}
	out.Reset()
	doc := filepath.Join(dir, "doc.md")
	if ok, err := run("", doc, []string{one, "again=" + one, two}, nil, &out); ok || err != nil {
		t.Fatalf("the sum: %v, %v", ok, err)
	}
	if got := out.String(); got != "2 passed, 1 failed\n" {
		t.Errorf("the sum is %q", got)
	}
	if text, err := os.ReadFile(doc); err != nil || !strings.Contains(string(text), "## again") {
		t.Errorf("document %q, %v", text, err)
	}
	if _, err := run("", "", []string{filepath.Join(dir, "none.json")}, nil, &out); err == nil {
		t.Error("a file that is not there is no error")
	}
}

func TestLongOutputIsCut(t *testing.T) {
	wordy := &test{output: []string{"    a_test.go:1: " + strings.Repeat("ü", 300)}}
	if got := wordy.reason(); got != strings.Repeat("ü", 200)+"..." {
		t.Errorf("reason of a test that said much: %q", got)
	}
	y := &test{}
	for range 1000 {
		y.output = append(y.output, "line\n")
	}
	if got := strings.Count(y.said(), "\n"); got != 201 || !strings.Contains(y.said(), "... 800 lines left out ...") {
		t.Errorf("%d lines of 1000 are shown", got)
	}
}
