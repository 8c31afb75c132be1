package modular

import (
	"math"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
)

// UniformLoadShedder compares the brokers with the most and the least traffic. If their message rates differ by more than
// loadBalancerMsgRateDifferenceShedderThreshold percent, or else their throughputs by more than
// loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold times, it sheds maxUnloadPercentage of the difference from
// the first. Pulsar: UniformLoadShedder. It has no memory.
type UniformLoadShedder struct{ Options Options }

var (
	// Uniform is the outcome when the traffic is even enough.
	Uniform = plan.Code{ID: "TRAFFIC_EVEN", Template: "rate gap {ratePercent}% (limit {rateLimit}, 0 = off), throughput ratio {throughputRatio} (limit {throughputLimit}, 0 = off)"}
	// RateDeltaTooSmall: the part of the rate gap that would move is below minUnloadMessage.
	RateDeltaTooSmall = plan.Code{ID: "RATE_DELTA_TOO_SMALL", Template: "rate delta {delta} < minUnloadMessage {limit}"}
	// ThroughputDeltaTooSmall: the part of the throughput gap that would move is below minUnloadMessageThroughput.
	ThroughputDeltaTooSmall = plan.Code{ID: "THROUGHPUT_DELTA_TOO_SMALL", Template: "throughput delta {delta} < minUnloadMessageThroughput {limit}"}
	// RateUneven: the broker has the most messages, too many more than the one with the least.
	RateUneven = plan.Code{ID: "RATE_UNEVEN", Template: "{most} msg/s, {percent}% above the least {least} of {low}; up to {budget} msg/s may leave"}
	// ThroughputUneven: the broker has the most throughput, too many times that of the one with the least.
	ThroughputUneven = plan.Code{ID: "THROUGHPUT_UNEVEN", Template: "{most} bytes/s, {ratio} times the least {least} of {low}; up to {budget} bytes/s may leave"}
	// CountLimit: maxUnloadBundleNumPerShedding bundles are selected.
	CountLimit = plan.Code{ID: "BUNDLE_COUNT_LIMIT", Template: "maxUnloadBundleNumPerShedding {limit} is reached"}
	// NotMost: the broker does not have the most traffic.
	NotMost = plan.Code{ID: "NOT_THE_MOST_LOADED", Template: "{value} is not the most; {most} has {mostValue}"}
	// NothingFits is the outcome when traffic is uneven but no bundle of the broker fits the budget.
	NothingFits = plan.Code{ID: "NO_BUNDLE_FITS", Template: "no bundle of {broker} fits into {budget}"}
)

// gap is the brokers with the most and the least of one measure.
type gap struct {
	most, least    float64
	high, low      int // -1: none
	ratio, percent float64
}

func (g *gap) see(broker int, v float64) {
	if v > g.most {
		g.most, g.high = v, broker
	}
	if v < g.least {
		g.least, g.low = v, broker
	}
}

// close computes the ratios. An idle broker counts as 1, so that nothing is divided by 0.
func (g *gap) close() {
	if math.Abs(g.least) <= 1e-6 {
		g.least = 1
	}
	g.percent = (g.most - g.least) * 100 / g.least
	g.ratio = g.most / g.least
}

// uniformRun is one run over the broker with the most of a measure.
type uniformRun struct {
	*shedding
	gap     *gap
	measure measure
	whole   int32 // budget as Pulsar keeps it
	budget  float64
}

// Shed implements plan.Shedder.
func (u UniformLoadShedder) Shed(snap *cluster.Snapshot, state plan.State, trace *plan.Trace) (plan.Plan, plan.State) {
	st := stateOf(state).next()
	s := newShedding("UniformLoadShedder", snap, st, u.Options, trace)
	rate, throughput := u.gaps(snap)
	c := snap.Settings
	rateLimit := c.LoadBalancerMsgRateDifferenceShedderThreshold
	throughputLimit := c.LoadBalancerMsgThroughputMultiplierDifferenceShedderThreshold
	r := uniformRun{shedding: s}
	switch {
	case rateLimit > 0 && rate.percent > rateLimit:
		r.gap, r.measure = &rate, byRate
	case throughputLimit > 0 && throughput.ratio > throughputLimit:
		r.gap, r.measure = &throughput, byThroughput
	}
	if r.gap == nil || r.gap.high < 0 {
		idle := Uniform.Because(plan.N("ratePercent", rate.percent), plan.N("rateLimit", max(rateLimit, 0)),
			plan.N("throughputRatio", throughput.ratio), plan.N("throughputLimit", max(throughputLimit, 0)))
		s.traceAll(func(int) plan.Reason { return idle })
		return s.done(idle), st
	}
	return s.done(r.run()), st
}

// gaps is the gap of both measures over the brokers with a report.
func (u UniformLoadShedder) gaps(snap *cluster.Snapshot) (rate, throughput gap) {
	rate = gap{most: -1, least: math.MaxInt32, high: -1, low: -1}
	if u.Options.ExactBudget {
		rate.least = math.Inf(1)
	}
	throughput = rate
	for i := range snap.Brokers {
		if d := snap.Brokers[i].Local; d != nil {
			rate.see(i, brokerRate(d))
			throughput.see(i, brokerThroughput(d))
		}
	}
	rate.close()
	throughput.close()
	return rate, throughput
}

// traceAll records the same kind of reason for every broker.
func (s *shedding) traceAll(why func(broker int) plan.Reason) {
	if s.trace == nil {
		return
	}
	for i := range s.snap.Brokers {
		if s.snap.Brokers[i].Local == nil {
			s.skipSilent(i)
		} else {
			s.skipBroker(i, func() plan.Reason { return why(i) })
		}
	}
}

// run selects bundles of the broker with the most; it returns the outcome for the case that nothing is selected.
func (r *uniformRun) run() plan.Reason {
	c := r.snap.Settings
	r.budget = (r.gap.most - r.gap.least) * c.MaxUnloadPercentage
	if !r.options.ExactBudget {
		r.whole = saturate(r.budget)
		r.budget = float64(r.whole)
	}
	r.traceOthers()
	minimum, tooSmall := c.MinUnloadMessage, RateDeltaTooSmall
	if r.measure == byThroughput {
		minimum, tooSmall = c.MinUnloadMessageThroughput, ThroughputDeltaTooSmall
	}
	b := &r.snap.Brokers[r.gap.high]
	if !several(b.Bundles) {
		r.skipSingle(r.gap.high)
		return SingleBundle.Because(plan.N("bundles", distinct(b.Bundles)))
	}
	if !(r.budget >= float64(minimum)) {
		why := tooSmall.Because(plan.N("delta", r.budget), plan.N("limit", minimum))
		r.trace.Skip("", b.ID, "", why)
		return why
	}
	budget := r.budget
	r.selectBundles()
	return NothingFits.Because(plan.S("broker", b.ID), plan.N("budget", budget))
}

func (r *uniformRun) selectBundles() {
	reason := r.why()
	limit := r.snap.Settings.MaxUnloadBundleNumPerShedding
	for _, w := range r.heaviestFirst(r.gap.high, r.measure) {
		switch {
		case limit != -1 && int64(len(r.plan.Decisions)) >= limit:
			r.leaveBundle(w.bundle, func() plan.Reason { return CountLimit.Because(plan.N("limit", limit)) })
		case w.value <= r.budget:
			r.take(r.gap.high, w.bundle, "", reason)
			r.spend(w.value)
		default:
			r.leaveBundle(w.bundle, func() plan.Reason {
				return OverBudget.Because(plan.N("value", w.value), plan.N("budget", r.budget))
			})
		}
	}
	if len(r.plan.Decisions) > 0 {
		r.brokers = 1
	}
}

// spend lowers the budget: in Pulsar by the whole part of the value, in 32 bits.
func (r *uniformRun) spend(value float64) {
	if r.options.ExactBudget {
		r.budget -= value
		return
	}
	r.whole += saturate(-value)
	r.budget = float64(r.whole)
}

func (r *uniformRun) why() plan.Reason {
	low := ""
	if r.gap.low >= 0 {
		low = r.snap.Brokers[r.gap.low].ID
	}
	most, least := plan.N("most", r.gap.most), plan.N("least", r.gap.least)
	if r.measure == byRate {
		return RateUneven.Because(most, plan.N("percent", r.gap.percent), least, plan.S("low", low), plan.N("budget", r.budget))
	}
	return ThroughputUneven.Because(most, plan.N("ratio", r.gap.ratio), least, plan.S("low", low), plan.N("budget", r.budget))
}

// leaveBundle records that a bundle of the broker with the most stays. why is called only if there is a trace.
func (r *uniformRun) leaveBundle(bundle int, why func() plan.Reason) {
	if r.trace != nil {
		r.trace.Skip(r.snap.Bundles[bundle].Name, r.snap.Brokers[r.gap.high].ID, "", why())
	}
}

// traceOthers records why the brokers that do not have the most are not shed.
func (r *uniformRun) traceOthers() {
	if r.trace == nil {
		return
	}
	most := plan.S("most", r.snap.Brokers[r.gap.high].ID)
	for i := range r.snap.Brokers {
		b := &r.snap.Brokers[i]
		switch {
		case b.Local == nil:
			r.skipSilent(i)
		case i != r.gap.high:
			v := brokerThroughput(b.Local)
			if r.measure == byRate {
				v = brokerRate(b.Local)
			}
			r.trace.Skip("", b.ID, "", NotMost.Because(plan.N("value", v), most, plan.N("mostValue", r.gap.most)))
		}
	}
}
