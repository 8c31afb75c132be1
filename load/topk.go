package load

import (
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/event"
)

// TopKRules say which bundles may appear in a broker's report of its heaviest bundles.
type TopKRules struct {
	K            int      // most bundles in the report; loadBalancerMaxNumberOfBundlesInBundleLoadReport
	Excluded     []string // namespaces never shed; loadBalancerSheddingExcludedNamespaces
	WithPolicies bool     // also bundles under a policy; loadBalancerSheddingBundlesWithPoliciesEnabled
	// HasPolicy says whether a namespace has an isolation policy or an anti-affinity group. Its error ends the report.
	// nil = no namespace has one.
	HasPolicy func(namespace string) (bool, error)
	// Skipped is told of every bundle that may not appear; nil = nobody asks.
	Skipped func(bundle string, why TopKSkip)
}

// TopKSkip is why a bundle may not appear in the report.
type TopKSkip string

// The reasons, in the order in which they are looked at.
const (
	TopKIdle     TopKSkip = "idle"     // no throughput
	TopKSystem   TopKSkip = "system"   // the system, a heartbeat or an SLA namespace
	TopKPolicy   TopKSkip = "policy"   // the namespace has a policy and such bundles are not to be moved
	TopKExcluded TopKSkip = "excluded" // the namespace is excluded from shedding
)

// TopK is the report of a broker's heaviest bundles, lightest first, made from the stats of all its bundles. Which of
// bundles of equal load are taken follows from the order of stats. Pulsar: TopKBundles.update.
func TopK(stats []event.NamedBundleStats, r TopKRules) ([]event.BundleLoad, error) {
	var heap []event.BundleLoad
	for i := range stats {
		s := &stats[i]
		why, err := r.skip(s)
		if err != nil {
			return nil, err
		}
		if why == "" {
			heap = append(heap, event.BundleLoad{BundleName: s.Bundle, Stats: s.Stats})
		} else if r.Skipped != nil {
			r.Skipped(s.Bundle, why)
		}
	}
	k := min(r.K, len(heap))
	if k <= 0 {
		return nil, nil
	}
	selectHeaviest(heap, k)
	top := heap[:k]
	slices.Reverse(top)
	return slices.Clip(top), nil
}

func (r *TopKRules) skip(s *event.NamedBundleStats) (TopKSkip, error) {
	if Throughput(&s.Stats) == 0 {
		return TopKIdle, nil
	}
	ns := namespaceOf(s.Bundle)
	if ns == "pulsar/system" || IsBrokerNamespace(ns) {
		return TopKSystem, nil
	}
	if !r.WithPolicies && r.HasPolicy != nil {
		has, err := r.HasPolicy(ns)
		if err != nil {
			return "", err
		}
		if has {
			return TopKPolicy, nil
		}
	}
	if slices.Contains(r.Excluded, ns) {
		return TopKExcluded, nil
	}
	return "", nil
}

// namespaceOf is the tenant/namespace part of a bundle name.
func namespaceOf(bundle string) string {
	if i := strings.LastIndexByte(bundle, '/'); i >= 0 {
		return bundle[:i]
	}
	return bundle
}

// IsBrokerNamespace says whether a namespace is a heartbeat namespace pulsar/host:port or an SLA namespace
// sla-monitor/host:port: it belongs to that broker and is never moved.
func IsBrokerNamespace(ns string) bool {
	broker, ok := strings.CutPrefix(ns, "pulsar/")
	if !ok {
		if broker, ok = strings.CutPrefix(ns, "sla-monitor/"); !ok {
			return false
		}
	}
	host, port, ok := strings.Cut(broker, ":")
	if !ok || host == "" || port == "" {
		return false
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return false
		}
	}
	return true
}

// selectHeaviest arranges a so that its first k slots hold the k heaviest bundles, heaviest first. It is the quickselect
// of Pulsar's TopKBundles step by step: which of tied bundles are taken depends on its moves.
func selectHeaviest(a []event.BundleLoad, k int) {
	start, end, target := 0, len(a)-1, k-1
	for start < end {
		low, high, mid := start, end, start
		pivot := a[end].Stats
		for mid <= high {
			switch c := pivot.Compare(a[mid].Stats); {
			case c < 0:
				a[low], a[mid] = a[mid], a[low]
				low++
				mid++
			case c > 0:
				a[mid], a[high] = a[high], a[mid]
				high--
			default:
				mid++
			}
		}
		if low <= target && target < mid {
			end = low
			break
		}
		if target < low {
			end = low - 1
		} else {
			start = mid
		}
	}
	slices.SortStableFunc(a[:max(end, 0)], func(x, y event.BundleLoad) int { return y.Stats.Compare(x.Stats) })
}
