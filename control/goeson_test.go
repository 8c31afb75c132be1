package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// unproven is an actor that has many decisions under way, as a Channel has, and that ends a run by an error of its own after a first
// bundle that did not arrive.
type unproven struct {
	control.Actor
	bad *bool
}

func (x unproven) RunAll(ctx context.Context, ds []plan.Decision, h control.Hooks) error {
	for i, d := range ds {
		if why, err := h.Begin(ctx, ds[i:i+1]); err != nil || why[0] != "" {
			return errors.Join(err, h.End(control.Outcome{Decision: d, Result: control.Skipped, Why: "not begun"}))
		}
		if !*x.bad {
			if err := h.End(x.Run(ctx, d)); err != nil {
				return err
			}
			continue
		}
		err := h.End(control.Outcome{Decision: d, Result: control.TimedOut, Why: "it does not say so itself"})
		for _, left := range ds[i+1:] {
			err = errors.Join(err, h.End(control.Outcome{Decision: left, Result: control.Skipped, Why: "not begun: the first did not arrive"}))
		}
		return errors.Join(err, errors.New("the first write of the run did not arrive as wanted"))
	}
	return nil
}

// A plan whose first bundle does not arrive ends, whoever began it: the process leads on, what came of it is on record, and once
// bundles arrive again they are moved.
func TestAPlanThatEndsByItsFirstBundleEndsNoProcess(t *testing.T) {
	for name, begin := range map[string]func(w *town, bad *bool){
		"cycle": func(w *town, bad *bool) { *bad = true },
		"drain": func(w *town, bad *bool) {
			*bad, w.manager = true, script{}
			if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
				t.Fatal(answer.Text)
			}
		},
		"approved": func(w *town, bad *bool) {
			*bad = true
			id := w.cycles[len(w.cycles)-1].Review.ID
			if answer := w.order(t, control.CommandApprove, func(c *control.Command) { c.Plan, c.Reason = id, "looks right" }); !answer.Done {
				t.Fatal(answer.Text)
			}
		},
		"inherited": func(w *town, bad *bool) {
			for n := len(w.requests); len(w.requests) == n; {
				w.run(20 * time.Millisecond)
			}
			w.procs[len(w.procs)-1].kill() // in the middle of a plan
			*bad = true
			w.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(3, 12)
			defer w.stop()
			bad := false
			if name == "drain" {
				w.manager = script{}
			}
			w.options = func(o *control.Options) {
				o.Executor = unproven{o.Executor, &bad}
				o.Review = name == "approved"
				o.Lock.Lease = time.Second
				o.Limits = guard.Limits{BundlesPerCycle: 5}
			}
			w.start()
			w.run(15 * time.Second)
			begun := w.now
			begin(w, &bad)
			w.run(40 * time.Second)
			leader := w.procs[len(w.procs)-1]
			if leader.gone {
				t.Fatalf("the process ended: %v", leader.err)
			}
			timedOut, skipped := 0, 0
			for _, out := range w.outcomes(begun) {
				switch {
				case out.Result == control.TimedOut:
					timedOut++
				case out.Result == control.Skipped && strings.Contains(out.Why, "the first did not arrive"):
					skipped++
				}
			}
			if timedOut == 0 || skipped == 0 {
				t.Errorf("on record are %d bundles that did not arrive, and %d that were not begun for that", timedOut, skipped)
			}
			if name == "drain" && timedOut > 8 {
				t.Errorf("a drain of which nothing arrives is tried %d times in 40 s", timedOut)
			}
			if name != "drain" && len(w.since(begun, control.KindPlan)) < 3 {
				t.Error("no cycles follow")
			}
			bad, begun = false, w.now
			w.run(90 * time.Second)
			done := 0
			for _, out := range w.outcomes(begun) {
				if out.Result == control.Done {
					done++
				}
			}
			if done == 0 && name != "approved" {
				t.Error("nothing is moved any more")
			}
		})
	}
}

// A run that ends by its first bundle still tells its caller that the lock was lost meanwhile.
func TestALostLockIsToldBesideABadFirstWrite(t *testing.T) {
	s := set(t, 4, nil, func(l topics.Log) topics.Log { return deaf{l} })
	err := s.channel.RunAll(t.Context(), []plan.Decision{transfer(s.names[0], a, b)},
		control.Hooks{End: func(control.Outcome) error { return control.ErrNotHolder }})
	if !errors.Is(err, control.ErrNotHolder) {
		t.Errorf("the run ended by %v", err)
	}
}

// Refusals one after the other hold everything for a minute and no more: what is left of the plan is skipped, which counts as no
// failure, one further refusal holds for two minutes, and an operator ends the hold.
func TestAHoldBeginsWithinAPlan(t *testing.T) {
	w := newTown(4, 12)
	defer w.stop()
	var moves []plan.Decision
	for _, bundle := range w.bundles() {
		moves = append(moves, transfer(bundle, a, b))
	}
	w.manager = script{plans: [][]plan.Decision{moves}}
	w.options = func(o *control.Options) {
		o.Limits = guard.Limits{MovesAtOnce: 4, FailureCoolDown: 1}
		o.Executor = acting(func(_ context.Context, d plan.Decision) control.Outcome {
			return control.Outcome{Decision: d, Result: control.Refused, Why: "403 Forbidden", Attempts: 1}
		})
	}
	w.start()
	counts := func(from time.Time) (refused, held int) {
		for _, out := range w.outcomes(from) {
			switch {
			case out.Result == control.Refused:
				refused++
			case out.Result == control.Skipped && strings.HasPrefix(out.Why, guard.BackingOff.ID+": nothing moves until"):
				held++
			}
		}
		return refused, held
	}
	begun := w.now
	w.run(9 * time.Second)
	if refused, held := counts(begun); refused != 3 || held != 9 {
		t.Errorf("of 12 moves %d were refused and %d held back, want 3 and 9", refused, held)
	}
	w.run(45 * time.Second)
	if refused, _ := counts(begun); refused != 3 {
		t.Errorf("%d were tried within the minute", refused)
	}
	w.run(60 * time.Second)
	if refused, held := counts(begun); refused != 4 || held != 20 {
		t.Errorf("after the minute %d were refused and %d held back, want 4 and 20", refused, held)
	}
	if answer := w.order(t, control.CommandResume, reason("permissions are mended")); !answer.Done || !strings.Contains(answer.Text, "nothing moves until") {
		t.Errorf("resume: %+v", answer)
	}
	w.run(12 * time.Second)
	if refused, _ := counts(begun); refused != 7 {
		t.Errorf("after it was resumed %d were refused, want 3 more than 4", refused)
	}
}

// What is left of a plan of a process whose clock was ahead is not carried out: how old it is cannot be told.
func TestAPlanFromTheFutureIsNotCarriedOut(t *testing.T) {
	for _, tc := range []struct {
		ahead time.Duration
		runs  bool
	}{{2 * time.Second, true}, {50 * time.Second, false}} {
		w := newTown(5, 12)
		w.options = func(o *control.Options) { o.Lock.Lease = time.Second }
		w.start().ahead = tc.ahead
		for len(w.requests) == 0 {
			w.run(20 * time.Millisecond)
		}
		w.procs[0].kill()
		begun := w.now
		w.start()
		w.run(4 * time.Second)
		fromFuture, others := 0, 0
		for _, out := range w.outcomes(begun) {
			switch {
			case out.Inherited:
			case strings.Contains(out.Why, "by the clock of another process"):
				fromFuture++
			default:
				others++
			}
		}
		if tc.runs && (others == 0 || fromFuture > 0) || !tc.runs && (others > 0 || fromFuture == 0) {
			t.Errorf("%v ahead: %d were not carried out for that, %d others ended", tc.ahead, fromFuture, others)
		}
		w.stop()
	}
}

// A command whose sender has gone while one move took long is not obeyed, though nobody could look at it before.
func TestACommandIsAsOldAsItsArrival(t *testing.T) {
	w := newTown(6, 12)
	defer w.stop()
	w.manager = script{plans: [][]plan.Decision{{transfer(w.bundles()[0], a, b)}}}
	moving := false
	w.options = func(o *control.Options) {
		clock := o.Clock
		o.Limits = guard.Limits{}
		o.Executor = acting(func(ctx context.Context, d plan.Decision) control.Outcome {
			moving = true
			if err := clock.Sleep(ctx, 15*time.Second); err != nil {
				return control.Outcome{Decision: d, Result: control.Skipped, Why: err.Error()}
			}
			moving = false
			return control.Outcome{Decision: d, Result: control.Failed, Why: "not in this test"}
		})
	}
	w.start()
	for !moving {
		w.run(100 * time.Millisecond)
	}
	w.run(2 * time.Second)
	if answer := w.order(t, control.CommandPause, reason("upgrade")); answer.Done || !strings.Contains(answer.Text, "is gone") {
		t.Errorf("a pause whose sender waited for 10 s, 13 s later: %+v", answer)
	}
	for moving {
		w.run(100 * time.Millisecond)
	}
	if answer := w.order(t, control.CommandPause, reason("upgrade")); !answer.Done {
		t.Errorf("a pause between two moves: %+v", answer)
	}
}
