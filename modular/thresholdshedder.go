package modular

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
)

// ThresholdShedder sheds from every broker whose average usage is loadBalancerBrokerThresholdShedderPercentage or more
// above the average of all. The averages keep loadBalancerHistoryResourcePercentage of what they were at each run. With
// lowerBoundarySheddingEnabled it sheds from the most used broker when none is that far above the average but some
// broker is that far below it. Pulsar: ThresholdShedder, its default until 5.0. Memory: State.Threshold.
type ThresholdShedder struct{ Options Options }

var (
	// WithinThreshold: the broker is not far enough above the average.
	WithinThreshold = plan.Code{ID: "WITHIN_THRESHOLD", Template: "average usage {usage} < {average} of all + {threshold}"}
	// OffloadTooSmall: what would leave is below loadBalancerBundleUnloadMinThroughputThreshold.
	OffloadTooSmall = plan.Code{ID: "OFFLOAD_TOO_SMALL", Template: "only {needed} bytes/s have to leave, less than the minimum {minimum}"}
	// CurrentlyWithin: the broker's average is above, its usage of now is not (Options.CurrentUsageMustExceed).
	CurrentlyWithin = plan.Code{ID: "CURRENTLY_WITHIN_THRESHOLD", Template: "usage of now {usage} < {average} of all now + {threshold}"}
	// AboveAverage: the broker is shed because it is above the average.
	AboveAverage = plan.Code{ID: "ABOVE_AVERAGE", Template: "average usage {usage} >= {average} of all + {threshold}, {needed} bytes/s have to leave"}
	// FillsLowBroker: the broker is shed because another is far below the average.
	FillsLowBroker = plan.Code{ID: "FILLS_LOW_BROKER", Template: "most used at {usage} while {low} is below {average} of all - {threshold}, {needed} bytes/s have to leave"}
	// AllWithin is the outcome when no broker is far from the average.
	AllWithin = plan.Code{ID: "ALL_WITHIN_THRESHOLD", Template: "no broker with bundles that may leave is {threshold} above the average {average}"}
	// NoLoad is the outcome when the average usage is zero.
	NoLoad = plan.Code{ID: "NO_LOAD", Template: "the average usage is 0"}
	// NoneLow is the outcome when lower-boundary shedding looked and no broker is far below the average.
	NoneLow = plan.Code{ID: "NONE_BELOW_LOWER_BOUNDARY", Template: "no broker is {threshold} above or below the average {average}"}
	// NoHighBroker is the outcome when a broker is low but none above it has bundles to give.
	NoHighBroker = plan.Code{ID: "NO_BROKER_TO_SHED", Template: "{low} is below {average} of all - {threshold}, but no other broker has more than one bundle"}
)

// thresholdRun is the numbers of one run.
type thresholdRun struct {
	*shedding
	usage     []float64 // of now
	averaged  []float64 // with history
	average   float64   // of averaged
	threshold float64
	minimum   float64 // bytes/s
}

// Shed implements plan.Shedder.
func (t ThresholdShedder) Shed(snap *cluster.Snapshot, state plan.State, trace *plan.Trace) (plan.Plan, plan.State) {
	st := stateOf(state).next()
	r := thresholdRun{
		shedding:  newShedding("ThresholdShedder", snap, st, t.Options, trace),
		usage:     weightedUsage(snap),
		averaged:  make([]float64, len(snap.Brokers)),
		threshold: float64(snap.Settings.LoadBalancerBrokerThresholdShedderPercentage) / 100,
		minimum:   snap.Settings.LoadBalancerBundleUnloadMinThroughputThreshold * 1048576,
	}
	if n := r.advance(); n == 0 {
		return r.done(NoBrokers.Because()), st
	}
	r.plan.LoadAvg = r.average
	if r.average == 0 {
		return r.done(NoLoad.Because()), st
	}
	r.shedHigh()
	idle := AllWithin.Because(plan.N("threshold", r.threshold), plan.N("average", r.average))
	if len(r.plan.Decisions) == 0 && snap.Settings.LowerBoundarySheddingEnabled {
		if !r.options.HistoryOncePerRun {
			r.advance()
			r.plan.LoadAvg = r.average
		}
		idle = r.shedForLow()
	}
	return r.done(idle), st
}

// advance takes the usage of now into the averages and returns the number of brokers with a report.
func (r *thresholdRun) advance() int {
	history := r.snap.Settings.LoadBalancerHistoryResourcePercentage
	n, total := 0, 0.0
	for i := range r.snap.Brokers {
		b := &r.snap.Brokers[i]
		if b.Local == nil {
			continue
		}
		a, found := r.st.Threshold.Add(i, b.ID)
		*a = Double(advanced(float64(*a), found, r.usage[i], history))
		r.averaged[i] = float64(*a)
		total += r.averaged[i]
		n++
	}
	r.average = 0
	if n > 0 {
		r.average = total / float64(n)
	}
	return n
}

// advanced is an average with one more sample, which is taken whole if it is the first.
func advanced(average float64, found bool, sample, history float64) float64 {
	if !found {
		return sample
	}
	return float64(average*history) + float64((1-history)*sample)
}

// shedHigh selects bundles of the brokers that are above the average.
func (r *thresholdRun) shedHigh() {
	now := 0.0
	if r.options.CurrentUsageMustExceed {
		now = r.averageNow()
	}
	for i := range r.snap.Brokers {
		b := &r.snap.Brokers[i]
		if b.Local == nil {
			r.skipSilent(i)
			continue
		}
		usage := r.averaged[i]
		if usage < r.average+r.threshold {
			r.skipBroker(i, func() plan.Reason { return WithinThreshold.Because(r.numbers(usage, r.average)...) })
			continue
		}
		if r.options.CurrentUsageMustExceed && r.usage[i] < now+r.threshold {
			r.skipBroker(i, func() plan.Reason { return CurrentlyWithin.Because(r.numbers(r.usage[i], now)...) })
			continue
		}
		need := brokerThroughput(b.Local) * (usage - r.average - r.threshold + margin)
		switch {
		case need < r.minimum:
			r.skipBroker(i, func() plan.Reason { return r.tooSmall(need) })
		case !several(b.Bundles):
			r.skipSingle(i)
		default:
			r.takeUntil(i, need, func() plan.Reason {
				return AboveAverage.Because(append(r.numbers(usage, r.average), plan.N("needed", need))...)
			})
		}
	}
}

// averageNow is the average of the usage of now.
func (r *thresholdRun) averageNow() float64 {
	n, total := 0, 0.0
	for i := range r.snap.Brokers {
		if r.snap.Brokers[i].Local != nil {
			total += r.usage[i]
			n++
		}
	}
	return total / float64(n)
}

func (r *thresholdRun) tooSmall(need float64) plan.Reason {
	return OffloadTooSmall.Because(plan.N("needed", need), plan.N("minimum", r.minimum))
}

// numbers is what a broker is compared with.
func (r *thresholdRun) numbers(usage, average float64) []plan.Number {
	return []plan.Number{plan.N("usage", usage), plan.N("average", average), plan.N("threshold", r.threshold)}
}

// shedForLow selects bundles of the most used broker if some broker is below the lower boundary. It returns the outcome
// for the case that nothing was selected.
func (r *thresholdRun) shedForLow() plan.Reason {
	most, high, low := r.average-r.threshold, -1, -1
	for i := range r.snap.Brokers {
		b := &r.snap.Brokers[i]
		if b.Local == nil {
			continue
		}
		if r.averaged[i] > most && several(b.Bundles) {
			most, high = r.averaged[i], i
		}
		if low < 0 && r.averaged[i] < r.average-r.threshold {
			low = i
		}
	}
	if low < 0 {
		return NoneLow.Because(plan.N("threshold", r.threshold), plan.N("average", r.average))
	}
	lowID := plan.S("low", r.snap.Brokers[low].ID)
	if high < 0 {
		return NoHighBroker.Because(lowID, plan.N("threshold", r.threshold), plan.N("average", r.average))
	}
	if now := r.averageNow(); r.options.CurrentUsageMustExceed && !r.lowNow(now) {
		r.skipBroker(high, func() plan.Reason { return CurrentlyWithin.Because(r.numbers(r.usage[high], now)...) })
		return NoneLow.Because(plan.N("threshold", r.threshold), plan.N("average", now))
	}
	need := brokerThroughput(r.snap.Brokers[high].Local) * r.threshold * 0.5
	if r.minimum > need {
		why := r.tooSmall(need)
		r.trace.Skip("", r.snap.Brokers[high].ID, "", why)
		return why
	}
	r.takeUntil(high, need, func() plan.Reason {
		return FillsLowBroker.Because(append(r.numbers(most, r.average), lowID, plan.N("needed", need))...)
	})
	return r.nothingEligible(high)
}

// lowNow says whether some broker's usage of now is below the lower boundary.
func (r *thresholdRun) lowNow(average float64) bool {
	for i := range r.snap.Brokers {
		if r.snap.Brokers[i].Local != nil && r.usage[i] < average-r.threshold {
			return true
		}
	}
	return false
}
