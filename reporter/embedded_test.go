package reporter_test

import (
	"testing"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

// view folds a topic of a log: the latest payload of every key, tombstones removed.
type view struct {
	sub    topics.Subscription
	latest map[string][]byte
	events int
}

func viewOf(t *testing.T, log topics.Log, topic string) *view {
	t.Helper()
	sub, err := log.Subscribe(t.Context(), topic, topics.SubscribeOptions{From: topics.Earliest})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Close() })
	return &view{sub: sub, latest: map[string][]byte{}}
}

func (v *view) read(t *testing.T) map[string][]byte {
	t.Helper()
	for {
		m, ok, err := v.sub.(*topics.MemorySubscription).TryReceive()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return v.latest
		}
		v.events++
		if m.Tombstone() {
			delete(v.latest, m.Key)
		} else {
			v.latest[m.Key] = m.Payload
		}
	}
}

// TestReportsOfAModularCluster: what is published are the reports, the load data that follows from them by the formulas of
// Extensible brokers, and the heaviest bundles; when the reporter stops nothing is left.
func TestReportsOfAModularCluster(t *testing.T) {
	e := modular(t, simulate.Modular)
	log := memory(t, e.Now)
	loads, tops, locals := viewOf(t, log, topics.BrokerLoadData), viewOf(t, log, topics.TopBundles), viewOf(t, log, topics.LocalBrokerData)
	set := clusterSettings(t, e)
	r := reporter.New(reporter.Options{Cluster: e, Log: log, Settings: set, Version: "4.2.4", Logger: quiet, Concurrent: 1})
	want := map[string]*event.BrokerLoadData{}
	published := map[string]event.BrokerLoadData{}
	for range 60 {
		round, err := r.Poll(t.Context(), e.Now())
		if err != nil || len(round.Brokers) != 3 || len(round.Why) != 0 {
			t.Fatalf("%+v, %v", round, err)
		}
		for _, x := range round.Brokers {
			d := want[x.ID]
			if d == nil {
				fresh := event.NewBrokerLoadData()
				d = &fresh
				want[x.ID] = d
			}
			l := x.Report.Local
			load.UpdateBrokerLoad(d, event.SystemResourceUsage{CPU: l.CPU, Memory: l.Memory, DirectMemory: l.DirectMemory, BandwidthIn: l.BandwidthIn, BandwidthOut: l.BandwidthOut},
				load.Totals{MsgThroughputIn: l.MsgThroughputIn, MsgThroughputOut: l.MsgThroughputOut, MsgRateIn: l.MsgRateIn, MsgRateOut: l.MsgRateOut, BundleCount: int64(l.NumBundles), Topics: l.NumTopics},
				load.WeightsOf(set), set.LoadBalancerHistoryResourcePercentage, round.At)
			if x.Load == nil || x.Load.WeightedMaxEMA != d.WeightedMaxEMA || x.Load.MsgThroughputEMA != d.MsgThroughputEMA || x.Load.MaxResourceUsage != d.MaxResourceUsage {
				t.Fatalf("%s: %+v, want %+v", x.ID, x.Load, d)
			}
		}
		for _, ev := range round.Published {
			if d, ok := ev.Value.(event.BrokerLoadData); ok {
				published[ev.Key] = d
			}
		}
		for id, payload := range loads.read(t) {
			got, err := event.Decode[event.BrokerLoadData](payload)
			if err != nil || got != published[id] {
				t.Fatalf("%s: on the topic is %+v (%v), published was %+v", id, got, err, published[id])
			}
		}
		if err := e.Sleep(t.Context(), 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if len(loads.read(t)) != 3 || len(tops.read(t)) != 3 || len(locals.read(t)) != 3 {
		t.Errorf("%d loads, %d lists, %d reports", len(loads.latest), len(tops.latest), len(locals.latest))
	}
	// Load under constant traffic hardly changes: every report goes out, the rest by Pulsar's conditions.
	if locals.events != 3*60 || loads.events > 30 || tops.events < 15 || tops.events > 3*60/2 {
		t.Errorf("%d reports, %d load data, %d lists", locals.events, loads.events, tops.events)
	}
	top, err := event.Decode[event.TopBundlesLoadData](tops.latest[c])
	if err != nil || len(top.TopBundlesLoadData) != 2 || top.TopBundlesLoadData[0].Stats.MsgThroughputIn > top.TopBundlesLoadData[1].Stats.MsgThroughputIn {
		t.Errorf("%+v, %v", top, err)
	}
	report, err := event.DecodeReport(locals.latest[a])
	if err != nil || report.Local == nil || len(report.Local.LastStats) < 2 {
		t.Errorf("%+v, %v", report, err)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(loads.read(t)) != 0 || len(tops.read(t)) != 0 || len(locals.read(t)) != 0 || len(r.Stale()) != 0 {
		t.Errorf("left over: %v, %v, %v", loads.latest, tops.latest, locals.latest)
	}
}
