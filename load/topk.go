package load

import (
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
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
	TopKSystem   TopKSkip = "system"   // the system namespace, or the heartbeat or SLA namespace of a broker
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
	SelectGreatest(heap, k, compareLoad)
	top := heap[:k]
	slices.Reverse(top)
	return slices.Clip(top), nil
}

func compareLoad(x, y *event.BundleLoad) int { return x.Stats.Compare(y.Stats) }

func (r *TopKRules) skip(s *event.NamedBundleStats) (TopKSkip, error) {
	if Throughput(&s.Stats) == 0 {
		return TopKIdle, nil
	}
	ns := policy.NamespaceOf(s.Bundle)
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

// IsBrokerNamespace says whether a namespace is a heartbeat namespace pulsar/host:port or an SLA namespace
// sla-monitor/host:port, by the patterns of Pulsar 4.2.4's load managers: it belongs to that broker and is never moved.
func IsBrokerNamespace(ns string) bool {
	broker, ok := strings.CutPrefix(ns, "pulsar/")
	if !ok {
		if broker, ok = strings.CutPrefix(ns, "sla-monitor/"); !ok {
			return false
		}
	}
	host, port, ok := strings.Cut(broker, ":")
	return ok && host != "" && port != "" && strings.Trim(port, "0123456789") == ""
}
