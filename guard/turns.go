package guard

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/plan"
)

// Movement that cancels out.
var (
	ToAndFro   = plan.Code{ID: "GUARD_BUNDLE_GOES_TO_AND_FRO", Template: "the bundle came back {turns} times and moved {age} ms ago: it rests for {limit} ms"}
	UpAndDown  = plan.Code{ID: "GUARD_BROKER_UP_AND_DOWN", Template: "{broker} took and gave by turns, {turns} turns, the last {age} ms ago: it rests for {limit} ms"}
	HeldBundle = plan.Code{ID: "GUARD_BUNDLE_HELD", Template: "the bundle came back {turns} times: it is held until {until}, for the {level}. time in a row"}
	HeldBroker = plan.Code{ID: "GUARD_BROKER_HELD", Template: "{broker} took and gave by turns, {turns} turns: it is held until {until}, for the {level}. time in a row"}
)

const (
	maxHops      = 16     // moves that are remembered of a bundle
	maxSwings    = 16     // rounds that are remembered of a broker
	maxTrails    = 10_000 // bundles that are remembered
	minRestShare = 20     // a slowed rest is at least this part of the window
)

// turns: what goes to and fro is slowed, then held, each time for twice as long.
func (c *check) turns(d *plan.Decision) (plan.Reason, bool) {
	if !c.lim.watchesTurns() || Ordered(*d) || d.Action == plan.Split {
		return pass()
	}
	if why := c.bundleTurns(d.Bundle); !none(why) {
		return why, true
	}
	for _, id := range [...]string{d.Source, d.Destination} {
		if why := c.brokerTurns(id); !none(why) {
			return why, true
		}
	}
	return pass()
}

func (c *check) bundleTurns(bundle string) plan.Reason {
	if h, ok := c.st.Holds[bundle]; ok && c.snap.Now < h.Until {
		return HeldBundle.Because(plan.N("turns", h.Turns), plan.S("until", moment(h.Until)), plan.N("level", h.Level))
	}
	trail := c.st.Trails[bundle]
	n := returns(trail)
	if n < c.lim.slowFrom() {
		return plan.Reason{}
	}
	limit := c.lim.slowRest(c.lim.BundleCoolDown, n)
	if age := c.snap.Now - trail[len(trail)-1].At; age < limit && age < c.lim.OscillationWindow {
		return ToAndFro.Because(plan.N("turns", n), plan.N("age", age), plan.N("limit", limit))
	}
	return plan.Reason{}
}

func (c *check) brokerTurns(id string) plan.Reason {
	if h, ok := c.st.Holds[id]; ok && c.snap.Now < h.Until {
		return HeldBroker.Because(plan.S("broker", id), plan.N("turns", h.Turns), plan.S("until", moment(h.Until)), plan.N("level", h.Level))
	}
	swings := c.st.Swings[id]
	n := reversals(swings)
	if n < c.lim.slowFrom() {
		return plan.Reason{}
	}
	limit := c.lim.slowRest(c.lim.BrokerCoolDown, n)
	if age := c.snap.Now - swings[len(swings)-1].At; age < limit && age < c.lim.OscillationWindow {
		return UpAndDown.Because(plan.S("broker", id), plan.N("turns", n), plan.N("age", age), plan.N("limit", limit))
	}
	return plan.Reason{}
}

// slowRest is how long something with so many turns rests: twice as long with each. It stays below the window, so that the turn
// after it belongs to those before.
func (l Limits) slowRest(coolDown int64, turns int) int64 {
	rest := longer(max(coolDown, l.OscillationWindow/minRestShare), turns-l.slowFrom()+1)
	return min(rest, max(coolDown, l.OscillationWindow*3/4))
}

// returns is how often a bundle came to where it had been.
func returns(trail []Hop) int {
	n := 0
	for i := range trail {
		if slices.ContainsFunc(trail[:i], func(h Hop) bool { return h.From == trail[i].To }) {
			n++
		}
	}
	return n
}

// reversals is how often a broker turned from taking to giving or back. Trends are discounted: where less than half of the
// movement cancels out there is none.
func reversals(swings []Swing) int {
	n, sum, all, last := 0, 0.0, 0.0, 0.0
	for _, s := range swings {
		if s.Net == 0 {
			continue
		}
		if last != 0 && (s.Net > 0) != (last > 0) {
			n++
		}
		sum, all, last = sum+s.Net, all+math.Abs(s.Net), s.Net
	}
	if all == 0 || 1-math.Abs(sum)/all < 0.5 {
		return 0
	}
	return n
}

// follow adds a move to what is remembered of its bundle and brokers, and holds what turned too often.
func (st *State) follow(d plan.Decision, to string, now int64, lim Limits) {
	if d.Source == to || !lim.watchesTurns() && lim.MovesAtOnce <= 0 {
		return
	}
	amount := 1.0 // a move without figures counts, too
	if measured(d.Throughput) {
		amount = min(max(amount, d.Throughput), mostLoad)
	}
	st.swing(d.Source, -amount, now, lim)
	st.swing(to, amount, now, lim)
	if !lim.watchesTurns() || d.Source == "" || to == "" {
		return
	}
	trail := slices.Clone(st.Trails[d.Bundle])
	if k := len(trail); k > 0 && now-trail[k-1].At >= lim.OscillationWindow {
		trail = nil
	}
	trail = append(trail, Hop{At: now, From: d.Source, To: to})
	trail = trail[max(0, len(trail)-maxHops):]
	st.Trails = with(st.Trails, d.Bundle, trail)
	st.hold(d.Bundle, returns(trail), now, lim)
}

// swing adds what a move brought to a broker, or took from it.
func (st *State) swing(id string, net float64, now int64, lim Limits) {
	if id == "" {
		return
	}
	round := st.Round
	if round == 0 {
		round = now
	}
	swings := slices.Clone(st.Swings[id])
	if k := len(swings); k > 0 && now-swings[k-1].At >= max(lim.OscillationWindow, 1) {
		swings = nil
	}
	if k := len(swings); k > 0 && swings[k-1].Round == round {
		swings[k-1].Net += net
		swings[k-1].At = now
	} else {
		swings = append(swings, Swing{Round: round, At: now, Net: net})
	}
	swings = swings[max(0, len(swings)-maxSwings):]
	st.Swings = with(st.Swings, id, swings)
	// The round that goes on may still cancel out.
	st.hold(id, reversals(swings), now, lim)
}

// hold holds a bundle or a broker that turned too often for the window, and for twice as long as last time if that was not long
// ago.
func (st *State) hold(subject string, turns int, now int64, lim Limits) {
	h, again := st.Holds[subject]
	if !lim.watchesTurns() || turns < lim.OscillationTurns || again && now < h.Until {
		return
	}
	level := 1
	if again && now < h.Until+h.memory(lim) {
		level = h.Level + 1
	}
	st.Holds = with(st.Holds, subject, Hold{Since: now, Until: now + longer(lim.OscillationWindow, level-1), Level: level, Turns: turns})
}

// memory is for how long after its end a hold makes the next one longer: for as long again, and for as long as the turns for the
// next one may take.
func (h Hold) memory(lim Limits) int64 {
	return h.Until - h.Since + min(lim.OscillationWindow, maxPause)*int64(lim.OscillationTurns)
}

// forgetTurns drops what no rule will ask for.
func (st *State) forgetTurns(now int64, lim Limits) {
	st.Trails, st.Swings, st.Holds = maps.Clone(st.Trails), maps.Clone(st.Swings), maps.Clone(st.Holds)
	maps.DeleteFunc(st.Trails, func(_ string, t []Hop) bool { return len(t) == 0 || now-t[len(t)-1].At >= lim.OscillationWindow })
	maps.DeleteFunc(st.Swings, func(_ string, s []Swing) bool {
		return len(s) == 0 || now-s[len(s)-1].At >= max(lim.OscillationWindow, harmWindow)
	})
	maps.DeleteFunc(st.Holds, func(_ string, h Hold) bool { return now >= h.Until+h.memory(lim) })
	if more := len(st.Trails) - maxTrails; more > 0 {
		names := slices.SortedFunc(maps.Keys(st.Trails), func(a, b string) int {
			x, y := st.Trails[a], st.Trails[b]
			return cmp.Or(cmp.Compare(x[len(x)-1].At, y[len(y)-1].At), strings.Compare(a, b))
		})
		for _, name := range names[:more] {
			delete(st.Trails, name)
		}
	}
}
