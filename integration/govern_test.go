//go:build integration

package integration

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/topics"
)

const (
	evenRate = 400.0 // messages per second
	evenSize = 6000  // bytes: bundles must differ by 100 kB/s for Pulsar's order to tell them apart
	evenHot  = 0.8   // what the broker with all bundles reads, by its network interface
)

// evenConf is the brokers' configuration of the balance tests: bandwidth alone counts, without history, on an interface so slow
// that the broker with all bundles reads hot.
func evenConf() map[string]string {
	bits := evenRate * evenSize * 2 * 8 // in, and to the bookie; out is the same again, to consumers, in the other direction
	return map[string]string{
		"loadBalancerCPUResourceWeight":                    "0",
		"loadBalancerMemoryResourceWeight":                 "0",
		"loadBalancerDirectMemoryResourceWeight":           "0",
		"loadBalancerHistoryResourcePercentage":            "0",
		"loadBalancerOverrideBrokerNicSpeedGbps":           fmt.Sprintf("%.4f", bits/evenHot/1e9),
		"loadBalancerBrokerLoadTargetStd":                  "0.05",
		"loadBalancerSheddingConditionHitCountThreshold":   "0",
		"loadBalanceSheddingDelayInSeconds":                "70",
		"loadBalancerMaxNumberOfBundlesInBundleLoadReport": "6",
		"loadBalancerReportUpdateMaxIntervalMinutes":       "1",
		"loadBalancerAutoBundleSplitEnabled":               "false",
	}
}

// derived are Ballast's settings for load derived from the log: the latest usage alone, bandwidth alone.
var derived = settings("ballastLoadSource=derived", "ballastLoadHalfLife=0s", "ballastCPUWeight=0", "ballastCycleInterval=10s",
	"ballastNewBrokerTime=0s",     // a broker that an earlier test restarted takes load at once
	"ballastMaxPublishLatency=0s") // clients of a busy test machine wait for its disks, not for moves

// TransferShedder on derived load makes a cluster even whose bundles are all on one broker, and nothing is lost meanwhile.
// At full length the same runs on published load, and those of Pulsar's own balancer with Ballast watching, are recorded
// beside it: what they reach is a figure, not a requirement.
func TestGovernMakesAHotClusterEven(t *testing.T) {
	seeds := []uint64{1}
	if harness.Full() {
		seeds = []uint64{1, 2, 3, 4, 5}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("layout %d", seed), func(t *testing.T) {
			hot := hotStart(t, seed)
			hot.quiet(t)
			hot.govern(t, derived, "derived", true)
		})
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("layout %d on published load", seed), func(t *testing.T) {
			full(t)
			hot := hotStart(t, seed)
			hot.quiet(t)
			hot.govern(t, settings("ballastLoadSource=published", "ballastCycleInterval=10s", "ballastNewBrokerTime=0s"), "published", false)
		})
	}
	t.Run("Pulsar's own balancer", func(t *testing.T) {
		full(t)
		hotStart(t, 1).observe(t)
	})
}

func full(t *testing.T) {
	t.Helper()
	if !harness.Full() {
		t.Skip("minutes long: at full length (make verify)")
	}
}

// hot is a cluster under load whose bundles are all on one broker.
type hot struct {
	c     *harness.Cluster
	seed  uint64
	load  *traffic.Run
	meter traffic.Meter
}

func hotStart(t *testing.T, seed uint64) *hot {
	t.Helper()
	return hotStartOn(t, seed, harness.Options{Conf: evenConf()})
}

func hotStartOn(t *testing.T, seed uint64, options harness.Options) *hot {
	t.Helper()
	c := pool.Get(t, options)
	c.SetDynamic(t, "loadBalancerSheddingEnabled", "false") // while the load comes up
	ns := c.CreateNamespace(t, 32)
	if options.Manager == harness.Simple {
		onlyOne(t, c, ns)
	} else {
		c.Place(t, ns, c.Brokers()[0])
	}
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: evenRate, Exponent: 0.6, MaxShare: 0.12, Seed: seed})
	h := &hot{c: c, seed: seed, load: traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Size: evenSize}),
		meter: traffic.Meter{Namespace: ns, URLs: urls(c.Brokers())}}
	h.load.AwaitFlow(t)
	h.figure(t, "max/mean before", round(h.meter.MaxOverMean(t, 5*time.Second)))
	return h
}

// onlyOne brings the bundles of a namespace to the first broker where no destination is taken: while it is alone.
func onlyOne(t *testing.T, c *harness.Cluster, ns string) {
	t.Helper()
	for _, b := range c.Brokers()[1:] {
		b.Stop(t)
		b.AwaitGone(t)
	}
	for bundle, owner := range c.Owners(t, ns) {
		if owner != c.Brokers()[0].ID {
			t.Fatalf("%s is on %s, which is alone", bundle, owner)
		}
	}
	for _, b := range c.Brokers()[1:] {
		b.Start(t)
	}
}

func (h *hot) figure(t *testing.T, name string, value any) {
	t.Helper()
	harness.Figure(t, fmt.Sprintf("%s, layout %d", name, h.seed), value)
}

// quiet checks that the built-in shedder is off, so that every move is Ballast's.
func (h *hot) quiet(t *testing.T) {
	t.Helper()
	if conf(t, h.c)["loadBalancerSheddingEnabled"] != "false" {
		t.Fatal("the built-in shedder is on")
	}
}

// govern lets Ballast make the cluster even. What must be reached is an error when it is not.
func (h *hot) govern(t *testing.T, load []string, name string, must bool) {
	t.Helper()
	begun := time.Now()
	p := start(t, h.c, append([]string{"run", "--mode", "govern", "--take-over", "--set", "ballastHttpListenAddress="}, load...)...)
	var acting, moves int
	var now float64
	even := func() error {
		byCycle, all := outcomes(decisions(t, h.c, begun))
		if acting, moves = len(byCycle), len(all); acting == 0 {
			return fmt.Errorf("no cycle has acted yet")
		}
		if now = h.meter.MaxOverMean(t, 5*time.Second); now > 1.25 {
			return fmt.Errorf("max/mean is %.2f after %d acting cycles and %d moves", now, acting, moves)
		}
		return nil
	}
	if must {
		harness.Eventually(t, 15*time.Minute, "the load is even", func(context.Context) error { return even() })
	} else {
		for err := even(); err != nil && time.Since(begun) < 8*time.Minute; err = even() {
			t.Log(err)
		}
	}
	took := time.Since(begun)
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d after a clean stop", code)
	}
	_, all := outcomes(decisions(t, h.c, begun))
	seen, repeats := map[string]bool{}, 0
	for _, o := range all {
		if o.Result == control.Skipped && o.Why == control.NotBegun {
			moves-- // the stop came before its turn
			continue
		}
		if o.Result != control.Done {
			t.Errorf("move of %s to %s: %s (%s)", o.Decision.Bundle, o.Decision.Destination, o.Result, o.Why)
		}
		if seen[o.Decision.Bundle] {
			repeats++
		}
		seen[o.Decision.Bundle] = true
	}
	if must && (acting > 4 || repeats > 0) {
		t.Errorf("it took %d acting cycles, and %d bundles moved twice: want at most 4, and none", acting, repeats)
	}
	h.figure(t, "max/mean after, "+name+" load", round(now))
	h.figure(t, "acting cycles, "+name+" load", acting)
	h.figure(t, "moves, "+name+" load", moves)
	h.figure(t, "bundles moved twice, "+name+" load", repeats)
	h.figure(t, "seconds until even or given up, "+name+" load", int(took.Seconds()))
	h.report(t, name+" load")
}

// report ends the load: nothing may be lost.
func (h *hot) report(t *testing.T, name string) {
	t.Helper()
	report := h.load.Stop(t)
	t.Log(report)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	sum := report.Sum()
	h.figure(t, "messages, "+name, sum.Sent)
	h.figure(t, "duplicates, "+name, sum.Duplicates)
	h.figure(t, "longest stall of a consumer, ms, "+name, sum.Stall.Milliseconds())
}

var agreed = regexp.MustCompile(`msg=agreement percent=([0-9.]+) moves=([0-9]+)`)

// observe switches the built-in shedder on, watches what it does, and compares: each of its moves is explained.
func (h *hot) observe(t *testing.T) {
	t.Helper()
	p := start(t, h.c, "run", "--mode", "observe", "--set", "ballastHttpListenAddress=")
	p.says(t, "msg=cycle", 3*time.Minute)
	h.c.SetDynamic(t, "loadBalancerSheddingEnabled", "true")
	begun, now := time.Now(), 0.0
	for time.Since(begun) < 8*time.Minute {
		if now = h.meter.MaxOverMean(t, 10*time.Second); now <= 1.25 {
			break
		}
	}
	p.says(t, "msg=agreement", 2*time.Minute)
	h.figure(t, "max/mean after, Pulsar's own balancer", round(now))
	h.figure(t, "seconds until even or given up, Pulsar's own balancer", int(time.Since(begun).Seconds()))
	p.stop(t)
	_, stderr := p.text()
	all := agreed.FindAllStringSubmatch(stderr, -1)
	last := all[len(all)-1]
	h.figure(t, "agreement of Pulsar's own moves with the plan on the same data, percent", last[1])
	h.figure(t, "moves of Pulsar's own balancer", last[2])
	if moves := strings.Count(stderr, `msg="the cluster moved"`); fmt.Sprint(moves) != last[2] {
		t.Errorf("%s moves were seen and %d explained", last[2], moves)
	}
	h.report(t, "Pulsar's own balancer")
}

func round(x float64) string { return fmt.Sprintf("%.2f", x) }

// Neither observe nor advise touches the ownership topic or the configuration.
func TestAdviseAndObserveChangeNothing(t *testing.T) {
	c := shared(t)
	ns := c.CreateNamespace(t, 8)
	c.Place(t, ns, c.Brokers()[0])
	before, owners := conf(t, c), c.Owners(t, ns)
	heard := listen(t, c)
	records := func() (n int) { // of the bundles of this test; brokers write about others when somebody reads a topic there
		for _, e := range heard.all() {
			if e.topic == topics.ServiceUnitState && event.NamespaceOf(e.key) == ns {
				n++
			}
		}
		return n
	}
	harness.Eventually(t, time.Minute, "the records of the placement", func(context.Context) error {
		if n := records(); n < len(owners) {
			return fmt.Errorf("%d of %d were heard", n, len(owners))
		}
		return nil
	})
	written := records()
	for _, mode := range []control.Mode{control.Observe, control.Advise} {
		p := start(t, c, "run", "--mode", string(mode), "--set", "ballastCycleInterval=2s", "--set", "ballastHttpListenAddress=")
		p.says(t, "msg=cycle", 3*time.Minute)
		if code := p.stop(t); code != 0 {
			t.Errorf("%s: exit code %d after a clean stop", mode, code)
		}
	}
	if diff := cmp.Diff(before, conf(t, c)); diff != "" {
		t.Errorf("dynamic configuration:\n%s", diff)
	}
	if diff := cmp.Diff(owners, c.Owners(t, ns)); diff != "" {
		t.Errorf("owners:\n%s", diff)
	}
	if now := records(); now != written {
		t.Errorf("%d records about the bundles in the ownership topic, %d before", now, written)
	}
}

func conf(t *testing.T, c *harness.Cluster) map[string]string {
	t.Helper()
	values, err := c.DynamicConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// Of two programs that govern one acts, and the other goes on where the first one was killed.
func TestOnlyOneActs(t *testing.T) {
	c := shared(t)
	args := []string{"run", "--mode", "govern", "--take-over", "--set", "ballastCycleInterval=2s", "--set", "ballastHttpListenAddress="}
	first := start(t, c, args...)
	first.says(t, "took over", time.Minute)
	second := start(t, c, args...)
	second.says(t, "standing by", time.Minute)
	if _, stderr := second.text(); strings.Contains(stderr, "took over") {
		t.Error("both took over")
	}
	if _, stderr, code := run(t, c, "release"); code != 1 || !strings.Contains(stderr, "a Ballast process acts") {
		t.Errorf("release beside a program that acts ended with %d: %s", code, stderr)
	}
	if err := first.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second.says(t, "took over", time.Minute)
	if code := second.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if now := conf(t, c); len(now) != 0 {
		t.Errorf("afterwards the configuration is %v", now)
	}
}
