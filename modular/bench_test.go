package modular_test

import (
	"fmt"
	"testing"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/internal/benchstate"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
)

// The sizes of the clusters that are measured: brokers and bundles.
var sizes = [][2]int{{10, 1000}, {100, 10_000}, {1000, 100_000}}

// benchCluster is a cluster with some hot brokers and a state in which the first bundles of each broker are pre-allocated.
func benchCluster(brokers, bundles int) (*cluster.Snapshot, *modular.State) {
	s := benchstate.New(42, brokers, bundles, 10)
	st := modular.NewState()
	for i := range s.Brokers {
		b := &s.Brokers[i]
		for _, j := range b.Owned[:min(len(b.Owned), benchstate.PreallocatedPerBroker)] {
			st.Preallocate(b.ID, modular.Preallocation{Bundle: s.Bundles[j].Name, Data: s.Bundles[j].Data()})
		}
	}
	return s.Modular(), st
}

func BenchmarkPlace(b *testing.B) {
	for _, e := range modular.Placers(modular.Options{}) {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%d-%d", e.Name, size[0], size[1]), func(b *testing.B) {
				snap, st := benchCluster(size[0], size[1])
				placer, candidates, rnd := e.New(nil), all(snap), benchstate.NewRand(7)
				b.ReportAllocs()
				for b.Loop() {
					if i, _ := placer.Place(snap, snap.Bundles[0].Name, candidates, st, rnd, nil); i < 0 {
						b.Fatal("placed nowhere")
					}
				}
			})
		}
	}
}

func BenchmarkShed(b *testing.B) {
	for _, e := range modular.Shedders(modular.Options{}) {
		for _, size := range sizes {
			b.Run(fmt.Sprintf("%s/%d-%d", e.Name, size[0], size[1]), func(b *testing.B) {
				snap, st := benchCluster(size[0], size[1])
				shedder := e.New(nil)
				b.ReportAllocs()
				var p plan.Plan
				for b.Loop() {
					p, _ = shedder.Shed(snap, st, nil)
				}
				sources := make(map[string]bool)
				for _, d := range p.Decisions {
					sources[d.Source] = true
				}
				b.ReportMetric(float64(len(sources)), "brokers")
				b.ReportMetric(float64(len(p.Decisions)), "bundles")
			})
		}
	}
}

// BenchmarkManager measures the calls of the leader: an update of all histories, a shedding cycle, a round of splits and
// an assignment.
func BenchmarkManager(b *testing.B) {
	for _, size := range sizes {
		snap, start := benchCluster(size[0], size[1])
		m := manager(b, modular.Options{})
		name := fmt.Sprintf("%d-%d", size[0], size[1])
		rnd := benchstate.NewRand(7)
		snap, state, _ := m.Update(snap, start)
		b.Run("Update/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Update(snap, state)
			}
		})
		b.Run("Shed/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Shed(snap, state, rnd, nil)
			}
		})
		b.Run("Split/"+name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.Split(snap, state, nil)
			}
		})
		b.Run("Place/"+name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				m.Place(snap, fmt.Sprintf("bench/new%06d/0x00000000_0xffffffff", n), state, rnd, nil)
				n++
			}
		})
	}
}

// TestPlaceAllocatesNothing holds it for every strategy, once it has seen the brokers.
func TestPlaceAllocatesNothing(t *testing.T) {
	snap, st := benchCluster(50, 500)
	candidates, rnd := all(snap), benchstate.NewRand(7)
	for name, placer := range placers(modular.Options{}) {
		for _, version := range []string{"4.2.4", "5.0.1"} {
			snap.Version = version
			place := func() { placer.Place(snap, snap.Bundles[0].Name, candidates, st, rnd, nil) }
			place()
			if n := testing.AllocsPerRun(50, place); n != 0 {
				t.Errorf("%s (Pulsar %s) allocates %v times", name, version, n)
			}
		}
	}
}
