//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/reporter"
	config "github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

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
			if manager == harness.Simple { // it takes no destination: the others have to be alone
				victim.Stop(t)
				victim.AwaitGone(t)
			}
			apart(t, c, victim, topics.BrokerLoadData, topics.TopBundles, topics.LocalBrokerData, topics.Reporter, topics.Reported)
			if manager == harness.Simple {
				victim.Start(t)
				for _, bundle := range c.Bundles(t, ns)[:6] { // it is empty, and gets some of these
					if err := c.Unload(t.Context(), bundle, victim); err != nil {
						t.Fatal(err)
					}
				}
			}
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

// apart has a broker serve none of some system topics: it gives their bundles away, or others have them where it is not there.
func apart(t *testing.T, c *harness.Cluster, broker *harness.Broker, names ...string) {
	t.Helper()
	rest, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer rest.Close()
	for _, topic := range names {
		bundle, err := getAt(t.Context(), c.Brokers()[0], "/lookup/v2/topic/"+strings.Replace(topic, "://", "/", 1)+"/bundle")
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
		// A broker that reads the policies of topics has one more in the namespace, __change_events.
		if n := int64(len(layout)); len(got) != len(want) || counted != n && counted != n+1 {
			return fmt.Errorf("%d bundles of %d, %d topics of %d", len(got), len(want), counted, len(layout))
		}
		return nil
	})
	if err := flow.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}
