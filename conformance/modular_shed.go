package conformance

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// shedRound is one round of a Modular shedder in a vector.
type shedRound struct {
	Repeat                  *int           `json:"repeat"`
	Brokers                 []vectorBroker `json:"brokers"`
	Bundles                 []vectorBundle `json:"bundles"`
	RecentlyUnloadedBundles []string       `json:"recentlyUnloadedBundles"`
	ActiveBrokersChange     []string       `json:"activeBrokersChange"` // nil = none
}

// shedCall is what is seen of one call of a shedder.
type shedCall struct {
	snap *cluster.Snapshot
	plan plan.Plan
	st   *modular.State
	last bool
}

// runShedder calls a shedder over the rounds with one state and hands every call to see.
func runShedder(rounds []shedRound, s plan.Shedder, conf *settings.Settings, pulsar string, see func(shedCall)) {
	total := 0
	for _, r := range rounds {
		total += r.times()
	}
	st, n := modular.NewState(), 0
	for _, r := range rounds {
		for k := range r.times() {
			if k == 0 && r.ActiveBrokersChange != nil {
				st.BrokersChanged(r.ActiveBrokersChange)
			}
			snap := modularSnapshot(r.Brokers, r.Bundles, conf, pulsar)
			st.RecentlyUnloaded = make(map[string]int64)
			for _, b := range r.RecentlyUnloadedBundles {
				st.RecentlyUnloaded[b] = 1
			}
			p, next := s.Shed(snap, st, nil)
			st = next.(*modular.State)
			n++
			see(shedCall{snap: snap, plan: p, st: st, last: n == total})
		}
	}
}

func (r *shedRound) times() int {
	if r.Repeat == nil {
		return 1
	}
	return *r.Repeat
}

// unloads is the plan as the vectors have it: broker -> bundles in the order of choice.
func unloads(p plan.Plan) map[string][]string {
	out := make(map[string][]string)
	for _, d := range p.Decisions {
		out[d.Source] = append(out[d.Source], d.Bundle)
	}
	return out
}

// checkShedder makes the check of a Modular shedder. more adds what a kind tells besides the bundles.
func checkShedder(s plan.Shedder, more func(shedCall, map[string]any)) Check {
	return func(l Line, pulsar string) string {
		var in struct {
			Rounds []shedRound `json:"rounds"`
		}
		if diff := decode(l, &in); diff != "" {
			return diff
		}
		conf, err := l.Settings()
		if err != nil {
			return err.Error()
		}
		var want struct {
			Rounds []json.RawMessage `json:"rounds"`
		}
		if err := json.Unmarshal(l.Output, &want); err != nil {
			return "output: " + err.Error()
		}
		rounds := []any{}
		runShedder(in.Rounds, s, conf, pulsar, func(c shedCall) {
			round := map[string]any{"unload": unloads(c.plan)}
			if more != nil {
				more(c, round)
			}
			rounds = append(rounds, round)
		})
		if len(want.Rounds) != len(rounds) {
			return Diff(len(want.Rounds), len(rounds))
		}
		for i, w := range want.Rounds {
			if threw(w) {
				continue
			}
			if diff := Diff(w, rounds[i]); diff != "" {
				return diff
			}
		}
		return ""
	}
}

// threw says whether a part of an output is an exception of Pulsar's class.
func threw(part json.RawMessage) bool { return thrown(Line{Output: part}) }

func thresholdState(c shedCall, round map[string]any) {
	averages := make(map[string]Float)
	for _, e := range c.st.Threshold.Entries() {
		averages[e.Key] = Float(e.Value)
	}
	round["avgResourceUsage"] = averages
}

func avgState(c shedCall, round map[string]any) {
	low, high := make(map[string]int64), make(map[string]int64)
	for _, e := range c.st.Avg.Hits.Entries() { // Pulsar's look at a count makes it 0 where there was none
		low[e.Key], high[e.Key] = e.Value.Low, e.Value.High
	}
	destinations := make(map[string]string)
	for _, d := range c.plan.Decisions {
		destinations[d.Bundle] = d.Destination
	}
	round["hitCountLow"], round["hitCountHigh"], round["destination"] = low, high, destinations
	if c.last {
		w, scores := load.WeightsOf(c.snap.Settings), make(map[string]Float)
		for i := range c.snap.Brokers {
			scores[c.snap.Brokers[i].ID] = Float(load.LocalWeightedMaxUsage(c.snap.Brokers[i].Local, &w) * 100)
		}
		round["scores"] = scores
	}
}

// checkAvgPlanned places the bundles that Pulsar 5's AvgShedder has planned, among several sets of candidates.
func checkAvgPlanned(l Line, pulsar string) string {
	var in struct {
		Rounds        []shedRound `json:"rounds"`
		CandidateSets [][]string  `json:"candidateSets"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	var last shedCall
	runShedder(in.Rounds, modular.AvgShedder{}, conf, pulsar, func(c shedCall) { last = c })
	planned := []map[string]any{}
	if last.st != nil {
		for _, bundle := range slices.Sorted(maps.Keys(last.st.Avg.Plan)) {
			p := last.st.Avg.Plan[bundle]
			legal := [][]string{}
			for _, set := range in.CandidateSets {
				snap := withCandidates(last.snap, set)
				best := modular.AvgShedder{}.Best(snap, bundle, indexes(snap, set), last.st)
				legal = append(legal, ids(snap, best))
			}
			planned = append(planned, map[string]any{
				"bundle": bundle, "source": p.Source, "destination": p.Destination, "legal": legal,
			})
		}
	}
	return Diff(l.Output, map[string]any{"planned": planned})
}

// withCandidates is the snapshot and the brokers of a set of which there is no load data.
func withCandidates(snap *cluster.Snapshot, set []string) *cluster.Snapshot {
	more := *snap
	for _, id := range set {
		if snap.BrokerIndex(id) < 0 {
			more.Brokers = append(slices.Clip(more.Brokers), cluster.Broker{ID: id})
		}
	}
	return more.Index()
}

// checkBundleSplitter chooses bundles to split.
func checkBundleSplitter(l Line, pulsar string) string {
	var in struct {
		Brokers      []vectorBroker `json:"brokers"`
		Bundles      []vectorBundle `json:"bundles"`
		BundleCounts map[string]int `json:"bundleCounts"` // negative: cannot be read
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	snap := modularSnapshot(in.Brokers, in.Bundles, conf, pulsar)
	splits, _ := modular.BundlesToSplit(snap, modular.Options{}, func(namespace string) (int, bool) {
		n, ok := in.BundleCounts[namespace]
		return n, ok && n >= 0
	}, nil)
	got := make(map[string]string)
	for _, s := range splits {
		got[s.Bundle] = s.Broker
	}
	return Diff(l.Output, map[string]any{"split": got}, remarks)
}
