package conformance

import (
	"errors"
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// transferRound is one round of the vectors of TransferShedder.
type transferRound struct {
	Now     int64 `json:"now"`
	Repeat  int   `json:"repeat"`
	Brokers []struct {
		Name          string `json:"name"`
		EMA           Float  `json:"weightedMaxEMA"`
		ThroughputEMA Float  `json:"msgThroughputEMA"`
		traffic
		UpdatedAt int64 `json:"updatedAt"`
		Topics    int64 `json:"topics"`
	} `json:"brokers"`
	Available []lookups `json:"available"`
	Top       []struct {
		Name string        `json:"name"`
		Top  []bundleStats `json:"top"`
	} `json:"topBundles"`
	UnloadedBundles map[string]int64    `json:"recentlyUnloadedBundles"`
	UnloadedBrokers map[string]int64    `json:"recentlyUnloadedBrokers"`
	LookupFails     bool                `json:"lookupFails"`
	Owners          map[string]string   `json:"owners"`
	Isolation       map[string][]string `json:"isolation"`
	AntiAffinity    []string            `json:"antiAffinityNamespaces"`
}

func (r *transferRound) snapshot(pulsar string) *cluster.Snapshot {
	snap := &cluster.Snapshot{Now: r.Now, Version: pulsar}
	for _, b := range r.Brokers {
		snap.Load = append(snap.Load, cluster.BrokerLoad{Broker: b.Name, Heard: r.Now, Data: event.BrokerLoadData{
			WeightedMaxEMA: float64(b.EMA), MsgThroughputEMA: float64(b.ThroughputEMA),
			MsgThroughputIn: float64(b.MsgThroughputIn), MsgThroughputOut: float64(b.MsgThroughputOut),
			UpdatedAt: b.UpdatedAt, Topics: b.Topics,
		}})
	}
	for i := range r.Available {
		snap.Brokers = append(snap.Brokers, r.Available[i].broker())
	}
	for _, bundle := range slices.Sorted(maps.Keys(r.Owners)) {
		snap.Bundles = append(snap.Bundles, cluster.Bundle{
			Name: bundle, Namespace: policy.NamespaceOf(bundle), Owner: r.Owners[bundle], State: event.Owned,
		})
	}
	snap.Index()
	for _, t := range r.Top {
		if i := snap.LoadIndex(t.Name); i >= 0 {
			snap.Load[i].HasTop = true
			for j := range t.Top {
				snap.Load[i].TopBundles = append(snap.Load[i].TopBundles, event.BundleLoad{BundleName: t.Top[j].Name, Stats: t.Top[j].stats()})
			}
		}
	}
	for i := range snap.Brokers {
		if j := snap.LoadIndex(snap.Brokers[i].ID); j >= 0 {
			snap.Brokers[i].Load, snap.Brokers[i].LoadHeard = &snap.Load[j].Data, r.Now
		}
	}
	return snap
}

// mockedPolicies is what the recorder put in the place of policies: which namespaces have one, and where they may go.
type mockedPolicies struct {
	isolation    map[string][]string
	antiAffinity []string
}

func (p mockedPolicies) HasIsolation(ns string) bool { return p.isolation[ns] != nil }

func (p mockedPolicies) HasAntiAffinity(ns string) bool { return slices.Contains(p.antiAffinity, ns) }

// isolationFilter keeps a namespace with a policy to the listed brokers.
type isolationFilter struct{ mockedPolicies }

func (isolationFilter) Name() string { return "isolation" }

func (isolationFilter) PerBundle() bool { return true }

func (f isolationFilter) Keep(c *extensible.Cycle, bundle string, candidates []int) ([]int, error) {
	allowed, ok := f.isolation[policy.NamespaceOf(bundle)]
	if !ok {
		return candidates, nil
	}
	return slices.DeleteFunc(candidates, func(i int) bool { return !slices.Contains(allowed, c.Snap.Brokers[i].ID) }), nil
}

// unloadDecision is a decision in the vectors.
type unloadDecision struct {
	Bundle string  `json:"bundle"`
	Source string  `json:"source"`
	Dest   *string `json:"dest"`
	Label  string  `json:"label"`
	Reason string  `json:"reason"`
}

type transferOutput struct {
	Decisions []unloadDecision `json:"decisions"`
	Counters  map[string]int64 `json:"counters"`
	Avg       Float            `json:"loadAvg"`
	Std       Float            `json:"loadStd"`
	HitCount  int64            `json:"hitCount"`
	StdAfter  Float            `json:"stdAfter"`
	Left      []string         `json:"recentlyUnloadedBrokersLeft"`
}

func checkTransferShedder(l Line, pulsar string) string {
	var in struct {
		Filters []string        `json:"filters"`
		Rounds  []transferRound `json:"rounds"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	got := struct {
		Rounds []transferOutput `json:"rounds"`
	}{Rounds: []transferOutput{}}
	st := extensible.NewState()
	for i := range in.Rounds {
		r := &in.Rounds[i]
		snap := r.snapshot(pulsar)
		snap.Settings = conf
		shedder := &extensible.TransferShedder{Detached: l.Kind == "transfer_shedder", Filters: []extensible.Filter{}}
		mocked := mockedPolicies{r.Isolation, r.AntiAffinity}
		shedder.Policies = mocked
		for _, f := range in.Filters {
			shedder.Filters = append(shedder.Filters, map[string]extensible.Filter{
				"version": extensible.BrokerVersionFilter{}, "max_topics": extensible.BrokerMaxTopicCountFilter{},
				"lm_class": extensible.BrokerLoadManagerClassFilter{}, "isolation": isolationFilter{mocked},
			}[f])
		}
		for range max(1, r.Repeat) {
			st.UnloadedBundles, st.UnloadedBrokers = r.UnloadedBundles, r.UnloadedBrokers
			var p plan.Plan
			var next plan.State
			if r.LookupFails {
				p, next = shedder.Unreadable(r.Now, st, errors.New("lookup failed"))
			} else {
				p, next = shedder.Shed(snap, st, nil)
			}
			st = next.(*extensible.State)
			got.Rounds = append(got.Rounds, transferAnswer(&p, st))
		}
	}
	return Diff(l.Output, got, remarks, Sets("decisions"))
}

func transferAnswer(p *plan.Plan, st *extensible.State) transferOutput {
	out := transferOutput{
		Decisions: []unloadDecision{}, Counters: times(st.Counters.Unload.Pairs()),
		Avg: Float(st.Counters.LoadAvg), Std: Float(st.Counters.LoadStd), HitCount: st.HitCount,
		Left: append([]string{}, slices.Sorted(maps.Keys(st.UnloadedBrokers))...),
	}
	for _, d := range p.Decisions {
		x := unloadDecision{Bundle: d.Bundle, Source: d.Source, Label: d.Label, Reason: d.PulsarReason}
		if d.Destination != "" {
			x.Dest = &d.Destination
		}
		out.Decisions = append(out.Decisions, x)
	}
	for _, n := range p.Outcome.Numbers {
		if n.Name == "stdAfter" {
			out.StdAfter = Float(n.Value)
		}
	}
	return out
}
