package simple

import (
	"math"

	"github.com/ballast-lb/ballast/event"
)

// Ranking is what one broker is thought to carry: what it reports and what it was promised since.
// Pulsar: ResourceUnitRanking.
type Ranking struct {
	Broker            string                    `json:"broker"` // the name in its report, a broker id
	Usage             event.SystemResourceUsage `json:"usage"`
	Loaded            []string                  `json:"loaded"`       // bundles of its report, in order
	Preallocated      []string                  `json:"preallocated"` // bundles it was given since, oldest first
	Allocated         event.ResourceQuota       `json:"allocated"`    // sum of the quotas of Loaded
	PreallocatedQuota event.ResourceQuota       `json:"preallocatedQuota"`
	Rank              int64                     `json:"rank"` // when it was ranked; what it is depends on the strategy

	estimate Estimate
}

// Estimate is how loaded a broker will be, in percent of each resource up to 100; 0 where the limit is 0 or less.
type Estimate struct {
	CPU, Memory, DirectMemory, BandwidthIn, BandwidthOut float64
	Load                                                 float64 // the greatest of them
	MsgRate                                              float64 // msg/s that its bundles are expected to have
}

// Estimate is how loaded the broker is estimated to be.
func (r *Ranking) Estimate() Estimate { return r.estimate }

// Idle says whether the broker has no bundle.
func (r *Ranking) Idle() bool { return len(r.Loaded) == 0 && len(r.Preallocated) == 0 }

// kbits is bytes/s per "kbit/s" as Pulsar converts them.
const kbits = 128

// reckon estimates the load anew; factor is percent of a core per msg/s. Pulsar: estimateLoadPercentage.
func (r *Ranking) reckon(factor float64) {
	a, p, u := &r.Allocated, &r.PreallocatedQuota, &r.Usage
	e := Estimate{
		CPU:          percent(u.CPU, float64(factor*(a.MsgRateIn+a.MsgRateOut)), float64(factor*(p.MsgRateIn+p.MsgRateOut))),
		Memory:       percent(u.Memory, a.Memory, p.Memory),
		DirectMemory: percent(u.DirectMemory, u.DirectMemory.Usage, 0),
		BandwidthIn:  percent(u.BandwidthIn, a.BandwidthIn/kbits, p.BandwidthIn/kbits),
		BandwidthOut: percent(u.BandwidthOut, a.BandwidthOut/kbits, p.BandwidthOut/kbits),
		MsgRate:      a.MsgRateIn + a.MsgRateOut + p.MsgRateIn + p.MsgRateOut,
	}
	e.Load = max(e.CPU, e.Memory, e.DirectMemory, e.BandwidthIn, e.BandwidthOut)
	r.estimate = e
}

// percent is how full a resource will be: what is used or expected of the loaded bundles, whichever is more, and what is
// expected of the promised ones.
func percent(u event.ResourceUsage, allocated, promised float64) float64 {
	if u.Limit <= 0 {
		return 0
	}
	return min(100, 100*(max(u.Usage, allocated)+promised)/u.Limit)
}

// give adds a bundle that was placed on the broker. Pulsar: addPreAllocatedServiceUnit.
func (r *Ranking) give(bundle string, q event.ResourceQuota, factor float64) {
	r.Preallocated = append(r.Preallocated, bundle)
	addQuota(&r.PreallocatedQuota, q)
	r.reckon(factor)
}

// take removes a loaded bundle: it is looked up, so the broker does not have it any more.
// Pulsar: removeLoadedServiceUnit.
func (r *Ranking) take(bundle string, q event.ResourceQuota, factor float64) {
	r.Loaded = without(r.Loaded, bundle)
	subtractQuota(&r.Allocated, q)
	r.reckon(factor)
}

// without is a copy of a list without one member.
func without(list []string, member string) []string {
	out := make([]string, 0, len(list))
	for _, x := range list {
		if x != member {
			out = append(out, x)
		}
	}
	return out
}

// capacity is how many bundles of the quota a broker could carry; factor is percent of a core per msg/s.
// Pulsar: calculateBrokerMaxCapacity.
func capacity(u *event.SystemResourceUsage, q event.ResourceQuota, factor float64, o Options) int64 {
	room := math.Inf(1)
	for _, r := range [...]struct{ limit, need float64 }{
		{u.BandwidthIn.Limit * kbits, q.BandwidthIn},
		{u.BandwidthOut.Limit * kbits, q.BandwidthOut},
		{u.Memory.Limit, q.Memory},
		{u.CPU.Limit / factor, q.MsgRateIn + q.MsgRateOut},
	} {
		if o.SkipUnknownLimits && !(r.limit > 0) {
			continue
		}
		room = min(room, r.limit/r.need)
	}
	if o.SkipUnknownLimits && math.IsInf(room, 1) {
		return 0 // nothing is known of the broker
	}
	return toLong(max(room, 0))
}

// near is the difference in percent points up to which two brokers count as equally loaded.
const near = 5

// lighter says whether a broker is less loaded than another: by the first of load, memory, CPU, bandwidth in and out that
// differs by more than 5 points, else by load. It is not transitive. Pulsar: compareToOtherRanking.
func (e *Estimate) lighter(o *Estimate) bool {
	for _, pair := range [...][2]float64{{e.Load, o.Load}, {e.Memory, o.Memory}, {e.CPU, o.CPU}, {e.BandwidthIn, o.BandwidthIn}, {e.BandwidthOut, o.BandwidthOut}} {
		if math.Abs(pair[0]-pair[1]) > near {
			return less(pair[0], pair[1])
		}
	}
	return less(e.Load, o.Load)
}

// rank is the place of a broker under a strategy. Pulsar: doLoadRanking.
func (r *Ranking) rank(strategy string, capacity int64) int64 {
	switch strategy {
	case leastLoadedServer:
		return toLong(r.estimate.Load)
	case leastMsgPerSecond:
		return toLong(r.estimate.MsgRate)
	}
	idle := (100 - r.estimate.Load) / 100
	return toLong(float64(capacity) * idle * idle)
}
