package guard

import (
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/plan"
)

// maxRecent is how many moves are remembered until load data shows them.
const maxRecent = 2000

// Learn returns the state after a decision was tried. Entries that no rule asks for any more are dropped. The state that goes in
// is not changed.
func Learn(st State, o Outcome, lim Limits) State {
	d, now := o.Decision, o.At
	st.Version = StateVersion
	st.Moved, st.Brokers = fresh(st.Moved, now-lim.BundleCoolDown), fresh(st.Brokers, now-lim.BrokerCoolDown)
	// Twice as long as the longest rest: what fails again right after it counts on.
	st.Failed = fresh(st.Failed, now-2*lim.FailureCoolDown)
	st.Failures = maps.Clone(st.Failures)
	maps.DeleteFunc(st.Failures, func(bundle string, _ int) bool { _, ok := st.Failed[bundle]; return !ok })
	if lim.MovesAtOnce > 0 {
		st.Pace = o.pace(st.Pace, lim)
	}
	if !o.Moved {
		st.Failed[d.Bundle] = now
		st.Failures = with(st.Failures, d.Bundle, st.Failures[d.Bundle]+1)
		return st
	}
	to := o.Owner
	if to == "" {
		to = d.Destination
	}
	if !forADrain(d) {
		st.Moved[d.Bundle] = now
	}
	delete(st.Failed, d.Bundle)
	delete(st.Failures, d.Bundle)
	for _, id := range []string{d.Source, to} {
		if id != "" && lim.BrokerCoolDown > 0 {
			st.Brokers[id] = now
		}
	}
	if d.Action == plan.Split {
		return st
	}
	if !forADrain(d) {
		st.follow(d, to, now, lim)
	}
	m := Move{At: now, Source: d.Source, Destination: to}
	if measured(d.Throughput) && measured(d.MsgRate) {
		m.Throughput, m.MsgRate = min(d.Throughput, mostLoad), min(d.MsgRate, mostLoad)
	}
	if m.Throughput > 0 || m.MsgRate > 0 {
		st.Recent = append(slices.Clone(st.Recent), m)
		st.Recent = st.Recent[max(0, len(st.Recent)-maxRecent):]
	}
	return st
}

// forADrain says whether a bundle left a broker because that is drained. It need not rest, and that it comes back
// is no turn: while the drain stands nothing brings it back, and afterwards the broker is empty until some do.
func forADrain(d plan.Decision) bool { return Ordered(d) && d.Why.Code == drain.Leaves.ID }

func fresh(m map[string]int64, after int64) map[string]int64 {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]int64{}
	}
	maps.DeleteFunc(out, func(_ string, at int64) bool { return at <= after })
	return out
}

// Observe returns the state at the beginning of a cycle: who is there since when, which moves the load data shows by now, whether
// clients are hurt. harm may be nil: then nothing is known of clients.
func Observe(st State, snap *cluster.Snapshot, harm *Harm, lim Limits) State {
	first := st.Round == 0
	st.Version, st.Round = StateVersion, snap.Now
	seen := make(map[string]Sighting, len(snap.Brokers))
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		s, ok := st.Seen[b.ID]
		switch {
		case !ok && !first, ok && s.Started != b.StartedAt:
			s.Since = snap.Now
		}
		s.Started = b.StartedAt
		seen[b.ID] = s
	}
	st.Seen = seen
	st.Recent = slices.DeleteFunc(slices.Clone(st.Recent), func(m Move) bool { return shows(snap, m.Source, m.At) && shows(snap, m.Destination, m.At) })
	if p := st.Paused; p != nil && p.Until > 0 && snap.Now >= p.Until {
		st.Paused = nil
	}
	st.suffer(harm, lim) // asks for the movement that is then forgotten
	st.Clients = maps.Clone(st.Clients)
	maps.DeleteFunc(st.Clients, func(id string, _ Clients) bool { return snap.BrokerIndex(id) < 0 })
	st.forgetTurns(snap.Now, lim)
	return st
}

// shows says whether what was heard of a broker is newer than a move, or will never be.
func shows(snap *cluster.Snapshot, id string, at int64) bool {
	i := snap.BrokerIndex(id)
	return i < 0 || snap.Brokers[i].LoadHeard >= at
}

// slowed is everything that the guard slows or holds now.
func (c *check) slowed() []plan.LeftOut {
	var out []plan.LeftOut
	for _, why := range []plan.Reason{c.frozen, c.stopped} {
		if !none(why) {
			out = append(out, plan.LeftOut{Why: why})
		}
	}
	if p := c.st.Pace; c.lim.MovesAtOnce > 0 && p.At > 0 && p.AtOnce(c.lim) < c.lim.MovesAtOnce && c.snap.Now-p.At < shown {
		out = append(out, plan.LeftOut{Why: Slower.Because(plan.N("width", p.AtOnce(c.lim)), plan.N("limit", c.lim.MovesAtOnce), plan.S("why", p.Why))})
	}
	if !c.lim.watchesTurns() {
		return out
	}
	// What is held need not be remembered in any other way.
	bundles := slices.Sorted(maps.Keys(c.st.Trails))
	brokers := slices.Sorted(maps.Keys(c.st.Swings))
	for _, subject := range slices.Sorted(maps.Keys(c.st.Holds)) {
		if _, ok := slices.BinarySearch(bundles, subject); ok {
			continue
		}
		if _, ok := slices.BinarySearch(brokers, subject); ok {
			continue
		}
		if c.snap.BrokerIndex(subject) >= 0 {
			brokers = append(brokers, subject)
		} else {
			bundles = append(bundles, subject)
		}
	}
	for _, b := range bundles {
		if why := c.bundleTurns(b); !none(why) {
			out = append(out, plan.LeftOut{Bundle: b, Why: why})
		}
	}
	for _, b := range brokers {
		if why := c.brokerTurns(b); !none(why) {
			out = append(out, plan.LeftOut{Broker: b, Why: why})
		}
	}
	return out
}
