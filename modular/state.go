package modular

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// StateVersion is the version of State that this package writes.
const StateVersion = 1

// State is the memory of the Modular load manager and its strategies between calls. It is plain data; encoding/json writes
// it and reads it back without loss.
type State struct {
	Version int `json:"version"`

	// Registered are the brokers that were registered at the last Update (Pulsar: knownBrokers).
	Registered []string `json:"registered"`
	// History is the averages per bundle (Pulsar: LoadData.bundleData).
	History Table[event.BundleData] `json:"history"`
	// Sampled is, per broker, the time of the load report whose statistics were added last, Unix ms.
	Sampled Table[int64] `json:"sampled"`
	// Preallocated is what was assigned to each broker and not yet reported by it (Pulsar: BrokerData.preallocatedBundleData).
	Preallocated Table[Preallocations] `json:"preallocated"`
	// Assigned maps bundles to the brokers they were assigned to since the last Update (Pulsar: preallocatedBundleToBroker).
	Assigned map[string]string `json:"assigned,omitempty"`
	// Affinity maps unloaded bundles to the broker that their next assignment goes to (Pulsar: bundleBrokerAffinityMap).
	Affinity map[string]string `json:"affinity,omitempty"`
	// RecentlyUnloaded maps bundles to the time they were unloaded, Unix ms (Pulsar: LoadData.recentlyUnloadedBundles).
	RecentlyUnloaded map[string]int64 `json:"recentlyUnloaded,omitempty"`

	// Threshold is ThresholdShedder's average usage per broker, a fraction.
	Threshold Table[Double] `json:"threshold"`
	// LeastResource is LeastResourceUsageWithWeight's average usage per broker.
	LeastResource Table[UsageAverage] `json:"leastResource"`
	// RoundRobin is RoundRobinBrokerSelector's memory as a placement strategy, Excluded as the selector for namespaces that
	// are excluded from shedding.
	RoundRobin RoundRobinMemory `json:"roundRobin"`
	Excluded   RoundRobinMemory `json:"excluded"`
	// Avg is AvgShedder's memory, as shedding and as placement strategy.
	Avg AvgMemory `json:"avg"`
	// Other is the memory of strategies that are not of this package: a pointer to plain data, or nil.
	Other any `json:"other,omitempty"`

	view    *view
	scratch scratch
}

// Preallocations are the bundles that were assigned to one broker and that it has not reported yet, oldest first.
type Preallocations struct {
	Bundles []Preallocation `json:"bundles"`

	rate   float64 // sum of the long-term rates of the first summed bundles, added one after another
	summed int
}

// Preallocation is one of them.
type Preallocation struct {
	Bundle string           `json:"bundle"`
	Data   event.BundleData `json:"data"`
	At     int64            `json:"at"` // Unix ms
}

// UsageAverage is an average usage (a fraction) and the time of the last load report in it, Unix ms.
type UsageAverage struct {
	Usage  Double `json:"usage"`
	Report int64  `json:"report"`
}

// scratch is memory that a placement uses again, so that it allocates nothing.
type scratch struct {
	best       []int
	usage      []float64
	candidates []int
	policy     []int
	counts     []int
}

// NewState is the state before the first call.
func NewState() *State { return &State{Version: StateVersion} }

// UnmarshalJSON reads a state that this or an earlier version of the package wrote. Other keeps its type if it is set.
func (st *State) UnmarshalJSON(b []byte) error {
	type plain State // without this method
	fresh := plain{Other: st.Other}
	if err := json.Unmarshal(b, &fresh); err != nil {
		return fmt.Errorf("modular: state: %w", err)
	}
	if fresh.Version < 1 || fresh.Version > StateVersion {
		return fmt.Errorf("modular: state has version %d, this is written for 1 to %d", fresh.Version, StateVersion)
	}
	*st = State(fresh)
	return nil
}

// stateOf is the given state, or a new one where a caller has none.
func stateOf(state plan.State) *State {
	if st, ok := state.(*State); ok && st != nil {
		return st
	}
	return NewState()
}

// next is a copy in which everything but the histories, which are shared until one is appended to, may be changed.
func (st *State) next() *State {
	n := &State{
		Version:          StateVersion,
		Registered:       st.Registered,
		History:          st.History.shared(),
		Sampled:          st.Sampled.Clone(),
		Preallocated:     st.Preallocated.Clone(),
		Assigned:         maps.Clone(st.Assigned),
		Affinity:         maps.Clone(st.Affinity),
		RecentlyUnloaded: maps.Clone(st.RecentlyUnloaded),
		Threshold:        st.Threshold.Clone(),
		LeastResource:    st.LeastResource.Clone(),
		RoundRobin:       st.RoundRobin,
		Excluded:         st.Excluded,
		Avg:              st.Avg.clone(),
		Other:            st.Other,
	}
	for i := range n.Preallocated.entries {
		p := &n.Preallocated.entries[i].Value
		p.Bundles = slices.Clip(p.Bundles)
	}
	return n
}

// Preallocate notes that a bundle was assigned to a broker.
func (st *State) Preallocate(broker string, p Preallocation) {
	list, _ := st.Preallocated.Add(-1, broker)
	list.put(p)
	if st.Assigned == nil {
		st.Assigned = make(map[string]string)
	}
	st.Assigned[p.Bundle] = broker
	st.view = nil
}

// preallocate is Preallocate for a broker of a snapshot, of which the counts are kept.
func (st *State) preallocate(snap *cluster.Snapshot, bundle string, broker int, data *event.BundleData) {
	v := st.view
	st.Preallocate(snap.Brokers[broker].ID, Preallocation{Bundle: bundle, Data: *data, At: snap.Now})
	st.view = v
	if st.view != nil && st.view.snap == snap {
		st.view.add(snap, bundle, broker)
	}
}

// put adds a bundle, or replaces it where it is.
func (p *Preallocations) put(n Preallocation) {
	for i := range p.Bundles {
		if p.Bundles[i].Bundle == n.Bundle {
			p.Bundles = slices.Clone(p.Bundles)
			p.Bundles[i] = n
			p.rate, p.summed = 0, 0
			return
		}
	}
	p.Bundles = append(p.Bundles, n)
}

// longTermRate is the sum of the long-term message rates, in order.
func (p *Preallocations) longTermRate() float64 {
	for ; p.summed < len(p.Bundles); p.summed++ {
		p.rate += p.Bundles[p.summed].Data.LongTermData.TotalMsgRate()
	}
	return p.rate
}

// topics is the sum of the bundles' topics.
func (p *Preallocations) topics() int64 {
	var n int64
	for i := range p.Bundles {
		n += int64(p.Bundles[i].Data.Topics)
	}
	return n
}

// forgetBrokers drops the averages of brokers that are not registered (Pulsar: onActiveBrokersChange of the strategies;
// AvgShedder forgets nothing).
func (st *State) forgetBrokers(registered func(broker string) bool) {
	st.Threshold.Retain(func(b string, _ *Double) bool { return registered(b) })
	st.LeastResource.Retain(func(b string, _ *UsageAverage) bool { return registered(b) })
}

// BrokersChanged tells the strategies' memory which brokers are registered now.
// Pulsar: LoadSheddingStrategy and ModularLoadManagerStrategy onActiveBrokersChange.
func (st *State) BrokersChanged(active []string) {
	set := make(map[string]bool, len(active))
	for _, b := range active {
		set[b] = true
	}
	st.forgetBrokers(func(b string) bool { return set[b] })
}
