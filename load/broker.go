package load

import (
	"math"

	"github.com/ballast-lb/ballast/event"
)

// Totals are the sums over everything that a broker serves.
type Totals struct {
	MsgThroughputIn  float64 // bytes/s
	MsgThroughputOut float64 // bytes/s
	MsgRateIn        float64 // msg/s
	MsgRateOut       float64 // msg/s
	BundleCount      int64
	Topics           int64
}

// UpdateBrokerLoad takes a new measurement into a broker's load data: both averages keep the fraction history of what
// they were, or start with this measurement when it is the first since event.NewBrokerLoadData. Pulsar: BrokerLoadData.update.
func UpdateBrokerLoad(d *event.BrokerLoadData, u event.SystemResourceUsage, t Totals, w Weights, history float64, now int64) {
	d.CPU, d.Memory, d.DirectMemory = u.CPU, u.Memory, u.DirectMemory
	d.BandwidthIn, d.BandwidthOut = u.BandwidthIn, u.BandwidthOut
	d.MsgThroughputIn, d.MsgThroughputOut = t.MsgThroughputIn, t.MsgThroughputOut
	d.MsgRateIn, d.MsgRateOut = t.MsgRateIn, t.MsgRateOut
	d.BundleCount, d.Topics = t.BundleCount, t.Topics

	d.MaxResourceUsage = maxUsage(u)
	weighted := WeightedMax(u, w)
	throughput := t.MsgThroughputIn + t.MsgThroughputOut
	if d.UpdatedAt == 0 {
		d.WeightedMaxEMA, d.MsgThroughputEMA = weighted, throughput
	} else {
		d.WeightedMaxEMA = average(d.WeightedMaxEMA, weighted, history)
		d.MsgThroughputEMA = average(d.MsgThroughputEMA, throughput, history)
	}
	d.UpdatedAt = now
}

// average is written so that no step may be fused into a multiply-add.
func average(old, sample, history float64) float64 {
	return float64(old*history) + float64((1-history)*sample)
}

// maxUsage is the largest usage of CPU, direct memory and bandwidth as a fraction; heap memory is left out.
func maxUsage(u event.SystemResourceUsage) float64 {
	return Greatest(float64(u.CPU.PercentUsage()), float64(u.DirectMemory.PercentUsage()),
		float64(u.BandwidthIn.PercentUsage()), float64(u.BandwidthOut.PercentUsage())) / 100
}

// WeightedMax is the largest weighted usage of all five resources as a fraction. Pulsar: BrokerLoadData's weighted maximum.
func WeightedMax(u event.SystemResourceUsage, w Weights) float64 {
	return Greatest(float64(u.CPU.PercentUsage())*w.CPU, float64(u.Memory.PercentUsage())*w.Memory,
		float64(u.DirectMemory.PercentUsage())*w.DirectMemory,
		float64(u.BandwidthIn.PercentUsage())*w.BandwidthIn, float64(u.BandwidthOut.PercentUsage())*w.BandwidthOut) / 100
}

// ReportCause is what made a broker's load data worth publishing.
type ReportCause string

// The causes, in the order in which they are looked at.
const (
	ReportAge        ReportCause = "age"        // the last report is too old; Change is its age in ms
	ReportUsage      ReportCause = "usage"      // maxResourceUsage changed; Change is in percent points
	ReportMsgRate    ReportCause = "msgRate"    // the message rate changed; Change is in percent
	ReportThroughput ReportCause = "throughput" // the throughput changed; Change is in percent
	ReportBundles    ReportCause = "bundles"    // the number of bundles changed; Change is in percent
	ReportNone       ReportCause = "none"       // nothing changed enough; Change is the largest change in percent
)

// ReportNeed says whether load data must be published, and why.
type ReportNeed struct {
	Needed bool
	Cause  ReportCause
	Change float64
	Limit  float64 // what Change was compared with
}

// NeedsReport says whether current must be published when last was published before. maxIntervalMinutes is
// loadBalancerReportUpdateMaxIntervalMinutes, thresholdPercent loadBalancerReportUpdateThresholdPercentage. A change that
// is NaN never makes a report needed. Pulsar: BrokerLoadDataReporter.needBrokerDataUpdate.
func NeedsReport(last, current *event.BrokerLoadData, now, maxIntervalMinutes, thresholdPercent int64) ReportNeed {
	maxAge := maxIntervalMinutes * 60_000
	if age := now - current.ReportedAt; age > maxAge {
		return ReportNeed{Needed: true, Cause: ReportAge, Change: float64(age), Limit: float64(maxAge)}
	}
	changes := [...]struct {
		cause ReportCause
		value float64
	}{
		{ReportUsage, 100 * math.Abs(last.MaxResourceUsage-current.MaxResourceUsage)},
		{ReportMsgRate, percentChange(last.MsgRateIn+last.MsgRateOut, current.MsgRateIn+current.MsgRateOut)},
		{ReportThroughput, percentChange(last.MsgThroughputIn+last.MsgThroughputOut, current.MsgThroughputIn+current.MsgThroughputOut)},
		{ReportBundles, percentChange(float64(last.BundleCount), float64(current.BundleCount))},
	}
	most := changes[0]
	for _, c := range changes[1:] {
		if c.value > most.value || c.value != c.value {
			most = c
		}
		if most.value != most.value {
			break
		}
	}
	need := ReportNeed{Cause: ReportNone, Change: most.value, Limit: float64(thresholdPercent)}
	if most.value > need.Limit {
		need.Needed, need.Cause = true, most.cause
	}
	return need
}
