//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/manager"
)

// badLooks: what is asked for wrongly is one clear error that names the value.
func badLooks(t *testing.T, c *harness.Cluster) {
	const nobody = "198.18.0.1:8080"
	for _, x := range []struct {
		args []string
		says []string
	}{
		{[]string{"report", nobody}, []string{nobody, "is not registered", c.Brokers()[0].ID}},
		{[]string{"report"}, []string{"0 brokers given", "host:webPort"}},
		{[]string{"report", c.Brokers()[0].ID, "-o", "table"}, []string{`"table"`, "json or yaml"}},
		{[]string{"report", c.Brokers()[0].ID, "--wait", "-1s"}, []string{"--wait is -1s"}},
		{[]string{"brokers", "-o", "xml"}, []string{`"xml"`, "table, json or yaml"}},
		{[]string{"brokers", "--wait", "soon"}, []string{`"soon"`, "--wait"}},
		{[]string{"bundles", "--broker", nobody}, []string{nobody, "is not registered", c.Brokers()[2].ID}},
		{[]string{"bundles", "--namespace", "public"}, []string{`--namespace is "public"`, "tenant/namespace"}},
		{[]string{"bundles", "--sort", "color"}, []string{"--sort", "color", "throughput"}},
		{[]string{"bundles", "--limit", "-3"}, []string{"--limit is -3"}},
		{[]string{"migrate", "plan", "--to", "modular"}, []string{`--to is "modular"`, "extensible"}},
		{[]string{"migrate", "now"}, []string{`"now"`, "plan"}},
	} {
		stdout, stderr, code := run(t, c, x.args...)
		if code != 1 || stdout != "" || strings.Count(stderr, "error: ") != 1 {
			t.Errorf("%v: exit code %d, printed %q, %s", x.args, code, stdout, stderr)
		}
		for _, text := range x.says {
			if !strings.Contains(stderr, text) {
				t.Errorf("%v does not say %q: %s", x.args, text, stderr)
			}
		}
	}
}

// TestReportOfAnExtensibleBroker: Pulsar's own endpoint fails; what is rebuilt has the form of a Modular broker's report, the
// bundles that the broker owns with their topics and rates, and says what it was made from.
func TestReportOfAnExtensibleBroker(t *testing.T) {
	c := shared(t)
	ns := c.CreateNamespace(t, 8)
	c.Place(t, ns, c.Brokers()...)
	all := c.Bundles(t, ns)
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: all[:6], Rate: 120, Exponent: 0.6, MaxShare: 0.4, Seed: 2}) // two are idle
	flow := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})
	flow.AwaitFlow(t)
	owners, counts, rates := c.Owners(t, ns), map[string]int64{}, map[string]float64{}
	for _, topic := range layout {
		counts[topic.Bundle]++
		rates[topic.Bundle] += topic.Rate
	}
	for _, b := range c.Brokers() {
		if text, err := getAt(t.Context(), b, "/admin/v2/broker-stats/load-report"); err == nil || !strings.Contains(err.Error(), "500") {
			t.Errorf("%s answers %v, %s", b.ID, err, text)
		}
	}
	harness.Eventually(t, 4*time.Minute, "the reports", func(context.Context) error {
		var programs []*program
		for _, b := range c.Brokers() { // they publish their load every minute
			programs = append(programs, start(t, c, "report", b.ID, "--wait", "90s"))
		}
		var errs []error
		for k, p := range programs {
			code := p.wait(t)
			stdout, stderr := p.text()
			if code != 0 {
				errs = append(errs, fmt.Errorf("exit code %d: %s", code, stderr))
				continue
			}
			if err := rebuiltReport(stdout, c.Brokers()[k], ns, owners, counts, rates); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", c.Brokers()[k].ID, err))
			}
		}
		return errors.Join(errs...)
	})
	var m manager.Migration
	if code := into(t, c, &m, "migrate", "plan"); !m.Done || len(m.Steps) > 0 || code != map[bool]int{true: 0, false: 2}[m.Ready] {
		t.Errorf("a plan of what is done already: exit code %d, %+v", code, m)
	}
	if err := flow.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}

// rebuiltReport says what is wrong with a rebuilt report of a broker, given the owners of a namespace's bundles, and how many
// topics and what rate each has.
func rebuiltReport(document string, b *harness.Broker, ns string, owners map[string]string, counts map[string]int64, rates map[string]float64) error {
	kind, err := event.KindOfReport([]byte(document))
	if err != nil || kind != event.ModularReport {
		return fmt.Errorf("kind %v, %w", kind, err)
	}
	d, err := event.Decode[event.LocalBrokerData]([]byte(document))
	if err != nil {
		return err
	}
	var extra struct {
		Rebuilt struct{ From, Estimated, Missing, IdleBundles []string }
	}
	if err := json.Unmarshal([]byte(document), &extra); err != nil {
		return err
	}
	said := map[string]string{"loadManagerClassName": d.LoadManagerClassName, "brokerVersionString": d.BrokerVersionString, "webServiceUrl": d.WebServiceURL, "pulsarServiceUrl": d.PulsarServiceURL}
	want := map[string]string{"loadManagerClassName": manager.Extensible.Class(), "brokerVersionString": harness.Version(), "webServiceUrl": b.AdminURL(), "pulsarServiceUrl": b.ServiceURL()}
	if !maps.Equal(said, want) {
		return fmt.Errorf("it says %v, want %v", said, want)
	}
	if len(extra.Rebuilt.From) == 0 || len(extra.Rebuilt.Estimated) > 0 || !slices.Contains(extra.Rebuilt.Missing, "startTimestamp") {
		return fmt.Errorf("rebuilt %+v", extra.Rebuilt)
	}
	for name, u := range map[string]event.ResourceUsage{"cpu": d.CPU, "memory": d.Memory, "directMemory": d.DirectMemory} {
		if u.Limit <= 0 || u.Usage < 0 {
			return fmt.Errorf("%s is %+v", name, u)
		}
	}
	if age := time.Since(time.UnixMilli(d.LastUpdate)); age > 20*time.Minute {
		return fmt.Errorf("its load data is %v old", age)
	}
	rate := 0.0
	got, mine := map[string]int64{}, map[string]int64{}
	for _, s := range d.LastStats {
		rate += s.Stats.MsgRateIn
		if event.NamespaceOf(s.Bundle) != ns {
			continue
		}
		got[s.Bundle] = s.Stats.Topics
		// Brokers measure over a minute, and a busy machine sends less.
		if r := rates[s.Bundle]; math.Abs(s.Stats.MsgRateIn-r) > 0.5*r {
			return fmt.Errorf("%s has %.1f messages/s, want %.1f", s.Bundle, s.Stats.MsgRateIn, r)
		}
	}
	for bundle, owner := range owners {
		// One of the bundles has the topic of the namespace's policies, too.
		policies := got[bundle] == counts[bundle]+1
		if policies {
			got[bundle]--
		}
		if got[bundle] == 0 {
			delete(got, bundle)
		}
		switch {
		case owner != b.ID:
		case counts[bundle] > 0:
			mine[bundle] = counts[bundle]
		case !policies && !slices.Contains(extra.Rebuilt.IdleBundles, bundle):
			return fmt.Errorf("%s is not among the idle bundles %v", bundle, extra.Rebuilt.IdleBundles)
		}
	}
	if diff := cmp.Diff(mine, got); diff != "" {
		return fmt.Errorf("topics by bundle (-owned +reported):\n%s", diff)
	}
	if int(d.NumBundles) != len(d.LastStats) || math.Abs(d.MsgRateIn-rate) > 1e-6 {
		return fmt.Errorf("%d bundles and %v messages/s, the statistics have %d and %v", d.NumBundles, d.MsgRateIn, len(d.LastStats), rate)
	}
	return nil
}
