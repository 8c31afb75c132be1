package conformance

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/settings"
)

// indexes are the places of broker ids in a snapshot; ids that are not there are left out.
func indexes(snap *cluster.Snapshot, names []string) []int {
	out := make([]int, 0, len(names))
	for _, n := range names {
		if i := snap.BrokerIndex(n); i >= 0 {
			out = append(out, i)
		}
	}
	return out
}

// ids are the sorted broker ids of a set.
func ids(snap *cluster.Snapshot, set []int) []string {
	out := make([]string, 0, len(set))
	for _, i := range set {
		out = append(out, snap.Brokers[i].ID)
	}
	slices.Sort(out)
	return out
}

// legalSet is what a vector tells of a placement.
type legalSet struct {
	Legal  []string `json:"legal"`
	Empty  bool     `json:"empty,omitempty"`
	Random *bool    `json:"random,omitempty"`
}

func legalOf(snap *cluster.Snapshot, best []int) legalSet {
	if len(best) == 0 {
		return legalSet{Legal: []string{}, Empty: true}
	}
	random := len(best) > 1
	return legalSet{Legal: ids(snap, best), Random: &random}
}

// withPreallocated is a state in which these bundles are pre-allocated.
func withPreallocated(brokers []vectorBroker) *modular.State {
	st := modular.NewState()
	for i := range brokers {
		for _, b := range brokers[i].Preallocated {
			st.Preallocate(brokers[i].Name, modular.Preallocation{Bundle: b.Name, Data: b.data()})
		}
	}
	return st
}

func checkLeastLongTermMessageRate(l Line, pulsar string) string {
	var in struct {
		Brokers    []vectorBroker `json:"brokers"`
		Candidates []string       `json:"candidates"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	snap := modularSnapshot(in.Brokers, nil, conf, pulsar)
	st, strategy := withPreallocated(in.Brokers), modular.LeastLongTermMessageRate{}
	candidates := indexes(snap, in.Candidates)
	scores := make(map[string]Float)
	for _, i := range candidates {
		scores[snap.Brokers[i].ID] = Float(strategy.Score(snap, i, st))
	}
	best := strategy.Best(snap, candidates, st)
	if i, _ := strategy.Place(snap, "t/n/0x00000000_0xffffffff", candidates, st, nil, nil); i >= 0 && !slices.Contains(best, i) {
		return "placed outside the best set"
	}
	out := struct {
		Scores map[string]Float `json:"scores"`
		legalSet
	}{scores, legalOf(snap, best)}
	if thrown(l) { // a candidate without data; the scores of the others are still there
		return Diff(l.Output, map[string]any{"scores": scores}, remarks, IgnoreKeys("exception"))
	}
	return Diff(l.Output, out, remarks)
}

func checkLeastResourceUsage(l Line, pulsar string) string {
	type call struct {
		Brokers             []vectorBroker `json:"brokers"`
		Candidates          []string       `json:"candidates"`
		ActiveBrokersChange []string       `json:"activeBrokersChange"`
	}
	var in struct {
		Calls []call `json:"calls"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	var want struct {
		Calls []json.RawMessage `json:"calls"`
	}
	if err := json.Unmarshal(l.Output, &want); err != nil {
		return "output: " + err.Error()
	}
	if len(want.Calls) != len(in.Calls) {
		return Diff(len(want.Calls), len(in.Calls))
	}
	st, strategy := modular.NewState(), modular.LeastResourceUsageWithWeight{}
	for i, c := range in.Calls {
		if c.ActiveBrokersChange != nil {
			st.BrokersChanged(c.ActiveBrokersChange)
		}
		snap := modularSnapshot(c.Brokers, nil, conf, pulsar)
		best := strategy.Best(snap, indexes(snap, c.Candidates), st)
		if threw(want.Calls[i]) {
			continue // a candidate without data, in the last call
		}
		scores := make(map[string]Float)
		for _, e := range st.LeastResource.Entries() {
			scores[e.Key] = Float(e.Value.Usage)
		}
		out := struct {
			Scores map[string]Float `json:"scores"`
			legalSet
		}{scores, legalOf(snap, best)}
		if diff := Diff(want.Calls[i], out); diff != "" {
			return diff
		}
	}
	return ""
}

func checkRoundRobin(l Line, pulsar string) string {
	var in struct {
		StartCount int32      `json:"startCount"`
		Calls      [][]string `json:"calls"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	st := modular.NewState()
	st.RoundRobin.Count = in.StartCount
	selected := []*string{}
	for _, candidates := range in.Calls {
		brokers := make([]vectorBroker, len(candidates))
		for i, name := range candidates {
			brokers[i].Name = name
		}
		snap := modularSnapshot(brokers, nil, nil, pulsar)
		i, _ := modular.RoundRobinBrokerSelector{}.Place(snap, "", indexes(snap, candidates), st, nil, nil)
		if i < 0 {
			selected = append(selected, nil)
			continue
		}
		selected = append(selected, &snap.Brokers[i].ID)
	}
	return Diff(l.Output, map[string]any{"selected": selected, "endCount": st.RoundRobin.Count})
}

// checkAvgSelect places bundles one after another. The vector tells what came out of 120 runs: each of that must be able
// to come out here, whatever comes out here often must have come out there, and where the vector says so a call must come
// back to what an earlier one drew.
func checkAvgSelect(l Line, pulsar string) string {
	var in struct {
		Calls []avgCall `json:"calls"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	var want struct {
		Calls []struct {
			legalSet
			StickyTo  *int   `json:"stickyTo"`
			Exception string `json:"exception"`
		} `json:"calls"`
	}
	if err := json.Unmarshal(l.Output, &want); err != nil {
		return "output: " + err.Error()
	}
	if len(want.Calls) != len(in.Calls) {
		return Diff(len(want.Calls), len(in.Calls))
	}
	odds := make([]map[string]float64, len(in.Calls))
	for i := range odds {
		odds[i] = make(map[string]float64)
	}
	for draws, more := (&draws{}), true; more; more = draws.next() {
		drawn, chance := placeAll(in.Calls, conf, pulsar, draws)
		for i, id := range drawn {
			if id != "" {
				odds[i][id] += chance
			}
			s := want.Calls[i].StickyTo
			if s != nil && slices.Contains(in.Calls[i].Candidates, drawn[*s]) && drawn[*s] != id {
				return fmt.Sprintf("- call %d: comes back to %s of call %d\n+ call %d: %s\n", i, drawn[*s], *s, i, id)
			}
		}
	}
	for i, w := range want.Calls {
		if w.Exception != "" {
			continue
		}
		got := []string{}
		for id, p := range odds[i] {
			if p >= 0.1 || slices.Contains(w.Legal, id) { // what is rarer may be missing in 120 runs
				got = append(got, id)
			}
		}
		slices.Sort(got)
		if diff := Diff(w.Legal, got); diff != "" {
			return fmt.Sprintf("call %d:\n%s", i, diff)
		}
	}
	return ""
}

// avgCall is one placement in a vector of AvgShedder.
type avgCall struct {
	Bundle     vectorBundle `json:"bundle"`
	Candidates []string     `json:"candidates"`
}

// placeAll places the bundles with one state; it returns the brokers ("" = none) and how likely this outcome is.
func placeAll(calls []avgCall, conf *settings.Settings, pulsar string, d *draws) (brokers []string, chance float64) {
	st := modular.NewState()
	d.begin()
	for _, c := range calls {
		snap := modularSnapshot(named(c.Candidates), []vectorBundle{c.Bundle}, conf, pulsar)
		k, _ := modular.AvgShedder{}.Place(snap, c.Bundle.Name, indexes(snap, c.Candidates), st, d, nil)
		if k < 0 {
			brokers = append(brokers, "")
			continue
		}
		brokers = append(brokers, snap.Brokers[k].ID)
	}
	return brokers, d.chance
}

// draws is a plan.Rand that goes through every series of draws, one per begin and next.
type draws struct {
	made   []struct{ value, n int }
	at     int
	chance float64
}

func (d *draws) begin() { d.at, d.chance = 0, 1 }

// IntN is in [0, n).
func (d *draws) IntN(n int) int {
	if d.at == len(d.made) {
		d.made = append(d.made, struct{ value, n int }{0, n})
	}
	d.at++
	d.chance /= float64(n)
	return d.made[d.at-1].value
}

// next goes on to another series; false if there is none.
func (d *draws) next() bool {
	d.made = d.made[:d.at]
	for k := len(d.made) - 1; k >= 0; k-- {
		if d.made[k].value++; d.made[k].value < d.made[k].n {
			d.made = d.made[:k+1]
			return true
		}
	}
	return false
}

func named(ids []string) []vectorBroker {
	out := make([]vectorBroker, len(ids))
	for i, id := range ids {
		out[i].Name = id
	}
	return out
}

func checkModularVersionFilter(l Line, pulsar string) string {
	var in struct {
		Brokers    []vectorBroker `json:"brokers"`
		Candidates []string       `json:"candidates"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	snap := withCandidates(modularSnapshot(in.Brokers, nil, conf, pulsar), in.Candidates)
	left, err := modular.LatestVersion(snap, indexes(snap, in.Candidates))
	if (err != nil) != thrown(l) {
		return Diff(l.Output, map[string]any{"left": ids(snap, left), "error": fmt.Sprint(err)}, remarks)
	}
	if err != nil {
		return ""
	}
	return Diff(l.Output, map[string]any{"left": ids(snap, left)}, remarks)
}
