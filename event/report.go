package event

import (
	"cmp"
	"math"
	"slices"
)

// The values of loadReportType.
const (
	reportTypeSimple  = "LoadReport"
	reportTypeModular = "LocalBrokerData"
)

var negativeInfinity = float32(math.Inf(-1))

// ReportKind is the class as which a stored load report is read.
type ReportKind int

// The classes of load reports.
const (
	ModularReport ReportKind = iota // LocalBrokerData
	SimpleReport                    // LoadReport
)

// String is the name of Pulsar's class.
func (k ReportKind) String() string {
	if k == SimpleReport {
		return reportTypeSimple
	}
	return reportTypeModular
}

// KindOfReport says as which class Pulsar reads a stored load report: LoadReport if it says so or if it has a member
// underLoaded, whatever it holds, else LocalBrokerData. The registration of an Extensible broker is thereby a LocalBrokerData
// without load (Pulsar: LoadReportDeserializer).
func KindOfReport(document []byte) (ReportKind, error) {
	r := reader{data: document}
	kind := ModularReport
	if !r.begin() {
		r.fail("a load report")
		return kind, r.finish("load report")
	}
	for key := range r.fields {
		switch {
		case string(key) == "underLoaded":
			kind = SimpleReport
			r.skip()
		case string(key) == "loadReportType" && r.peek() == '"':
			if string(r.text("a string")) == reportTypeSimple {
				kind = SimpleReport
			}
		default:
			r.skip()
		}
	}
	return kind, r.finish("load report")
}

// MsgRateIn is the sum over the bundles, msg/s.
func (d LoadReport) MsgRateIn() (sum float64) {
	for i := range d.BundleStats {
		sum += d.BundleStats[i].Stats.MsgRateIn
	}
	return sum
}

// MsgRateOut is the sum over the bundles, msg/s.
func (d LoadReport) MsgRateOut() (sum float64) {
	for i := range d.BundleStats {
		sum += d.BundleStats[i].Stats.MsgRateOut
	}
	return sum
}

// NumTopics is the sum over the bundles.
func (d LoadReport) NumTopics() (sum int64) {
	for i := range d.BundleStats {
		sum += d.BundleStats[i].Stats.Topics
	}
	return sum
}

// NumConsumers is the sum over the bundles; it wraps at 32 bits as in Java.
func (d LoadReport) NumConsumers() (sum int32) {
	for i := range d.BundleStats {
		sum += d.BundleStats[i].Stats.ConsumerCount
	}
	return sum
}

// NumProducers is the sum over the bundles; it wraps at 32 bits as in Java.
func (d LoadReport) NumProducers() (sum int32) {
	for i := range d.BundleStats {
		sum += d.BundleStats[i].Stats.ProducerCount
	}
	return sum
}

// NumBundles is how many bundles have stats.
func (d LoadReport) NumBundles() int32 { return int32(len(d.BundleStats)) }

// Bottleneck is the fullest of CPU, memory, bandwidth in and bandwidth out, the first of them among equals
// (Pulsar: LoadReport.getBottleneckResourceType). Without usage it is CPU.
func (d LoadReport) Bottleneck() Resource {
	if d.SystemResourceUsage == nil {
		return CPU
	}
	u := d.SystemResourceUsage
	which, most := CPU, u.CPU.PercentUsage()
	for _, other := range [...]struct {
		Resource
		usage ResourceUsage
	}{{Memory, u.Memory}, {BandwidthIn, u.BandwidthIn}, {BandwidthOut, u.BandwidthOut}} {
		if p := other.usage.PercentUsage(); p > most {
			which, most = other.Resource, p
		}
	}
	return which
}

// SortedBundleStats are the bundles by what they take of the resource, heaviest first: message rate for CPU (100 msg/s),
// topics and sessions for memory (500), throughput for bandwidth (100 kB/s). Ties keep the order of the report
// (Pulsar: LoadReport.getSortedBundleStats, which has an arbitrary order of ties).
func (d LoadReport) SortedBundleStats(by Resource) []NamedBundleStats {
	sorted := slices.Clone(d.BundleStats)
	slices.SortStableFunc(sorted, func(a, b NamedBundleStats) int {
		return cmp.Compare(weight(b.Stats, by), weight(a.Stats, by))
	})
	return sorted
}

// weight is what a bundle takes of a resource, in coarse steps.
func weight(s NamespaceBundleStats, by Resource) int64 {
	switch by {
	case Memory:
		return s.sessions() / 500
	case BandwidthIn:
		return round(s.MsgThroughputIn / 100000)
	case BandwidthOut:
		return round(s.MsgThroughputOut / 100000)
	default:
		return round((s.MsgRateIn + s.MsgRateOut) / 100)
	}
}
