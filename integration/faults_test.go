//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/topics"
)

// On a cluster with one hot broker: no plan breaks an isolation policy, a broker that is added receives load, and planning
// goes on after the system topics were unloaded and after the broker that served them was killed.
func TestFaultsWhileGoverning(t *testing.T) {
	c := pool.Get(t, harness.Options{Conf: evenConf()})
	ns := c.CreateNamespace(t, 16)
	c.Place(t, ns, c.Brokers()[0])
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: evenRate, Exponent: 0.6, MaxShare: 0.12, Seed: 1})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Size: evenSize, Drain: 3 * time.Minute})
	load.AwaitFlow(t)
	_ = t.Run("isolation", func(t *testing.T) { testIsolation(t, c, ns) }) &&
		t.Run("brokers and topics come and go", func(t *testing.T) { testComingAndGoing(t, c, ns) })
	report := load.Stop(t)
	t.Log(report)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	sum := report.Sum()
	harness.Figure(t, "messages", sum.Sent)
	harness.Figure(t, "duplicates", sum.Duplicates)
	harness.Figure(t, "longest stall of a consumer, ms", sum.Stall.Milliseconds())
}

// estimated makes `ballast plan` answer soon, without waiting for the next reports of brokers: what topics hold is read, who is silent is estimated.
var estimated = []string{"--estimate", "--wait", "5s"}

const movePolicies = "loadBalancerSheddingBundlesWithPoliciesEnabled="

// testIsolation plans without and with a policy that forbids the broker that would be chosen without.
func testIsolation(t *testing.T, c *harness.Cluster, ns string) {
	plans := func(allow bool) cycle {
		cy, _ := planned(t, c, append(estimated, settings(movePolicies+fmt.Sprint(allow))...)...)
		return cy
	}
	var forbidden *harness.Broker
	harness.Eventually(t, 3*time.Minute, "there is a plan", func(context.Context) error {
		cy := plans(true)
		if to := destinations(cy); len(to) > 0 {
			forbidden = c.Broker(to[0])
			return nil
		}
		return fmt.Errorf("frozen %v, outcome %v, refused %v", cy.Frozen, cy.Plan.Outcome, cy.Verdict.Refused)
	})
	var hosts []string // of the others
	for _, b := range c.Brokers() {
		if b != forbidden {
			hosts = append(hosts, regexp.QuoteMeta(b.IP.String()))
		}
	}

	// A plan that has not heard of a broker's bundles yet says nothing about them. What it may not plan it may never plan.
	says := func(allow bool, why string, may func(destination string) bool) {
		t.Helper()
		harness.Eventually(t, 2*time.Minute, "a plan says "+why, func(context.Context) error {
			cy := plans(allow)
			for _, d := range cy.Plan.Decisions {
				if !may(d.Destination) {
					t.Fatalf("%s is planned to %s in spite of the policy", d.Bundle, d.Destination)
				}
			}
			if !leftOut(cy, ns, why) {
				return fmt.Errorf("frozen %v, outcome %v, left out %+v", cy.Frozen, cy.Plan.Outcome, cy.LeftOut)
			}
			return nil
		})
	}
	nowhere := func(string) bool { return false }
	isolate(t, c, ns, hosts...)
	says(true, "NOT_TRANSFERABLE", func(destination string) bool { return destination != forbidden.ID })
	says(false, "HAS_POLICY", nowhere)

	// Go has no look-ahead: nobody but Java knows what this means.
	isolate(t, c, ns, "(?=1).*")
	says(true, "is not translated", nowhere)
}

// isolate gives a namespace an isolation policy with primary brokers, until the test ends. Nothing is unloaded for it.
func isolate(t *testing.T, c *harness.Cluster, ns string, primary ...string) {
	t.Helper()
	path := "/admin/v2/clusters/" + c.Name() + "/namespaceIsolationPolicies/of-a-test"
	body := map[string]any{"namespaces": []string{regexp.QuoteMeta(ns)}, "primary": primary, "secondary": []string{}, "unload_scope": "none",
		"auto_failover_policy": map[string]any{"policy_type": "min_available", "parameters": map[string]string{"min_limit": "1", "usage_threshold": "100"}}}
	if err := c.Do(t.Context(), http.MethodPost, path, body); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := c.Do(context.Background(), http.MethodDelete, path, nil)
		if gone := (*harness.StatusError)(nil); err != nil && !(errors.As(err, &gone) && gone.Code == http.StatusNotFound) {
			t.Error(err)
		}
	})
}

// leftOut says whether a plan gives a code or a text as the reason why bundles of a namespace, or their brokers, stay.
func leftOut(cy cycle, ns, why string) bool {
	for _, l := range cy.LeftOut {
		if (l.Bundle == "" || strings.HasPrefix(l.Bundle, ns+"/")) && (l.Why.Code == why || strings.Contains(l.Why.Text, why)) {
			return true
		}
	}
	return false
}

func testComingAndGoing(t *testing.T, c *harness.Cluster, ns string) {
	begun := time.Now()
	p := start(t, c, append([]string{"run", "--mode", "govern", "--take-over"}, settings("ballastHttpListenAddress=", "ballastLoadSource=derived",
		"ballastLoadHalfLife=0s", "ballastCPUWeight=0", "ballastCycleInterval=2s")...)...)
	p.says(t, "took over", time.Minute)
	added := c.AddBroker(t, nil)
	harness.Eventually(t, 5*time.Minute, "the broker that was added receives load", func(context.Context) error {
		_, all := outcomes(decisions(t, c, begun))
		for _, o := range all {
			if o.Decision.Destination == added.ID && o.Result == control.Done {
				return nil
			}
		}
		return fmt.Errorf("%d moves and none to it", len(all))
	})
	harness.Figure(t, "seconds until a broker that was added received load", int(time.Since(begun).Seconds()))

	victim := c.Brokers()[2] // not the one that the program asks
	mark := p.mark()
	for _, bundle := range systemBundles(t, c) {
		c.Move(t, bundle, victim)
	}
	p.goesOn(t, mark)

	mark, killed := p.mark(), time.Now()
	victim.Kill(t)
	victim.AwaitGone(t)
	frozen := p.goesOn(t, mark)
	harness.Figure(t, "seconds from the kill of the broker with the system topics to the next plan", int(time.Since(killed).Seconds()))
	// The lock's topic is among them: the leader may have lost it before it could notice anything else.
	if _, stderr := p.text(); len(frozen) == 0 && !strings.Contains(stderr[mark:], `msg="standing by"`) {
		t.Error("while the system topics had no owner no cycle was frozen, and the program did not stand by")
	}
	for _, line := range frozen {
		if !strings.Contains(line, "code=FROZEN_") || strings.Contains(line, `why=""`) {
			t.Errorf("frozen without a reason: %s", line)
		}
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, r := range decisions(t, c, killed) {
		if r.Kind == control.KindIntent && r.Decision.Destination == victim.ID {
			t.Errorf("%s was to move to the broker that was dead for %v", r.Decision.Bundle, time.UnixMilli(r.At).Sub(killed))
		}
	}
	for bundle, owner := range c.Owners(t, ns) {
		if owner == victim.ID {
			t.Errorf("%s is still on the broker that is gone", bundle)
		}
	}
}

// systemBundles are the bundles that the system topics are in.
func systemBundles(t *testing.T, c *harness.Cluster) []string {
	t.Helper()
	var out []string
	for _, topic := range systemTopics {
		var bundle string
		if err := c.Get(t.Context(), "/lookup/v2/topic/"+strings.Replace(topic, "://", "/", 1)+"/bundle", &bundle); err != nil {
			t.Fatal(err)
		}
		name, err := topics.ParseName(topic)
		if err != nil {
			t.Fatal(err)
		}
		if bundle = name.Tenant + "/" + name.Namespace + "/" + bundle; !slices.Contains(out, bundle) {
			out = append(out, bundle)
		}
	}
	return out
}

// destinations are the brokers that a plan would move bundles to.
func destinations(cy cycle) []string {
	var out []string
	for _, d := range cy.Verdict.Run {
		if !slices.Contains(out, d.Destination) {
			out = append(out, d.Destination)
		}
	}
	return out
}
