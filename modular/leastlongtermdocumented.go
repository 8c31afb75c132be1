package modular

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// LeastLongTermMessageRateDocumented is LeastLongTermMessageRate as Pulsar's documents describe it: the long-term message
// rate is weighted by 1 / (overload threshold - maximum usage), where the maximum is over CPU, heap memory, direct memory
// and bandwidth without weights; brokers above the threshold are left out; if all are, any of them is chosen. Pulsar 4 has
// dropped the weight. Scores are always finite: a broker exactly at the threshold counts as a hair below it.
type LeastLongTermMessageRateDocumented struct{}

// smallestRoom is the least distance to the overload threshold that is divided by.
const smallestRoom = 1e-9

var (
	// LeastWeightedRate: the broker has the lowest weighted rate.
	LeastWeightedRate = plan.Code{ID: "LEAST_WEIGHTED_RATE", Template: "weighted long-term rate {score} is the least; one of {best} such brokers of {candidates}"}
	// MoreWeightedRate: the candidate has a higher weighted rate than the chosen one.
	MoreWeightedRate = plan.Code{ID: "MORE_WEIGHTED_RATE", Template: "weighted long-term rate {score} > {least} (usage {usage})"}
)

// Place implements plan.Placer.
func (l LeastLongTermMessageRateDocumented) Place(snap *cluster.Snapshot, bundle string, candidates []int, state plan.State, rnd plan.Rand, trace *plan.Trace) (int, plan.Reason) {
	best, least := l.best(snap, bundle, candidates, stateOf(state), trace)
	return draw(best, rnd), because(trace, func() plan.Reason {
		switch {
		case len(best) == 0:
			return NoCandidates.Because(plan.N("candidates", len(candidates)))
		case math.IsInf(least, 1):
			return NoneBest.Because(plan.N("best", len(best)))
		}
		return LeastWeightedRate.Because(plan.N("score", least), plan.N("best", len(best)), plan.N("candidates", len(candidates)))
	})
}

// Best is the candidates among which Place draws.
func (l LeastLongTermMessageRateDocumented) Best(snap *cluster.Snapshot, candidates []int, state plan.State) []int {
	best, _ := l.best(snap, "", candidates, stateOf(state), nil)
	return slices.Clone(best)
}

// Score is the weighted long-term message rate of a broker with a load report, and whether it is at or below the overload
// threshold. It is finite for any input; a rate that is not a number counts as the highest.
func (LeastLongTermMessageRateDocumented) Score(snap *cluster.Snapshot, broker int, state plan.State) (float64, bool) {
	usage, threshold := greatestUsage(snap.Brokers[broker].Local), overloadThreshold(snap)
	return weightedRate(snap, broker, stateOf(state), usage, threshold), usage <= threshold
}

// greatestUsage is the usage of the busiest of all five resources, a fraction.
func greatestUsage(d *event.LocalBrokerData) float64 {
	return load.Greatest(float64(d.CPU.PercentUsage()), float64(d.Memory.PercentUsage()), float64(d.DirectMemory.PercentUsage()),
		float64(d.BandwidthIn.PercentUsage()), float64(d.BandwidthOut.PercentUsage())) / 100
}

func weightedRate(snap *cluster.Snapshot, broker int, st *State, usage, threshold float64) float64 {
	score := longTermRate(&snap.Brokers[broker], broker, st) / max(threshold-usage, smallestRoom)
	if math.IsNaN(score) {
		return math.MaxFloat64
	}
	return min(max(score, -math.MaxFloat64), math.MaxFloat64)
}

// best is the candidates with the lowest score, and that score, +Inf if all are overloaded.
func (LeastLongTermMessageRateDocumented) best(snap *cluster.Snapshot, bundle string, candidates []int, st *State, trace *plan.Trace) ([]int, float64) {
	threshold := overloadThreshold(snap)
	best, least := st.scratch.best[:0], math.Inf(1)
	for _, i := range candidates {
		b := &snap.Brokers[i]
		if b.Local == nil {
			leaveSilent(trace, bundle, b)
			continue
		}
		usage := greatestUsage(b.Local)
		if usage > threshold {
			leave(trace, bundle, b, func() plan.Reason {
				return OverloadedCandidate.Because(plan.N("usage", usage), plan.N("threshold", threshold))
			})
			continue
		}
		switch score := weightedRate(snap, i, st, usage, threshold); {
		case score < least:
			best, least = append(best[:0], i), score
		case score == least:
			best = append(best, i)
		}
	}
	if len(best) == 0 {
		best = reporting(snap, candidates, best)
	}
	st.scratch.best = best
	if trace != nil {
		explainWeighted(snap, bundle, candidates, st, least, trace)
	}
	return best, least
}

// explainWeighted records why candidates that are not overloaded were passed over.
func explainWeighted(snap *cluster.Snapshot, bundle string, candidates []int, st *State, least float64, trace *plan.Trace) {
	threshold := overloadThreshold(snap)
	for _, i := range candidates {
		b := &snap.Brokers[i]
		if b.Local == nil {
			continue
		}
		usage := greatestUsage(b.Local)
		if score := weightedRate(snap, i, st, usage, threshold); usage <= threshold && score != least {
			trace.Skip(bundle, b.ID, "", MoreWeightedRate.Because(plan.N("score", score), plan.N("least", least), plan.N("usage", usage)))
		}
	}
}
