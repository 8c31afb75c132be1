package simple

import (
	"math"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Why a broker is not a candidate for a bundle.
var (
	// MoreOfNamespace: other candidates serve fewer bundles of the namespace.
	MoreOfNamespace = plan.Code{ID: "MORE_BUNDLES_OF_NAMESPACE", Template: "{bundles} bundles of {namespace}, the least is {least}"}
	// NotRegistered: the broker was ranked, but it is not registered any more.
	NotRegistered = plan.Code{ID: "BROKER_NOT_REGISTERED", Template: "{broker} is not registered"}
)

// candidate is a broker that a bundle may be placed on.
type candidate struct {
	broker  string
	rank    int64
	ranking int // place in State.Rankings, -1 if it is not ranked
}

// search is one search for candidates.
type search struct {
	m         *Manager
	snap      *cluster.Snapshot
	st        *State
	bundle    string // for the trace
	namespace string
	kind      bool // persistent topics
	evenly    bool // spread the namespace's bundles evenly
	frozen    policy.Reason
	trace     *plan.Trace
}

// search begins a search for a bundle to be placed.
func (m *Manager) search(snap *cluster.Snapshot, st *State, bundle string, trace *plan.Trace) *search {
	s := &search{m: m, snap: snap, st: st, bundle: bundle, namespace: namespaceOf(bundle), kind: true, evenly: true, trace: trace}
	if i := snap.BundleIndex(bundle); i >= 0 {
		s.kind = !snap.Bundles[i].NonPersistent
	}
	return s
}

// available are the ranked brokers by rank, then id; when none is ranked, all registered ones by id under rank 0.
// Pulsar: getAvailableBrokers.
func (s *search) available() []candidate {
	x := s.st.lookups(s.snap, s.m.Options.CheckTopicKinds)
	if len(s.st.Rankings) == 0 {
		out := make([]candidate, len(s.snap.Brokers))
		for i := range s.snap.Brokers {
			out[i] = candidate{broker: s.snap.Brokers[i].ID, ranking: -1}
		}
		slices.SortStableFunc(out, func(a, b candidate) int { return strings.Compare(a.broker, b.broker) })
		return slices.CompactFunc(out, func(a, b candidate) bool { return a.broker == b.broker })
	}
	out := make([]candidate, len(x.order))
	for i, at := range x.order {
		r := &s.st.Rankings[at]
		out[i] = candidate{broker: r.Broker, rank: r.Rank, ranking: at}
	}
	return out
}

// find is the available brokers that policies allow and that serve the fewest bundles of the namespace.
// Pulsar: getFinalCandidates.
func (s *search) find(available []candidate) []candidate {
	allowed := s.allowed(available)
	if !s.evenly || len(allowed) == 0 {
		return allowed
	}
	counts := s.st.index.counts
	least := math.MaxInt
	for _, c := range allowed {
		least = min(least, counts[c.broker][s.namespace])
	}
	out := allowed[:0]
	for _, c := range allowed {
		n := counts[c.broker][s.namespace]
		if n <= least {
			out = append(out, c)
		} else if s.trace != nil {
			s.trace.Skip(s.bundle, c.broker, "", MoreOfNamespace.Because(plan.N("bundles", n), plan.S("namespace", s.namespace), plan.N("least", least)))
		}
	}
	return out
}

// allowed is the available brokers that policies allow. Topic kinds are those of the reports: a broker without one serves
// none. Pulsar: LoadManagerShared.applyNamespacePolicies.
func (s *search) allowed(available []candidate) []candidate {
	view := s.view(available)
	verdict := view.Allowed(s.namespace, s.kind)
	s.frozen = verdict.Frozen
	out := make([]candidate, 0, len(available))
	for _, c := range available {
		switch i := view.Index(c.broker); {
		case i < 0: // not available when the view was made
		case verdict.Brokers[i].Allowed:
			out = append(out, c)
		case s.trace != nil:
			s.trace.Skip(s.bundle, c.broker, "", plan.FromPolicy(verdict.Why(i)))
		}
	}
	return out
}

// view is the policies over the available brokers. It is kept as long as snapshot and rankings are the same.
func (s *search) view(available []candidate) *policy.View {
	x := s.st.index
	if x.view == nil {
		brokers := make([]policy.Broker, len(available))
		for i, c := range available {
			brokers[i].ID = c.broker
			if r := x.report[c.broker]; r != nil {
				brokers[i].PersistentTopics, brokers[i].NonPersistentTopics = r.PersistentTopicsEnabled, r.NonPersistentTopicsEnabled
			}
		}
		var opts []policy.ViewOption
		if s.m.Options.CheckTopicKinds {
			opts = append(opts, policy.CheckTopicKinds)
		}
		x.view = s.snap.Policies.Over(brokers, opts...)
	}
	return x.view
}

// registered keeps the candidates that are registered.
func (s *search) registered(candidates []candidate) []candidate {
	out := candidates[:0]
	for _, c := range candidates {
		if s.snap.BrokerIndex(c.broker) >= 0 {
			out = append(out, c)
		} else if s.trace != nil {
			s.trace.Skip(s.bundle, c.broker, "", NotRegistered.Because(plan.S("broker", c.broker)))
		}
	}
	return out
}
