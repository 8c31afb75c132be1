package modular

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
)

// OverloadShedder sheds from every broker whose weighted maximum usage reaches
// loadBalancerBrokerOverloadedThresholdPercentage, enough to get 5 points below it if load follows throughput.
// Pulsar: OverloadShedder. It has no memory.
type OverloadShedder struct{ Options Options }

var (
	// BelowOverload: the broker is not overloaded.
	BelowOverload = plan.Code{ID: "BELOW_OVERLOAD_THRESHOLD", Template: "usage {usage} < overload threshold {threshold}"}
	// Overloaded: the broker is at or above the overload threshold.
	Overloaded = plan.Code{ID: "OVERLOADED", Template: "usage {usage} >= overload threshold {threshold}, {needed} bytes/s have to leave"}
	// NoneOverloaded is the outcome when no broker is overloaded.
	NoneOverloaded = plan.Code{ID: "NONE_OVERLOADED", Template: "no broker has a usage of {threshold} or more and bundles that may leave"}
)

// Shed implements plan.Shedder.
func (o OverloadShedder) Shed(snap *cluster.Snapshot, state plan.State, trace *plan.Trace) (plan.Plan, plan.State) {
	st := stateOf(state).next()
	s := newShedding("OverloadShedder", snap, st, o.Options, trace)
	threshold := float64(snap.Settings.LoadBalancerBrokerOverloadedThresholdPercentage) / 100
	usage := weightedUsage(snap)
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		switch {
		case b.Local == nil:
			s.skipSilent(i)
			continue
		case usage[i] < threshold:
			s.skipBroker(i, func() plan.Reason {
				return BelowOverload.Because(plan.N("usage", usage[i]), plan.N("threshold", threshold))
			})
			continue
		case !several(b.Bundles):
			s.skipSingle(i)
			continue
		}
		need := brokerThroughput(b.Local) * (usage[i] - threshold + margin)
		s.takeUntil(i, need, func() plan.Reason {
			return Overloaded.Because(plan.N("usage", usage[i]), plan.N("threshold", threshold), plan.N("needed", need))
		})
	}
	return s.done(NoneOverloaded.Because(plan.N("threshold", threshold))), st
}
