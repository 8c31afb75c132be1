package extensible

// Options are repairs of known faults of Pulsar's Extensible load manager. With none set every decision is Pulsar's.
type Options struct {
	// CountSwapGain counts the throughput that a swap brings back to the hot broker in the rest of its pair. Fault: Pulsar
	// counts it only while it logs for debugging, so its decisions differ by log level.
	CountSwapGain bool
	// RankFreshLiveOnly lets TransferShedder rank only registered brokers whose load data is not outdated. Fault: Pulsar
	// ranks all entries, so a dead broker of low load stays the destination that nothing can be moved to.
	RankFreshLiveOnly bool
	// CheckSwapCandidates asks of a bundle that is swapped back what is asked of any other: that its broker owns it, that its
	// namespace is not excluded, that it was not unloaded recently. Fault: Pulsar asks nothing, so a bundle can bounce back.
	CheckSwapCandidates bool
	// TargetWithoutLoad gives a pair whose hot broker has load 0 half of the difference of their throughputs as target.
	// Fault: Pulsar's target is 0/0, which nothing exceeds, so all but one of the top bundles move to the idle broker.
	TargetWithoutLoad bool
	// SkipInFlight leaves out bundles that are being assigned, released or split. Fault: Pulsar plans to unload them, too,
	// which the ownership topic then refuses.
	SkipInFlight bool
	// IsolationFirst filters by isolation policy before anti-affinity when a bundle is assigned. Fault: anti-affinity may keep
	// only brokers that isolation then removes: no broker although one exists.
	IsolationFirst bool
	// CheckTopicKinds asks of a broker that an isolation policy names that it serves the bundle's kind of topics. Fault:
	// Pulsar asks it only of brokers for namespaces without a policy.
	CheckTopicKinds bool
	// AntiAffinityByNamespace counts the namespaces of an anti-affinity group on a broker. Fault: Pulsar counts their bundles,
	// so that a namespace with many bundles dominates the group.
	AntiAffinityByNamespace bool
	// AvoidOverloaded lets LeastResourceUsageWithWeight, when no candidate is well below the average, draw among those at or
	// below it. Fault: Pulsar draws among all candidates, the most loaded ones included.
	AvoidOverloaded bool
	// CountPending lets LeastResourceUsageWithWeight add to a broker's usage what was placed on it since its load data was
	// heard, at the average usage of a bundle. Fault: Pulsar keeps no count, so a burst of assignments between two reports
	// lands on the same few brokers.
	CountPending bool
	// ExactSplitNamespace compares namespaces as a whole when it looks for a bundle that is being split already. Fault: Pulsar
	// compares the beginning of the name, so that bundles of t/ns2 keep those of t/ns from being split.
	ExactSplitNamespace bool
	// ResetSplitHits forgets the hits of a bundle that has fewer than two topics or changed its owner. Fault: Pulsar keeps
	// them, so that one more hit may split it much later.
	ResetSplitHits bool
	// WideBandwidthLimit computes the bandwidth limit of a bundle with 64 bits. Fault: in Pulsar it wraps for limits above
	// 2047 MiB/s.
	WideBandwidthLimit bool
}
