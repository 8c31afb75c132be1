package extensible

import (
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Why a cycle of TransferShedder acted or did not act.
var (
	// Planned: bundles are moved.
	Planned = plan.Code{ID: "PLANNED", Template: "{decisions} decisions over {pairs} pairs of brokers: average load {avg}, std {std}, {stdAfter} after them, target {targetStd}"}
	// RegistryUnreadable: it could not be read which brokers are registered.
	RegistryUnreadable = plan.Code{ID: "REGISTRY_UNREADABLE", Template: "the registered brokers could not be read: {error}"}
	// CoolingDown: a broker's load data does not yet show the effect of its last unload.
	CoolingDown = plan.Code{ID: "COOL_DOWN", Template: "{broker} was unloaded {elapsed} ms before its load data, less than {limit} ms (loadBalanceSheddingDelayInSeconds)"}
	// LoadDataOutdated: all load data is too old.
	LoadDataOutdated = plan.Code{ID: "LOAD_DATA_OUTDATED", Template: "the load data of all {brokers} brokers is older than {limit} ms (loadBalancerBrokerLoadDataTTLInSeconds)"}
	// NoLoadHeard: there is no load data at all.
	NoLoadHeard = plan.Code{ID: "NO_BROKERS", Template: "no broker's load data was heard"}
	// LoadDataMissing: registered brokers have not published load data.
	LoadDataMissing = plan.Code{ID: "LOAD_DATA_MISSING", Template: "{missing} of {brokers} registered brokers have no load data, {broker} is the first"}
	// Balanced: no condition for shedding holds.
	Balanced = plan.Code{ID: "BALANCED", Template: "std {std} <= target {targetStd}; least load {least} >= {underLimit} and its throughput {leastThroughput} >= {throughputLimit}; most load {most} <= {overLimit} or within {targetStd} of the average {avg}"}
	// NotYet: the condition holds, but not for long enough.
	NotYet = plan.Code{ID: "HIT_COUNT", Template: "{condition}: hit {hits}, acts above {limit} (loadBalancerSheddingConditionHitCountThreshold); average load {avg}, std {std}, target {targetStd}, least {least}, most {most}"}
	// NoTopBundles: brokers that should give bundles have not said which they have.
	NoTopBundles = plan.Code{ID: "NO_TOP_BUNDLES", Template: "{condition}, but {brokers} brokers to unload have no top bundles"}
	// NothingMovable: brokers that should give bundles have none that may move.
	NothingMovable = plan.Code{ID: "NO_BUNDLES", Template: "{condition}, but of {brokers} brokers to unload none has a bundle that may move"}
	// NoPairs: no pair of brokers was looked at.
	NoPairs = plan.Code{ID: "NO_PAIRS", Template: "{condition}, but no pair of brokers was looked at: {brokers} brokers, at most {limit} pairs (loadBalancerMaxNumberOfBrokerSheddingPerCycle)"}
)

// Which condition for shedding holds, in a cycle and in a decision.
var (
	// StdAboveTarget: the loads differ too much.
	StdAboveTarget = plan.Code{ID: "STD_ABOVE_TARGET", Template: "std {std} > target {targetStd}: load {sourceLoad} to {destinationLoad}, {moved} + {throughput} of {target} bytes/s, std {stdAfter} after this pair"}
	// BrokerUnderloaded: the least loaded broker has next to nothing.
	BrokerUnderloaded = plan.Code{ID: "BROKER_UNDERLOADED", Template: "{destination} is underloaded (load {destinationLoad}, limit {underLimit}; throughput {leastThroughput}, limit {throughputLimit}): load {sourceLoad} to {destinationLoad}, {moved} + {throughput} of {target} bytes/s, std {stdAfter} after this pair"}
	// BrokerOverloaded: the most loaded broker has too much.
	BrokerOverloaded = plan.Code{ID: "BROKER_OVERLOADED", Template: "{source} is overloaded (load {sourceLoad} > {overLimit} and > average {avg} + {targetStd}): load {sourceLoad} to {destinationLoad}, {moved} + {throughput} of {target} bytes/s, std {stdAfter} after this pair"}
	// SwappedBack: the bundle makes room for a heavier one.
	SwappedBack = plan.Code{ID: "SWAPPED_BACK", Template: "makes room on {source} for a bundle that exceeds the target {target} bytes/s: {throughput} bytes/s back, std {stdAfter} after this pair"}
)

// Why a broker was left out or a pair of brokers ended without moves.
var (
	// Outdated: its load data is too old to count.
	Outdated = plan.Code{ID: "BROKER_LOAD_DATA_OUTDATED", Template: "load data is {age} ms old, more than {limit} ms"}
	// NoLoad: it is registered and has no load data.
	NoLoad = plan.Code{ID: "BROKER_WITHOUT_LOAD_DATA", Template: "registered, but its load data was not heard"}
	// NotRegistered: it has load data and is not registered; Pulsar ranks it all the same.
	NotRegistered = plan.Code{ID: "BROKER_NOT_REGISTERED", Template: "load data of a broker that is not registered"}
	// WithoutTopBundles: it has not said which bundles it has, or it has none with traffic.
	WithoutTopBundles = plan.Code{ID: "BROKER_WITHOUT_TOP_BUNDLES", Template: "no top bundles ({heard})"}
	// SoleBundle: it has one bundle with traffic, which stays.
	SoleBundle = plan.Code{ID: "SOLE_BUNDLE", Template: "{bundle} is its only top bundle and stays"}
	// PairWithoutMoves: nothing of it may move to the other broker.
	PairWithoutMoves = plan.Code{ID: "PAIR_WITHOUT_MOVES", Template: "none of its {bundles} top bundles may move: load {sourceLoad} to {destinationLoad}, target {target} bytes/s"}
)

// Why a bundle was left out.
var (
	// NotOwned: the ownership topic does not say that the broker owns it.
	NotOwned = plan.Code{ID: "NOT_OWNED", Template: "owner is {owner}"}
	// InFlight: its ownership is changing.
	InFlight = plan.Code{ID: "IN_FLIGHT", Template: "it is {state}"}
	// Excluded: its namespace is never shed.
	Excluded = plan.Code(policy.ExcludedFromMove)
	// RecentlyUnloaded: it was unloaded within the grace period.
	RecentlyUnloaded = plan.Code{ID: "RECENTLY_UNLOADED", Template: "unloaded {age} ms ago, within {limit} ms (loadBalancerSheddingGracePeriodMinutes)"}
	// HasPolicy: its namespace has a policy and such bundles stay.
	HasPolicy = plan.Code{ID: "HAS_POLICY", Template: "{namespace} has {policy} and loadBalancerSheddingBundlesWithPoliciesEnabled is false"}
	// NotTransferable: the destination may not take it.
	NotTransferable = plan.Code{ID: "NOT_TRANSFERABLE", Template: "{destination} may not take it, {others} other brokers may: {filter}: {why}"}
	// NoOtherBroker: no broker but its owner may take it.
	NoOtherBroker = plan.Code{ID: "NO_OTHER_BROKER", Template: "no other broker than {source} may take it: {filter}: {why}"}
	// LastBundle: one of the top bundles has to stay.
	LastBundle = plan.Code{ID: "LAST_TOP_BUNDLE", Template: "one of {bundles} top bundles stays"}
	// Idle: it has no traffic.
	Idle = plan.Code{ID: "NO_THROUGHPUT", Template: "it has no throughput"}
	// ExceedsTarget: it would move more than is wanted and nothing can be swapped for it.
	ExceedsTarget = plan.Code{ID: "EXCEEDS_TARGET", Template: "{moved} - {gained} + {throughput} > target {target} bytes/s; {swap}"}
	// SwapExceeds: it would not make room as a swap.
	SwapExceeds = plan.Code{ID: "SWAP_EXCEEDS", Template: "{throughput} bytes/s back would leave {sourceAfter} on the source and {destinationAfter} on the destination, not both below {limit}"}
)
