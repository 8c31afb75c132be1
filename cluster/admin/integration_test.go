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
)

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
