package control_test

import (
	"testing"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
)

// chatty passes over a bundle many times.
type chatty struct {
	script
	times int
}

func (s chatty) Shed(snap *cluster.Snapshot, state plan.State, rnd plan.Rand, tr *plan.Trace) (plan.Plan, plan.State) {
	for range s.times {
		tr.Skip("public/ns/0x00000000_0xffffffff", a, b, plan.Reason{Code: "X"})
	}
	return s.script.Shed(snap, state, rnd, tr)
}

func TestPlanRecordsStaySmall(t *testing.T) {
	for _, tc := range []struct{ times, kept, more int }{{500, 500, 0}, {1000, 606, 394}, {1500, 606, 894}} {
		e := small(t, nil)
		w := process(t, e, "one", control.Advise, script{}, false)
		c := control.New(control.Options{Mode: control.Advise, Manager: chatty{times: tc.times}, Viewer: w.views, Journal: w.journal, Clock: e,
			Explain: true, Logger: quiet})
		cy, err := c.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r := w.journal.records[0]
		if len(cy.LeftOut) != tc.times || len(r.LeftOut) != tc.kept || r.LeftOutMore != tc.more {
			t.Errorf("%d left out: %d in the cycle, %d in the record and %d more, want %d and %d", tc.times, len(cy.LeftOut), len(r.LeftOut), r.LeftOutMore, tc.kept, tc.more)
		}
	}
}
