package extensible

import (
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/split"
)

// DefaultNamespaceBundleSplitStrategy finds the bundles of a broker that exceed a limit of topics, sessions, message rate or
// bandwidth for long enough. Its memory is State.SplitHits. Pulsar: DefaultNamespaceBundleSplitStrategyImpl.
type DefaultNamespaceBundleSplitStrategy struct {
	Options Options
	// BundleCount is how many bundles a namespace has; nil = as many as the snapshot has.
	BundleCount func(namespace string) (int64, error)
	// Boundaries are where the default algorithm cuts a bundle; ok is false when it declines. nil = range_equally_divide is
	// worked out, a cut of any other algorithm, which needs the bundle's topics, is left to the broker.
	Boundaries func(bundle string, a split.Algorithm) (cuts []uint32, ok bool, err error)
}

// Why a bundle is split.
var (
	// SplitTopics: it has too many topics.
	SplitTopics = plan.Code{ID: "SPLIT_TOPICS", Template: "{value} topics > {limit} (loadBalancerNamespaceBundleMaxTopics), hit {hits}"}
	// SplitSessions: it has too many producers and consumers.
	SplitSessions = plan.Code{ID: "SPLIT_SESSIONS", Template: "{value} sessions > {limit} (loadBalancerNamespaceBundleMaxSessions), hit {hits}"}
	// SplitMsgRate: it has too many messages.
	SplitMsgRate = plan.Code{ID: "SPLIT_MSG_RATE", Template: "{value} msg/s > {limit} (loadBalancerNamespaceBundleMaxMsgRate), hit {hits}"}
	// SplitBandwidth: it has too much throughput.
	SplitBandwidth = plan.Code{ID: "SPLIT_BANDWIDTH", Template: "{value} bytes/s > {limit} (loadBalancerNamespaceBundleMaxBandwidthMbytes), hit {hits}"}
)

// Why a bundle is not split.
var (
	// FewTopics: it exceeds no limit and could not be split.
	FewTopics = plan.Code{ID: "SPLIT_FEW_TOPICS", Template: "{topics} topics: nothing to split"}
	// OneHotTopic: it exceeds a limit with one topic, which no split can divide.
	OneHotTopic = plan.Code{ID: "SPLIT_ONE_HOT_TOPIC", Template: "{condition}: {value} > {limit} with {topics} topic, which a split cannot divide; partition the topic"}
	// NotOwnedHere: the broker does not own it.
	NotOwnedHere = plan.Code{ID: "SPLIT_NOT_OWNED", Template: "owner is {owner}"}
	// TooSmall: its range has one hash.
	TooSmall = plan.Code{ID: "SPLIT_RANGE_TOO_SMALL", Template: "its range cannot be split: {error}"}
	// BelowLimits: it exceeds no limit.
	BelowLimits = plan.Code{ID: "SPLIT_NOT_NEEDED", Template: "{topics} topics, {sessions} sessions, {msgRate} msg/s, {throughput} bytes/s exceed no limit"}
	// SplitNotYet: it exceeds a limit, but not for long enough.
	SplitNotYet = plan.Code{ID: "SPLIT_HIT_COUNT", Template: "{condition}: {value} > {limit}, hit {hits}, acts above {needed} (loadBalancerNamespaceBundleSplitConditionHitCountThreshold)"}
	// NamespaceFull: bundles of the namespace exceed limits, but it has its limit of bundles.
	NamespaceFull = plan.Code{ID: "SPLIT_NAMESPACE_FULL", Template: "{namespace} has {bundles} bundles with {chosen} splits of this round, the limit is {limit} (loadBalancerNamespaceMaximumBundles): {waiting} of its bundles wait"}
	// CountUnknown: it cannot be told how many bundles the namespace has.
	CountUnknown = plan.Code{ID: "SPLIT_COUNT_UNKNOWN", Template: "how many bundles {namespace} has is not known: {error}"}
	// SplitUnderWay: a split of its parent may still be under way.
	SplitUnderWay = plan.Code{ID: "SPLIT_UNDER_WAY", Template: "{other} is being split"}
	// NoBoundary: the algorithm does not say where to cut.
	NoBoundary = plan.Code{ID: "SPLIT_NO_BOUNDARY", Template: "{algorithm} gives no single boundary: {error}"}
	// SplitsFull: the round has its limit of splits.
	SplitsFull = plan.Code{ID: "SPLIT_CYCLE_FULL", Template: "{limit} splits planned (loadBalancerMaxNumberOfBundlesToSplitPerCycle): {waiting} bundles not looked at"}
)

// splitting is one round of splits of one broker.
type splitting struct {
	*DefaultNamespaceBundleSplitStrategy
	snap      *cluster.Snapshot
	st        *State
	tr        *plan.Trace
	broker    string
	hits      map[string]int64
	underWay  []string         // bundles that are being split
	counts    map[string]int64 // bundles per namespace, from the snapshot
	chosen    map[string]int64 // splits chosen per namespace in this round
	waiting   map[string]int64 // bundles per full namespace that wait; full is their order
	full      []string
	decisions []plan.Decision
	failures  int64
	advice    []plan.LeftOut // bundles that a split cannot help
}

// find goes through the bundles of the broker (indexes into the snapshot's Bundles).
func (s *splitting) find(bundles []int) {
	s.hits = make(map[string]int64)
	old := s.st.SplitHits[s.broker]
	if len(old) > 0 {
		for _, i := range bundles {
			if i < 0 || i >= len(s.snap.Bundles) {
				continue
			}
			if h, ok := old[s.snap.Bundles[i].Name]; ok {
				s.hits[s.snap.Bundles[i].Name] = h
			}
		}
	}
	limit := s.snap.Settings.LoadBalancerMaxNumberOfBundlesToSplitPerCycle
	for n, i := range bundles {
		if i < 0 || i >= len(s.snap.Bundles) {
			continue
		}
		if s.look(&s.snap.Bundles[i]) && int64(len(s.decisions)) == limit {
			if rest := len(bundles) - n - 1; s.tr != nil && rest > 0 {
				s.tr.Skip("", s.broker, "", SplitsFull.Because(plan.N("limit", limit), plan.N("waiting", rest)))
			}
			break
		}
	}
	for _, ns := range s.full {
		if s.tr != nil {
			n, _ := s.bundleCount(ns)
			s.tr.Skip(ns, s.broker, "", NamespaceFull.Because(plan.S("namespace", ns), plan.N("bundles", n), plan.N("chosen", s.chosen[ns]),
				plan.N("limit", s.snap.Settings.LoadBalancerNamespaceMaximumBundles), plan.N("waiting", s.waiting[ns])))
		}
	}
}

// look decides about one bundle and says whether it is split.
func (s *splitting) look(b *cluster.Bundle) bool {
	exceeded := s.exceeded(b)
	if b.Stats.Topics < 2 {
		s.fewTopics(b, exceeded)
		return false
	}
	if b.Owner != s.broker {
		if s.Options.ResetSplitHits {
			delete(s.hits, b.Name)
		}
		s.skip(b, func() plan.Reason { return NotOwnedHere.Because(plan.S("owner", quoted(b.Owner))) })
		return false
	}
	_, r, err := split.ParseBundle(b.Name)
	if err != nil || !r.CanSplit() {
		s.failures++
		s.skip(b, func() plan.Reason { return TooSmall.Because(plan.S("error", errorText(err, "it has one hash"))) })
		return false
	}
	if exceeded == nil {
		delete(s.hits, b.Name)
	} else {
		s.hits[b.Name]++
	}
	hits, needed := s.hits[b.Name], s.snap.Settings.LoadBalancerNamespaceBundleSplitConditionHitCountThreshold
	if exceeded == nil || hits <= needed { // a negative threshold does not split what exceeds nothing
		s.notYet(b, exceeded, hits, needed)
		return false
	}
	n, err := s.bundleCount(b.Namespace)
	if err != nil {
		s.failures++
		s.skip(b, func() plan.Reason {
			return CountUnknown.Because(plan.S("namespace", b.Namespace), plan.S("error", err.Error()))
		})
		return false
	}
	if n+s.chosen[b.Namespace] >= s.snap.Settings.LoadBalancerNamespaceMaximumBundles {
		if s.waiting[b.Namespace]++; s.waiting[b.Namespace] == 1 {
			s.full = append(s.full, b.Namespace)
		}
		return false
	}
	if other := s.parentOf(b); other != "" {
		s.skip(b, func() plan.Reason { return SplitUnderWay.Because(plan.S("other", other)) })
		return false
	}
	return s.decide(b, r, exceeded, hits)
}

// decide plans to split a bundle, if its boundary is known.
func (s *splitting) decide(b *cluster.Bundle, r split.Range, e *excess, hits int64) bool {
	algorithm := split.Algorithm(s.snap.Settings.DefaultNamespaceBundleSplitAlgorithm)
	cuts, ok, err := s.cuts(b.Name, r, algorithm)
	var boundaries []string
	if cuts != nil || !ok || err != nil {
		if err == nil && ok {
			_, err = r.Children(cuts)
		}
		if err != nil || !ok || len(cuts) != 1 {
			s.failures++
			s.skip(b, func() plan.Reason {
				return NoBoundary.Because(plan.S("algorithm", string(algorithm)), plan.S("error", errorText(err, "it declined or gave several")))
			})
			return false
		}
		boundaries = []string{split.FormatBound(cuts[0])}
	}
	s.decisions = append(s.decisions, plan.Decision{
		Action: plan.Split, Bundle: b.Name, Source: s.broker, Boundaries: boundaries,
		Label: Success, PulsarReason: e.reason,
		Throughput: load.Throughput(&b.Stats), MsgRate: load.MsgRate(&b.Stats), Topics: b.Stats.Topics,
		Why: e.code.Because(plan.N("value", e.value), plan.N("limit", e.limit), plan.N("hits", hits)),
	})
	s.chosen[b.Namespace]++
	delete(s.hits, b.Name)
	return true
}

// cuts is where the algorithm cuts; nil and true when only the broker can tell.
func (s *splitting) cuts(bundle string, r split.Range, a split.Algorithm) ([]uint32, bool, error) {
	if s.Boundaries != nil {
		return s.Boundaries(bundle, a)
	}
	if _, err := split.ParseAlgorithm(string(a)); err == nil && a != split.RangeEquallyDivide {
		return nil, true, nil
	}
	return split.Boundaries(split.RangeEquallyDivide, split.Request{Range: r}) // also for names that Pulsar does not know
}

func (s *splitting) bundleCount(ns string) (int64, error) {
	if s.BundleCount != nil {
		return s.BundleCount(ns)
	}
	return s.counts[ns], nil
}

// parentOf is a bundle that is being split and shares a bound with this one, "" if there is none. Pulsar compares the
// beginning of the name with the namespace and the bounds as text.
func (s *splitting) parentOf(b *cluster.Bundle) string {
	low, up, _ := strings.Cut(b.Name[strings.LastIndexByte(b.Name, '/')+1:], "_")
	for _, other := range s.underWay {
		i := strings.LastIndexByte(other, '/')
		same := strings.HasPrefix(other, b.Namespace)
		if s.Options.ExactSplitNamespace {
			same = i >= 0 && other[:i] == b.Namespace
		}
		if same && (strings.HasPrefix(other[i+1:], low) || strings.HasSuffix(other[i+1:], up)) {
			return other
		}
	}
	return ""
}

// fewTopics looks at a bundle with fewer than two topics.
func (s *splitting) fewTopics(b *cluster.Bundle, e *excess) {
	if s.Options.ResetSplitHits {
		delete(s.hits, b.Name)
	}
	if e != nil && b.Stats.Topics == 1 && b.Owner == s.broker {
		why := OneHotTopic.Because(plan.S("condition", e.reason), plan.N("value", e.value), plan.N("limit", e.limit), plan.N("topics", b.Stats.Topics))
		s.advice = append(s.advice, plan.LeftOut{Bundle: b.Name, Broker: s.broker, Why: why})
		s.skip(b, func() plan.Reason { return why })
		return
	}
	s.skip(b, func() plan.Reason { return FewTopics.Because(plan.N("topics", b.Stats.Topics)) })
}

func (s *splitting) notYet(b *cluster.Bundle, e *excess, hits, needed int64) {
	s.skip(b, func() plan.Reason {
		if e == nil {
			return BelowLimits.Because(plan.N("topics", b.Stats.Topics), plan.N("sessions", sessions(&b.Stats)),
				plan.N("msgRate", load.MsgRate(&b.Stats)), plan.N("throughput", load.Throughput(&b.Stats)))
		}
		return SplitNotYet.Because(plan.S("condition", e.reason), plan.N("value", e.value), plan.N("limit", e.limit), plan.N("hits", hits), plan.N("needed", needed))
	})
}

// excess is a limit that a bundle exceeds.
type excess struct {
	code         *plan.Code
	reason       string // Pulsar's word
	value, limit float64
}

// exceeded is the first limit that a bundle exceeds, nil for none.
func (s *splitting) exceeded(b *cluster.Bundle) *excess {
	c, st := s.snap.Settings, &b.Stats
	bandwidth := bandwidthLimit(c, s.Options.WideBandwidthLimit)
	switch {
	case st.Topics > c.LoadBalancerNamespaceBundleMaxTopics:
		return &excess{&SplitTopics, Topics, float64(st.Topics), float64(c.LoadBalancerNamespaceBundleMaxTopics)}
	case c.LoadBalancerNamespaceBundleMaxSessions > 0 && sessions(st) > c.LoadBalancerNamespaceBundleMaxSessions:
		return &excess{&SplitSessions, Sessions, float64(sessions(st)), float64(c.LoadBalancerNamespaceBundleMaxSessions)}
	case load.MsgRate(st) > float64(c.LoadBalancerNamespaceBundleMaxMsgRate):
		return &excess{&SplitMsgRate, MsgRate, load.MsgRate(st), float64(c.LoadBalancerNamespaceBundleMaxMsgRate)}
	case load.Throughput(st) > bandwidth:
		return &excess{&SplitBandwidth, Bandwidth, load.Throughput(st), bandwidth}
	}
	return nil
}

func sessions(s *event.NamespaceBundleStats) int64 {
	return int64(s.ConsumerCount) + int64(s.ProducerCount)
}

// bandwidthLimit is the bandwidth of a bundle in bytes/s. Pulsar multiplies 32-bit integers, which wrap.
func bandwidthLimit(c *settings.Settings, wide bool) float64 {
	mbytes := c.LoadBalancerNamespaceBundleMaxBandwidthMbytes
	if wide {
		return float64(mbytes) * (1 << 20)
	}
	return float64(int32(mbytes) * (1 << 20))
}

func (s *splitting) skip(b *cluster.Bundle, why func() plan.Reason) {
	if s.tr != nil {
		s.tr.Skip(b.Name, s.broker, "", why())
	}
}

func errorText(err error, otherwise string) string {
	if err == nil {
		return otherwise
	}
	return err.Error()
}
