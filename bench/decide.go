package main

import (
	"fmt"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/internal/benchstate"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
)

// kind is a decision of Pulsar's that is timed on both sides.
type kind struct {
	name      string // of Pulsar's class; the Java side knows it by this
	hotEvery  int    // every so many brokers are hot; 0 = none
	variant   string // told in the table, "" = nothing to tell
	placement bool   // a placement, which must not allocate
	new       func(s *benchstate.State) decider
	wanted    float64 // how many times faster than Pulsar it should be,
	atLargest float64 // and on clusters of at least 1000 brokers and 100,000 bundles
}

var kinds = []kind{
	{"LeastLongTermMessageRate", 10, "", true, leastLongTermMessageRate, 1, 1},
	{"LeastResourceUsageWithWeight", 10, "hot brokers", true, leastResourceUsageWithWeight, 1, 3},
	{"LeastResourceUsageWithWeight", 0, "no hot brokers", true, leastResourceUsageWithWeight, 1, 1},
	{"TransferShedder", 10, "", false, transferShedder, 1, 1},
	{"ThresholdShedder", 10, "", false, thresholdShedder, 1, 100},
}

func (k *kind) label() string {
	if k.variant == "" {
		return k.name
	}
	return k.name + ", " + k.variant
}

// benchCase is a kind on a cluster of one size.
type benchCase struct {
	*kind
	size size
}

func (c benchCase) String() string { return c.label() + " " + c.size.String() }

// goal is how many times faster than Pulsar the case should be.
func (c benchCase) goal() float64 {
	if c.size.brokers >= 1000 && c.size.bundles >= 100_000 {
		return c.atLargest
	}
	return c.wanted
}

// decider takes one decision on one cluster, as often as asked.
type decider struct {
	decide func() // the call that is timed
	// decided is what the last call decided, a line for each thing, in any order. Placement: the brokers that it drew among.
	decided func() ([]string, error)
}

// newBundle has no owner and no history.
const newBundle = "bench/new/0x00000000_0xffffffff"

func leastLongTermMessageRate(s *benchstate.State) decider {
	st := modular.NewState()
	for i := range s.Brokers {
		b := &s.Brokers[i]
		for _, j := range b.Owned[:min(len(b.Owned), benchstate.PreallocatedPerBroker)] {
			st.Preallocate(b.ID, modular.Preallocation{Bundle: s.Bundles[j].Name, Data: s.Bundles[j].Data()})
		}
	}
	return placement(s.Modular(), modular.LeastLongTermMessageRate{}, st)
}

func leastResourceUsageWithWeight(s *benchstate.State) decider {
	return placement(s.Extensible(topBundles), extensible.LeastResourceUsageWithWeight{}, extensible.NewState())
}

// topBundles is how many of its bundles a broker publishes, Pulsar's default.
const topBundles = 10

// placer is a placement strategy that tells what it draws among.
type placer interface {
	plan.Placer
	Best(snap *cluster.Snapshot, candidates []int, state plan.State) []int
}

func placement(snap *cluster.Snapshot, p placer, st plan.State) decider {
	candidates := make([]int, len(snap.Brokers))
	for i := range candidates {
		candidates[i] = i
	}
	var rnd plan.Rand = benchstate.NewRand(1)
	drawn := -1
	return decider{
		decide: func() { drawn, _ = p.Place(snap, newBundle, candidates, st, rnd, nil) },
		decided: func() ([]string, error) {
			best := p.Best(snap, candidates, st)
			if !slices.Contains(best, drawn) {
				return nil, fmt.Errorf("%T drew broker %d, which is not among the best %v", p, drawn, best)
			}
			lines := make([]string, len(best))
			for i, b := range best {
				lines[i] = snap.Brokers[b].ID
			}
			return lines, nil
		},
	}
}

// transferShedder is the shedder alone, as Pulsar's class decides when there is no broker around it.
func transferShedder(s *benchstate.State) decider {
	return shedding(s.Extensible(topBundles), &extensible.TransferShedder{Detached: true}, extensible.NewState(),
		func(d *plan.Decision) string {
			destination := d.Destination
			if destination == "" {
				destination = "-"
			}
			return d.Source + " " + d.Bundle + " " + destination + " " + d.PulsarReason
		})
}

func thresholdShedder(s *benchstate.State) decider {
	return shedding(s.Modular(), modular.ThresholdShedder{}, modular.NewState(),
		func(d *plan.Decision) string { return d.Source + " " + d.Bundle })
}

// shedding hands every call the state that the last one left, as a leader does.
func shedding(snap *cluster.Snapshot, shedder plan.Shedder, st plan.State, line func(*plan.Decision) string) decider {
	var p plan.Plan
	return decider{
		decide: func() { p, st = shedder.Shed(snap, st, nil) },
		decided: func() ([]string, error) {
			lines := make([]string, len(p.Decisions))
			for i := range p.Decisions {
				lines[i] = line(&p.Decisions[i])
			}
			return lines, nil
		},
	}
}
