package extensible

import (
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// BrokerIsolationPoliciesFilter keeps brokers that the isolation policy of the bundle's namespace allows or, without one,
// shared brokers that serve its kind of topics. A namespace whose policies are not known may go nowhere.
type BrokerIsolationPoliciesFilter struct{}

// Name implements Filter.
func (BrokerIsolationPoliciesFilter) Name() string { return "BrokerIsolationPoliciesFilter" }

// PerBundle implements Filter.
func (BrokerIsolationPoliciesFilter) PerBundle() bool { return true }

// Keep implements Filter.
func (BrokerIsolationPoliciesFilter) Keep(c *Cycle, bundle string, candidates []int) ([]int, error) {
	view, index := c.policies()
	verdict := view.Allowed(policy.NamespaceOf(bundle), !c.nonPersistent(bundle))
	left := candidates[:0]
	for _, i := range candidates {
		k := index[i]
		if k >= 0 && verdict.Brokers[k].Allowed {
			left = append(left, i)
		} else if c.Left != nil && k >= 0 {
			c.Left(i, plan.FromPolicy(verdict.Why(k)))
		}
	}
	return left, nil
}

func (c *Cycle) nonPersistent(bundle string) bool {
	i := c.Snap.BundleIndex(bundle)
	return i >= 0 && c.Snap.Bundles[i].NonPersistent
}

// AntiAffinityGroupPolicyFilter keeps, for a bundle of a namespace with an anti-affinity group, the brokers that own the
// fewest bundles of the group; with failureDomainsEnabled first those in the domains that own the fewest.
type AntiAffinityGroupPolicyFilter struct{ Options Options }

// Name implements Filter.
func (AntiAffinityGroupPolicyFilter) Name() string { return "AntiAffinityGroupPolicyFilter" }

// PerBundle implements Filter.
func (AntiAffinityGroupPolicyFilter) PerBundle() bool { return true }

// Keep implements Filter.
func (f AntiAffinityGroupPolicyFilter) Keep(c *Cycle, bundle string, candidates []int) ([]int, error) {
	group := c.Snap.Policies.Group(policy.NamespaceOf(bundle))
	if group == "" || len(candidates) == 0 {
		return candidates, nil
	}
	counts := c.count(group, f.Options.AntiAffinityByNamespace)
	if c.Snap.Settings.FailureDomainsEnabled {
		candidates = c.leastDomains(candidates, counts)
	}
	least := counts[candidates[0]]
	for _, i := range candidates {
		least = min(least, counts[i])
	}
	left := candidates[:0]
	for _, i := range candidates {
		if counts[i] == least {
			left = append(left, i)
		} else if c.Left != nil {
			c.Left(i, plan.FromPolicy(policy.BrokerHasMore.Because(policy.S("broker", c.Snap.Brokers[i].ID),
				policy.N("count", counts[i]), policy.N("least", least))))
		}
	}
	return left, nil
}

// leastDomains keeps the candidates in the failure domains that have the fewest of a group.
func (c *Cycle) leastDomains(candidates, counts []int) []int {
	domains := c.domainNumbers()
	clear(c.sums)
	for _, i := range candidates {
		c.sums[domains[i]] += counts[i]
	}
	least := c.sums[domains[candidates[0]]]
	for _, i := range candidates {
		least = min(least, c.sums[domains[i]])
	}
	left := candidates[:0]
	for _, i := range candidates {
		if sum := c.sums[domains[i]]; sum == least {
			left = append(left, i)
		} else if c.Left != nil {
			id := c.Snap.Brokers[i].ID
			c.Left(i, plan.FromPolicy(policy.DomainHasMore.Because(policy.S("broker", id),
				policy.S("domain", c.Snap.Policies.Domain(id)), policy.N("count", sum), policy.N("least", least))))
		}
	}
	return left
}

func (c *Cycle) domainNumbers() []int {
	if c.domains == nil {
		numbers := make(map[string]int)
		c.domains = make([]int, len(c.Snap.Brokers))
		for i := range c.Snap.Brokers {
			name := c.Snap.Policies.Domain(c.Snap.Brokers[i].ID)
			if _, ok := numbers[name]; !ok {
				numbers[name] = len(numbers)
			}
			c.domains[i] = numbers[name]
		}
		c.sums = make([]int, len(numbers))
	}
	return c.domains
}

// count is, by index of a broker, how many bundles (or namespaces) of an anti-affinity group it owns.
func (c *Cycle) count(group string, namespaces bool) []int {
	if counts, ok := c.groups[group]; ok {
		return counts
	}
	counts := make([]int, len(c.Snap.Brokers))
	seen := make(map[[2]string]bool)
	for i := range c.Snap.Bundles {
		b := &c.Snap.Bundles[i]
		if b.Owner == "" || b.State != event.Owned && b.State != "" || c.Snap.Policies.Group(b.Namespace) != group {
			continue
		}
		broker := c.Snap.BrokerIndex(b.Owner)
		place := [2]string{b.Owner, b.Namespace}
		if broker < 0 || namespaces && seen[place] {
			continue
		}
		if namespaces {
			seen[place] = true
		}
		counts[broker]++
	}
	if c.groups == nil {
		c.groups = make(map[string][]int)
	}
	c.groups[group] = counts
	return counts
}
