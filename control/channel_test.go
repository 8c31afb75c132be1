package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

// sea is a cluster with a channel onto its ownership topic.
type sea struct {
	*simulate.Embedded
	t       *testing.T
	views   *control.Views
	lock    *control.Lock
	channel *control.Channel
	admin   *countingActor
	names   []string
}

// countingActor stands for the executor over admin REST.
type countingActor struct{ done []plan.Decision }

func (x *countingActor) Run(_ context.Context, d plan.Decision) control.Outcome {
	x.done = append(x.done, d)
	return control.Outcome{Decision: d, Result: control.Done, Owner: d.Destination}
}

// set makes a cluster of three brokers whose first one owns all bundles. Clients do not look bundles up by themselves.
func set(t *testing.T, bundles int, change func(*simulate.Config), log func(topics.Log) topics.Log) *sea {
	t.Helper()
	ctx := t.Context()
	cfg := simulate.Config{Settings: settings.Defaults(), Timing: simulate.DefaultTiming,
		Brokers: []simulate.Broker{{ID: a, Cores: 2}, {ID: b, Cores: 2}, {ID: c, Cores: 2}}}
	cfg.Timing.Lookup = 24 * time.Hour
	space := simulate.Namespace{Name: ns}
	for range bundles {
		space.Bundles = append(space.Bundles, simulate.Bundle{Traffic: simulate.Messages(10, 1000), NumTopics: 2, Owner: a})
	}
	cfg.Namespaces = []simulate.Namespace{space}
	if change != nil {
		change(&cfg)
	}
	cl, err := simulate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := simulate.NewEmbedded(ctx, cl, simulate.EmbeddedOptions{SelfDriven: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	s := &sea{Embedded: e, t: t, admin: &countingActor{}}
	s.views = control.NewViews(control.ViewOptions{Cluster: e, Log: e.Log(), Settings: settings.Defaults(), Version: "4.2.4", Stepwise: true, Logger: quiet})
	if err := s.views.Open(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.views.Close() })
	if err := e.Sleep(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	s.lock = control.NewLock(e.Log(), "test", time.Second, e.Now)
	if err := s.lock.Acquire(ctx, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.lock.Release() })
	var to topics.Log = e.Log()
	if log != nil {
		to = log(to)
	}
	s.channel = control.NewChannel(control.ChannelOptions{Cluster: e, Topic: s.views, Log: to, Lock: s.lock, Clock: e, Admin: s.admin, Logger: quiet,
		Limits: control.ChannelLimits{Concurrent: 16, Seen: 3 * time.Second, Verify: 20 * time.Second, Poll: 20 * time.Millisecond}})
	t.Cleanup(func() { s.channel.Close() })
	if s.names, err = e.Bundles(ctx, ns); err != nil {
		t.Fatal(err)
	}
	return s
}

// all carries decisions out and gives the outcomes by bundle.
func (s *sea) all(ds []plan.Decision, h control.Hooks) (map[string]control.Outcome, error) {
	out := map[string]control.Outcome{}
	h.End = func(o control.Outcome) error {
		if _, twice := out[o.Decision.Bundle]; twice {
			s.t.Errorf("%s has two outcomes", o.Decision.Bundle)
		}
		out[o.Decision.Bundle] = o
		return nil
	}
	err := s.channel.RunAll(s.t.Context(), ds, h)
	if len(out) != len(ds) {
		s.t.Errorf("%d outcomes of %d decisions", len(out), len(ds))
	}
	return out, err
}

func (s *sea) publish(bundle, record string) {
	s.t.Helper()
	pub, err := s.Log().Publisher(s.t.Context(), topics.ServiceUnitState, topics.PublishOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	defer pub.Close()
	if _, err := pub.Publish(s.t.Context(), bundle, []byte(record)); err != nil {
		s.t.Fatal(err)
	}
}

// records are what is on the ownership topic about a bundle, one line each.
func (s *sea) records(bundle string) []string {
	s.t.Helper()
	sub, err := s.Log().Subscribe(s.t.Context(), topics.ServiceUnitState, topics.SubscribeOptions{From: topics.Earliest})
	if err != nil {
		s.t.Fatal(err)
	}
	defer sub.Close()
	var out []string
	err = topics.Drain(s.t.Context(), sub, func(m topics.Message) error {
		if m.Key != bundle || m.Tombstone() {
			return nil
		}
		var d event.ServiceUnitStateData
		if err := json.Unmarshal(m.Payload, &d); err != nil {
			return err
		}
		out = append(out, fmt.Sprintf("%s v%d %s>%s force=%t", d.State, d.VersionID, d.SourceBroker, d.DstBroker, d.Force))
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *sea) ownedBy(broker string) []string {
	s.t.Helper()
	owned, err := s.Owned(s.t.Context(), broker)
	if err != nil {
		s.t.Fatal(err)
	}
	return slices.DeleteFunc(owned, func(name string) bool { return !strings.HasPrefix(name, ns) })
}

// Two hundred bundles go at once: each arrives, the first one alone, never more than the limits allow, much faster than one by one.
func TestChannelMovesManyAtOnce(t *testing.T) {
	s := set(t, 200, nil, nil)
	var ds []plan.Decision
	for i, name := range s.names {
		ds = append(ds, transfer(name, a, []string{b, c}[i%2]))
	}
	begun, flying, most, batches, alone := s.Now(), 0, 0, 0, true
	h := control.Hooks{
		Begin: func(_ context.Context, ds []plan.Decision) ([]string, error) {
			flying += len(ds)
			most = max(most, flying)
			alone = alone && (len(ds) == 1 || len(s.ownedBy(b)) >= 1)
			batches++
			return nil, nil
		},
		Width: func() int { return 12 },
	}
	out := map[string]control.Outcome{}
	h.End = func(o control.Outcome) error { flying--; out[o.Decision.Bundle] = o; return nil }
	if err := s.channel.RunAll(t.Context(), ds, h); err != nil {
		t.Fatal(err)
	}
	for _, d := range ds {
		if o := out[d.Bundle]; o.Result != control.Done || o.Owner != d.Destination {
			t.Fatalf("%+v", o)
		}
	}
	if nb, nc := len(s.ownedBy(b)), len(s.ownedBy(c)); nb != 100 || nc != 100 {
		t.Errorf("%d and %d arrived, want 100 and 100", nb, nc)
	}
	if !alone || most != 12 || batches > 150 {
		t.Errorf("the first alone: %t, at most %d at once, want 12, begun in %d batches, want fewer than bundles", alone, most, batches)
	}
	if took := s.Now().Sub(begun); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	want := []string{"Assigning v1 >a:8080 force=false", "Owned v2 >a:8080 force=false", "Releasing v3 a:8080>c:8080 force=false",
		"Assigning v4 a:8080>c:8080 force=false", "Owned v5 a:8080>c:8080 force=false"}
	if diff := cmp.Diff(want, s.records(s.names[1])); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if len(s.admin.done) != 0 {
		t.Errorf("%d over admin REST", len(s.admin.done))
	}
}

// Unloaded bundles are free; placed, each is where it was wanted, with the next version.
func TestChannelUnloadsAndPlaces(t *testing.T) {
	s := set(t, 4, nil, nil)
	ds := []plan.Decision{{Action: plan.Unload, Bundle: s.names[0], Source: a}, {Action: plan.Unload, Bundle: s.names[1], Source: a}}
	out, err := s.all(ds, control.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	for bundle, o := range out {
		if o.Result != control.Done || o.Owner != "" {
			t.Errorf("unload of %s: %+v", bundle, o)
		}
	}
	for i := range ds {
		ds[i] = plan.Decision{Action: plan.Place, Bundle: s.names[i], Destination: b}
	}
	if out, err = s.all(append(ds, plan.Decision{Action: plan.Place, Bundle: s.names[2], Destination: b}), control.Hooks{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.names[:2], s.ownedBy(b)); diff != "" {
		t.Errorf("b owns (-want +got):\n%s", diff)
	}
	if o := out[s.names[2]]; o.Result != control.Skipped || !strings.Contains(o.Why, "CHANNEL_NOT_UNOWNED") {
		t.Errorf("placing what is owned: %+v", o)
	}
	got := s.records(s.names[0])
	want := []string{"Releasing v3 a:8080> force=false", "Free v4 a:8080> force=false", "Assigning v5 >b:8080 force=false", "Owned v6 >b:8080 force=false"}
	if diff := cmp.Diff(want, got[2:]); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// What a rail refuses leaves no record, and says which rail it was.
func TestChannelRefusals(t *testing.T) {
	setting := func(key, value string) func(*simulate.Config) {
		return func(c *simulate.Config) {
			if err := settings.Set(c.Settings, key, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, x := range []struct {
		name     string
		change   func(*simulate.Config)
		decision func(string) plan.Decision
		code     string
	}{
		{"destination gone", nil, func(n string) plan.Decision { return transfer(n, a, "d:8080") }, "CHANNEL_DESTINATION_NOT_REGISTERED"},
		{"to where it is", nil, func(n string) plan.Decision { return transfer(n, a, a) }, "CHANNEL_SAME_BROKER"},
		{"wrong source", nil, func(n string) plan.Decision { return transfer(n, c, b) }, "CHANNEL_OTHER_OWNER"},
		{"system namespace", nil, func(string) plan.Decision { return transfer("pulsar/system/0x00000000_0x40000000", a, b) }, "CHANNEL_NOT_MANAGED"},
		{"no bundle", nil, func(string) plan.Decision { return transfer("public/ns", a, b) }, "CHANNEL_NO_BUNDLE"},
		{"syncer", setting("loadBalancerServiceUnitTableViewSyncer", "SystemTopicToMetadataStoreSyncer"),
			func(n string) plan.Decision { return transfer(n, a, b) }, "CHANNEL_SYNCER_ACTIVE"},
		{"metadata store", setting("loadManagerServiceUnitStateTableViewClassName", "x.ServiceUnitStateMetadataStoreTableViewImpl"),
			func(n string) plan.Decision { return transfer(n, a, b) }, "CHANNEL_METADATA_STORE"},
		{"untested version", func(c *simulate.Config) { c.Brokers[2].Version = "4.2.5" },
			func(n string) plan.Decision { return transfer(n, a, b) }, "CHANNEL_VERSION_UNTESTED"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := set(t, 4, x.change, nil)
			before := ownershipRecords(t, s.Embedded)
			out := s.channel.Run(t.Context(), x.decision(s.names[0]))
			if out.Result != control.Skipped || !strings.Contains(out.Why, "("+x.code+")") {
				t.Errorf("%+v, want %s", out, x.code)
			}
			if n := ownershipRecords(t, s.Embedded); n != before {
				t.Errorf("%d records were written", n-before)
			}
			why, err := control.ChannelCheck(t.Context(), s)
			if whole := strings.Contains("CHANNEL_SYNCER_ACTIVE CHANNEL_METADATA_STORE CHANNEL_VERSION_UNTESTED", x.code); err != nil || whole != (why.Code == x.code) {
				t.Errorf("the check of the cluster says %s, %v", why.Code, err)
			}
		})
	}
}

// A bundle whose version ran backwards goes over admin REST, and others still over the topic.
func TestChannelSuspects(t *testing.T) {
	s := set(t, 4, nil, nil)
	s.publish(s.names[0], `{"state":"Assigning","dstBroker":"c:8080","versionId":1}`)
	out, err := s.all([]plan.Decision{transfer(s.names[0], a, b), transfer(s.names[1], a, b)}, control.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.admin.done) != 1 || s.admin.done[0].Bundle != s.names[0] || out[s.names[1]].Result != control.Done {
		t.Errorf("over admin REST %+v, outcomes %+v", s.admin.done, out)
	}
	if got := s.records(s.names[0]); len(got) != 3 {
		t.Errorf("records %q", got)
	}
}

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

// A whole service moves through the ownership topic: intents before, outcomes after.
func TestGovernThroughTheChannel(t *testing.T) {
	e := small(t, map[string]string{shedding: "false"})
	names := process(t, e, "look", control.Advise, script{}, false).bundles(t)
	w := processVia(t, e, script{plans: [][]plan.Decision{{transfer(names[0], a, b), transfer(names[1], a, c)}, {}}})
	cycles, err := w.run(t, 1)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i, want := range []string{b, c} {
		if out := cycles[0].Outcomes[i]; out.Result != control.Done || out.Owner != want {
			t.Errorf("outcome %d is %+v, want done at %s", i, out, want)
		}
	}
	want := []control.Kind{control.KindLeader, control.KindPlan, control.KindIntent, control.KindOutcome, control.KindIntent, control.KindOutcome, control.KindLeader}
	if diff := cmp.Diff(want, w.journal.kinds()); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
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
