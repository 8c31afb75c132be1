package guard

import (
	"fmt"
	"testing"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// BenchmarkCheck checks a plan of a ninth of all bundles with every rule on, an isolation policy, an anti-affinity group, a new
// broker in ten, and a memory of as many moves.
func BenchmarkCheck(b *testing.B) {
	for _, size := range []struct{ brokers, bundles int }{{10, 1000}, {100, 10_000}, {1000, 100_000}} {
		b.Run(fmt.Sprintf("brokers=%d/bundles=%d", size.brokers, size.bundles), func(b *testing.B) {
			snap := &cluster.Snapshot{Now: now, Settings: settings.Defaults()}
			var brokers []policy.Broker
			for i := range size.brokers {
				id := fmt.Sprintf("b%d:8080", i)
				brokers = append(brokers, policy.Broker{ID: id, PersistentTopics: true, NonPersistentTopics: true})
				x := cluster.Broker{ID: id, PersistentTopics: true, StartedAt: now - 86_400_000, LoadHeard: now,
					Load: &event.BrokerLoadData{WeightedMaxEMA: float64(i) / float64(size.brokers), MsgThroughputIn: float64(i) * 1e6}}
				if i%10 == 0 {
					x.StartedAt = now - 60_000
				}
				snap.Brokers = append(snap.Brokers, x)
			}
			lim := Limits{BundlesPerCycle: size.bundles, BundlesPerSource: size.bundles, BundlesPerTarget: size.bundles, TopicsPerCycle: 1 << 40,
				ThroughputPerCycle: 1e15, BundleCoolDown: 1, BrokerCoolDown: 1, FailureCoolDown: 1, LoadDataTTL: 60_000, SilentFraction: 0.25, GainBy: Usage,
				NewBrokerTime: 600_000, NewBrokerShare: 0.1, OscillationWindow: 3_600_000, OscillationTurns: 4, MovesAtOnce: 4, SlowMove: 20_000}
			st := NewState()
			var decisions []plan.Decision
			for i := range size.bundles {
				ns := fmt.Sprintf("t/n%d", i%100)
				x := cluster.Bundle{Name: fmt.Sprintf("%s/0x%08x_0x%08x", ns, i, i+1), Namespace: ns, State: event.Owned, Known: true, Owner: snap.Brokers[i%size.brokers].ID}
				x.Stats.MsgThroughputIn, x.Stats.Topics = 1e4, 10
				snap.Bundles = append(snap.Bundles, x)
				if i%9 == 0 {
					d := plan.Decision{Action: plan.Transfer, Bundle: x.Name, Source: x.Owner, Destination: snap.Brokers[(i*7+3)%size.brokers].ID, Throughput: 1e4, Topics: 10}
					decisions = append(decisions, d)
				}
			}
			snap.Policies = policy.New([]policy.Isolation{{Name: "p", Namespaces: []string{"t/n1"}, Primary: []string{"b1.*"}, AutoFailover: policy.AutoFailover{MinLimit: 1}}},
				map[string]string{"t/n0": "g", "t/n10": "g"}, nil, nil)
			snap.Index()
			for i := range min(len(decisions), 1000) {
				d := decisions[i]
				st = Learn(st, Outcome{Decision: d, Moved: true, Millis: 100, At: now - 1_800_000}, lim)
			}
			view := snap.Policies.Over(brokers)
			b.ReportAllocs()
			for b.Loop() {
				v := Check(snap, decisions, view, st, lim)
				if len(v.Run)+len(v.Refused) != len(decisions) || len(v.Run) == 0 {
					b.Fatalf("%d run, %d are refused", len(v.Run), len(v.Refused))
				}
			}
		})
	}
}
