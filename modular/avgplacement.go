package modular

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// Why AvgShedder chose a broker.
var (
	// PlannedTarget: bundles of these averages went there before (Pulsar 4), or the bundle was shed to it (Pulsar 5).
	PlannedTarget = plan.Code{ID: "PLANNED_TARGET", Template: "{target} is the remembered destination"}
	// AnyCandidate: no destination is remembered for the bundle.
	AnyCandidate = plan.Code{ID: "RANDOM_CANDIDATE", Template: "no destination is remembered, one of {candidates} candidates at random"}
	// TargetGone: the planned destination may not be chosen any more.
	TargetGone = plan.Code{ID: "PLANNED_TARGET_NOT_A_CANDIDATE", Template: "planned destination {target} is no candidate, one of {candidates} others at random"}
	// OnlySource: the planned destination may not be chosen any more, nor any other broker.
	OnlySource = plan.Code{ID: "NO_CANDIDATE_BUT_SOURCE", Template: "planned destination {target} is no candidate and there is none but the source {source}"}
	// TargetOverloaded: the planned destination became overloaded.
	TargetOverloaded = plan.Code{ID: "PLANNED_TARGET_OVERLOADED", Template: "planned destination {target} has usage {usage} > {threshold}, one of {candidates} others below it at random"}
	// OnlyTarget: the planned destination became overloaded, and so did all others.
	OnlyTarget = plan.Code{ID: "ONLY_PLANNED_TARGET", Template: "planned destination {target} has usage {usage} > {threshold}, but no other candidate is below it"}
	// IsSource: the bundle is leaving this broker.
	IsSource = plan.Code{ID: "IS_SOURCE", Template: "the bundle is leaving this broker"}
)

// Place implements plan.Placer. In Pulsar 4 a bundle goes where bundles of its averages went before, if that broker is a
// candidate, else to a random one, which is remembered. In Pulsar 5 a planned bundle follows the plan of the shedding
// round unless the destination is gone or overloaded, any other goes to a random candidate, and nothing is remembered.
func (a AvgShedder) Place(snap *cluster.Snapshot, bundle string, candidates []int, state plan.State, rnd plan.Rand, trace *plan.Trace) (int, plan.Reason) {
	st := stateOf(state)
	best, why := a.best(snap, bundle, candidates, st, trace)
	i := draw(best, rnd)
	if i >= 0 && !a.byName(snap) {
		st.Avg.put(snap, bundle, dataOf(snap, st, bundle), snap.Brokers[i].ID)
	}
	return i, why
}

// Best is the candidates among which Place draws.
func (a AvgShedder) Best(snap *cluster.Snapshot, bundle string, candidates []int, state plan.State) []int {
	best, _ := a.best(snap, bundle, candidates, stateOf(state), nil)
	return slices.Clone(best)
}

func (a AvgShedder) best(snap *cluster.Snapshot, bundle string, candidates []int, st *State, trace *plan.Trace) ([]int, plan.Reason) {
	if len(candidates) == 0 {
		return nil, because(trace, func() plan.Reason { return NoCandidates.Because(plan.N("candidates", 0)) })
	}
	if a.byName(snap) {
		if p, ok := st.Avg.Plan[bundle]; ok {
			return planned(snap, bundle, p, candidates, st, trace)
		}
	} else if target, ok := st.Avg.get(snap, dataOf(snap, st, bundle)); ok {
		if i := candidate(snap, candidates, target); i >= 0 {
			return st.only(i), because(trace, func() plan.Reason { return PlannedTarget.Because(plan.S("target", target)) })
		}
	}
	return candidates, because(trace, func() plan.Reason { return AnyCandidate.Because(plan.N("candidates", len(candidates))) })
}

// planned is the candidates for a bundle that Pulsar 5 shed in this round.
func planned(snap *cluster.Snapshot, bundle string, p AvgPlanned, candidates []int, st *State, trace *plan.Trace) ([]int, plan.Reason) {
	name := plan.S("target", p.Destination)
	target := candidate(snap, candidates, p.Destination)
	if target < 0 {
		best := withoutSource(snap, bundle, p.Source, candidates, st, trace)
		if len(best) == 0 {
			return nil, because(trace, func() plan.Reason { return OnlySource.Because(name, plan.S("source", p.Source)) })
		}
		return best, because(trace, func() plan.Reason { return TargetGone.Because(name, plan.N("candidates", len(best))) })
	}
	w, threshold := load.WeightsOf(snap.Settings), float64(snap.Settings.LoadBalancerBrokerOverloadedThresholdPercentage)
	d := snap.Brokers[target].Local
	if d == nil || load.LocalWeightedMaxUsage(d, &w)*100 <= threshold {
		return st.only(target), because(trace, func() plan.Reason { return PlannedTarget.Because(name) })
	}
	numbers := func() []plan.Number {
		return []plan.Number{name, plan.N("usage", load.LocalWeightedMaxUsage(d, &w)), plan.N("threshold", threshold/100)}
	}
	best := st.scratch.best[:0]
	for _, i := range withoutSource(snap, bundle, p.Source, candidates, st, trace) {
		b := &snap.Brokers[i]
		switch {
		case i == target:
		case b.Local == nil:
			leaveSilent(trace, bundle, b)
		case load.LocalWeightedMaxUsage(b.Local, &w)*100 <= threshold:
			best = append(best, i)
		default:
			leave(trace, bundle, b, func() plan.Reason {
				return OverloadedCandidate.Because(plan.N("usage", load.LocalWeightedMaxUsage(b.Local, &w)), plan.N("threshold", threshold/100))
			})
		}
	}
	if len(best) == 0 {
		return st.only(target), because(trace, func() plan.Reason { return OnlyTarget.Because(numbers()...) })
	}
	return best, because(trace, func() plan.Reason {
		return TargetOverloaded.Because(append(numbers(), plan.N("candidates", len(best)))...)
	})
}

// withoutSource is the candidates except the broker that the bundle is leaving. It is held in the state's scratch memory,
// which may be overwritten from its start while it is read.
func withoutSource(snap *cluster.Snapshot, bundle, source string, candidates []int, st *State, trace *plan.Trace) []int {
	best := st.scratch.best[:0]
	for _, i := range candidates {
		if b := &snap.Brokers[i]; b.ID != source {
			best = append(best, i)
		} else {
			leave(trace, bundle, b, func() plan.Reason { return IsSource.Because() })
		}
	}
	st.scratch.best = best
	return best
}
