package extensible

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/internal/jsonfloat"
	"github.com/ballast-lb/ballast/plan"
)

// StateVersion is the version of State that this package writes.
const StateVersion = 1

// State is the memory of the Extensible load manager and its strategies between calls. It is plain data; encoding/json
// writes it and reads it back without loss.
type State struct {
	Version int `json:"version"`

	// HitCount is how many cycles running the shedding condition held (Pulsar: TransferShedder.unloadConditionHitCount).
	HitCount int64 `json:"hitCount"`
	// UnloadedBundles is when bundles were unloaded, Unix ms (Pulsar: UnloadScheduler.recentlyUnloadedBundles).
	UnloadedBundles map[string]int64 `json:"unloadedBundles,omitempty"`
	// UnloadedBrokers is when brokers were last unloaded, Unix ms (Pulsar: UnloadScheduler.recentlyUnloadedBrokers).
	UnloadedBrokers map[string]int64 `json:"unloadedBrokers,omitempty"`
	// CycleSources are the brokers that bundles of the current shedding cycle were unloaded from.
	CycleSources []string `json:"cycleSources,omitempty"`
	// SplitHits is, per broker and bundle, how many rounds running the bundle exceeded a limit
	// (Pulsar: DefaultNamespaceBundleSplitStrategyImpl.splitConditionHitCounts).
	SplitHits map[string]map[string]int64 `json:"splitHits,omitempty"`
	// Told are the bundles about which an advice was given that still holds.
	Told map[string]bool `json:"told,omitempty"`
	// RoundRobin is the memory of the selector for namespaces that are excluded from shedding.
	RoundRobin RoundRobin `json:"roundRobin"`
	// Pending is what was placed on brokers since their load data was heard, kept if Options.CountPending is set.
	Pending map[string]Pending `json:"pending,omitempty"`
	// Counters are Pulsar's counters.
	Counters Counters `json:"counters"`

	selection *selection
}

// Pending is how many bundles were placed on a broker since its load data of time UpdatedAt was heard.
type Pending struct {
	UpdatedAt int64 `json:"updatedAt"`
	Bundles   int64 `json:"bundles"`
}

// Counters are the counters that Pulsar exports as metrics, since the state was new.
type Counters struct {
	Assign        AssignCounts    `json:"assign"`        // brk_lb_assign_broker_breakdown_total
	Unload        UnloadCounts    `json:"unload"`        // brk_lb_unload_broker_breakdown_total
	UnloadBrokers int64           `json:"unloadBrokers"` // brk_lb_unload_broker_total
	UnloadBundles int64           `json:"unloadBundles"` // brk_lb_unload_bundle_total
	LoadAvg       jsonfloat.Float `json:"loadAvg"`       // brk_lb_resource_usage_stats, stat=avg
	LoadStd       jsonfloat.Float `json:"loadStd"`       // brk_lb_resource_usage_stats, stat=std
	Split         SplitCounts     `json:"split"`         // brk_lb_bundles_split_breakdown_total
	SplitBundles  int64           `json:"splitBundles"`  // brk_lb_bundles_split_total
}

// NewState is the state before the first call.
func NewState() *State { return &State{Version: StateVersion} }

// UnmarshalJSON reads a state that this or an earlier version of the package wrote.
func (st *State) UnmarshalJSON(b []byte) error {
	type plain State // without this method
	var fresh plain
	if err := json.Unmarshal(b, &fresh); err != nil {
		return fmt.Errorf("extensible: state: %w", err)
	}
	if fresh.Version < 1 || fresh.Version > StateVersion {
		return fmt.Errorf("extensible: state has version %d, this is written for 1 to %d", fresh.Version, StateVersion)
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

// next is a copy to change. Its maps and lists are still those of the original: see forget and with.
func (st *State) next() *State {
	n := *st
	n.Pending = maps.Clone(st.Pending) // Place changes it in place
	n.selection = nil
	return &n
}

// forget deletes a key from a map that belongs to an earlier state, too, unless it was cloned already.
func forget[V any](m *map[string]V, cloned *bool, key string) {
	if !*cloned {
		*m, *cloned = maps.Clone(*m), true
	}
	delete(*m, key)
}

// with is the map with one more entry; the given map is not changed.
func with[V any](m map[string]V, key string, value V) map[string]V {
	out := make(map[string]V, len(m)+1)
	maps.Copy(out, m)
	out[key] = value
	return out
}

// addSource adds a broker to the brokers of the cycle and says whether it is a new one.
func (st *State) addSource(broker string) bool {
	if slices.Contains(st.CycleSources, broker) {
		return false
	}
	st.CycleSources = append(slices.Clip(st.CycleSources), broker)
	return true
}
