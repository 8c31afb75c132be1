//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/plan"
)

// Many bundles at once with running producers and consumers: all arrive, nothing is lost. The same over admin REST is
// measured beside it.
func TestChannelTransfers(t *testing.T) {
	n := 40
	if harness.Full() {
		n = 200
	}
	c := shared(t)
	c.SetDynamic(t, "loadBalancerSheddingEnabled", "false")
	r := newChannelRig(t, c, nil)
	brokers := c.Brokers()
	decisions := func(bundles []string) (ds []plan.Decision) {
		for i, bundle := range bundles {
			ds = append(ds, plan.Decision{Action: plan.Transfer, Bundle: bundle, Source: brokers[0].ID, Destination: brokers[1+i%2].ID})
		}
		return ds
	}
	check := func(ds []plan.Decision, load *traffic.Run, took time.Duration, via string) {
		t.Helper()
		r.arrived(t, ds)
		report := load.Stop(t)
		t.Log(via, report)
		if err := report.Err(); err != nil {
			t.Errorf("%s: %v", via, err)
		}
		sum := report.Sum()
		harness.Figure(t, "bundles transferred, "+via, n)
		harness.Figure(t, "wall time, ms, "+via, took.Milliseconds())
		harness.Figure(t, "longest stall of a consumer, ms, "+via, sum.Stall.Milliseconds())
		harness.Figure(t, "slowest acknowledgement of a producer, ms, "+via, sum.SlowestAck.Milliseconds())
		harness.Figure(t, "messages, "+via, sum.Sent)
		harness.Figure(t, "messages lost, "+via, len(sum.Missing))
	}

	// The brokers have moved bundles before any time is taken: the first ones are slow whoever asks for them.
	bundles, load := r.loaded(t, 12)
	r.carry(t, decisions(bundles), 12)
	if err := load.Stop(t).Err(); err != nil {
		t.Error(err)
	}

	for _, atOnce := range slices.Compact([]int{4, min(50, n), n}) { // what govern does by default, more, and all of them
		bundles, load := r.loaded(t, n)
		ds, via := decisions(bundles), fmt.Sprintf("ownership topic, %d at once", atOnce)
		begun := time.Now()
		slowest := r.carry(t, ds, atOnce)
		took := time.Since(begun)
		harness.Figure(t, "slowest transfer of a bundle, ms, "+via, slowest.Milliseconds())
		check(ds, load, took, via)
	}

	bundles, load = r.loaded(t, n)
	ds, slowest := decisions(bundles), time.Duration(0)
	x := control.NewExecutor(control.Locked(r.admin, r.lock), r.views, control.SystemClock{},
		control.ExecLimits{Request: time.Minute, Verify: time.Minute, Poll: 20 * time.Millisecond})
	begun := time.Now()
	for _, d := range ds {
		o := x.Run(t.Context(), d)
		slowest = max(slowest, time.Duration(o.Millis)*time.Millisecond)
		if o.Result != control.Done {
			t.Errorf("over admin REST %s: %s (%s)", d.Bundle, o.Result, o.Why)
		}
	}
	took := time.Since(begun)
	harness.Figure(t, "slowest transfer of a bundle, ms, admin REST", slowest.Milliseconds())
	check(ds, load, took, "admin REST")
}

// place gives all 64 bundles of a namespace their brokers before anybody has looked one up.
func TestPlaceBeforeTheFirstMessage(t *testing.T) {
	c := shared(t)
	c.SetDynamic(t, "loadBalancerSheddingEnabled", "false")
	ns := c.CreateNamespace(t, 64)
	holds := func() map[string]string {
		adm, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}})
		if err != nil {
			t.Fatal(err)
		}
		defer adm.Close()
		owners := map[string]string{}
		harness.Eventually(t, time.Minute, "no bundle has two owners", func(ctx context.Context) (err error) {
			owners, err = (&channelRig{c: c, admin: adm}).holds(ctx, ns)
			return err
		})
		return owners
	}
	if stdout, stderr, code := run(t, c, "place", ns); code != 2 || !strings.Contains(stdout, " of 64 bundles are unowned") {
		t.Fatalf("the plan ended with %d: %s %s", code, stdout, stderr)
	}
	// A broker that reads the policies of the new namespace assigns the bundle of their topic by itself.
	if now := holds(); len(now) > 1 {
		t.Fatalf("planning placed %d bundles", len(now))
	}
	begun := time.Now()
	stdout, stderr, code := run(t, c, "place", ns, "--execute", "-o", "json")
	took := time.Since(begun)
	var cy struct {
		Outcomes []struct{ Result, Owner string }
	}
	if err := json.Unmarshal([]byte(stdout), &cy); code != 0 || err != nil || len(cy.Outcomes) < 60 {
		t.Fatalf("it ended with %d and %d outcomes, %v: %s %s", code, len(cy.Outcomes), err, stdout, stderr)
	}
	before := holds()
	counts := map[string]int{}
	for _, id := range before {
		counts[id]++
	}
	least, most := 64, 0
	for _, b := range c.Brokers() {
		least, most = min(least, counts[b.ID]), max(most, counts[b.ID])
	}
	if len(before) != 64 || most-least > 1 {
		t.Errorf("%d bundles are placed, from %d to %d on a broker", len(before), least, most)
	}
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), TopicsPerBundle: 1, Rate: 64})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})
	load.AwaitFlow(t)
	if err := load.Stop(t).Err(); err != nil {
		t.Error(err)
	}
	for bundle, id := range holds() {
		if before[bundle] != id {
			t.Errorf("%s was placed on %s and is on %s", bundle, before[bundle], id)
		}
	}
	harness.Figure(t, "bundles placed before the first message", len(before))
	harness.Figure(t, "fewest and most bundles on a broker", fmt.Sprintf("%d and %d", least, most))
	harness.Figure(t, "wall time of ballast place, ms", took.Milliseconds())
	if _, stderr, code := run(t, c, "place", ns); code != 0 {
		t.Errorf("placing again ended with %d: %s", code, stderr)
	}
	if _, stderr, code := run(t, c, "place", "pulsar/system", "--execute"); code != 1 || !strings.Contains(stderr, "system namespace") {
		t.Errorf("placing pulsar/system ended with %d: %s", code, stderr)
	}
}

// older is a cluster one of whose brokers reports a version that was never tested.
type older struct{ control.Cluster }

func (o older) Brokers(ctx context.Context) ([]cluster.Broker, error) {
	brokers, err := o.Cluster.Brokers(ctx)
	if len(brokers) > 0 {
		brokers[len(brokers)-1].Version = "4.1.0"
	}
	return brokers, err
}

// What must not be written is not: the topic has no new record, and the refusal names its rail.
func TestChannelRefusesOnACluster(t *testing.T) {
	c := shared(t)
	c.SetDynamic(t, "loadBalancerSheddingEnabled", "false")
	ns := c.CreateNamespace(t, 4)
	brokers := c.Brokers()
	c.Place(t, ns, brokers[0])
	bundle := c.Bundles(t, ns)[0]
	r := newChannelRig(t, c, nil)
	system := ""
	for name := range r.views.Ownership().All() {
		if event.IsSystem(name) {
			system = name
		}
	}
	move := func(bundle, from, to string) plan.Decision {
		return plan.Decision{Action: plan.Transfer, Bundle: bundle, Source: from, Destination: to}
	}
	refused := func(r *channelRig, d plan.Decision, code string) {
		t.Helper()
		var before int64 = -1
		if record, ok := r.views.Ownership().Get(d.Bundle); ok {
			before = record.Data.VersionID
		}
		if o := r.channel.Run(t.Context(), d); o.Result != control.Skipped || !strings.Contains(o.Why, code) {
			t.Errorf("%s to %s: %s (%s), want %s", d.Bundle, d.Destination, o.Result, o.Why, code)
		}
		if record, ok := r.views.Ownership().Get(d.Bundle); ok && record.Data.VersionID != before {
			t.Errorf("%s is at version %d, before %d", d.Bundle, record.Data.VersionID, before)
		}
	}
	refused(r, move(bundle, brokers[0].ID, "10.255.255.1:8080"), "CHANNEL_DESTINATION_NOT_REGISTERED")
	refused(r, move(bundle, brokers[1].ID, brokers[2].ID), "CHANNEL_OTHER_OWNER")
	refused(r, move(system, brokers[0].ID, brokers[1].ID), "CHANNEL_NOT_MANAGED")
	old := newChannelRigBeside(t, r, older{r.admin})
	refused(old, move(bundle, brokers[0].ID, brokers[1].ID), "CHANNEL_VERSION_UNTESTED")
	t.Run("syncer", func(t *testing.T) {
		syncing := newChannelRigBeside(t, r, syncer{r.admin})
		refused(syncing, move(bundle, brokers[0].ID, brokers[1].ID), "CHANNEL_SYNCER_ACTIVE")
	})
	if owners, err := r.holds(t.Context(), ns); err != nil || owners[bundle] != brokers[0].ID {
		t.Errorf("it is on %q, not where it was, %v", owners[bundle], err)
	}
	// The same bundle may be moved where nothing speaks against it.
	r.carry(t, []plan.Decision{move(bundle, brokers[0].ID, brokers[1].ID)}, 1)
}

// syncer is a cluster whose configuration says that records are copied between the stores. Switching it on for real would copy
// the records of a cluster that other tests share.
type syncer struct{ control.Cluster }

func (s syncer) RuntimeConfig(ctx context.Context) (map[string]string, error) {
	config, err := s.Cluster.RuntimeConfig(ctx)
	if err == nil {
		config["loadBalancerServiceUnitTableViewSyncer"] = "SystemTopicToMetadataStoreSyncer"
	}
	return config, err
}

// newChannelRigBeside is a channel that sees another cluster than the rig's, on the same views and under the same lock.
func newChannelRigBeside(t *testing.T, r *channelRig, c control.Cluster) *channelRig {
	t.Helper()
	out := *r
	out.channel = control.NewChannel(control.ChannelOptions{Cluster: c, Topic: r.views, Log: r.log, Lock: r.lock, Clock: control.SystemClock{},
		Logger: slog.New(slog.DiscardHandler), Limits: control.ChannelLimits{Concurrent: 1, Seen: 10 * time.Second, Verify: time.Minute, Poll: 10 * time.Millisecond}})
	t.Cleanup(func() { out.channel.Close() })
	return &out
}

// A whole run governs through the ownership topic.
func TestGovernViaChannel(t *testing.T) {
	hot := hotStart(t, 7)
	begun := time.Now()
	p := start(t, hot.c, append([]string{"run", "--mode", "govern", "--take-over", "--via", "channel", "--set", "ballastHttpListenAddress="}, derived...)...)
	harness.Eventually(t, 8*time.Minute, "bundles moved", func(context.Context) error {
		if _, all := outcomes(decisions(t, hot.c, begun)); len(all) < 3 {
			return fmt.Errorf("%d outcomes", len(all))
		}
		return nil
	})
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d after a clean stop", code)
	}
	_, all := outcomes(decisions(t, hot.c, begun))
	moves := 0
	for _, o := range all {
		switch {
		case o.Result == control.Done:
			moves++
		case o.Result == control.Skipped && o.Why == control.NotBegun: // the stop came before its turn
		default:
			t.Errorf("%s to %s: %s (%s)", o.Decision.Bundle, o.Decision.Destination, o.Result, o.Why)
		}
	}
	if moves == 0 {
		t.Error("no bundle moved")
	}
	hot.figure(t, "moves through the ownership topic", moves)
	hot.report(t, "ownership topic")
}
