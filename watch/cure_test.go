package watch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/watch"
)

// What was counted and not made is not counted any more, and the state that goes in stays as it is.
func TestUntried(t *testing.T) {
	st := watch.CureState{Version: 1, Tried: map[string]watch.Attempt{"x": {Count: 1, Last: 5}, "y": {Count: 3, Last: 9, Before: 4}}}
	for bundle, want := range map[string]map[string]watch.Attempt{
		"x": {"y": {Count: 3, Last: 9, Before: 4}},
		"y": {"x": {Count: 1, Last: 5}, "y": {Count: 2, Last: 4}},
		"z": st.Tried,
	} {
		if diff := cmp.Diff(want, st.Untried(bundle).Tried); diff != "" {
			t.Errorf("without %s:\n%s", bundle, diff)
		}
	}
	if len(st.Tried) != 2 || st.Tried["y"].Count != 3 {
		t.Errorf("the state that went in is %+v", st)
	}
	var none watch.CureState
	if got := none.Untried("x"); got.Tried != nil {
		t.Errorf("of nothing: %+v", got)
	}
}
