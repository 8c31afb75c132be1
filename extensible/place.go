package extensible

import (
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Why a broker was chosen for a bundle, or none, besides the reasons of the placement strategies.
var (
	// Chosen: the placement strategy chose the broker.
	Chosen = plan.Code{ID: "PLACED", Template: "chosen among {candidates} of {brokers} brokers"}
	// AlreadyOwned: the bundle has an owner.
	AlreadyOwned = plan.Code{ID: "ALREADY_OWNED", Template: "the bundle is owned by {broker}"}
	// BelongsTo: the namespace is the heartbeat or SLA namespace of a broker.
	BelongsTo = plan.Code{ID: "NAMESPACE_OF_A_BROKER", Template: "{namespace} belongs to {broker}"}
	// OwnerGone: the broker that the namespace belongs to is not registered.
	OwnerGone = plan.Code{ID: "NAMESPACE_OF_A_BROKER_GONE", Template: "{namespace} belongs to {broker}, which is not registered"}
	// NoneLeft: no broker may take the bundle.
	NoneLeft = plan.Code{ID: "NO_BROKER_ALLOWED", Template: "none of {brokers} brokers may take it"}
)

// selection is what the placements on one snapshot share.
type selection struct {
	cycle   *Cycle
	scratch []int
}

// Place implements plan.Manager: the broker of a bundle, which is its owner if it has one. It changes the state in place.
// Without a trace it allocates only on the first call with a snapshot; the reason then has no numbers.
// Pulsar: ExtensibleLoadManagerImpl.assign and selectAsync.
func (m *Manager) Place(snap *cluster.Snapshot, bundle string, state plan.State, rnd plan.Rand, trace *plan.Trace) (plan.Decision, plan.State) {
	st := stateOf(state)
	d := plan.Decision{Action: plan.Place, Bundle: bundle}
	if i := snap.BundleIndex(bundle); i >= 0 {
		b := &snap.Bundles[i]
		d.Throughput, d.MsgRate, d.Topics = load.Throughput(&b.Stats), load.MsgRate(&b.Stats), b.Stats.Topics
		if b.Owner != "" {
			return st.placed(d, b.Owner, Skip, explain(trace, &AlreadyOwned, "broker", b.Owner)), st
		}
	}
	ns := policy.NamespaceOf(bundle)
	if load.IsBrokerNamespace(ns) {
		broker := ns[strings.LastIndexByte(ns, '/')+1:]
		switch registered := snap.BrokerIndex(broker) >= 0; {
		case registered:
			d.Destination, d.Label, d.Why = broker, Success, explain(trace, &BelongsTo, "namespace", ns, "broker", broker)
			return d, st
		case strings.HasPrefix(ns, "pulsar/"):
			return st.placed(d, "", Failure, explain(trace, &OwnerGone, "namespace", ns, "broker", broker)), st
		} // an SLA namespace whose broker is gone may go anywhere
	}
	candidates := m.candidates(snap, bundle, st, trace)
	if len(candidates) == 0 {
		why := plan.Reason{Code: NoneLeft.ID}
		if trace != nil {
			why = NoneLeft.Because(plan.N("brokers", len(snap.Brokers)))
		}
		d.Why = why
		return d, st
	}
	placer := m.Placer
	if len(snap.Settings.LoadBalancerSheddingExcludedNamespaces) > 0 && slices.Contains(snap.Settings.LoadBalancerSheddingExcludedNamespaces, ns) {
		placer = RoundRobinBrokerSelectionStrategy{}
	}
	i, why := placer.Place(snap, bundle, candidates, st, rnd, trace)
	if i < 0 {
		d.Why = why
		return d, st
	}
	if why.Code == "" {
		why.Code = Chosen.ID
	}
	return st.placed(d, snap.Brokers[i].ID, Success, why), st
}

// placed completes a placement and counts it; that there is no broker, or that it was clear from the name, is not counted.
func (st *State) placed(d plan.Decision, broker, label string, why plan.Reason) plan.Decision {
	d.Destination, d.Label, d.Why = broker, label, why
	st.Counters.Assign.add(label)
	return d
}

// explain is a reason of names; without a trace it is the code alone.
func explain(trace *plan.Trace, c *plan.Code, names ...string) plan.Reason {
	if trace == nil {
		return plan.Reason{Code: c.ID}
	}
	numbers := make([]plan.Number, 0, len(names)/2)
	for i := 0; i+1 < len(names); i += 2 {
		numbers = append(numbers, plan.S(names[i], names[i+1]))
	}
	return c.Because(numbers...)
}

// candidates are the brokers that may take a bundle. A filter that fails removes nothing. The slice is good until the next
// call with the state.
func (m *Manager) candidates(snap *cluster.Snapshot, bundle string, st *State, trace *plan.Trace) []int {
	if st.selection == nil || st.selection.cycle.Snap != snap || trace != nil {
		filters := m.Filters
		if filters == nil {
			filters = Filters(m.Options)
		}
		var left func(string, int, plan.Reason)
		if trace != nil {
			left = func(_ string, i int, why plan.Reason) { trace.Skip(bundle, snap.Brokers[i].ID, "", why) }
		}
		st.selection = &selection{cycle: newCycle(snap, filters, m.Options, left)}
	}
	sel := st.selection
	c := sel.cycle
	if trace != nil {
		if c.failed != nil {
			trace.Skip(bundle, "", "", FilterFailed.Because(plan.S("filter", c.failedAt), plan.S("error", c.failed.Error())))
		}
		c.Left = func(i int, why plan.Reason) { trace.Skip(bundle, snap.Brokers[i].ID, "", why) }
		defer func() { c.Left = nil }()
	}
	sel.scratch = append(sel.scratch[:0], c.base...)
	left := sel.scratch
	for _, f := range c.filters[c.shared:] {
		kept, err := f.Keep(c, bundle, left)
		if err == nil {
			left = kept
		} else if trace != nil {
			trace.Skip(bundle, "", "", FilterFailed.Because(plan.S("filter", f.Name()), plan.S("error", err.Error())))
		}
	}
	return left
}
