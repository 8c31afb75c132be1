package modular

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
)

// RoundRobinBrokerSelector gives the candidates their turns. Pulsar: RoundRobinBrokerSelector. Memory: State.RoundRobin.
type RoundRobinBrokerSelector struct {
	excluded bool // uses State.Excluded: the manager's own selector for excluded namespaces
}

// RoundRobinMemory is what RoundRobinBrokerSelector remembers.
type RoundRobinMemory struct {
	Count   int32    `json:"count"`
	Brokers []string `json:"brokers,omitempty"` // the candidates, as of when their number last changed
}

// Turn: it is the broker's turn.
var Turn = plan.Code{ID: "ROUND_ROBIN", Template: "turn {count}: place {place} of {candidates} candidates"}

// Place implements plan.Placer.
func (r RoundRobinBrokerSelector) Place(snap *cluster.Snapshot, _ string, candidates []int, state plan.State, _ plan.Rand, trace *plan.Trace) (int, plan.Reason) {
	st := stateOf(state)
	m := &st.RoundRobin
	if r.excluded {
		m = &st.Excluded
	}
	n := len(candidates)
	if n == 0 {
		return -1, because(trace, func() plan.Reason { return NoCandidates.Because(plan.N("candidates", 0)) })
	}
	count := m.Count
	if m.Count == math.MaxInt32 {
		m.Count = 0
	} else {
		m.Count++
	}
	place := int(count) % n
	if place < 0 { // only a state from elsewhere counts below 0
		place += n
	}
	if len(m.Brokers) != n {
		m.remember(snap, candidates)
	}
	i := candidate(snap, candidates, m.Brokers[place])
	if i < 0 {
		m.remember(snap, candidates)
		i = candidates[place]
	}
	return i, because(trace, func() plan.Reason {
		return Turn.Because(plan.N("count", count), plan.N("place", place), plan.N("candidates", n))
	})
}

// remember makes these the brokers that have turns. The list may be shared with an earlier state, so it is a new one
// unless nothing changes.
func (m *RoundRobinMemory) remember(snap *cluster.Snapshot, candidates []int) {
	list := make([]string, len(candidates))
	for k, i := range candidates {
		list[k] = snap.Brokers[i].ID
	}
	if !slices.Equal(list, m.Brokers) {
		m.Brokers = list
	}
}
