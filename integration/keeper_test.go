//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/cluster/zookeeper"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
)

// keeperConf makes the leader write the history of bundles every minute.
func keeperConf() map[string]string {
	return map[string]string{
		"loadBalancerResourceQuotaUpdateIntervalMinutes": "1", "loadBalancerReportUpdateThresholdPercentage": "0",
		"statsUpdateFrequencyInSecs": "10", "statsUpdateInitialDelayInSecs": "10",
		"loadBalancerSheddingEnabled": "false", "loadBalancerAutoBundleSplitEnabled": "false",
	}
}

// TestZooKeeper: what a cluster keeps in ZooKeeper is what its brokers say over admin REST, and takes the place of a load report
// that they refuse.
func TestZooKeeper(t *testing.T) {
	for _, manager := range []harness.Manager{harness.Modular, harness.Simple} {
		t.Run(manager.String(), func(t *testing.T) {
			if manager == harness.Simple && !harness.Full() {
				t.Skip("a cluster of its own: only at full length (make verify)")
			}
			testZooKeeper(t, pool.Get(t, harness.Options{Manager: manager, Conf: keeperConf()}))
		})
	}
}

func testZooKeeper(t *testing.T, c *harness.Cluster) {
	quiet := slog.New(slog.DiscardHandler)
	keeper, err := zookeeper.New(zookeeper.Options{Servers: []string{"zk:" + c.ZooKeeper()}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	rest, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer rest.Close()

	ns := c.CreateNamespace(t, 6)
	c.Place(t, ns, c.Brokers()...)
	flow := traffic.Start(t, c.ServiceURL(), traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 120, Seed: 2}), traffic.Options{})
	flow.AwaitFlow(t)

	want, err := c.Registry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ids, err := keeper.Brokers(t.Context())
	if diff := cmp.Diff(want, ids); diff != "" || err != nil {
		t.Errorf("brokers, %v (-admin REST +ZooKeeper):\n%s", err, diff)
	}
	leader, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := keeper.Leader(t.Context()); err != nil || got != leader {
		t.Errorf("leader %q, %v, want %s", got, err, leader)
	}
	for _, id := range ids {
		harness.Eventually(t, 3*time.Minute, "the report of "+id+" in ZooKeeper", func(ctx context.Context) error {
			return sameReport(ctx, rest, keeper, id)
		})
	}
	if _, err := keeper.LoadReport(t.Context(), "198.18.0.1:8080"); !errors.Is(err, admin.NotFound) {
		t.Errorf("the report of no broker: %v", err)
	}

	report, err := keeper.Behind(refusing{}).LoadReport(t.Context(), ids[0])
	if err != nil || (report.Local == nil) == (report.Simple == nil) {
		t.Errorf("behind brokers that refuse: %+v, %v", report, err)
	}
	if c.Manager() == harness.Modular {
		history(t, keeper, ids, c.Bundles(t, ns))
	}

	// The port of the bookie is none of ZooKeeper's.
	other, err := zookeeper.New(zookeeper.Options{Servers: []string{strings.Replace(c.ZooKeeper(), ":2181", ":3181", 1)}, ReadTimeout: 5 * time.Second,
		Retries: -1, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Brokers(t.Context()); !errors.Is(err, admin.Unreachable) && !errors.Is(err, admin.Timeout) {
		t.Errorf("asking a bookie: %v", err)
	} else {
		t.Log(err)
	}
	if err := flow.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}

// sameReport says in what the two reports of a broker differ that do not change from one moment to the next.
func sameReport(ctx context.Context, rest, keeper zookeeper.Reports, id string) error {
	a, err := rest.LoadReport(ctx, id)
	if err != nil {
		return err
	}
	b, err := keeper.LoadReport(ctx, id)
	if err != nil {
		return err
	}
	said, kept := digest(a), digest(b)
	if diff := cmp.Diff(said, kept); diff != "" {
		return fmt.Errorf("(-admin REST +ZooKeeper):\n%s", diff)
	}
	if len(said.bundles) == 0 {
		return errors.New("the broker serves nothing yet")
	}
	return nil
}

// reported is what is compared of a report.
type reported struct {
	Class, Version, URL string
	Persistent          bool
	bundles             map[string]int64 // topics of each bundle
}

func (r reported) Equal(o reported) bool {
	return r.Class == o.Class && r.Version == o.Version && r.URL == o.URL && r.Persistent == o.Persistent && maps.Equal(r.bundles, o.bundles)
}

func digest(r admin.LoadReport) (d reported) {
	d.bundles = map[string]int64{}
	switch {
	case r.Local != nil:
		l := r.Local
		d.Class, d.Version, d.URL, d.Persistent = l.LoadManagerClassName, l.BrokerVersionString, l.WebServiceURL, l.PersistentTopicsEnabled
		for _, s := range l.LastStats {
			d.bundles[s.Bundle] = s.Stats.Topics
		}
	case r.Simple != nil:
		l := r.Simple
		d.Class, d.Version, d.URL, d.Persistent = l.LoadManagerClassName, l.BrokerVersionString, l.WebServiceURL, l.PersistentTopicsEnabled
		for _, s := range l.BundleStats {
			d.bundles[s.Bundle] = s.Stats.Topics
		}
	}
	return d
}

// refusing is a web service that refuses every report.
type refusing struct{}

func (refusing) LoadReport(_ context.Context, broker string) (admin.LoadReport, error) {
	return admin.LoadReport{}, &admin.Error{Op: "load report of " + broker, Kind: admin.Unauthorized, Status: 401}
}

// history: the leader's averages of every bundle with traffic and of every broker appear.
func history(t *testing.T, keeper *zookeeper.Client, brokers, bundles []string) {
	t.Helper()
	harness.Eventually(t, 5*time.Minute, "the history of bundles and brokers", func(ctx context.Context) error {
		known, err := keeper.BundleData(ctx)
		if err != nil {
			return err
		}
		for _, name := range bundles {
			i := slices.IndexFunc(known, func(h zookeeper.BundleHistory) bool { return h.Bundle == name })
			if i < 0 {
				return fmt.Errorf("%d bundles have a history, but not %s", len(known), name)
			}
			if d := known[i].Data; d.ShortTermData.NumSamples == 0 || d.ShortTermData.MsgRateIn <= 0 || d.Topics == 0 {
				return fmt.Errorf("the history of %s is %+v", name, d)
			}
		}
		averages, err := keeper.BrokerAverages(ctx)
		if err != nil {
			return err
		}
		var of []string
		for _, a := range averages {
			if a.Data.ShortTermMsgRateIn > 0 {
				of = append(of, a.Broker)
			}
		}
		if diff := cmp.Diff(brokers, of); diff != "" {
			return fmt.Errorf("brokers with averages (-want +got):\n%s", diff)
		}
		return nil
	})
}
