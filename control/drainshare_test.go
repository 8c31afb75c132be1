package control_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// pushy is a load manager that wants a bundle of c on b in every cycle.
type pushy struct{ script }

func (pushy) Shed(snap *cluster.Snapshot, state plan.State, _ plan.Rand, _ *plan.Trace) (plan.Plan, plan.State) {
	st := *state.(*scriptState)
	st.Cycle++
	p := plan.Plan{Strategy: "pushy", At: snap.Now}
	for i := range snap.Bundles {
		if snap.Bundles[i].Owner == c {
			p.Decisions = append(p.Decisions, transfer(snap.Bundles[i].Name, c, b))
			break
		}
	}
	return p, &st
}

// pushyTown is one of 12 bundles, half of them on b and half on c, with a limit during drains.
func pushyTown(points float64) *town {
	w := drainTown(11)
	w.manager = pushy{}
	options := w.options
	w.options = func(o *control.Options) { options(o); o.Limits.DrainPoints = points }
	for i, bundle := range w.bundles() {
		w.owners[bundle] = []string{b, c}[i%2]
	}
	return w
}

// While a drain stands, also while its broker is away, the strategy brings nobody above an even part of the topics and the
// points; before and after it, and without the limit, it does.
func TestADrainKeepsTheOthersEven(t *testing.T) {
	w := pushyTown(0.05)
	defer w.stop()
	w.start()
	w.run(5 * time.Second)
	if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	// The cycle before the order moved one.
	for i, bundle := range w.bundles() {
		w.owners[bundle] = []string{b, c}[i%2]
	}
	begun := w.now
	w.run(30 * time.Second)
	w.brokers = []string{b, c}
	w.run(30 * time.Second)
	if w.on(b) != 6 {
		t.Errorf("while a is drained b has %d of 12 bundles", w.on(b))
	}
	refused := 0
	for _, r := range w.since(begun, control.KindPlan) {
		if r.Verdict == nil {
			continue
		}
		for _, x := range r.Verdict.Refused {
			if x.Why.Code == guard.DrainShare.ID && strings.Contains(x.Why.Text, "b:8080 would have 21 of all 36 topics") && strings.Contains(x.Why.Text, "19.8") {
				refused++
			}
		}
	}
	if refused < 4 {
		t.Errorf("%d cycles say why", refused)
	}
	if answer := w.order(t, control.CommandUndrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.run(30 * time.Second)
	if w.on(b) < 8 {
		t.Errorf("after the drain b has %d of 12 bundles", w.on(b))
	}

	off := pushyTown(0)
	defer off.stop()
	off.start()
	off.run(5 * time.Second)
	if answer := off.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	off.run(30 * time.Second)
	if off.on(b) < 8 {
		t.Errorf("without the limit b has %d of 12 bundles", off.on(b))
	}
}

// slowly makes each move of a town take a time.
func (t *town) slowly(d time.Duration) {
	options := t.options
	t.options = func(o *control.Options) {
		options(o)
		next, clock := o.Executor, o.Clock
		o.Executor = acting(func(ctx context.Context, move plan.Decision) control.Outcome {
			if err := clock.Sleep(ctx, d); err != nil {
				return control.Outcome{Decision: move, Result: control.Skipped, Why: err.Error()}
			}
			return next.Run(ctx, move)
		})
	}
}

// Ending a drain does not wait for the round that is under way: what has begun is finished, the rest is not begun, and says why.
// The drain of another broker goes on.
func TestUndrainInterruptsARound(t *testing.T) {
	w := drainTown(12)
	defer w.stop()
	w.owners[w.bundles()[11]] = b
	options := w.options
	w.options = func(o *control.Options) { options(o); o.Limits = guard.Limits{} }
	w.slowly(4 * time.Second)
	w.start()
	w.run(5 * time.Second)
	for _, id := range []string{a, b} {
		w.post(t, control.CommandDrain, drainOf(id))
	}
	begun := w.now
	w.run(7 * time.Second) // the round of a takes 44 s
	asked := w.now
	if answer := w.order(t, control.CommandUndrain, drainOf(a)); !answer.Done || w.now.Sub(asked) > 6*time.Second {
		t.Fatalf("after %v: %+v", w.now.Sub(asked), answer)
	}
	w.run(60 * time.Second)
	if n := w.on(a); n < 7 || w.on(b) > 0 {
		t.Errorf("a has %d bundles, b %d", n, w.on(b))
	}
	done, ended := 0, 0
	for _, o := range w.outcomes(begun) {
		switch {
		case o.Decision.Source != a:
		case o.Result == control.Done:
			done++
		case o.Result == control.Skipped && o.Why == fmt.Sprintf("not begun: the drain of %s was ended", a):
			ended++
		default:
			t.Errorf("%s: %s %s", short(o.Decision.Bundle), o.Result, o.Why)
		}
	}
	if done == 0 || done > 4 || done+ended != 11 {
		t.Errorf("%d moves were made, %d not begun, of 11", done, ended)
	}
}

// Orders about one broker are obeyed in the order in which they came, also when they come during a round.
func TestUndrainDoesNotOvertakeADrain(t *testing.T) {
	w := drainTown(13)
	defer w.stop()
	options := w.options
	w.options = func(o *control.Options) { options(o); o.Limits = guard.Limits{BundlesPerCycle: 2} }
	w.slowly(2 * time.Second)
	w.start()
	w.run(5 * time.Second)
	if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.run(time.Second)
	w.post(t, control.CommandDrain, drainOf(a, b))
	if answer := w.order(t, control.CommandUndrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	left := w.on(a)
	w.run(30 * time.Second)
	if w.on(a) != left || left == 0 {
		t.Errorf("when the drain was ended a had %d bundles, now %d", left, w.on(a))
	}
	var done []string
	for _, r := range w.records() {
		if r.Kind == control.KindCommand && r.Answer.Done {
			done = append(done, r.Command.What)
		}
	}
	if !slices.Equal(done, []string{control.CommandDrain, control.CommandDrain, control.CommandUndrain}) {
		t.Errorf("commands were carried out in the order %v", done)
	}
}
