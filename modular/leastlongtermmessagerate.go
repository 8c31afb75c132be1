package modular

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// LeastLongTermMessageRate chooses the broker with the lowest long-term message rate, what was just assigned to it
// included, among those at or below the overload threshold; if all are above it, any. Pulsar: LeastLongTermMessageRate,
// its default until 5.0. Memory: State.Preallocated.
type LeastLongTermMessageRate struct{}

var (
	// LeastRate: the broker has the lowest long-term message rate.
	LeastRate = plan.Code{ID: "LEAST_LONG_TERM_RATE", Template: "long-term rate {score} msg/s is the least; one of {best} such brokers of {candidates}"}
	// NoneBest: no candidate has a score that can be compared, or all are overloaded.
	NoneBest = plan.Code{ID: "ALL_OVERLOADED", Template: "all candidates are overloaded, one of {best} at random"}
	// MoreRate: the candidate has a higher long-term message rate than the chosen one.
	MoreRate = plan.Code{ID: "MORE_LONG_TERM_RATE", Template: "long-term rate {score} msg/s > {least}"}
)

// Place implements plan.Placer.
func (l LeastLongTermMessageRate) Place(snap *cluster.Snapshot, bundle string, candidates []int, state plan.State, rnd plan.Rand, trace *plan.Trace) (int, plan.Reason) {
	st := stateOf(state)
	best, least := l.best(snap, candidates, st)
	if trace == nil {
		return draw(best, rnd), plan.Reason{}
	}
	l.explain(snap, bundle, candidates, st, least, trace)
	return draw(best, rnd), leastReason(len(best), len(candidates), least)
}

// leastReason is why one of the best brokers was chosen.
func leastReason(best, candidates int, least float64) plan.Reason {
	switch {
	case best == 0:
		return NoCandidates.Because(plan.N("candidates", candidates))
	case math.IsInf(least, 1):
		return NoneBest.Because(plan.N("best", best))
	}
	return LeastRate.Because(plan.N("score", least), plan.N("best", best), plan.N("candidates", candidates))
}

// Best is the candidates among which Place draws.
func (l LeastLongTermMessageRate) Best(snap *cluster.Snapshot, candidates []int, state plan.State) []int {
	best, _ := l.best(snap, candidates, stateOf(state))
	return slices.Clone(best)
}

// Score is the long-term message rate (msg/s) of a broker with a load report, what was just assigned to it included, +Inf
// if it is above the overload threshold.
func (LeastLongTermMessageRate) Score(snap *cluster.Snapshot, broker int, state plan.State) float64 {
	test := newOverloadTest(snap)
	return longTermScore(&snap.Brokers[broker], broker, stateOf(state), &test)
}

func longTermScore(b *cluster.Broker, broker int, st *State, test *overloadTest) float64 {
	if test.above(b.Local) {
		return math.Inf(1)
	}
	return longTermRate(b, broker, st)
}

// longTermRate is the long-term message rate of a broker and of what was just assigned to it.
func longTermRate(b *cluster.Broker, broker int, st *State) float64 {
	rate := 0.0
	if p := st.Preallocated.Get(broker, b.ID); p != nil {
		rate = p.longTermRate()
	}
	return rate + averageRate(b.TimeAverage)
}

func averageRate(t *event.TimeAverageBrokerData) float64 {
	if t == nil {
		return 0
	}
	return t.LongTermMsgRateIn + t.LongTermMsgRateOut
}

// best is the candidates with the lowest score, in order, and that score. If no score can be compared (NaN) it is all
// candidates. Candidates without a load report, on which Pulsar fails, are left out.
func (LeastLongTermMessageRate) best(snap *cluster.Snapshot, candidates []int, st *State) ([]int, float64) {
	test := newOverloadTest(snap)
	best, least := st.scratch.best[:0], math.Inf(1)
	for _, i := range candidates {
		b := &snap.Brokers[i]
		if b.Local == nil {
			continue
		}
		switch score := longTermScore(b, i, st, &test); {
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
	return best, least
}

// reporting appends the candidates that have a load report.
func reporting(snap *cluster.Snapshot, candidates, to []int) []int {
	for _, i := range candidates {
		if snap.Brokers[i].Local != nil {
			to = append(to, i)
		}
	}
	return to
}

// explain records why the candidates that are not the best were passed over.
func (LeastLongTermMessageRate) explain(snap *cluster.Snapshot, bundle string, candidates []int, st *State, least float64, trace *plan.Trace) {
	test, threshold := newOverloadTest(snap), overloadThreshold(snap)
	for _, i := range candidates {
		b := &snap.Brokers[i]
		if b.Local == nil {
			leaveSilent(trace, bundle, b)
			continue
		}
		score := longTermScore(b, i, st, &test)
		switch usage := load.LocalWeightedMaxUsage(b.Local, &test.weights); {
		case usage > threshold:
			trace.Skip(bundle, b.ID, "", OverloadedCandidate.Because(plan.N("usage", usage), plan.N("threshold", threshold)))
		case score != least:
			trace.Skip(bundle, b.ID, "", MoreRate.Because(plan.N("score", score), plan.N("least", least)))
		}
	}
}
