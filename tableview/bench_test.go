package tableview

import (
	"fmt"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// load is a value of about the size of a broker's load data.
type load struct{ f [16]float64 }

func filled(keys int) (*View[load], []topics.Message) {
	v := New(Options[load]{Decode: func([]byte) (load, error) { return load{}, nil }, TTL: time.Hour})
	messages := make([]topics.Message, keys)
	now := time.Now()
	for i := range messages {
		messages[i] = topics.Message{Key: fmt.Sprintf("tenant/ns/0x%08x_0x%08x", i*37, i*37+37), Payload: []byte("{}"), Received: now}
		v.Apply(messages[i])
	}
	return v, messages
}

var sizes = []int{100, 10_000, 100_000}

// BenchmarkApply folds one message into a view that nobody has looked at since the last one.
func BenchmarkApply(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v, messages := filled(n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				v.Apply(messages[i%n])
			}
		})
	}
}

// BenchmarkApplySnapshot takes a snapshot after every message: the worst case, as every change copies its path.
func BenchmarkApplySnapshot(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v, messages := filled(n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				v.Apply(messages[i%n])
				v.Snapshot()
			}
		})
	}
}

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v, _ := filled(n)
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				v.Snapshot()
			}
		})
	}
}

// BenchmarkAll walks through every entry of a snapshot.
func BenchmarkAll(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			v, _ := filled(n)
			s := v.Snapshot()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				sum := 0.0
				for e := range s.All() {
					sum += e.Value.f[0]
				}
			}
		})
	}
}
