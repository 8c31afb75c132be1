package extensible

import (
	"fmt"
	"testing"

	"github.com/ballast-lb/ballast/internal/benchstate"
	"github.com/ballast-lb/ballast/plan"
)

var sizes = [][2]int{{10, 1000}, {100, 10_000}, {1000, 100_000}}

func each(b *testing.B, hot int, run func(b *testing.B, s *benchstate.State)) {
	for _, size := range sizes {
		s := benchstate.New(42, size[0], size[1], hot)
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			b.ReportAllocs()
			run(b, s)
		})
	}
}

// BenchmarkTransferShedder is TransferShedder alone, as Pulsar's class is timed.
func BenchmarkTransferShedder(b *testing.B) {
	each(b, 10, func(b *testing.B, s *benchstate.State) {
		snap, shedder, st := s.Extensible(10), &TransferShedder{Detached: true}, NewState()
		for b.Loop() {
			shedder.Shed(snap, st, nil)
		}
	})
}

// BenchmarkShed is a cycle of the manager, with owners, filters and policies.
func BenchmarkShed(b *testing.B) {
	each(b, 10, func(b *testing.B, s *benchstate.State) {
		snap, m, st := s.Extensible(10), New(nil, nil, Options{}), NewState()
		for b.Loop() {
			m.Shed(snap, st, nil, nil)
		}
	})
}

// BenchmarkShedTraced is the same cycle with everything explained.
func BenchmarkShedTraced(b *testing.B) {
	each(b, 10, func(b *testing.B, s *benchstate.State) {
		snap, m, st := s.Extensible(10), New(nil, nil, Options{}), NewState()
		for b.Loop() {
			m.Shed(snap, st, nil, &plan.Trace{})
		}
	})
}

// BenchmarkLeastResourceUsageWithWeight is the placement strategy alone, as Pulsar's class is timed, with hot brokers and
// without.
func BenchmarkLeastResourceUsageWithWeight(b *testing.B) {
	for _, hot := range []int{10, 0} {
		b.Run(fmt.Sprintf("hotEvery%d", hot), func(b *testing.B) {
			each(b, hot, func(b *testing.B, s *benchstate.State) {
				snap, l, rnd := s.Extensible(10), LeastResourceUsageWithWeight{}, benchstate.NewRand(1)
				candidates := make([]int, len(snap.Brokers))
				for i := range candidates {
					candidates[i] = i
				}
				for b.Loop() {
					l.Place(snap, "bench/new/0x00000000_0xffffffff", candidates, nil, rnd, nil)
				}
			})
		})
	}
}

// BenchmarkPlace is an assignment by the manager, with filters and policies.
func BenchmarkPlace(b *testing.B) {
	each(b, 10, func(b *testing.B, s *benchstate.State) {
		snap, m, st, rnd := s.Extensible(10), New(nil, nil, Options{}), NewState(), benchstate.NewRand(1)
		for b.Loop() {
			m.Place(snap, "bench/new/0x00000000_0xffffffff", st, rnd, nil)
		}
	})
}

// BenchmarkSplit is a round of splits over all brokers.
func BenchmarkSplit(b *testing.B) {
	each(b, 10, func(b *testing.B, s *benchstate.State) {
		snap, m, st := s.Extensible(10), New(nil, nil, Options{}), NewState()
		for b.Loop() {
			m.Split(snap, st, nil)
		}
	})
}
