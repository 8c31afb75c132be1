//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/diagnose"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
)

// everywhere are the arguments with which a program reaches all brokers, so that any of them may die.
func everywhere(c *harness.Cluster) []string {
	var hosts []string
	for _, b := range c.Brokers() {
		hosts = append(hosts, b.ID)
	}
	return []string{"--admin-service-url", "http://" + strings.Join(hosts, ","), "--service-url", c.ServiceURL()}
}

// footprint is what a program takes.
type footprint struct{ goroutines, heap, resident float64 }

func (p *program) footprint(ctx context.Context, address string) (f footprint, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return f, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return f, err
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		return f, err
	}
	for name, to := range map[string]*float64{"go_goroutines": &f.goroutines, "go_memstats_heap_inuse_bytes": &f.heap, "process_resident_memory_bytes": &f.resident} {
		family := families[name]
		if family == nil {
			return f, fmt.Errorf("%s is not published", name)
		}
		*to = family.GetMetric()[0].GetGauge().GetValue()
	}
	return f, nil
}

// settled is the smallest footprint over a while: what is there between two cycles and two collections of garbage.
func (p *program) settled(t *testing.T, address string, over time.Duration) footprint {
	t.Helper()
	var least footprint
	for end := time.Now().Add(over); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		f, err := p.footprint(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if least == (footprint{}) {
			least = f
		}
		least = footprint{min(least.goroutines, f.goroutines), min(least.heap, f.heap), min(least.resident, f.resident)}
	}
	return least
}

// A broker is killed every minute while Ballast governs under load: what Ballast takes stays flat, no bundle is stuck at the end, and
// every intent has an outcome.
func TestSoak(t *testing.T) {
	length := harness.Length(2*time.Minute, 30*time.Minute)
	c := shared(t)
	ns := c.CreateNamespace(t, 24)
	c.Place(t, ns, c.Brokers()...)
	load := traffic.Start(t, c.ServiceURL(), traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 100, Exponent: 0.6, MaxShare: 0.12, Seed: 3}),
		traffic.Options{Drain: 3 * time.Minute})
	load.AwaitFlow(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	begun := time.Now()
	p := launch(t, nil, slices.Concat([]string{"run", "--mode", "govern", "--take-over"}, everywhere(c),
		settings("ballastHttpListenAddress="+address, "ballastCycleInterval=5s", "ballastLoadSource=derived", "ballastNewBrokerTime=0s"))...)
	p.says(t, "took over", 2*time.Minute)
	p.says(t, "msg=cycle", 3*time.Minute)
	before := p.settled(t, address, 15*time.Second)
	rng, kills := rand.New(rand.NewPCG(1, 1)), 0
	for end := time.Now().Add(length); time.Now().Before(end); kills++ {
		next := time.Now().Add(time.Minute)
		b := c.Brokers()[rng.IntN(len(c.Brokers()))]
		t.Logf("%v: %s is killed", time.Since(begun).Round(time.Second), b.Name)
		b.Kill(t)
		b.AwaitGone(t)
		b.Start(t)
		time.Sleep(time.Until(next))
	}
	mark := p.mark()
	p.goesOn(t, mark)
	after := p.settled(t, address, 15*time.Second)
	harness.Figure(t, "brokers killed", kills)
	harness.Figure(t, "goroutines before and after", fmt.Sprintf("%.0f and %.0f", before.goroutines, after.goroutines))
	harness.Figure(t, "heap in use before and after, MiB", fmt.Sprintf("%.1f and %.1f", before.heap/(1<<20), after.heap/(1<<20)))
	harness.Figure(t, "resident memory before and after, MiB", fmt.Sprintf("%.1f and %.1f", before.resident/(1<<20), after.resident/(1<<20)))
	// Each connection of the clients has goroutines of its own, and before the first kill not all may have been made.
	if after.goroutines > before.goroutines+30 {
		t.Errorf("there are %.0f goroutines, there were %.0f", after.goroutines, before.goroutines)
	}
	if after.heap > 2*before.heap+16<<20 {
		t.Errorf("the heap has %.1f MiB, it had %.1f", after.heap/(1<<20), before.heap/(1<<20))
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	everyIntentHasAnOutcome(t, decisions(t, c, begun))
	harness.Eventually(t, 5*time.Minute, "doctor finds no bundle that is stuck", func(ctx context.Context) error {
		stdout, stderr, _ := run(t, c, "doctor", "-o", "json", "--watch", "5s")
		var out examined
		if err := json.Unmarshal([]byte(stdout), &out); err != nil {
			t.Fatalf("output is no JSON: %v\n%s\n%s", err, stdout, stderr)
		}
		for _, f := range out.Findings {
			if f.Anomaly != nil && f.Severity == diagnose.Error {
				return fmt.Errorf("%s: %s", f.Why.Code, f.Why)
			}
		}
		return nil
	})
	c.Owners(t, ns) // every bundle has an owner that answers
	report := load.Stop(t)
	t.Log(report)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	harness.Figure(t, "messages", report.Sum().Sent)
	harness.Figure(t, "longest stall of a consumer, ms", report.Sum().Stall.Milliseconds())
}

// everyIntentHasAnOutcome checks that nothing that was begun is left without an end, and that no bundle was asked for twice at once.
func everyIntentHasAnOutcome(t *testing.T, records []control.Record) {
	t.Helper()
	open, intents := map[string]control.Record{}, 0
	for _, r := range records {
		switch r.Kind {
		case control.KindIntent:
			if before, ok := open[r.Decision.Bundle]; ok && before.Epoch == r.Epoch {
				t.Errorf("%s: a second intent in epoch %d, cycle %d, before the outcome of the one of cycle %d", r.Decision.Bundle, r.Epoch, r.Cycle, before.Cycle)
			}
			open[r.Decision.Bundle] = r
			intents++
		case control.KindOutcome:
			delete(open, r.Outcome.Decision.Bundle)
		}
	}
	for bundle, r := range open {
		t.Errorf("%s: the intent of epoch %d, cycle %d has no outcome", bundle, r.Epoch, r.Cycle)
	}
	harness.Figure(t, "intents, each with an outcome", intents)
}
