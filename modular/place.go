package modular

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// NoCandidates is the reason for no broker: there is nothing to choose from.
var NoCandidates = plan.Code{ID: "NO_CANDIDATES", Template: "none of {candidates} candidates can be chosen"}

// OverloadedCandidate: the candidate is above the overload threshold.
var OverloadedCandidate = plan.Code{ID: "CANDIDATE_OVERLOADED", Template: "usage {usage} > overload threshold {threshold}"}

// draw picks one of the best brokers, the first where there is no randomness, -1 from none.
func draw(best []int, rnd plan.Rand) int {
	switch {
	case len(best) == 0:
		return -1
	case len(best) == 1 || rnd == nil:
		return best[0]
	}
	return best[rnd.IntN(len(best))]
}

// because makes a reason only if there is a trace.
func because(trace *plan.Trace, why func() plan.Reason) plan.Reason {
	if trace == nil {
		return plan.Reason{}
	}
	return why()
}

// leave records that a candidate for a bundle was passed over. why is called only if there is a trace.
func leave(trace *plan.Trace, bundle string, b *cluster.Broker, why func() plan.Reason) {
	if trace != nil {
		trace.Skip(bundle, b.ID, "", why())
	}
}

// leaveSilent records that a candidate has no load report.
func leaveSilent(trace *plan.Trace, bundle string, b *cluster.Broker) {
	leave(trace, bundle, b, func() plan.Reason { return NoReport.Because() })
}

// only is a set of one broker.
func (st *State) only(broker int) []int {
	st.scratch.best = append(st.scratch.best[:0], broker)
	return st.scratch.best
}

// candidate is the index of a broker id if it is a candidate, else -1.
func candidate(snap *cluster.Snapshot, candidates []int, id string) int {
	if i := snap.BrokerIndex(id); i >= 0 && slices.Contains(candidates, i) {
		return i
	}
	return -1
}

// overloadThreshold is loadBalancerBrokerOverloadedThresholdPercentage as a fraction.
func overloadThreshold(snap *cluster.Snapshot) float64 {
	return float64(snap.Settings.LoadBalancerBrokerOverloadedThresholdPercentage) / 100
}

// overloadTest says which brokers are above the overload threshold. It is the comparison of the weighted maximum usage with
// the threshold, turned around so that it ends at the first resource that is above: usage/100 > threshold exactly where
// usage > limit.
type overloadTest struct {
	weights load.Weights
	limit   float64 // percent
}

func newOverloadTest(snap *cluster.Snapshot) overloadTest {
	threshold := overloadThreshold(snap)
	limit := threshold * 100
	for limit/100 > threshold {
		limit = math.Nextafter(limit, math.Inf(-1))
	}
	for next := math.Nextafter(limit, math.Inf(1)); next/100 <= threshold; next = math.Nextafter(limit, math.Inf(1)) {
		limit = next
	}
	return overloadTest{weights: load.WeightsOf(snap.Settings), limit: limit}
}

// above says whether a broker is above the threshold.
func (t *overloadTest) above(d *event.LocalBrokerData) bool {
	return float64(d.CPU.PercentUsage())*t.weights.CPU > t.limit ||
		float64(d.DirectMemory.PercentUsage())*t.weights.DirectMemory > t.limit ||
		float64(d.BandwidthIn.PercentUsage())*t.weights.BandwidthIn > t.limit ||
		float64(d.BandwidthOut.PercentUsage())*t.weights.BandwidthOut > t.limit
}

// unseen is the history of a bundle that nothing is known of.
var unseen = load.NewBundleData(load.ShortSamples, load.LongSamples, load.DefaultStats())

// dataOf is the history of a bundle: the snapshot's, else the state's, else that of a bundle that was never seen. It must
// not be written.
func dataOf(snap *cluster.Snapshot, st *State, bundle string) *event.BundleData {
	i := snap.BundleIndex(bundle)
	if i >= 0 && snap.Bundles[i].Data != nil {
		return snap.Bundles[i].Data
	}
	if d := st.History.Get(i, bundle); d != nil {
		return d
	}
	return &unseen
}
