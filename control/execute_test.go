package control_test

import (
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/simulate"
)

func TestExecutorVerifiesWhatCameOfAMove(t *testing.T) {
	for _, tc := range []struct {
		name   string
		faults simulate.AdminFaults
		d      func(bundles []string) plan.Decision
		want   control.Result
		owner  string // of the bundle afterwards
	}{
		{name: "moved", want: control.Done, owner: b, d: func(n []string) plan.Decision { return transfer(n[0], a, b) }},
		{name: "answered with success and nothing happens", faults: simulate.AdminFaults{Ignore: 1}, want: control.TimedOut, owner: a,
			d: func(n []string) plan.Decision { return transfer(n[0], a, b) }},
		{name: "destination gone since the plan", want: control.Skipped, owner: a,
			d: func(n []string) plan.Decision { return transfer(n[0], a, "gone:8080") }},
		{name: "owned by another since the plan", want: control.Skipped, owner: a,
			d: func(n []string) plan.Decision { return transfer(n[0], c, b) }},
		{name: "unknown bundle", want: control.Skipped,
			d: func([]string) plan.Decision { return transfer("public/ns/0x00000001_0x00000002", a, b) }},
		{name: "the broker fails", faults: simulate.AdminFaults{Fail: 1}, want: control.Failed, owner: a,
			d: func(n []string) plan.Decision { return transfer(n[0], a, b) }},
		{name: "the broker hangs", faults: simulate.AdminFaults{Hang: 1}, want: control.Failed, owner: a,
			d: func(n []string) plan.Decision { return transfer(n[0], a, b) }},
		{name: "unloaded without a destination", want: control.Done,
			d: func(n []string) plan.Decision {
				return plan.Decision{Action: plan.Unload, Bundle: n[0], Source: a}
			}},
		{name: "split", want: control.Done,
			d: func(n []string) plan.Decision {
				return plan.Decision{Action: plan.Split, Bundle: n[0], Source: a}
			}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := small(t, nil)
			w := process(t, e, "one", control.Advise, script{}, false)
			if err := e.With(t.Context(), func(cl *simulate.Cluster) { cl.SetAdminFaults(tc.faults) }); err != nil {
				t.Fatal(err)
			}
			x := control.NewExecutor(e, w.views, e, control.ExecLimits{Request: time.Second, Verify: 5 * time.Second, Poll: 50 * time.Millisecond})
			d := tc.d(w.bundles(t))
			out := x.Run(t.Context(), d)
			if out.Result != tc.want {
				t.Errorf("result is %s (%s), want %s", out.Result, out.Why, tc.want)
			}
			if tc.owner != "" && w.owner(t, d.Bundle) != tc.owner && d.Source == a {
				t.Errorf("the owner is %q, want %s", w.owner(t, d.Bundle), tc.owner)
			}
			if out.Result != control.Done && out.Why == "" {
				t.Error("it does not say why")
			}
		})
	}
}
