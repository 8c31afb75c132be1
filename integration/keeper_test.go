//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
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

// TestReportsFromZooKeeper: on a cluster whose brokers refuse their load reports the program plans with those in ZooKeeper, when
// it is told where that is.
func TestReportsFromZooKeeper(t *testing.T) {
	c := pool.Get(t, harness.Options{Manager: harness.Modular, Conf: keeperConf()})
	ns := c.CreateNamespace(t, 6)
	c.Place(t, ns, c.Brokers()...)
	flow := traffic.Start(t, c.ServiceURL(), traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 120, Seed: 2}), traffic.Options{})
	flow.AwaitFlow(t)
	var addresses []string
	for _, b := range c.Brokers() {
		addresses = append(addresses, b.ID+"="+withoutReports(t, b))
	}
	closed := "ballastBrokerAddresses=" + strings.Join(addresses, ",")

	blind := start(t, c, append([]string{"plan", "--wait", "15s"}, settings(closed)...)...)
	blind.wait(t)
	if stdout, stderr := blind.text(); !strings.Contains(stdout, "Nothing can be decided") {
		t.Errorf("without ZooKeeper:\n%s\n%s", stdout, stderr)
	}
	sees := start(t, c, append([]string{"plan", "--wait", "2m"}, settings(closed, "ballastZooKeeper="+c.ZooKeeper())...)...)
	sees.wait(t)
	stdout, stderr := sees.text()
	if strings.Contains(stdout, "Nothing can be decided") || stdout == "" {
		t.Errorf("with ZooKeeper:\n%s\n%s", stdout, stderr)
	}
	for _, b := range c.Brokers() {
		if !strings.Contains(stderr, `is read from ZooKeeper" broker=`+b.ID) {
			t.Errorf("nothing says that the report of %s was read from ZooKeeper:\n%s", b.ID, stderr)
		}
	}
	wrong := start(t, c, append([]string{"plan"}, settings("ballastZooKeeper=http://zk:2181")...)...)
	code := wrong.wait(t)
	if _, stderr := wrong.text(); code != 1 || !strings.Contains(stderr, `ballastZooKeeper: ZooKeeper address "http:": it should be host or host:port`) {
		t.Errorf("with a wrong address: exit code %d, %s", code, stderr)
	}
	if err := flow.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}

// withoutReports is the address of a proxy before a broker's web service that refuses its load report.
func withoutReports(t *testing.T, b *harness.Broker) string {
	t.Helper()
	to, err := url.Parse(b.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/admin/v2/broker-stats/load-report" {
			http.Error(w, `{"reason":"This operation requires super-user access"}`, http.StatusUnauthorized)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
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
