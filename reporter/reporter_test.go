package reporter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// TestStaleBrokers: whatever is wrong with the reports of one broker, it becomes stale with a reason, its load is taken back
// and its report stays; the others go on; and it counts again when it is well.
func TestStaleBrokers(t *testing.T) {
	for _, x := range []struct {
		name, code string
		break_     func(*fake)
	}{
		{"fails", reporter.NotRead.ID, func(f *fake) { f.fails[b] = &admin.Error{Kind: admin.Server, Status: 500} }},
		{"hangs", reporter.NoAnswer.ID, func(f *fake) { f.hangs[b] = true }},
		{"garbage", reporter.Unreadable.ID, func(f *fake) { f.fails[b] = &admin.Error{Kind: admin.BadAnswer, Reason: "garbage"} }},
		{"half", reporter.Unreadable.ID, func(f *fake) {
			_, err := event.DecodeReport([]byte(`{"name":"b:8080","timestamp":17`))
			f.fails[b] = fmt.Errorf("%w: %w", io.ErrUnexpectedEOF, err)
		}},
		{"yesterday", reporter.WentBack.ID, func(f *fake) { f.frozen[b] = f.now.UnixMilli() - 86_400_000 }},
		{"frozen", reporter.NotAdvancing.ID, func(f *fake) { f.frozen[b] = f.now.UnixMilli() }},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := newWorld(t, newFake(a, b, c), nil)
			w.poll(t)
			w.onTopics(t, "abc", "abc", "abc", "")
			w.do(func() { x.break_(w.fake) })
			for range 16 {
				if w.poll(t); len(w.Stale()) > 0 {
					break
				}
			}
			why, ok := w.Stale()[b]
			if !ok || why.Code != x.code || why.Text == "" || len(w.Stale()) != 1 {
				t.Fatalf("stale: %+v", w.Stale())
			}
			w.onTopics(t, "ac", "ac", "abc", "")
			before := w.locals.events
			w.poll(t)
			if w.onTopics(t, "ac", "ac", "abc", ""); w.locals.events != before+2 {
				t.Errorf("%d reports of the others", w.locals.events-before)
			}
			w.do(func() { w.fails, w.hangs, w.frozen = map[string]error{}, map[string]bool{}, map[string]int64{} })
			w.poll(t)
			if w.onTopics(t, "abc", "abc", "abc", ""); len(w.Stale()) != 0 {
				t.Errorf("stale: %+v", w.Stale())
			}
		})
	}
}

// TestLeavingTheRegistry: what was published of a broker that is gone is taken back, also when the first try fails; a registry
// that cannot be read changes nothing.
func TestLeavingTheRegistry(t *testing.T) {
	w := newWorld(t, newFake(a, b, c), nil)
	w.poll(t)
	w.do(func() { w.ids = []string{a, c} })
	w.log.SetFaults(topics.Faults{Publish: func(_, key string, payload []byte) error {
		if key == b && payload == nil {
			return errDown
		}
		return nil
	}})
	if _, err := w.Poll(t.Context(), w.Now()); !errors.Is(err, errDown) {
		t.Errorf("%v", err)
	}
	w.log.SetFaults(topics.Faults{})
	w.poll(t)
	w.onTopics(t, "ac", "ac", "ac", "")
	w.do(func() { w.broken = errDown })
	round, err := w.Poll(t.Context(), w.Now())
	if !errors.Is(err, errDown) || len(round.Why) == 0 || round.Why[0].Code != reporter.NoRegistry.ID {
		t.Errorf("%+v, %v", round.Why, err)
	}
	w.onTopics(t, "ac", "ac", "ac", "")
}

// TestTombstonesAreRepeated: who did not listen when a broker went hears of it within the next minute, and then no more.
func TestTombstonesAreRepeated(t *testing.T) {
	w := newWorld(t, newFake(a, b, c), nil)
	w.poll(t)
	w.do(func() { w.ids = []string{a, c} })
	tombstones := func(round reporter.Round) (n int) {
		for _, e := range round.Published {
			if e.Key == b && e.Value == nil {
				n++
			}
		}
		return n
	}
	begun, rounds := w.Now(), 0
	for round := w.poll(t); tombstones(round) > 0; round = w.poll(t) {
		if n := tombstones(round); n != 3 {
			t.Fatalf("%d tombstones in a round, want one on each of three topics", n)
		}
		rounds++
	}
	if took := w.Now().Sub(begun); rounds < 2 || took < time.Minute || took > 2*time.Minute {
		t.Errorf("tombstones in %d rounds, until %v after the broker went", rounds, took)
	}
}

// TestExtensibleBrokers: for a broker that publishes itself only its bundles are published, not too often; as soon as one
// registers in a cluster of others everything is taken back, but its own load data, which it overwrites itself.
func TestExtensibleBrokers(t *testing.T) {
	f := newFake(a, b, c)
	w := newWorld(t, f, nil)
	w.poll(t)
	w.onTopics(t, "abc", "abc", "abc", "")
	w.do(func() { w.ids = []string{a, c} }) // b restarts
	w.poll(t)
	w.do(func() { w.ids, w.class[b] = []string{a, b, c}, extensibleClass })
	round := w.poll(t)
	w.onTopics(t, "", "", "", "b")
	for _, id := range []string{a, c} {
		if why := w.Stale()[id]; why.Code != reporter.Mixed.ID {
			t.Errorf("%s: %+v", id, why)
		}
	}
	if _, stale := w.Stale()[b]; stale || len(round.Brokers) != 3 || round.Brokers[0].Load != nil {
		t.Errorf("%+v", round.Brokers)
	}
	w.do(func() { w.class[a], w.class[c], w.asked = extensibleClass, extensibleClass, nil })
	w.do(func() { w.ids = []string{b} })
	w.poll(t)
	w.do(func() { w.ids = []string{a, b, c} })
	for range 12 {
		w.poll(t)
	}
	w.onTopics(t, "", "", "", "abc")
	if n := len(w.asked); n != 3 { // b was read a minute before it is read again
		t.Errorf("read %v", w.asked)
	}
	// Rolled back without leaving the registry.
	w.do(func() { clear(w.class) })
	for range 14 {
		w.poll(t)
	}
	w.onTopics(t, "abc", "abc", "abc", "")
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.onTopics(t, "", "", "", "")
}

// TestSwitchWithoutLeaving: a broker whose report endpoint is gone because it runs another manager now is recognized.
func TestSwitchWithoutLeaving(t *testing.T) {
	w := newWorld(t, newFake(a, b), nil)
	w.poll(t)
	w.do(func() { w.class[b] = extensibleClass })
	w.poll(t)
	w.onTopics(t, "b", "b", "", "b") // b's own load data is b's
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.onTopics(t, "b", "b", "", "")
}

// TestRateOfBundleStats: brokers take turns when there are more of them than the rate allows.
func TestRateOfBundleStats(t *testing.T) {
	f := newFake("a:1", "b:1", "c:1", "d:1", "e:1", "f:1")
	for _, id := range f.ids {
		f.class[id] = extensibleClass
	}
	w := newWorld(t, f, func(o *reporter.Options) { o.BundleStatsRate = 0.2 }) // one a round
	for range 6 {
		w.poll(t)
	}
	if want := []string{"a:1", "b:1", "c:1", "d:1", "e:1", "f:1"}; !slices.Equal(f.asked, want) {
		t.Errorf("read %v, want %v", f.asked, want)
	}
	w.onTopics(t, "", "", "", "abcdef")
	w.do(func() { w.fails["a:1"] = errDown })
	for range 12 {
		w.poll(t)
	}
	w.onTopics(t, "", "", "", "abcdef") // what cannot be read stands
}

// TestNoPolicies: without the policies no top bundles are published, as a bundle under a policy could be among them.
func TestNoPolicies(t *testing.T) {
	f := newFake(a, b)
	w := newWorld(t, f, func(o *reporter.Options) {
		o.Settings.LoadBalancerSheddingBundlesWithPoliciesEnabled = false
		o.Cluster = noPolicies{f}
	})
	round := w.poll(t)
	if len(round.Why) != 1 || round.Why[0].Code != reporter.NoPolicies.ID {
		t.Errorf("%+v", round.Why)
	}
	w.onTopics(t, "ab", "", "ab", "")
}

type noPolicies struct{ *fake }

func (noPolicies) Policies(context.Context) (*policy.Set, error) { return nil, errDown }

// TestManyAtOnce: brokers that are read at the same time all get their lists, though the policies are read once.
func TestManyAtOnce(t *testing.T) {
	f := newFake()
	for i := range 100 {
		f.ids = append(f.ids, fmt.Sprintf("b%03d:8080", i))
	}
	w := newWorld(t, f, func(o *reporter.Options) {
		o.Settings.LoadBalancerSheddingBundlesWithPoliciesEnabled = false
		o.Concurrent = 0
	})
	round := w.poll(t)
	if len(round.Brokers) != 100 || len(round.Published) != 300 || len(round.Why) != 0 || len(w.tops.read(t)) != 100 {
		t.Errorf("%d brokers, %d events, %d lists, %v", len(round.Brokers), len(round.Published), len(w.tops.latest), round.Why)
	}
	if !slices.IsSortedFunc(round.Brokers, func(x, y reporter.BrokerRound) int { return strings.Compare(x.ID, y.ID) }) {
		t.Error("brokers are not in order")
	}
}

// TestTopicsAreMade: every topic is created before it is written to, and Pulsar's carry the brokers' own schema.
func TestTopicsAreMade(t *testing.T) {
	w := newWorld(t, newFake(a), nil)
	w.poll(t)
	slices.Sort(w.created)
	if want := []string{topics.LocalBrokerData, topics.BrokerLoadData, topics.TopBundles, topics.Reported, topics.Reported}; !slices.Equal(w.created, want) {
		t.Errorf("created %v, want %v", w.created, want)
	}
	for topic, class := range map[string]string{topics.BrokerLoadData: "BrokerLoadData", topics.TopBundles: "TopBundlesLoadData"} {
		s, _ := event.SchemaOf(class, "4.2.4")
		p, err := w.log.Publisher(t.Context(), topic, topics.PublishOptions{Schema: topics.Schema{Definition: s.Definition}})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := w.log.Publisher(t.Context(), topic, topics.PublishOptions{Schema: topics.Schema{Definition: `"string"`}}); !errors.Is(err, topics.ErrSchemaMismatch) {
			t.Errorf("%s: %v", topic, err)
		}
	}
}

// TestOneReports: of two reporters one reports; when it stops everything is taken back and the other goes on; one that loses
// the lock stops at once and takes nothing back.
func TestOneReports(t *testing.T) {
	f := newFake(a, b)
	log := memory(t, f.Now)
	start := func(name string, l topics.Log) (lost func() bool, stop func() error) {
		registry := prometheus.NewRegistry()
		m := reporter.NewMetrics(registry, "test")
		r := reporter.New(reporter.Options{Cluster: f, Log: log, Settings: settings.Defaults(), Clock: f, Logger: quiet, Metrics: m,
			Lock: control.NewLockOn(l, topics.Reporter, name, time.Second, f.Now)})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		return func() bool { return gauge(t, registry, "ballast_report_active") == 0 },
			sync.OnceValue(func() error { cancel(); return <-done })
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for range 5000 {
			if ok() {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal(what)
	}
	loads := viewOf(t, log, topics.BrokerLoadData)
	idle1, stop1 := start("one", log)
	await("one does not report", func() bool { return !idle1() && len(loads.read(t)) == 2 })
	idle2, stop2 := start("two", log)
	if !idle2() {
		t.Error("both report")
	}
	if err := stop1(); !errors.Is(err, context.Canceled) || err.Error() != context.Canceled.Error() {
		t.Errorf("%v", err)
	}
	await("two does not go on", func() bool { return !idle2() && len(loads.read(t)) == 2 })
	// The lock is lost when its topic takes no message in time.
	log.SetFaults(topics.Faults{Publish: func(topic, _ string, _ []byte) error {
		if topic == topics.Reporter {
			return errDown
		}
		return nil
	}})
	await("two goes on without the lock", idle2)
	if len(loads.read(t)) != 2 {
		t.Error("what is another's by now was taken back")
	}
	log.SetFaults(topics.Faults{})
	await("two does not come back", func() bool { return !idle2() })
	if err := stop2(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if len(loads.read(t)) != 0 {
		t.Errorf("left over: %v", loads.latest)
	}
}

func gauge(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	all, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() == name && len(f.Metric) > 0 {
			return f.Metric[0].GetGauge().GetValue()
		}
	}
	return 0
}

// TestMetrics: what was read, what was published, who is stale and how old the reports are.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	f := newFake(a, b)
	w := newWorld(t, f, func(o *reporter.Options) { o.Metrics = reporter.NewMetrics(registry, "test") })
	w.poll(t)
	w.do(func() { w.fails[b] = errDown })
	for range 3 {
		w.poll(t)
	}
	got := map[string]float64{}
	all, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, fam := range all {
		for _, m := range fam.Metric {
			name := fam.GetName()
			for _, l := range m.Label {
				if l.GetName() != "cluster" {
					name += " " + l.GetValue()
				}
			}
			got[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	for name, want := range map[string]float64{
		"ballast_report_reads_total good": 5, "ballast_report_reads_total failed": 3,
		"ballast_report_events_total value " + topics.LocalBrokerData:    5,
		"ballast_report_events_total value " + topics.BrokerLoadData:     2,
		"ballast_report_events_total tombstone " + topics.BrokerLoadData: 1,
		"ballast_report_stale " + b + " " + reporter.NotRead.ID:          1,
		"ballast_report_age_seconds " + a:                                0,
		"ballast_report_age_seconds " + b:                                15,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v; all: %v", name, v, ok, want, got)
		}
	}
}

func TestWanted(t *testing.T) {
	for _, x := range []struct {
		report, mode string
		want         bool
	}{{"auto", "observe", false}, {"auto", "advise", true}, {"auto", "govern", true}, {"never", "govern", false}, {"always", "observe", true}} {
		if got := reporter.Wanted(x.report, x.mode); got != x.want {
			t.Errorf("%s in %s: %v", x.report, x.mode, got)
		}
	}
	own, set := settings.DefaultBallast(), settings.Defaults()
	if d := reporter.Interval(own, set); d != 5*time.Second {
		t.Errorf("interval %v", d)
	}
	if own.BallastReportInterval = 20 * time.Second; reporter.Interval(own, set) != 20*time.Second {
		t.Error("the own interval does not count")
	}
}
