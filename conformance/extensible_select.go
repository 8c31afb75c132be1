package conformance

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/plan"
)

// lookups is a member of an array of brokers in the vectors of filters and placement.
type lookups struct {
	Name        string  `json:"name"`
	Version     *string `json:"version"`
	LoadManager *string `json:"loadManagerClassName"`
	Topics      *int64  `json:"topics"`
	EMA         Float   `json:"weightedMaxEMA"`
}

func (b *lookups) broker() cluster.Broker {
	out := cluster.Broker{ID: b.Name, PersistentTopics: true, NonPersistentTopics: true}
	if b.Version != nil {
		out.Version = *b.Version
	}
	if b.LoadManager != nil {
		out.LoadManager = *b.LoadManager
	}
	if b.Topics != nil {
		out.Load = &event.BrokerLoadData{Topics: *b.Topics}
	}
	return out
}

// first draws the first of what there is to draw from.
type first struct{}

func (first) IntN(int) int { return 0 }

func checkExtensibleSelect(l Line, pulsar string) string {
	var in struct {
		Candidates []string  `json:"candidates"`
		Brokers    []lookups `json:"brokers"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	snap := &cluster.Snapshot{Version: pulsar, Settings: conf}
	known := make(map[string]Float)
	for _, b := range in.Brokers {
		known[b.Name] = b.EMA
	}
	candidates := make([]int, len(in.Candidates))
	for i, name := range in.Candidates {
		candidates[i] = i
		b := cluster.Broker{ID: name}
		if ema, ok := known[name]; ok {
			b.Load = &event.BrokerLoadData{WeightedMaxEMA: float64(ema)}
		}
		snap.Brokers = append(snap.Brokers, b)
	}
	strategy := extensible.LeastResourceUsageWithWeight{}
	var got struct {
		Empty  bool     `json:"empty,omitempty"`
		Legal  []string `json:"legal"`
		Random *bool    `json:"random,omitempty"` // absent when empty
	}
	got.Legal = []string{}
	for _, i := range strategy.Best(snap.Index(), candidates, nil) {
		got.Legal = append(got.Legal, snap.Brokers[i].ID)
	}
	slices.Sort(got.Legal)
	chosen, _ := strategy.Place(snap, "t/n/0x0_0x1", candidates, nil, first{}, nil)
	if got.Empty = chosen < 0; !got.Empty {
		random := len(got.Legal) > 1
		got.Random = &random
		if id := snap.Brokers[chosen].ID; !slices.Contains(got.Legal, id) {
			return "chose " + id + ", which may not be chosen"
		}
	}
	return Diff(l.Output, got, remarks)
}

// checkFilter runs one filter over all brokers.
func checkFilter(pick func(storeDown bool) extensible.Filter) Check {
	return func(l Line, pulsar string) string {
		var in struct {
			StoreDown bool      `json:"storeDown"`
			Brokers   []lookups `json:"brokers"`
		}
		if diff := decode(l, &in); diff != "" {
			return diff
		}
		conf, err := l.Settings()
		if err != nil {
			return err.Error()
		}
		snap := &cluster.Snapshot{Version: pulsar, Settings: conf}
		var candidates []int
		for i := range in.Brokers {
			snap.Brokers = append(snap.Brokers, in.Brokers[i].broker())
			candidates = append(candidates, i)
		}
		left, err := pick(in.StoreDown).Keep(&extensible.Cycle{Snap: snap.Index()}, "", candidates)
		names := []string{}
		for _, i := range left {
			names = append(names, snap.Brokers[i].ID)
		}
		slices.Sort(names)
		if err != nil {
			return Diff(l.Output, struct {
				Exception string   `json:"exception"`
				Left      []string `json:"leftAfterFailure"`
			}{"org.apache.pulsar.broker.loadbalance.BrokerFilterBadVersionException", names}, remarks)
		}
		return Diff(l.Output, struct {
			Left []string `json:"left"`
		}{names}, remarks)
	}
}

func checkVersionFilter() Check {
	return checkFilter(func(bool) extensible.Filter { return extensible.BrokerVersionFilter{} })
}

func checkMaxTopics() Check {
	return checkFilter(func(down bool) extensible.Filter { return extensible.BrokerMaxTopicCountFilter{LoadUnavailable: down} })
}

func checkLoadManagerClass() Check {
	return checkFilter(func(bool) extensible.Filter { return extensible.BrokerLoadManagerClassFilter{} })
}

// times are the counts of a cumulative counter that are not 0, by label and reason.
func times(counts []plan.Count) map[string]int64 {
	out := make(map[string]int64)
	for _, c := range counts {
		if c.N != 0 {
			out[c.Label+"/"+c.Reason] = c.N
		}
	}
	return out
}
