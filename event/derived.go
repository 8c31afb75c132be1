package event

import (
	"cmp"
	"math"
)

// PercentUsage is how full the resource is, in percent, 0 if its limit is unknown. It is not clamped: it may be above 100
// or negative. All arithmetic is float32 (Pulsar: ResourceUsage.percentUsage).
func (r ResourceUsage) PercentUsage() float32 {
	if r.Limit > 0 {
		return float32(float32(r.Usage)/float32(r.Limit)) * 100
	}
	return 0
}

// Compare orders by what is free, limit - usage: negative if less is free than in o (Pulsar: ResourceUsage.compareTo).
func (r ResourceUsage) Compare(o ResourceUsage) int {
	return compareDoubles(r.Limit-r.Usage, o.Limit-o.Usage)
}

// compareDoubles orders as Java's Double.compare: -0 below 0, NaN above everything and equal to itself.
func compareDoubles(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return cmp.Compare(order(a), order(b))
}

// order places what <, > and == do not tell apart.
func order(x float64) int {
	switch {
	case math.IsNaN(x):
		return 1
	case x == 0 && math.Signbit(x):
		return -1
	}
	return 0
}

// Compare orders bundles by load, coarsely: rounded throughput in and out (100 kB/s), message rate (100 msg/s), topics and
// sessions (500), cache (100 kB), the first that differs decides. It is a weak order: unequal stats can tie
// (Pulsar: NamespaceBundleStats.compareTo).
func (s NamespaceBundleStats) Compare(o NamespaceBundleStats) int {
	return cmp.Or(
		cmp.Compare(round(s.MsgThroughputIn/100000), round(o.MsgThroughputIn/100000)),
		cmp.Compare(round(s.MsgThroughputOut/100000), round(o.MsgThroughputOut/100000)),
		cmp.Compare(round((s.MsgRateIn+s.MsgRateOut)/100), round((o.MsgRateIn+o.MsgRateOut)/100)),
		cmp.Compare(s.sessions()/500, o.sessions()/500),
		cmp.Compare(s.CacheSize/100000, o.CacheSize/100000),
	)
}

// sessions is topics, consumers and producers together.
func (s NamespaceBundleStats) sessions() int64 {
	return s.Topics + int64(s.ConsumerCount) + int64(s.ProducerCount)
}

// TotalMsgRate is the message rate in and out.
func (t TimeAverageMessageData) TotalMsgRate() float64 { return t.MsgRateIn + t.MsgRateOut }

// TotalMsgThroughput is the throughput in and out.
func (t TimeAverageMessageData) TotalMsgThroughput() float64 {
	return t.MsgThroughputIn + t.MsgThroughputOut
}

// Compare orders by truncated throughput in and out (100 kB/s), then message rate (100 msg/s). It truncates where
// NamespaceBundleStats.Compare rounds (Pulsar: TimeAverageMessageData.compareTo).
func (t TimeAverageMessageData) Compare(o TimeAverageMessageData) int {
	return cmp.Or(
		cmp.Compare(truncate(t.MsgThroughputIn/100000), truncate(o.MsgThroughputIn/100000)),
		cmp.Compare(truncate(t.MsgThroughputOut/100000), truncate(o.MsgThroughputOut/100000)),
		cmp.Compare(truncate(t.TotalMsgRate()/100), truncate(o.TotalMsgRate()/100)),
	)
}

// Compare orders by the short-term data, then by the long-term data (Pulsar: BundleData.compareTo).
func (b BundleData) Compare(o BundleData) int {
	return cmp.Or(b.ShortTermData.Compare(o.ShortTermData), b.LongTermData.Compare(o.LongTermData))
}

// round is the nearest integer, ties toward +Infinity, exactly; NaN is 0 and what does not fit saturates (Java: Math.round).
func round(x float64) int64 {
	floor := math.Floor(x)
	if x-floor >= 0.5 { // the difference is exact, or so near to 1 that its rounding does not matter
		floor++
	}
	return truncate(floor)
}

// truncate drops the fraction; NaN is 0 and what does not fit saturates (Java: a cast to long).
func truncate(x float64) int64 {
	switch {
	case math.IsNaN(x):
		return 0
	case x >= math.MaxInt64:
		return math.MaxInt64
	case x <= math.MinInt64:
		return math.MinInt64
	}
	return int64(x)
}
