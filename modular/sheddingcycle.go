package modular

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Why a cycle did nothing at all.
var (
	// Disabled: loadBalancerEnabled or loadBalancerSheddingEnabled is off.
	Disabled = plan.Code{ID: "DISABLED", Template: "{key} is false"}
	// TooFewBrokers: there is no other broker to move anything to.
	TooFewBrokers = plan.Code{ID: "TOO_FEW_BROKERS", Template: "{brokers} registered brokers, at least 2 are needed"}
	// AllDropped: the strategy selected bundles, but none of them can leave.
	AllDropped = plan.Code{ID: "ALL_PROPOSALS_DROPPED", Template: "none of {proposals} selected bundles can leave"}
	// Moving: bundles leave.
	Moving = plan.Code{ID: "MOVING", Template: "{bundles} of {proposals} selected bundles leave {brokers} brokers"}
)

// Why a bundle that the strategy selected is not unloaded.
var (
	// NamespaceExcluded: the namespace is in loadBalancerSheddingExcludedNamespaces.
	NamespaceExcluded = plan.Code{ID: "NAMESPACE_EXCLUDED", Template: "{namespace} is in loadBalancerSheddingExcludedNamespaces"}
	// NoOtherBroker: policies allow no other broker.
	NoOtherBroker = plan.Code{ID: "NO_OTHER_BROKER_ALLOWED", Template: "no other broker may take {namespace}"}
	// AntiAffinityEven: moving the bundle would put two namespaces of a group onto one broker.
	AntiAffinityEven = plan.Code{ID: "ANTI_AFFINITY_EVEN", Template: "all {candidates} candidates have {least} namespaces of the anti-affinity group, this broker {current}"}
	// BackToSource: the only sensible destination is the broker that the bundle is on.
	BackToSource = plan.Code{ID: "FUTILE", Template: "the chosen destination is {broker}, where the bundle is"}
	// NoReceiver: every broker that could take the bundle is overloaded (Options.NeedReceiver).
	NoReceiver = plan.Code{ID: "NO_RECEIVER", Template: "all {brokers} brokers that could take the bundle are above the overload threshold {threshold}"}
)

// Shed implements plan.Manager: one shedding cycle of the leader. Every decision is a transfer to the broker that the
// placement strategy chose. Pulsar: doLoadShedding.
func (m *Manager) Shed(snap *cluster.Snapshot, state plan.State, rnd plan.Rand, trace *plan.Trace) (plan.Plan, plan.State) {
	st := stateOf(state)
	if why, skip := m.idle(snap, snap.Settings.LoadBalancerSheddingEnabled, "loadBalancerSheddingEnabled"); skip {
		return plan.Plan{At: snap.Now, Outcome: why}, st
	}
	st = st.next()
	st.forgetUnloads(snap.Now, snap.Settings.LoadBalancerSheddingGracePeriodMinutes)
	p, next := m.Shedder.Shed(snap, st, trace)
	if n, ok := next.(*State); ok && n != nil { // a strategy without memory may return nothing
		st = n
	}
	c := cycle{m: m, snap: snap, st: st, rnd: rnd, trace: trace}
	p = c.run(p)
	st.Avg.Plan = nil
	return p, st
}

// idle says whether a cycle has nothing to do, and why.
func (m *Manager) idle(snap *cluster.Snapshot, enabled bool, key string) (plan.Reason, bool) {
	switch {
	case !snap.Settings.LoadBalancerEnabled:
		return Disabled.Because(plan.S("key", "loadBalancerEnabled")), true
	case !enabled:
		return Disabled.Because(plan.S("key", key)), true
	case len(snap.Brokers) <= 1:
		return TooFewBrokers.Because(plan.N("brokers", len(snap.Brokers))), true
	}
	return plan.Reason{}, false
}

// forgetUnloads drops the unloads whose grace period is over.
func (st *State) forgetUnloads(now, graceMinutes int64) {
	for b, at := range st.RecentlyUnloaded {
		if at < now-minutes(graceMinutes) {
			delete(st.RecentlyUnloaded, b)
		}
	}
}

// minutes is minutes in ms, saturating as Java's TimeUnit does.
func minutes(n int64) int64 {
	switch {
	case n > math.MaxInt64/60000:
		return math.MaxInt64
	case n < math.MinInt64/60000:
		return math.MinInt64
	}
	return n * 60000
}

// cycle is the part of a shedding cycle that follows the strategy.
type cycle struct {
	m     *Manager
	snap  *cluster.Snapshot
	st    *State
	rnd   plan.Rand
	trace *plan.Trace
}

// run finds a destination for every bundle that the strategy selected and drops those that cannot leave.
func (c *cycle) run(p plan.Plan) plan.Plan {
	proposals := p.Decisions
	saved, assigned := c.st.Preallocated, c.st.Assigned
	if c.m.Options.CountPlanned {
		c.st.Preallocated, c.st.Assigned = saved.Clone(), nil
	}
	p.Decisions = make([]plan.Decision, 0, len(proposals))
	sources := make(map[string]bool)
	for _, d := range proposals {
		if c.settle(&d) {
			p.Decisions = append(p.Decisions, d)
			sources[d.Source] = true
		}
	}
	if c.m.Options.CountPlanned {
		c.st.Preallocated, c.st.Assigned, c.st.view = saved, assigned, nil
	}
	switch n := len(p.Decisions); {
	case n > 0:
		p.Outcome = Moving.Because(plan.N("bundles", n), plan.N("proposals", len(proposals)), plan.N("brokers", len(sources)))
	case len(proposals) > 0:
		p.Outcome = AllDropped.Because(plan.N("proposals", len(proposals)))
	}
	return p
}

// settle gives a proposal its destination. It is false if the bundle cannot leave.
func (c *cycle) settle(d *plan.Decision) bool {
	ns := namespaceOf(c.snap, d.Bundle)
	if slices.Contains(c.snap.Settings.LoadBalancerSheddingExcludedNamespaces, ns) {
		return c.drop(d, func() plan.Reason { return NamespaceExcluded.Because(plan.S("namespace", ns)) })
	}
	ch := c.m.choice(c.snap, c.st, d.Bundle, c.trace)
	if why, ok := ch.mayLeave(d.Source); !ok {
		return c.drop(d, func() plan.Reason { return why })
	}
	if c.m.Options.NeedReceiver {
		if why, ok := ch.hasReceiver(d.Source); !ok {
			return c.drop(d, func() plan.Reason { return why })
		}
	}
	c.st.learn(c.snap, d.Bundle)
	i, why := ch.broker(c.rnd)
	switch {
	case i < 0:
		return c.drop(d, func() plan.Reason { return why })
	case c.snap.Brokers[i].ID == d.Source:
		return c.drop(d, func() plan.Reason { return BackToSource.Because(plan.S("broker", d.Source)) })
	}
	d.Action, d.Destination = plan.Transfer, c.snap.Brokers[i].ID
	if c.m.Options.CountPlanned {
		c.st.preallocate(c.snap, d.Bundle, i, ch.data)
	}
	return true
}

// drop records why a proposal is dropped. It is always false.
func (c *cycle) drop(d *plan.Decision, why func() plan.Reason) bool {
	if c.trace != nil {
		c.trace.Skip(d.Bundle, d.Source, "", why())
	}
	return false
}

// mayLeave says whether policies let a bundle leave a broker: another broker may take it, and anti-affinity does not get
// worse. Pulsar: shouldNamespacePoliciesUnload and shouldAntiAffinityNamespaceUnload.
func (c *choice) mayLeave(source string) (plan.Reason, bool) {
	verdict := c.policies.Allowed(c.namespace, c.kind)
	if !verdict.Frozen.IsZero() {
		return policyReason(verdict.Frozen), false
	}
	if !verdict.Others(source) {
		return NoOtherBroker.Because(plan.S("namespace", c.namespace)), false
	}
	counts, some := c.groupCounts()
	if !some {
		return plan.Reason{}, true
	}
	return c.antiAffinityAllows(source, verdict, counts)
}

func (c *choice) antiAffinityAllows(source string, verdict policy.Verdict, counts []int) (plan.Reason, bool) {
	allowed := verdict.Candidates()
	least, current := 0, 0
	for k, i := range allowed {
		if k == 0 || counts[i] < least {
			least = counts[i]
		}
		if c.snap.Brokers[i].ID == source {
			current = counts[i]
		}
	}
	uneven := slices.ContainsFunc(allowed, func(i int) bool { return counts[i] != least })
	if len(allowed) > 0 && (least == 0 || current > least || uneven) {
		return plan.Reason{}, true
	}
	return AntiAffinityEven.Because(plan.N("candidates", len(allowed)), plan.N("least", least), plan.N("current", current)), false
}

// hasReceiver says whether a broker that may take the bundle, other than its own, is not overloaded.
func (c *choice) hasReceiver(source string) (plan.Reason, bool) {
	w, threshold, n := load.WeightsOf(c.snap.Settings), overloadThreshold(c.snap), 0
	for _, i := range c.allowed() {
		b := &c.snap.Brokers[i]
		if b.ID == source || b.Local == nil {
			continue
		}
		if load.LocalWeightedMaxUsage(b.Local, &w) <= threshold {
			return plan.Reason{}, true
		}
		n++
	}
	return NoReceiver.Because(plan.N("brokers", n), plan.N("threshold", threshold)), false
}
