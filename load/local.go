package load

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/event"
)

// LocalMaxUsage is the usage of a broker's busiest resource as a fraction (1 = 100 %), heap memory left out. It is computed
// in 32-bit floats and then widened, so 10 % is 0.10000000149011612. Pulsar: LocalBrokerData.getMaxResourceUsage.
func LocalMaxUsage(d *event.LocalBrokerData) float64 {
	m := float32(math.Inf(-1))
	for _, r := range [...]event.ResourceUsage{d.CPU, d.DirectMemory, d.BandwidthIn, d.BandwidthOut} {
		if p := r.PercentUsage(); p > m {
			m = p
		}
	}
	return float64(m / 100)
}

// LocalWeightedMaxUsage is the largest weighted usage of a broker's resources as a fraction (1 = 100 %), heap memory left
// out. NaN never wins; with nothing but NaN it is -Inf. Pulsar: LocalBrokerData.getMaxResourceUsageWithWeight.
func LocalWeightedMaxUsage(d *event.LocalBrokerData, w *Weights) float64 {
	m := math.Inf(-1)
	if v := float64(d.CPU.PercentUsage()) * w.CPU; v > m {
		m = v
	}
	if v := float64(d.DirectMemory.PercentUsage()) * w.DirectMemory; v > m {
		m = v
	}
	if v := float64(d.BandwidthIn.PercentUsage()) * w.BandwidthIn; v > m {
		m = v
	}
	if v := float64(d.BandwidthOut.PercentUsage()) * w.BandwidthOut; v > m {
		m = v
	}
	return m / 100
}

// UpdateLocal takes host usage and the statistics of the bundles that the broker serves into its load report. Bundles that
// are served no more are added to LastBundleLosses, new ones to LastBundleGains, until CleanDeltas. Of two entries of one
// bundle the last counts, in the place of the first. Sums are made in the order of stats. The slice of stats is kept.
// Pulsar: LocalBrokerData.update.
func UpdateLocal(d *event.LocalBrokerData, host event.SystemResourceUsage, stats []event.NamedBundleStats) {
	d.CPU, d.Memory, d.DirectMemory = host.CPU, host.Memory, host.DirectMemory
	d.BandwidthIn, d.BandwidthOut = host.BandwidthIn, host.BandwidthOut
	d.MsgRateIn, d.MsgRateOut, d.MsgThroughputIn, d.MsgThroughputOut = 0, 0, 0, 0

	stats = lastOfEach(stats)
	served := make(map[string]bool, len(stats))
	for i := range stats {
		served[stats[i].Bundle] = true
	}
	kept := make([]string, 0, len(stats))
	known := make(map[string]bool, len(stats))
	gains, losses := newNameSet(d.LastBundleGains), newNameSet(d.LastBundleLosses)
	for _, b := range d.Bundles {
		switch {
		case !served[b]:
			losses.add(b)
		case !known[b]:
			known[b] = true
			kept = append(kept, b)
		}
	}

	d.NumTopics, d.NumBundles, d.NumConsumers, d.NumProducers = 0, 0, 0, 0
	for i := range stats {
		b, s := stats[i].Bundle, &stats[i].Stats
		if !known[b] {
			known[b] = true
			kept = append(kept, b)
			gains.add(b)
		}
		d.MsgThroughputIn += s.MsgThroughputIn
		d.MsgThroughputOut += s.MsgThroughputOut
		d.MsgRateIn += s.MsgRateIn
		d.MsgRateOut += s.MsgRateOut
		d.NumTopics += s.Topics
		d.NumBundles++
		d.NumConsumers += s.ConsumerCount
		d.NumProducers += s.ProducerCount
	}
	d.Bundles, d.LastBundleGains, d.LastBundleLosses = kept, gains.members, losses.members
	d.LastStats = stats
}

// CleanDeltas forgets the gains and losses after they were published. Pulsar: LocalBrokerData.cleanDeltas.
func CleanDeltas(d *event.LocalBrokerData) {
	d.LastBundleGains, d.LastBundleLosses = nil, nil
}

// nameSet is a set of names in the order in which they came.
type nameSet struct {
	members []string
	has     map[string]bool
}

func newNameSet(members []string) *nameSet {
	s := &nameSet{members: slices.Clone(members), has: make(map[string]bool, len(members))}
	for _, m := range members {
		s.has[m] = true
	}
	return s
}

func (s *nameSet) add(name string) {
	if !s.has[name] {
		s.has[name] = true
		s.members = append(s.members, name)
	}
}

// lastOfEach is stats with each bundle once. It copies only if there is a duplicate.
func lastOfEach(stats []event.NamedBundleStats) []event.NamedBundleStats {
	place := make(map[string]int, len(stats))
	for i := range stats {
		place[stats[i].Bundle] = i
	}
	if len(place) == len(stats) {
		return stats
	}
	out := make([]event.NamedBundleStats, 0, len(place))
	seen := make(map[string]bool, len(place))
	for i := range stats {
		if b := stats[i].Bundle; !seen[b] {
			seen[b] = true
			out = append(out, stats[place[b]])
		}
	}
	return out
}

// LocalChange says why a load report is due, in percent; see ReportDue.
type LocalChange struct {
	Age        int64   // ms since the last report
	Rate       float64 // change of the message rate
	Throughput float64 // change of the throughput
	Bundles    float64 // change of the number of bundles
	Usage      float64 // change of the weighted maximum usage, in points
}

// Max is the largest change, -Inf if all are NaN.
func (c LocalChange) Max() float64 {
	m := math.Inf(-1)
	for _, v := range [...]float64{c.Rate, c.Throughput, c.Bundles, c.Usage} {
		if v > m {
			m = v
		}
	}
	return m
}

// ReportDue says whether a broker must write its load report again at time now (Unix ms): the last one is older than
// maxIntervalMinutes, or something changed by more than threshold percent since. last is the report as written, d as of
// now; the age counts from d.LastUpdate, which the writer sets. Pulsar: ModularLoadManagerImpl.needBrokerDataUpdate.
func ReportDue(last, d *event.LocalBrokerData, now int64, w *Weights, threshold, maxIntervalMinutes int64) (bool, LocalChange) {
	c := LocalChange{
		Age:        now - d.LastUpdate,
		Rate:       percentChange(last.MsgRateIn+last.MsgRateOut, d.MsgRateIn+d.MsgRateOut),
		Throughput: percentChange(last.MsgThroughputIn+last.MsgThroughputOut, d.MsgThroughputIn+d.MsgThroughputOut),
		Bundles:    percentChange(float64(last.NumBundles), float64(d.NumBundles)),
		Usage:      100 * math.Abs(LocalWeightedMaxUsage(last, w)-LocalWeightedMaxUsage(d, w)),
	}
	return c.Age > maxIntervalMinutes*60000 || c.Max() > float64(threshold), c
}

// percentChange is 0 between two zeros, +Inf from zero, else the change in percent of the old value.
func percentChange(old, new float64) float64 {
	if old == 0 {
		if new == 0 {
			return 0
		}
		return math.Inf(1)
	}
	return 100 * math.Abs((old-new)/old)
}
