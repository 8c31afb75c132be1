//go:build integration

package admin_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	pulsar "github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin"
	adminauth "github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/auth"
	adminconfig "github.com/apache/pulsar-client-go/pulsaradmin/pkg/admin/config"
	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/policy"
)

var _ control.Cluster = (*admin.Client)(nil)

// real is a cluster of real brokers with a tenant of the test's own.
type real struct {
	*testing.T
	client  *admin.Client
	library pulsar.Client
	name    string
	brokers []string
	tenant  string
}

// newReal connects to the cluster that BALLAST_TEST_ADMIN_URL names. It needs two brokers or more, best on host names of
// their own; what the test makes there it removes again.
func newReal(t *testing.T) *real {
	address := os.Getenv("BALLAST_TEST_ADMIN_URL")
	if address == "" {
		t.Skip("BALLAST_TEST_ADMIN_URL is not set: want the web service address of a cluster that may be changed")
	}
	client, err := admin.New(admin.Options{URLs: []string{address}})
	must(t, err)
	t.Cleanup(func() { must(t, client.Close()) })
	first, _, _ := strings.Cut(address, ",")
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	library, err := pulsar.NewPulsarClientWithAuthProvider(&adminconfig.Config{WebServiceURL: first}, adminauth.NewDefaultProvider(transport))
	must(t, err)
	r := &real{T: t, client: client, library: library, tenant: fmt.Sprintf("ballast-admin-%d", time.Now().UnixNano()%1e9)}
	r.name, err = client.Name(r.ctx())
	must(t, err)
	r.brokers, err = client.BrokerIDs(r.ctx())
	must(t, err)
	must(t, library.Tenants().Create(utils.TenantData{Name: r.tenant, AllowedClusters: []string{r.name}}))
	t.Cleanup(func() { must(t, library.Tenants().Delete(r.tenant)) })
	return r
}

func (r *real) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	r.Cleanup(cancel)
	return ctx
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *real) isKind(err error, kind admin.Kind) {
	r.Helper()
	var e *admin.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		r.Errorf("%v: want %s", err, kind)
	}
}

// namespace makes a namespace with so many bundles, and a topic in each.
func (r *real) namespace(name string, bundles int) string {
	ns := r.tenant + "/" + name
	must(r.T, r.library.Namespaces().CreateNsWithPolices(ns, utils.Policies{
		Bundles: utils.NewBundlesDataWithNumBundles(bundles), ReplicationClusters: []string{r.name}}))
	r.Cleanup(func() {
		var err error
		for range 20 { // a namespace cannot be deleted while a bundle of it moves
			if err = r.forceDelete(ns); err == nil || errors.Is(err, admin.NotFound) {
				return
			}
			time.Sleep(500 * time.Millisecond)
		}
		r.Errorf("delete %s: %v", ns, err)
	})
	return ns
}

func (r *real) forceDelete(ns string) error {
	_, topics, err := r.library.Topics().List(*mustNamespace(r.T, ns))
	if err != nil {
		return err
	}
	for _, t := range topics {
		name, err := utils.GetTopicName(t)
		if err != nil {
			return err
		}
		if err := r.library.Topics().Delete(*name, true, true); err != nil {
			return err
		}
	}
	return r.library.Namespaces().DeleteNamespace(ns)
}

func mustNamespace(t testing.TB, ns string) *utils.NameSpaceName {
	n, err := utils.GetNamespaceName(ns)
	must(t, err)
	return n
}

// topic makes a topic and gives its bundle.
func (r *real) topic(name string) (bundle string) {
	n, err := utils.GetTopicName(name)
	must(r.T, err)
	must(r.T, r.library.Topics().Create(*n, 0))
	bundle, err = r.client.BundleOf(r.ctx(), name)
	must(r.T, err)
	r.lookup(name)
	return bundle
}

// lookup makes the cluster give a topic's bundle an owner. While the bundle moves look-ups may fail.
func (r *real) lookup(topic string) {
	for ctx := r.ctx(); ; {
		_, err := r.client.Lookup(ctx, topic)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			r.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// owner waits until a bundle has an owner.
func (r *real) owner(bundle string) string {
	r.Helper()
	for ctx := r.ctx(); ; {
		owner, err := r.client.OwnerOf(ctx, bundle)
		must(r.T, err)
		if owner != "" {
			return owner
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (r *real) other(broker string) string {
	for _, b := range r.brokers {
		if b != broker {
			return b
		}
	}
	r.Fatalf("want two brokers, have %v", r.brokers)
	return ""
}

func TestRealBrokers(t *testing.T) {
	r := newReal(t)
	brokers, silent, err := r.client.Answers(r.ctx())
	must(t, err)
	if len(silent) > 0 || len(brokers) != len(r.brokers) || len(brokers) < 2 {
		t.Fatalf("%d brokers, silent: %v", len(brokers), silent)
	}
	for i, b := range brokers {
		if b.ID != r.brokers[i] || b.Version == "" || !strings.HasPrefix(b.LoadManager, "org.apache.pulsar.") || !b.PersistentTopics || !b.NonPersistentTopics {
			t.Errorf("%+v", b)
		}
		must(t, r.client.Ready(r.ctx(), b.ID))
		must(t, r.client.Healthy(r.ctx(), b.ID))
	}
	leader, err := r.client.Leader(r.ctx())
	must(t, err)
	if !slices.Contains(r.brokers, leader) {
		t.Errorf("leader %q is none of %v", leader, r.brokers)
	}
	_, err = r.client.Owned(r.ctx(), "127.0.0.9:9")
	r.isKind(err, admin.NotFound)
	_, err = r.client.Version(r.ctx(), "127.0.0.9:9")
	r.isKind(err, admin.Unreachable)
}

func TestRealDynamicConfig(t *testing.T) {
	r := newReal(t)
	const key = "loadBalancerSheddingExcludedNamespaces"
	before, err := r.client.DynamicConfig(r.ctx())
	must(t, err)
	runtime, err := r.client.RuntimeConfig(r.ctx())
	must(t, err)
	names, err := r.client.DynamicConfigNames(r.ctx())
	must(t, err)
	if !slices.Contains(names, key) || slices.Contains(names, "loadBalancerEnabled") {
		t.Errorf("%d names", len(names))
	}
	if _, ok := before[key]; ok {
		t.Fatalf("%s is set on the cluster", key)
	}
	for _, value := range []string{"a/b", "a/b,c/d", "x y+%2F?#;=&", "..", "/a/", "[a]{\"x\":1}"} {
		must(t, r.client.SetDynamicConfig(r.ctx(), key, value))
		now, err := r.client.DynamicConfig(r.ctx())
		must(t, err)
		if now[key] != value {
			t.Errorf("set %q, got %q", value, now[key])
		}
	}
	must(t, r.client.DeleteDynamicConfig(r.ctx(), key))
	must(t, r.client.DeleteDynamicConfig(r.ctx(), key)) // once more is no error
	after, err := r.client.DynamicConfig(r.ctx())
	must(t, err)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Error(diff)
	}
	for { // brokers hear of it a little later
		now, err := r.client.RuntimeConfig(r.ctx())
		must(t, err)
		if now[key] == runtime[key] {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	r.isKind(r.client.SetDynamicConfig(r.ctx(), "loadBalancerEnabled", "false"), admin.Precondition)
	r.isKind(r.client.SetDynamicConfig(r.ctx(), "noSuchKey", "1"), admin.Precondition)
	r.isKind(r.client.DeleteDynamicConfig(r.ctx(), "noSuchKey"), admin.Precondition)
}

func TestRealUnload(t *testing.T) {
	r := newReal(t)
	ns := r.namespace("unload", 4)
	bundle := r.topic("persistent://" + ns + "/topic")
	owner := r.owner(bundle)
	config, err := r.client.RuntimeConfig(r.ctx())
	must(t, err)
	// Extensible load managers obey; for Modular ones a destination is a hint, which a repetition makes good; Simple ones ignore it.
	attempts := map[bool]int{true: 1, false: 20}[strings.Contains(config["loadManagerClassName"], "Extensible")]
	if strings.Contains(config["loadManagerClassName"], "Simple") {
		attempts = 0
	}
	for range 3 {
		to := r.other(owner)
		for n := 0; n < attempts && owner != to; n++ {
			must(t, r.client.Unload(r.ctx(), bundle, to))
			r.lookup("persistent://" + ns + "/topic")
			owner = r.owner(bundle)
		}
		if attempts > 0 && owner != to {
			t.Errorf("the bundle is on %s, not on %s", owner, to)
		}
	}
	must(t, r.client.Unload(r.ctx(), bundle, ""))
	r.lookup("persistent://" + ns + "/topic")
	owner = r.owner(bundle)

	err = r.client.Unload(r.ctx(), bundle, "127.0.0.9:9")
	r.isKind(err, admin.Conflict)
	if e := new(admin.Error); !errors.As(err, &e) || !e.Refused() || e.Temporary {
		t.Errorf("%#v", e)
	}
	if again := r.owner(bundle); again != owner {
		t.Errorf("a refused unload moved the bundle from %s to %s", owner, again)
	}
	r.isKind(r.client.Unload(r.ctx(), ns+"/0x00000000_0x12345678", ""), admin.Precondition)
	r.isKind(r.client.Unload(r.ctx(), r.tenant+"/none/0x00000000_0xffffffff", ""), admin.NotFound)
}

func TestRealSplit(t *testing.T) {
	r := newReal(t)
	ns := r.namespace("split", 1)
	bundle := r.topic("persistent://" + ns + "/a")
	r.topic("persistent://" + ns + "/b")
	r.isKind(r.client.Split(r.ctx(), bundle, "no_such_algorithm", nil, false), admin.Precondition)
	must(t, r.client.Split(r.ctx(), bundle, "range_equally_divide", nil, false))
	want := []string{ns + "/0x00000000_0x7fffffff", ns + "/0x7fffffff_0xffffffff"}
	got, err := r.client.Bundles(r.ctx(), ns)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r.isKind(r.client.Split(r.ctx(), bundle, "", nil, false), admin.Precondition)
}

func TestRealSplitAtPositions(t *testing.T) {
	r := newReal(t)
	ns := r.namespace("positions", 1)
	bundle := r.topic("persistent://" + ns + "/a")
	r.topic("persistent://" + ns + "/b")
	must(t, r.client.Split(r.ctx(), bundle, "specified_positions_divide", []string{"0x20000000"}, false))
	got, err := r.client.Bundles(r.ctx(), ns)
	must(t, err)
	if diff := cmp.Diff([]string{ns + "/0x00000000_0x20000000", ns + "/0x20000000_0xffffffff"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRealNamespaces(t *testing.T) {
	r := newReal(t)
	ns := r.namespace("listed", 4)
	all, err := r.client.Namespaces(r.ctx())
	must(t, err)
	if !slices.Contains(all, ns) || !slices.Contains(all, "pulsar/system") {
		t.Errorf("%v", all)
	}
	bundles, err := r.client.Bundles(r.ctx(), ns)
	must(t, err)
	if want := []string{ns + "/0x00000000_0x40000000", ns + "/0x40000000_0x80000000", ns + "/0x80000000_0xc0000000", ns + "/0xc0000000_0xffffffff"}; !slices.Equal(want, bundles) {
		t.Errorf("%v", bundles)
	}
	_, err = r.client.Bundles(r.ctx(), r.tenant+"/none")
	r.isKind(err, admin.NotFound)
	if owner, err := r.client.OwnerOf(r.ctx(), bundles[0]); err != nil || owner != "" {
		t.Errorf("a bundle that nobody asked for: %q, %v", owner, err)
	}
	bundle := r.topic("persistent://" + ns + "/topic")
	owner := r.owner(bundle)
	owned, err := r.client.Owned(r.ctx(), owner)
	must(t, err)
	if !slices.Contains(owned, bundle) || !slices.IsSorted(owned) {
		t.Errorf("%v", owned)
	}
}

func TestRealPolicies(t *testing.T) {
	r := newReal(t)
	ns, odd, grouped := r.namespace("gold", 1), r.namespace("odd", 1), r.namespace("grouped", 1)
	hosts := func(broker string) string {
		return strings.ReplaceAll(broker[:strings.LastIndexByte(broker, ':')], ".", `\.`)
	}
	set, err := r.client.Policies(r.ctx())
	must(t, err)
	if set.HasPolicy(ns) || len(set.Policies()) > 0 {
		t.Fatalf("the cluster has policies: %v", set.Policies())
	}
	r.isolate("z-first", ns, hosts(r.brokers[0]))
	r.isolate("a-second", r.tenant+"/.*old", hosts(r.brokers[1]))
	must(t, r.library.Namespaces().SetNamespaceAntiAffinityGroup(grouped, "Gold"))
	domain := utils.FailureDomainData{ClusterName: r.name, DomainName: r.tenant, BrokerList: r.brokers[:1]}
	must(t, r.library.Clusters().CreateFailureDomain(domain))
	t.Cleanup(func() { must(t, r.library.Clusters().DeleteFailureDomain(domain)) })

	set, err = r.client.Policies(r.ctx())
	must(t, err)
	if p, ok, frozen := set.Isolation(ns); !ok || p.Name != "z-first" || p.AutoFailover.MinLimit != 1 || !frozen.IsZero() {
		t.Errorf("%+v, %v, %v: want the one that was made first", p, ok, frozen)
	}
	if set.HasPolicy(odd) || set.Group(grouped) != "gold" || set.Domain(r.brokers[0]) != r.tenant || len(set.Frozen()) > 0 {
		t.Errorf("%v %q %q %v", set.HasPolicy(odd), set.Group(grouped), set.Domain(r.brokers[0]), set.Frozen())
	}
	brokers, err := r.client.Brokers(r.ctx())
	must(t, err)
	var asked []policy.Broker
	for _, b := range brokers {
		asked = append(asked, policy.Broker{ID: b.ID, PersistentTopics: b.PersistentTopics, NonPersistentTopics: b.NonPersistentTopics})
	}
	for _, b := range set.Allowed(ns, asked, true).Brokers {
		if same := hosts(b.Broker) == hosts(r.brokers[0]); b.Allowed != same {
			t.Errorf("%s allowed: %v", b.Broker, b.Allowed)
		}
	}

	owner := r.owner(r.topic("persistent://" + ns + "/topic"))
	if hosts(owner) != hosts(r.brokers[0]) {
		t.Errorf("the cluster gave the namespace to %s, its first policy is for %s", owner, r.brokers[0])
	}

	// From Pulsar 5 on a pattern with a colon names one broker of several on a host; before it names none.
	ported := r.namespace("ported", 1)
	r.isolate("p-ported", ported, hosts(r.brokers[2])+r.brokers[2][strings.LastIndexByte(r.brokers[2], ':'):])
	set, err = r.client.Policies(r.ctx())
	must(t, err)
	withPort := set.Allowed(ported, asked, true)
	if strings.HasPrefix(brokers[0].Version, "4.") {
		if withPort.Policy != "p-ported" || len(withPort.Candidates()) > 0 {
			t.Errorf("%+v", withPort)
		}
	} else if owner := r.owner(r.topic("persistent://" + ported + "/topic")); owner != r.brokers[2] || !slices.Equal(withPort.Candidates(), []int{2}) {
		t.Errorf("%s has it, allowed are %v", owner, withPort.Candidates())
	}

	r.isolate("m-odd", "(?!pulsar/)"+odd, hosts(r.brokers[0])) // Java takes it, Go cannot compile it
	set, err = r.client.Policies(r.ctx())
	must(t, err)
	verdict := set.Allowed(odd, asked, true)
	if verdict.Frozen.IsZero() || len(verdict.Candidates()) > 0 || !set.HasPolicy(odd) || len(set.Frozen()) != 1 {
		t.Errorf("not frozen: %+v", verdict)
	}
	if v := set.Allowed(ns, asked, true); !v.Frozen.IsZero() {
		t.Errorf("a namespace with an earlier policy is frozen: %s", v.Frozen)
	}
}

// isolate makes an isolation policy that is removed at the end of the test.
func (r *real) isolate(name, namespaces, primary string) {
	data := utils.NamespaceIsolationData{
		Namespaces: []string{namespaces}, Primary: []string{primary}, Secondary: []string{"nobody"},
		AutoFailoverPolicy: utils.AutoFailoverPolicyData{PolicyType: utils.MinAvailable, Parameters: map[string]string{"min_limit": "1", "usage_threshold": "80"}},
	}
	must(r.T, r.library.NsIsolationPolicy().CreateNamespaceIsolationPolicy(r.name, name, data))
	r.Cleanup(func() { must(r.T, r.library.NsIsolationPolicy().DeleteNamespaceIsolationPolicy(r.name, name)) })
}

func TestRealLoad(t *testing.T) {
	r := newReal(t)
	ns := r.namespace("load", 4)
	bundle := r.topic("persistent://" + ns + "/topic")
	owner := r.owner(bundle)
	config, err := r.client.RuntimeConfigOf(r.ctx(), owner)
	must(t, err)
	report, err := r.client.LoadReport(r.ctx(), owner)
	switch class := config["loadManagerClassName"]; {
	case strings.Contains(class, "Extensible"):
		r.isKind(err, admin.Unsupported)
	case err != nil:
		t.Error(err)
	case strings.Contains(class, "Modular") && (report.Local == nil || report.Local.CPU.Limit <= 0),
		strings.Contains(class, "Simple") && (report.Simple == nil || report.Simple.Name != owner):
		t.Errorf("%s: %+v", class, report)
	}
	if strings.Contains(config["loadManagerClassName"], "Simple") {
		return // it has no such metrics
	}
	samples, err := r.client.Metrics(r.ctx(), owner, "pulsar_lb_cpu_usage", "process_start_time_seconds")
	must(t, err)
	if len(samples) != 2 {
		t.Errorf("%v", samples)
	}
	d, top, err := r.client.EstimateLoad(r.ctx(), owner)
	must(t, err)
	if d.CPU.Limit != 100 || d.CPU.Usage <= 0 || d.MaxResourceUsage <= 0 || d.WeightedMaxEMA <= 0 || d.UpdatedAt == 0 {
		t.Errorf("%+v, %d bundles", d, len(top))
	}
	topics, err := r.client.TopicStats(r.ctx(), owner) // renewed once a minute: the topic may not be there yet
	must(t, err)
	for _, s := range topics {
		if s.Topic == "persistent://"+ns+"/topic" && s.Bundle != bundle {
			t.Errorf("%+v, want bundle %s", s, bundle)
		}
	}
}
