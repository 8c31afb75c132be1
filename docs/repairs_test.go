package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/strategies"
)

// TestRepairs: the table of repairs is made of the comments of the options, and has all that can be named and nothing else.
func TestRepairs(t *testing.T) {
	const page, header = "strategies/repairs.md", "| name | manager | what it does | fault |\n|---|---|---|---|\n"
	var table strings.Builder
	var names []string
	r, err := strategies.Registry(nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, manager := range []string{"extensible", "modular", "simple"} {
		if !registered(r.Managers, manager) {
			continue
		}
		for _, o := range options(t, "../"+manager+"/options.go") {
			if o.does == "" || o.fault == "" {
				t.Errorf("%s.Options.%s: its comment must be \"X does ... Fault: ...\"", manager, o.name)
			}
			lines = append(lines, fmt.Sprintf("| `%s` | %s | %s | %s |\n", o.name, manager, o.does, o.fault))
			if !slices.Contains(names, o.name) {
				names = append(names, o.name)
			}
		}
	}
	slices.Sort(lines)
	slices.Sort(names)
	if diff := cmp.Diff(strategies.Repairs(), names); diff != "" {
		t.Errorf("repairs that can be named and options (-named +options):\n%s", diff)
	}
	table.WriteString(header + strings.Join(lines, ""))
	text := read(t, page)
	before, rest, found := strings.Cut(text, header)
	if !found {
		t.Fatalf("%s has no table of repairs", page)
	}
	for strings.HasPrefix(rest, "| ") {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	want := before + table.String() + rest
	if want == text {
		return
	}
	if rewriting() {
		write(t, page, want)
		return
	}
	t.Errorf("%s (-page +options):\n%s", page, cmp.Diff(text, want))
}

type option struct{ name, does, fault string }

// options are the fields of a package's Options with what their comments say.
func options(t *testing.T, path string) []option {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out []option
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "Options" {
			return true
		}
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			text := strings.Join(strings.Fields(f.Doc.Text()), " ")
			does, fault, _ := strings.Cut(strings.TrimPrefix(text, f.Names[0].Name+" "), " Fault: ")
			out = append(out, option{decapitalized(f.Names[0].Name), strings.TrimSuffix(does, "."), strings.TrimSuffix(fault, ".")})
		}
		return false
	})
	return out
}

func decapitalized(name string) string { return string(unicode.ToLower(rune(name[0]))) + name[1:] }

func isKey(name string) bool {
	_, ok := settings.Lookup(name)
	return ok
}
