package ownership

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSorted compares the sorted map with a plain one under random changes, and copies of it with what it was when they were taken.
func TestSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := sorted[string, int]{compare: strings.Compare}
		model := make(map[string]int)
		var copies []sorted[string, int]
		var models []map[string]int
		key := rapid.StringMatching(`[a-c]{1,3}[0-9]?`)
		for range rapid.IntRange(0, 50).Draw(t, "bursts") {
			switch rapid.IntRange(0, 5).Draw(t, "action") {
			case 0:
				copies, models = append(copies, s.copy()), append(models, maps.Clone(model))
			case 1:
				for k := range model {
					if rapid.Bool().Draw(t, "remove") {
						s.remove(k)
						delete(model, k)
					}
				}
			case 2:
				k := key.Draw(t, "absent or present")
				s.remove(k)
				delete(model, k)
			default:
				for range rapid.IntRange(1, 60).Draw(t, "puts") {
					k, v := key.Draw(t, "key"), rapid.Int().Draw(t, "value")
					s.put(k, v)
					model[k] = v
				}
			}
			same(t, &s, model)
		}
		for i := range copies {
			same(t, &copies[i], models[i])
		}
		start := key.Draw(t, "start")
		var got []string
		for k := range s.from(start) {
			got = append(got, k)
		}
		want := slices.DeleteFunc(slices.Sorted(maps.Keys(model)), func(k string) bool { return k < start })
		if diff := cmp.Diff(want, got, cmp.Transformer("nil", func(l []string) string { return strings.Join(l, " ") })); diff != "" {
			t.Fatalf("from %s differs (-want +got):\n%s", start, diff)
		}
	})
}

func same(t *rapid.T, s *sorted[string, int], model map[string]int) {
	t.Helper()
	if s.size != len(model) {
		t.Fatalf("size is %d, want %d", s.size, len(model))
	}
	var keys []string
	for k, v := range s.all() {
		keys = append(keys, k)
		if want, ok := model[k]; !ok || v != want {
			t.Fatalf("%s is %d, want %d, %t", k, v, want, ok)
		}
		if got, ok := s.get(k); !ok || got != v {
			t.Fatalf("%s is found as %d, %t", k, got, ok)
		}
	}
	if !slices.IsSorted(keys) || len(keys) != len(model) {
		t.Fatalf("keys are %q", keys)
	}
	for _, c := range s.chunks {
		if n := len(c.entries); n == 0 || n >= maxChunk {
			t.Fatalf("a chunk has %d entries", n)
		}
	}
	if _, ok := s.get("absent"); ok {
		t.Fatal("an absent key was found")
	}
}
