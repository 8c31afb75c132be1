// Package advise finds in a picture of a cluster what a balancer cannot mend and an operator can: too few bundles, a topic that
// is too hot, a cluster that is full, reports that cannot be true, bundles where policies no longer want them, rounds of moves
// that lead nowhere. It is pure.
package advise

import (
	"cmp"
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// All is everything that the snapshot alone tells, in a fixed order. An advice names a bundle (or, in Bundle, a namespace), a
// broker, or neither, and says why with the numbers that were compared.
func All(snap *cluster.Snapshot) []plan.LeftOut {
	return slices.Concat(Saturated(snap), MustMove(snap), Suspicious(snap), Bundles(snap), HotTopics(snap))
}

// Told is what was said before and still holds. The zero value is nothing.
type Told map[string]bool

// Fresh is the advice that was not given before, and what is told now. What holds no more may be given again.
func (t Told) Fresh(advice []plan.LeftOut) (fresh []plan.LeftOut, next Told) {
	next = make(Told, len(advice))
	for _, a := range advice {
		key := a.Why.Code + " " + a.Bundle + " " + a.Broker
		if !t[key] && !next[key] {
			fresh = append(fresh, a)
		}
		next[key] = true
	}
	return fresh, next
}

// view evaluates the policies over the registered brokers.
func view(snap *cluster.Snapshot) *policy.View {
	brokers := make([]policy.Broker, len(snap.Brokers))
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		brokers[i] = policy.Broker{ID: b.ID, PersistentTopics: b.PersistentTopics, NonPersistentTopics: b.NonPersistentTopics}
	}
	return snap.Policies.Over(brokers)
}

// report is what a broker says about itself, whatever its load manager.
type report struct {
	resources  [5]event.ResourceUsage // by event.Resource
	in, out    float64                // bytes/s
	rate       float64                // msg/s
	usage      float64                // what strategies compare: published average or weighted maximum, a fraction
	hasUsage   bool
	hasTraffic bool
}

// reportOf is the report of a broker, false if none was heard.
func reportOf(b *cluster.Broker, w load.Weights) (report, bool) {
	var r report
	switch {
	case b.Load != nil:
		d := b.Load
		r.resources = [5]event.ResourceUsage{event.CPU: d.CPU, event.Memory: d.Memory, event.DirectMemory: d.DirectMemory,
			event.BandwidthIn: d.BandwidthIn, event.BandwidthOut: d.BandwidthOut}
		r.in, r.out, r.rate, r.usage = d.MsgThroughputIn, d.MsgThroughputOut, d.MsgRateIn+d.MsgRateOut, d.WeightedMaxEMA
	case b.Local != nil:
		d := b.Local
		r.resources = [5]event.ResourceUsage{event.CPU: d.CPU, event.Memory: d.Memory, event.DirectMemory: d.DirectMemory,
			event.BandwidthIn: d.BandwidthIn, event.BandwidthOut: d.BandwidthOut}
		r.in, r.out, r.rate, r.usage = d.MsgThroughputIn, d.MsgThroughputOut, d.MsgRateIn+d.MsgRateOut, load.LocalWeightedMaxUsage(d, &w)
	case b.Report != nil:
		if u := b.Report.SystemResourceUsage; u != nil {
			r.resources = [5]event.ResourceUsage{event.CPU: u.CPU, event.Memory: u.Memory, event.DirectMemory: u.DirectMemory,
				event.BandwidthIn: u.BandwidthIn, event.BandwidthOut: u.BandwidthOut}
		}
		for _, s := range b.Report.BundleStats {
			r.in, r.out = r.in+s.Stats.MsgThroughputIn, r.out+s.Stats.MsgThroughputOut
			r.rate += s.Stats.MsgRateIn + s.Stats.MsgRateOut
		}
		r.usage = fullest(r.resources)
	default:
		return r, false
	}
	r.hasUsage = measured(r.usage)
	r.hasTraffic = measured(r.in) && measured(r.out) && measured(r.rate)
	return r, true
}

// fullest is what the Simple load manager compares: the largest usage of all resources but the heap.
func fullest(resources [5]event.ResourceUsage) float64 {
	most := 0.0
	for res, u := range resources {
		if event.Resource(res) != event.Memory && known(u) {
			most = max(most, u.Usage/u.Limit)
		}
	}
	return most
}

func (r *report) throughput() float64 { return r.in + r.out }

// measured says whether a figure can be one that was measured.
func measured(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// known says whether a resource can be judged.
func known(u event.ResourceUsage) bool {
	return measured(u.Usage) && u.Limit > 0 && !math.IsInf(u.Limit, 1)
}

// median is the middle of the values, the lower one of two; 0 of none. It sorts them.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.SortFunc(values, cmp.Compare[float64])
	return values[(len(values)-1)/2]
}
