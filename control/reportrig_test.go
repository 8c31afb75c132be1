package control_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

// stale is after how long a report is too old in these tests.
const stale = 30 * time.Second

// reported is a Modular cluster whose load reports a test publishes.
type reported struct {
	*simulate.Embedded
	t    *testing.T
	log  *topics.Memory
	pubs map[string]topics.Publisher
}

// modularCluster is small, with the Modular load manager: a owns four bundles of ns, which have traffic of 1 to 4 shares.
func modularCluster(t *testing.T, change func(*simulate.Config)) *reported {
	t.Helper()
	set := settings.Defaults()
	set.LoadBalancerReportUpdateMaxIntervalMinutes = 1
	set.LoadBalancerAutoBundleSplitEnabled = false
	set.LoadBalancerBundleUnloadMinThroughputThreshold = 0
	space := simulate.Namespace{Name: ns}
	for i := range 4 {
		space.Bundles = append(space.Bundles, simulate.Bundle{Traffic: simulate.Messages(100*float64(i+1), 1000), NumTopics: 3, Owner: a})
	}
	cfg := simulate.Config{Kind: simulate.Modular, Settings: set, Namespaces: []simulate.Namespace{space},
		Brokers: []simulate.Broker{{ID: a, Cores: 2, HeapMiB: 400, DirectMiB: 256, NICKbit: 20_000}, {ID: b, Cores: 2, HeapMiB: 400, DirectMiB: 256, NICKbit: 20_000},
			{ID: c, Cores: 2, HeapMiB: 400, DirectMiB: 256, NICKbit: 20_000}}}
	if change != nil {
		change(&cfg)
	}
	cl, err := simulate.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := simulate.NewEmbedded(t.Context(), cl, simulate.EmbeddedOptions{SelfDriven: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &reported{Embedded: e, t: t, log: e.Log(), pubs: map[string]topics.Publisher{}}
	r.pass(3 * time.Minute) // statistics come once a minute
	return r
}

func (r *reported) pass(d time.Duration) {
	r.t.Helper()
	if err := r.Sleep(r.t.Context(), d); err != nil {
		r.t.Fatal(err)
	}
}

// send publishes on a topic.
func (r *reported) send(topic, key string, payload []byte) {
	r.t.Helper()
	pub := r.pubs[topic]
	if pub == nil {
		var err error
		if pub, err = r.log.Publisher(r.t.Context(), topic, topics.PublishOptions{}); err != nil {
			r.t.Fatal(err)
		}
		r.pubs[topic] = pub
	}
	if _, err := pub.Publish(r.t.Context(), key, payload); err != nil {
		r.t.Fatal(err)
	}
}

// report publishes the load reports of brokers as they are now.
func (r *reported) report(brokers ...string) {
	r.t.Helper()
	for _, id := range brokers {
		d, err := r.LoadReport(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		payload, err := json.Marshal(d)
		if err != nil {
			r.t.Fatal(err)
		}
		r.send(topics.LocalBrokerData, id, payload)
	}
}

// settings are the cluster's own.
func (r *reported) settings() (set *settings.Settings) {
	r.t.Helper()
	if err := r.With(r.t.Context(), func(c *simulate.Cluster) { set = c.Settings() }); err != nil {
		r.t.Fatal(err)
	}
	return set
}

func (r *reported) history(keep bool) *control.History {
	return control.NewHistory(control.HistoryOptions{Log: r.log, Keep: keep, Interval: 15 * time.Minute, Stepwise: true, Logger: quiet})
}

// views opens views on the reports; history may be nil.
func (r *reported) views(history *control.History, change func(*control.ReportOptions)) *control.ReportViews {
	r.t.Helper()
	set := r.settings()
	o := control.ReportOptions{Cluster: r.Embedded, Log: r.log, History: history, Settings: set, Version: "4.2.4", Class: set.LoadManagerClassName,
		Stale: stale, Stepwise: true, Now: r.Now, Logger: quiet}
	if change != nil {
		change(&o)
	}
	v := control.NewReportViews(o)
	if err := v.Open(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := v.Close(); err != nil {
			r.t.Error(err)
		}
	})
	return v
}

func (r *reported) look(v *control.ReportViews) *control.Look {
	r.t.Helper()
	l, err := v.Look(r.t.Context(), r.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return l
}
