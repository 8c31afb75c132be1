package simple

import (
	"maps"
	"math"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/jsonfloat"
)

// What quotas are learnt by. Pulsar: the constants of SimpleLoadManagerImpl.
const (
	upWindow   = 1_800_000  // ms in which an average follows a rising sample entirely
	downWindow = 86_400_000 // ms in which it follows a falling one

	initialCPUFactor    = 0.025 // percent of a core per msg/s
	initialMemoryFactor = 25.0  // MiB per group of topics, producers and consumers
	memoryGroup         = 500   // of those

	enoughRate    = 1000 // msg/s of all brokers above which the factors are learnt
	enoughGroups  = 30
	enoughBundles = 30 // above which the average quota is learnt
)

// limits are the least and most of a learnt value; a most of 0 or less is none.
type limits struct{ least, most float64 }

var (
	cpuFactorLimits    = limits{0.01, 0.1}
	memoryFactorLimits = limits{10, 50}
	rateLimits         = limits{5, 0}
	bandwidthLimits    = limits{10000, 1_000_000}
	memoryLimits       = limits{2, 200}
)

// Quotas are what bundles are expected to need, learnt from the load reports.
type Quotas struct {
	CPUFactor    jsonfloat.Float                `json:"cpuFactor"`    // percent of a core per msg/s
	MemoryFactor jsonfloat.Float                `json:"memoryFactor"` // MiB per group of 500 topics, producers and consumers
	Average      event.ResourceQuota            `json:"average"`      // of one bundle
	Bundles      map[string]event.ResourceQuota `json:"bundles,omitempty"`
	Updated      int64                          `json:"updated"` // timestamp of the latest report that was learnt from, Unix ms; -1 before
	Stored       Stored                         `json:"stored"`
	// Seen are stored quotas as they were when they were last looked up, of bundles that are in no report.
	Seen map[string]event.ResourceQuota `json:"seen,omitempty"`
}

// Stored are quotas that somebody wrote to the metadata store, under /loadbalance/resource-quota.
type Stored struct {
	Default *event.ResourceQuota           `json:"default,omitempty"` // nil: the built-in default
	Bundles map[string]event.ResourceQuota `json:"bundles,omitempty"`
}

// Of is the stored quota of a bundle, else the stored default, else the built-in one.
func (s *Stored) Of(bundle string) event.ResourceQuota {
	if q, ok := s.Bundles[bundle]; ok {
		return q
	}
	return s.OfDefault()
}

// OfDefault is the stored default quota, else the built-in one. Pulsar: BundlesQuotas.getDefaultResourceQuota.
func (s *Stored) OfDefault() event.ResourceQuota {
	if s.Default != nil {
		return *s.Default
	}
	return event.DefaultResourceQuota()
}

// Of is the learnt quota of a bundle, else the stored one.
func (q *Quotas) Of(bundle string) event.ResourceQuota {
	if quota, ok := q.Bundles[bundle]; ok {
		return quota
	}
	if quota, ok := q.Seen[bundle]; ok {
		return quota
	}
	return q.Stored.Of(bundle)
}

// look is Of, and keeps a stored quota as it is now until the next reports. Pulsar: getResourceQuota.
func (q *Quotas) look(bundle string) event.ResourceQuota {
	quota := q.Of(bundle)
	if _, learnt := q.Bundles[bundle]; !learnt {
		if q.Seen == nil {
			q.Seen = make(map[string]event.ResourceQuota)
		}
		q.Seen[bundle] = quota
	}
	return quota
}

// sum is the sum of the quotas of bundles, in their order. Pulsar: getTotalAllocatedQuota.
func sum(bundles []string, quota func(string) event.ResourceQuota) event.ResourceQuota {
	total := event.NewResourceQuota()
	for _, b := range bundles {
		addQuota(&total, quota(b))
	}
	return total
}

func addQuota(sum *event.ResourceQuota, q event.ResourceQuota) {
	sum.MsgRateIn += q.MsgRateIn
	sum.MsgRateOut += q.MsgRateOut
	sum.BandwidthIn += q.BandwidthIn
	sum.BandwidthOut += q.BandwidthOut
	sum.Memory += q.Memory
}

func subtractQuota(sum *event.ResourceQuota, q event.ResourceQuota) {
	sum.MsgRateIn -= q.MsgRateIn
	sum.MsgRateOut -= q.MsgRateOut
	sum.BandwidthIn -= q.BandwidthIn
	sum.BandwidthOut -= q.BandwidthOut
	sum.Memory -= q.Memory
}

// totals are the sums over all reports that have bundle statistics.
type totals struct {
	latest            int64 // greatest timestamp of all reports, at least -1
	bundles, groups   int64
	rateIn, rateOut   float64
	bandIn, bandOut   float64
	cpuUsed, heapUsed float64
}

// groupsOf is how many groups of topics, producers and consumers a bundle has.
func groupsOf(s *event.NamespaceBundleStats) int64 {
	return 1 + (s.Topics+int64(s.ProducerCount)+int64(s.ConsumerCount))/memoryGroup
}

func totalsOf(reports []report) totals {
	t := totals{latest: -1}
	for _, r := range reports {
		t.latest = max(t.latest, r.Timestamp)
		if r.BundleStats == nil {
			continue
		}
		for i := range r.BundleStats {
			s := &r.BundleStats[i].Stats
			t.bundles++
			t.groups += groupsOf(s)
			t.bandIn += s.MsgThroughputIn
			t.bandOut += s.MsgThroughputOut
		}
		t.rateIn += r.MsgRateIn()
		t.rateOut += r.MsgRateOut()
		t.cpuUsed += r.SystemResourceUsage.CPU.Usage
		t.heapUsed += r.SystemResourceUsage.Memory.Usage
	}
	return t
}

// learn takes reports into the quotas: factors and average when there is enough traffic, and the quota of every bundle that
// is reported; bundles that are not lose theirs. Pulsar: updateRealtimeResourceQuota.
func (q *Quotas) learn(reports []report) {
	if len(reports) == 0 {
		return
	}
	t := totalsOf(reports)
	elapsed := t.latest - q.Updated
	q.Updated = t.latest
	if rate := t.rateIn + t.rateOut; rate > enoughRate && t.groups > enoughGroups {
		q.CPUFactor = jsonfloat.Float(smooth(float64(q.CPUFactor), t.cpuUsed/rate, cpuFactorLimits, elapsed))
		q.MemoryFactor = jsonfloat.Float(smooth(float64(q.MemoryFactor), t.heapUsed/float64(t.groups), memoryFactorLimits, elapsed))
	}
	if n := float64(t.bundles); t.bundles > enoughBundles && q.Average.Dynamic {
		q.Average = smoothQuota(q.Average, event.ResourceQuota{MsgRateIn: t.rateIn / n, MsgRateOut: t.rateOut / n,
			BandwidthIn: t.bandIn / n, BandwidthOut: t.bandOut / n, Memory: t.heapUsed / n}, elapsed)
	}
	learnt := make(map[string]event.ResourceQuota, t.bundles)
	for _, r := range reports {
		for i := range r.BundleStats {
			b := &r.BundleStats[i]
			learnt[b.Bundle] = smoothQuota(q.Of(b.Bundle), event.ResourceQuota{MsgRateIn: b.Stats.MsgRateIn, MsgRateOut: b.Stats.MsgRateOut,
				BandwidthIn: b.Stats.MsgThroughputIn, BandwidthOut: b.Stats.MsgThroughputOut,
				Memory: float64(groupsOf(&b.Stats)) * float64(q.MemoryFactor)}, elapsed)
		}
	}
	q.Bundles, q.Seen = learnt, nil
}

// smoothQuota moves a quota toward a sample; one that is not dynamic stays. Pulsar: timeSmoothQuota.
func smoothQuota(old, sample event.ResourceQuota, elapsed int64) event.ResourceQuota {
	if !old.Dynamic {
		return old
	}
	return event.ResourceQuota{
		MsgRateIn:    smooth(old.MsgRateIn, sample.MsgRateIn, rateLimits, elapsed),
		MsgRateOut:   smooth(old.MsgRateOut, sample.MsgRateOut, rateLimits, elapsed),
		BandwidthIn:  smooth(old.BandwidthIn, sample.BandwidthIn, bandwidthLimits, elapsed),
		BandwidthOut: smooth(old.BandwidthOut, sample.BandwidthOut, bandwidthLimits, elapsed),
		Memory:       smooth(old.Memory, sample.Memory, memoryLimits, elapsed),
		Dynamic:      true,
	}
}

// smooth moves a value toward a sample in proportion to the ms that passed; it rises faster than it falls. NaN spreads.
// Pulsar: timeSmoothValue.
func smooth(old, sample float64, l limits, elapsed int64) float64 {
	sample = max(l.least, sample)
	if l.most > 0 {
		sample = min(l.most, sample)
	}
	weight := 0.0
	if sample >= old {
		weight = min(1, max(0, float64(elapsed)/upWindow))
	} else if sample < old {
		weight = min(1, max(0, float64(elapsed)/downWindow))
	}
	return float64((1-weight)*old) + float64(weight*sample)
}

// QuotaWrite is one quota that the leader writes to the metadata store.
type QuotaWrite struct {
	Bundle string // "" = the default quota
	Quota  event.ResourceQuota
}

// Writes are the quotas that differ enough from the stored ones: the default first, then bundles by name, those
// that were only looked up included. The leader also writes both factors every time.
// Pulsar: writeResourceQuotasToZooKeeper.
func (q *Quotas) Writes(o Options) []QuotaWrite {
	var out []QuotaWrite
	if differs(q.Stored.OfDefault(), q.Average, o) {
		out = append(out, QuotaWrite{Quota: q.Average})
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(q.Bundles)), maps.Keys(q.Seen))
	slices.Sort(names)
	for _, b := range names {
		if quota := q.Of(b); differs(q.Stored.Of(b), quota, o) {
			out = append(out, QuotaWrite{Bundle: b, Quota: quota})
		}
	}
	return out
}

// differs says whether a quota is worth writing over the stored one. Pulsar: compareAndWriteQuota.
func differs(stored, q event.ResourceQuota, o Options) bool {
	storedIn := stored.BandwidthOut
	if o.SameBandwidth {
		storedIn = stored.BandwidthIn
	}
	within := func(a, b, limit float64) bool { return math.Abs(a-b) < limit }
	return stored.Dynamic && !(within(q.MsgRateIn, stored.MsgRateIn, rateLimits.least) && within(q.MsgRateOut, stored.MsgRateOut, rateLimits.least) &&
		within(q.BandwidthIn, storedIn, bandwidthLimits.least) && within(q.BandwidthOut, stored.BandwidthOut, bandwidthLimits.least) &&
		within(q.Memory, stored.Memory, memoryLimits.least))
}
