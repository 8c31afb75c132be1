package load

import "github.com/ballast-lb/ballast/event"

// Samples that a bundle's two averages run over. Pulsar: ModularLoadManagerImpl NUM_SHORT_SAMPLES and NUM_LONG_SAMPLES.
const (
	ShortSamples = 10
	LongSamples  = 1000
)

// DefaultStats is what a bundle counts for before its first sample: 50 msg/s and 50,000 bytes/s each way.
// Pulsar: ModularLoadManagerImpl DEFAULT_MESSAGE_RATE and DEFAULT_MESSAGE_THROUGHPUT.
func DefaultStats() event.NamespaceBundleStats {
	return event.NamespaceBundleStats{MsgRateIn: 50, MsgRateOut: 50, MsgThroughputIn: 50000, MsgThroughputOut: 50000}
}

// NewTimeAverage is an average over maxSamples samples that counts for stats until its first sample, which replaces them
// whole. Pulsar: TimeAverageMessageData(int, NamespaceBundleStats).
func NewTimeAverage(maxSamples int32, stats event.NamespaceBundleStats) event.TimeAverageMessageData {
	return event.TimeAverageMessageData{
		MaxSamples:      maxSamples,
		MsgThroughputIn: stats.MsgThroughputIn, MsgThroughputOut: stats.MsgThroughputOut,
		MsgRateIn: stats.MsgRateIn, MsgRateOut: stats.MsgRateOut,
	}
}

// NewBundleData is the history of a bundle that was never seen. Pulsar: BundleData(int, int, NamespaceBundleStats).
func NewBundleData(shortSamples, longSamples int32, stats event.NamespaceBundleStats) event.BundleData {
	return event.BundleData{
		ShortTermData: NewTimeAverage(shortSamples, stats),
		LongTermData:  NewTimeAverage(longSamples, stats),
	}
}

// BundleDataFromQuota is the history that stands for a stored resource quota: both averages hold the quota's rates and
// count as full, so that samples change them slowly. Pulsar: ModularLoadManagerImpl.getBundleDataOrDefault.
func BundleDataFromQuota(q event.ResourceQuota) event.BundleData {
	d := NewBundleData(ShortSamples, LongSamples, event.NamespaceBundleStats{
		MsgRateIn: q.MsgRateIn, MsgRateOut: q.MsgRateOut,
		MsgThroughputIn: q.BandwidthIn, MsgThroughputOut: q.BandwidthOut,
	})
	d.ShortTermData.NumSamples, d.LongTermData.NumSamples = ShortSamples, LongSamples
	return d
}

// UpdateTimeAverage adds one sample. Up to MaxSamples samples the average is the mean of all; from then on it is an
// exponential moving average of weight 1/MaxSamples. MaxSamples 0 or less gives infinities or NaN, as in Pulsar.
// Pulsar: TimeAverageMessageData.update.
func UpdateTimeAverage(t *event.TimeAverageMessageData, s *event.NamespaceBundleStats) {
	t.NumSamples = min(t.NumSamples+1, t.MaxSamples)
	weight, n := float64(t.NumSamples-1), float64(t.NumSamples)
	t.MsgThroughputIn = (float64(weight*t.MsgThroughputIn) + s.MsgThroughputIn) / n
	t.MsgThroughputOut = (float64(weight*t.MsgThroughputOut) + s.MsgThroughputOut) / n
	t.MsgRateIn = (float64(weight*t.MsgRateIn) + s.MsgRateIn) / n
	t.MsgRateOut = (float64(weight*t.MsgRateOut) + s.MsgRateOut) / n
}

// UpdateBundleData adds one sample to both averages and takes over the topic count, cut to 32 bits as in Pulsar.
// Pulsar: BundleData.update.
func UpdateBundleData(d *event.BundleData, s *event.NamespaceBundleStats) {
	UpdateTimeAverage(&d.ShortTermData, s)
	UpdateTimeAverage(&d.LongTermData, s)
	d.Topics = int32(s.Topics)
}

// AddBundleData adds a bundle's averages to a broker's. A nil bundle, one without history, adds the stats to both terms.
// Pulsar: TimeAverageBrokerData.reset, which starts at zero and adds its bundles one after another.
func AddBundleData(sum *event.TimeAverageBrokerData, d *event.BundleData, stats *event.NamespaceBundleStats) {
	if d == nil {
		sum.ShortTermMsgThroughputIn += stats.MsgThroughputIn
		sum.ShortTermMsgThroughputOut += stats.MsgThroughputOut
		sum.ShortTermMsgRateIn += stats.MsgRateIn
		sum.ShortTermMsgRateOut += stats.MsgRateOut
		sum.LongTermMsgThroughputIn += stats.MsgThroughputIn
		sum.LongTermMsgThroughputOut += stats.MsgThroughputOut
		sum.LongTermMsgRateIn += stats.MsgRateIn
		sum.LongTermMsgRateOut += stats.MsgRateOut
		return
	}
	short, long := &d.ShortTermData, &d.LongTermData
	sum.ShortTermMsgThroughputIn += short.MsgThroughputIn
	sum.ShortTermMsgThroughputOut += short.MsgThroughputOut
	sum.ShortTermMsgRateIn += short.MsgRateIn
	sum.ShortTermMsgRateOut += short.MsgRateOut
	sum.LongTermMsgThroughputIn += long.MsgThroughputIn
	sum.LongTermMsgThroughputOut += long.MsgThroughputOut
	sum.LongTermMsgRateIn += long.MsgRateIn
	sum.LongTermMsgRateOut += long.MsgRateOut
}
