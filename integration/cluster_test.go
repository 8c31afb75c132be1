//go:build integration

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
)

// Every load manager comes up with three registered brokers, one of which leads.
func TestClusterComesUp(t *testing.T) {
	for _, manager := range []harness.Manager{harness.Simple, harness.Modular, harness.Extensible} {
		t.Run(manager.String(), func(t *testing.T) {
			if manager != harness.Extensible && !harness.Full() {
				t.Skip("a cluster of its own: only at full length (make verify)")
			}
			c := pool.Get(t, harness.Options{Manager: manager})
			var want []string
			for _, b := range c.Brokers() {
				want = append(want, b.ID)
			}
			got, err := c.Registry(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" || len(got) != 3 {
				t.Errorf("registry (-want +got):\n%s", diff)
			}
			leader, err := c.Leader(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(want, leader) {
				t.Errorf("the leader %q is not one of %v", leader, want)
			}
			var conf map[string]string
			if err := c.Get(t.Context(), "/admin/v2/brokers/configuration/runtime", &conf); err != nil {
				t.Fatal(err)
			}
			t.Logf("leader %s, load manager %s", leader, conf["loadManagerClassName"])
		})
	}
}

// A namespace's bundles are where they were placed, and the harness's topics are in the bundles that it thinks they are in.
func TestBundlesArePlaced(t *testing.T) {
	for _, manager := range []harness.Manager{harness.Modular, harness.Extensible} {
		t.Run(manager.String(), func(t *testing.T) {
			if manager != harness.Extensible && !harness.Full() {
				t.Skip("a cluster of its own: only at full length (make verify)")
			}
			c := pool.Get(t, harness.Options{Manager: manager})
			ns := c.CreateNamespace(t, 8)
			for _, topic := range traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns)}) {
				var bundle string
				if err := c.Get(t.Context(), "/lookup/v2/topic/persistent/"+topic.Name[len("persistent://"):]+"/bundle", &bundle); err != nil {
					t.Fatal(err)
				}
				if want := topic.Bundle[len(ns)+1:]; bundle != want {
					t.Errorf("%s is in the bundle %s, not %s", topic.Name, bundle, want)
				}
			}
			brokers := c.Brokers()
			for _, to := range [][]*harness.Broker{brokers[:1], brokers} {
				c.Place(t, ns, to...)
				want := map[string]string{}
				for i, bundle := range c.Bundles(t, ns) {
					want[bundle] = to[i%len(to)].ID
				}
				if diff := cmp.Diff(want, c.Owners(t, ns)); diff != "" {
					t.Errorf("owners (-want +got):\n%s", diff)
				}
			}
		})
	}
}

// Traffic goes on while every bundle moves once; nothing is lost, and the brokers' own counters show the load moving.
func TestTrafficSurvivesMoves(t *testing.T) {
	c := shared(t)
	ns := c.CreateNamespace(t, 8)
	brokers := c.Brokers()
	c.Place(t, ns, brokers[0])
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 400, Exponent: 1, MaxShare: 0.2, Seed: 1})
	run := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})

	meter := traffic.Meter{Namespace: ns, URLs: urls(brokers)}
	loads := meter.Measure(t, harness.Length(5*time.Second, 30*time.Second))
	if hot := loads[brokers[0].AdminURL()]; hot.Messages < 400 {
		t.Errorf("the broker with all bundles passes %.0f msg/s in and out, of %.0f sent", hot.Messages, layout.Rate())
	}
	for _, b := range brokers[1:] {
		if idle := loads[b.AdminURL()]; idle.Messages != 0 {
			t.Errorf("%s has no bundle and passes %.0f msg/s", b.Name, idle.Messages)
		}
	}
	for i, bundle := range c.Bundles(t, ns) {
		c.Move(t, bundle, brokers[1+i%2])
	}
	if idle := meter.Measure(t, harness.Length(5*time.Second, 30*time.Second))[brokers[0].AdminURL()]; idle.Messages != 0 {
		t.Errorf("the broker that gave all its bundles away passes %.0f msg/s", idle.Messages)
	}
	report := run.Stop(t)
	t.Log(report)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	sum := report.Sum()
	harness.Figure(t, "messages sent", sum.Sent)
	harness.Figure(t, "duplicates", sum.Duplicates)
	harness.Figure(t, "longest stall of a consumer, ms", sum.Stall.Milliseconds())
	harness.Figure(t, "slowest send, ms", sum.SlowestAck.Milliseconds())
}

// A broker that was killed, stopped, frozen or cut off leaves the registry, its topics go on elsewhere without loss, and it
// comes back.
func TestBrokerLeavesAndReturns(t *testing.T) {
	for _, end := range []struct {
		name string
		how  func(*harness.Broker, testing.TB)
	}{
		{"killed", (*harness.Broker).Kill},
		{"stopped", (*harness.Broker).Stop},
		{"frozen", (*harness.Broker).Pause},
		{"cut off", (*harness.Broker).Cut},
	} {
		t.Run(end.name, func(t *testing.T) {
			c := shared(t)
			ns := c.CreateNamespace(t, 4)
			victim := c.Brokers()[2]
			c.Place(t, ns, victim)
			layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 80, Seed: 2})
			run := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Drain: 3 * time.Minute})
			run.AwaitFlow(t)
			began := time.Now()
			end.how(victim, t)
			victim.AwaitGone(t)
			harness.Figure(t, "seconds until it left the registry", time.Since(began).Round(100*time.Millisecond).Seconds())
			for bundle, owner := range c.Owners(t, ns) {
				if owner == victim.ID {
					t.Errorf("%s is still said to be on the broker that is gone", bundle)
				}
			}
			report := run.Stop(t)
			t.Log(report)
			if err := report.Err(); err != nil {
				t.Error(err)
			}
			victim.Start(t)
			ids, err := c.Registry(t.Context())
			if err != nil || !slices.Contains(ids, victim.ID) {
				t.Errorf("registry after its return: %v, %v", ids, err)
			}
		})
	}
}

// A broker that is added is registered, takes bundles and is gone from the next test's cluster.
func TestBrokerAdded(t *testing.T) {
	c := shared(t)
	ns := c.CreateNamespace(t, 4)
	c.Place(t, ns, c.Brokers()[0])
	added := c.AddBroker(t, map[string]string{"loadBalancerBrokerMaxTopics": "1234"})
	ids, err := c.Registry(t.Context())
	if err != nil || !slices.Contains(ids, added.ID) || len(ids) != 4 {
		t.Fatalf("registry after %s was added: %v, %v", added.ID, ids, err)
	}
	c.Place(t, ns, added)
	for bundle, owner := range c.Owners(t, ns) {
		if owner != added.ID {
			t.Errorf("%s is on %s, not on the broker that was added", bundle, owner)
		}
	}
}

// What a test did to the shared cluster is undone before the next one gets it.
func TestClusterIsRestored(t *testing.T) {
	t.Run("a test that leaves a mess", func(t *testing.T) {
		c := shared(t)
		c.CreateNamespace(t, 4)
		c.SetDynamic(t, "loadBalancerSheddingEnabled", "false")
		c.AddBroker(t, nil)
		c.Brokers()[1].Kill(t)
	})
	c := shared(t)
	ids, err := c.Registry(t.Context())
	if err != nil || len(ids) != 3 {
		t.Errorf("registry: %v, %v", ids, err)
	}
	conf, err := c.DynamicConfig(t.Context())
	if _, set := conf["loadBalancerSheddingEnabled"]; err != nil || set {
		t.Errorf("dynamic configuration: %v, %v", conf, err)
	}
	harness.Eventually(t, time.Minute, "no namespace is left", func(ctx context.Context) error {
		var namespaces []string
		if err := c.Get(ctx, "/admin/v2/namespaces/test", &namespaces); err != nil || len(namespaces) > 0 {
			return fmt.Errorf("namespaces: %v, %w", namespaces, err)
		}
		return nil
	})
}

func urls(brokers []*harness.Broker) []string {
	var urls []string
	for _, b := range brokers {
		urls = append(urls, b.AdminURL())
	}
	return urls
}
