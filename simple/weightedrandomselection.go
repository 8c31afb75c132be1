package simple

import (
	"math"

	"github.com/ballast-lb/ballast/plan"
)

// Why weightedRandomSelection chose a broker, or none.
var (
	// WeightedPick: a broker was drawn with its rank as weight.
	WeightedPick = plan.Code{ID: "WEIGHTED_PICK", Template: "drawn with weight {rank} of {total} among {candidates} candidates"}
	// UniformPick: the ranks add up to nothing, so all that have rank 0 are alike.
	UniformPick = plan.Code{ID: "UNIFORM_PICK", Template: "the ranks of {candidates} candidates add up to {total}: drawn among them"}
	// PickMissed: the draw fell on no broker, where Pulsar's request fails.
	PickMissed = plan.Code{ID: "PICK_MISSED", Template: "draw {draw} among {candidates} candidates with ranks that add up to {total} falls on none"}
)

// weighted draws a broker with its rank as weight. Ranks are added up with 32 bits (Options.WideWeights: with 64). If the
// sum is not positive, a place among all candidates is drawn and looked for among those of rank 0 (WideWeights: among all).
// Pulsar: WRRPlacementStrategy.
func (m *Manager) weighted(candidates []candidate, rnd plan.Rand) (string, plan.Reason) {
	n := plan.N("candidates", len(candidates))
	wide := m.Options.WideWeights
	total := sumOfRanks(candidates, wide)
	if total <= 0 {
		draw := intN(rnd, len(candidates))
		at := draw
		for i := range candidates {
			if !wide && candidates[i].rank != 0 {
				continue
			}
			if at == 0 {
				return candidates[i].broker, UniformPick.Because(n, plan.N("total", total))
			}
			at--
		}
		return "", PickMissed.Because(plan.N("draw", draw), n, plan.N("total", total))
	}
	draw := int64(intN(rnd, int(total)))
	var reached int64
	for i := range candidates {
		weight := candidates[i].rank
		if wide {
			weight = wideWeight(weight, len(candidates))
		}
		if reached += weight; draw < reached {
			return candidates[i].broker, WeightedPick.Because(plan.N("rank", candidates[i].rank), plan.N("total", total), n)
		}
	}
	return "", PickMissed.Because(plan.N("draw", draw), n, plan.N("total", total))
}

// sumOfRanks adds the ranks up as Java's int does, or wide.
func sumOfRanks(candidates []candidate, wide bool) int64 {
	var narrow int32
	var sum int64
	for i := range candidates {
		narrow += int32(candidates[i].rank)
		sum += wideWeight(candidates[i].rank, len(candidates))
	}
	if wide {
		return sum
	}
	return int64(narrow)
}

// wideWeight is a rank as a weight of which n can be added up: negative ones are 0.
func wideWeight(rank int64, n int) int64 { return min(max(rank, 0), math.MaxInt64/int64(n)) }

// intN is a number from 0 to n-1, 0 where there is no randomness.
func intN(rnd plan.Rand, n int) int {
	if rnd == nil || n <= 1 {
		return 0
	}
	return rnd.IntN(n)
}
