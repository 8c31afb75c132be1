// Package guard stands between plan and action: it lets through what may run now and says why the rest may not. It is pure:
// the snapshot, its own state and the limits go in, verdicts and the next state come out.
//
// A cycle is Observe (what has changed), Check (what may run), and Learn for everything that was tried.
package guard

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/internal/shares"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Verdict is what may run, what may not, and what the guard slows or holds even if no decision of this cycle is about it.
type Verdict struct {
	Run     []plan.Decision `json:"run"`
	Refused []Refusal       `json:"refused,omitempty"`
	Slowed  []plan.LeftOut  `json:"slowed,omitempty"` // a bundle, a broker, or neither: the whole cluster
	AtOnce  int             `json:"atOnce,omitempty"` // how many of Run may be in flight together; 0 = no limit is set
}

// Refusal is a decision that may not run now.
type Refusal struct {
	Decision plan.Decision `json:"decision"`
	Why      plan.Reason   `json:"why"`
}

// Check lets through the decisions of a plan that may run now, in their order. policies is nil for a cluster without any.
//
// Moves in both directions between two brokers are a swap: as many of the first of them as may run, and together gain something,
// are let through together; the others are judged alone.
func Check(snap *cluster.Snapshot, decisions []plan.Decision, policies *policy.View, st State, lim Limits) Verdict {
	c := newCheck(snap, policies, st, lim)
	v := Verdict{Slowed: c.slowed(), AtOnce: st.Pace.AtOnce(lim)}
	swaps := swapsOf(decisions)
	for i := range decisions {
		d := &decisions[i]
		if s := swaps[pairOf(d)]; s != nil && s.both() {
			if !s.tried {
				s.tried, s.runs = true, c.swap(decisions, s.moves)
			}
			if slices.Contains(s.runs, i) {
				v.Run = append(v.Run, *d)
				continue
			}
		}
		if why, refused := c.refuse(d); refused {
			v.Refused = append(v.Refused, Refusal{Decision: *d, Why: why})
			continue
		}
		c.count(d, 1)
		v.Run = append(v.Run, *d)
	}
	return v
}

// check is one cycle: what it has let through so far counts for what comes next.
type check struct {
	snap     *cluster.Snapshot
	policies *policy.View
	st       State
	lim      Limits
	frozen   plan.Reason // why nothing runs; zero = it may
	stopped  plan.Reason // why nothing runs that no operator ordered; zero = it may

	swapping   bool // a swap is judged as a whole
	total      int
	topics     int64
	throughput float64
	from, to   map[string]int
	toTopics   map[string]int64
	seen       map[string]bool
	owners     map[string]string // bundle -> destination, of what was let through

	modular bool
	figures []broker      // by index; see figure
	sizes   *sizes        // see size
	places  *places       // see place
	births  []int64       // by index; see isNew
	shares  *shares.Count // see sharing
	oldest  int64
}

func newCheck(snap *cluster.Snapshot, policies *policy.View, st State, lim Limits) *check {
	c := &check{snap: snap, policies: policies, st: st, lim: lim, from: map[string]int{}, to: map[string]int{}, toTopics: map[string]int64{},
		seen: map[string]bool{}, owners: map[string]string{}}
	c.modular = isModular(snap)
	c.frozen, c.stopped = c.freeze()
	return c
}

// count takes a decision that runs into account, or with sign -1 takes it back out.
func (c *check) count(d *plan.Decision, sign int) {
	c.total += sign
	c.topics += int64(sign) * c.topicsOf(d)
	c.throughput += float64(sign) * c.loadOf(d).throughput
	c.from[d.Source] += sign
	c.to[d.Destination] += sign
	c.toTopics[d.Destination] += int64(sign) * c.topicsOf(d)
	if i := c.snap.BundleIndex(d.Bundle); c.places != nil && i >= 0 && d.Destination != "" && d.Action != plan.Split {
		ns := c.snap.Bundles[i].Namespace
		c.places.add(ns, c.snap.BrokerIndex(d.Source), -sign)
		c.places.add(ns, c.snap.BrokerIndex(d.Destination), sign)
	}
	if c.shares != nil && d.Destination != "" && d.Action != plan.Split {
		at := d.Destination
		if sign < 0 {
			at = d.Source
		}
		c.shares.Move(c.snap.BundleIndex(d.Bundle), c.snap.BrokerIndex(at))
	}
	if sign < 0 {
		delete(c.seen, d.Bundle)
		delete(c.owners, d.Bundle)
		return
	}
	c.seen[d.Bundle] = true
	if d.Destination != "" && d.Action != plan.Split {
		c.owners[d.Bundle] = d.Destination
		if !c.swapping {
			c.shift(d)
		}
	}
}

// refuse is why a decision may not run. The order is that of how much is wrong: what is not so at all, what must never be, what
// is of no use, what has to wait.
func (c *check) refuse(d *plan.Decision) (plan.Reason, bool) {
	if !none(c.frozen) {
		return c.frozen, true
	}
	for _, rule := range [...]func(*plan.Decision) (plan.Reason, bool){c.bundle, c.brokers, c.policy, c.futile, c.stop, c.rest, c.turns, c.newcomer, c.drainShare, c.gain, c.budget} {
		if why, refused := rule(d); refused {
			return why, true
		}
	}
	return plan.Reason{}, false
}

func pass() (plan.Reason, bool) { return plan.Reason{}, false }

func none(r plan.Reason) bool { return r.Code == "" }

// pair is two brokers, the smaller id first.
type pair struct{ a, b string }

func pairOf(d *plan.Decision) pair {
	switch {
	case d.Action != plan.Transfer || d.Destination == "" || d.Source == d.Destination || Ordered(*d):
		return pair{}
	case d.Source < d.Destination:
		return pair{d.Source, d.Destination}
	}
	return pair{d.Destination, d.Source}
}

// swap is the moves between two brokers.
type swap struct {
	there, back bool
	moves       []int // indexes of decisions
	tried       bool
	runs        []int // those that run together
}

func (s *swap) both() bool { return s.there && s.back }

// swapsOf finds the moves between each two brokers.
func swapsOf(decisions []plan.Decision) map[pair]*swap {
	out := map[pair]*swap{}
	for i := range decisions {
		p := pairOf(&decisions[i])
		if p == (pair{}) {
			continue
		}
		s := out[p]
		if s == nil {
			s = new(swap)
			out[p] = s
		}
		s.there, s.back = s.there || decisions[i].Source == p.a, s.back || decisions[i].Source == p.b
		s.moves = append(s.moves, i)
	}
	return out
}

// mostSwapped is how many moves of a swap are tried together at most: after them, trying fewer takes too long.
const mostSwapped = 32

// swap counts, and returns, the most of the first moves of a swap that may run together.
func (c *check) swap(decisions []plan.Decision, moves []int) []int {
	moves = moves[:min(len(moves), mostSwapped)]
	for n := len(moves); n > 1; n-- {
		if c.together(decisions, moves[:n]) {
			return moves[:n]
		}
	}
	return nil
}

// together says whether moves between two brokers may all run, and counts them if so.
func (c *check) together(decisions []plan.Decision, moves []int) bool {
	a, b := c.snap.BrokerIndex(decisions[moves[0]].Source), c.snap.BrokerIndex(decisions[moves[0]].Destination)
	counted, before, overs := 0, c.throughput, c.overs(a, b)
	c.swapping = true
	for _, i := range moves {
		if _, refused := c.refuse(&decisions[i]); refused {
			break
		}
		c.count(&decisions[i], 1)
		counted++
	}
	ok := counted == len(moves) && c.swapGains(decisions, moves) && c.swapSpreads(overs, a, b)
	if !ok {
		for _, i := range moves[:counted] {
			c.count(&decisions[i], -1)
		}
		c.throughput = before // sums of floats do not subtract exactly
	}
	c.swapping = false
	if ok {
		for _, i := range moves {
			c.shift(&decisions[i])
		}
	}
	return ok
}
