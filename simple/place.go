package simple

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Why a broker was chosen for a bundle, or none.
var (
	// AlreadyAssigned: the bundle was promised to this broker before.
	AlreadyAssigned = plan.Code{ID: "ALREADY_ASSIGNED", Template: "the bundle was already assigned to {broker}"}
	// PreallocatedGone: it was promised to a broker that is not registered any more (Options.CheckPreallocated).
	PreallocatedGone = plan.Code{ID: "ASSIGNED_TO_GONE", Template: "{broker}, which the bundle was assigned to, is not registered"}
	// NoCandidates: there is nothing to choose from.
	NoCandidates = plan.Code{ID: "NO_CANDIDATES", Template: "none of {brokers} brokers may take {namespace}"}
	// NotRanked: no candidate has ever reported its load.
	NotRanked = plan.Code{ID: "NOT_RANKED", Template: "none of {candidates} candidates has a load report"}
)

// Place implements plan.Manager. It may change the given state in place: with leastLoadedServer and leastMsgPerSecond the
// bundle counts as pre-allocated on its broker until that reports it. Pulsar: getLeastLoaded.
func (m *Manager) Place(snap *cluster.Snapshot, bundle string, state plan.State, rnd plan.Rand, trace *plan.Trace) (plan.Decision, plan.State) {
	st := m.ranked(snap, state)
	d := plan.Decision{Action: plan.Place, Bundle: bundle}
	if i := snap.BundleIndex(bundle); i >= 0 {
		carry(&d, &snap.Bundles[i].Stats)
	}
	s := m.search(snap, st, bundle, trace)
	available := s.available()
	if broker, ok := s.promised(); ok {
		d.Destination, d.Why = broker, AlreadyAssigned.Because(plan.S("broker", broker))
		return d, st
	}
	candidates := s.registered(s.find(available))
	switch strategy := strategyOf(snap); {
	case len(candidates) == 0 && !s.frozen.IsZero():
		d.Why = plan.FromPolicy(s.frozen)
	case len(candidates) == 0:
		d.Why = NoCandidates.Because(plan.N("brokers", len(available)), plan.S("namespace", s.namespace))
	case strategy == weightedRandomSelection:
		d.Destination, d.Why = m.weighted(candidates, rnd)
	default:
		d.Destination, d.Why = s.least(candidates, strategy == leastMsgPerSecond)
	}
	return d, st
}

// carry fills in what moves with a bundle.
func carry(d *plan.Decision, s *event.NamespaceBundleStats) {
	d.Throughput, d.MsgRate, d.Topics = s.MsgThroughputIn+s.MsgThroughputOut, s.MsgRateIn+s.MsgRateOut, s.Topics
}

// promised is the broker that the bundle is pre-allocated on, the first in the order of the rankings.
func (s *search) promised() (string, bool) {
	for at := range s.st.Rankings {
		if _, ok := s.st.index.given[at][s.bundle]; !ok {
			continue
		}
		r := &s.st.Rankings[at]
		if !s.m.Options.CheckPreallocated || s.snap.BrokerIndex(r.Broker) >= 0 {
			return r.Broker, true
		}
		s.st.withdraw(at, s.bundle)
		if s.trace != nil {
			s.trace.Skip(s.bundle, r.Broker, "", PreallocatedGone.Because(plan.S("broker", r.Broker)))
		}
	}
	return "", false
}

// withdraw takes a promise back.
func (st *State) withdraw(at int, bundle string) {
	r := &st.Rankings[at]
	r.Preallocated = without(r.Preallocated, bundle)
	subtractQuota(&r.PreallocatedQuota, st.Quotas.Of(bundle))
	r.reckon(float64(st.Factor))
	delete(st.index.given[at], bundle)
}
