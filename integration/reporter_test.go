//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
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

// TestReporter: on Modular and Simple clusters what is published is what follows from the brokers' own reports, and is never
// older than one reading and five seconds; what a broker that dies had is taken back, and all of it when the reporter stops.
func TestReporter(t *testing.T) {
	for _, manager := range []harness.Manager{harness.Modular, harness.Simple} {
		t.Run(manager.String(), func(t *testing.T) {
			if manager == harness.Simple {
				full(t)
			}
			c := pool.Get(t, harness.Options{Manager: manager, Conf: reportConf()})
			ns := c.CreateNamespace(t, 12)
			layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 300, Exponent: 0.6, MaxShare: 0.3, Seed: 5})
			createTopics(t, c, layout)
			flow := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Size: 2000})
			flow.AwaitFlow(t)
			t.Run("a crashed one before", func(t *testing.T) { afterACrash(t, c) })
			victim, others := c.Brokers()[2], c.Brokers()[:2]
			// Pulsar needs a while to see that a broker is dead; as long as that nobody could write to topics that it serves.
			apart(t, c, victim, topics.BrokerLoadData, topics.TopBundles, topics.LocalBrokerData, topics.Reporter, topics.Reported)
			r := report(t, c, nil)
			r.awaitAll(t, c.Brokers())

			// The view is watched all the time: first of all brokers, then of those that are left while one dies and comes back.
			watching := harness.Length(2*time.Minute, 10*time.Minute)
			var oldest time.Duration
			var until time.Time
			t.Run("under changing load", func(t *testing.T) {
				t.Run("typed consumer", func(t *testing.T) { t.Parallel(); typedConsumer(t, c) })
				t.Run("view", func(t *testing.T) {
					t.Parallel()
					until = time.Now().Add(watching)
					oldest = r.watch(t, c.Brokers(), flow, func() bool { return time.Until(until) > watching/3 })
				})
			})
			compared := r.compare(t, c.Brokers())
			harness.Figure(t, "published load data compared with the brokers' reports", compared)
			back := make(chan error, 1)
			victim.Kill(t)
			go func() { back <- r.goes(t.Context(), c, victim) }()
			var left error
			done := false
			oldest = max(oldest, r.watch(t, others, flow, func() bool {
				select {
				case left = <-back:
					done = true
				default:
				}
				return !done || time.Now().Before(until)
			}))
			harness.Figure(t, "oldest report in the view, ms", oldest.Milliseconds())
			if left != nil {
				t.Fatalf("what the dead broker had is taken back: %v", left)
			}
			for _, b := range others {
				if err := r.left(b.ID, true); err != nil {
					t.Error(err)
				}
			}
			victim.Start(t)
			r.awaitAll(t, c.Brokers())
			r.stop()
			harness.Eventually(t, 30*time.Second, "everything is taken back", func(context.Context) error {
				for _, b := range c.Brokers() {
					if err := r.left(b.ID, false); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

// apart has a broker serve none of some system topics: it gives their bundles away.
func apart(t *testing.T, c *harness.Cluster, broker *harness.Broker, names ...string) {
	t.Helper()
	rest, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer rest.Close()
	for _, topic := range names {
		bundle, err := getAt(t.Context(), broker, "/lookup/v2/topic/"+strings.Replace(topic, "://", "/", 1)+"/bundle")
		if err != nil {
			t.Fatal(err)
		}
		bundle = event.SystemNamespace + "/" + strings.TrimSpace(bundle)
		harness.Eventually(t, 2*time.Minute, bundle+" of "+topic+" is on another broker", func(ctx context.Context) error {
			owner, err := rest.OwnerOf(ctx, bundle)
			switch {
			case err != nil:
				return err
			case owner == "":
				return errors.Join(errors.New("nobody owns it"), rest.CreateTopic(ctx, topic)) // somebody does then
			case owner != broker.ID:
				return nil
			}
			return errors.Join(fmt.Errorf("it is on %s", owner), c.Unload(ctx, bundle, c.Brokers()[0]))
		})
	}
}

// createTopics makes the topics of a layout where brokers do not make them.
func createTopics(t *testing.T, c *harness.Cluster, layout traffic.Layout) {
	t.Helper()
	for _, topic := range layout {
		harness.Eventually(t, time.Minute, "create "+topic.Name, func(ctx context.Context) error {
			err := c.Do(ctx, http.MethodPut, "/admin/v2/"+strings.Replace(topic.Name, "://", "/", 1), nil)
			if err != nil && strings.Contains(err.Error(), "409") {
				return nil
			}
			return err
		})
	}
}

func (r *reporting) awaitAll(t *testing.T, brokers []*harness.Broker) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, "all brokers are reported", func(context.Context) error {
		for _, b := range brokers {
			if err := r.left(b.ID, true); err != nil {
				return err
			}
		}
		return nil
	})
}

// left says whether something of a broker is on the topics, or nothing.
func (r *reporting) left(broker string, want bool) error {
	for name, h := range map[string]*heardTopic{"load data": r.load, "top bundles": r.top, "report": r.reports} {
		if _, got := h.get(broker); got != want {
			return fmt.Errorf("%s of %s: there is %v, want %v", name, broker, got, want)
		}
	}
	return nil
}

// goes waits until a broker that died is not registered any more and what it had is taken back.
func (r *reporting) goes(ctx context.Context, c *harness.Cluster, victim *harness.Broker) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		registered, err := c.Registry(ctx)
		if err == nil && slices.Contains(registered, victim.ID) {
			err = fmt.Errorf("%s is registered", victim.ID)
		}
		if err == nil {
			err = r.left(victim.ID, false)
		}
		if err == nil {
			return nil
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// watch changes the load and checks every half second how old the view of some brokers is, for as long as it is told to. It
// returns the greatest age.
func (r *reporting) watch(t *testing.T, brokers []*harness.Broker, flow *traffic.Run, on func() bool) (oldest time.Duration) {
	t.Helper()
	for step := 0; on(); step++ {
		if step%40 == 0 {
			flow.SetLoad([]float64{1, 0.2, 2, 0.6}[step/40%4])
		}
		for _, b := range brokers {
			m, ok := r.reports.get(b.ID)
			if !ok {
				t.Fatalf("no report of %s", b.ID)
			}
			age := time.Since(m.Received)
			if oldest = max(oldest, age); age > reportEvery+reportSlack {
				t.Fatalf("the report of %s is %v old", b.ID, age)
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	flow.SetLoad(1)
	return oldest
}

// compare holds what was published of each broker against the formulas, applied to all its reports one after the other.
func (r *reporting) compare(t *testing.T, brokers []*harness.Broker) (compared int) {
	t.Helper()
	for _, b := range brokers {
		var want []event.BrokerLoadData
		fold := byFormula{history: r.settings.LoadBalancerHistoryResourcePercentage, settings: r.settings}
		for _, x := range r.cluster.of(b.ID) {
			want = append(want, fold.take(x.report))
		}
		next, last := 0, -1
		for _, m := range r.load.of(b.ID) {
			if m.Tombstone() {
				t.Errorf("the load data of %s was taken back", b.ID)
				continue
			}
			got, err := event.Decode[event.BrokerLoadData](m.Payload)
			if err != nil {
				t.Fatal(err)
			}
			got.UpdatedAt, got.ReportedAt = 0, 0
			at := slices.IndexFunc(want[next:], func(d event.BrokerLoadData) bool { return d == got })
			if at < 0 {
				t.Fatalf("%s: no report from number %d of %d on gives %s", b.ID, next, len(want), m.Payload)
			}
			at += next
			if age := m.Received.Sub(r.cluster.of(b.ID)[at].at); age > reportSlack {
				t.Errorf("%s: published %v after it was read", b.ID, age)
			}
			if last >= 0 {
				r.due(t, b.ID, want[last:at])
			}
			next, last = at+1, at
			compared++
		}
		t.Logf("%s: %d readings, %d published", b.ID, len(want), len(r.load.of(b.ID)))
		if len(r.load.of(b.ID)) < 3 {
			t.Errorf("%s was published %d times under changing load", b.ID, len(r.load.of(b.ID)))
		}
	}
	return compared
}

// due checks that nothing between two publications differed from the first by more than the threshold.
func (r *reporting) due(t *testing.T, id string, between []event.BrokerLoadData) {
	t.Helper()
	first := between[0]
	threshold := float64(r.settings.LoadBalancerReportUpdateThresholdPercentage)
	for _, d := range between[1:] {
		if change := changeOf(first, d); change > threshold {
			t.Errorf("%s: a change by %v %% was not published", id, change)
		}
	}
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

// typedConsumer: the registered schema is the brokers' own, and a consumer that declares it reads the events.
func typedConsumer(t *testing.T, c *harness.Cluster) {
	pc, err := client.NewClient(client.ClientOptions{URL: c.ServiceURL()})
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	for topic, class := range map[string]string{topics.BrokerLoadData: "BrokerLoadData", topics.TopBundles: "TopBundlesLoadData"} {
		want, ok := event.SchemaOf(class, harness.Version())
		if !ok {
			want = event.SchemasOf(class)[0]
		}
		var registered struct {
			Type string
			Data string
		}
		harness.Eventually(t, time.Minute, "the schema of "+topic, func(ctx context.Context) error {
			return c.Get(ctx, "/admin/v2/schemas/"+strings.SplitN(topic, "://", 2)[1]+"/schema", &registered)
		})
		if diff := cmp.Diff(want.Definition, registered.Data); diff != "" || registered.Type != "JSON" {
			t.Errorf("%s: type %s, schema (-want +got):\n%s", topic, registered.Type, diff)
		}
		consumer, err := pc.Subscribe(client.ConsumerOptions{Topic: topic, SubscriptionName: "typed", Schema: client.NewJSONSchema(want.Definition, want.Properties()),
			AckGroupingOptions: &client.AckGroupingOptions{MaxSize: 1}})
		if err != nil {
			t.Fatalf("%s: %v", topic, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		m, err := consumer.Receive(ctx)
		cancel()
		consumer.Close()
		if err != nil {
			t.Fatalf("%s: %v", topic, err)
		}
		var value map[string]any
		if err := m.GetSchemaValue(&value); err != nil || m.Key() == "" || value["cpu"] == nil && value["topBundlesLoadData"] == nil {
			t.Errorf("%s: key %q, %v, %v", topic, m.Key(), value, err)
		}
	}
}

// faultyProxy stands before a broker and breaks its load reports on demand.
type faultyProxy struct {
	*httptest.Server
	fault atomic.Value // string
	old   atomic.Value // string: the report from yesterday
}

func proxyTo(t *testing.T, b *harness.Broker) *faultyProxy {
	t.Helper()
	target, err := url.Parse(b.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	p := &faultyProxy{}
	p.fault.Store("")
	ended := make(chan struct{})
	through := httputil.NewSingleHostReverseProxy(target)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault := p.fault.Load().(string)
		if !strings.HasSuffix(r.URL.Path, "/load-report") || fault == "" {
			through.ServeHTTP(w, r)
			return
		}
		switch fault {
		case "fails":
			http.Error(w, `{"reason":"broken on purpose"}`, http.StatusInternalServerError)
		case "hangs":
			select {
			case <-r.Context().Done():
			case <-ended:
			}
		case "garbage":
			fmt.Fprint(w, "\x00\xffgarbage<html>")
		case "half":
			body := get(t, b.AdminURL()+r.URL.Path)
			fmt.Fprint(w, string(body[:len(body)/2]))
		case "yesterday":
			p.old.CompareAndSwap(nil, yesterday(t, get(t, b.AdminURL()+r.URL.Path)))
			fmt.Fprint(w, p.old.Load())
		}
	}))
	t.Cleanup(func() { close(ended); p.Close() })
	return p
}

func get(t *testing.T, address string) []byte {
	resp, err := http.Get(address)
	if err != nil {
		t.Error(err)
		return []byte("{}")
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return b
}

// yesterday is a report as it was a day ago.
func yesterday(t *testing.T, document []byte) string {
	var m map[string]any
	if err := json.Unmarshal(document, &m); err != nil {
		t.Error(err)
	}
	for _, key := range []string{"lastUpdate", "timestamp"} {
		if at, ok := m[key].(float64); ok {
			m[key] = int64(at) - 86_400_000
		}
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// TestReporterWithBrokenReports: a broker whose reports break becomes stale with a reason, is no destination, keeps its
// bundles; the others go on; when it is well it counts again.
func TestReporterWithBrokenReports(t *testing.T) {
	for _, manager := range []harness.Manager{harness.Modular, harness.Simple} {
		t.Run(manager.String(), func(t *testing.T) {
			if manager == harness.Simple {
				full(t)
			}
			c := pool.Get(t, harness.Options{Manager: manager, Conf: reportConf()})
			sick := c.Brokers()[1]
			proxy := proxyTo(t, sick)
			r := report(t, c, map[string]string{sick.ID: proxy.Listener.Addr().String()})
			r.awaitAll(t, c.Brokers())
			for _, x := range []struct{ fault, code string }{
				{"fails", reporter.NotRead.ID}, {"hangs", reporter.NoAnswer.ID}, {"garbage", reporter.Unreadable.ID},
				{"half", reporter.Unreadable.ID}, {"yesterday", reporter.WentBack.ID},
			} {
				before, _ := r.reports.get(sick.ID)
				broken := time.Now()
				proxy.fault.Store(x.fault)
				// The others go on from the moment when it breaks; what they said before that is too old after ten seconds.
				took := time.Duration(0)
				for took == 0 || time.Since(broken) < reportEvery+reportSlack {
					for _, b := range c.Brokers() {
						if b == sick {
							continue
						}
						if m, ok := r.reports.get(b.ID); !ok || time.Since(m.Received) > reportEvery+reportSlack {
							t.Fatalf("%s: the report of %s is %v old (%v)", x.fault, b.ID, time.Since(m.Received), ok)
						}
					}
					if err := r.withdrawn(sick.ID, x.code); err == nil {
						if took == 0 {
							took = time.Since(broken)
						}
					} else if took > 0 || time.Since(broken) > time.Minute {
						t.Fatalf("%s: the broker is stale: %v", x.fault, err)
					}
					time.Sleep(250 * time.Millisecond)
				}
				harness.Figure(t, "stale after, ms: "+x.fault, took.Milliseconds())
				kept, ok := r.reports.get(sick.ID)
				old, err1 := event.DecodeReport(before.Payload)
				now, err2 := event.DecodeReport(kept.Payload)
				if !ok || err1 != nil || err2 != nil || len(now.Stats()) < len(old.Stats()) {
					t.Errorf("%s: its report is there %v, %v, %v, with %d bundles of %d", x.fault, ok, err1, err2, len(now.Stats()), len(old.Stats()))
				}
				if len(r.Stale()) != 1 {
					t.Errorf("%s: stale are %v", x.fault, r.Stale())
				}
				proxy.fault.Store("")
				harness.Eventually(t, 90*time.Second, x.fault+" is over: the broker counts again", func(context.Context) error {
					if why, stale := r.Stale()[sick.ID]; stale {
						return fmt.Errorf("%+v", why)
					}
					return r.left(sick.ID, true)
				})
			}
		})
	}
}

// withdrawn says whether a broker is stale for a reason, with its load data and its top bundles taken back.
func (r *reporting) withdrawn(broker, code string) error {
	if why, stale := r.Stale()[broker]; !stale || why.Code != code || why.Text == "" {
		return fmt.Errorf("stale %v: %+v", stale, why)
	}
	if _, there := r.load.get(broker); there {
		return errors.New("its load data is there still")
	}
	if _, there := r.top.get(broker); there {
		return errors.New("its top bundles are there still")
	}
	return nil
}

// TestReporterBesideExtensible: on an Extensible cluster the reporter adds nothing but the bundles, all of them, with their
// topics counted.
func TestReporterBesideExtensible(t *testing.T) {
	full(t)
	c := shared(t)
	ns := c.CreateNamespace(t, 16)
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 200, Seed: 2})
	flow := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})
	flow.AwaitFlow(t)
	a, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	log := connect(t, c)
	if err := a.CreateTopic(t.Context(), topics.BundleStats); err != nil {
		t.Fatal(err)
	}
	stats := hearTopic(t, connect(t, c), topics.BundleStats)
	r := reporter.New(reporter.Options{Cluster: a, Log: log, Settings: config.Defaults(), Version: harness.Version(), BundleStatsInterval: 10 * time.Second, BundleStatsRate: 10})
	defer func() {
		if err := r.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	want := map[string]bool{}
	for _, b := range c.Bundles(t, ns) {
		want[b] = true
	}
	harness.Eventually(t, 3*time.Minute, "all bundles are known", func(ctx context.Context) error {
		round, err := r.Poll(ctx, time.Now())
		if err != nil {
			return err
		}
		for _, e := range round.Published {
			if e.Topic != topics.BundleStats {
				return fmt.Errorf("published on %s", e.Topic)
			}
		}
		got, counted := map[string]bool{}, int64(0)
		for _, b := range c.Brokers() {
			if m, ok := stats.get(b.ID); ok {
				d, err := event.Decode[event.BundleStats](m.Payload)
				if err != nil {
					return err
				}
				for _, s := range d.BundleStats {
					if strings.HasPrefix(s.Bundle, ns+"/") && s.Stats.MsgRateIn > 0 {
						got[s.Bundle] = true
						counted += s.Stats.Topics
					}
				}
			}
		}
		if len(got) != len(want) || counted != int64(len(layout)) {
			return fmt.Errorf("%d bundles of %d, %d topics of %d", len(got), len(want), counted, len(layout))
		}
		return nil
	})
	if err := flow.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}
