//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/zookeeper"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/manager"
	"github.com/ballast-lb/ballast/monitor"
)

// TestInspectingAModularCluster: what the commands that only look print of a Modular cluster is what its brokers, its
// metadata store and the formula of the averages say.
func TestInspectingAModularCluster(t *testing.T) {
	c := pool.Get(t, harness.Options{Manager: harness.Modular, Conf: keeperConf()})
	before := conf(t, c)
	ns := c.CreateNamespace(t, 6)
	c.Place(t, ns, c.Brokers()...)
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 120, Exponent: 0.6, MaxShare: 0.4, Seed: 2})
	flow := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})
	flow.AwaitFlow(t)
	i := &inspected{c: c, ns: ns, layout: layout}
	i.averages(t)
	t.Run("bad input", func(t *testing.T) { badLooks(t, c) }) // first: it has the program built, which would take the time of the next
	t.Run("report", i.report)
	t.Run("bundles", i.bundles)
	t.Run("brokers", i.brokers)
	t.Run("migrate plan", i.migration)
	if diff := cmp.Diff(before, conf(t, c)); diff != "" {
		t.Errorf("looking changed the dynamic configuration:\n%s", diff)
	}
	if err := flow.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}

// inspected is a Modular cluster under a load, with averages of it kept on the log.
type inspected struct {
	c      *harness.Cluster
	ns     string
	layout traffic.Layout
	kept   map[string]*samples // by bundle: what was sampled of it
	last   map[string][]string // by broker: the bundles in its report at the last sample
}

// report: what is printed is what the broker answers, but for what changes from one moment to the next.
func (i *inspected) report(t *testing.T) {
	steady := func(document string) (map[string]any, error) {
		var m map[string]any
		if err := json.Unmarshal([]byte(document), &m); err != nil {
			return nil, err
		}
		for _, key := range []string{"cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"} {
			u, ok := m[key].(map[string]any)
			if !ok || u["usage"] == nil {
				return nil, fmt.Errorf("%s is %v", key, m[key])
			}
			delete(u, "usage")
		}
		for _, key := range []string{"lastUpdate", "maxResourceUsage"} {
			if m[key] == nil {
				return nil, fmt.Errorf("%s is missing", key)
			}
			delete(m, key)
		}
		return m, nil
	}
	for _, b := range i.c.Brokers() {
		harness.Eventually(t, time.Minute, "the report of "+b.ID, func(ctx context.Context) error {
			answer := func() (map[string]any, error) {
				said, err := getAt(ctx, b, "/admin/v2/broker-stats/load-report")
				if err != nil {
					return nil, err
				}
				return steady(said)
			}
			var stdout, stderr string
			var code int
			answers, err := during(answer, func() { stdout, stderr, code = run(t, i.c, "report", b.ID) })
			if err != nil {
				return fmt.Errorf("the broker's answer: %w", err)
			}
			got, err := steady(stdout)
			if code != 0 || err != nil {
				return fmt.Errorf("exit code %d, %w: %s %s", code, err, stdout, stderr)
			}
			if !slices.ContainsFunc(answers, func(want map[string]any) bool { return cmp.Equal(want, got) }) {
				return fmt.Errorf("none of %d answers (-broker +ballast):\n%s", len(answers), cmp.Diff(answers[0], got))
			}
			return nil
		})
	}
}

// shownBundles is what `ballast bundles -o json` prints.
type shownBundles struct {
	Bundles []monitor.Bundle
	Notes   []string
}

// bundles: owners by lookup, topics and rates by the reports, the averages by the formula, and near those that the
// brokers' leader keeps in ZooKeeper, which sampled at other moments.
func (i *inspected) bundles(t *testing.T) {
	keeper, err := zookeeper.New(zookeeper.Options{Servers: []string{"zk:" + i.c.ZooKeeper()}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	var shown shownBundles
	harness.Eventually(t, time.Minute, "the rates of the bundles", func(ctx context.Context) error {
		reported, err := during(func() (map[string]event.NamespaceBundleStats, error) { return i.reported(ctx) }, func() {
			shown = shownBundles{}
			if code := into(t, i.c, &shown, "bundles", "--namespace", i.ns); code != 0 || len(shown.Notes) > 0 {
				t.Fatalf("exit code %d, notes %v", code, shown.Notes)
			}
		})
		if err != nil {
			return err
		}
		for _, b := range shown.Bundles {
			if b.Now == nil || b.Topics == nil || !slices.ContainsFunc(reported, func(r map[string]event.NamespaceBundleStats) bool {
				s := r[b.Name]
				return four(&s) == ratesOf(b.Now) && s.Topics == *b.Topics
			}) {
				return fmt.Errorf("%s has %v in the first of %d reports; shown is %v", b.Name, reported[0][b.Name], len(reported), b.Now)
			}
		}
		return nil
	})
	owners, got := i.c.Owners(t, i.ns), map[string]string{}
	for _, b := range shown.Bundles {
		got[b.Name] = b.Owner
		count := int64(0)
		for _, topic := range i.layout {
			if topic.Bundle == b.Name {
				count++
			}
		}
		if b.Namespace != i.ns || *b.Topics < count { // brokers may have one of their own in a namespace
			t.Errorf("%s has at least %d topics, shown are %d", b.Name, count, *b.Topics)
		}
		kept := i.kept[b.Name]
		if b.Short == nil || b.Long == nil || kept == nil {
			t.Errorf("%s has no averages: %+v, sampled %v", b.Name, b, kept)
			continue
		}
		for _, x := range []struct {
			name  string
			shown *monitor.Average
			want  *average
		}{{"short", b.Short, kept.average(shortSamples)}, {"long", b.Long, kept.average(longSamples)}} {
			if err := near(ratesOf(&x.shown.Rates), x.want.rates, 1e-9); err != nil || x.shown.Samples != x.want.Samples {
				t.Errorf("%s, %s term: %v; from %d samples, want %d", b.Name, x.name, err, x.shown.Samples, x.want.Samples)
			}
		}
	}
	if diff := cmp.Diff(owners, got); diff != "" {
		t.Errorf("owners (-by lookup +ballast):\n%s", diff)
	}
	harness.Eventually(t, 3*time.Minute, "the averages in ZooKeeper are near", func(ctx context.Context) error {
		known, err := keeper.BundleData(ctx)
		if err != nil {
			return err
		}
		for _, b := range shown.Bundles {
			at := slices.IndexFunc(known, func(h zookeeper.BundleHistory) bool { return h.Bundle == b.Name })
			if at < 0 {
				return fmt.Errorf("%s is not among the %d that have some", b.Name, len(known))
			}
			d := &known[at].Data.ShortTermData
			if err := near(ratesOf(&b.Short.Rates), [4]float64{d.MsgRateIn, d.MsgRateOut, d.MsgThroughputIn, d.MsgThroughputOut}, 0.25); err != nil {
				return fmt.Errorf("%s: %w", b.Name, err)
			}
		}
		return nil
	})

	// What is asked for is what is shown, in the order that is asked for.
	var sorted shownBundles
	if code := into(t, i.c, &sorted, "bundles", "--broker", i.c.Brokers()[1].ID, "--namespace", i.ns, "--sort", "name", "--limit", "1"); code != 0 || len(sorted.Bundles) != 1 {
		t.Fatalf("exit code %d, %d bundles", code, len(sorted.Bundles))
	}
	var its []string
	for bundle, owner := range owners {
		if owner == i.c.Brokers()[1].ID {
			its = append(its, bundle)
		}
	}
	if slices.Sort(its); sorted.Bundles[0].Name != its[0] {
		t.Errorf("the first bundle of %v is %s", its, sorted.Bundles[0].Name)
	}
}

// reported are the statistics of the bundles in the brokers' reports.
func (i *inspected) reported(ctx context.Context) (map[string]event.NamespaceBundleStats, error) {
	out := map[string]event.NamespaceBundleStats{}
	for _, b := range i.c.Brokers() {
		document, err := getAt(ctx, b, "/admin/v2/broker-stats/load-report")
		if err != nil {
			return nil, err
		}
		r, err := event.DecodeReport([]byte(document))
		if err != nil {
			return nil, err
		}
		stats := r.Stats()
		for k := range stats {
			out[stats[k].Bundle] = stats[k].Stats
		}
	}
	return out, nil
}

// during reads something once before, every half second during and once after something else is done: what that saw is among it.
// Brokers' statistics are new every ten seconds.
func during[T any](read func() (T, error), do func()) (all []T, err error) {
	done, ended := make(chan struct{}), make(chan struct{})
	first, err := read()
	if err != nil {
		return nil, err
	}
	all = append(all, first)
	go func() {
		defer close(ended)
		for last := false; !last; {
			select {
			case <-done:
				last = true
			case <-time.After(500 * time.Millisecond):
			}
			next, failed := read()
			if failed != nil {
				err = failed
				return
			}
			all = append(all, next)
		}
	}()
	func() {
		defer func() { close(done); <-ended }() // also when the test ends in it
		do()
	}()
	return all, err
}

// brokers: who leads, what each carries by its own report, and the sums of its bundles' averages.
func (i *inspected) brokers(t *testing.T) {
	var shown struct {
		Leader  string
		Brokers []monitor.Broker
		Notes   []string
	}
	if code := into(t, i.c, &shown, "brokers"); code != 0 || len(shown.Notes) > 0 {
		t.Fatalf("exit code %d, notes %v", code, shown.Notes)
	}
	leader, err := i.c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if shown.Leader != leader {
		t.Errorf("leader %q, want %q", shown.Leader, leader)
	}
	want, err := i.c.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, b := range shown.Brokers {
		ids = append(ids, b.ID)
		if b.Leads != (b.ID == leader) || b.Version != harness.Version() || b.Manager != "modular" || b.Error != "" || b.Estimated {
			t.Errorf("%+v", b)
		}
		if b.Usage == nil || b.Usage.CPU == nil || b.Usage.Memory == nil || b.Age == nil || *b.Age > time.Minute.Milliseconds() {
			t.Errorf("%s: usage %+v, age %v", b.ID, b.Usage, b.Age)
		}
		rate, count := 0.0, int64(0)
		for bundle, owner := range i.c.Owners(t, i.ns) {
			for _, topic := range i.layout {
				if topic.Bundle == bundle && owner == b.ID {
					rate += topic.Rate
					count++
				}
			}
		}
		if b.Topics == nil || *b.Topics < count || b.Now == nil || float64(b.Now.MsgRateIn) < 0.5*rate {
			t.Errorf("%s carries at least %d topics and about %.1f messages/s: %+v", b.ID, count, rate, b)
		}
		if b.Short == nil || b.Long == nil {
			t.Errorf("%s has no averages", b.ID)
			continue
		}
		var short, long [4]float64
		for _, bundle := range i.last[b.ID] {
			s, l := i.kept[bundle].average(shortSamples), i.kept[bundle].average(longSamples)
			for j := range short {
				short[j] += s.rates[j]
				long[j] += l.rates[j]
			}
		}
		if err := near(ratesOf(&b.Short.Rates), short, 1e-9); err != nil {
			t.Errorf("%s, short term: %v", b.ID, err)
		}
		if err := near(ratesOf(&b.Long.Rates), long, 1e-9); err != nil {
			t.Errorf("%s, long term: %v", b.ID, err)
		}
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("brokers (-registry +ballast):\n%s", diff)
	}
}

// migration: every broker is restarted once, the leader last, and the exit code says whether something is to be done first.
func (i *inspected) migration(t *testing.T) {
	var m manager.Migration
	code := into(t, i.c, &m, "migrate", "plan")
	if len(m.From) != 1 || m.From[0] != manager.Modular || m.To != manager.Extensible || m.Done || len(m.Brokers) != 3 {
		t.Errorf("%+v", m)
	}
	if want := map[bool]int{true: 0, false: 2}[m.Ready]; code != want || m.Ready == manager.Worst(m.Findings, manager.First) {
		t.Errorf("ready %v, exit code %d, findings %+v", m.Ready, code, m.Findings)
	}
	leader, err := i.c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var restarted []string
	for _, step := range m.Steps {
		if id, ok := strings.CutPrefix(step.Title, "Restart "); ok {
			restarted = append(restarted, id)
		}
	}
	if n := len(restarted); n != 3 || restarted[n-1] != leader+", which leads" {
		t.Errorf("restarted are %v, the leader is %s", restarted, leader)
	}
	stdout, stderr, again := run(t, i.c, "migrate", "plan")
	if again != code {
		t.Errorf("as a table: exit code %d, want %d: %s", again, code, stderr)
	}
	for _, b := range i.c.Brokers() {
		if !strings.Contains(stdout, "Restart "+b.ID) {
			t.Errorf("as a table nothing says that %s is restarted:\n%s", b.ID, stdout)
		}
	}

	// What is in the way is found on the cluster, too: a dynamic value would win over broker.conf.
	i.c.SetDynamic(t, "loadBalancerLoadSheddingStrategy", "org.apache.pulsar.broker.loadbalance.impl.OverloadShedder")
	defer func() {
		if err := i.c.Do(context.WithoutCancel(t.Context()), http.MethodDelete, "/admin/v2/brokers/configuration/loadBalancerLoadSheddingStrategy", nil); err != nil {
			t.Error(err)
		}
	}()
	var blocked manager.Migration
	if code := into(t, i.c, &blocked, "migrate", "plan"); code != 2 || blocked.Ready ||
		!slices.ContainsFunc(blocked.Findings, func(f manager.Finding) bool {
			return f.Severity == manager.First && f.Why.Code == manager.DynamicShedder.ID
		}) {
		t.Errorf("with a dynamic shedding strategy: exit code %d, %+v", code, blocked.Findings)
	}
}
