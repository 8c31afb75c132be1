package control

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/simple"
)

// What can be promised about the moves of a plan, told with every plan that has some.
var (
	// DestinationIsHint: the cluster takes destinations for hints.
	DestinationIsHint = plan.Code{ID: "DESTINATION_IS_A_HINT", Template: "the cluster runs the Modular load manager, for which a destination is a hint " +
		"(Pulsar 4.2.4 honoured {usual} of {of}): each of {moves} moves is verified and asked for up to {attempts} times; so far {honoured} of {requests} requests ended where they should"}
	// DestinationIgnored: the cluster places by itself.
	DestinationIgnored = plan.Code{ID: "DESTINATION_IGNORED", Template: "the cluster runs the Simple load manager, which places by {strategy} whatever is asked for " +
		"(Pulsar 4.2.4 honoured {usual} of {of} destinations): {moves} bundles leave their brokers, where they go cannot be promised; one that comes back is unloaded " +
		"up to {attempts} times; so far {back} of {requests} requests ended where the bundle was"}
	// NeedsDestination: a move makes sense only if it ends where it should.
	NeedsDestination = plan.Code{ID: "NEEDS_DESTINATION", Template: "the bundle makes room on {broker} for others, which makes sense only when destinations are honoured"}
)

// EngineOptions say what the cluster does with moves.
type EngineOptions struct {
	Destinations Destinations
	Attempts     int             // most requests for one decision
	Landings     func() Landings // what came of moves so far; nil = none were made
}

// OnReports makes a load manager plan for a cluster without the Extensible one: its plans say what can be promised, name the
// brokers that are stale and, where the cluster ignores destinations, have none.
func OnReports(m plan.Manager, o EngineOptions) plan.Manager { return &onReports{m, o} }

type onReports struct {
	plan.Manager
	o EngineOptions
}

// Shed implements plan.Manager.
func (m *onReports) Shed(snap *cluster.Snapshot, state plan.State, rnd plan.Rand, trace *plan.Trace) (plan.Plan, plan.State) {
	seen := snap
	if own, ok := m.Manager.(*simple.Manager); ok {
		state = own.Update(snap, state) // brokers are ranked with everything that they serve
		seen = movable(snap, trace)
	}
	p, next := m.Manager.Shed(seen, state, rnd, trace)
	ids := make([]string, len(snap.Brokers))
	for i := range snap.Brokers {
		ids[i] = snap.Brokers[i].ID
		if why := snap.Brokers[i].Stale; trace != nil && !why.IsZero() {
			trace.Skip("", ids[i], "", plan.FromPolicy(why))
		}
	}
	// As its Update does, which runs in the views: what is remembered of brokers that are gone is forgotten.
	if st, ok := next.(*modular.State); ok && next != state {
		st.BrokersChanged(ids)
	}
	if m.o.Destinations == Ignored {
		p.Decisions = withoutDestinations(p.Decisions, trace)
	}
	if n := len(p.Decisions); n > 0 {
		p.Advice = append(slices.Clip(p.Advice), plan.LeftOut{Why: m.o.Promise(snap.Settings.LoadBalancerPlacementStrategy, n)})
	}
	return p, next
}

// movable is the snapshot with the bundles left out of Simple reports that are never moved: those of system namespaces and of
// loadBalancerSheddingExcludedNamespaces. Simple's rules look at the heaviest bundle of a broker alone. One that the guard holds back
// every time would keep all others where they are.
func movable(snap *cluster.Snapshot, trace *plan.Trace) *cluster.Snapshot {
	out := *snap
	out.Brokers = slices.Clone(snap.Brokers)
	for i := range out.Brokers {
		b := &out.Brokers[i]
		if b.Report == nil {
			continue
		}
		r := *b.Report
		r.BundleStats = nil
		for _, s := range b.Report.BundleStats {
			if why := policy.Unmanaged(event.NamespaceOf(s.Bundle), snap.Settings.LoadBalancerSheddingExcludedNamespaces); !why.IsZero() {
				if trace != nil {
					trace.Skip(s.Bundle, b.ID, "", plan.FromPolicy(why))
				}
				continue
			}
			r.BundleStats = append(r.BundleStats, s)
		}
		b.Report = &r
	}
	return &out
}

// withoutDestinations makes unloads of transfers. Those that make room on the receiving side of a pair are dropped.
func withoutDestinations(decisions []plan.Decision, trace *plan.Trace) []plan.Decision {
	receives := map[string]bool{}
	for _, d := range decisions {
		receives[d.Destination] = d.Destination != ""
	}
	out := make([]plan.Decision, 0, len(decisions))
	for _, d := range decisions {
		if receives[d.Source] {
			trace.Skip(d.Bundle, d.Source, d.Destination, NeedsDestination.Because(plan.S("broker", d.Source)))
			continue
		}
		if d.Action == plan.Transfer {
			d.Action, d.Destination = plan.Unload, ""
		}
		out = append(out, d)
	}
	return out
}

// Promise says what can be promised about n moves on a cluster that places by a strategy.
func (o EngineOptions) Promise(strategy string, n int) plan.Reason {
	var l Landings
	if o.Landings != nil {
		l = o.Landings()
	}
	moves, attempts, requests := plan.N("moves", n), plan.N("attempts", o.Attempts), plan.N("requests", l.Requests)
	if o.Destinations == Ignored {
		return DestinationIgnored.Because(plan.S("strategy", strategy), plan.N("usual", 1), plan.N("of", 10),
			moves, attempts, plan.N("back", l.Back), requests)
	}
	return DestinationIsHint.Because(plan.N("usual", 21), plan.N("of", 25), moves, attempts, plan.N("honoured", l.Honoured), requests)
}
