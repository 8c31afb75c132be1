// Package guard stands between plan and action: it lets through what may run now and says why the rest may not. It is pure:
// the snapshot, its own state and the limits go in, verdicts come out.
package guard

import (
	"maps"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Limits are the budgets and cool-downs. A limit of 0 is no limit.
type Limits struct {
	BundlesPerCycle  int     // decisions let through per cycle
	BundlesPerSource int     // of these, from one broker
	BundlesPerTarget int     // of these, to one broker
	TopicsPerSecond  float64 // pace: a bundle of n topics takes n / TopicsPerSecond seconds of budget
	BundleCoolDown   int64   // ms during which a moved bundle is left alone
	BrokerCoolDown   int64   // ms during which a broker that gave or took a bundle does neither
	FailureCoolDown  int64   // ms during which a bundle whose move failed is left alone
	LoadDataTTL      int64   // ms after which load data that was heard is too old to act on
}

// State is what the guard remembers: when each bundle last moved, or failed to. It is versioned, plain data.
type State struct {
	Version int              `json:"version"`
	Moved   map[string]int64 `json:"moved,omitempty"`   // bundle -> Unix ms
	Failed  map[string]int64 `json:"failed,omitempty"`  // bundle -> Unix ms
	Brokers map[string]int64 `json:"brokers,omitempty"` // broker id -> Unix ms when it last gave or took a bundle
}

// The reasons of the guard.
var (
	Missing        = plan.Code{ID: "GUARD_MISSING_LOAD_DATA", Template: "no load data of {brokers}"}
	Stale          = plan.Code{ID: "GUARD_STALE_LOAD_DATA", Template: "the load data of {broker} is {age} ms old, the limit is {limit} ms"}
	SourceChanged  = plan.Code{ID: "GUARD_SOURCE_CHANGED", Template: "{source} does not own the bundle, {owner} does"}
	InFlight       = plan.Code{ID: "GUARD_IN_FLIGHT", Template: "the bundle is {state}"}
	NotRegistered  = plan.Code{ID: "GUARD_NOT_REGISTERED", Template: "{broker} is not registered"}
	CoolDown       = plan.Code{ID: "GUARD_COOL_DOWN", Template: "the bundle moved {age} ms ago, it rests for {limit} ms"}
	BrokerRests    = plan.Code{ID: "GUARD_BROKER_COOL_DOWN", Template: "{broker} gave or took a bundle {age} ms ago, it rests for {limit} ms"}
	FailedRecently = plan.Code{ID: "GUARD_FAILED_RECENTLY", Template: "a move of the bundle failed {age} ms ago, it rests for {limit} ms"}
	CycleBudget    = plan.Code{ID: "GUARD_CYCLE_BUDGET", Template: "{limit} bundles per cycle are used up"}
	SourceBudget   = plan.Code{ID: "GUARD_SOURCE_BUDGET", Template: "{limit} bundles per cycle from {source} are used up"}
	TargetBudget   = plan.Code{ID: "GUARD_DESTINATION_BUDGET", Template: "{limit} bundles per cycle to {destination} are used up"}
	Twice          = plan.Code{ID: "GUARD_TWICE", Template: "the plan names the bundle twice"}
)

// Verdict is what may run and what may not.
type Verdict struct {
	Run     []plan.Decision `json:"run"`
	Refused []Refusal       `json:"refused,omitempty"`
}

// Refusal is a decision that may not run now.
type Refusal struct {
	Decision plan.Decision `json:"decision"`
	Why      plan.Reason   `json:"why"`
}

// Check lets through the decisions of a plan that may run now, in their order. policies is nil for a cluster without any.
func Check(snap *cluster.Snapshot, decisions []plan.Decision, policies *policy.View, st State, lim Limits) Verdict {
	c := check{snap: snap, policies: policies, st: st, lim: lim, from: map[string]int{}, to: map[string]int{}, seen: map[string]bool{}}
	var v Verdict
	for _, d := range decisions {
		if why, refused := c.refuse(d); refused {
			v.Refused = append(v.Refused, Refusal{Decision: d, Why: why})
			continue
		}
		c.count(d)
		v.Run = append(v.Run, d)
	}
	return v
}

type check struct {
	snap     *cluster.Snapshot
	policies *policy.View
	st       State
	lim      Limits
	total    int
	from, to map[string]int
	seen     map[string]bool
}

func (c *check) count(d plan.Decision) {
	c.total++
	c.from[d.Source]++
	c.to[d.Destination]++
	c.seen[d.Bundle] = true
}

func (c *check) refuse(d plan.Decision) (plan.Reason, bool) {
	for _, rule := range []func(plan.Decision) (plan.Reason, bool){c.bundle, c.brokers, c.policy, c.rest, c.budget} {
		if why, refused := rule(d); refused {
			return why, true
		}
	}
	return plan.Reason{}, false
}

func pass() (plan.Reason, bool) { return plan.Reason{}, false }

// bundle: the bundle is one that may move, and it is where the plan thinks it is.
func (c *check) bundle(d plan.Decision) (plan.Reason, bool) {
	if c.seen[d.Bundle] {
		return Twice.Because(), true
	}
	if why := policy.Unmanaged(event.NamespaceOf(d.Bundle), nil); !why.IsZero() {
		return plan.FromPolicy(why), true
	}
	i := c.snap.BundleIndex(d.Bundle)
	if i < 0 || d.Action == plan.Place {
		return pass()
	}
	b := &c.snap.Bundles[i]
	if b.State != "" && b.State != "Owned" {
		return InFlight.Because(plan.S("state", string(b.State))), true
	}
	if b.Owner != d.Source {
		return SourceChanged.Because(plan.S("source", d.Source), plan.S("owner", orNobody(b.Owner))), true
	}
	return pass()
}

// brokers: both ends are alive by the registry and their load data is fresh.
func (c *check) brokers(d plan.Decision) (plan.Reason, bool) {
	for _, id := range []string{d.Source, d.Destination} {
		if id == "" {
			continue
		}
		i := c.snap.BrokerIndex(id)
		if i < 0 {
			return NotRegistered.Because(plan.S("broker", id)), true
		}
		b := &c.snap.Brokers[i]
		if b.Load == nil && b.Local == nil && b.Report == nil {
			return Missing.Because(plan.S("brokers", id)), true
		}
		if age := c.snap.Now - b.LoadHeard; c.lim.LoadDataTTL > 0 && age > c.lim.LoadDataTTL {
			return Stale.Because(plan.S("broker", id), plan.N("age", age), plan.N("limit", c.lim.LoadDataTTL)), true
		}
	}
	return pass()
}

// policy: an admin unload ignores isolation, so it is checked here for every move.
func (c *check) policy(d plan.Decision) (plan.Reason, bool) {
	if c.policies == nil || d.Action == plan.Split {
		return pass()
	}
	placed := policy.Placed{Bundle: d.Bundle, Broker: d.Source}
	if i := c.snap.BundleIndex(d.Bundle); i >= 0 {
		placed.NonPersistent = c.snap.Bundles[i].NonPersistent
	}
	if d.Destination != "" {
		why := c.policies.Move(placed, d.Destination)
		return plan.FromPolicy(why), !why.IsZero()
	}
	verdict := c.policies.Allowed(event.NamespaceOf(d.Bundle), !placed.NonPersistent)
	switch {
	case !verdict.Frozen.IsZero():
		return plan.FromPolicy(verdict.Frozen), true
	case !verdict.Others(d.Source):
		return plan.FromPolicy(policy.NoOtherBroker.Because(policy.S("broker", d.Source), policy.S("namespace", event.NamespaceOf(d.Bundle)))), true
	}
	return pass()
}

// rest: what has just moved, or has just failed to, is left alone for a while, and so are the brokers of a move.
func (c *check) rest(d plan.Decision) (plan.Reason, bool) {
	if at, ok := c.st.Moved[d.Bundle]; ok && c.snap.Now-at < c.lim.BundleCoolDown {
		return CoolDown.Because(plan.N("age", c.snap.Now-at), plan.N("limit", c.lim.BundleCoolDown)), true
	}
	if at, ok := c.st.Failed[d.Bundle]; ok && c.snap.Now-at < c.lim.FailureCoolDown {
		return FailedRecently.Because(plan.N("age", c.snap.Now-at), plan.N("limit", c.lim.FailureCoolDown)), true
	}
	for _, id := range []string{d.Source, d.Destination} {
		if at, ok := c.st.Brokers[id]; ok && c.snap.Now-at < c.lim.BrokerCoolDown {
			return BrokerRests.Because(plan.S("broker", id), plan.N("age", c.snap.Now-at), plan.N("limit", c.lim.BrokerCoolDown)), true
		}
	}
	return pass()
}

func (c *check) budget(d plan.Decision) (plan.Reason, bool) {
	switch {
	case over(c.total, c.lim.BundlesPerCycle):
		return CycleBudget.Because(plan.N("limit", c.lim.BundlesPerCycle)), true
	case over(c.from[d.Source], c.lim.BundlesPerSource):
		return SourceBudget.Because(plan.N("limit", c.lim.BundlesPerSource), plan.S("source", d.Source)), true
	case d.Destination != "" && over(c.to[d.Destination], c.lim.BundlesPerTarget):
		return TargetBudget.Because(plan.N("limit", c.lim.BundlesPerTarget), plan.S("destination", d.Destination)), true
	}
	return pass()
}

func over(used, limit int) bool { return limit > 0 && used >= limit }

// Record returns the state after a decision was tried at now: moved or failed. Entries that no rule asks for any more are
// dropped. The state that goes in is not changed.
func Record(st State, d plan.Decision, ok bool, now int64, lim Limits) State {
	next := State{Version: 1, Moved: fresh(st.Moved, now-lim.BundleCoolDown), Failed: fresh(st.Failed, now-lim.FailureCoolDown),
		Brokers: fresh(st.Brokers, now-lim.BrokerCoolDown)}
	if ok {
		next.Moved[d.Bundle] = now
		for _, id := range []string{d.Source, d.Destination} {
			if id != "" && lim.BrokerCoolDown > 0 {
				next.Brokers[id] = now
			}
		}
		delete(next.Failed, d.Bundle)
	} else {
		next.Failed[d.Bundle] = now
	}
	return next
}

func fresh(m map[string]int64, after int64) map[string]int64 {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]int64{}
	}
	maps.DeleteFunc(out, func(_ string, at int64) bool { return at <= after })
	return out
}

// maxPause (ms) is a day: beyond it a pace is as good as standing still, and far beyond it durations overflow.
const maxPause = 24 * 60 * 60 * 1000

// Pause is how long (ms) to wait after starting a decision so that topics move no faster than the budget allows.
func (l Limits) Pause(d plan.Decision) int64 {
	if !(l.TopicsPerSecond > 0) || d.Topics <= 0 {
		return 0
	}
	return int64(min(float64(d.Topics)*1000/l.TopicsPerSecond, maxPause))
}

func orNobody(owner string) string {
	if owner == "" {
		return "nobody"
	}
	return owner
}
