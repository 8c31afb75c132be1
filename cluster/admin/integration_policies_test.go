//go:build integration

package admin_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/pulsar-client-go/pulsaradmin/pkg/utils"

	"github.com/ballast-lb/ballast/policy"
)

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
