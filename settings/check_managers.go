package settings

import "slices"

// avgShedder is the last part of the name of the class that sheds and places in one.
const avgShedder = "AvgShedder"

// simple checks what the Simple load manager reads.
func (c *checker) simple() {
	over, under, comfort := c.LoadBalancerBrokerOverloadedThresholdPercentage, c.LoadBalancerBrokerUnderloadedThresholdPercentage,
		c.LoadBalancerBrokerComfortLoadLevelPercentage
	c.report(under >= over, Error, "UNDERLOADED_ABOVE_OVERLOADED",
		[]string{"loadBalancerBrokerUnderloadedThresholdPercentage", "loadBalancerBrokerOverloadedThresholdPercentage"},
		"loadBalancerBrokerUnderloadedThresholdPercentage=%d must be below loadBalancerBrokerOverloadedThresholdPercentage=%d: a broker would be both",
		under, over)
	c.report(comfort > over, Error, "COMFORT_ABOVE_OVERLOADED",
		[]string{"loadBalancerBrokerComfortLoadLevelPercentage", "loadBalancerBrokerOverloadedThresholdPercentage"},
		"loadBalancerBrokerComfortLoadLevelPercentage=%d must not be above loadBalancerBrokerOverloadedThresholdPercentage=%d: bundles would be shed to overloaded brokers",
		comfort, over)
}

// modular checks what the Modular load manager and its strategies read.
func (c *checker) modular() {
	c.avgPair()
	shedder := short(c.LoadBalancerLoadSheddingStrategy)
	if shedder == avgShedder {
		c.avg()
	}
	if shedder == "UniformLoadShedder" {
		c.report(c.LoadBalancerMsgRateDifferenceShedderThreshold <= 0 && c.LoadBalancerMsgThroughputMultiplierDifferenceShedderThreshold <= 0,
			Error, "UNIFORM_OFF", []string{"loadBalancerMsgRateDifferenceShedderThreshold", "loadBalancerMsgThroughputMultiplierDifferenceShedderThreshold"},
			"both thresholds of UniformLoadShedder are 0 or less (%v, %v): it never sheds; set one", c.LoadBalancerMsgRateDifferenceShedderThreshold,
			c.LoadBalancerMsgThroughputMultiplierDifferenceShedderThreshold)
	}
	c.report((shedder == "UniformLoadShedder" || shedder == avgShedder) && c.MaxUnloadPercentage == 0, Error, "NOTHING_TO_UNLOAD",
		[]string{"maxUnloadPercentage", "loadBalancerLoadSheddingStrategy"}, "maxUnloadPercentage=0: %s never moves anything; Pulsar's default is 0.2, from 5.0.1 on 0.5", shedder)
	c.report(c.LowerBoundarySheddingEnabled && shedder != "ThresholdShedder", Warning, "LOWER_BOUNDARY_IGNORED",
		[]string{"lowerBoundarySheddingEnabled", "loadBalancerLoadSheddingStrategy"},
		"lowerBoundarySheddingEnabled=true has no effect with %s: only ThresholdShedder reads it", shedder)
}

// avgPair checks the two keys that AvgShedder wants to be named in. Pulsar 4 refuses to start when it only places.
func (c *checker) avgPair() {
	keys := []string{"loadBalancerLoadPlacementStrategy", "loadBalancerLoadSheddingStrategy"}
	places, sheds := short(c.LoadBalancerLoadPlacementStrategy) == avgShedder, short(c.LoadBalancerLoadSheddingStrategy) == avgShedder
	switch {
	case places && !sheds && !c.five:
		c.report(true, Error, "AVG_SHEDDER_ONLY_PLACES", keys,
			"loadBalancerLoadPlacementStrategy=%s with loadBalancerLoadSheddingStrategy=%s: brokers before Pulsar 5 do not start; name AvgShedder in both or in none",
			c.LoadBalancerLoadPlacementStrategy, c.LoadBalancerLoadSheddingStrategy)
	case places && !sheds:
		c.report(true, Warning, "AVG_SHEDDER_ONLY_PLACES", keys,
			"loadBalancerLoadPlacementStrategy=%s with loadBalancerLoadSheddingStrategy=%s: brokers place with LeastLongTermMessageRate instead; name AvgShedder in both or in none",
			c.LoadBalancerLoadPlacementStrategy, c.LoadBalancerLoadSheddingStrategy)
	case sheds && !places:
		c.report(true, Warning, "AVG_SHEDDER_ONLY_SHEDS", keys,
			"loadBalancerLoadSheddingStrategy=%s with loadBalancerLoadPlacementStrategy=%s: the brokers that AvgShedder plans for its bundles are not kept to; name AvgShedder in both",
			c.LoadBalancerLoadSheddingStrategy, c.LoadBalancerLoadPlacementStrategy)
	}
}

func (c *checker) avg() {
	low, high := c.LoadBalancerAvgShedderLowThreshold, c.LoadBalancerAvgShedderHighThreshold
	c.report(low > high, Error, "AVG_SHEDDER_THRESHOLDS", []string{"loadBalancerAvgShedderLowThreshold", "loadBalancerAvgShedderHighThreshold"},
		"loadBalancerAvgShedderLowThreshold=%d must not be above loadBalancerAvgShedderHighThreshold=%d", low, high)
	lowHits, highHits := c.LoadBalancerAvgShedderHitCountLowThreshold, c.LoadBalancerAvgShedderHitCountHighThreshold
	c.report(lowHits < highHits, Warning, "AVG_SHEDDER_HIT_COUNTS",
		[]string{"loadBalancerAvgShedderHitCountLowThreshold", "loadBalancerAvgShedderHitCountHighThreshold"},
		"loadBalancerAvgShedderHitCountLowThreshold=%d is below loadBalancerAvgShedderHitCountHighThreshold=%d: a large gap would have to last longer than a small one",
		lowHits, highHits)
}

// extensible checks what the Extensible load manager and TransferShedder read.
func (c *checker) extensible() {
	tombstone, inFlight := c.LoadBalancerServiceUnitStateTombstoneDelayTimeInSeconds, c.LoadBalancerInFlightServiceUnitStateWaitingTimeInMillis
	c.report(float64(tombstone)*1000 < float64(inFlight), Error, "TOMBSTONE_BEFORE_IN_FLIGHT",
		[]string{"loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds", "loadBalancerInFlightServiceUnitStateWaitingTimeInMillis"},
		"loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds=%d is shorter than loadBalancerInFlightServiceUnitStateWaitingTimeInMillis=%d: records would be removed while a change is under way; brokers do not start",
		tombstone, inFlight)
	ttl, report := c.LoadBalancerBrokerLoadDataTTLInSeconds, c.LoadBalancerReportUpdateMaxIntervalMinutes
	c.report(float64(ttl) < float64(report)*60, Error, "LOAD_DATA_EXPIRES_BETWEEN_REPORTS",
		[]string{"loadBalancerBrokerLoadDataTTLInSeconds", "loadBalancerReportUpdateMaxIntervalMinutes"},
		"loadBalancerBrokerLoadDataTTLInSeconds=%d is shorter than loadBalancerReportUpdateMaxIntervalMinutes=%d: brokers of steady load are ignored between their reports; make the first at least %d",
		ttl, report, saturatingMinutes(report))
	c.report(c.LoadBalancerBrokerLoadTargetStd >= 0.5, Warning, "TARGET_STD_UNREACHED", []string{"loadBalancerBrokerLoadTargetStd"},
		"loadBalancerBrokerLoadTargetStd=%v: loads between 0 and 1 never deviate by more than 0.5, so TransferShedder acts on idle brokers only", c.LoadBalancerBrokerLoadTargetStd)
	hits, cycle, grace := c.LoadBalancerSheddingConditionHitCountThreshold, c.LoadBalancerSheddingIntervalMinutes, c.LoadBalancerSheddingGracePeriodMinutes
	c.report(grace > 0 && float64(hits+1)*float64(cycle) > float64(grace), Warning, "HITS_OUTLAST_GRACE_PERIOD",
		[]string{"loadBalancerSheddingConditionHitCountThreshold", "loadBalancerSheddingIntervalMinutes", "loadBalancerSheddingGracePeriodMinutes"},
		"an imbalance must last %d cycles of %d minutes before TransferShedder acts, longer than loadBalancerSheddingGracePeriodMinutes=%d protects a moved bundle: lower loadBalancerSheddingConditionHitCountThreshold=%d",
		hits+1, cycle, grace, hits)
	delay, stats := c.LoadBalanceSheddingDelayInSeconds, c.StatsUpdateFrequencyInSecs
	c.report(delay < stats, Warning, "COOL_DOWN_BELOW_STATS", []string{"loadBalanceSheddingDelayInSeconds", "statsUpdateFrequencyInSecs"},
		"loadBalanceSheddingDelayInSeconds=%d is shorter than statsUpdateFrequencyInSecs=%d: a broker may be shed again on rates from before the last move", delay, stats)
	c.report(c.LoadBalancerMaxNumberOfBundlesInBundleLoadReport <= 0, Warning, "NO_TOP_BUNDLES", []string{"loadBalancerMaxNumberOfBundlesInBundleLoadReport"},
		"loadBalancerMaxNumberOfBundlesInBundleLoadReport=%d: brokers report no bundles, so TransferShedder has nothing to move", c.LoadBalancerMaxNumberOfBundlesInBundleLoadReport)
	c.report(c.LoadBalancerMaxNumberOfBrokerSheddingPerCycle <= 0, Warning, "NO_PAIRS", []string{"loadBalancerMaxNumberOfBrokerSheddingPerCycle"},
		"loadBalancerMaxNumberOfBrokerSheddingPerCycle=%d: TransferShedder looks at no pair of brokers", c.LoadBalancerMaxNumberOfBrokerSheddingPerCycle)
	c.fallback()
}

// fallback reports a shedding strategy of the Modular manager: the Extensible one silently takes TransferShedder then.
func (c *checker) fallback() {
	modular := []string{"ThresholdShedder", "OverloadShedder", "UniformLoadShedder", avgShedder}
	shedder := short(c.LoadBalancerLoadSheddingStrategy)
	c.report(slices.Contains(modular, shedder), Warning, "SHEDDER_OF_OTHER_MANAGER",
		[]string{"loadBalancerLoadSheddingStrategy", "loadManagerClassName"},
		"loadBalancerLoadSheddingStrategy=%s belongs to the Modular load manager: Extensible brokers silently take TransferShedder instead; set loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder",
		c.LoadBalancerLoadSheddingStrategy)
}

// saturatingMinutes is minutes in seconds without overflow.
func saturatingMinutes(minutes int64) int64 {
	const most = 1 << 40
	return 60 * max(0, min(minutes, most))
}
