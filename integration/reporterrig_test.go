//go:build integration

package integration

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/reporter"
	config "github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

const (
	reportEvery = 5 * time.Second
	reportSlack = 5 * time.Second
)

// reportConf makes the brokers' statistics come often, and gives them a network interface whose speed is known.
func reportConf() map[string]string {
	return map[string]string{
		"statsUpdateFrequencyInSecs": "10", "statsUpdateInitialDelayInSecs": "10",
		"loadBalancerOverrideBrokerNicSpeedGbps": "0.1", "loadBalancerSheddingEnabled": "false", "loadBalancerAutoBundleSplitEnabled": "false",
		"allowAutoTopicCreation": "false", // the reporter makes its topics itself
	}
}

// reading is a report as the reporter got it.
type reading struct {
	at     time.Time
	report event.BrokerReport
}

// recording is a cluster that remembers every report that it gave away, by broker.
type recording struct {
	*admin.Client
	mu       sync.Mutex
	readings map[string][]reading
}

func (c *recording) LoadReport(ctx context.Context, broker string) (event.BrokerReport, error) {
	r, err := c.Client.LoadReport(ctx, broker)
	if err == nil {
		c.mu.Lock()
		c.readings[broker] = append(c.readings[broker], reading{time.Now(), r})
		c.mu.Unlock()
	}
	return r, err
}

func (c *recording) of(broker string) []reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.readings[broker])
}

// heardTopic is what a subscription of its own heard of a topic.
type heardTopic struct {
	mu     sync.Mutex
	all    []topics.Message
	latest map[string]topics.Message
}

func hearTopic(t *testing.T, log topics.Log, topic string) *heardTopic {
	t.Helper()
	sub, err := log.Subscribe(t.Context(), topic, topics.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h, done := &heardTopic{latest: map[string]topics.Message{}}, make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(done)
		for {
			m, err := sub.Receive(ctx)
			if err != nil {
				return
			}
			h.mu.Lock()
			h.all = append(h.all, m)
			if h.latest[m.Key] = m; m.Tombstone() {
				delete(h.latest, m.Key)
			}
			h.mu.Unlock()
		}
	}()
	t.Cleanup(func() { cancel(); <-done; _ = sub.Close() })
	return h
}

func (h *heardTopic) get(key string) (topics.Message, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, ok := h.latest[key]
	return m, ok
}

func (h *heardTopic) of(key string) (out []topics.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.all {
		if m.Key == key {
			out = append(out, m)
		}
	}
	return out
}

// reporting is a reporter that runs against a cluster, and what can be heard of it.
type reporting struct {
	*reporter.Reporter
	cluster            *recording
	settings           *config.Settings
	load, top, reports *heardTopic
	stop               func()
}

func report(t *testing.T, c *harness.Cluster, addresses map[string]string) *reporting {
	t.Helper()
	a, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}, Addresses: addresses, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	runtime := conf(t, c)
	layers, err := config.Resolve(harness.Version(), config.ClusterLayer(c.AdminURL(), runtime))
	if err != nil {
		t.Fatal(err)
	}
	out := &reporting{cluster: &recording{Client: a, readings: map[string][]reading{}}, settings: layers.Settings}
	for _, topic := range []string{topics.BrokerLoadData, topics.TopBundles, topics.LocalBrokerData, topics.Reporter} {
		if err := a.CreateTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	ears := connect(t, c)
	out.load, out.top, out.reports = hearTopic(t, ears, topics.BrokerLoadData), hearTopic(t, ears, topics.TopBundles), hearTopic(t, ears, topics.LocalBrokerData)
	log := connect(t, c)
	logger := slog.New(slog.NewTextHandler(testWriter{t}, nil))
	out.Reporter = reporter.New(reporter.Options{Cluster: out.cluster, Log: log, Settings: out.settings, Version: harness.Version(), Interval: reportEvery,
		Clock: control.SystemClock{}, Lock: control.NewLockOn(log, topics.Reporter, t.Name(), 5*time.Second, time.Now), Logger: logger})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- out.Run(ctx) }()
	out.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; !strings.HasPrefix(err.Error(), context.Canceled.Error()) || strings.Contains(err.Error(), "\n") {
			t.Errorf("the reporter ended with %v", err)
		}
	})
	t.Cleanup(out.stop)
	return out
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func changeOf(a, b event.BrokerLoadData) float64 {
	percent := func(x, y float64) float64 {
		switch {
		case x == 0 && y == 0:
			return 0
		case x == 0:
			return math.Inf(1)
		}
		return 100 * math.Abs((x-y)/x)
	}
	return max(100*math.Abs(a.MaxResourceUsage-b.MaxResourceUsage), percent(a.MsgRateIn+a.MsgRateOut, b.MsgRateIn+b.MsgRateOut),
		percent(a.MsgThroughputIn+a.MsgThroughputOut, b.MsgThroughputIn+b.MsgThroughputOut), percent(float64(a.BundleCount), float64(b.BundleCount)))
}

// byFormula folds reports into load data by the rules of Pulsar's BrokerLoadData.update, written out once more.
type byFormula struct {
	history  float64
	settings *config.Settings
	begun    bool
	ema, tpt float64
	bundles  string // those of the last report
}

func (f *byFormula) take(r event.BrokerReport) event.BrokerLoadData {
	d := event.BrokerLoadData{}
	if l := r.Local; l != nil {
		d.CPU, d.Memory, d.DirectMemory, d.BandwidthIn, d.BandwidthOut = l.CPU, l.Memory, l.DirectMemory, l.BandwidthIn, l.BandwidthOut
		d.MsgThroughputIn, d.MsgThroughputOut, d.MsgRateIn, d.MsgRateOut = l.MsgThroughputIn, l.MsgThroughputOut, l.MsgRateIn, l.MsgRateOut
		d.BundleCount, d.Topics = int64(l.NumBundles), l.NumTopics
	} else {
		u := r.Simple.SystemResourceUsage
		d.CPU, d.Memory, d.DirectMemory, d.BandwidthIn, d.BandwidthOut = u.CPU, u.Memory, u.DirectMemory, u.BandwidthIn, u.BandwidthOut
		for _, s := range r.Simple.BundleStats {
			d.MsgThroughputIn += s.Stats.MsgThroughputIn
			d.MsgThroughputOut += s.Stats.MsgThroughputOut
			d.MsgRateIn += s.Stats.MsgRateIn
			d.MsgRateOut += s.Stats.MsgRateOut
			d.Topics += s.Stats.Topics
			d.BundleCount++
		}
	}
	percent := func(u event.ResourceUsage) float64 {
		if u.Limit <= 0 {
			return 0
		}
		return float64(float32(float32(u.Usage)/float32(u.Limit)) * 100)
	}
	cpu, mem, direct, in, out := percent(d.CPU), percent(d.Memory), percent(d.DirectMemory), percent(d.BandwidthIn), percent(d.BandwidthOut)
	s := f.settings
	d.MaxResourceUsage = max(cpu, direct, in, out) / 100
	w := max(cpu*s.LoadBalancerCPUResourceWeight, mem*s.LoadBalancerMemoryResourceWeight, direct*s.LoadBalancerDirectMemoryResourceWeight,
		in*s.LoadBalancerBandwidthInResourceWeight, out*s.LoadBalancerBandwidthOutResourceWeight) / 100
	throughput := d.MsgThroughputIn + d.MsgThroughputOut
	var names []string
	for _, s := range r.Stats() {
		names = append(names, s.Bundle)
	}
	slices.Sort(names)
	if served := strings.Join(names, " "); served != f.bundles { // averages begin anew
		f.begun, f.bundles = false, served
	}
	if !f.begun {
		f.ema, f.tpt, f.begun = w, throughput, true
	} else {
		f.ema = float64(f.ema*f.history) + float64((1-f.history)*w)
		f.tpt = float64(f.tpt*f.history) + float64((1-f.history)*throughput)
	}
	d.WeightedMaxEMA, d.MsgThroughputEMA = f.ema, f.tpt
	return d
}
