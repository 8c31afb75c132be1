package control_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// acting is an Actor made of a function.
type acting func(ctx context.Context, d plan.Decision) control.Outcome

func (f acting) Run(ctx context.Context, d plan.Decision) control.Outcome { return f(ctx, d) }

// outcomes are what came of the moves since a time.
func (t *town) outcomes(from time.Time) (out []control.Outcome) {
	for _, r := range t.since(from, control.KindOutcome) {
		out = append(out, *r.Outcome)
	}
	return out
}

// Rounds of which every move is skipped follow each other more and more slowly, and the first that moves something ends that.
func TestADrainThatMovesNothingSlowsDown(t *testing.T) {
	w := drainTown(4)
	defer w.stop()
	skips, options := true, w.options
	w.options = func(o *control.Options) {
		options(o)
		next := o.Executor
		o.Executor = acting(func(ctx context.Context, d plan.Decision) control.Outcome {
			if skips {
				return control.Outcome{Decision: d, Result: control.Skipped, Why: "the registry cannot be read"}
			}
			return next.Run(ctx, d)
		})
	}
	w.start()
	w.run(5 * time.Second)
	begun := w.now
	if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.run(60 * time.Second)
	if n := len(w.outcomes(begun)); n < 4*5 || n > 7*5 {
		t.Errorf("%d moves were tried in a minute, 5 in each round", n)
	}
	skips = false
	w.run(70 * time.Second)
	if w.on(a) > 0 {
		t.Errorf("%d bundles are left", w.on(a))
	}
}

// What one broker's moves took does not make the plan of the next broker old: it is made when its turn comes.
func TestEveryDrainedBrokerIsLookedAtInItsTurn(t *testing.T) {
	w := drainTown(5)
	defer w.stop()
	for i, bundle := range w.bundles() {
		w.owners[bundle] = []string{a, b}[i%2]
	}
	ordered, options := false, w.options
	w.options = func(o *control.Options) {
		options(o)
		o.Limits = guard.Limits{BundlesPerCycle: 3}
		next, clock := o.Executor, o.Clock
		o.Executor = acting(func(ctx context.Context, d plan.Decision) control.Outcome {
			if !ordered {
				return control.Outcome{Decision: d, Result: control.Skipped, Why: "not before both are drained"}
			}
			if err := clock.Sleep(ctx, 15*time.Second); err != nil {
				return control.Outcome{Decision: d, Result: control.Skipped, Why: err.Error()}
			}
			return next.Run(ctx, d)
		})
	}
	w.start()
	w.run(5 * time.Second)
	for _, id := range []string{a, b} {
		if answer := w.order(t, control.CommandDrain, drainOf(id)); !answer.Done {
			t.Fatal(answer.Text)
		}
	}
	ordered = true
	begun := w.now
	w.run(5 * time.Minute)
	if w.on(a)+w.on(b) > 0 {
		t.Errorf("%d and %d bundles are left", w.on(a), w.on(b))
	}
	for _, out := range w.outcomes(begun) {
		if out.Result != control.Done {
			t.Errorf("%s from %s: %s: %s", short(out.Decision.Bundle), out.Decision.Source, out.Result, out.Why)
		}
	}
}

// Who follows the drain of a broker that is gone is told so, once; when it is back it is drained again.
func TestADrainedBrokerThatIsGone(t *testing.T) {
	w := drainTown(6)
	defer w.stop()
	w.start()
	w.run(5 * time.Second)
	if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	begun := w.now
	w.brokers = []string{b, c}
	for _, bundle := range w.bundles() {
		w.owners[bundle] = b
	}
	w.run(20 * time.Second)
	var said []string
	for _, r := range w.since(begun, control.KindPlan) {
		if id, empty, ok := control.DrainOf(r); ok && id == a && empty {
			said = append(said, r.Plan.Outcome.Code)
		}
	}
	if !slices.Equal(said, []string{drain.Unknown.ID}) {
		t.Errorf("the log says of the broker %v", said)
	}
	w.brokers = []string{a, b, c}
	w.owners[w.bundles()[0]] = a
	w.run(10 * time.Second)
	if w.on(a) > 0 {
		t.Error("what it has when it is back stays")
	}
}

// drawing is a load manager that notes what it draws, and plans nothing.
type drawing struct {
	script
	drawn *[]int
}

func (d drawing) Shed(snap *cluster.Snapshot, state plan.State, rnd plan.Rand, tr *plan.Trace) (plan.Plan, plan.State) {
	*d.drawn = append(*d.drawn, rnd.IntN(1_000_000))
	return d.script.Shed(snap, state, rnd, tr)
}

// Rounds of a drain, and a change of the leader in the middle of one, change nothing of what strategies draw.
func TestDrainsDrawNothing(t *testing.T) {
	run := func(drains bool) (drawn []int) {
		w := drainTown(8)
		defer w.stop()
		w.manager = drawing{drawn: &drawn}
		leader := w.start()
		w.run(25 * time.Second)
		if drains {
			if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
				t.Fatal(answer.Text)
			}
			w.run(2 * time.Second)
			if w.on(a) == 0 {
				t.Fatal("the drain is over already")
			}
		}
		leader.kill()
		w.start()
		w.run(60 * time.Second)
		return drawn
	}
	quietly, drained := run(false), run(true)
	n := min(len(quietly), len(drained))
	if n < 6 || !slices.Equal(quietly[:n], drained[:n]) {
		t.Errorf("without a drain it drew %v, with one %v", quietly, drained)
	}
	if slices.Sort(quietly); len(slices.Compact(slices.Clone(quietly))) != len(quietly) {
		t.Errorf("two plans drew the same: %v", quietly)
	}
}
