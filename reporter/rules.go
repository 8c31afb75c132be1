package reporter

import (
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/settings"
)

// Rules say when a report counts and when what follows from it is published. Times are in ms.
type Rules struct {
	Weights          load.Weights
	History          float64 // loadBalancerHistoryResourcePercentage
	ThresholdPercent int64   // loadBalancerReportUpdateThresholdPercentage
	MaxMinutes       int64   // loadBalancerReportUpdateMaxIntervalMinutes
	MinInterval      int64   // loadBalancerReportUpdateMinIntervalMillis
	StatsInterval    int64   // statsUpdateFrequencyInSecs: brokers publish top bundles after each pass
	Grace            int64   // a broker is stale when its last good report is older
	Unwritten        bool    // loadBalancerEnabled=false: brokers store no reports, so lastUpdate need not advance
	Top              load.TopKRules
}

// graceSlack is what is added to the interval until a report counts as missing.
const graceSlack = 5 * time.Second

// RulesOf are the rules that follow from the cluster's settings when reports are read every interval.
func RulesOf(s *settings.Settings, interval time.Duration) Rules {
	return Rules{
		Weights: load.WeightsOf(s), History: s.LoadBalancerHistoryResourcePercentage,
		ThresholdPercent: s.LoadBalancerReportUpdateThresholdPercentage, MaxMinutes: s.LoadBalancerReportUpdateMaxIntervalMinutes,
		MinInterval: s.LoadBalancerReportUpdateMinIntervalMillis, StatsInterval: s.StatsUpdateFrequencyInSecs * 1000,
		Grace: (interval + graceSlack).Milliseconds(),
		Top: load.TopKRules{K: int(s.LoadBalancerMaxNumberOfBundlesInBundleLoadReport), Excluded: s.LoadBalancerSheddingExcludedNamespaces,
			WithPolicies: s.LoadBalancerSheddingBundlesWithPoliciesEnabled},
	}
}

// simpleSlack is how long lastUpdate of a Simple broker may stand still beside its report interval: it is renewed whenever
// the broker is asked.
const simpleSlack = 60_000 // ms

// advanceLimit is how long lastUpdate may stand still. A Modular broker renews it when it stores its report, which it does
// at least every MaxMinutes.
func (r *Rules) advanceLimit(kind event.ReportKind) int64 {
	if kind == event.SimpleReport {
		return 2*r.MinInterval + simpleSlack
	}
	return r.MaxMinutes*60_000 + 2*r.MinInterval + r.Grace
}
