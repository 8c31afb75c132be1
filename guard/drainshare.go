package guard

import (
	"maps"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/internal/shares"
	"github.com/ballast-lb/ballast/plan"
)

// DrainShare: what is left of a cluster while brokers are drained stays spread.
var DrainShare = plan.Code{ID: "GUARD_DRAIN_SHARE", Template: "{destination} would have {after} of all {all} {measure} with what is on its way, the limit is {limit}: " +
	"an even part among the {serving} brokers that serve while {drained} is drained, and {points} points"}

// drainShare: while a broker is drained no other may get much more than an even part of all topics, whatever its load: when the drained
// one is restarted, or the next one fails, that is how many clients come back at once. Orders are not held up: a drain heeds
// the limit by itself, where it can (drain.Of). Nor is what nobody owns, whose clients wait.
func (c *check) drainShare(d *plan.Decision) (plan.Reason, bool) {
	if c.swapping || d.Destination == "" || Ordered(*d) || d.Action == plan.Split || d.Action == plan.Place || !c.sharing() {
		return pass()
	}
	over, yes := c.shares.Beyond(c.snap.BrokerIndex(d.Destination), c.snap.BundleIndex(d.Bundle), c.shareLimit())
	if !yes {
		return pass()
	}
	return DrainShare.Because(plan.S("destination", d.Destination), plan.N("after", over.After), plan.N("all", over.All), plan.S("measure", over.Measure),
		plan.N("limit", over.Limit), plan.N("serving", c.shareLimit().Serving), plan.S("drained", strings.Join(slices.Sorted(maps.Keys(c.st.Draining)), ", ")),
		plan.N("points", c.lim.DrainPoints*100)), true
}

// sharing says whether the rule holds, and counts the topics if so, with what was let through so far.
func (c *check) sharing() bool {
	if !(c.lim.DrainPoints > 0) || len(c.st.Draining) == 0 {
		return false
	}
	if c.shares == nil {
		c.shares = shares.Of(c.snap)
		for bundle, to := range c.owners {
			c.shares.Move(c.snap.BundleIndex(bundle), c.snap.BrokerIndex(to))
		}
	}
	return true
}

// shareLimit is what a broker may have while others are drained.
func (c *check) shareLimit() shares.Limit {
	lim := shares.Limit{Points: c.lim.DrainPoints}
	for i := range c.snap.Brokers {
		if _, drained := c.st.Draining[c.snap.Brokers[i].ID]; !drained {
			lim.Serving++
		}
	}
	return lim
}

// overs is what each of two brokers, by index, has more than it may; the zero value for one that has not.
func (c *check) overs(a, b int) (out [2]shares.Over) {
	if c.sharing() {
		out[0], _ = c.shares.Has(a, c.shareLimit())
		out[1], _ = c.shares.Has(b, c.shareLimit())
	}
	return out
}

// swapSpreads says whether a swap that is counted leaves neither broker above the limit that was not as far above it before.
func (c *check) swapSpreads(before [2]shares.Over, a, b int) bool {
	for k, over := range c.overs(a, b) {
		if over.After > before[k].After || over.Measure != "" && over.Measure != before[k].Measure {
			return false
		}
	}
	return true
}
