package extensible

import (
	"math"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
)

// RoundRobinBrokerSelectionStrategy gives the candidates their turns. Its memory is State.RoundRobin.
// Pulsar: RoundRobinBrokerSelectionStrategy, which the Extensible manager uses for namespaces that are excluded from shedding.
type RoundRobinBrokerSelectionStrategy struct{}

// RoundRobin is what RoundRobinBrokerSelectionStrategy remembers.
type RoundRobin struct {
	Count   int32    `json:"count"`
	Brokers []string `json:"brokers,omitempty"` // the candidates, as of when their number last changed
}

// Turn: it is the broker's turn.
var Turn = plan.Code{ID: "ROUND_ROBIN", Template: "turn {count} of {candidates} candidates"}

// Place implements plan.Placer.
func (RoundRobinBrokerSelectionStrategy) Place(snap *cluster.Snapshot, _ string, candidates []int, state plan.State, _ plan.Rand, trace *plan.Trace) (int, plan.Reason) {
	m := &stateOf(state).RoundRobin
	n := len(candidates)
	if n == 0 {
		return -1, none(trace)
	}
	count := m.Count
	m.Count++
	if count == math.MaxInt32 || count < 0 { // only a state from elsewhere counts below 0
		count, m.Count = max(count, 0), 0
	}
	place := int(count) % n
	if len(m.Brokers) != n {
		m.remember(snap, candidates)
	}
	chosen := -1
	for _, i := range candidates {
		if snap.Brokers[i].ID == m.Brokers[place] {
			chosen = i
			break
		}
	}
	if chosen < 0 {
		m.remember(snap, candidates)
		chosen = candidates[place]
	}
	if trace == nil {
		return chosen, plan.Reason{}
	}
	return chosen, Turn.Because(plan.N("count", count), plan.N("candidates", n))
}

// remember makes these the brokers that have turns. It makes a new list, since an earlier state may have the old one.
func (m *RoundRobin) remember(snap *cluster.Snapshot, candidates []int) {
	m.Brokers = make([]string, len(candidates))
	for k, i := range candidates {
		m.Brokers[k] = snap.Brokers[i].ID
	}
}
