package guard

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// What is not as the plan thinks, or must never be.
var (
	Twice         = plan.Code{ID: "GUARD_TWICE", Template: "the plan names the bundle twice"}
	InFlight      = plan.Code{ID: "GUARD_IN_FLIGHT", Template: "the bundle is {state}"}
	SourceChanged = plan.Code{ID: "GUARD_SOURCE_CHANGED", Template: "{source} does not own the bundle, {owner} does"}
	NotRegistered = plan.Code{ID: "GUARD_NOT_REGISTERED", Template: "{broker} is not registered"}
	Missing       = plan.Code{ID: "GUARD_MISSING_LOAD_DATA", Template: "no load data of {brokers}"}
	Stale         = plan.Code{ID: "GUARD_STALE_LOAD_DATA", Template: "the load data of {broker} is {age} ms old, the limit is {limit} ms"}
	Drained       = plan.Code{ID: "GUARD_DRAINING", Template: "{broker} is being drained, it receives nothing"}
)

// What rests, or has no budget left.
var (
	CoolDown         = plan.Code{ID: "GUARD_COOL_DOWN", Template: "the bundle moved {age} ms ago, it rests for {limit} ms"}
	BrokerRests      = plan.Code{ID: "GUARD_BROKER_COOL_DOWN", Template: "{broker} gave or took a bundle {age} ms ago, it rests for {limit} ms"}
	FailedRecently   = plan.Code{ID: "GUARD_FAILED_RECENTLY", Template: "a move of the bundle failed {age} ms ago, it rests for {limit} ms"}
	CycleBudget      = plan.Code{ID: "GUARD_CYCLE_BUDGET", Template: "{limit} bundles per cycle are used up"}
	SourceBudget     = plan.Code{ID: "GUARD_SOURCE_BUDGET", Template: "{limit} bundles per cycle from {source} are used up"}
	TargetBudget     = plan.Code{ID: "GUARD_DESTINATION_BUDGET", Template: "{limit} bundles per cycle to {destination} are used up"}
	TopicBudget      = plan.Code{ID: "GUARD_TOPIC_BUDGET", Template: "{topics} topics and the {used} of this cycle so far are above the {limit} of a cycle"}
	ThroughputBudget = plan.Code{ID: "GUARD_THROUGHPUT_BUDGET", Template: "{throughput} bytes/s and the {used} of this cycle so far are above the {limit} of a cycle"}
)

// bundle: the bundle is one that may move, and it is where the plan thinks it is.
func (c *check) bundle(d *plan.Decision) (plan.Reason, bool) {
	if c.seen[d.Bundle] {
		return Twice.Because(), true
	}
	var excluded []string
	if c.snap.Settings != nil && !Ordered(*d) && d.Action != plan.Place && d.Action != plan.Split {
		excluded = c.snap.Settings.LoadBalancerSheddingExcludedNamespaces
	}
	if why := policy.Unmanaged(event.NamespaceOf(d.Bundle), excluded); !why.IsZero() {
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

func orNobody(owner string) string {
	if owner == "" {
		return "nobody"
	}
	return owner
}

// brokers: both ends are alive by the registry and their load data is fresh, and the destination takes anything at all. An
// order may take bundles from a broker whose load is not known: it is often why the order was given.
func (c *check) brokers(d *plan.Decision) (plan.Reason, bool) {
	for _, id := range [...]string{d.Source, d.Destination} {
		if id == "" {
			continue
		}
		i := c.snap.BrokerIndex(id)
		if i < 0 {
			return NotRegistered.Because(plan.S("broker", id)), true
		}
		if why := c.silent(&c.snap.Brokers[i]); !none(why) && (id == d.Destination || !Ordered(*d)) {
			return why, true
		}
	}
	if _, ok := c.st.Draining[d.Destination]; ok && d.Destination != "" {
		return Drained.Because(plan.S("broker", d.Destination)), true
	}
	return pass()
}

// silent is why a broker's load data may not be acted on; zero if it may.
func (c *check) silent(b *cluster.Broker) plan.Reason {
	if b.Load == nil && b.Local == nil && b.Report == nil {
		return Missing.Because(plan.S("brokers", b.ID))
	}
	if age := c.snap.Now - b.LoadHeard; c.lim.LoadDataTTL > 0 && age > c.lim.LoadDataTTL {
		return Stale.Because(plan.S("broker", b.ID), plan.N("age", age), plan.N("limit", c.lim.LoadDataTTL))
	}
	return plan.Reason{}
}

// policy: an admin unload ignores isolation, so it is checked here for every move.
func (c *check) policy(d *plan.Decision) (plan.Reason, bool) {
	if c.policies == nil || d.Action == plan.Split {
		return pass()
	}
	if d.Destination != "" {
		why := c.policies.Move(policy.Placed{Bundle: d.Bundle, Broker: d.Source, NonPersistent: c.nonPersistent(d)}, d.Destination)
		return plan.FromPolicy(why), !why.IsZero()
	}
	verdict := c.policies.Allowed(event.NamespaceOf(d.Bundle), !c.nonPersistent(d))
	switch {
	case !verdict.Frozen.IsZero():
		return plan.FromPolicy(verdict.Frozen), true
	case !verdict.Others(d.Source):
		return plan.FromPolicy(policy.NoOtherBroker.Because(policy.S("broker", d.Source), policy.S("namespace", event.NamespaceOf(d.Bundle)))), true
	}
	return pass()
}

func (c *check) nonPersistent(d *plan.Decision) bool {
	i := c.snap.BundleIndex(d.Bundle)
	return i >= 0 && c.snap.Bundles[i].NonPersistent
}

// orderRests (ms) is how long a bundle rests from orders after a move of it failed; twice as long after each further failure.
const orderRests = 10_000

// rest: what has just moved, or has just failed to, is left alone for a while, and so are the brokers of a move. An operator waits
// for an order: it is tried again sooner.
func (c *check) rest(d *plan.Decision) (plan.Reason, bool) {
	limit := c.lim.FailureCoolDown
	if Ordered(*d) {
		limit = min(limit, longer(orderRests, c.st.Failures[d.Bundle]-1))
	}
	if at, ok := c.st.Failed[d.Bundle]; ok && c.snap.Now-at < limit {
		return FailedRecently.Because(plan.N("age", c.snap.Now-at), plan.N("limit", limit)), true
	}
	if Ordered(*d) {
		return pass()
	}
	if at, ok := c.st.Moved[d.Bundle]; ok && c.snap.Now-at < c.lim.BundleCoolDown {
		return CoolDown.Because(plan.N("age", c.snap.Now-at), plan.N("limit", c.lim.BundleCoolDown)), true
	}
	for _, id := range [...]string{d.Source, d.Destination} {
		if at, ok := c.st.Brokers[id]; ok && c.snap.Now-at < c.lim.BrokerCoolDown {
			return BrokerRests.Because(plan.S("broker", id), plan.N("age", c.snap.Now-at), plan.N("limit", c.lim.BrokerCoolDown)), true
		}
	}
	return pass()
}

func (c *check) budget(d *plan.Decision) (plan.Reason, bool) {
	if d.Action == plan.Place {
		return pass() // what nobody owns is taken from nobody, and its clients wait
	}
	topics, throughput := c.topicsOf(d), c.loadOf(d).throughput
	switch {
	case over(c.total, c.lim.BundlesPerCycle):
		return CycleBudget.Because(plan.N("limit", c.lim.BundlesPerCycle)), true
	case over(c.from[d.Source], c.lim.BundlesPerSource):
		return SourceBudget.Because(plan.N("limit", c.lim.BundlesPerSource), plan.S("source", d.Source)), true
	case d.Destination != "" && over(c.to[d.Destination], c.lim.BundlesPerTarget):
		return TargetBudget.Because(plan.N("limit", c.lim.BundlesPerTarget), plan.S("destination", d.Destination)), true
	case c.lim.TopicsPerCycle > 0 && c.total > 0 && topics > c.lim.TopicsPerCycle-c.topics:
		return TopicBudget.Because(plan.N("topics", topics), plan.N("used", c.topics), plan.N("limit", c.lim.TopicsPerCycle)), true
	case c.lim.ThroughputPerCycle > 0 && c.total > 0 && throughput > c.lim.ThroughputPerCycle-c.throughput:
		return ThroughputBudget.Because(plan.N("throughput", throughput), plan.N("used", c.throughput), plan.N("limit", c.lim.ThroughputPerCycle)), true
	}
	return pass()
}

func over(used, limit int) bool { return limit > 0 && used >= limit }

// mayTake are the indexes of the brokers that policies let take the bundle, in order.
func (c *check) mayTake(d *plan.Decision) []int {
	if c.policies != nil {
		verdict := c.policies.Allowed(event.NamespaceOf(d.Bundle), !c.nonPersistent(d))
		return slices.DeleteFunc(verdict.Candidates(), func(i int) bool { return i >= len(c.snap.Brokers) })
	}
	out := make([]int, len(c.snap.Brokers))
	for i := range out {
		out[i] = i
	}
	return out
}
