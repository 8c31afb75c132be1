package modular

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Why a broker is not a candidate for a bundle.
var (
	// TopicLimit: the broker would have more than loadBalancerBrokerMaxTopics topics.
	TopicLimit = plan.Code{ID: "TOPIC_LIMIT", Template: "{topics} topics, {assigned} of them just assigned, > loadBalancerBrokerMaxTopics {limit}"}
	// MoreOfNamespace: other candidates serve fewer bundles of the namespace.
	MoreOfNamespace = plan.Code{ID: "MORE_BUNDLES_OF_NAMESPACE", Template: "{bundles} bundles of {namespace}, the least is {least} (loadBalancerDistributeBundlesEvenlyEnabled)"}
	// OtherLoadManager: the broker runs another load manager.
	OtherLoadManager = plan.Code{ID: "OTHER_LOAD_MANAGER", Template: "load manager {class} is not {configured}"}
	// OlderVersion: the broker has an older version and preferLaterVersions is set.
	OlderVersion = plan.Code{ID: "OLDER_VERSION", Template: "version {version} is not the latest (preferLaterVersions)"}
	// FiltersUndone: the filters left nothing, so all that policies allow are candidates again.
	FiltersUndone = plan.Code{ID: "FILTERS_UNDONE", Template: "filters left no candidate: all {candidates} that policies allow are candidates again"}
	// FiltersFailed: a filter could not decide, so all that policies allow are candidates again.
	FiltersFailed = plan.Code{ID: "FILTERS_FAILED", Template: "{error}: all {candidates} that policies allow are candidates again"}
)

// choice is one search for a broker for a bundle.
type choice struct {
	m         *Manager
	snap      *cluster.Snapshot
	st        *State
	view      *view
	policies  *policy.View
	bundle    string
	namespace string
	kind      bool // persistent topics
	data      *event.BundleData
	trace     *plan.Trace
}

func (m *Manager) choice(snap *cluster.Snapshot, st *State, bundle string, trace *plan.Trace) *choice {
	c := &choice{m: m, snap: snap, st: st, view: st.viewOf(snap), bundle: bundle, namespace: namespaceOf(snap, bundle), kind: true, trace: trace}
	c.policies = c.view.policiesOf(m.Options.CheckTopicKinds)
	i := snap.BundleIndex(bundle)
	if i >= 0 {
		c.kind = !snap.Bundles[i].NonPersistent
	}
	c.data = dataOf(snap, st, bundle)
	return c
}

// policyReason is a reason of package policy as one of package plan.
func policyReason(r policy.Reason) plan.Reason {
	out := plan.Reason{Code: r.Code, Text: r.Text}
	for _, n := range r.Numbers {
		out.Numbers = append(out.Numbers, plan.Number(n))
	}
	return out
}

// drop records why a broker is no candidate. why is called only if there is a trace.
func (c *choice) drop(broker int, why func() plan.Reason) {
	leave(c.trace, c.bundle, &c.snap.Brokers[broker], why)
}

// allowed is the brokers that policies allow, in order.
func (c *choice) allowed() []int {
	verdict := c.policies.Allowed(c.namespace, c.kind)
	out := c.st.scratch.policy[:0]
	for i := range verdict.Brokers {
		if verdict.Brokers[i].Allowed {
			out = append(out, i)
		}
	}
	c.st.scratch.policy = out
	return out
}

// explainPolicies records which brokers policies do not allow.
func (c *choice) explainPolicies() {
	if c.trace == nil {
		return
	}
	verdict := c.policies.Allowed(c.namespace, c.kind)
	for i := range verdict.Brokers {
		if why := verdict.Why(i); !why.IsZero() {
			c.trace.Skip(c.bundle, c.snap.Brokers[i].ID, "", policyReason(why))
		}
	}
}

// candidates is the brokers that pass all filters; if there is none, those that policies allow.
func (c *choice) candidates() []int {
	allowed := c.allowed()
	c.explainPolicies()
	left := append(c.st.scratch.candidates[:0], allowed...)
	c.st.scratch.candidates = left
	left = c.belowTopicLimit(left)
	left = c.antiAffinity(left)
	left = c.evenly(left)
	left = c.sameClass(left)
	left, err := c.latest(left)
	switch {
	case err != nil:
		c.note(FiltersFailed, plan.S("error", err.Error()), plan.N("candidates", len(allowed)))
		return allowed
	case len(left) == 0 && len(allowed) > 0:
		c.note(FiltersUndone, plan.N("candidates", len(allowed)))
		return allowed
	}
	return left
}

// note records something about the bundle as a whole.
func (c *choice) note(code plan.Code, numbers ...plan.Number) {
	if c.trace != nil {
		c.trace.Skip(c.bundle, "", "", code.Because(numbers...))
	}
}

// belowTopicLimit keeps the brokers that stay within loadBalancerBrokerMaxTopics, all if none does.
// Pulsar: LoadManagerShared.filterBrokersWithLargeTopicCount.
func (c *choice) belowTopicLimit(candidates []int) []int {
	limit := c.snap.Settings.LoadBalancerBrokerMaxTopics
	within := func(i int) bool { topics, _ := c.topics(i); return topics <= limit }
	if !slices.ContainsFunc(candidates, within) {
		return candidates
	}
	return c.keep(candidates, within, func(i int) plan.Reason {
		topics, assigned := c.topics(i)
		return TopicLimit.Because(plan.N("topics", topics), plan.N("assigned", assigned), plan.N("limit", limit))
	})
}

// topics is a broker's topics and how many of them were just assigned; an unknown broker has none.
func (c *choice) topics(broker int) (all, assigned int64) {
	b := &c.snap.Brokers[broker]
	if b.Local == nil {
		return 0, 0
	}
	if p := c.st.Preallocated.Get(broker, b.ID); p != nil {
		assigned = p.topics()
	}
	return b.Local.NumTopics + assigned, assigned
}

// keep drops, in place, the candidates that do not pass.
func (c *choice) keep(candidates []int, pass func(int) bool, why func(int) plan.Reason) []int {
	left := candidates[:0]
	for _, i := range candidates {
		if pass(i) {
			left = append(left, i)
		} else {
			c.drop(i, func() plan.Reason { return why(i) })
		}
	}
	return left
}

// antiAffinity keeps the brokers that have the fewest namespaces of the namespace's anti-affinity group.
// Pulsar: LoadManagerShared.filterAntiAffinityGroupOwnedBrokers.
func (c *choice) antiAffinity(candidates []int) []int {
	counts, _ := c.groupCounts()
	if counts == nil || len(candidates) == 0 {
		return candidates
	}
	var left func(int, policy.Reason)
	if c.trace != nil {
		left = func(i int, why policy.Reason) { c.drop(i, func() plan.Reason { return policyReason(why) }) }
	}
	return c.policies.AntiAffinity(candidates, counts, c.snap.Settings.FailureDomainsEnabled, left)
}

// groupCounts is how many namespaces of the namespace's anti-affinity group each broker serves, this one included, and
// whether any broker serves one. It is nil if the namespace is in no group.
func (c *choice) groupCounts() (counts []int, some bool) {
	group := c.snap.Policies.Group(c.namespace)
	if group == "" {
		return nil, false
	}
	counts = c.zeroes()
	for ns, list := range c.view.namespaces {
		if c.snap.Policies.Group(ns) != group {
			continue
		}
		for _, s := range list {
			counts[s.broker]++
			some = true
		}
	}
	return counts, some
}

// zeroes is a count per broker, held in the state's scratch memory.
func (c *choice) zeroes() []int {
	counts := slices.Grow(c.st.scratch.counts[:0], len(c.snap.Brokers))[:len(c.snap.Brokers)]
	clear(counts)
	c.st.scratch.counts = counts
	return counts
}

// evenly keeps the brokers that serve the fewest bundles of the namespace.
// Pulsar: LoadManagerShared.removeMostServicingBrokersForNamespace.
func (c *choice) evenly(candidates []int) []int {
	if !c.snap.Settings.LoadBalancerDistributeBundlesEvenlyEnabled && c.namespace != systemNamespace {
		return candidates
	}
	if len(candidates) == 0 {
		return candidates
	}
	counts := c.zeroes()
	for _, s := range c.view.namespaces[c.namespace] {
		counts[s.broker] = s.n
	}
	least := counts[candidates[0]]
	for _, i := range candidates {
		least = min(least, counts[i])
	}
	return c.keep(candidates, func(i int) bool { return counts[i] <= least }, func(i int) plan.Reason {
		return MoreOfNamespace.Because(plan.N("bundles", counts[i]), plan.S("namespace", c.namespace), plan.N("least", least))
	})
}

// systemNamespace is always distributed evenly.
const systemNamespace = "pulsar/system"

// sameClass drops the brokers that report another load manager. Pulsar: BrokerLoadManagerClassFilter.
func (c *choice) sameClass(candidates []int) []int {
	configured := loadManagerClass(c.snap.Settings.LoadManagerClassName)
	return c.keep(candidates, func(i int) bool {
		d := c.snap.Brokers[i].Local
		return d == nil || d.LoadManagerClassName == configured
	}, func(i int) plan.Reason {
		class := c.snap.Brokers[i].Local.LoadManagerClassName
		if class == "" {
			class = "(none)"
		}
		return OtherLoadManager.Because(plan.S("class", class), plan.S("configured", configured))
	})
}

// latest keeps the brokers of the latest version.
func (c *choice) latest(candidates []int) ([]int, error) {
	left, err := LatestVersion(c.snap, candidates)
	if err != nil || len(left) == len(candidates) || c.trace == nil {
		return left, err
	}
	for _, i := range candidates {
		if !slices.Contains(left, i) {
			c.drop(i, func() plan.Reason {
				return OlderVersion.Because(plan.S("version", c.snap.Brokers[i].Local.BrokerVersionString))
			})
		}
	}
	return left, nil
}
