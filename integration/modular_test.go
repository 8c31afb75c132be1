//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/reporter"
	config "github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

// transferring are Ballast's settings for TransferShedder, whatever load manager the cluster runs.
var transferring = append(settings("loadBalancerLoadSheddingStrategy=TransferShedder"), derived...)

// evenModular is a cluster for the tests of this file; they share it.
func evenModular() harness.Options {
	return harness.Options{Manager: harness.Modular, Conf: evenConf()}
}

// TransferShedder on a Modular cluster, without restarting a broker: the load becomes even within six acting cycles, every
// owner is verified, nothing is lost, and the averages of the bundles are left to the next process.
func TestGovernOnModular(t *testing.T) {
	full(t)
	h := hotStartOn(t, 1, evenModular())
	h.quiet(t)
	begun := time.Now()
	p := start(t, h.c, append([]string{"run", "--mode", "govern", "--take-over", "--set", "ballastHttpListenAddress="}, transferring...)...)
	acting, now := h.becomesEven(t, begun, 1.25)
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d after a clean stop", code)
	}
	if acting > 6 {
		t.Errorf("it took %d acting cycles, want at most 6", acting)
	}
	h.figure(t, "max/mean after, Modular", round(now))
	h.figure(t, "acting cycles, Modular", acting)
	h.moves(t, begun, "Modular")
	if _, stderr := p.text(); !strings.Contains(stderr, "DESTINATION_IS_A_HINT") {
		t.Error("no plan said that a destination is a hint")
	}
	kept := map[string]event.BundleData{}
	sub, err := connect(t, h.c).Subscribe(t.Context(), topics.BundleData, topics.SubscribeOptions{From: topics.Earliest, Compacted: true, Existing: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	err = topics.Drain(t.Context(), sub, func(m topics.Message) error {
		d, err := event.Decode[event.BundleData](m.Payload)
		kept[m.Key] = d
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, bundle := range h.c.Bundles(t, h.meter.Namespace) {
		if kept[bundle].ShortTermData.NumSamples < 2 {
			t.Errorf("the averages of %s that were left are %+v", bundle, kept[bundle])
		}
	}
	h.report(t, "Modular")
}

// becomesEven waits until the load is even, and says after how many acting cycles and what max/mean is then.
func (h *hot) becomesEven(t *testing.T, begun time.Time, limit float64) (acting int, now float64) {
	t.Helper()
	harness.Eventually(t, 12*time.Minute, "the load is even", func(context.Context) error {
		byCycle, all := outcomes(decisions(t, h.c, begun))
		if acting = len(byCycle); acting == 0 {
			return errors.New("no cycle has acted yet")
		}
		if now = h.meter.MaxOverMean(t, 5*time.Second); now > limit {
			return fmt.Errorf("max/mean is %.2f after %d acting cycles and %d moves", now, acting, len(all))
		}
		return nil
	})
	return acting, now
}

// moves checks that what was said of every move's end is so, and records how destinations were taken.
func (h *hot) moves(t *testing.T, begun time.Time, name string) {
	t.Helper()
	_, all := outcomes(decisions(t, h.c, begun))
	last, requests, honoured, repeats := map[string]string{}, 0, 0, 0
	for _, o := range all {
		if o.Result == control.Skipped && o.Why == control.NotBegun {
			continue // the stop came before its turn
		}
		requests += o.Attempts
		if _, again := last[o.Decision.Bundle]; again {
			repeats++
		}
		if o.Owner != "" {
			last[o.Decision.Bundle] = o.Owner
		}
		switch {
		case o.Result == control.Done && o.Decision.Destination != "" && o.Owner == o.Decision.Destination:
			honoured++
		case o.Result != control.Done && o.Result != control.Elsewhere:
			t.Errorf("move of %s to %s: %s (%s)", o.Decision.Bundle, o.Decision.Destination, o.Result, o.Why)
		}
	}
	owners := h.c.Owners(t, h.meter.Namespace)
	maps.DeleteFunc(owners, func(bundle, _ string) bool { _, moved := last[bundle]; return !moved })
	if diff := cmp.Diff(owners, last); diff != "" {
		t.Errorf("owners (-by lookup +as verified):\n%s", diff)
	}
	h.figure(t, "moves, "+name, len(all))
	h.figure(t, "unload requests, "+name, requests)
	h.figure(t, "moves that ended at their destination, "+name, honoured)
	h.figure(t, "bundles moved twice, "+name, repeats)
}

// On a Simple cluster the plan says what cannot be promised, and unloading converges all the same: what has left does not
// bounce, and the load becomes much more even.
func TestGovernOnSimple(t *testing.T) {
	full(t)
	h := hotStartOn(t, 1, harness.Options{Manager: harness.Simple, Conf: evenConf()})
	h.quiet(t)
	begun := time.Now()
	// Until the brokers have measured the load that has just begun there is nothing to plan.
	harness.Eventually(t, 4*time.Minute, "a plan that says what cannot be promised", func(context.Context) error {
		stdout, stderr, code := run(t, h.c, append([]string{"plan", "--wait", "2m"}, transferring...)...)
		if code == 0 {
			return errors.New(stdout)
		}
		if code != 2 || !strings.Contains(stdout, "DESTINATION_IGNORED") || !strings.Contains(stdout, "(the cluster chooses)") {
			t.Fatalf("plan ended with %d: %s %s", code, stdout, stderr)
		}
		return nil
	})
	p := start(t, h.c, append([]string{"run", "--mode", "govern", "--take-over", "--set", "ballastHttpListenAddress="}, transferring...)...)
	acting, now := h.becomesEven(t, begun, 1.5)
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d after a clean stop", code)
	}
	h.figure(t, "max/mean after, Simple", round(now))
	h.figure(t, "acting cycles, Simple", acting)
	h.moves(t, begun, "Simple")
	h.report(t, "Simple")
}

// Every kind of cluster can be planned for; what does not go together is one clear error; and who only looks changes nothing.
func TestLookingAtAModularCluster(t *testing.T) {
	c := pool.Get(t, evenModular())
	ns := c.CreateNamespace(t, 8)
	before, owners := conf(t, c), c.Owners(t, ns)
	for _, args := range [][]string{nil, settings("loadManagerClassName=extensible"), settings("loadBalancerLoadSheddingStrategy=OverloadShedder")} {
		cy, code := planned(t, c, append([]string{"--wait", "2m"}, args...)...)
		if code != 0 && code != 2 || len(cy.Frozen) > 0 || len(cy.Missing) > 0 {
			t.Errorf("plan %v ended with %d: %+v", args, code, cy)
		}
	}
	_, stderr, code := run(t, c, append([]string{"plan"}, settings("loadManagerClassName=modular", "loadBalancerLoadSheddingStrategy=TransferShedder")...)...)
	if code != 1 || strings.Count(stderr, "error: ") != 1 || !strings.Contains(stderr, "works with the extensible load manager, not with modular") {
		t.Errorf("a pair that does not fit ended with %d: %s", code, stderr)
	}
	p := start(t, c, "run", "--mode", "observe", "--set", "ballastCycleInterval=2s", "--set", "ballastHttpListenAddress=")
	p.says(t, "msg=cycle", 3*time.Minute)
	if code := p.stop(t); code != 0 {
		t.Errorf("observe: exit code %d after a clean stop", code)
	}
	if diff := cmp.Diff(before, conf(t, c)); diff != "" {
		t.Errorf("dynamic configuration:\n%s", diff)
	}
	if diff := cmp.Diff(owners, c.Owners(t, ns)); diff != "" {
		t.Errorf("owners:\n%s", diff)
	}
}

// A process that starts goes on with the averages that another one left on a real cluster: with the same reports its next
// plan is the same.
func TestRestartOnModular(t *testing.T) {
	c := pool.Get(t, evenModular())
	ns := c.CreateNamespace(t, 8)
	c.Place(t, ns, c.Brokers()[0])
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 100, Exponent: 0.6, MaxShare: 0.4, Seed: 1})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Size: 2000})
	load.AwaitFlow(t)
	quiet := slog.New(slog.DiscardHandler)
	rest, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rest.Close() })
	log := connect(t, c)
	running, err := rest.RuntimeConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	layered, err := config.Resolve("4.2.4", config.ClusterLayer(c.AdminURL(), running))
	if err != nil {
		t.Fatal(err)
	}
	set := layered.Settings
	set.LoadBalancerBundleUnloadMinThroughputThreshold, set.LoadBalancerSheddingEnabled = 0, true
	set.LoadBalancerBrokerThresholdShedderPercentage = 1
	for _, topic := range []string{topics.LocalBrokerData, topics.BundleData, topics.BrokerAverages} {
		if err := rest.CreateTopic(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	follow := func(keep bool) *control.ReportViews {
		t.Helper()
		history := control.NewHistory(control.HistoryOptions{Log: log, Keep: keep, Interval: time.Hour, Logger: quiet})
		v := control.NewReportViews(control.ReportOptions{Cluster: rest, Log: log, History: history, Settings: set, Version: "4.2.4",
			Class: running["loadManagerClassName"], Stale: 5 * time.Minute, Logger: quiet})
		if err := v.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- v.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("following ended: %v", err)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
		})
		return v
	}
	r := reporter.New(reporter.Options{Cluster: rest, Log: log, Settings: set, Version: "4.2.4", Clock: control.SystemClock{}, Logger: quiet})
	t.Cleanup(func() { r.Close(context.Background()) })
	looks := func(views ...*control.ReportViews) (out []*control.Look) {
		t.Helper()
		if _, err := r.Poll(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second) // the reports arrive
		now := time.Now()
		for _, v := range views {
			l, err := v.Look(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, l)
		}
		return out
	}
	staying := follow(true)
	harness.Eventually(t, 3*time.Minute, "the brokers' statistics show the load", func(context.Context) error {
		snap := looks(staying)[0].Snapshot
		// Rates and usage are measured by different tasks of a broker, a minute apart.
		if i := snap.LoadIndex(c.Brokers()[0].ID); i < 0 || snap.Load[i].Data.MsgThroughputIn < 50_000 || snap.Load[i].Data.WeightedMaxEMA < 0.03 {
			return errors.New("not yet")
		}
		return nil
	})
	for range 5 {
		looks(staying)
	}
	if err := staying.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh := follow(false)
	harness.Eventually(t, time.Minute, "the kept averages are read", func(ctx context.Context) error {
		l, err := fresh.Look(ctx, time.Now())
		if err != nil {
			return err
		}
		for _, why := range l.Frozen {
			if why.Code == control.NotCaught.ID {
				return errors.New(why.Text)
			}
		}
		return nil
	})
	both := looks(staying, fresh)
	var plans []plan.Plan
	var data []map[string]event.BundleData
	for _, l := range both {
		if len(l.Frozen) > 0 {
			t.Fatal(l.Frozen)
		}
		m, err := modular.New(modular.ThresholdShedder{}, modular.LeastLongTermMessageRate{}, modular.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, _ := m.Shed(l.Snapshot, m.NewState(), simulate.NewRand(1, 1), nil)
		plans = append(plans, p)
		known := map[string]event.BundleData{}
		for _, b := range l.Snapshot.Bundles {
			if b.Data != nil && b.Namespace == ns {
				known[b.Name] = *b.Data
			}
		}
		data = append(data, known)
	}
	if len(plans[0].Decisions) == 0 || len(data[0]) != 8 {
		t.Errorf("nothing was decided: %s; averages of %d bundles", plans[0].Outcome, len(data[0]))
	}
	if diff := cmp.Diff(plans[0], plans[1]); diff != "" {
		t.Errorf("the next plan (-without +with a restart):\n%s", diff)
	}
	if diff := cmp.Diff(data[0], data[1]); diff != "" {
		t.Errorf("averages (-without +with a restart):\n%s", diff)
	}
	for name, d := range data[1] {
		if d.ShortTermData.NumSamples < 6 {
			t.Errorf("%s has %d samples", name, d.ShortTermData.NumSamples)
		}
	}

	// What is gone gets a tombstone.
	if err := load.Stop(t).Err(); err != nil {
		t.Error(err)
	}
	if err := c.Do(t.Context(), http.MethodDelete, "/admin/v2/namespaces/"+ns+"?force=true", nil); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 5*time.Minute, "the averages of a deleted namespace are gone", func(ctx context.Context) error {
		looks(staying)
		if err := staying.Leave(ctx); err != nil {
			return err
		}
		l, err := fresh.Look(ctx, time.Now())
		if err != nil {
			return err
		}
		for _, b := range l.Snapshot.Bundles {
			if b.Namespace == ns && b.Data != nil {
				return fmt.Errorf("%s still has averages", b.Name)
			}
		}
		sub, err := log.Subscribe(ctx, topics.BundleData, topics.SubscribeOptions{From: topics.Earliest, Compacted: true, Existing: true})
		if err != nil {
			return err
		}
		defer sub.Close()
		left := map[string]bool{}
		if err := topics.Drain(ctx, sub, func(m topics.Message) error { left[m.Key] = !m.Tombstone(); return nil }); err != nil {
			return err
		}
		for bundle, there := range left {
			if there && strings.HasPrefix(bundle, ns+"/") {
				return fmt.Errorf("%s is still on the topic", bundle)
			}
		}
		return nil
	})
}
