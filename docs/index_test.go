package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/strategies"
)

// TestIndex: the index lists everything that can be chosen, with class and sentence as registered, and links its page.
func TestIndex(t *testing.T) {
	r, err := strategies.Registry(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, "strategies/README.md")
	table := rows(text, "| name | class |")
	check := func(name, class, doc string) {
		for _, row := range table {
			label, _, _ := strings.Cut(strings.TrimPrefix(row[0], "["), "]")
			if label == name && unquote(row[1]) == class && row[2] == doc && row[3] != "" {
				return
			}
		}
		t.Errorf("the index has no row for %s, class %q, %q", name, class, doc)
	}
	for _, e := range r.Managers {
		check(e.Name, e.Class, e.Doc)
	}
	for _, e := range r.Shedders {
		check(e.Name, e.Class, e.Doc)
	}
	for _, e := range r.Placers {
		check(e.Name, e.Class, e.Doc)
	}
	for _, path := range pages(t) {
		if name := filepath.Base(path); name != "README.md" && !strings.Contains(text, "("+name+")") {
			t.Errorf("the index does not link %s", name)
		}
	}
}

// TestEveryStrategyHasAnExample: the page of each shedding and placement strategy, except Simple's, runs it.
func TestEveryStrategyHasAnExample(t *testing.T) {
	r, err := strategies.Registry(nil)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(map[string]bool)
	for _, path := range pages(t) {
		for _, block := range strings.Split(read(t, path), fence)[1:] {
			block, _, _ = strings.Cut(block, "\n```")
			m := regexp.MustCompile(`(?m)^cluster .*manager=(\w+)`).FindStringSubmatch(block)
			if m == nil {
				continue
			}
			for _, x := range regexp.MustCompile(`(shed|place)=(\w+)`).FindAllStringSubmatch(block, -1) {
				ran[m[1]+" "+x[1]+" "+x[2]] = true
			}
			for command, names := range map[string][]string{"shed": r.ShedderNames(m[1]), "place": r.PlacerNames(m[1])} {
				if len(names) > 0 && !strings.Contains(block, " "+command+"=") {
					ran[m[1]+" "+command+" "+names[0]] = true
				}
			}
		}
	}
	for _, e := range r.Shedders {
		if !ran[e.Managers[0]+" shed "+e.Name] {
			t.Errorf("no page runs %s of the %s manager", e.Name, e.Managers[0])
		}
	}
	for _, e := range r.Placers {
		if !ran[e.Managers[0]+" place "+e.Name] {
			t.Errorf("no page runs %s of the %s manager", e.Name, e.Managers[0])
		}
	}
}

// TestExampleOfAdding: the page about adding quotes the example that is compiled and run.
func TestExampleOfAdding(t *testing.T) {
	const page, begin, end = "strategies/adding.md", "```go\n", "```\n"
	text, code := read(t, page), read(t, "../strategies/example_test.go")
	before, rest, found := strings.Cut(text, begin)
	quoted, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s quotes nothing", page)
	}
	if quoted == code {
		return
	}
	if rewriting() {
		write(t, page, before+begin+code+end+after)
		return
	}
	t.Errorf("%s does not quote strategies/example_test.go as it is", page)
}

// TestLinks: what a page links exists, and so do the anchors in cases.md.
func TestLinks(t *testing.T) {
	links := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	all, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(all, pages(t)...) {
		for _, m := range links.FindAllStringSubmatch(read(t, path), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := filepath.Join(filepath.Dir(path), target)
			if target == "" {
				file = path
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links %s: %v", path, m[1], err)
				continue
			}
			if filepath.Base(file) == "cases.md" && anchor != "" && !strings.Contains(read(t, file), `<a id="`+anchor+`"></a>`) {
				t.Errorf("%s links %s: there is no such anchor", path, m[1])
			}
		}
	}
}

// TestFaultsAreMended: in the last column of a table of faults stand repairs, keys or words, and every repair stands on some
// page besides the list of all.
func TestFaultsAreMended(t *testing.T) {
	repairs, on := strategies.Repairs(), make(map[string]bool)
	for _, path := range pages(t) {
		text := read(t, path)
		for _, name := range repairs {
			if strings.Contains(text, "`"+name+"`") && filepath.Base(path) != "repairs.md" {
				on[name] = true
			}
		}
		for _, row := range rows(text, "| fault |") {
			for _, m := range regexp.MustCompile("`([a-z][A-Za-z]+)`").FindAllStringSubmatch(row[2], -1) {
				if !slices.Contains(repairs, m[1]) && !isKey(m[1]) {
					t.Errorf("%s: %s is neither a repair nor a key", path, m[1])
				}
			}
		}
	}
	for _, name := range repairs {
		if !on[name] {
			t.Errorf("no page says what %s mends", name)
		}
	}
}

// registered says whether an entry of the registry has the name.
func registered[T any](list []plan.Entry[T], name string) bool {
	return slices.ContainsFunc(list, func(e plan.Entry[T]) bool { return e.Name == name })
}

// TestAdvice: the page has the codes of package advise and no others.
func TestAdvice(t *testing.T) {
	files, err := filepath.Glob("../advise/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var codes, listed []string
	for _, file := range files {
		for _, m := range regexp.MustCompile(`plan\.Code\{ID: "(\w+)"`).FindAllStringSubmatch(read(t, file), -1) {
			codes = append(codes, m[1])
		}
	}
	for _, row := range rows(read(t, "advice.md"), "| code |") {
		listed = append(listed, unquote(row[0]))
	}
	slices.Sort(codes)
	slices.Sort(listed)
	if diff := cmp.Diff(codes, listed); diff != "" {
		t.Errorf("codes of advise and of the page (-code +page):\n%s", diff)
	}
}
