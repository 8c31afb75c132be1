package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/watch"
)

// atTheCure does something once, when the plan that has a cure is on record and before the cure is begun.
func (t *town) atTheCure(do func(p *proc)) {
	done, seen := false, 0
	t.fault = func(p *proc) {
		if done || t.stored == seen {
			return
		}
		seen = t.stored
		for _, r := range t.records() {
			if r.Kind == control.KindPlan && len(r.Cures) > 0 {
				done = true
			}
		}
		if done {
			do(p)
		}
	}
}

// A cure that was counted with its plan and is then not begun, because of a pause or because the process ends, uses no attempt up
// and waits for no back-off.
func TestACureThatIsNotBegunIsNoAttempt(t *testing.T) {
	for name, tc := range map[string]struct {
		at    func(t *testing.T, w *town, p *proc)
		after func(t *testing.T, w *town)
		why   string
	}{
		"paused": {
			func(t *testing.T, w *town, _ *proc) { w.post(t, control.CommandPause, reason("upgrade")) },
			func(t *testing.T, w *town) {
				if answer := w.order(t, control.CommandResume, reason("")); !answer.Done {
					t.Fatal(answer.Text)
				}
			}, "paused: upgrade"},
		"stopped": {
			func(_ *testing.T, _ *town, p *proc) { p.cancel() },
			func(_ *testing.T, w *town) { w.start() },
			control.NotBegun},
	} {
		t.Run(name, func(t *testing.T) {
			w := cureTown(5)
			defer w.stop()
			w.mends = true
			w.atTheCure(func(p *proc) { tc.at(t, w, p) })
			w.start()
			w.run(5 * time.Second)
			bundle := w.bundles()[4]
			w.stuck[bundle] = w.now.Add(-time.Hour)
			w.run(15 * time.Second)
			var why string
			for _, o := range w.outcomes(time.UnixMilli(town0)) {
				if o.Decision.Bundle == bundle && o.Decision.Why.Code == watch.CureStuck.ID && o.Result == control.Skipped {
					why = o.Why
				}
			}
			if got := w.asked(bundle); len(got) > 0 || why != tc.why {
				t.Fatalf("it is asked for at %v; the cure was skipped because of %q", got, why)
			}
			tc.after(t, w)
			w.run(25 * time.Second) // the back-off is a minute
			if got := w.asked(bundle); len(got) != 1 {
				t.Errorf("after that it is asked for at %v", got)
			}
			tried := 0
			for _, r := range w.since(time.UnixMilli(town0), control.KindIntent) {
				if r.Decision.Bundle == bundle && r.Decision.Why.Code == watch.CureStuck.ID {
					if tried++; !strings.Contains(r.Decision.Why.Text, "attempt 1 of 3") {
						t.Errorf("the cure is %s", r.Decision.Why.Text)
					}
				}
			}
			if tried != 1 {
				t.Errorf("%d intents", tried)
			}
		})
	}
}
