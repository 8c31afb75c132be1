package control_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// loneDrain is a drain of a, on a cluster whose brokers all report as time passes.
func loneDrain(t *testing.T, act func(r *reported, next control.Actor) control.Actor) (*reported, *control.LoneDrain) {
	r := modularCluster(t, nil)
	v := r.views(nil, nil)
	r.report(a, b, c)
	clock := reporting{r, []string{a, b, c}}
	next := control.NewCoaxer(r.Embedded, v, clock, control.ExecLimits{Request: 5 * time.Second, Verify: 10 * time.Second, Poll: time.Second}, control.Hinted, 3)
	return r, &control.LoneDrain{Broker: a, Wait: time.Minute, Viewer: v, Logger: quiet, Asks: control.DrainAsks{Reported: true, Owned: r.Owned}, Destinations: control.Ignored,
		Manual: &control.Manual{Instance: "desk", Cluster: r.Embedded, Journal: control.NewTopicJournal(r.log), Clock: clock, Limits: guard.Limits{BundlesPerCycle: 3},
			Actor: act(r, next)}}
}

// A bundle that comes back each time rests longer and longer, the others leave meanwhile, and after some tries the drain ends and
// names it.
func TestALoneDrainGivesUp(t *testing.T) {
	var tries []time.Time
	kept := ""
	r, d := loneDrain(t, func(r *reported, next control.Actor) control.Actor {
		return acting(func(ctx context.Context, d plan.Decision) control.Outcome {
			if kept == "" {
				kept = d.Bundle
			}
			if d.Bundle != kept {
				return next.Run(ctx, d)
			}
			tries = append(tries, r.Now())
			return control.Outcome{Decision: d, Result: control.Failed, Owner: a, Attempts: 3, Why: "the cluster gave it back to " + a}
		})
	})
	done, err := d.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), kept) || !strings.Contains(err.Error(), "stop the broker") || done.Empty {
		t.Errorf("empty %v, %v; it should name %s", done.Empty, err, kept)
	}
	if len(tries) != 5 {
		t.Fatalf("it was tried %d times", len(tries))
	}
	for i, rest := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second} {
		if got := tries[i+1].Sub(tries[i]); got < rest || got > rest+10*time.Second {
			t.Errorf("after failure %d it rested for %v, want %v", i+1, got, rest)
		}
	}
	left, err := r.Owned(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	if left = slices.DeleteFunc(left, func(name string) bool { return !strings.HasPrefix(name, ns+"/") }); !slices.Equal(left, []string{kept}) {
		t.Errorf("%v are left", left)
	}
}

// What went to another broker than the plan said has left: that is what a drain is for.
func TestALoneDrainCountsWhatWentElsewhere(t *testing.T) {
	_, d := loneDrain(t, func(_ *reported, next control.Actor) control.Actor {
		return acting(func(ctx context.Context, d plan.Decision) control.Outcome {
			out := next.Run(ctx, d)
			if out.Result == control.Done {
				out.Result = control.Elsewhere
			}
			return out
		})
	})
	begun := d.Manual.Clock.Now()
	if done, err := d.Run(t.Context()); err != nil || !done.Empty || len(done.Outcomes) != 4 {
		t.Errorf("empty %v after %d moves: %v", done.Empty, len(done.Outcomes), err)
	}
	if took := d.Manual.Clock.Now().Sub(begun); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}

// What has left since the last report is not planned again.
func TestALoneDrainPlansWhatIsThere(t *testing.T) {
	r, d := loneDrain(t, func(_ *reported, next control.Actor) control.Actor { return next })
	d.Manual.Clock = r.Embedded // nobody reports again
	look := r.look(d.Viewer.(*control.ReportViews))
	before := d.Plan(t.Context(), look)
	gone := before.Decisions[0].Bundle
	if err := r.Unload(t.Context(), gone, b); err != nil {
		t.Fatal(err)
	}
	r.pass(3 * time.Second)
	after := d.Plan(t.Context(), r.look(d.Viewer.(*control.ReportViews)))
	if len(after.Decisions) != len(before.Decisions)-1 || slices.ContainsFunc(after.Decisions, func(d plan.Decision) bool { return d.Bundle == gone }) {
		t.Errorf("%d decisions, then %d: %s has left", len(before.Decisions), len(after.Decisions), gone)
	}
}

// While it is held, an empty broker whose last report still names what has left is not taken for one that cannot be emptied.
func TestALoneDrainIsHeldWithoutReports(t *testing.T) {
	r, d := loneDrain(t, func(_ *reported, next control.Actor) control.Actor { return next })
	d.Manual.Clock, d.Hold, d.Wait = r.Embedded, 25*time.Second, 5*time.Minute // nobody reports again
	begun := r.Now()
	done, err := d.Run(t.Context())
	if err != nil || !done.Empty || len(done.Outcomes) != 4 {
		t.Errorf("empty %v after %d moves: %v", done.Empty, len(done.Outcomes), err)
	}
	if took := r.Now().Sub(begun); took < d.Hold {
		t.Errorf("it was held for %v", took)
	}
}
