package extensible

import (
	"maps"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Why a round of splits acted or did not act.
var (
	// SplitsPlanned: bundles are split.
	SplitsPlanned = plan.Code{ID: "SPLITS_PLANNED", Template: "{decisions} of {bundles} bundles are split, {failures} could not be"}
	// NothingToSplit: no bundle is split.
	NothingToSplit = plan.Code{ID: "NOTHING_TO_SPLIT", Template: "none of {bundles} bundles of {brokers} brokers is to be split, {failures} could not be"}
)

// Split implements plan.Manager: one round of the split schedulers of all brokers, each over the bundles it reports.
// Pulsar: SplitScheduler, which every broker runs for itself.
func (m *Manager) Split(snap *cluster.Snapshot, state plan.State, trace *plan.Trace) (plan.Plan, plan.State) {
	st := stateOf(state).next()
	p := plan.Plan{Strategy: "DefaultNamespaceBundleSplitStrategy", At: snap.Now}
	if key := off(snap.Settings.LoadBalancerEnabled, "loadBalancerEnabled", snap.Settings.LoadBalancerAutoBundleSplitEnabled, "loadBalancerAutoBundleSplitEnabled"); key != "" {
		p.Outcome = SplittingOff.Because(plan.S("key", key))
		return p, st
	}
	strategy := m.Splits
	if strategy == nil {
		strategy = &DefaultNamespaceBundleSplitStrategy{Options: m.Options}
	}
	r := strategy.round(snap, st, trace)
	bundles := 0
	for i := range snap.Brokers {
		r.broker(&snap.Brokers[i])
		bundles += len(snap.Brokers[i].Bundles)
	}
	maps.DeleteFunc(r.hits, func(broker string, _ map[string]int64) bool { return snap.BrokerIndex(broker) < 0 })
	r.finish(&p)
	code := SplitsPlanned
	if len(p.Decisions) == 0 {
		code = NothingToSplit
	}
	p.Outcome = code.Because(plan.N("decisions", len(p.Decisions)), plan.N("bundles", bundles), plan.N("brokers", len(snap.Brokers)), plan.N("failures", r.failures))
	return p, st
}

// Find is one round of one broker, which need not be registered, over bundles given as indexes into the snapshot's Bundles.
// It changes the state in place.
func (d *DefaultNamespaceBundleSplitStrategy) Find(snap *cluster.Snapshot, broker string, bundles []int, st *State, trace *plan.Trace) []plan.Decision {
	r := d.round(snap, st, trace)
	r.broker(&cluster.Broker{ID: broker, Bundles: bundles})
	var p plan.Plan
	r.finish(&p)
	return p.Decisions
}

// splitRound is a round of splits over several brokers.
type splitRound struct {
	strategy  *DefaultNamespaceBundleSplitStrategy
	snap      *cluster.Snapshot
	st        *State
	tr        *plan.Trace
	underWay  []string
	counts    map[string]int64
	chosen    map[string]int64
	decisions []plan.Decision
	failures  int64
	advice    []plan.LeftOut
	hits      map[string]map[string]int64 // the next State.SplitHits
}

func (d *DefaultNamespaceBundleSplitStrategy) round(snap *cluster.Snapshot, st *State, trace *plan.Trace) *splitRound {
	r := &splitRound{strategy: d, snap: snap, st: st, tr: trace, counts: make(map[string]int64), chosen: make(map[string]int64)}
	r.hits = maps.Clone(st.SplitHits)
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if b.State == event.Splitting {
			r.underWay = append(r.underWay, b.Name)
		}
		if d.BundleCount == nil {
			r.counts[b.Namespace]++
		}
	}
	return r
}

// broker takes in one broker. Splits that other brokers plan in this round count towards the limit of a namespace.
func (r *splitRound) broker(b *cluster.Broker) {
	s := &splitting{
		DefaultNamespaceBundleSplitStrategy: r.strategy, snap: r.snap, st: r.st, tr: r.tr, broker: b.ID,
		underWay: r.underWay, counts: r.counts, chosen: r.chosen, waiting: make(map[string]int64),
	}
	s.find(b.Bundles)
	delete(r.hits, b.ID)
	if len(s.hits) > 0 {
		if r.hits == nil {
			r.hits = make(map[string]map[string]int64)
		}
		r.hits[b.ID] = s.hits
	}
	r.decisions = append(r.decisions, s.decisions...)
	r.failures += s.failures
	r.advice = append(r.advice, s.advice...)
}

// finish fills the plan and the state.
func (r *splitRound) finish(p *plan.Plan) {
	p.Decisions = r.decisions
	p.Advice = r.st.tell(r.advice)
	r.st.SplitHits = r.hits
	if r.failures > 0 {
		p.Counts = []plan.Count{{Label: Failure, Reason: Unknown, N: r.failures}}
		for range r.failures {
			r.st.Counters.Split.add(Failure, Unknown)
		}
	}
}

// tell is the advice that was not given yet. What holds no more may be given again.
func (st *State) tell(advice []plan.LeftOut) []plan.LeftOut {
	var fresh []plan.LeftOut
	var told map[string]bool
	for _, a := range advice {
		if !st.Told[a.Bundle] {
			fresh = append(fresh, a)
		}
		if told == nil {
			told = make(map[string]bool)
		}
		told[a.Bundle] = true
	}
	st.Told = told
	return fresh
}
