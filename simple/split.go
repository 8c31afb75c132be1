package simple

import (
	"fmt"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Why a bundle is split.
var (
	TooManyTopics   = plan.Code{ID: "TOO_MANY_TOPICS", Template: "{topics} topics > loadBalancerNamespaceBundleMaxTopics {limit}"}
	TooManySessions = plan.Code{ID: "TOO_MANY_SESSIONS", Template: "{sessions} producers and consumers > loadBalancerNamespaceBundleMaxSessions {limit}"}
	TooManyMessages = plan.Code{ID: "TOO_MANY_MESSAGES", Template: "{rate} msg/s > loadBalancerNamespaceBundleMaxMsgRate {limit}"}
	TooManyBytes    = plan.Code{ID: "TOO_MANY_BYTES", Template: "{throughput} bytes/s > loadBalancerNamespaceBundleMaxBandwidthMbytes in bytes/s {limit}"}
)

// Why a hot bundle is not split, and the outcomes of a round.
var (
	// SingleTopic: a split cannot part one topic.
	SingleTopic = plan.Code{ID: "SINGLE_TOPIC", Template: "{topics} topic: a split cannot help; give the topic more partitions"}
	// TooManyBundles: the namespace has as many bundles as it may have.
	TooManyBundles = plan.Code{ID: "TOO_MANY_BUNDLES", Template: "{namespace} has {bundles} bundles, {chosen} more are chosen, >= loadBalancerNamespaceMaximumBundles {limit}"}
	// NotABundle: the namespace has no such bundle any more.
	NotABundle = plan.Code{ID: "NOT_A_BUNDLE_ANY_MORE", Template: "there is no bundle {bundle}"}
	// RangeTooSmall: the range of the bundle has no middle.
	RangeTooSmall = plan.Code{ID: "RANGE_TOO_SMALL", Template: "{bundle} cannot be divided"}
	// Splitting: bundles are split.
	Splitting = plan.Code{ID: "SPLITTING", Template: "{bundles} of {hot} bundles above a limit are split"}
	// SplitDryRun: loadBalancerAutoBundleSplitEnabled is off.
	SplitDryRun = plan.Code{ID: "DRY_RUN", Template: "{key} is false: {bundles} bundles would be split"}
	// NothingToSplit: no bundle is hot, or none may be split.
	NothingToSplit = plan.Code{ID: "NOTHING_TO_SPLIT", Template: "{hot} of {bundles} reported bundles are above a limit, none of them may be split"}
)

// splitting is one round.
type splitting struct {
	m             *Manager
	snap          *cluster.Snapshot
	trace         *plan.Trace
	counts        map[string]int // bundles per namespace
	chosen        map[string]int
	reported, hot int
	decisions     []plan.Decision
	advice        []plan.LeftOut
}

// Split implements plan.Manager: one round of splits of every broker's reported bundles. In Pulsar each broker does that for
// itself after it wrote a report, and writes the next one at once if it split (ReportState.Forced). The snapshot must hold all bundles of
// the namespaces, as their number is limited. A decision has the boundary when the default algorithm is
// range_equally_divide; other algorithms need the topics and are left to the cluster. Pulsar: doNamespaceBundleSplit.
func (m *Manager) Split(snap *cluster.Snapshot, state plan.State, trace *plan.Trace) (plan.Plan, plan.State) {
	p := plan.Plan{Strategy: Name, At: snap.Now}
	st := stateOf(state)
	if !snap.Settings.LoadBalancerEnabled {
		p.Outcome = Disabled.Because(plan.S("key", "loadBalancerEnabled"))
		return p, st
	}
	c := splitting{m: m, snap: snap, trace: trace, counts: bundleCounts(snap), chosen: map[string]int{}}
	for _, r := range reports(snap) {
		for i := range r.BundleStats {
			c.look(r.broker, &r.BundleStats[i])
		}
	}
	st = st.next()
	p.Advice = st.tell("split ", c.advice)
	switch n := plan.N("bundles", len(c.decisions)); {
	case len(c.decisions) == 0:
		p.Outcome = NothingToSplit.Because(plan.N("hot", c.hot), plan.N("bundles", c.reported))
	case !snap.Settings.LoadBalancerAutoBundleSplitEnabled:
		p.Outcome = SplitDryRun.Because(plan.S("key", "loadBalancerAutoBundleSplitEnabled"), n)
	default:
		p.Decisions, p.Outcome = c.decisions, Splitting.Because(n, plan.N("hot", c.hot))
	}
	return p, st
}

func (c *splitting) look(broker string, b *event.NamedBundleStats) {
	c.reported++
	why, hot := c.tooMuch(&b.Stats)
	if !hot {
		return
	}
	c.hot++
	namespace, limit := namespaceOf(b.Bundle), c.snap.Settings.LoadBalancerNamespaceMaximumBundles
	chosen := 0
	if c.m.Options.CountSplits {
		chosen = c.chosen[namespace]
	}
	name, err := event.ParseBundle(b.Bundle)
	switch {
	case b.Stats.Topics <= 1:
		alone := plan.LeftOut{Bundle: b.Bundle, Broker: broker, Why: SingleTopic.Because(plan.N("topics", b.Stats.Topics))}
		c.trace.Skip(b.Bundle, broker, "", alone.Why)
		c.advice = append(c.advice, alone)
	case c.snap.BundleIndex(b.Bundle) < 0:
		c.leave(broker, b.Bundle, NotABundle, plan.S("bundle", b.Bundle))
	case int64(c.counts[namespace]+chosen) >= limit:
		c.leave(broker, b.Bundle, TooManyBundles, plan.S("namespace", namespace),
			plan.N("bundles", c.counts[namespace]), plan.N("chosen", chosen), plan.N("limit", limit))
	case err != nil || !name.Range.CanSplit():
		c.leave(broker, b.Bundle, RangeTooSmall, plan.S("bundle", b.Bundle))
	default:
		c.chosen[namespace]++
		c.decisions = append(c.decisions, c.decision(broker, b, name.Range, why))
	}
}

// leave records why a hot bundle is not split.
func (c *splitting) leave(broker, bundle string, code plan.Code, numbers ...plan.Number) {
	if c.trace != nil {
		c.trace.Skip(bundle, broker, "", code.Because(numbers...))
	}
}

func (c *splitting) decision(broker string, b *event.NamedBundleStats, r event.Range, why plan.Reason) plan.Decision {
	d := plan.Decision{Action: plan.Split, Bundle: b.Bundle, Source: broker, Why: why,
		UnloadAfter: c.snap.Settings.LoadBalancerAutoUnloadSplitBundlesEnabled}
	carry(&d, &b.Stats)
	switch c.snap.Settings.DefaultNamespaceBundleSplitAlgorithm {
	case "topic_count_equally_divide", "specified_positions_divide", "flow_or_qps_equally_divide":
	default: // unknown names mean range_equally_divide
		d.Boundaries = []string{fmt.Sprintf("0x%08x", r.Lower+(r.Upper-r.Lower)/2)}
	}
	return d
}

// tooMuch is which limit a bundle is above, the first in Pulsar's order.
func (c *splitting) tooMuch(s *event.NamespaceBundleStats) (plan.Reason, bool) {
	set := c.snap.Settings
	sessions := int64(s.ConsumerCount + s.ProducerCount) // wraps as in Java
	rate, throughput := s.MsgRateIn+s.MsgRateOut, s.MsgThroughputIn+s.MsgThroughputOut
	bytes := set.LoadBalancerNamespaceBundleMaxBandwidthMbytes << 20
	switch {
	case s.Topics > set.LoadBalancerNamespaceBundleMaxTopics:
		return TooManyTopics.Because(plan.N("topics", s.Topics), plan.N("limit", set.LoadBalancerNamespaceBundleMaxTopics)), true
	case set.LoadBalancerNamespaceBundleMaxSessions > 0 && sessions > set.LoadBalancerNamespaceBundleMaxSessions:
		return TooManySessions.Because(plan.N("sessions", sessions), plan.N("limit", set.LoadBalancerNamespaceBundleMaxSessions)), true
	case rate > float64(set.LoadBalancerNamespaceBundleMaxMsgRate):
		return TooManyMessages.Because(plan.N("rate", rate), plan.N("limit", set.LoadBalancerNamespaceBundleMaxMsgRate)), true
	case throughput > float64(bytes):
		return TooManyBytes.Because(plan.N("throughput", throughput), plan.N("limit", bytes)), true
	}
	return plan.Reason{}, false
}
