package control_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
)

// What a leader that has lost the lock says came of an intent counts. That it does not know does not: it would have held the
// decision back, and nobody else does.
func TestOutcomesOfADeposedLeader(t *testing.T) {
	for _, x := range []struct {
		epoch int64
		out   control.Result
		open  bool
	}{
		{epoch: 2, out: control.Unknown, open: true},
		{epoch: 2, out: control.Done, open: false},
		{epoch: 5, out: control.Unknown, open: false},
	} {
		past := control.NewPast()
		apply := func(key string, r control.Record) {
			t.Helper()
			payload, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			past.Apply(key, payload)
		}
		d := plan.Decision{Action: plan.Transfer, Bundle: "public/ns/0x00000000_0x80000000", Source: "a:8080", Destination: "b:8080"}
		apply("4/1/intent", control.Record{Version: control.RecordVersion, Kind: control.KindIntent, At: 10, Epoch: 4, Cycle: 1, Decision: &d})
		apply("out", control.Record{Version: control.RecordVersion, Kind: control.KindOutcome, At: 11, Epoch: x.epoch, Cycle: 1, Of: "4/1/intent",
			Outcome: &control.Outcome{Decision: d, Result: x.out}})
		apply("last", control.Record{Version: control.RecordVersion, Kind: control.KindLeader, At: 12, Epoch: max(4, x.epoch), Leader: &control.Leadership{What: control.Leads}})
		gone := past.Excess(1000, control.Retention{Age: 1}, 10)
		if open := !slices.Contains(gone, "4/1/intent"); open != x.open {
			t.Errorf("after %s of epoch %d the intent of epoch 4 is open: %v, want %v (may go: %v)", x.out, x.epoch, open, x.open, gone)
		}
	}
}
