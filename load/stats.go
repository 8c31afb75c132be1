package load

import (
	"cmp"
	"math"

	"github.com/ballast-lb/ballast/event"
)

// Throughput is the bytes/s in and out of a bundle.
func Throughput(s *event.NamespaceBundleStats) float64 {
	return s.MsgThroughputIn + s.MsgThroughputOut
}

// MsgRate is the messages/s in and out of a bundle.
func MsgRate(s *event.NamespaceBundleStats) float64 {
	return s.MsgRateIn + s.MsgRateOut
}

// CompareStats orders bundles by load: throughput in, throughput out (both in steps of 100 kB/s), messages (steps of 100),
// topics and sessions (steps of 500), cache (steps of 100 kB); the first that differs counts. It is a weak order: unequal
// stats can tie. Pulsar: NamespaceBundleStats.compareTo.
func CompareStats(a, b *event.NamespaceBundleStats) int {
	if c := cmp.Compare(javaRound(a.MsgThroughputIn/100000), javaRound(b.MsgThroughputIn/100000)); c != 0 {
		return c
	}
	if c := cmp.Compare(javaRound(a.MsgThroughputOut/100000), javaRound(b.MsgThroughputOut/100000)); c != 0 {
		return c
	}
	if c := cmp.Compare(javaRound(MsgRate(a)/100), javaRound(MsgRate(b)/100)); c != 0 {
		return c
	}
	if c := cmp.Compare(connections(a)/500, connections(b)/500); c != 0 {
		return c
	}
	return cmp.Compare(a.CacheSize/100000, b.CacheSize/100000)
}

func connections(s *event.NamespaceBundleStats) int64 {
	return s.Topics + int64(s.ConsumerCount) + int64(s.ProducerCount)
}

// javaRound is Java's Math.round: the nearest integer, halves up, NaN to 0, saturating.
func javaRound(x float64) int64 {
	switch {
	case x != x:
		return 0
	case x >= 1<<63:
		return math.MaxInt64
	case x <= -1<<63:
		return math.MinInt64
	}
	f := math.Floor(x)
	if x-f >= 0.5 {
		return int64(f) + 1
	}
	return int64(f)
}
