package simulate

import (
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/settings"
)

// HotBundles, HotTopics and HotLimit describe the hot start: so many bundles and topics, and the largest part of the
// traffic that one bundle may have.
const (
	HotBundles = 32
	HotTopics  = 64
	HotLimit   = 0.12
)

// TopicShare is one topic and its part of all traffic.
type TopicShare struct {
	Topic string
	Share float64
}

// HotLayout is a random layout of the hot start's traffic: topics of a namespace, weighted by Zipf's law and shuffled until
// no bundle (by the topics' hashes) has more than HotLimit. The same seed gives the same layout, on a real cluster too.
func HotLayout(namespace string, seed uint64) []TopicShare {
	rnd := NewRand(seed, 0)
	shares := ZipfShares(HotTopics, 0.6)
	out := make([]TopicShare, HotTopics)
	for {
		rnd.Shuffle(len(shares), func(i, j int) { shares[i], shares[j] = shares[j], shares[i] })
		sums := make([]float64, HotBundles)
		most := 0.0
		for i := range out {
			out[i] = TopicShare{fmt.Sprintf("persistent://%s/t-%02d", namespace, i), shares[i]}
			b := uint64(event.TopicHash(out[i].Topic)) * HotBundles >> 32
			sums[b] += shares[i]
			most = max(most, sums[b])
		}
		if most <= HotLimit {
			return out
		}
	}
}

// HotTuned changes settings, after those of HotStart, so that TransferShedder evens the hot start out within four acting
// cycles.
//
// TransferShedder moves at most half of the difference of a pair, and three brokers make one pair per cycle. A bundle that
// has moved rests for the grace period, so what the second broker got too much of in the first cycle stays there: with the
// default of 10 top bundles, or more, the first cycle gives it up to half of everything, and max/mean stays at 1.3 to 1.5
// for ever. The number of top bundles limits a cycle, for all of them but the heaviest move. With 6 of them a cycle moves
// about a quarter and three cycles are enough; 5 take four cycles; 8 take two or three but stop just above 1.25 where the
// hot broker reads 0.7, since a target of 0.05 is wide there.
//
// The top bundles are the heaviest only where bundles differ by 100 kB/s or 100 msg/s, the steps of Pulsar's order, so the
// total should be several MB/s. A swap may bring a bundle back that has just moved (Pulsar does not check it): a few runs
// in a hundred, and none under Ballast's guard with a cool-down for bundles.
func HotTuned(s *settings.Settings) {
	s.LoadBalancerBrokerLoadTargetStd = 0.05
	s.LoadBalancerSheddingConditionHitCountThreshold = 0
	s.LoadBalanceSheddingDelayInSeconds = 120
	s.LoadBalancerMaxNumberOfBundlesInBundleLoadReport = 6
}

// HotShipped are Pulsar's own settings where HotTuned has others, with history and report interval as shipped.
func HotShipped(s *settings.Settings) {
	s.LoadBalancerHistoryResourcePercentage = 0.9
	s.LoadBalancerReportUpdateMaxIntervalMinutes = 15
}

// HotStart is three brokers and 32 bundles of 64 topics, all on one broker, with a NIC so slow that it reads hot (a
// fraction, such as 0.85). total is the traffic of all topics together. CPU and memory have no weight, there is no history
// and reports come every minute; tune, such as HotTuned, changes the settings further unless it is nil.
func HotStart(seed uint64, total Traffic, hot float64, tune func(*settings.Settings)) Scenario {
	const namespace = "public/hot"
	cost := DefaultCost
	set := settings.Defaults()
	set.LoadBalancerCPUResourceWeight = 0
	set.LoadBalancerMemoryResourceWeight = 0
	set.LoadBalancerDirectMemoryResourceWeight = 0
	set.LoadBalancerHistoryResourcePercentage = 0
	set.LoadBalancerReportUpdateMaxIntervalMinutes = 1
	set.LoadBalancerAutoBundleSplitEnabled = false
	set.LoadBalancerOverrideBrokerNicSpeedGbps = (total.BytesOut + float64(cost.Replicas*total.BytesIn)) * 8 / 1e9 / hot
	if tune != nil {
		tune(set)
	}
	bundles := make([]Bundle, HotBundles)
	for i := range bundles {
		bundles[i] = Bundle{Owner: brokerID(1), Topics: []Topic{}}
	}
	for _, t := range HotLayout(namespace, seed) {
		hash := event.TopicHash(t.Topic)
		b := &bundles[uint64(hash)*HotBundles>>32]
		b.Topics = append(b.Topics, Topic{Name: t.Topic, Hash: hash, Share: t.Share})
		b.Traffic = b.Traffic.Plus(total.Times(t.Share))
	}
	return Scenario{
		Name:  fmt.Sprintf("hot-start-%d", seed),
		Shows: "a cluster whose bundles are all on one broker becomes even",
		Config: Config{Name: "hot", Seed: seed, Settings: set, Cost: cost, Brokers: brokersOf(3, Broker{Cores: 2, HeapMiB: 400, DirectMiB: 256}),
			Namespaces: []Namespace{{Name: namespace, Bundles: bundles}}},
		Settle:   3 * time.Minute,
		Duration: 20 * time.Minute,
	}
}

// brokerID is the id of the n-th broker of a made-up cluster.
func brokerID(n int) string { return fmt.Sprintf("broker-%d:8080", n) }

// brokersOf are n brokers alike.
func brokersOf(n int, like Broker) []Broker {
	out := make([]Broker, n)
	for i := range out {
		out[i] = like
		out[i].ID = brokerID(i + 1)
	}
	return out
}
