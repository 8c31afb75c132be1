//go:build integration

package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
)

// shippedStrategy is what Pulsar ships for TransferShedder.
var shippedStrategy = settings("loadBalancerBrokerLoadTargetStd=0.25", "loadBalancerSheddingConditionHitCountThreshold=3", "loadBalanceSheddingDelayInSeconds=180")

// With the settings that Pulsar ships a cluster is left alone of which one broker carries three times as much as each other,
// and `plan` says why.
func TestShippedSettingsStopEarly(t *testing.T) {
	const rate, size, hot = 400, 6000, 0.5 // the load that the broker with three fifths of the traffic shows
	c := shared(t)
	ns := c.CreateNamespace(t, 5)
	brokers := c.Brokers()
	c.Place(t, ns, brokers[0], brokers[1], brokers[0], brokers[2], brokers[0])
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: rate, Seed: 1})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Size: size})
	load.AwaitFlow(t)

	c.SetDynamic(t, reportThreshold, "0")
	time.Sleep(15 * time.Second) // the brokers' figures are averages since their report before

	// Out of a broker goes what came in, twice: to the bookie and to the consumer.
	limit := rate * size * 8 / 1000.0 * 3 / 5 * 2 / hot // kbit/s
	capacities := filepath.Join(t.TempDir(), "capacities.json")
	if err := os.WriteFile(capacities, fmt.Appendf(nil, `{"*": {"bandwidthIn": %.0f, "bandwidthOut": %.0f}}`, limit, limit), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append(settings("ballastLoadSource=derived", "ballastLoadHalfLife=0s", "ballastCPUWeight=0", "ballastMemoryWeight=0",
		"ballastDirectMemoryWeight=0", "ballastCapacityOverridesFile="+capacities), "--wait", "150s")
	var cy cycle
	var code int
	harness.Eventually(t, 5*time.Minute, "the brokers' figures are those of this load", func(context.Context) error {
		if cy, code = planned(t, c, append(args, shippedStrategy...)...); cy.Plan.Outcome.Code != "BALANCED" {
			return fmt.Errorf("plan says %s: %s", cy.Plan.Outcome.Code, cy.Plan.Outcome.Text)
		}
		return nil
	})
	uneven := traffic.Meter{Namespace: ns, URLs: urls(brokers)}.MaxOverMean(t, 5*time.Second)
	t.Logf("max/mean is %.2f and plan says %s: %s", uneven, cy.Plan.Outcome.Code, cy.Plan.Outcome.Text)
	if uneven < 1.5 {
		t.Errorf("max/mean of throughput is %.2f: the test should have made it 1.8", uneven)
	}
	if code != 0 || len(cy.Plan.Decisions) > 0 {
		t.Errorf("exit code %d, frozen %v, %d decisions, outcome %v: want none, since the cluster counts as balanced", code, cy.Frozen, len(cy.Plan.Decisions), cy.Plan.Outcome)
	}
	if !strings.Contains(cy.Plan.Outcome.Text, "<= target 0.25") {
		t.Errorf("it does not say what it is compared with: %s", cy.Plan.Outcome.Text)
	}
	harness.Figure(t, "max/mean that the shipped settings leave alone", round(uneven))
	if err := load.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}

// Governing with them, from one broker with everything: it moves once or twice and then stops short of even.
func TestShippedSettingsNeverGetEven(t *testing.T) {
	if !harness.Full() {
		t.Skip("waits out the shipped delay and hit count: only at full length (make verify)")
	}
	c := pool.Get(t, harness.Options{Conf: evenConf()})
	ns := c.CreateNamespace(t, 32)
	c.Place(t, ns, c.Brokers()[0])
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: evenRate, Exponent: 0.6, MaxShare: 0.12, Seed: 1})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Size: evenSize})
	load.AwaitFlow(t)
	begun := time.Now()
	args := append([]string{"run", "--mode", "govern", "--take-over", "--set", "ballastHttpListenAddress="}, derived...)
	p := start(t, c, append(args, shippedStrategy...)...)
	harness.Eventually(t, 15*time.Minute, "it says that the cluster is balanced", func(context.Context) error {
		_, stderr := p.text()
		if n := strings.Count(stderr, "<= target 0.25"); n < 3 {
			return fmt.Errorf("said %d times, want 3", n)
		}
		return nil
	})
	byCycle, all := outcomes(decisions(t, c, begun))
	harness.Figure(t, "acting cycles with the shipped settings", len(byCycle))
	harness.Figure(t, "moves with the shipped settings", len(all))
	harness.Figure(t, "max/mean where the shipped settings stop", round(traffic.Meter{Namespace: ns, URLs: urls(c.Brokers())}.MaxOverMean(t, 30*time.Second)))
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if err := load.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}
