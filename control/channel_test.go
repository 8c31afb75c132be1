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
