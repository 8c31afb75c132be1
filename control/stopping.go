package control

import (
	"context"
	"errors"
	"time"
)

// stopGrace is for how long what is under way is followed after the process was told to stop: long enough for a bundle to
// arrive, within DefaultLease, and short enough for whoever waits for the process to end.
const stopGrace = 10 * time.Second

// NotBegun is why a decision was skipped that was still to be begun when the process was told to stop.
const NotBegun = "not begun: the process was told to stop"

// notBegun is why a decision is skipped that an error keeps from being begun; ctx is that of the run.
func notBegun(ctx context.Context, err error) string {
	if stopped := ctx.Err(); stopped != nil && (err == nil || errors.Is(err, stopped)) {
		return NotBegun
	}
	return "not begun: " + err.Error()
}

// beyond is a context that outlives the end of ctx by stopGrace at most: what was begun can be finished. It must be cancelled.
func beyond(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	unhook := context.AfterFunc(ctx, func() {
		if (SystemClock{}).Sleep(out, stopGrace) == nil {
			cancel()
		}
	})
	return out, func() {
		unhook()
		cancel()
	}
}

// vigil is the watch over something that is under way: until its deadline, and for stopGrace at most once ctx has ended.
type vigil struct {
	ctx      context.Context
	clock    Clock
	deadline time.Time // zero = none but that of a stop
	stopped  bool      // ctx has ended, and the deadline takes that into account
}

// over says whether time is up.
func (v *vigil) over() bool {
	now := v.clock.Now()
	if !v.stopped && v.ctx.Err() != nil {
		v.stopped = true
		if end := now.Add(stopGrace); v.deadline.IsZero() || end.Before(v.deadline) {
			v.deadline = end
		}
	}
	return !v.deadline.IsZero() && !now.Before(v.deadline)
}

// sleep waits between two looks. That ctx ends wakes it, and is no error.
func (v *vigil) sleep(d time.Duration) error {
	if v.stopped {
		return v.clock.Sleep(context.WithoutCancel(v.ctx), d)
	}
	if err := v.clock.Sleep(v.ctx, d); err != nil && !errors.Is(err, v.ctx.Err()) {
		return err
	}
	return nil
}

// why puts a stop before what was last seen.
func (v *vigil) why(last string) string {
	if v.stopped {
		return "the process was told to stop meanwhile; " + last
	}
	return last
}
