package modular

// Options are repairs of known faults of Pulsar's Modular load manager. With none set every decision is Pulsar's.
type Options struct {
	// KeepPreallocations keeps a pre-allocation until the broker it was made on reports the bundle, another broker owns it,
	// the broker is gone, or loadBalancerReportUpdateMaxIntervalMinutes passed. Fault: Pulsar forgets at every update all
	// that the leader itself does not own, so a burst of assignments lands on the same few brokers.
	KeepPreallocations bool
	// SecondChoiceKeepsFilters makes the second choice, after an overloaded first one, among the filtered candidates that are
	// not overloaded; if there is none the first choice stands. Fault: Pulsar draws again from all that the namespace's
	// policies allow, without the topic limit, anti-affinity, even distribution, class and version filters.
	SecondChoiceKeepsFilters bool
	// HistoryPerReport lets LeastResourceUsageWithWeight advance a broker's average once per load report. Fault: Pulsar
	// advances it at every placement, so a burst of assignments wipes the history.
	HistoryPerReport bool
	// HistoryOncePerRun lets ThresholdShedder advance its averages once per run. Fault: with lowerBoundarySheddingEnabled
	// Pulsar advances them a second time in the same run.
	HistoryOncePerRun bool
	// CurrentUsageMustExceed lets ThresholdShedder shed from a broker only while its usage of now, too, is above the average
	// of now by the threshold. Fault: the average lags by its history weight (0.9), so after one good round Pulsar goes on
	// shedding until the broker is empty.
	CurrentUsageMustExceed bool
	// PlanByBundleName keys AvgShedder's plan by bundle name, as Pulsar 5 does. Fault: Pulsar 4 keys it by the value of the
	// bundle's averages, so the plan is lost with the next sample and bundles of equal averages share one destination.
	PlanByBundleName bool
	// SpareSingleBundles lets AvgShedder leave a broker's only bundle where it is. Fault: Pulsar logs that it will not be shed
	// and sheds it.
	SpareSingleBundles bool
	// ExactBudget keeps UniformLoadShedder's budget as a fraction and without 32-bit limits, and its minima without the limit
	// of 2147483647. Fault: Pulsar subtracts whole messages, so bundles below 1 msg/s cost nothing, and the budget and the
	// minima end at 2147483647.
	ExactBudget bool
	// OneSamplePerReport adds a sample to the averages of a broker's bundles only when the broker sent a new report. Fault:
	// Pulsar adds one sample of every bundle whenever any broker reports, so the averaging window shrinks with the number of
	// brokers.
	OneSamplePerReport bool
	// WideBandwidthLimit computes the bandwidth limit of a bundle with 64 bits. Fault: in Pulsar it wraps for limits above
	// 2047 MiB/s.
	WideBandwidthLimit bool
	// CheckTopicKinds asks of a broker that an isolation policy names that it serves the bundle's kind of topics. Fault:
	// Pulsar asks it only of brokers for namespaces without a policy.
	CheckTopicKinds bool
	// CheckAffinity ignores the destination of a transfer when the bundle comes up for assignment and that broker is gone.
	// Fault: Pulsar assigns to it unchecked.
	CheckAffinity bool
	// AvoidOverloaded lets LeastResourceUsageWithWeight, when no candidate is well below the average, draw among the least
	// used of them. Fault: Pulsar draws among all candidates, the most loaded ones included.
	AvoidOverloaded bool
	// CountPlanned counts the bundles that a shedding cycle already sends to a broker as pre-allocated on it. Fault: Pulsar
	// chooses each destination from the same numbers, so a cycle can send everything to one broker.
	CountPlanned bool
	// NeedReceiver drops a proposal when every broker that could take the bundle is above the overload threshold. Fault: in a
	// saturated cluster Pulsar moves bundles among overloaded brokers for ever.
	NeedReceiver bool
	// SelectMovable lets the shedders select only bundles that may leave: not of excluded namespaces, allowed on another broker,
	// not held by anti-affinity. Fault: in Pulsar these are selected, counted as load that leaves, and then left where they are,
	// so a broker whose heaviest bundles may not leave is never relieved.
	SelectMovable bool
}
