package guard

import (
	"testing"

	"github.com/ballast-lb/ballast/plan"
)

// Bad ends of moves that ran at once are one step, and one after the other they are as many; an operator ends the hold.
func TestTheHoldAfterBadEnds(t *testing.T) {
	lim := Limits{MovesAtOnce: 4}
	fails := func(st State, begun, at int64) State {
		return Learn(st, Outcome{Decision: plan.Decision{Bundle: "t/n/0x0_0x1"}, At: at, Millis: at - begun}, lim)
	}
	minutes := func(st State, at int64) int64 { return max(st.Pace.HeldUntil-at, 0) / 60_000 }

	together := NewState()
	for i := range int64(10) { // all began at 1000, and end shortly after each other
		together = fails(together, 1000, 31_000+i)
	}
	if together.Pace.Strikes != 1 || !none(Held(together, 31_010, lim)) {
		t.Errorf("ten at once are %d steps, held: %s", together.Pace.Strikes, Held(together, 31_010, lim))
	}

	st, at := NewState(), int64(1000)
	for i, want := range []int64{0, 0, 1, 2, 4, 8} {
		st = fails(st, at, at) // refused within the same millisecond
		if got := minutes(st, at); got != want {
			t.Errorf("after %d in a row nothing moves for %d minutes, want %d", i+1, got, want)
		}
		if why := Held(st, at, lim); (why.Code == BackingOff.ID) != (want > 0) {
			t.Errorf("after %d in a row: %q", i+1, why)
		}
		at += want * 60_000
	}
	held := fails(st, at, at)
	if none(Held(held, at, lim)) {
		t.Fatal("nothing is held")
	}
	if why := Held(held, at, Limits{}); !none(why) {
		t.Errorf("without the rule: %s", why)
	}
	free := LetGo(held)
	if !none(Held(free, at, lim)) || none(Held(held, at, lim)) {
		t.Error("the hold goes on, or the state before was changed")
	}
	for range 2 {
		free = fails(free, at, at)
	}
	if !none(Held(free, at, lim)) {
		t.Error("two more bad ends bring the hold back")
	}
	if free = fails(free, at, at); minutes(free, at) != 1 {
		t.Errorf("three more hold for %d minutes, want 1", minutes(free, at))
	}
}
