package advise

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// ClusterSaturated: even a perfect balance would leave no broker below the overload threshold.
var ClusterSaturated = plan.Code{ID: "CLUSTER_SATURATED", Template: "the average load {average} of {brokers} brokers reaches the overload threshold {threshold}, the least is {least}: moving cannot help, brokers can"}

// Saturated says that the cluster as a whole is overloaded. It says nothing while some broker's load is unknown, since that one
// may have room.
func Saturated(snap *cluster.Snapshot) []plan.LeftOut {
	w := load.WeightsOf(snap.Settings)
	sum, least := 0.0, 0.0
	for i := range snap.Brokers {
		r, ok := reportOf(&snap.Brokers[i], w)
		if !ok || !r.hasUsage {
			return nil
		}
		if sum += r.usage; i == 0 || r.usage < least {
			least = r.usage
		}
	}
	n := len(snap.Brokers)
	threshold := float64(snap.Settings.LoadBalancerBrokerOverloadedThresholdPercentage) / 100
	if n == 0 || sum/float64(n) < threshold {
		return nil
	}
	return []plan.LeftOut{{Why: ClusterSaturated.Because(plan.N("average", sum/float64(n)), plan.N("brokers", n),
		plan.N("threshold", threshold), plan.N("least", least))}}
}
