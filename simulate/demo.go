package simulate

import (
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/settings"
)

// DemoBrokers and DemoBundles are the size of the demonstration.
const (
	DemoBrokers = 6
	DemoBundles = 120
)

// DemoRush is when the traffic of the demonstration changes.
const DemoRush = 15 * time.Minute

// DemoCluster is the cluster of the demonstration: six brokers alike, 120 bundles of three namespaces under a skewed and
// slightly noisy load, most of it on the first brokers, as after a rolling restart. DemoRush after the start some middling bundles of
// one namespace have three times their traffic. The settings suit TransferShedder: they let it act in its first cycle, and
// brokers report every minute.
func DemoCluster(seed uint64) Config {
	set := settings.Defaults()
	set.LoadBalancerReportUpdateMaxIntervalMinutes = 1
	set.LoadBalancerHistoryResourcePercentage = 0
	set.LoadBalancerBrokerLoadTargetStd = 0.05
	set.LoadBalancerSheddingConditionHitCountThreshold = 0
	set.LoadBalanceSheddingDelayInSeconds = 60
	set.LoadBalancerAutoBundleSplitEnabled = false

	rnd := NewRand(seed, 0)
	shares := ZipfShares(DemoBundles, 0.8)
	rnd.Shuffle(len(shares), func(i, j int) { shares[i], shares[j] = shares[j], shares[i] })
	// The first brokers were up first and took most bundles.
	owners := []float64{0.32, 0.26, 0.18, 0.12, 0.08, 0.04}
	total := Messages(42_000, 2_000)

	spaces := []string{"shop/orders", "shop/clicks", "iot/sensors"}
	namespaces := make([]Namespace, len(spaces))
	for i := range shares {
		ns := &namespaces[i%len(spaces)]
		ns.Name = spaces[i%len(spaces)]
		at, owner := rnd.Float64(), 0
		for owner < DemoBrokers-1 && at > owners[owner] {
			at -= owners[owner]
			owner++
		}
		var shape Shape = Noise{Seed: seed + uint64(i), Amplitude: 0.05, Every: 20 * time.Second}
		if ns.Name == "shop/clicks" && shares[i] > 0.005 && shares[i] < 0.02 && owner < 2 {
			shape = Product{shape, Step{At: DemoRush, Before: 1, After: 3}}
		}
		ns.Bundles = append(ns.Bundles, Bundle{
			Traffic: total.Times(shares[i]), NumTopics: 1 + rnd.IntN(8), Consumers: 1 + rnd.IntN(3), Owner: demoBroker(owner),
			Shape: shape,
		})
	}
	brokers := make([]Broker, DemoBrokers)
	for i := range brokers {
		brokers[i] = Broker{ID: demoBroker(i), Cores: 4, HeapMiB: 2048, DirectMiB: 4096, NICKbit: 1e6}
	}
	return Config{Name: "demo", Seed: seed, Settings: set, Brokers: brokers, Namespaces: namespaces}
}

func demoBroker(i int) string { return fmt.Sprintf("pulsar-broker-%d:8080", i) }
