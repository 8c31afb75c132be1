package control

import (
	"context"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/ownership"
)

// land ends the flights of which something is known, or whose time is up.
func (r *channelRun) land(ctx context.Context) {
	if len(r.flights) == 0 {
		return
	}
	// A run that is stopped still sees how far its bundles have come.
	if _, err := r.x.o.Topic.Reading(context.WithoutCancel(ctx)); err != nil {
		r.x.o.Logger.Warn("the ownership topic cannot be read", "error", err)
	}
	over := r.vigil.over()
	r.x.mu.Lock() // the snapshot is no older than the last record that was seen
	snapshot := r.x.o.Topic.Ownership()
	still := r.flights[:0]
	var ended []Outcome
	for _, f := range r.flights {
		record, _ := snapshot.Get(f.d.Bundle)
		if out, over := r.judge(f, record, over); over {
			ended = append(ended, out)
		} else {
			still = append(still, f)
		}
	}
	r.x.mu.Unlock()
	r.flights = still
	for _, out := range ended {
		if !r.x.proven && !r.prove(ctx, &out) {
			r.fail(errUnproven)
		}
		r.end(out)
	}
}

// judge says what came of a flight, or that it is not over. When time is up it is. The channel's lock is held.
func (r *channelRun) judge(f *flight, record *ownership.Record, timeUp bool) (Outcome, bool) {
	x := r.x
	now := x.o.Clock.Now()
	f.attempt.Check(record)
	if !f.ended.IsZero() {
		now = f.ended
	}
	out := Outcome{Decision: f.d, Owner: f.attempt.Owner, Attempts: 1, Millis: now.Sub(f.begun).Milliseconds()}
	who := f.attempt.By
	if f.by != "" {
		who += ", written by " + f.by
	}
	switch p, age := f.attempt.Progress, now.Sub(f.written); {
	case p == ownership.Settled:
		out.Result = Done
	case p == ownership.Beaten:
		out.Result, out.Why = Lost, "another record came first: "+who
	case p == ownership.Diverted:
		out.Result, out.Why = Elsewhere, "ours was accepted, then came "+who
	case p == ownership.Unseen && age >= x.o.Limits.Seen && f.fault != nil:
		out.Result, out.Why = Failed, fmt.Sprintf("the write failed and was not seen within %v: %v", x.o.Limits.Seen, f.fault)
	case p == ownership.Unseen && age >= x.o.Limits.Seen:
		out.Result, out.Why = TimedOut, fmt.Sprintf("the record was not read back within %v", x.o.Limits.Seen)
	case age >= x.o.Limits.Verify || timeUp:
		out.Result, out.Owner = TimedOut, record.Owner()
		out.Why = r.vigil.why(fmt.Sprintf("after %v the bundle is %s by %q", age.Round(time.Millisecond), record.State(), record.Assigned()))
	default:
		return Outcome{}, false
	}
	delete(x.flying, f.d.Bundle)
	return out, true
}

// prove looks at the first bundle of a run: its new owner itself must say that it has it. A race that was lost proves
// nothing, and the next bundle goes alone as well.
func (r *channelRun) prove(ctx context.Context, out *Outcome) bool {
	x := r.x
	if out.Result == Lost {
		return true
	}
	if out.Result != Done {
		return false
	}
	if out.Owner == "" { // set free: there is no owner to ask
		x.proven = true
		return true
	}
	going, end := beyond(ctx)
	defer end()
	for v := (vigil{ctx: ctx, clock: x.o.Clock, deadline: x.o.Clock.Now().Add(x.o.Limits.Seen)}); ; {
		owns, err := x.sights.owns(going, out.Owner, out.Decision.Bundle)
		if owns {
			x.proven = true
			return true
		}
		if v.over() || v.sleep(x.o.Limits.Poll) != nil {
			out.Result = TimedOut
			out.Why = v.why(fmt.Sprintf("by the ownership topic %s owns it, and it does not say so itself within %v (%v)", out.Owner, x.o.Limits.Seen, err))
			return false
		}
	}
}

// overAdmin carries out what may not be written.
func (r *channelRun) overAdmin(ctx context.Context) {
	for _, d := range r.later {
		r.fail(ctx.Err())
		f := &flight{d: d, begun: r.x.o.Clock.Now()}
		switch {
		case r.err != nil:
			r.skip(f, notBegun(ctx, r.err))
		case r.x.o.Admin == nil:
			r.skip(f, "it cannot be written onto the ownership topic, and there is no admin REST to ask")
		case len(r.allowed(ctx, []*flight{f})) > 0:
			r.end(r.x.o.Admin.Run(ctx, d))
		}
	}
	r.later = nil
}
