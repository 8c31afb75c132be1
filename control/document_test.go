package control_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
)

// docs/decision-log.md has every field of the records, in their order, and no other; and every kind.
func TestTheDecisionLogIsDocumented(t *testing.T) {
	b, err := os.ReadFile("../docs/decision-log.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string][]string{} // heading -> first column of its table
	heading := ""
	for line := range strings.SplitSeq(string(b), "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			heading = title
		}
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "`"); ok && strings.HasPrefix(line, "| `") {
			sections[heading] = append(sections[heading], name)
		}
	}
	for _, v := range []any{control.Record{}, control.Leadership{}, control.Outcome{}, control.Pause{}, control.Review{}, control.Command{},
		control.Answer{}, control.Memory{}, control.Held{}} {
		typ := reflect.TypeOf(v)
		var fields []string
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			fields = append(fields, name)
		}
		if diff := cmp.Diff(fields, sections[typ.Name()]); diff != "" {
			t.Errorf("%s (-code +document):\n%s", typ.Name(), diff)
		}
	}
	var kinds []string
	for _, k := range control.Kinds {
		kinds = append(kinds, string(k))
	}
	if !slices.Equal(kinds, sections["Kinds"]) {
		t.Errorf("kinds are %v, in the document %v", kinds, sections["Kinds"])
	}
}
