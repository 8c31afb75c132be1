package guard

import (
	"fmt"
	"math"

	"github.com/ballast-lb/ballast/plan"
)

// Slower: fewer moves at once than the limit allows.
var Slower = plan.Code{ID: "GUARD_FEWER_AT_ONCE", Template: "{width} moves at once of at most {limit}, after {why}"}

// Pace is how many moves may be in flight together. It grows by one for every full round of moves that end well, and halves when
// one does not: additive increase, multiplicative decrease, as TCP does it.
type Pace struct {
	Width     float64 `json:"width,omitempty"`     // moves at once; 0 = 1, the beginning
	Strikes   int     `json:"strikes,omitempty"`   // bad ends in a row at a width of 1
	HeldUntil int64   `json:"heldUntil,omitempty"` // Unix ms until which nothing moves
	Why       string  `json:"why,omitempty"`       // the last bad end
	At        int64   `json:"at,omitempty"`        // and when, Unix ms
}

const (
	patience  = 3      // strikes from which nothing moves for a while
	firstHold = 60_000 // ms
	shown     = 600_000
)

// AtOnce is how many moves may be in flight together, 0 if there is no limit.
func (p Pace) AtOnce(lim Limits) int {
	if lim.MovesAtOnce <= 0 {
		return 0
	}
	return int(min(max(p.Width, 1), float64(lim.MovesAtOnce)))
}

// good takes in a move that ended well.
func (p Pace) good(lim Limits) Pace {
	w := math.Max(p.Width, 1)
	p.Width, p.Strikes = math.Min(w+1/w, math.Max(1, float64(lim.MovesAtOnce))), 0
	return p
}

// bad takes in that something that began at a time did not end well. At a width of 1 there is nothing to halve: after the third
// time in a row nothing moves for a minute, then for two, and so on up to a day. What had begun before the last bad end ran beside
// it: it says nothing new, and is no further step.
func (p Pace) bad(why string, begun, now int64) Pace {
	switch {
	case p.Width > 1:
		p.Strikes = 0
	case begun < p.At:
		return p
	default:
		if p.Strikes++; p.Strikes >= patience {
			p.HeldUntil = now + longer(firstHold, p.Strikes-patience)
		}
	}
	p.Width, p.Why, p.At = math.Max(1, p.Width/2), why, now
	return p
}

// Held is why nothing moves at a time (Unix ms) after moves that ended badly; the zero Reason if it may.
func Held(st State, now int64, lim Limits) plan.Reason {
	if lim.MovesAtOnce <= 0 || now >= st.Pace.HeldUntil {
		return plan.Reason{}
	}
	return BackingOff.Because(plan.S("until", moment(st.Pace.HeldUntil)), plan.S("why", st.Pace.Why))
}

// LetGo ends such a hold, and forgets what led to it.
func LetGo(st State) State {
	st.Version, st.Pace.HeldUntil, st.Pace.Strikes = StateVersion, 0, 0
	return st
}

// Outcome is what came of a decision that was tried.
type Outcome struct {
	Decision plan.Decision
	Moved    bool   // the source has given the bundle away, or the split was made
	Owner    string // who has it now; "" = the decision's destination
	Millis   int64  // from the request to the end; 0 = not known
	At       int64  // Unix ms of the end
}

// Record is Learn of an outcome of which no more is known than whether the bundle moved.
func Record(st State, d plan.Decision, ok bool, now int64, lim Limits) State {
	return Learn(st, Outcome{Decision: d, Moved: ok, At: now}, lim)
}

// pace is the pace after an outcome.
func (o *Outcome) pace(p Pace, lim Limits) Pace {
	switch {
	case !o.Moved:
		return p.bad("the move of "+o.Decision.Bundle+" failed", o.At-o.Millis, o.At)
	case lim.SlowMove > 0 && o.Millis > lim.SlowMove:
		return p.bad(fmt.Sprintf("the move of %s took %d ms, more than %d", o.Decision.Bundle, o.Millis, lim.SlowMove), o.At-o.Millis, o.At)
	}
	return p.good(lim)
}
