package guard_test

import (
	"testing"

	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// What a strategy or an operator moved rests; what left a drained broker may go back to it as soon as the drain is over.
func TestWhatLeftADrainedBrokerNeedNotRest(t *testing.T) {
	const bundle = "t/n/0x00000000_0x80000000"
	lim := guard.Limits{BundleCoolDown: 600_000, OscillationTurns: 3, OscillationWindow: 3_600_000}
	for _, x := range []struct {
		what  string
		d     plan.Decision
		rests bool
	}{
		{"a strategy's move", plan.Decision{PulsarReason: "Overloaded"}, true},
		{"an operator's move", plan.Decision{PulsarReason: plan.Admin, Why: plan.Reason{Code: "BY_HAND"}}, true},
		{"a drain's", plan.Decision{PulsarReason: plan.Admin, Why: plan.Reason{Code: drain.Leaves.ID}}, false},
	} {
		x.d.Action, x.d.Bundle, x.d.Source, x.d.Destination = plan.Transfer, bundle, "a:8080", "b:8080"
		st := guard.Learn(guard.State{}, guard.Outcome{Decision: x.d, Moved: true, Owner: "b:8080", At: 1}, lim)
		if _, rests := st.Moved[bundle]; rests != x.rests {
			t.Errorf("after %s it rests: %v, want %v", x.what, rests, x.rests)
		}
		if turns := len(st.Trails[bundle]) > 0; turns != x.rests {
			t.Errorf("after %s its way is remembered: %v, want %v", x.what, turns, x.rests)
		}
	}
}
