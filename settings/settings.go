// Package settings holds every setting under its broker.conf key, with type, default, unit and meaning.
package settings

// Settings are the load-balancing keys of Pulsar's broker.conf (ServiceConfiguration), with the defaults of Pulsar 4.2.4.
// The field of a key is the key with a capital first letter. The default, unit and meaning stand in the field's tags, from
// which documents, checks and parsing are made.
type Settings struct {
	// General.

	LoadManagerClassName                        string   `key:"loadManagerClassName" default:"org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl" unit:"" doc:"class of the load manager"`
	LoadBalancerEnabled                         bool     `key:"loadBalancerEnabled" default:"true" unit:"" doc:"whether load is balanced at all; placement works anyway"`
	LoadBalancerDebugModeEnabled                bool     `key:"loadBalancerDebugModeEnabled" default:"false" unit:"" doc:"verbose decision logs; in TransferShedder it also counts the throughput gained by swaps"`
	LoadBalancerReportUpdateThresholdPercentage int64    `key:"loadBalancerReportUpdateThresholdPercentage" default:"10" unit:"percent" doc:"smallest change that makes a load report worth publishing"`
	LoadBalancerReportUpdateMinIntervalMillis   int64    `key:"loadBalancerReportUpdateMinIntervalMillis" default:"5000" unit:"ms" doc:"period of the report tasks"`
	LoadBalancerReportUpdateMaxIntervalMinutes  int64    `key:"loadBalancerReportUpdateMaxIntervalMinutes" default:"15" unit:"minutes" doc:"a report older than this is always published again"`
	LoadBalancerHostUsageCheckIntervalMinutes   int64    `key:"loadBalancerHostUsageCheckIntervalMinutes" default:"1" unit:"minutes" doc:"how often host usage is measured"`
	LoadBalancerOverrideBrokerNicSpeedGbps      float64  `key:"loadBalancerOverrideBrokerNicSpeedGbps" default:"0" unit:"Gbit/s" doc:"NIC speed instead of the detected one; 0 = detect"`
	LoadBalancerOverrideBrokerNics              []string `key:"loadBalancerOverrideBrokerNics" default:"" unit:"" doc:"NIC names instead of detection"`
	LoadBalancerBrokerMaxTopics                 int64    `key:"loadBalancerBrokerMaxTopics" default:"50000" unit:"topics" doc:"topic limit of a placement candidate"`
	PreferLaterVersions                         bool     `key:"preferLaterVersions" default:"false" unit:"" doc:"place only on brokers of the newest version"`
	EnablePersistentTopics                      bool     `key:"enablePersistentTopics" default:"true" unit:"" doc:"brokers serve persistent topics"`
	EnableNonPersistentTopics                   bool     `key:"enableNonPersistentTopics" default:"true" unit:"" doc:"brokers serve non-persistent topics"`
	FailureDomainsEnabled                       bool     `key:"failureDomainsEnabled" default:"false" unit:"" doc:"spread anti-affinity groups over failure domains"`
	MetadataStoreOperationTimeoutSeconds        int64    `key:"metadataStoreOperationTimeoutSeconds" default:"30" unit:"seconds" doc:"limit of reads and writes of the metadata store"`
	StatsUpdateFrequencyInSecs                  int64    `key:"statsUpdateFrequencyInSecs" default:"60" unit:"seconds" doc:"period of the brokers' statistics; no rate is fresher than this"`
	ExposeBundlesMetricsInPrometheus            bool     `key:"exposeBundlesMetricsInPrometheus" default:"false" unit:"" doc:"metrics per bundle"`

	// Placement.

	LoadBalancerPlacementStrategy                                 string  `key:"loadBalancerPlacementStrategy" default:"leastLoadedServer" unit:"" doc:"Simple: leastLoadedServer, leastMsgPerSecond or weightedRandomSelection"`
	LoadBalancerLoadPlacementStrategy                             string  `key:"loadBalancerLoadPlacementStrategy" default:"org.apache.pulsar.broker.loadbalance.impl.LeastLongTermMessageRate" unit:"" doc:"Modular: placement strategy"`
	LoadBalancerDistributeBundlesEvenlyEnabled                    bool    `key:"loadBalancerDistributeBundlesEvenlyEnabled" default:"true" unit:"" doc:"Modular: drop candidates that serve more bundles of the namespace than the least"`
	LoadBalancerAverageResourceUsageDifferenceThresholdPercentage int64   `key:"loadBalancerAverageResourceUsageDifferenceThresholdPercentage" default:"10" unit:"percent points" doc:"LeastResourceUsageWithWeight: how far below average a best candidate must be"`
	LoadBalancerBrokerOverloadedThresholdPercentage               int64   `key:"loadBalancerBrokerOverloadedThresholdPercentage" default:"85" unit:"percent" doc:"above this a broker is overloaded"`
	LoadBalancerBrokerUnderloadedThresholdPercentage              int64   `key:"loadBalancerBrokerUnderloadedThresholdPercentage" default:"50" unit:"percent" doc:"Simple: below this a broker is filled before idle ones are used"`
	LoadBalancerBrokerComfortLoadLevelPercentage                  int64   `key:"loadBalancerBrokerComfortLoadLevelPercentage" default:"65" unit:"percent" doc:"Simple: a shed bundle needs a broker below this"`
	LoadBalancerHistoryResourcePercentage                         float64 `key:"loadBalancerHistoryResourcePercentage" default:"0.9" unit:"fraction" doc:"weight of history in resource averages"`
	LoadBalancerCPUResourceWeight                                 float64 `key:"loadBalancerCPUResourceWeight" default:"1.0" unit:"" doc:"weight of CPU usage"`
	LoadBalancerMemoryResourceWeight                              float64 `key:"loadBalancerMemoryResourceWeight" default:"0" unit:"" doc:"weight of heap usage (Extensible only)"`
	LoadBalancerDirectMemoryResourceWeight                        float64 `key:"loadBalancerDirectMemoryResourceWeight" default:"0" unit:"" doc:"weight of direct memory usage"`
	LoadBalancerBandwidthInResourceWeight                         float64 `key:"loadBalancerBandwidthInResourceWeight" default:"1.0" unit:"" doc:"weight of inbound bandwidth usage"`
	LoadBalancerBandwidthOutResourceWeight                        float64 `key:"loadBalancerBandwidthOutResourceWeight" default:"1.0" unit:"" doc:"weight of outbound bandwidth usage"`
	LoadBalancerBandwithInResourceWeight                          float64 `key:"loadBalancerBandwithInResourceWeight" default:"1.0" unit:"" doc:"Pulsar's misspelt alias, used when the well-spelt key is 1.0"`
	LoadBalancerBandwithOutResourceWeight                         float64 `key:"loadBalancerBandwithOutResourceWeight" default:"1.0" unit:"" doc:"Pulsar's misspelt alias, used when the well-spelt key is 1.0"`

	// Shedding.

	LoadBalancerSheddingEnabled                                   bool     `key:"loadBalancerSheddingEnabled" default:"true" unit:"" doc:"whether bundles are shed"`
	LoadBalancerLoadSheddingStrategy                              string   `key:"loadBalancerLoadSheddingStrategy" default:"org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder" unit:"" doc:"shedding strategy; the Extensible manager uses TransferShedder when the class does not fit"`
	LoadBalancerSheddingIntervalMinutes                           int64    `key:"loadBalancerSheddingIntervalMinutes" default:"1" unit:"minutes" doc:"pause between shedding cycles"`
	LoadBalancerSheddingGracePeriodMinutes                        int64    `key:"loadBalancerSheddingGracePeriodMinutes" default:"30" unit:"minutes" doc:"a bundle is not shed again within this time"`
	LoadBalancerSheddingExcludedNamespaces                        []string `key:"loadBalancerSheddingExcludedNamespaces" default:"" unit:"" doc:"namespaces tenant/ns that are never shed"`
	LoadBalancerSheddingBundlesWithPoliciesEnabled                bool     `key:"loadBalancerSheddingBundlesWithPoliciesEnabled" default:"false" unit:"" doc:"Extensible: also move bundles of isolated and anti-affinity namespaces"`
	LoadBalancerBrokerThresholdShedderPercentage                  int64    `key:"loadBalancerBrokerThresholdShedderPercentage" default:"10" unit:"percent points" doc:"ThresholdShedder: excess over the average that makes a broker overloaded"`
	LoadBalancerBundleUnloadMinThroughputThreshold                float64  `key:"loadBalancerBundleUnloadMinThroughputThreshold" default:"10" unit:"MiB/s" doc:"ThresholdShedder: smaller offloads are skipped"`
	LowerBoundarySheddingEnabled                                  bool     `key:"lowerBoundarySheddingEnabled" default:"false" unit:"" doc:"ThresholdShedder: shed from the top when some broker is far below the average"`
	LoadBalancerMsgRateDifferenceShedderThreshold                 float64  `key:"loadBalancerMsgRateDifferenceShedderThreshold" default:"50" unit:"percent" doc:"UniformLoadShedder: message rate gap from least to most; 0 or less = off"`
	LoadBalancerMsgThroughputMultiplierDifferenceShedderThreshold float64  `key:"loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold" default:"4" unit:"times" doc:"UniformLoadShedder: throughput ratio of most to least; 0 or less = off"`
	MaxUnloadBundleNumPerShedding                                 int64    `key:"maxUnloadBundleNumPerShedding" default:"-1" unit:"bundles" doc:"UniformLoadShedder: most bundles per run; -1 = no limit"`
	MaxUnloadPercentage                                           float64  `key:"maxUnloadPercentage" default:"0.2" unit:"fraction" doc:"UniformLoadShedder, AvgShedder: fraction of the gap to move"`
	MinUnloadMessage                                              int64    `key:"minUnloadMessage" default:"1000" unit:"msg/s" doc:"UniformLoadShedder, AvgShedder: smallest rate worth moving"`
	MinUnloadMessageThroughput                                    int64    `key:"minUnloadMessageThroughput" default:"1048576" unit:"bytes/s" doc:"UniformLoadShedder, AvgShedder: smallest throughput worth moving"`
	LoadBalancerAvgShedderLowThreshold                            int64    `key:"loadBalancerAvgShedderLowThreshold" default:"15" unit:"points of 100" doc:"AvgShedder: low score gap"`
	LoadBalancerAvgShedderHighThreshold                           int64    `key:"loadBalancerAvgShedderHighThreshold" default:"40" unit:"points of 100" doc:"AvgShedder: high score gap"`
	LoadBalancerAvgShedderHitCountLowThreshold                    int64    `key:"loadBalancerAvgShedderHitCountLowThreshold" default:"8" unit:"hits" doc:"AvgShedder: hits needed at the low gap"`
	LoadBalancerAvgShedderHitCountHighThreshold                   int64    `key:"loadBalancerAvgShedderHitCountHighThreshold" default:"2" unit:"hits" doc:"AvgShedder: hits needed at the high gap"`
	LoadBalancerBrokerLoadTargetStd                               float64  `key:"loadBalancerBrokerLoadTargetStd" default:"0.25" unit:"fraction" doc:"TransferShedder: wanted standard deviation of loads"`
	LoadBalancerSheddingConditionHitCountThreshold                int64    `key:"loadBalancerSheddingConditionHitCountThreshold" default:"3" unit:"hits" doc:"TransferShedder: act when consecutive hits exceed this"`
	LoadBalancerTransferEnabled                                   bool     `key:"loadBalancerTransferEnabled" default:"true" unit:"" doc:"TransferShedder: choose the destination, and swap, while shedding"`
	LoadBalancerMaxNumberOfBrokerSheddingPerCycle                 int64    `key:"loadBalancerMaxNumberOfBrokerSheddingPerCycle" default:"3" unit:"pairs" doc:"TransferShedder: broker pairs per cycle"`
	LoadBalanceSheddingDelayInSeconds                             int64    `key:"loadBalanceSheddingDelayInSeconds" default:"180" unit:"seconds" doc:"TransferShedder: cool-down after a broker was unloaded"`
	LoadBalancerBrokerLoadDataTTLInSeconds                        int64    `key:"loadBalancerBrokerLoadDataTTLInSeconds" default:"1800" unit:"seconds" doc:"TransferShedder: older load data is ignored"`
	LoadBalancerMaxNumberOfBundlesInBundleLoadReport              int64    `key:"loadBalancerMaxNumberOfBundlesInBundleLoadReport" default:"10" unit:"bundles" doc:"bundles per broker in the top-bundles report"`
	LoadBalancerMultiPhaseBundleUnload                            bool     `key:"loadBalancerMultiPhaseBundleUnload" default:"true" unit:"" doc:"Extensible: half-close first, disconnect with the target's address later"`
	NamespaceBundleUnloadingTimeoutMs                             int64    `key:"namespaceBundleUnloadingTimeoutMs" default:"60000" unit:"ms" doc:"limit of one bundle unload"`

	// Splitting.

	LoadBalancerAutoBundleSplitEnabled                         bool     `key:"loadBalancerAutoBundleSplitEnabled" default:"true" unit:"" doc:"automatic splits"`
	LoadBalancerAutoUnloadSplitBundlesEnabled                  bool     `key:"loadBalancerAutoUnloadSplitBundlesEnabled" default:"true" unit:"" doc:"Simple, Modular: unload the children of a split"`
	LoadBalancerNamespaceBundleMaxTopics                       int64    `key:"loadBalancerNamespaceBundleMaxTopics" default:"1000" unit:"topics" doc:"split a bundle with more topics"`
	LoadBalancerNamespaceBundleMaxSessions                     int64    `key:"loadBalancerNamespaceBundleMaxSessions" default:"1000" unit:"sessions" doc:"split a bundle with more producers and consumers; 0 or less = off"`
	LoadBalancerNamespaceBundleMaxMsgRate                      int64    `key:"loadBalancerNamespaceBundleMaxMsgRate" default:"30000" unit:"msg/s" doc:"split a bundle with a higher rate in + out"`
	LoadBalancerNamespaceBundleMaxBandwidthMbytes              int64    `key:"loadBalancerNamespaceBundleMaxBandwidthMbytes" default:"100" unit:"MiB/s" doc:"split a bundle with a higher throughput in + out"`
	LoadBalancerNamespaceMaximumBundles                        int64    `key:"loadBalancerNamespaceMaximumBundles" default:"128" unit:"bundles" doc:"no split at or above this many bundles of a namespace"`
	LoadBalancerSplitIntervalMinutes                           int64    `key:"loadBalancerSplitIntervalMinutes" default:"1" unit:"minutes" doc:"period of the split scheduler"`
	LoadBalancerMaxNumberOfBundlesToSplitPerCycle              int64    `key:"loadBalancerMaxNumberOfBundlesToSplitPerCycle" default:"10" unit:"bundles" doc:"most splits per cycle"`
	LoadBalancerNamespaceBundleSplitConditionHitCountThreshold int64    `key:"loadBalancerNamespaceBundleSplitConditionHitCountThreshold" default:"3" unit:"hits" doc:"split when consecutive hits exceed this"`
	SupportedNamespaceBundleSplitAlgorithms                    []string `key:"supportedNamespaceBundleSplitAlgorithms" default:"range_equally_divide,topic_count_equally_divide,specified_positions_divide,flow_or_qps_equally_divide" unit:"" doc:"split algorithms that may be named"`
	DefaultNamespaceBundleSplitAlgorithm                       string   `key:"defaultNamespaceBundleSplitAlgorithm" default:"range_equally_divide" unit:"" doc:"algorithm of automatic splits"`
	FlowOrQpsDifferenceThresholdPercentage                     int64    `key:"flowOrQpsDifferenceThresholdPercentage" default:"10" unit:"percent" doc:"slack of flow_or_qps_equally_divide"`
	DefaultNumberOfNamespaceBundles                            int64    `key:"defaultNumberOfNamespaceBundles" default:"4" unit:"bundles" doc:"bundles of a new namespace"`
	TopicBundleAssignmentStrategy                              string   `key:"topicBundleAssignmentStrategy" default:"org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner" unit:"" doc:"class that assigns topics to bundles"`

	// Quotas and history.

	LoadBalancerResourceQuotaUpdateIntervalMinutes int64 `key:"loadBalancerResourceQuotaUpdateIntervalMinutes" default:"15" unit:"minutes" doc:"period of writing quotas and bundle data"`

	// Ownership channel.

	LoadManagerServiceUnitStateTableViewClassName           string `key:"loadManagerServiceUnitStateTableViewClassName" default:"org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateTableViewImpl" unit:"" doc:"where ownership is stored: the system topic or the metadata store"`
	LoadBalancerServiceUnitTableViewSyncer                  string `key:"loadBalancerServiceUnitTableViewSyncer" default:"None" unit:"" doc:"None, MetadataStoreToSystemTopicSyncer or SystemTopicToMetadataStoreSyncer"`
	LoadBalancerInFlightServiceUnitStateWaitingTimeInMillis int64  `key:"loadBalancerInFlightServiceUnitStateWaitingTimeInMillis" default:"30000" unit:"ms" doc:"age after which an in-flight state is overridden"`
	LoadBalancerServiceUnitStateMonitorIntervalInSeconds    int64  `key:"loadBalancerServiceUnitStateMonitorIntervalInSeconds" default:"60" unit:"seconds" doc:"period of the ownership monitor"`
	LoadBalancerServiceUnitStateTombstoneDelayTimeInSeconds int64  `key:"loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds" default:"3600" unit:"seconds" doc:"age after which unowned records are removed"`
	LoadBalancerServiceUnitStateMaxConcurrentOverrides      int64  `key:"loadBalancerServiceUnitStateMaxConcurrentOverrides" default:"64" unit:"records" doc:"overrides in flight during a clean-up"`
}
