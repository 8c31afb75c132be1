package modular

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
)

// BundleDataToStore is the places in snap.Bundles of the histories that the leader stores: of the bundles that are not
// excluded from shedding the heaviest, loadBalancerMaxNumberOfBundlesInBundleLoadReport for each broker with a load report,
// heaviest first, or all in order if that number is 0 or less. Pulsar: ModularLoadManagerImpl.writeBundleDataOnZooKeeper.
func BundleDataToStore(snap *cluster.Snapshot) []int {
	excluded := snap.Settings.LoadBalancerSheddingExcludedNamespaces
	var out []int
	for i := range snap.Bundles {
		if b := &snap.Bundles[i]; b.Data != nil && !slices.Contains(excluded, b.Namespace) {
			out = append(out, i)
		}
	}
	n := snap.Settings.LoadBalancerMaxNumberOfBundlesInBundleLoadReport
	if n <= 0 {
		return out
	}
	brokers := 0
	for i := range snap.Brokers {
		if snap.Brokers[i].Local != nil {
			brokers++
		}
	}
	k := int(min(n, int64(len(out)))) * max(1, brokers) // min first: it cannot overflow then
	k = min(k, len(out))
	load.SelectGreatest(out, k, func(x, y *int) int { return snap.Bundles[*x].Data.Compare(*snap.Bundles[*y].Data) })
	return out[:k]
}
