package ownership_test

import (
	"fmt"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
)

// size is that of a cluster.
type size struct{ brokers, bundles int }

var (
	sizes = []size{{10, 1000}, {100, 10_000}, large}
	large = size{1000, 100_000}
)

func (s size) String() string { return fmt.Sprintf("brokers=%d/bundles=%d", s.brokers, s.bundles) }

// broker and benchBundle are names of the length that real ones have.
func (s size) broker(i int) string { return fmt.Sprintf("broker-%05d:8080", i%s.brokers) }

func benchBundle(i int) string {
	lower := uint32(i%64) * 0x4000000
	return event.BundleName{Namespace: fmt.Sprintf("bench/ns%06d", i/64), Range: event.Range{Lower: lower, Upper: lower + 0x3ffffff}}.String()
}

func benchMessage(bundle string, state event.ServiceUnitState, dst, source string, version int64) ownership.Message {
	d := &event.ServiceUnitStateData{State: state, DstBroker: dst, SourceBroker: source, VersionID: version}
	return ownership.Message{Bundle: bundle, Data: d, At: 1}
}

// placement assigns every bundle.
func (s size) placement() []ownership.Message {
	var list []ownership.Message
	for i := range s.bundles {
		bundle, broker := benchBundle(i), s.broker(i)
		list = append(list, benchMessage(bundle, event.Assigning, broker, "", 1), benchMessage(bundle, event.Owned, broker, "", 2))
	}
	return list
}

// transfer moves every bundle to the next broker and back.
func (s size) transfer() []ownership.Message {
	var list []ownership.Message
	for back := range 2 {
		for i := range s.bundles {
			bundle, source, dst, version := benchBundle(i), s.broker(i+back), s.broker(i+1-back), int64(3+3*back)
			list = append(list, benchMessage(bundle, event.Releasing, dst, source, version),
				benchMessage(bundle, event.Assigning, dst, source, version+1), benchMessage(bundle, event.Owned, dst, source, version+2))
		}
	}
	return list
}

func placed(b *testing.B, s size) *ownership.Fold {
	fold := ownership.NewFold()
	for _, m := range s.placement() {
		if o := fold.Apply(m); o.Keep {
			b.Fatal(o.Rule)
		}
	}
	return fold
}

// BenchmarkFoldPlace folds the placement of all bundles.
func BenchmarkFoldPlace(b *testing.B) {
	for _, s := range sizes {
		messages := s.placement()
		b.Run(s.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fold := ownership.NewFold()
				for _, m := range messages {
					fold.Apply(m)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(messages)), "ns/message")
		})
	}
}

// BenchmarkFoldTransfer folds the records of transfers among 100,000 bundles, with a snapshot after so many (0: none).
func BenchmarkFoldTransfer(b *testing.B) {
	messages := large.transfer()
	for _, every := range []int{0, 1000, 10, 1} {
		b.Run(fmt.Sprintf("snapshotEvery=%d", every), func(b *testing.B) {
			fold := placed(b, large)
			b.ReportAllocs()
			n, versions := 0, int64(0)
			for b.Loop() {
				m := messages[n]
				d := *m.Data
				d.VersionID += versions
				m.Data = &d
				if o := fold.Apply(m); o.Keep {
					b.Fatal(o.Rule)
				}
				if every > 0 && n%every == 0 {
					fold.Snapshot()
				}
				if n++; n == len(messages) { // once more, with the versions that follow
					n, versions = 0, versions+6
				}
			}
		})
	}
}

// BenchmarkSnapshot takes a snapshot of 100,000 bundles.
func BenchmarkSnapshot(b *testing.B) {
	fold := placed(b, large)
	b.ReportAllocs()
	for b.Loop() {
		fold.Snapshot()
	}
}

// BenchmarkRead reads a snapshot of 100,000 bundles.
func BenchmarkRead(b *testing.B) {
	s := placed(b, large).Snapshot()
	b.Run("lookup", func(b *testing.B) {
		bundle := benchBundle(large.bundles / 2)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Lookup(bundle); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			n := 0
			for range s.All() {
				n++
			}
			if n != large.bundles {
				b.Fatal(n)
			}
		}
	})
}
