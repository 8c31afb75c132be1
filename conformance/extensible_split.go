package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/split"
)

// splitRound is one round of the vectors of the split strategy.
type splitRound struct {
	Bundles      []bundleStats              `json:"bundles"`
	BundleCounts map[string]int64           `json:"bundleCounts"`
	Owned        []string                   `json:"ownedHere"`
	Splitting    []string                   `json:"splitting"`
	Boundaries   map[string]json.RawMessage `json:"boundaries"`
}

// bundleCount is -1 where the recorder made the call throw.
func (r *splitRound) bundleCount(ns string) (int64, error) {
	n, ok := r.BundleCounts[ns]
	if !ok || n < 0 {
		return 0, fmt.Errorf("no bundle count of %s", ns)
	}
	return n, nil
}

// cuts are the recorded boundaries, "fail" or "null", or those of the algorithm.
func (r *splitRound) cuts(bundle string, a split.Algorithm) ([]uint32, bool, error) {
	raw, ok := r.Boundaries[bundle]
	if !ok {
		_, rng, err := split.ParseBundle(bundle)
		if err != nil {
			return nil, false, err
		}
		return split.Boundaries(a, split.Request{Range: rng})
	}
	switch string(raw) {
	case `"fail"`:
		return nil, false, errors.New("no boundary")
	case `"null"`:
		return nil, false, nil
	}
	cuts := []uint32{}
	err := json.Unmarshal(raw, &cuts)
	return cuts, true, err
}

func (r *splitRound) snapshot(broker string) (*cluster.Snapshot, []int) {
	snap := &cluster.Snapshot{}
	var own []int
	for i := range r.Bundles {
		b := cluster.Bundle{Name: r.Bundles[i].Name, Namespace: policy.NamespaceOf(r.Bundles[i].Name), Stats: r.Bundles[i].stats(), Known: true}
		if slices.Contains(r.Owned, b.Name) {
			b.Owner, b.State = broker, event.Owned
		}
		own = append(own, i)
		snap.Bundles = append(snap.Bundles, b)
	}
	for _, name := range r.Splitting {
		snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: name, Namespace: policy.NamespaceOf(name), State: event.Splitting, Owner: broker})
	}
	return snap.Index(), own
}

type splitDecision struct {
	Bundle   string   `json:"bundle"`
	Source   string   `json:"source"`
	Children []string `json:"children"`
	Label    string   `json:"label"`
	Reason   string   `json:"reason"`
}

type splitOutput struct {
	Decisions []splitDecision  `json:"decisions"`
	HitCounts map[string]int64 `json:"hitCounts"`
	Counters  map[string]int64 `json:"counters"`
}

func checkSplitStrategy(l Line, pulsar string) string {
	var in struct {
		Broker string       `json:"brokerId"`
		Rounds []splitRound `json:"rounds"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	got := struct {
		Rounds []splitOutput `json:"rounds"`
	}{Rounds: []splitOutput{}}
	st := extensible.NewState()
	for i := range in.Rounds {
		r := &in.Rounds[i]
		snap, own := r.snapshot(in.Broker)
		snap.Version, snap.Settings = pulsar, conf
		strategy := &extensible.DefaultNamespaceBundleSplitStrategy{BundleCount: r.bundleCount, Boundaries: r.cuts}
		out := splitOutput{Decisions: []splitDecision{}, HitCounts: map[string]int64{}}
		for _, d := range strategy.Find(snap, in.Broker, own, st, nil) {
			x := splitDecision{Bundle: d.Bundle, Source: d.Source, Label: d.Label, Reason: d.PulsarReason}
			if x.Children, err = children(d.Bundle, d.Boundaries); err != nil {
				return err.Error()
			}
			out.Decisions = append(out.Decisions, x)
		}
		for bundle, hits := range st.SplitHits[in.Broker] {
			out.HitCounts[bundle] = hits
		}
		out.Counters = times(st.Counters.Split.Pairs())
		got.Rounds = append(got.Rounds, out)
	}
	return Diff(l.Output, got, remarks, Sets("decisions"))
}

// children are the ranges that a decision makes of a bundle.
func children(bundle string, boundaries []string) ([]string, error) {
	_, r, err := split.ParseBundle(bundle)
	if err != nil {
		return nil, err
	}
	var cuts []uint32
	for _, text := range boundaries {
		b, err := split.ParseRange(text + "_0xffffffff")
		if err != nil {
			return nil, err
		}
		cuts = append(cuts, b.Lower)
	}
	ranges, err := r.Children(cuts)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, c := range ranges {
		out = append(out, c.String())
	}
	slices.Sort(out)
	return out, nil
}
