package modular

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Why a bundle is split or not.
var (
	// TooFewTopics: a bundle with one topic or none cannot be helped by a split.
	TooFewTopics = plan.Code{ID: "TOO_FEW_TOPICS", Template: "{topics} topics, a split needs 2"}
	// HotTopic: the one topic of the bundle is above a limit by itself.
	HotTopic = plan.Code{ID: "HOT_SINGLE_TOPIC", Template: "one topic with {rate} msg/s, {throughput} bytes/s and {sessions} sessions is above a limit: a split cannot help, more partitions can"}
	// NotHot: the bundle is below all limits.
	NotHot = plan.Code{ID: "BELOW_SPLIT_LIMITS", Template: "{topics} topics (limit {maxTopics}), {sessions} sessions (limit {maxSessions}), {rate} msg/s (limit {maxRate}), {throughput} bytes/s (limit {maxThroughput})"}
	// NamespaceFull: the namespace has as many bundles as it may have.
	NamespaceFull = plan.Code{ID: "NAMESPACE_BUNDLE_LIMIT", Template: "{bundles} bundles and {planned} planned splits reach the limit {limit} of {namespace}"}
	// CountUnknown: the number of bundles of the namespace could not be read.
	CountUnknown = plan.Code{ID: "BUNDLE_COUNT_UNKNOWN", Template: "the number of bundles of {namespace} is not known"}
	// SplitTopics, SplitSessions, SplitMsgRate and SplitBandwidth: the limit that makes the bundle hot.
	SplitTopics    = plan.Code{ID: "SPLIT_TOPICS", Template: "{topics} topics > {limit}"}
	SplitSessions  = plan.Code{ID: "SPLIT_SESSIONS", Template: "{sessions} sessions > {limit}"}
	SplitMsgRate   = plan.Code{ID: "SPLIT_MSG_RATE", Template: "{rate} msg/s > {limit}"}
	SplitBandwidth = plan.Code{ID: "SPLIT_BANDWIDTH", Template: "{throughput} bytes/s > {limit}"}
)

// ToSplit is a bundle that BundlesToSplit chose.
type ToSplit struct {
	Bundle string
	Broker string // that reports it; the last one if several do
	Why    plan.Reason
}

// BundlesToSplit chooses the bundles that are above one of the loadBalancerNamespaceBundleMax... limits, as long as their
// namespaces stay within loadBalancerNamespaceMaximumBundles. bundleCount is the number of bundles of a namespace and
// whether it is known. hot is how many reported bundles are above a limit. Pulsar: BundleSplitterTask.
func BundlesToSplit(snap *cluster.Snapshot, o Options, bundleCount func(namespace string) (int, bool), trace *plan.Trace) (chosen []ToSplit, hot int) {
	c := snap.Settings
	limits := splitLimits{
		topics: c.LoadBalancerNamespaceBundleMaxTopics, sessions: c.LoadBalancerNamespaceBundleMaxSessions,
		rate:       float64(c.LoadBalancerNamespaceBundleMaxMsgRate),
		throughput: bandwidthLimit(c.LoadBalancerNamespaceBundleMaxBandwidthMbytes, o.WideBandwidthLimit),
	}
	place := make(map[string]int)
	planned := make(map[string]int)
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		if b.Local == nil {
			continue
		}
		for k := range b.Local.LastStats {
			name, stats := b.Local.LastStats[k].Bundle, &b.Local.LastStats[k].Stats
			why, isHot := limits.judge(stats, historyOf(snap, b, k, name), trace != nil)
			if !isHot {
				notSplit(trace, name, b.ID, func() plan.Reason { return why })
				continue
			}
			hot++
			ns := namespaceOf(snap, name)
			n, known := bundleCount(ns)
			switch {
			case !known:
				notSplit(trace, name, b.ID, func() plan.Reason { return CountUnknown.Because(plan.S("namespace", ns)) })
				continue
			case int64(n)+int64(planned[ns]) >= c.LoadBalancerNamespaceMaximumBundles:
				notSplit(trace, name, b.ID, func() plan.Reason {
					return NamespaceFull.Because(plan.N("bundles", n), plan.N("planned", planned[ns]),
						plan.N("limit", c.LoadBalancerNamespaceMaximumBundles), plan.S("namespace", ns))
				})
				continue
			}
			planned[ns]++
			if at, again := place[name]; again {
				chosen[at].Broker = b.ID
				continue
			}
			place[name] = len(chosen)
			chosen = append(chosen, ToSplit{Bundle: name, Broker: b.ID, Why: why})
		}
	}
	return chosen, hot
}

// notSplit records that a bundle is not split. why is called only if there is a trace.
func notSplit(trace *plan.Trace, bundle, broker string, why func() plan.Reason) {
	if trace != nil {
		trace.Skip(bundle, broker, "", why())
	}
}

// historyOf is the averages of the k-th bundle that a broker reports, nil if there are none.
func historyOf(snap *cluster.Snapshot, b *cluster.Broker, k int, name string) *event.BundleData {
	if k < len(b.Bundles) && snap.Bundles[b.Bundles[k]].Name == name {
		return snap.Bundles[b.Bundles[k]].Data
	}
	if i := snap.BundleIndex(name); i >= 0 {
		return snap.Bundles[i].Data
	}
	return nil
}

// bandwidthLimit is MiB/s in bytes/s: in Pulsar an int product that wraps.
func bandwidthLimit(mbytes int64, wide bool) float64 {
	if wide {
		return float64(mbytes) * 1048576
	}
	return float64(int32(mbytes) * 1048576)
}

type splitLimits struct {
	topics, sessions int64
	rate, throughput float64
}

// judge says whether a bundle is hot and why; why it is not only if asked.
func (l *splitLimits) judge(s *event.NamespaceBundleStats, d *event.BundleData, explain bool) (plan.Reason, bool) {
	rate, throughput := 0.0, 0.0
	if d != nil {
		rate, throughput = d.LongTermData.TotalMsgRate(), d.LongTermData.TotalMsgThroughput()
	}
	sessions := s.ConsumerCount + s.ProducerCount
	if s.Topics < 2 {
		return l.tooFewTopics(s.Topics, sessions, rate, throughput, explain), false
	}
	switch {
	case s.Topics > l.topics:
		return SplitTopics.Because(plan.N("topics", s.Topics), plan.N("limit", l.topics)), true
	case l.sessions > 0 && int64(sessions) > l.sessions:
		return SplitSessions.Because(plan.N("sessions", sessions), plan.N("limit", l.sessions)), true
	case rate > l.rate:
		return SplitMsgRate.Because(plan.N("rate", rate), plan.N("limit", l.rate)), true
	case throughput > l.throughput:
		return SplitBandwidth.Because(plan.N("throughput", throughput), plan.N("limit", l.throughput)), true
	}
	if !explain {
		return plan.Reason{}, false
	}
	return NotHot.Because(plan.N("topics", s.Topics), plan.N("maxTopics", l.topics), plan.N("sessions", sessions), plan.N("maxSessions", l.sessions),
		plan.N("rate", rate), plan.N("maxRate", l.rate), plan.N("throughput", throughput), plan.N("maxThroughput", l.throughput)), false
}

// tooFewTopics is why a bundle that has less than two topics is not split.
func (l *splitLimits) tooFewTopics(topics int64, sessions int32, rate, throughput float64, explain bool) plan.Reason {
	switch {
	case !explain:
		return plan.Reason{}
	case topics == 1 && (rate > l.rate || throughput > l.throughput || l.sessions > 0 && int64(sessions) > l.sessions):
		return HotTopic.Because(plan.N("rate", rate), plan.N("throughput", throughput), plan.N("sessions", sessions))
	}
	return TooFewTopics.Because(plan.N("topics", topics))
}
