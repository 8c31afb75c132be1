package control_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// What an operator asks for is done under the lock, with intent and outcome on record and the pace of the limits; it is
// refused while another process holds the lock, unless it is told to act beside it.
func TestManual(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Govern, script{}, false)
	names := w.bundles(t)
	exec := control.ExecLimits{Request: time.Second, Verify: 5 * time.Second, Poll: 50 * time.Millisecond}
	manual := func(lock *control.Lock) *control.Manual {
		return &control.Manual{Instance: "operator", Cluster: e, Lock: lock, Journal: w.journal, Clock: e,
			Actor: control.NewExecutor(e, w.views, e, exec), Limits: guard.Limits{TopicsPerSecond: 1}}
	}
	m := manual(control.NewLock(e.Log(), "operator", time.Second, e.Now))
	if err := m.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	begun := e.Now()
	var got []control.Result
	err := m.Run(t.Context(), []plan.Decision{transfer(names[0], a, b), transfer(names[1], c, b)}, func(o control.Outcome) { got = append(got, o.Result) })
	if err != nil || !slices.Equal(got, []control.Result{control.Done, control.Skipped}) {
		t.Errorf("outcomes are %v, %v", got, err)
	}
	if w.owner(t, names[0]) != b || w.owner(t, names[1]) != a {
		t.Errorf("owners are %s and %s", w.owner(t, names[0]), w.owner(t, names[1]))
	}
	if took := e.Now().Sub(begun); took < time.Second {
		t.Errorf("a bundle of several topics took %v at one topic a second", took)
	}
	if kinds := w.journal.kinds(); !slices.Equal(kinds, []control.Kind{control.KindIntent, control.KindOutcome, control.KindIntent, control.KindOutcome}) {
		t.Errorf("records are %v", kinds)
	}
	for _, r := range w.journal.records {
		if r.Instance != "operator" || r.Version != control.RecordVersion || r.At == 0 {
			t.Errorf("record is %+v", r)
		}
	}
	other := manual(control.NewLock(e.Log(), "other", time.Second, e.Now))
	if err := control.Beside(other.Begin(t.Context()), "stop it"); !errors.Is(err, control.ErrNotHolder) || !strings.Contains(err.Error(), "stop it") {
		t.Errorf("a second one begins with %v", err)
	}
	beside := manual(nil)
	if err := beside.Begin(t.Context()); err != nil {
		t.Error(err)
	}
	if err := beside.Run(t.Context(), []plan.Decision{transfer(names[2], a, c)}, func(o control.Outcome) { got = append(got, o.Result) }); err != nil || got[len(got)-1] != control.Done {
		t.Errorf("beside: %v, %v", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, x := range []*control.Manual{m, beside} {
		if err := x.Run(ended, []plan.Decision{transfer(names[3], a, c)}, func(o control.Outcome) { t.Errorf("done after the end: %+v", o) }); err == nil {
			t.Error("it ran after its context had ended")
		}
	}
	if err := errors.Join(m.End(), beside.End()); err != nil {
		t.Error(err)
	}
	if err := control.Beside(nil, ""); err != nil {
		t.Error(err)
	}
}

// A change of the whole cluster is on record before it is made, and what came of it afterwards, also when it failed or was
// interrupted; what cannot be recorded is not made, and neither is anything without the lock.
func TestManualChange(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Govern, script{}, false)
	m := &control.Manual{Instance: "operator", Cluster: e, Lock: control.NewLock(e.Log(), "operator", time.Second, e.Now), Journal: w.journal, Clock: e}
	c := control.NewCommand(control.CommandSwitchManager, "me@here", e.Now(), time.Minute)
	c.Reason = "the strategy of the other one"
	called := 0
	if err := m.Change(t.Context(), c, "from modular to simple", func(context.Context) (control.Answer, error) { called++; return control.Answer{}, nil }); err == nil || called > 0 {
		t.Errorf("without the lock: %v, done %d times", err, called)
	}
	if err := m.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	failure := errors.New("refused by the broker")
	for _, x := range []struct {
		ctx  context.Context
		do   func(context.Context) (control.Answer, error)
		err  error
		want control.Answer
	}{
		{t.Context(), func(context.Context) (control.Answer, error) {
			return control.Answer{Done: true, Text: "every broker runs simple"}, nil
		}, nil,
			control.Answer{Done: true, Text: "every broker runs simple"}},
		{t.Context(), func(context.Context) (control.Answer, error) { return control.Answer{}, failure }, failure, control.Answer{Text: failure.Error()}},
		{interrupted, func(ctx context.Context) (control.Answer, error) { cancel(); return control.Answer{}, ctx.Err() }, context.Canceled,
			control.Answer{Text: context.Canceled.Error()}},
	} {
		w.journal.records = nil
		if err := m.Change(x.ctx, c, "from modular to simple", x.do); !errors.Is(err, x.err) {
			t.Errorf("%v, want %v", err, x.err)
		}
		if len(w.journal.records) != 2 {
			t.Fatalf("%d records", len(w.journal.records))
		}
		for i, want := range []control.Answer{{Begun: true, Text: "from modular to simple"}, x.want} {
			r := w.journal.records[i]
			if r.Kind != control.KindCommand || r.Instance != "operator" || r.Epoch != 0 || r.Command.ID != c.ID || r.Command.Reason != c.Reason || *r.Answer != want {
				t.Errorf("record %d is %+v, %+v, want %+v", i, r.Command, r.Answer, want)
			}
		}
	}
	m.Journal = brokenJournal{}
	if err := m.Change(t.Context(), c, "from modular to simple", func(context.Context) (control.Answer, error) { called++; return control.Answer{}, nil }); err == nil || called > 0 {
		t.Errorf("without a record: %v, done %d times", err, called)
	}
	if err := m.End(); err != nil {
		t.Error(err)
	}
}

// brokenJournal takes no record.
type brokenJournal struct{}

func (brokenJournal) Append(context.Context, control.Record) error { return errors.New("no bookie") }

// A move that was asked for by name is done when its destination owns the bundle; what was merely released is not, except for those
// who want it away from where it was. The outcome says which intent it answers.
func TestManualIsExact(t *testing.T) {
	for _, exact := range []bool{true, false} {
		for _, tc := range []struct {
			to, lands string
			want      control.Result
		}{{c, "", control.TimedOut}, {"", "", control.Done}, {c, c, control.Done}} {
			cl, clock, j := &wayward{owner: a, script: []string{tc.lands}}, &testClock{now: time.Unix(9, 0)}, &memoryJournal{}
			m := &control.Manual{Instance: "desk", Cluster: cl, Journal: j, Clock: clock, Exact: exact,
				Actor: control.NewCoaxer(cl, cl, clock, control.ExecLimits{Request: time.Minute, Verify: 30 * time.Second, Poll: time.Second}, control.Hinted, 3)}
			var out control.Outcome
			if err := m.Run(t.Context(), []plan.Decision{transfer(ns+"/0x00000000_0x40000000", a, tc.to)}, func(x control.Outcome) { out = x }); err != nil {
				t.Fatal(err)
			}
			if !exact {
				tc.want = control.Done
			}
			if out.Result != tc.want || out.Owner != tc.lands {
				t.Errorf("exact %v, to %q, lands on %q: %s by %q: %s", exact, tc.to, tc.lands, out.Result, out.Owner, out.Why)
			}
			if out.Result == control.TimedOut && !(strings.Contains(out.Why, "released; nobody has asked for it") && strings.Contains(out.Why, "its first client decides")) {
				t.Errorf("why is %q", out.Why)
			}
			if rs := j.records; len(rs) != 2 || rs[1].Of != rs[0].Key() || rs[1].Outcome.Result != out.Result {
				t.Errorf("records are %+v", rs)
			}
		}
	}
}
