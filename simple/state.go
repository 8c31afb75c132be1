package simple

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/jsonfloat"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// StateVersion is the version of State that this package writes.
const StateVersion = 1

// State is the memory of the Simple load manager between calls. It is plain data; encoding/json writes it and reads it back
// without loss.
type State struct {
	Version int `json:"version"`

	// Started says that there was an Update; the first one is that of a broker that starts.
	Started bool `json:"started"`
	// RankedAt is the time of the snapshot of the last Update, Unix ms.
	RankedAt int64 `json:"rankedAt"`
	// Quotas is what bundles are expected to need.
	Quotas Quotas `json:"quotas"`
	// Factor is the CPU factor that brokers are ranked with.
	Factor jsonfloat.Float `json:"factor"`
	// Rankings are the brokers as they were last ranked, in the order of the snapshot, and what they were given since.
	Rankings []Ranking `json:"rankings"`
	// Served is which bundles each broker counts as serving when a namespace is spread evenly
	// (Pulsar: brokerToNamespaceToBundleRange, which lags one update).
	Served map[string][]string `json:"served,omitempty"`
	// Cursor is the rotation cursor of leastLoadedServer and leastMsgPerSecond.
	Cursor int64 `json:"cursor"`
	// RecentlyUnloaded maps bundles to the time they were shed, Unix ms (Pulsar: unloadedHotNamespaceCache).
	RecentlyUnloaded map[string]int64 `json:"recentlyUnloaded,omitempty"`
	// Told is the advice that was given and still holds: code and subject.
	Told []string `json:"told,omitempty"`

	index *index
}

// index is what is looked up in a State. It can be made again at any time.
type index struct {
	byName map[string]int               // place in Rankings by broker
	order  []int                        // places in Rankings by rank, then by broker id
	loaded []map[string]struct{}        // per place in Rankings
	given  []map[string]struct{}        // likewise: what was pre-allocated
	counts map[string]map[string]int    // per broker: bundles of a namespace that count as served
	snap   *cluster.Snapshot            // of reports and policies
	report map[string]*event.LoadReport // by broker name
	view   *policy.View                 // over Rankings, or over the registered brokers when there is none
	kinds  bool                         // view checks topic kinds
}

// NewState is the state before the first call.
func NewState() *State {
	return &State{
		Version: StateVersion,
		Quotas:  Quotas{CPUFactor: initialCPUFactor, MemoryFactor: initialMemoryFactor, Average: event.NewResourceQuota(), Updated: -1},
		Factor:  initialCPUFactor,
	}
}

// stateOf is the given state, or a new one where a caller has none.
func stateOf(state plan.State) *State {
	if st, ok := state.(*State); ok && st != nil {
		return st
	}
	return NewState()
}

// next is a copy that may be changed.
func (st *State) next() *State {
	n := *st
	n.Version, n.index = StateVersion, nil
	n.Rankings = slices.Clone(st.Rankings)
	for i := range n.Rankings {
		n.Rankings[i].Preallocated = slices.Clip(n.Rankings[i].Preallocated)
	}
	n.Quotas.Seen = maps.Clone(st.Quotas.Seen)
	n.Served = maps.Clone(st.Served)
	for b, list := range n.Served {
		n.Served[b] = slices.Clip(list)
	}
	n.RecentlyUnloaded = maps.Clone(st.RecentlyUnloaded)
	n.Told = slices.Clone(st.Told)
	return &n
}

// report is a load report under the name by which its broker is ranked.
type report struct {
	broker string
	*event.LoadReport
}

// reports are the load reports of a snapshot that can be ranked, one per name: of several the last counts.
func reports(snap *cluster.Snapshot) []report {
	out := make([]report, 0, len(snap.Brokers))
	places := make(map[string]int, len(snap.Brokers))
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		if b.Report == nil || b.Report.SystemResourceUsage == nil {
			continue
		}
		r := report{nameOf(b), b.Report}
		if at, ok := places[r.broker]; ok {
			out[at] = r
			continue
		}
		places[r.broker] = len(out)
		out = append(out, r)
	}
	return out
}

// nameOf is the name under which a broker is ranked: that of its report, else its id.
func nameOf(b *cluster.Broker) string {
	if b.Report != nil && b.Report.Name != "" {
		return b.Report.Name
	}
	return b.ID
}

// lookups is the index, made where there is none, over the reports and policies of the snapshot.
func (st *State) lookups(snap *cluster.Snapshot, kinds bool) *index {
	if st.index == nil {
		st.index = st.makeIndex()
	}
	x := st.index
	if x.snap == snap && x.kinds == kinds {
		return x
	}
	x.snap, x.kinds = snap, kinds
	x.report = make(map[string]*event.LoadReport, len(snap.Brokers))
	for i := range snap.Brokers {
		if r := snap.Brokers[i].Report; r != nil {
			x.report[nameOf(&snap.Brokers[i])] = r
		}
	}
	x.view = nil
	return x
}

func (st *State) makeIndex() *index {
	n := len(st.Rankings)
	x := &index{byName: make(map[string]int, n), order: make([]int, n), loaded: make([]map[string]struct{}, n),
		given: make([]map[string]struct{}, n), counts: make(map[string]map[string]int, len(st.Served))}
	for i := range st.Rankings {
		r := &st.Rankings[i]
		r.reckon(float64(st.Factor))
		x.byName[r.Broker], x.order[i] = i, i
		x.loaded[i], x.given[i] = setOf(r.Loaded), setOf(r.Preallocated)
	}
	slices.SortStableFunc(x.order, func(a, b int) int {
		p, q := &st.Rankings[a], &st.Rankings[b]
		return cmp.Or(cmp.Compare(p.Rank, q.Rank), strings.Compare(p.Broker, q.Broker))
	})
	for broker, bundles := range st.Served {
		for _, b := range bundles {
			x.serve(broker, b)
		}
	}
	return x
}

func setOf(names []string) map[string]struct{} {
	set := make(map[string]struct{}, len(names))
	for _, n := range names {
		set[n] = struct{}{}
	}
	return set
}

// serve counts a bundle of a broker.
func (x *index) serve(broker, bundle string) {
	counts := x.counts[broker]
	if counts == nil {
		counts = make(map[string]int)
		x.counts[broker] = counts
	}
	counts[namespaceOf(bundle)]++
}

// give notes that a bundle is placed on the broker at a place of Rankings.
func (st *State) give(at int, bundle string) {
	r, x := &st.Rankings[at], st.index
	r.give(bundle, st.Quotas.look(bundle), float64(st.Factor))
	x.given[at][bundle] = struct{}{}
	if !slices.Contains(st.Served[r.Broker], bundle) {
		if st.Served == nil {
			st.Served = make(map[string][]string)
		}
		st.Served[r.Broker] = append(st.Served[r.Broker], bundle)
		x.serve(r.Broker, bundle)
	}
}

// take notes that the broker at a place of Rankings does not have a bundle that it reported.
func (st *State) take(at int, bundle string) {
	st.Rankings[at].take(bundle, st.Quotas.look(bundle), float64(st.Factor))
	delete(st.index.loaded[at], bundle)
}

// namespaceOf is the tenant/namespace part of a bundle name, the whole name if it has none.
func namespaceOf(bundle string) string {
	if i := strings.LastIndexByte(bundle, '/'); i >= 0 {
		return bundle[:i]
	}
	return bundle
}

// tell is the advice that was not given yet; what holds no more may be given again.
func (st *State) tell(about string, advice []plan.LeftOut) []plan.LeftOut {
	var fresh []plan.LeftOut
	told := slices.DeleteFunc(slices.Clone(st.Told), func(t string) bool { return strings.HasPrefix(t, about) })
	for _, a := range advice {
		key := about + a.Why.Code + " " + a.Bundle
		if !slices.Contains(st.Told, key) {
			fresh = append(fresh, a)
		}
		told = append(told, key)
	}
	st.Told = told
	return fresh
}
