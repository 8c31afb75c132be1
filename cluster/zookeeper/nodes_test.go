package zookeeper

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
)

var ids = []string{"127.0.0.1:18081", "127.0.0.1:18082", "127.0.0.1:18083"}

// TestModular: everything that a Modular cluster keeps.
func TestModular(t *testing.T) {
	f := load(t, "modular")
	c := f.client(t, Options{})
	ctx := t.Context()
	brokers, err := c.Brokers(ctx)
	if diff := cmp.Diff(ids, brokers); diff != "" || err != nil {
		t.Fatalf("brokers, %v:\n%s", err, diff)
	}
	if leader, err := c.Leader(ctx); err != nil || leader != ids[0] {
		t.Errorf("leader %q, %v", leader, err)
	}
	for _, id := range ids {
		report, err := c.LoadReport(ctx, id)
		if err != nil || report.Local == nil || report.Simple != nil {
			t.Fatalf("report of %s: %+v, %v", id, report, err)
		}
		if got := report.Local; got.WebServiceURL != "http://"+id || int(got.NumBundles) != len(got.Bundles) || len(got.Bundles) == 0 ||
			len(got.LastStats) == 0 || got.LastUpdate == 0 || got.BrokerVersionString != "4.2.4" {
			t.Errorf("report of %s: %+v", id, got)
		}
	}
	bundles, err := c.BundleData(ctx)
	if err != nil || len(bundles) != 12 {
		t.Fatalf("%d bundles, %v", len(bundles), err)
	}
	if !slices.IsSortedFunc(bundles, func(a, b BundleHistory) int { return strings.Compare(a.Bundle, b.Bundle) }) {
		t.Error("the bundles are not in order")
	}
	i := slices.IndexFunc(bundles, func(b BundleHistory) bool { return b.Bundle == "public/h2/0xa0000000_0xb0000000" })
	if got := bundles[i].Data; got.ShortTermData.NumSamples != 6 || got.ShortTermData.MsgRateIn != 60.947491222833186 ||
		got.LongTermData.MaxSamples != 1000 || got.Topics != 3 {
		t.Errorf("bundle data %+v", got)
	}
	averages, err := c.BrokerAverages(ctx)
	if err != nil || len(averages) != 3 || averages[1].Broker != ids[1] || averages[1].Data.ShortTermMsgRateIn != 178.19732470351104 {
		t.Errorf("averages %+v, %v", averages, err)
	}
	if f.dials != 1 {
		t.Errorf("%d sessions for all of it", f.dials)
	}
}

// TestSimple: load reports of the other class; no history.
func TestSimple(t *testing.T) {
	c := load(t, "simple").client(t, Options{})
	for _, id := range ids {
		report, err := c.LoadReport(t.Context(), id)
		if err != nil || report.Simple == nil || report.Local != nil {
			t.Fatalf("report of %s: %+v, %v", id, report, err)
		}
		if report.Simple.Name != id || report.Simple.SystemResourceUsage == nil || len(report.Simple.BundleStats) == 0 {
			t.Errorf("report of %s: %+v", id, report.Simple)
		}
	}
	if bundles, err := c.BundleData(t.Context()); err != nil || bundles != nil {
		t.Errorf("bundle data %v, %v", bundles, err)
	}
	if averages, err := c.BrokerAverages(t.Context()); err != nil || averages != nil {
		t.Errorf("averages %v, %v", averages, err)
	}
}

// TestExtensible: its brokers register without load.
func TestExtensible(t *testing.T) {
	c := load(t, "extensible").client(t, Options{})
	_, err := c.LoadReport(t.Context(), ids[0])
	if !errors.Is(err, admin.Unsupported) || !strings.Contains(err.Error(), "ExtensibleLoadManagerImpl, which registers without its load") {
		t.Errorf("report: %v", err)
	}
	if leader, err := c.Leader(t.Context()); err != nil || leader != "" {
		t.Errorf("leader of the Modular manager %q, %v", leader, err)
	}
}

func TestChroot(t *testing.T) {
	f := load(t, "simple")
	nodes := make(map[string]string)
	for path, data := range f.nodes {
		nodes["/pulsar"+path] = data
	}
	f.nodes = nodes
	c := f.client(t, Options{})
	c.root = "/pulsar"
	if brokers, err := c.Brokers(t.Context()); err != nil || len(brokers) != 3 {
		t.Errorf("brokers %v, %v", brokers, err)
	}
	c.root = "/elsewhere"
	if _, err := c.Brokers(t.Context()); !errors.Is(err, admin.BadAnswer) ||
		!strings.Contains(err.Error(), "/elsewhere/loadbalance/brokers: not a Pulsar answer: no broker is registered there; is this the metadata store") {
		t.Errorf("brokers of nowhere: %v", err)
	}
}

// TestOddNodes: nodes that go meanwhile or are none of Pulsar's are left out, a broken one is named.
func TestOddNodes(t *testing.T) {
	f := load(t, "modular")
	c := f.client(t, Options{Concurrent: 1})
	f.nodes[bundlesNode+"/public/h2/locks"] = "x"
	f.answers = []error{nil, nil, nil, zk.ErrNoNode}
	if bundles, err := c.BundleData(t.Context()); err != nil || len(bundles) != 11 {
		t.Errorf("%d bundles, %v", len(bundles), err)
	}
	if len(f.paths) != 15 || slices.Contains(f.paths, bundlesNode+"/public/h2/locks") {
		t.Errorf("asked for %v", f.paths)
	}
	const broken = bundlesNode + "/public/h2/0xa0000000_0xb0000000"
	f.nodes[broken] = `{"shortTermData":{"maxSamples":"many"}}`
	if _, err := c.BundleData(t.Context()); !errors.Is(err, admin.BadAnswer) || !strings.Contains(err.Error(), broken) ||
		!strings.Contains(err.Error(), "shortTermData.maxSamples") {
		t.Errorf("broken bundle data: %v", err)
	}
	for document, reason := range map[string]string{"": "load report", "half{": "load report", `{"bundles":7}`: "bundles", "null": "load report"} {
		f.nodes[brokersNode+"/"+ids[0]] = document
		if _, err := c.LoadReport(t.Context(), ids[0]); !errors.Is(err, admin.BadAnswer) || !strings.Contains(err.Error(), reason) {
			t.Errorf("report %q: %v", document, err)
		}
	}
	if _, err := c.LoadReport(t.Context(), "10.0.0.9:8080"); !errors.Is(err, admin.NotFound) {
		t.Errorf("report of a broker that is not registered: %v", err)
	}
	for _, id := range []string{"", "a/b"} {
		if _, err := c.LoadReport(t.Context(), id); !errors.Is(err, admin.BadRequest) {
			t.Errorf("report of %q: %v", id, err)
		}
	}
	for document, reason := range map[string]string{"{}": "{} names no leader", "[]": "cannot unmarshal", "": "unexpected end"} {
		f.nodes[leaderNode] = document
		if _, err := c.Leader(t.Context()); !errors.Is(err, admin.BadAnswer) || !strings.Contains(err.Error(), reason) {
			t.Errorf("leader %q: %v", document, err)
		}
	}
	f.nodes[leaderNode] = `{"serviceUrl":"http://10.0.0.1:8080"}`
	if leader, err := c.Leader(t.Context()); err != nil || leader != "10.0.0.1:8080" {
		t.Errorf("leader before Pulsar 3: %q, %v", leader, err)
	}
}
