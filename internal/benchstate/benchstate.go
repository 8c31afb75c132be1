// Package benchstate makes synthetic clusters for benchmarks: the same numbers for the same seed in any language, so that
// a measurement here can be set beside one taken elsewhere on the same state.
package benchstate

import (
	"fmt"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/settings"
)

// Rand is the SplitMix64 generator. The zero value is seeded with 0.
type Rand struct{ s uint64 }

// NewRand is a generator with the given seed.
func NewRand(seed uint64) *Rand { return &Rand{s: seed} }

// Next is the next 64 bits.
func (r *Rand) Next() uint64 {
	r.s += 0x9E3779B97F4A7C15
	z := r.s
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB
	return z ^ (z >> 31)
}

// Float is uniform in [0, 1) with 53 bits.
func (r *Rand) Float() float64 { return float64(r.Next()>>11) * 0x1p-53 }

// IntN is in [0, n); n must be positive. It makes *Rand a plan.Rand.
func (r *Rand) IntN(n int) int { return int(r.Next() % uint64(n)) }

// Broker is one synthetic broker.
type Broker struct {
	ID     string
	Hot    bool
	Load   float64 // CPU usage as a fraction
	System event.SystemResourceUsage
	In     float64 // bytes/s, sum over its bundles
	Out    float64 // bytes/s, sum over its bundles
	Owned  []int   // indexes into State.Bundles
}

// Bundle is one synthetic bundle; its short and long averages are equal and its rates are its throughputs / 1000.
type Bundle struct {
	Name   string
	Owner  int     // index into State.Brokers
	In     float64 // bytes/s
	Out    float64 // bytes/s
	Topics int
}

// State is a synthetic cluster.
type State struct {
	Brokers []Broker
	Bundles []Bundle
}

// Now is the time at which the snapshots of this package are taken, Unix ms.
const Now int64 = 1_700_000_000_000

// New makes a cluster. Every hotEvery-th broker is hot, none when hotEvery is 0; bundles are dealt out in turn.
func New(seed uint64, brokers, bundles, hotEvery int) *State {
	r := NewRand(seed)
	s := &State{Brokers: make([]Broker, brokers), Bundles: make([]Bundle, bundles)}
	for i := range s.Brokers {
		b := &s.Brokers[i]
		b.ID = fmt.Sprintf("broker-%05d:8080", i)
		b.Hot = hotEvery > 0 && i%hotEvery == 0
		if b.Hot {
			b.Load = 0.80 + float64(0.15*r.Float())
		} else {
			b.Load = 0.40 + float64(0.20*r.Float())
		}
		b.System.CPU = event.ResourceUsage{Usage: b.Load * 800, Limit: 800}
		b.System.Memory = event.ResourceUsage{Usage: b.Load * r.Float() * 16384, Limit: 16384}
		b.System.DirectMemory = event.ResourceUsage{Usage: b.Load * r.Float() * 32768, Limit: 32768}
		b.System.BandwidthIn = event.ResourceUsage{Usage: b.Load * r.Float() * 10485760, Limit: 10485760}
		b.System.BandwidthOut = event.ResourceUsage{Usage: b.Load * r.Float() * 10485760, Limit: 10485760}
	}
	for j := range s.Bundles {
		b := &s.Bundles[j]
		b.Owner = j % brokers
		owner := &s.Brokers[b.Owner]
		factor := 1.0
		if owner.Hot {
			factor = 2
		}
		b.In = 2e6 * r.Float() * factor
		b.Out = 2e6 * r.Float() * factor
		b.Topics = 10
		lower := uint32(j%64) * 0x4000000
		upper := lower + 0x4000000
		if j%64 == 63 {
			upper = 0xffffffff
		}
		b.Name = fmt.Sprintf("bench/ns%06d/0x%08x_0x%08x", j/64, lower, upper)
		owner.In += b.In
		owner.Out += b.Out
		owner.Owned = append(owner.Owned, j)
	}
	return s
}

// Stats is the traffic of a bundle as a broker reports it.
func (b *Bundle) Stats() event.NamespaceBundleStats {
	return event.NamespaceBundleStats{
		MsgThroughputIn: b.In, MsgThroughputOut: b.Out, MsgRateIn: b.In / 1000, MsgRateOut: b.Out / 1000, Topics: int64(b.Topics),
	}
}

// Extensible is the state as a snapshot of a cluster that runs the Extensible load manager: the load of a broker is its
// Load, its top list has the topk heaviest bundles, lightest first, and no hits are needed to act. Rates that only the
// decisions of other managers read are left out.
func (s *State) Extensible(topk int) *cluster.Snapshot {
	conf := settings.Defaults()
	conf.LoadManagerClassName = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
	conf.LoadBalancerSheddingConditionHitCountThreshold = 0
	snap := &cluster.Snapshot{Now: Now, Cluster: "bench", Version: "4.2.4", Settings: conf}
	snap.Bundles = make([]cluster.Bundle, len(s.Bundles))
	for j := range s.Bundles {
		b := &s.Bundles[j]
		snap.Bundles[j] = cluster.Bundle{
			Name: b.Name, Namespace: b.Name[:len(b.Name)-len("/0x00000000_0x00000000")],
			Owner: s.Brokers[b.Owner].ID, State: event.Owned, Stats: b.Stats(), Known: true,
		}
	}
	snap.Load = make([]cluster.BrokerLoad, len(s.Brokers))
	snap.Brokers = make([]cluster.Broker, len(s.Brokers))
	for i := range s.Brokers {
		b := &s.Brokers[i]
		l := &snap.Load[i]
		*l = cluster.BrokerLoad{Broker: b.ID, Heard: Now, HasTop: true, TopBundles: s.top(b, topk)}
		l.Data = event.BrokerLoadData{
			CPU: b.System.CPU, Memory: b.System.Memory, DirectMemory: b.System.DirectMemory,
			BandwidthIn: b.System.BandwidthIn, BandwidthOut: b.System.BandwidthOut,
			MsgThroughputIn: b.In, MsgThroughputOut: b.Out,
			WeightedMaxEMA: b.Load, MsgThroughputEMA: b.In + b.Out,
			BundleCount: int64(len(b.Owned)), Topics: int64(10 * len(b.Owned)), UpdatedAt: Now, ReportedAt: Now,
		}
		snap.Brokers[i] = cluster.Broker{
			ID: b.ID, Version: snap.Version, LoadManager: conf.LoadManagerClassName,
			PersistentTopics: true, NonPersistentTopics: true,
			Load: &l.Data, LoadHeard: Now, Bundles: b.Owned,
		}
	}
	return snap.Index()
}

func (s *State) top(b *Broker, k int) []event.BundleLoad {
	owned := slices.Clone(b.Owned)
	slices.SortStableFunc(owned, func(x, y int) int {
		a, b := s.Bundles[x].In+s.Bundles[x].Out, s.Bundles[y].In+s.Bundles[y].Out
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	})
	owned = owned[max(0, len(owned)-k):]
	out := make([]event.BundleLoad, len(owned))
	for i, j := range owned {
		out[i] = event.BundleLoad{BundleName: s.Bundles[j].Name, Stats: s.Bundles[j].Stats()}
	}
	return out
}
