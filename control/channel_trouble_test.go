package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

// rival is a log on which somebody writes a record of the same version just before ours.
type rival struct {
	topics.Log
	record string
	left   int
}

func (l *rival) Publisher(ctx context.Context, topic string, o topics.PublishOptions) (topics.Publisher, error) {
	pub, err := l.Log.Publisher(ctx, topic, o)
	return &rivalPublisher{pub, l}, err
}

type rivalPublisher struct {
	topics.Publisher
	l *rival
}

func (p *rivalPublisher) Publish(ctx context.Context, key string, payload []byte) (topics.MessageID, error) {
	if p.l.left > 0 {
		p.l.left--
		if _, err := p.Publisher.Publish(ctx, key, []byte(p.l.record)); err != nil {
			return topics.MessageID{}, err
		}
	}
	return p.Publisher.Publish(ctx, key, payload)
}

// A lost race is told with who won it, and keeps nothing back: the next bundle goes.
func TestChannelLosesARace(t *testing.T) {
	s := set(t, 4, nil, func(l topics.Log) topics.Log {
		return &rival{l, `{"state":"Releasing","sourceBroker":"a:8080","dstBroker":"c:8080","versionId":3}`, 1}
	})
	out, err := s.all([]plan.Decision{transfer(s.names[0], a, b), transfer(s.names[1], a, b)}, control.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if o := out[s.names[0]]; o.Result != control.Lost || !strings.Contains(o.Why, "Releasing version 3 from a:8080 to c:8080, written by ") {
		t.Errorf("%+v", o)
	}
	if o := out[s.names[1]]; o.Result != control.Done {
		t.Errorf("%+v", o)
	}
	if err := s.Sleep(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.names[:1], s.ownedBy(c)); diff != "" {
		t.Errorf("c owns (-want +got):\n%s", diff)
	}
}

// deaf is a log that takes records and loses them.
type deaf struct{ topics.Log }

func (l deaf) Publisher(context.Context, string, topics.PublishOptions) (topics.Publisher, error) {
	return deafPublisher{}, nil
}

type deafPublisher struct{}

func (deafPublisher) Publish(context.Context, string, []byte) (topics.MessageID, error) {
	return topics.MessageID{}, errors.New("no answer")
}
func (deafPublisher) Close() error { return nil }

// A first write that does not arrive ends the run: nothing further is written, and every decision has an outcome.
func TestChannelStopsAfterABadFirstWrite(t *testing.T) {
	s := set(t, 4, nil, func(l topics.Log) topics.Log { return deaf{l} })
	before := s.Now()
	out, err := s.all([]plan.Decision{transfer(s.names[0], a, b), transfer(s.names[1], a, b)}, control.Hooks{})
	if err == nil || out[s.names[0]].Result != control.Failed || out[s.names[1]].Result != control.Skipped {
		t.Errorf("%v, %+v", err, out)
	}
	if took := s.Now().Sub(before); took > 4*time.Second {
		t.Errorf("it took %v to find out", took)
	}
}

// A destination that freezes after the write is found out in bounded time.
func TestChannelTimesOut(t *testing.T) {
	s := set(t, 4, nil, nil)
	if o := s.channel.Run(t.Context(), transfer(s.names[0], a, b)); o.Result != control.Done {
		t.Fatalf("%+v", o)
	}
	h := control.Hooks{Begin: func(ctx context.Context, _ []plan.Decision) ([]string, error) {
		return nil, s.With(ctx, func(cl *simulate.Cluster) {
			if err := cl.Freeze(a); err != nil {
				t.Error(err)
			}
		})
	}}
	before := s.Now()
	out, err := s.all([]plan.Decision{transfer(s.names[1], a, b)}, h)
	o := out[s.names[1]]
	if err != nil || o.Result == control.Done || o.Why == "" || s.Now().Sub(before) > 25*time.Second {
		t.Errorf("after %v: %+v, %v", s.Now().Sub(before), o, err)
	}
}

// Who has lost the lock writes nothing more.
func TestChannelNeedsTheLock(t *testing.T) {
	s := set(t, 4, nil, nil)
	if err := s.lock.Release(); err != nil {
		t.Fatal(err)
	}
	before := ownershipRecords(t, s.Embedded)
	_, err := s.all([]plan.Decision{transfer(s.names[0], a, b), transfer(s.names[1], a, b)}, control.Hooks{})
	if !errors.Is(err, control.ErrNotHolder) || ownershipRecords(t, s.Embedded) != before {
		t.Errorf("error %v, %d records more", err, ownershipRecords(t, s.Embedded)-before)
	}
}

// Told to stop, the channel begins nothing more; what is under way is followed for a while, and what was to come says why it is skipped.
func TestChannelIsStopped(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		s := set(t, 12, nil, nil)
		if o := s.channel.Run(t.Context(), transfer(s.names[0], a, b)); o.Result != control.Done {
			t.Fatalf("%+v", o)
		}
		var ds []plan.Decision
		for _, name := range s.names[1:] {
			ds = append(ds, transfer(name, a, b))
		}
		ds = append(ds, plan.Decision{Action: plan.Split, Bundle: s.names[0], Source: b})
		ctx, stop := context.WithCancel(t.Context())
		var begun time.Time
		h := control.Hooks{Width: func() int {
			if s.Now().After(begun) { // the first four are written
				stop()
			}
			return 4
		}}
		if frozen {
			if err := s.With(ctx, func(cl *simulate.Cluster) {
				if err := cl.Freeze(b); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		results := map[control.Result]int{}
		h.End = func(o control.Outcome) error {
			results[o.Result]++
			if strings.Contains(o.Why, "canceled") || o.Result == control.Skipped && o.Why != control.NotBegun {
				t.Errorf("%s: %s (%s)", o.Decision.Bundle, o.Result, o.Why)
			}
			return nil
		}
		begun = s.Now()
		if err := s.channel.RunAll(ctx, ds, h); !errors.Is(err, context.Canceled) {
			t.Errorf("error is %v", err)
		}
		want := map[control.Result]int{control.Done: 4, control.Skipped: 8}
		if frozen {
			want = map[control.Result]int{control.TimedOut: 4, control.Skipped: 8}
		}
		if diff := cmp.Diff(want, results); diff != "" {
			t.Errorf("frozen: %t, outcomes (-want +got):\n%s", frozen, diff)
		}
		if took := s.Now().Sub(begun); took > 12*time.Second {
			t.Errorf("after the stop it went on for %v", took)
		}
	}
}

// hesitant is a cluster one of whose brokers does not answer, or says the wrong thing, a few times.
type hesitant struct {
	control.Cluster
	fails, lies int
}

func (h *hesitant) Owned(ctx context.Context, broker string) ([]string, error) {
	switch {
	case h.fails > 0:
		h.fails--
		return nil, errors.New("no answer in time")
	case h.lies > 0:
		h.lies--
		return nil, nil
	}
	return h.Cluster.Owned(ctx, broker)
}

// A broker that answers late, or has not heard of its bundle yet, is asked again for a while; one that goes on disagreeing is believed.
func TestChannelAsksAgain(t *testing.T) {
	for _, x := range []struct {
		fails, lies int
		want        control.Result
		code        string
	}{{2, 0, control.Done, ""}, {0, 2, control.Done, ""}, {1000, 0, control.Skipped, "CHANNEL_NO_ANSWER"}, {0, 1000, control.Skipped, "CHANNEL_DISAGREEMENT"}} {
		s := set(t, 4, nil, nil)
		slow := &hesitant{s.Embedded, x.fails, x.lies}
		ch := control.NewChannel(control.ChannelOptions{Cluster: slow, Topic: s.views, Log: s.Log(), Lock: s.lock, Clock: s.Embedded, Logger: quiet,
			Limits: control.ChannelLimits{Concurrent: 16, Seen: 5 * time.Second, Verify: 20 * time.Second, Poll: 20 * time.Millisecond}})
		o := ch.Run(t.Context(), transfer(s.names[0], a, b))
		if o.Result != x.want || !strings.Contains(o.Why, x.code) || o.Millis > 7000 {
			t.Errorf("%d without an answer, %d with a wrong one: %+v, want %s", x.fails, x.lies, o, x.want)
		}
		if err := ch.Close(); err != nil {
			t.Error(err)
		}
	}
}

// overtaken is the ownership topic as another goroutine follows it: records come between a snapshot and what is made of it.
type overtaken struct {
	*control.Views
	t       *testing.T
	written func() bool
	going   chan error
}

func (o *overtaken) Reading(ctx context.Context) (ownership.Reading, error) {
	if o.going == nil && o.written() {
		return ownership.Reading{CaughtUp: true}, nil // not a record further
	}
	o.join()
	return o.Views.Reading(ctx)
}

func (o *overtaken) join() {
	if o.going != nil {
		if err := <-o.going; err != nil {
			o.t.Error(err)
		}
	}
}

func (o *overtaken) Ownership() *ownership.Snapshot {
	s := o.Views.Ownership()
	if o.going == nil && o.written() {
		o.going = make(chan error, 1)
		caught := make(chan struct{})
		go func() {
			if err := o.CatchUp(o.t.Context()); err != nil {
				o.going <- err
			}
			close(o.going)
			close(caught)
		}()
		select { // whoever holds the channel's lock is not overtaken
		case <-caught:
		case <-time.After(100 * time.Millisecond):
		}
	}
	return s
}

// A record that comes while the present owners are looked at does not make them look like what came after it.
func TestChannelIsOvertaken(t *testing.T) {
	s := set(t, 4, nil, nil)
	before := ownershipRecords(t, s.Embedded)
	topic := &overtaken{Views: s.views, t: t, written: func() bool { return ownershipRecords(t, s.Embedded) > before }}
	ch := control.NewChannel(control.ChannelOptions{Cluster: s.Embedded, Topic: topic, Log: s.Log(), Lock: s.lock, Clock: s.Embedded, Logger: quiet,
		Limits: control.ChannelLimits{Concurrent: 16, Seen: 5 * time.Second, Verify: 20 * time.Second, Poll: 20 * time.Millisecond}})
	defer ch.Close()
	if o := ch.Run(t.Context(), transfer(s.names[0], a, b)); o.Result != control.Done || topic.going == nil {
		t.Errorf("%+v", o)
	}
}

// halfJournal loses what is written together with something else.
type halfJournal struct{ memoryJournal }

func (j *halfJournal) AppendAll(ctx context.Context, rs []control.Record) error {
	if err := j.Append(ctx, rs[0]); err != nil {
		return err
	}
	return errors.New("no answer from the log")
}

// Of decisions that begin together, none is written for unless every intent is known to be stored; the leader steps down, and the
// others have their outcomes.
func TestChannelWritesNothingWithoutItsIntent(t *testing.T) {
	e := small(t, map[string]string{shedding: "false"})
	w := process(t, e, "one", control.Govern, script{}, false)
	names := w.bundles(t)
	lock := control.NewLock(e.Log(), "one", time.Second, e.Now)
	if err := lock.Acquire(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	channel := control.NewChannel(control.ChannelOptions{Cluster: e, Topic: w.views, Log: e.Log(), Lock: lock, Clock: e, Logger: quiet,
		Limits: control.ChannelLimits{Concurrent: 16, Seen: 3 * time.Second, Verify: 20 * time.Second, Poll: 20 * time.Millisecond}})
	t.Cleanup(func() { channel.Close() })
	var ds []plan.Decision
	for _, name := range names {
		ds = append(ds, transfer(name, a, b))
	}
	journal := &halfJournal{}
	leader := control.New(control.Options{Mode: control.Govern, Viewer: w.views, Lock: lock, Journal: journal, Clock: e, Logger: quiet, Executor: channel,
		Manager: script{plans: [][]plan.Decision{ds}}, Limits: guard.Limits{MovesAtOnce: 4}})
	cy, err := leader.Step(t.Context())
	if !errors.Is(err, control.ErrStepDown) {
		t.Fatalf("error is %v, want ErrStepDown", err)
	}
	var results []control.Result
	for _, o := range cy.Outcomes {
		results = append(results, o.Result)
	}
	if diff := cmp.Diff([]control.Result{control.Done, control.Skipped, control.Skipped, control.Skipped}, results); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if err := e.Sleep(t.Context(), 5*time.Second); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		if want, is := []string{b, a}[min(i, 1)], w.owner(t, name); is != want {
			t.Errorf("%s is on %s, want %s", name, is, want)
		}
	}
}

// fullJournal takes plans and intents, and no outcome.
type fullJournal struct {
	memoryJournal
	refused int
}

func (j *fullJournal) Append(ctx context.Context, r control.Record) error {
	if r.Kind == control.KindOutcome {
		j.refused++
		return errors.New("no answer from the log")
	}
	return j.memoryJournal.Append(ctx, r)
}

// alike is an actor that begins everything at once, with the same outcome for all.
type alike struct{ acting }

func (x alike) RunAll(ctx context.Context, ds []plan.Decision, h control.Hooks) (failed error) {
	if _, err := h.Begin(ctx, ds); err != nil {
		return err
	}
	for _, d := range ds {
		if err := h.End(x.Run(ctx, d)); failed == nil {
			failed = err
		}
	}
	return failed
}

// A log that does not answer is waited for once, and not for each of the outcomes that are still to come.
func TestOneUnwrittenOutcomeEndsTheWriting(t *testing.T) {
	e := small(t, map[string]string{shedding: "false"})
	w := process(t, e, "one", control.Govern, script{}, false)
	names := w.bundles(t)
	var ds []plan.Decision
	for _, name := range names {
		ds = append(ds, transfer(name, a, b))
	}
	journal := &fullJournal{}
	leader := control.New(control.Options{Mode: control.Govern, Viewer: w.views, Journal: journal, Clock: e, Logger: quiet,
		Executor: alike{func(_ context.Context, d plan.Decision) control.Outcome {
			return control.Outcome{Decision: d, Result: control.Done, Owner: b}
		}},
		Manager: script{plans: [][]plan.Decision{ds}}})
	cy, err := leader.Step(t.Context())
	if !errors.Is(err, control.ErrStepDown) || journal.refused != 1 || len(cy.Outcomes) != len(names) || len(names) < 2 {
		t.Errorf("%v; %d of %d outcomes were tried to be written", err, journal.refused, len(cy.Outcomes))
	}
}
