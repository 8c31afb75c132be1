//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/split"
)

// topicsPerBundle counts topics by the bundle that their hash is in. The bundles must cover every hash once.
func topicsPerBundle(bundles []string, layout traffic.Layout) (map[string]int, error) {
	out, next := map[string]int{}, uint32(0)
	for i, name := range bundles {
		_, r, err := split.ParseBundle(name)
		if err != nil {
			return nil, err
		}
		if r.Lower != next || i == len(bundles)-1 && r.Upper != split.Full {
			return nil, fmt.Errorf("there is a gap or an overlap at %s: %v", name, bundles)
		}
		next = r.Upper
		for _, topic := range layout {
			if r.Contains(split.Hash(topic.Name)) {
				out[name]++
			}
		}
	}
	return out, nil
}

// On a Modular cluster that does not split by itself a bundle above the topic limit is split by the loop until no part is,
// with its parts verified and placed anew; no bundle and no message is lost.
func TestLoopSplitsOnModular(t *testing.T) {
	const most = 4
	c := pool.Get(t, evenModular())
	ns := c.CreateNamespace(t, 2)
	c.Place(t, ns, c.Brokers()[0])
	before := c.Bundles(t, ns)
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: before[:1], TopicsPerBundle: 7, Rate: 70, Seed: 1})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Size: 200})
	load.AwaitFlow(t)
	begun := time.Now()
	p := start(t, c, append([]string{"run", "--mode", "govern", "--take-over"},
		settings("ballastHttpListenAddress=", "ballastCycleInterval=5s", "ballastSplit=auto", fmt.Sprintf("loadBalancerNamespaceBundleMaxTopics=%d", most))...)...)
	harness.Eventually(t, 5*time.Minute, "no bundle is above the limit", func(context.Context) error {
		counts, err := topicsPerBundle(c.Bundles(t, ns), layout)
		if err != nil {
			return err
		}
		for name, n := range counts {
			if n > most {
				return fmt.Errorf("%s has %d topics", name, n)
			}
		}
		return nil
	})
	took := time.Since(begun)
	splits := 0
	harness.Eventually(t, time.Minute, "the outcomes are on record", func(context.Context) error {
		splits = 0
		_, all := outcomes(decisions(t, c, begun))
		for _, o := range all {
			if o.Decision.Action != plan.Split {
				continue
			}
			splits++
			if o.Result != control.Done || len(o.Parts) != 2 || !strings.HasPrefix(o.Decision.Bundle, ns+"/") || o.Decision.Why.Code != "SPLIT_TOPICS" || !o.Decision.UnloadAfter {
				t.Fatalf("split of %s because of %s: %s (%s), parts %v", o.Decision.Bundle, o.Decision.Why, o.Result, o.Why, o.Parts)
			}
		}
		if splits == 0 {
			return errors.New("no split is on record")
		}
		return nil
	})
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d after a clean stop", code)
	}
	after := c.Bundles(t, ns)
	if len(after) != len(before)+splits {
		t.Errorf("%d splits of %d bundles left %v", splits, len(before), after)
	}
	counts, err := topicsPerBundle(after, layout)
	if err != nil {
		t.Error(err)
	}
	sum := 0
	for _, n := range counts {
		sum += n
	}
	if sum != len(layout) {
		t.Errorf("%d of %d topics are in the bundles %v", sum, len(layout), after)
	}
	for bundle, owner := range c.Owners(t, ns) {
		if owner == "" {
			t.Errorf("%s has no owner", bundle)
		}
	}
	t.Logf("%d splits, done %v after the start: %v", splits, took.Round(time.Second), counts)
	if err := load.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}
