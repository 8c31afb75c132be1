package advise

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// HotTopic: the bundle's only topic exceeds what a bundle may have.
var HotTopic = plan.Code{ID: "HOT_TOPIC", Template: "its only topic has {value} {what}, a bundle may have {limit} ({key}): no split can divide it, partitions can"}

// HotTopics are the bundles whose only topic exceeds a limit above which bundles are split.
func HotTopics(snap *cluster.Snapshot) []plan.LeftOut {
	c := snap.Settings
	var out []plan.LeftOut
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if !b.Known || b.Stats.Topics != 1 {
			continue
		}
		sessions := float64(b.Stats.ConsumerCount) + float64(b.Stats.ProducerCount)
		for _, x := range []struct {
			value, limit float64
			off          bool
			what, key    string
		}{
			{load.MsgRate(&b.Stats), float64(c.LoadBalancerNamespaceBundleMaxMsgRate), false, "msg/s", "loadBalancerNamespaceBundleMaxMsgRate"},
			{load.Throughput(&b.Stats), float64(c.LoadBalancerNamespaceBundleMaxBandwidthMbytes) * (1 << 20), false, "bytes/s", "loadBalancerNamespaceBundleMaxBandwidthMbytes"},
			{sessions, float64(c.LoadBalancerNamespaceBundleMaxSessions), c.LoadBalancerNamespaceBundleMaxSessions <= 0, "sessions", "loadBalancerNamespaceBundleMaxSessions"},
		} {
			if !x.off && x.value > x.limit {
				out = append(out, plan.LeftOut{Bundle: b.Name, Broker: b.Owner, Why: HotTopic.Because(plan.N("value", x.value),
					plan.S("what", x.what), plan.N("limit", x.limit), plan.S("key", x.key))})
				break
			}
		}
	}
	return out
}
