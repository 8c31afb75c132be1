package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

// hooked is a cluster that calls before on every change; an error of it fails the change.
type hooked struct {
	control.Cluster
	before func(what string) error
}

func (h hooked) SetDynamicConfig(ctx context.Context, key, value string) error {
	if err := errors.Join(h.before("set "+key), ctx.Err()); err != nil {
		return err
	}
	return h.Cluster.SetDynamicConfig(ctx, key, value)
}

func (h hooked) DeleteDynamicConfig(ctx context.Context, key string) error {
	if err := errors.Join(h.before("delete "+key), ctx.Err()); err != nil {
		return err
	}
	return h.Cluster.DeleteDynamicConfig(ctx, key)
}

func (h hooked) Unload(ctx context.Context, bundle, destination string) error {
	if err := errors.Join(h.before("unload"), ctx.Err()); err != nil {
		return err
	}
	return h.Cluster.Unload(ctx, bundle, destination)
}

// Stopping at any point of a take-over leaves the configuration as it was found.
func TestStoppedInTheMiddleOfATakeOver(t *testing.T) {
	for _, when := range []string{"set " + shedding, "set " + interval} {
		found := map[string]string{interval: "7"}
		e := small(t, found)
		w := process(t, e, "one", control.Govern, script{}, true)
		ctx, stop := context.WithCancel(t.Context())
		reached := false
		w.service.TakeOvers = control.NewTakeOvers(e.Log(), hooked{e, func(what string) error {
			if what == when {
				reached = true
				stop()
			}
			return nil
		}}, "one", e.Now)
		if err := w.service.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error is %v, want that of the context alone", when, err)
		}
		if !reached {
			t.Errorf("%s was never done", when)
		}
		if diff := cmp.Diff(found, dynamic(t, e)); diff != "" {
			t.Errorf("stopped at %s (-found +left):\n%s", when, diff)
		}
	}
}

// That the settings could not be put back must not be hidden behind "stopped by the user".
func TestFailingToPutBackIsReported(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Govern, script{}, true)
	broken := errors.New("no broker answers")
	w.service.TakeOvers = control.NewTakeOvers(e.Log(), hooked{e, func(what string) error {
		if what == "delete "+shedding {
			return broken
		}
		return nil
	}}, "one", e.Now)
	_, err := w.run(t, 1)
	if !errors.Is(err, broken) || errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want only that the settings were not put back", err)
	}
	restored, err := w.takeovers.Release(t.Context())
	if err != nil || len(restored) != 2 {
		t.Errorf("a later release did %+v, %v", restored, err)
	}
	if diff := cmp.Diff(map[string]string{}, dynamic(t, e)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
}

// failLeader makes sends through the lock fail while *on.
func failLeader(log *topics.Memory, on *bool) {
	log.SetFaults(topics.Faults{Publish: func(topic, _ string, _ []byte) error {
		if *on && topic == topics.Leader {
			return errors.New("connection lost")
		}
		return nil
	}})
}

// A process that lost the lock and is stopped before another has it puts back what it had taken over.
func TestStoppedAfterLosingTheLock(t *testing.T) {
	e := small(t, nil)
	names := process(t, e, "look", control.Advise, script{}, false).bundles(t)
	w := process(t, e, "one", control.Govern, script{plans: [][]plan.Decision{{}, {transfer(names[0], a, b)}}}, true)
	ctx, stop := context.WithCancel(t.Context())
	cut, lost := false, false
	failLeader(e.Log(), &cut)
	w.service.Each = func(*control.Cycle) { cut = true } // after the first cycle nothing can be confirmed
	w.service.Clock = sleeper{e, func() {                // the only sleep outside the controller: standing by
		cut, lost = false, true
		stop()
	}}
	if err := w.service.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if !lost {
		t.Fatal("the lock was not lost")
	}
	if diff := cmp.Diff(map[string]string{}, dynamic(t, e)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	// With another holder nothing is touched: that one has its own take-over.
	if err := control.NewLock(e.Log(), "two", time.Second, e.Now).Acquire(t.Context(), false); err != nil {
		t.Errorf("the lock was kept: %v", err)
	}
}

func TestSomebodySwitchesTheBuiltInShedderOn(t *testing.T) {
	for _, takeOver := range []bool{false, true} {
		e := small(t, map[string]string{shedding: "false", interval: "7"})
		w := process(t, e, "one", control.Govern, script{}, takeOver)
		cycles := 0
		w.service.Each = func(*control.Cycle) {
			if cycles++; cycles == 1 {
				if err := e.SetDynamicConfig(t.Context(), shedding, "true"); err != nil {
					t.Error(err)
				}
			}
		}
		if err := w.service.Run(t.Context()); !errors.Is(err, control.ErrBuiltInShedding) {
			t.Fatalf("error is %v, want ErrBuiltInShedding", err)
		}
		if cycles != 2 {
			t.Errorf("%d cycles, want 2", cycles)
		}
		if diff := cmp.Diff(map[string]string{shedding: "true", interval: "7"}, dynamic(t, e)); diff != "" {
			t.Errorf("afterwards (-want +got):\n%s", diff)
		}
	}
}

func TestTheLockOutlivesACancelledCall(t *testing.T) {
	e := small(t, nil)
	l := control.NewLock(e.Log(), "one", time.Second, e.Now)
	if err := l.Acquire(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Confirm(ended, "x"); !errors.Is(err, context.Canceled) || errors.Is(err, control.ErrNotHolder) {
		t.Errorf("error is %v, want that of the context", err)
	}
	if err := l.Confirm(t.Context(), "leaving"); err != nil {
		t.Errorf("who was told to stop lost the lock by that: %v", err)
	}
}

func TestAFailedAcquireDoesNotStandInItsOwnWay(t *testing.T) {
	e := small(t, nil)
	l := control.NewLock(e.Log(), "one", time.Second, e.Now)
	cut := true
	failLeader(e.Log(), &cut)
	if err := l.Acquire(t.Context(), false); !errors.Is(err, control.ErrNotHolder) {
		t.Fatalf("error is %v, want ErrNotHolder", err)
	}
	cut = false
	if err := l.Acquire(t.Context(), false); err != nil {
		t.Errorf("the next try: %v", err)
	}
}

// The lock is lost after the plan's own check, while the executor looks whether the decision still holds.
func TestNothingIsChangedWithoutTheLock(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Advise, script{}, false)
	l := control.NewLock(e.Log(), "one", time.Second, e.Now)
	asked := 0
	locked := control.Locked(hooked{e, func(string) error { asked++; return nil }}, l)
	x := control.NewExecutor(locked, w.views, e, control.ExecLimits{Request: time.Second, Verify: time.Second, Poll: 50 * time.Millisecond})
	d := transfer(w.bundles(t)[0], a, b)
	if out := x.Run(t.Context(), d); out.Result != control.Skipped || out.Why == "" {
		t.Errorf("outcome is %+v, want skipped", out)
	}
	for what, err := range map[string]error{
		"set":    locked.SetDynamicConfig(t.Context(), shedding, "false"),
		"delete": locked.DeleteDynamicConfig(t.Context(), shedding),
		"split":  locked.Split(t.Context(), d.Bundle, "", nil, false),
	} {
		if !errors.Is(err, control.ErrNotHolder) {
			t.Errorf("%s: error is %v, want ErrNotHolder", what, err)
		}
	}
	if asked != 0 {
		t.Errorf("the cluster was asked %d times", asked)
	}
	if err := l.Acquire(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if out := x.Run(t.Context(), d); out.Result != control.Done || asked != 1 {
		t.Errorf("with the lock: %+v, asked %d times", out, asked)
	}
}

// strictJournal writes nothing once the context has ended, as a real log.
type strictJournal struct{ memoryJournal }

func (j *strictJournal) Append(ctx context.Context, r control.Record) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return j.memoryJournal.Append(ctx, r)
}

// Told to stop while a request is on its way, the process sees it through; what was still to come is skipped and says so.
func TestTheOutcomeIsWrittenWhenStopped(t *testing.T) {
	for _, tc := range []struct {
		name   string
		faults simulate.AdminFaults
		want   control.Result
	}{
		{"it arrives", simulate.AdminFaults{}, control.Done},
		{"nothing comes of it", simulate.AdminFaults{Ignore: 1}, control.TimedOut},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := small(t, map[string]string{shedding: "false"})
			w := process(t, e, "one", control.Govern, script{}, false)
			names := w.bundles(t)
			if err := e.With(t.Context(), func(cl *simulate.Cluster) { cl.SetAdminFaults(tc.faults) }); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			l := control.NewLock(e.Log(), "one", time.Second, e.Now)
			if err := l.Acquire(ctx, false); err != nil {
				t.Fatal(err)
			}
			journal, asked := &strictJournal{}, 0
			leader := control.New(control.Options{Mode: control.Govern, Viewer: w.views, Lock: l, Journal: journal, Clock: e, Logger: quiet,
				Manager: script{plans: [][]plan.Decision{{transfer(names[0], a, b), transfer(names[1], a, b), transfer(names[2], a, c)}}},
				Executor: control.NewExecutor(control.Locked(hooked{e, func(string) error { asked++; stop(); return nil }}, l), w.views, e,
					control.ExecLimits{Request: time.Second, Verify: time.Minute, Poll: 50 * time.Millisecond})})
			begun := e.Now()
			if _, err := leader.Step(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("error is %v, want that of the context", err)
			}
			if took := e.Now().Sub(begun); took > 11*time.Second || tc.want == control.TimedOut && took < 9*time.Second {
				t.Errorf("after the stop it went on for %v", took)
			}
			if diff := cmp.Diff([]control.Kind{control.KindPlan, control.KindIntent, control.KindOutcome, control.KindOutcome, control.KindOutcome}, journal.kinds()); diff != "" {
				t.Fatalf("records (-want +got):\n%s", diff)
			}
			intent, out := journal.records[1], journal.records[2]
			if out.Of != intent.Key() || out.Outcome.Result != tc.want || strings.Contains(out.Outcome.Why, "canceled") || asked != 1 {
				t.Errorf("after %d requests: %s (%s), want %s", asked, out.Outcome.Result, out.Outcome.Why, tc.want)
			}
			for i, r := range journal.records[3:] {
				if o := r.Outcome; o.Decision.Bundle != names[i+1] || o.Result != control.Skipped || o.Why != control.NotBegun {
					t.Errorf("what was to come: %s %s (%s)", o.Decision.Bundle, o.Result, o.Why)
				}
			}
		})
	}
}
