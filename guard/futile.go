package guard

import (
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Moves that lead nowhere, or apart from what anti-affinity wants.
var (
	Futile       = plan.Code{ID: "GUARD_FUTILE", Template: "only {source} itself would take the bundle back: {why}"}
	Closer       = plan.Code{ID: "GUARD_ANTI_AFFINITY", Template: "{destination} would have {there} more of anti-affinity group {group}, {source} keeps {here}"}
	CloserDomain = plan.Code{ID: "GUARD_ANTI_AFFINITY_DOMAIN", Template: "failure domain {to} would have {there} more of anti-affinity group {group}, {from} keeps {here}"}
)

// futile: something must come of it. A transfer must not bring members of an anti-affinity group together; an unload without a
// destination must leave the load manager of the cluster another choice than its source.
func (c *check) futile(d *plan.Decision) (plan.Reason, bool) {
	switch {
	case d.Action != plan.Transfer && d.Action != plan.Unload:
		return pass()
	case d.Destination == d.Source:
		return Futile.Because(plan.S("source", d.Source), plan.S("why", "it is the destination")), true
	case d.Destination != "":
		return c.closer(d)
	}
	return c.back(d)
}

// closer: the destination must not have more of the bundle's anti-affinity group than stays behind on the source.
// Pulsar: LoadManagerShared.shouldAntiAffinityNamespaceUnload.
func (c *check) closer(d *plan.Decision) (plan.Reason, bool) {
	group, counts := c.group(d)
	from, to := c.snap.BrokerIndex(d.Source), c.snap.BrokerIndex(d.Destination)
	if counts == nil || from < 0 || to < 0 {
		return pass()
	}
	if a, b := c.snap.Policies.Domain(d.Source), c.snap.Policies.Domain(d.Destination); a != b && c.byDomain() {
		here, there := 0, 0
		for i, n := range counts {
			switch c.snap.Policies.Domain(c.snap.Brokers[i].ID) {
			case a:
				here += n
			case b:
				there += n
			}
		}
		if there > here {
			return CloserDomain.Because(plan.S("from", a), plan.S("to", b), plan.S("group", group), plan.N("here", here), plan.N("there", there)), true
		}
	}
	if counts[to] > counts[from] {
		return Closer.Because(plan.S("source", d.Source), plan.S("destination", d.Destination), plan.S("group", group),
			plan.N("here", counts[from]), plan.N("there", counts[to])), true
	}
	return pass()
}

// back: what the load manager filters candidates by must leave another broker than the source.
// Pulsar: LoadManagerShared.filterAntiAffinityGroupOwnedBrokers and removeMostServicingBrokersForNamespace.
func (c *check) back(d *plan.Decision) (plan.Reason, bool) {
	candidates, why := c.mayTake(d), "no other broker may"
	if _, counts := c.group(d); counts != nil && c.policies != nil {
		candidates = c.policies.AntiAffinity(candidates, counts, c.byDomain(), nil)
		why = "all others have more of its anti-affinity group"
	}
	if c.modular && c.snap.Settings.LoadBalancerDistributeBundlesEvenlyEnabled {
		counts := make([]int, len(c.snap.Brokers))
		c.tally(counts, event.NamespaceOf(d.Bundle), d, false)
		if left := least(candidates, counts); len(left) < len(candidates) {
			candidates, why = left, "all others serve more bundles of the namespace (loadBalancerDistributeBundlesEvenlyEnabled)"
		}
	}
	for _, i := range candidates {
		if c.snap.Brokers[i].ID != d.Source {
			return pass()
		}
	}
	return Futile.Because(plan.S("source", d.Source), plan.S("why", why)), true
}

// least keeps the candidates with the least count.
func least(candidates, counts []int) []int {
	var out []int
	for _, i := range candidates {
		if len(out) > 0 && counts[i] < counts[out[0]] {
			out = out[:0]
		}
		if len(out) == 0 || counts[i] == counts[out[0]] {
			out = append(out, i)
		}
	}
	return out
}

func (c *check) byDomain() bool {
	return c.snap.Settings == nil || c.snap.Settings.FailureDomainsEnabled
}

// isModular says whether the Modular load manager runs.
func isModular(snap *cluster.Snapshot) bool {
	return snap.Settings != nil && strings.Contains(strings.ToLower(snap.Settings.LoadManagerClassName), "modular")
}

// places say who has how much of what anti-affinity and even distribution count, once everything that was let through is done.
type places struct {
	namespaces map[string]map[int]int // namespace -> index of broker -> bundles
	groups     map[string][]string    // anti-affinity group -> namespaces
}

// place counts the bundles once a cycle, and only if some decision asks.
func (c *check) place() *places {
	if c.places != nil {
		return c.places
	}
	p := &places{namespaces: map[string]map[int]int{}, groups: map[string][]string{}}
	for i := range c.snap.Bundles {
		b := &c.snap.Bundles[i]
		p.add(b.Namespace, c.snap.BrokerIndex(c.owner(b)), 1)
	}
	for ns := range p.namespaces {
		if g := c.snap.Policies.Group(ns); g != "" {
			p.groups[g] = append(p.groups[g], ns)
		}
	}
	c.places = p
	return p
}

func (p *places) add(namespace string, broker, n int) {
	at := p.namespaces[namespace]
	if at == nil {
		at = map[int]int{}
		p.namespaces[namespace] = at
	}
	at[broker] += n
}

// group is the anti-affinity group of a bundle and how much of it each broker has without this bundle; nil = it has none. The
// Modular load manager counts namespaces, the Extensible one bundles.
func (c *check) group(d *plan.Decision) (string, []int) {
	g := c.snap.Policies.Group(event.NamespaceOf(d.Bundle))
	if g == "" {
		return "", nil
	}
	counts := make([]int, len(c.snap.Brokers))
	for _, ns := range c.place().groups[g] {
		c.tally(counts, ns, d, c.modular)
	}
	return g, counts
}

// tally adds what each broker has of a namespace, without the bundle that the decision is about: its bundles, or once if it has any.
func (c *check) tally(counts []int, namespace string, d *plan.Decision, once bool) {
	without := -1
	if i := c.snap.BundleIndex(d.Bundle); i >= 0 && c.snap.Bundles[i].Namespace == namespace {
		without = c.snap.BrokerIndex(c.owner(&c.snap.Bundles[i]))
	}
	for broker, n := range c.place().namespaces[namespace] {
		if broker == without {
			n--
		}
		switch {
		case broker < 0 || n <= 0:
		case once:
			counts[broker]++
		default:
			counts[broker] += n
		}
	}
}

// owner is who has a bundle once everything that was let through is done.
func (c *check) owner(b *cluster.Bundle) string {
	if to, ok := c.owners[b.Name]; ok {
		return to
	}
	return b.Owner
}
