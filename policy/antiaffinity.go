package policy

// AntiAffinity keeps of the candidates (indexes of brokers) those that have the fewest of a namespace's anti-affinity
// group; with domains first those in the failure domains that have the fewest. counts is how many of the group each
// broker has, by index; brokers beyond its end have none. The Modular manager counts namespaces, the Extensible one
// owned bundles. left, if not nil, is told of every candidate that is dropped and why.
// Pulsar: LoadManagerShared.filterAntiAffinityGroupOwnedBrokers.
func (v *View) AntiAffinity(candidates, counts []int, domains bool, left func(broker int, why Reason)) []int {
	count := func(broker int) int {
		if broker < len(counts) {
			return counts[broker]
		}
		return 0
	}
	if domains {
		candidates = v.leastDomains(candidates, count, left)
	}
	least := leastOf(candidates, count)
	var out []int
	for _, b := range candidates {
		if count(b) <= least {
			out = append(out, b)
		} else if left != nil {
			left(b, BrokerHasMore.Because(S("broker", v.brokers[b].ID), N("count", count(b)), N("least", least)))
		}
	}
	return out
}

func (v *View) leastDomains(candidates []int, count func(int) int, left func(int, Reason)) []int {
	sums := map[string]int{}
	for _, b := range candidates {
		sums[v.set.Domain(v.brokers[b].ID)] += count(b)
	}
	sum := func(b int) int { return sums[v.set.Domain(v.brokers[b].ID)] }
	least := leastOf(candidates, sum)
	var out []int
	for _, b := range candidates {
		if sum(b) <= least {
			out = append(out, b)
		} else if left != nil {
			id := v.brokers[b].ID
			left(b, DomainHasMore.Because(S("broker", id), S("domain", v.set.Domain(id)), N("count", sum(b)), N("least", least)))
		}
	}
	return out
}

func leastOf(candidates []int, count func(int) int) int {
	least := 0
	for i, b := range candidates {
		if c := count(b); i == 0 || c < least {
			least = c
		}
	}
	return least
}
