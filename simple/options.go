package simple

// Options are repairs of known faults of Pulsar's Simple load manager. With none set every decision is Pulsar's.
type Options struct {
	// CheckPreallocated forgets a pre-allocation on a broker that is not registered any more. Fault: Pulsar returns a broker
	// that the bundle was promised to without looking whether it is alive.
	CheckPreallocated bool
	// CheckTopicKinds asks of a broker that an isolation policy names that it serves the bundle's kind of topics. Fault:
	// Pulsar asks it only of brokers for namespaces without a policy.
	CheckTopicKinds bool
	// CountSplits counts the splits already chosen in a round against loadBalancerNamespaceMaximumBundles. Fault: Pulsar
	// compares each hot bundle with the number from before the round, so many splits of one namespace pass the limit together.
	CountSplits bool
	// CurrentRanges counts the bundles of a namespace on each broker from the reports of now. Fault: Pulsar counts from the
	// rankings before, one update late.
	CurrentRanges bool
	// NeedReceiver plans to shed only what another registered broker below the comfort level may take, as far as policies and
	// the bundle itself go, and looks at the lighter bundles of a broker when the heaviest has no receiver. Fault: Pulsar
	// looks at the heaviest bundle alone and takes the overloaded broker's own candidacy, or that of a broker that is gone, for a
	// receiver.
	NeedReceiver bool
	// SameBandwidth compares a bundle's inbound bandwidth with the stored inbound bandwidth when it decides what quotas to
	// write. Fault: Pulsar compares it with the stored outbound bandwidth.
	SameBandwidth bool
	// SkipUnknownLimits leaves resources without a known limit out of a broker's capacity. Fault: one unknown limit (-1, as
	// bandwidth has outside Linux) makes the capacity 0, so weightedRandomSelection never chooses the broker.
	SkipUnknownLimits bool
	// WideWeights adds up ranks with 64 bits in weightedRandomSelection and draws among all candidates when the sum is not
	// positive. Fault: Pulsar's 32-bit sum wraps, and then the pick often finds no broker at all.
	WideWeights bool
}
