package modular

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
)

// Why a hot bundle is not split, and the outcomes of a round of splits.
var (
	// RangeTooSmall: the range of the bundle has no middle.
	RangeTooSmall = plan.Code{ID: "RANGE_TOO_SMALL", Template: "range {range} cannot be divided"}
	// NotABundle: the namespace has no such bundle any more.
	NotABundle = plan.Code{ID: "NOT_A_BUNDLE_ANY_MORE", Template: "{namespace} has no bundle {range}"}
	// Splitting: bundles are split.
	Splitting = plan.Code{ID: "SPLITTING", Template: "{bundles} of {hot} bundles above a limit are split"}
	// NothingToSplit: no bundle is hot, or none may be split.
	NothingToSplit = plan.Code{ID: "NOTHING_TO_SPLIT", Template: "{hot} of {bundles} reported bundles are above a limit, none of them may be split"}
)

// Split implements plan.Manager: one round of splits of the leader. The snapshot must hold all bundles of the namespaces, as
// their number is limited. A decision has the boundary when the default algorithm is range_equally_divide; other algorithms
// need the topics, which brokers do not report, and are left to the cluster. Pulsar: checkNamespaceBundleSplit.
func (m *Manager) Split(snap *cluster.Snapshot, state plan.State, trace *plan.Trace) (plan.Plan, plan.State) {
	st := stateOf(state)
	p := plan.Plan{Strategy: "BundleSplitterTask", At: snap.Now}
	switch {
	case !snap.Settings.LoadBalancerAutoBundleSplitEnabled:
		p.Outcome = Disabled.Because(plan.S("key", "loadBalancerAutoBundleSplitEnabled"))
		return p, st
	case len(snap.Brokers) <= 1:
		p.Outcome = TooFewBrokers.Because(plan.N("brokers", len(snap.Brokers)))
		return p, st
	}
	st = st.next()
	reported := 0
	for i := range snap.Brokers {
		if d := snap.Brokers[i].Local; d != nil {
			reported += len(d.LastStats)
		}
	}
	chosen, hot := BundlesToSplit(snap, m.Options, bundleCounts(snap), trace)
	for _, s := range chosen {
		if d, ok := m.splitOf(snap, st, s, trace); ok {
			p.Decisions = append(p.Decisions, d)
		}
	}
	if n := len(p.Decisions); n > 0 {
		p.Outcome = Splitting.Because(plan.N("bundles", n), plan.N("hot", hot))
	} else {
		p.Outcome = NothingToSplit.Because(plan.N("hot", hot), plan.N("bundles", reported))
	}
	return p, st
}

// bundleCounts counts the snapshot's bundles per namespace, at the first question.
func bundleCounts(snap *cluster.Snapshot) func(string) (int, bool) {
	var counts map[string]int
	return func(namespace string) (int, bool) {
		if counts == nil {
			counts = make(map[string]int)
			for i := range snap.Bundles {
				counts[snap.Bundles[i].Namespace]++
			}
		}
		n, ok := counts[namespace]
		return n, ok
	}
}

// splitOf is the decision to split a hot bundle, false if it cannot be split.
func (m *Manager) splitOf(snap *cluster.Snapshot, st *State, s ToSplit, trace *plan.Trace) (plan.Decision, bool) {
	ns := namespaceOf(snap, s.Bundle)
	bundleRange := strings.TrimPrefix(s.Bundle, ns+"/")
	lower, upper, err := parseRange(bundleRange)
	if err != nil || upper-lower <= 1 {
		notSplit(trace, s.Bundle, s.Broker, func() plan.Reason { return RangeTooSmall.Because(plan.S("range", bundleRange)) })
		return plan.Decision{}, false
	}
	i := snap.BundleIndex(s.Bundle)
	if i < 0 {
		notSplit(trace, s.Bundle, s.Broker, func() plan.Reason {
			return NotABundle.Because(plan.S("namespace", ns), plan.S("range", bundleRange))
		})
		return plan.Decision{}, false
	}
	d := unload(snap, i, s.Broker)
	d.Action, d.Why = plan.Split, s.Why
	if algorithm := snap.Settings.DefaultNamespaceBundleSplitAlgorithm; !needsTopics(algorithm) {
		d.Boundaries = []string{fmt.Sprintf("0x%08x", lower+(upper-lower)/2)}
	}
	if snap.Settings.LoadBalancerAutoUnloadSplitBundlesEnabled {
		_, d.UnloadAfter = m.choice(snap, st, s.Bundle, nil).mayLeave(s.Broker)
	}
	return d, true
}

// needsTopics says whether a split algorithm looks at topics. Unknown names mean range_equally_divide.
func needsTopics(algorithm string) bool {
	switch algorithm {
	case "topic_count_equally_divide", "specified_positions_divide", "flow_or_qps_equally_divide":
		return true
	}
	return false
}

// parseRange reads 0xLLLLLLLL_0xUUUUUUUU.
func parseRange(text string) (lower, upper uint32, err error) {
	l, u, ok := strings.Cut(text, "_")
	if !ok || !strings.HasPrefix(l, "0x") || !strings.HasPrefix(u, "0x") {
		return 0, 0, fmt.Errorf("%q is not 0xLLLLLLLL_0xUUUUUUUU", text)
	}
	a, err := strconv.ParseUint(l[2:], 16, 32)
	if err != nil {
		return 0, 0, err
	}
	b, err := strconv.ParseUint(u[2:], 16, 32)
	if err != nil {
		return 0, 0, err
	}
	if b <= a {
		return 0, 0, fmt.Errorf("%q ends before it begins", text)
	}
	return uint32(a), uint32(b), nil
}
