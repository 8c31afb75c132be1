package extensible

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
)

// LeastResourceUsageWithWeight draws a broker among those whose published load is below the average of the candidates by at
// least loadBalancerAverageResourceUsageDifferenceThresholdPercentage; if there is none, among all. Candidates without load
// data count in neither. It reads the brokers' Load. Pulsar: the Extensible manager's LeastResourceUsageWithWeight.
type LeastResourceUsageWithWeight struct{ Options Options }

// Why LeastResourceUsageWithWeight chose a broker, or none.
var (
	// WellBelow: the broker's load is well below the average.
	WellBelow = plan.Code{ID: "WELL_BELOW_AVERAGE", Template: "load {load} + {threshold} <= average {avg}: drawn among {best} of {candidates} candidates"}
	// NoneWellBelow: no candidate's load is; the draw was among all.
	NoneWellBelow = plan.Code{ID: "FALLBACK_NO_CANDIDATE_BELOW_AVERAGE", Template: "no candidate has load + {threshold} <= average {avg}: drawn among all {candidates}; this one has load {load}"}
	// NoneKnown: no candidate has load data.
	NoneKnown = plan.Code{ID: "FALLBACK_NO_LOAD_DATA", Template: "no candidate has load data: drawn among all {candidates}"}
	// AtMostAverage: no candidate's load is well below; the draw was among those not above the average (Options.AvoidOverloaded).
	AtMostAverage = plan.Code{ID: "FALLBACK_AT_MOST_AVERAGE", Template: "no candidate has load + {threshold} <= average {avg}: drawn among {best} of {candidates} with at most that; this one has load {load}"}
	// NoCandidates: there is no candidate.
	NoCandidates = plan.Code{ID: "NO_CANDIDATES", Template: "there is no candidate"}
)

func none(trace *plan.Trace) plan.Reason {
	if trace == nil {
		return plan.Reason{}
	}
	return NoCandidates.Because()
}

// Place implements plan.Placer.
func (l LeastResourceUsageWithWeight) Place(snap *cluster.Snapshot, _ string, candidates []int, state plan.State, rnd plan.Rand, trace *plan.Trace) (int, plan.Reason) {
	if len(candidates) == 0 {
		return -1, none(trace)
	}
	s := l.scores(snap, candidates, state)
	var chosen int
	switch {
	case s.best > 0:
		chosen = s.nth(candidates, rnd.IntN(s.best))
	case s.known == 0 || !l.Options.AvoidOverloaded || s.atMost == 0:
		chosen = candidates[rnd.IntN(len(candidates))]
	default:
		s.threshold = 0
		chosen = s.nth(candidates, rnd.IntN(s.atMost))
	}
	var why plan.Reason
	if trace != nil {
		why = s.why(l.Options, snap, chosen, len(candidates))
	}
	s.count(chosen)
	return chosen, why
}

// Best is the candidates that Place draws among, in order.
func (l LeastResourceUsageWithWeight) Best(snap *cluster.Snapshot, candidates []int, state plan.State) []int {
	s := l.scores(snap, candidates, state)
	if s.best == 0 {
		if s.known == 0 || !l.Options.AvoidOverloaded || s.atMost == 0 {
			return candidates
		}
		s.threshold = 0
	}
	var out []int
	for _, i := range candidates {
		if s.below(i) {
			out = append(out, i)
		}
	}
	return out
}

// scores are what one choice compares.
type scores struct {
	snap      *cluster.Snapshot
	st        *State // nil unless pending placements count
	perBundle float64
	threshold float64
	avg       float64
	known     int // candidates with load data
	best      int // candidates well below the average
	atMost    int // candidates not above the average
}

func (l LeastResourceUsageWithWeight) scores(snap *cluster.Snapshot, candidates []int, state plan.State) scores {
	s := scores{snap: snap, threshold: float64(snap.Settings.LoadBalancerAverageResourceUsageDifferenceThresholdPercentage) / 100}
	if l.Options.CountPending {
		s.st = stateOf(state)
		s.perBundle = loadPerBundle(snap)
	}
	sum := 0.0
	for _, i := range candidates {
		if snap.Brokers[i].Load != nil {
			sum += s.load(i)
			s.known++
		}
	}
	if s.known == 0 {
		return s
	}
	s.avg = sum / float64(s.known)
	for _, i := range candidates {
		if s.below(i) {
			s.best++
		}
		if snap.Brokers[i].Load != nil && s.load(i) <= s.avg {
			s.atMost++
		}
	}
	return s
}

// below says whether a broker's load is below the average by the threshold.
func (s *scores) below(i int) bool {
	return s.snap.Brokers[i].Load != nil && s.load(i)+s.threshold <= s.avg
}

// nth is the n-th candidate below the average by the threshold.
func (s *scores) nth(candidates []int, n int) int {
	for _, i := range candidates {
		if s.below(i) {
			if n == 0 {
				return i
			}
			n--
		}
	}
	return candidates[0]
}

// load is a broker's load, with what was placed on it since that was heard if that counts.
func (s *scores) load(i int) float64 {
	b := &s.snap.Brokers[i]
	if s.st == nil {
		return b.Load.WeightedMaxEMA
	}
	p := s.st.Pending[b.ID]
	if p.UpdatedAt != b.Load.UpdatedAt {
		return b.Load.WeightedMaxEMA
	}
	return b.Load.WeightedMaxEMA + float64(float64(p.Bundles)*s.perBundle)
}

// count adds a placement to what is pending on a broker.
func (s *scores) count(i int) {
	if s.st == nil {
		return
	}
	b := &s.snap.Brokers[i]
	var updated int64
	if b.Load != nil {
		updated = b.Load.UpdatedAt
	}
	p := s.st.Pending[b.ID]
	if p.UpdatedAt != updated {
		p = Pending{UpdatedAt: updated}
	}
	p.Bundles++
	if s.st.Pending == nil {
		s.st.Pending = make(map[string]Pending)
	}
	s.st.Pending[b.ID] = p
}

// loadPerBundle is the average load of a bundle, 0 if there is none.
func loadPerBundle(snap *cluster.Snapshot) float64 {
	var sum, bundles float64
	for i := range snap.Brokers {
		if l := snap.Brokers[i].Load; l != nil && l.WeightedMaxEMA >= 0 && l.BundleCount > 0 {
			sum += l.WeightedMaxEMA
			bundles += float64(l.BundleCount)
		}
	}
	if bundles == 0 {
		return 0
	}
	return sum / bundles
}

func (s *scores) why(o Options, snap *cluster.Snapshot, chosen, candidates int) plan.Reason {
	n := plan.N("candidates", candidates)
	if s.known == 0 {
		return NoneKnown.Because(n)
	}
	load := plan.N("load", 0)
	if snap.Brokers[chosen].Load != nil {
		load.Value = s.load(chosen)
	} else {
		load.Text = "unknown"
	}
	avg, threshold := plan.N("avg", s.avg), plan.N("threshold",
		float64(snap.Settings.LoadBalancerAverageResourceUsageDifferenceThresholdPercentage)/100)
	switch {
	case s.best > 0:
		return WellBelow.Because(load, threshold, avg, plan.N("best", s.best), n)
	case o.AvoidOverloaded && s.atMost > 0:
		return AtMostAverage.Because(load, threshold, avg, plan.N("best", s.atMost), n)
	}
	return NoneWellBelow.Because(load, threshold, avg, n)
}
