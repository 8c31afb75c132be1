package modular

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// LeastResourceUsageWithWeight draws among the brokers whose average usage is below the average of the candidates by
// loadBalancerAverageResourceUsageDifferenceThresholdPercentage or more, and among all candidates if there is none. The
// averages keep loadBalancerHistoryResourcePercentage of what they were at each placement. Pulsar:
// LeastResourceUsageWithWeight of the Modular manager. Memory: State.LeastResource.
type LeastResourceUsageWithWeight struct{ Options Options }

var (
	// WellBelowAverage: the broker's average usage is far enough below that of all.
	WellBelowAverage = plan.Code{ID: "WELL_BELOW_AVERAGE", Template: "average usage {usage} + {difference} <= {average}; one of {best} such brokers of {candidates}"}
	// NoneBelowAverage: no candidate is far enough below the average, so any is taken.
	NoneBelowAverage = plan.Code{ID: "FALLBACK_NO_CANDIDATE", Template: "fallback: no candidate is {difference} below the average {average}, one of {best} at random"}
	// NearAverage: the candidate is not far enough below the average.
	NearAverage = plan.Code{ID: "NOT_BELOW_AVERAGE", Template: "average usage {usage} + {difference} > {average}"}
)

// Place implements plan.Placer.
func (l LeastResourceUsageWithWeight) Place(snap *cluster.Snapshot, bundle string, candidates []int, state plan.State, rnd plan.Rand, trace *plan.Trace) (int, plan.Reason) {
	st := stateOf(state)
	best, average, fallback := l.best(snap, candidates, st)
	i := draw(best, rnd)
	if trace == nil {
		return i, plan.Reason{}
	}
	difference := plan.N("difference", l.difference(snap))
	l.explain(snap, bundle, candidates, st, average, trace)
	switch {
	case i < 0:
		return i, NoCandidates.Because(plan.N("candidates", len(candidates)))
	case fallback:
		return i, NoneBelowAverage.Because(difference, plan.N("average", average), plan.N("best", len(best)))
	}
	usage := plan.N("usage", float64(st.LeastResource.Get(i, snap.Brokers[i].ID).Usage))
	return i, WellBelowAverage.Because(usage, difference, plan.N("average", average), plan.N("best", len(best)), plan.N("candidates", len(candidates)))
}

// Best advances the averages and returns the candidates among which Place would draw.
func (l LeastResourceUsageWithWeight) Best(snap *cluster.Snapshot, candidates []int, state plan.State) []int {
	best, _, _ := l.best(snap, candidates, stateOf(state))
	return slices.Clone(best)
}

// difference is how far below the average a candidate must be, a fraction.
func (LeastResourceUsageWithWeight) difference(snap *cluster.Snapshot) float64 {
	return float64(snap.Settings.LoadBalancerAverageResourceUsageDifferenceThresholdPercentage) / 100
}

// best advances the averages of the candidates and returns the set to draw from, the average of all and whether none is
// below it far enough. Candidates without a load report, on which Pulsar fails, are left out.
func (l LeastResourceUsageWithWeight) best(snap *cluster.Snapshot, candidates []int, st *State) (best []int, average float64, fallback bool) {
	w := load.WeightsOf(snap.Settings)
	best, usage := st.scratch.best[:0], st.scratch.usage[:0]
	total := 0.0
	for _, i := range candidates {
		if snap.Brokers[i].Local == nil {
			continue
		}
		u := l.advance(snap, i, st, &w)
		total += u
		best, usage = append(best, i), append(usage, u)
	}
	st.scratch.best, st.scratch.usage = best, usage
	if len(best) == 0 {
		return nil, 0, false
	}
	average = total / float64(len(best))
	difference, n := l.difference(snap), 0
	for k, u := range usage {
		if u+difference <= average {
			best[n] = best[k]
			n++
		}
	}
	best = best[:n]
	if len(best) == 0 {
		fallback = true
		if l.Options.AvoidOverloaded {
			best = leastUsed(snap, candidates, st, best)
		} else {
			best = reporting(snap, candidates, best)
		}
	}
	st.scratch.best = best
	return best, average, fallback
}

// advance takes a broker's usage of now into its average and returns that. A broker without bundles or messages starts
// anew: its average would be of the time before it was restarted.
func (l LeastResourceUsageWithWeight) advance(snap *cluster.Snapshot, broker int, st *State, w *load.Weights) float64 {
	b := &snap.Brokers[broker]
	a, found := st.LeastResource.Add(broker, b.ID)
	if found && l.Options.HistoryPerReport && a.Report == b.Local.LastUpdate {
		return float64(a.Usage)
	}
	if len(b.Bundles) == 0 || b.Local.MsgRateIn == 0 && b.Local.MsgRateOut == 0 {
		found = false
	}
	usage := load.LocalWeightedMaxUsage(b.Local, w)
	*a = UsageAverage{
		Usage:  Double(advanced(float64(a.Usage), found, usage, snap.Settings.LoadBalancerHistoryResourcePercentage)),
		Report: b.Local.LastUpdate,
	}
	return float64(a.Usage)
}

// leastUsed appends the candidates with the lowest average usage.
func leastUsed(snap *cluster.Snapshot, candidates []int, st *State, to []int) []int {
	least := math.Inf(1)
	for _, i := range candidates {
		b := &snap.Brokers[i]
		if b.Local == nil {
			continue
		}
		switch u := float64(st.LeastResource.Get(i, b.ID).Usage); {
		case u < least:
			to, least = append(to[:0], i), u
		case u == least:
			to = append(to, i)
		}
	}
	if len(to) == 0 {
		return reporting(snap, candidates, to)
	}
	return to
}

// explain records why the candidates that are not the best were passed over.
func (l LeastResourceUsageWithWeight) explain(snap *cluster.Snapshot, bundle string, candidates []int, st *State, average float64, trace *plan.Trace) {
	difference := l.difference(snap)
	for _, i := range candidates {
		b := &snap.Brokers[i]
		if b.Local == nil {
			leaveSilent(trace, bundle, b)
			continue
		}
		if u := float64(st.LeastResource.Get(i, b.ID).Usage); !(u+difference <= average) {
			trace.Skip(bundle, b.ID, "", NearAverage.Because(plan.N("usage", u), plan.N("difference", difference), plan.N("average", average)))
		}
	}
}
