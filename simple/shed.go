package simple

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Outcomes of a shedding cycle.
var (
	// Disabled: loadBalancerEnabled is off, so nothing is looked at.
	Disabled = plan.Code{ID: "DISABLED", Template: "{key} is false"}
	// DryRun: loadBalancerSheddingEnabled is off, so what would be shed is only marked as unloaded, as Pulsar does.
	DryRun = plan.Code{ID: "DRY_RUN", Template: "{key} is false: {bundles} bundles would be shed from {overloaded} overloaded brokers"}
	// NoReports: no broker has reported its load.
	NoReports = plan.Code{ID: "NO_REPORTS", Template: "none of {brokers} brokers has a load report"}
	// NoneOverloaded: no broker is above the overload threshold.
	NoneOverloaded = plan.Code{ID: "NONE_OVERLOADED", Template: "the fullest of {brokers} brokers uses {usage} % <= loadBalancerBrokerOverloadedThresholdPercentage {threshold}"}
	// NothingToShed: some are, but nothing can leave them.
	NothingToShed = plan.Code{ID: "NOTHING_TO_SHED", Template: "{overloaded} of {brokers} brokers are above the overload threshold {threshold} %, nothing can leave them"}
	// Shedding: bundles leave.
	Shedding = plan.Code{ID: "SHEDDING", Template: "{bundles} bundles leave {overloaded} overloaded of {brokers} brokers"}
)

// Why a bundle leaves a broker, or does not.
var (
	// Overloaded: the bundle is the heaviest of an overloaded broker.
	Overloaded = plan.Code{ID: "OVERLOADED", Template: "usage {usage} % > loadBalancerBrokerOverloadedThresholdPercentage {threshold}; heaviest bundle by {resource}; {receiver} is below loadBalancerBrokerComfortLoadLevelPercentage {comfort}"}
	// NotOverloaded: the broker is not.
	NotOverloaded = plan.Code{ID: "NOT_OVERLOADED", Template: "usage {usage} % <= loadBalancerBrokerOverloadedThresholdPercentage {threshold}"}
	// NoBundles: an overloaded broker reports no bundle.
	NoBundles = plan.Code{ID: "NO_BUNDLES", Template: "usage {usage} % > overload threshold {threshold}, but no bundle is reported"}
	// SoleBundle: an overloaded broker has one bundle, so there is nothing to choose.
	SoleBundle = plan.Code{ID: "SOLE_BUNDLE", Template: "{broker} uses {usage} % > overload threshold {threshold} and {bundle} is its only bundle: split it, or give its topics more partitions"}
	// NoReceiver: no broker that may take the namespace is below the comfort level.
	NoReceiver = plan.Code{ID: "NO_RECEIVER", Template: "none of {candidates} brokers that may take {namespace} is below loadBalancerBrokerComfortLoadLevelPercentage {comfort}"}
	// NotComfortable: a broker that may take it is not below the comfort level.
	NotComfortable = plan.Code{ID: "NOT_BELOW_COMFORT", Template: "usage {usage} % >= loadBalancerBrokerComfortLoadLevelPercentage {comfort}"}
	// InGracePeriod: the bundle was shed a short while ago.
	InGracePeriod = plan.Code{ID: "GRACE_PERIOD", Template: "shed {ago} ms ago, within loadBalancerSheddingGracePeriodMinutes {grace}"}
)

// shedding is one cycle.
type shedding struct {
	m          *Manager
	snap       *cluster.Snapshot
	st         *State
	trace      *plan.Trace
	reports    []report
	overloaded int
	fullest    float64
	decisions  []plan.Decision
	advice     []plan.LeftOut
}

// Shed implements plan.Manager: one cycle of the leader. From every broker above the overload threshold leaves the heaviest
// bundle of its scarcest resource, if some broker that may take the namespace is below the comfort level. Decisions have no
// destination: Simple brokers place bundles themselves and ignore one. Pulsar: doLoadShedding.
func (m *Manager) Shed(snap *cluster.Snapshot, state plan.State, _ plan.Rand, trace *plan.Trace) (plan.Plan, plan.State) {
	p := plan.Plan{Strategy: Name, At: snap.Now}
	st := m.ranked(snap, state)
	if !snap.Settings.LoadBalancerEnabled {
		p.Outcome = Disabled.Because(plan.S("key", "loadBalancerEnabled"))
		return p, st
	}
	st = st.next()
	st.forgetUnloads(snap.Now, snap.Settings.LoadBalancerSheddingGracePeriodMinutes)
	st.lookups(snap, m.Options.CheckTopicKinds)
	c := shedding{m: m, snap: snap, st: st, trace: trace, reports: reports(snap)}
	for _, r := range c.reports {
		c.look(r)
	}
	p.Advice = st.tell("shed ", c.advice)
	p.Decisions, p.Outcome = c.decisions, c.outcome()
	if !snap.Settings.LoadBalancerSheddingEnabled {
		for _, d := range c.decisions {
			st.unloaded(d.Bundle, snap.Now)
		}
		p.Decisions = nil
		p.Outcome = DryRun.Because(plan.S("key", "loadBalancerSheddingEnabled"), plan.N("bundles", len(c.decisions)), plan.N("overloaded", c.overloaded))
	}
	return p, st
}

func (c *shedding) outcome() plan.Reason {
	n, threshold := plan.N("brokers", len(c.reports)), plan.N("threshold", c.snap.Settings.LoadBalancerBrokerOverloadedThresholdPercentage)
	switch {
	case len(c.reports) == 0:
		return NoReports.Because(plan.N("brokers", len(c.snap.Brokers)))
	case c.overloaded == 0:
		return NoneOverloaded.Because(n, plan.N("usage", c.fullest), threshold)
	case len(c.decisions) == 0:
		return NothingToShed.Because(plan.N("overloaded", c.overloaded), n, threshold)
	}
	return Shedding.Because(plan.N("bundles", len(c.decisions)), plan.N("overloaded", c.overloaded), n)
}

// look decides about one broker.
func (c *shedding) look(r report) {
	usage := fullest(r.SystemResourceUsage)
	c.fullest = max(c.fullest, usage)
	limit := c.snap.Settings.LoadBalancerBrokerOverloadedThresholdPercentage
	u, t := plan.N("usage", usage), plan.N("threshold", limit)
	if !above(r.SystemResourceUsage, limit) {
		if c.trace != nil {
			c.trace.Skip("", r.broker, "", NotOverloaded.Because(u, t))
		}
		return
	}
	c.overloaded++
	resource := r.Bottleneck()
	bundles := r.SortedBundleStats(resource)
	switch len(bundles) {
	case 0:
		if c.trace != nil {
			c.trace.Skip("", r.broker, "", NoBundles.Because(u, t))
		}
		return
	case 1:
		why := SoleBundle.Because(plan.S("broker", r.broker), u, t, plan.S("bundle", bundles[0].Bundle))
		c.trace.Skip(bundles[0].Bundle, r.broker, "", why)
		c.advice = append(c.advice, plan.LeftOut{Bundle: bundles[0].Bundle, Broker: r.broker, Why: why})
		return
	}
	if !c.m.Options.NeedReceiver {
		bundles = bundles[:1] // Pulsar gives up on the broker when its heaviest bundle has no receiver
	}
	for i := range bundles {
		receiver := c.receiver(bundles[i].Bundle, r.broker)
		if receiver == "" || c.inGracePeriod(bundles[i].Bundle, r.broker) {
			continue
		}
		d := plan.Decision{Action: plan.Unload, Bundle: bundles[i].Bundle, Source: r.broker}
		carry(&d, &bundles[i].Stats)
		d.Why = Overloaded.Because(u, t, plan.S("resource", resource.String()), plan.S("receiver", receiver),
			plan.N("comfort", c.snap.Settings.LoadBalancerBrokerComfortLoadLevelPercentage))
		c.decisions = append(c.decisions, d)
		return
	}
}

func (c *shedding) inGracePeriod(bundle, broker string) bool {
	at, ok := c.st.RecentlyUnloaded[bundle]
	if ok && c.trace != nil {
		c.trace.Skip(bundle, broker, "", InGracePeriod.Because(plan.N("ago", c.snap.Now-at), plan.N("grace", c.snap.Settings.LoadBalancerSheddingGracePeriodMinutes)))
	}
	return ok
}

// receiver is a broker that may take the bundle and is below the comfort level, "" if there is none. Pulsar asks with the
// namespace for a bundle, so that neither the kind of its topics nor the even spread of its bundles counts, and does not
// leave out the broker that the bundle is on. Pulsar: isBrokerAvailableForRebalancing.
func (c *shedding) receiver(bundle, source string) string {
	repaired := c.m.Options.NeedReceiver
	s := c.m.search(c.snap, c.st, bundle, c.trace)
	if !repaired {
		s.kind, s.evenly = true, false
	}
	candidates := s.find(s.available())
	if repaired {
		candidates = s.registered(candidates)
	}
	comfort := c.snap.Settings.LoadBalancerBrokerComfortLoadLevelPercentage
	for _, k := range candidates {
		u := c.usageOf(k.broker)
		switch {
		case u == nil || repaired && k.broker == source:
		case below(u, comfort):
			return k.broker
		case c.trace != nil:
			c.trace.Skip(bundle, source, k.broker, NotComfortable.Because(plan.N("usage", fullest(u)), plan.N("comfort", comfort)))
		}
	}
	if c.trace != nil {
		c.trace.Skip(bundle, source, "", NoReceiver.Because(plan.N("candidates", len(candidates)), plan.S("namespace", s.namespace), plan.N("comfort", comfort)))
	}
	return ""
}

func (c *shedding) usageOf(broker string) *event.SystemResourceUsage {
	if r := c.st.index.report[broker]; r != nil {
		return r.SystemResourceUsage
	}
	return nil
}
