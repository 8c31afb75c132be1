package control_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

const (
	shedding = "loadBalancerSheddingEnabled"
	interval = "loadBalancerReportUpdateMaxIntervalMinutes"
)

// ownershipRecords counts what is on the ownership topic.
func ownershipRecords(t *testing.T, e *simulate.Embedded) int {
	t.Helper()
	sub, err := e.Log().Subscribe(t.Context(), topics.ServiceUnitState, topics.SubscribeOptions{From: topics.Earliest})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	n := 0
	if err := topics.Drain(t.Context(), sub, func(topics.Message) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAdviseAndObserveChangeNothing(t *testing.T) {
	for _, mode := range []control.Mode{control.Advise, control.Observe} {
		e := small(t, nil)
		names := process(t, e, "look", mode, script{}, false).bundles(t)
		w := process(t, e, "one", mode, script{plans: [][]plan.Decision{{transfer(names[0], a, b)}}}, false)
		before, config := ownershipRecords(t, e), dynamic(t, e)
		cycles, err := w.run(t, 3)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("%s: %v", mode, err)
		}
		if len(cycles) != 3 || len(cycles[0].Verdict.Run) != 1 {
			t.Fatalf("%s: %d cycles, verdict %+v: want 3 with one decision", mode, len(cycles), cycles[0].Verdict)
		}
		if n := ownershipRecords(t, e); n != before {
			t.Errorf("%s: %d records on the ownership topic, %d before", mode, n, before)
		}
		if diff := cmp.Diff(config, dynamic(t, e)); diff != "" {
			t.Errorf("%s changed the configuration:\n%s", mode, diff)
		}
	}
}

func TestGovernRefusesBesideTheBuiltInShedder(t *testing.T) {
	w := process(t, small(t, nil), "one", control.Govern, script{}, false)
	cycles, err := w.run(t, 1)
	if !errors.Is(err, control.ErrBuiltInShedding) || len(cycles) != 0 {
		t.Fatalf("%d cycles, error %v: want ErrBuiltInShedding before the first", len(cycles), err)
	}
}

func TestGovernMovesAndVerifies(t *testing.T) {
	e := small(t, map[string]string{shedding: "false"})
	names := process(t, e, "look", control.Advise, script{}, false).bundles(t)
	w := process(t, e, "one", control.Govern, script{plans: [][]plan.Decision{{transfer(names[0], a, b), transfer(names[1], a, c)}, {transfer(names[0], b, c)}}}, false)
	cycles, err := w.run(t, 2)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i, want := range []string{b, c} {
		if out := cycles[0].Outcomes[i]; out.Result != control.Done || out.Owner != want || out.Millis <= 0 {
			t.Errorf("outcome %d is %+v, want done at %s", i, out, want)
		}
		if got := w.owner(t, names[i]); got != want {
			t.Errorf("%s is owned by %q, want %s", names[i], got, want)
		}
	}
	if refused := cycles[1].Verdict.Refused; len(refused) != 1 || refused[0].Why.Code != "GUARD_COOL_DOWN" {
		t.Errorf("the second move of a bundle was not held back: %+v", cycles[1].Verdict)
	}
	want := []control.Kind{control.KindLeader, control.KindPlan, control.KindIntent, control.KindOutcome, control.KindIntent, control.KindOutcome,
		control.KindPlan, control.KindLeader}
	if diff := cmp.Diff(want, w.journal.kinds()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestTakeOverIsUndoneWhenLeaving(t *testing.T) {
	for _, found := range []map[string]string{{}, {shedding: "true"}, {interval: "7"}, {shedding: "true", interval: "3"}} {
		e := small(t, found)
		w := process(t, e, "one", control.Govern, script{}, true)
		var during map[string]string
		ctx, stop := context.WithCancel(t.Context())
		w.service.Each = func(*control.Cycle) { during = dynamic(t, e); stop() }
		if err := w.service.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if during[shedding] != "false" || during[interval] != "1" {
			t.Errorf("while governing the configuration is %v", during)
		}
		if diff := cmp.Diff(found, dynamic(t, e)); diff != "" {
			t.Errorf("found %v, afterwards (-want +got):\n%s", found, diff)
		}
	}
}

func TestTakeOverOfADeadProcessIsUndone(t *testing.T) {
	found := map[string]string{interval: "7"}
	e := small(t, found)
	if _, err := process(t, e, "dies", control.Govern, script{}, true).takeovers.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	alarm, err := control.Unwatched(t.Context(), e)
	if err != nil || !alarm {
		t.Errorf("nobody balances, alarm is %v, %v", alarm, err)
	}
	// The next one is not told to take over, so it refuses; but it puts back what the dead one left.
	if _, err := process(t, e, "next", control.Govern, script{}, false).run(t, 1); !errors.Is(err, control.ErrBuiltInShedding) {
		t.Fatalf("error is %v, want ErrBuiltInShedding: the built-in shedder is on again", err)
	}
	if diff := cmp.Diff(found, dynamic(t, e)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	// One that takes over again keeps the operator's values, not those of the dead one.
	w := process(t, e, "dies too", control.Govern, script{}, true)
	if _, err := w.takeovers.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := process(t, e, "last", control.Govern, script{}, true).run(t, 1); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(found, dynamic(t, e)); diff != "" {
		t.Errorf("after two deaths (-want +got):\n%s", diff)
	}
}

func TestReleaseLeavesWhatSomebodyElseSet(t *testing.T) {
	e := small(t, map[string]string{interval: "7"})
	w := process(t, e, "one", control.Govern, script{}, true)
	if _, err := w.takeovers.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.SetDynamicConfig(t.Context(), interval, "2"); err != nil {
		t.Fatal(err)
	}
	restored, err := w.takeovers.Release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{interval: "2"}, dynamic(t, e)); diff != "" {
		t.Errorf("afterwards (-want +got):\n%s", diff)
	}
	if i := slices.IndexFunc(restored, func(r control.Restored) bool { return r.Key == interval }); i < 0 || !restored[i].Kept {
		t.Errorf("it was not said that %s was left alone: %+v", interval, restored)
	}
	if again, err := w.takeovers.Release(t.Context()); err != nil || len(again) != 0 {
		t.Errorf("a second release did something: %+v, %v", again, err)
	}
}

func TestOnlyOneProcessActs(t *testing.T) {
	e := small(t, map[string]string{shedding: "false"})
	first := process(t, e, "first", control.Govern, script{}, false)
	second := process(t, e, "second", control.Govern, script{}, false)
	if err := first.service.Lock.Acquire(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if err := second.service.Lock.Acquire(t.Context(), false); !errors.Is(err, control.ErrNotHolder) {
		t.Fatalf("the second got the lock, too: %v", err)
	}
	if err := second.service.Lock.Confirm(t.Context(), "x"); !errors.Is(err, control.ErrNotHolder) {
		t.Errorf("the second may act: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	standing := 0
	second.service.Clock = sleeper{e, func() {
		if standing++; standing == 3 {
			if err := first.service.Lock.Release(); err != nil {
				t.Error(err)
			}
		}
	}}
	acted := 0
	second.service.Each = func(*control.Cycle) { acted++; cancel() }
	if err := second.service.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if standing < 3 || acted != 1 {
		t.Errorf("the second stood by %d times and made %d cycles, want 3 and 1", standing, acted)
	}
}

// sleeper does something at each sleep.
type sleeper struct {
	control.Clock
	f func()
}

func (s sleeper) Sleep(ctx context.Context, d time.Duration) error {
	s.f()
	return s.Clock.Sleep(ctx, d)
}

func TestLosingTheLockStopsTheCycle(t *testing.T) {
	e := small(t, map[string]string{shedding: "false"})
	names := process(t, e, "look", control.Advise, script{}, false).bundles(t)
	w := process(t, e, "one", control.Govern, script{plans: [][]plan.Decision{{transfer(names[0], a, b), transfer(names[1], a, b)}}}, false)
	if err := w.service.Lock.Acquire(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	e.Log().SetFaults(topics.Faults{Publish: func(topic, _ string, _ []byte) error {
		if topic == topics.Leader {
			return errors.New("connection lost")
		}
		return nil
	}})
	cy, err := w.service.Controller.Step(t.Context())
	if !errors.Is(err, control.ErrNotHolder) {
		t.Fatalf("error is %v, want ErrNotHolder", err)
	}
	if len(cy.Outcomes) != 0 || w.owner(t, names[0]) != a {
		t.Errorf("it acted without the lock: %+v", cy.Outcomes)
	}
	e.Log().SetFaults(topics.Faults{})
	if err := w.service.Lock.Confirm(t.Context(), "again"); !errors.Is(err, control.ErrNotHolder) {
		t.Errorf("a lock that was lost came back by itself: %v", err)
	}
}

func TestAnOldPlanIsNotCarriedOut(t *testing.T) {
	e := small(t, map[string]string{shedding: "false"})
	names := process(t, e, "look", control.Advise, script{}, false).bundles(t)
	w := process(t, e, "one", control.Govern, script{plans: [][]plan.Decision{{transfer(names[0], a, b), transfer(names[1], a, b)}}}, false)
	if err := e.With(t.Context(), func(cl *simulate.Cluster) { cl.SetAdminFaults(simulate.AdminFaults{Hang: 1}) }); err != nil {
		t.Fatal(err)
	}
	if err := w.service.Lock.Acquire(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	cy, err := w.service.Controller.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(cy.Outcomes) != 2 || cy.Outcomes[0].Result != control.Failed || cy.Outcomes[1].Result != control.Skipped {
		t.Errorf("outcomes are %+v, want the first failed and the second not tried", cy.Outcomes)
	}
}

// A compacted topic keeps the take-over and every record of the decision log.
func TestRecordsSurviveCompaction(t *testing.T) {
	e := small(t, map[string]string{interval: "7"})
	w := process(t, e, "one", control.Govern, script{}, true)
	if _, err := w.takeovers.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	journal := control.NewTopicJournal(e.Log())
	defer journal.Close()
	d := transfer("public/ns/0x00000000_0x40000000", a, b)
	records := []control.Record{
		{Version: 1, Instance: "one", Cycle: 1, Kind: control.KindPlan},
		{Version: 1, Instance: "one", Cycle: 1, Kind: control.KindIntent, Decision: &d},
		{Version: 1, Instance: "one", Cycle: 1, Kind: control.KindOutcome, Outcome: &control.Outcome{Decision: d}},
		{Version: 1, Instance: "one", Cycle: 2, Kind: control.KindPlan},
		{Version: 1, Instance: "two", Cycle: 1, Kind: control.KindPlan},
	}
	for _, r := range records {
		if err := journal.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	e.Log().Compact(topics.Decisions)
	e.Log().Compact(topics.Takeover)
	sub, err := e.Log().Subscribe(t.Context(), topics.Decisions, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	n := 0
	if err := topics.Drain(t.Context(), sub, func(topics.Message) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	if n != len(records) {
		t.Errorf("%d of %d records are left", n, len(records))
	}
	if record, err := w.takeovers.Current(t.Context()); err != nil || record == nil {
		t.Errorf("the take-over is gone: %v, %v", record, err)
	}
}
