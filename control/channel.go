package control

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// ChannelLimits bound what is written onto the ownership topic.
type ChannelLimits struct {
	Concurrent int           // bundles that are under way at once; at least 1
	Seen       time.Duration // from a write until it must have been read back; also for how long a doubt may last before it is a refusal
	Verify     time.Duration // from a write until the bundle must have arrived
	Poll       time.Duration // between two looks
}

// ChannelOptions are what a Channel is made of.
type ChannelOptions struct {
	Cluster Cluster // only asked
	Topic   OwnershipTopic
	Log     topics.Log
	Lock    *Lock
	Clock   Clock
	Limits  ChannelLimits
	Admin   Actor // carries out splits, and what may be asked for over admin REST alone; nil = these are skipped
	Logger  *slog.Logger
}

// Channel carries transfers, unloads and placements out by writing records onto the ownership topic, which brokers obey. What may
// be written is decided by ownership.Write for each record anew; what came of it is what the fold of the topic then accepts.
// The first bundle goes alone, until its new owner says itself that it has it; then as many begin together as there is room for.
// Run and RunAll are for one goroutine.
type Channel struct {
	o      ChannelOptions
	sights *sights
	pub    topics.Publisher
	proven bool // a first bundle has arrived

	mu     sync.Mutex
	flying map[string]*flight // by bundle
}

// flight is a bundle that is under way.
type flight struct {
	d       plan.Decision
	want    ownership.Want
	attempt *ownership.Attempt
	begun   time.Time
	written time.Time
	ended   time.Time // when the record that decided came
	fault   error     // of the write itself: whether it was stored is not known
	by      string    // producer of the record that decided
	refused string    // why it is not written after all, "" if it is
}

// NewChannel makes a Channel. Close ends it.
func NewChannel(o ChannelOptions) *Channel {
	x := &Channel{o: o, sights: newSights(o.Cluster, o.Topic, o.Clock), flying: map[string]*flight{}}
	o.Topic.Watch(x.see)
	return x
}

// see tells the bundle's flight of a record.
func (x *Channel) see(e OwnershipEvent) {
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.flying[e.Bundle]
	if f == nil || f.attempt.Progress.Final() {
		return
	}
	if f.attempt.See(e.Outcome); f.attempt.Progress.Final() {
		f.by, f.ended = e.Producer, e.At
	}
}

// Close closes the producer.
func (x *Channel) Close() error {
	if x.pub == nil {
		return nil
	}
	return x.pub.Close()
}

// Run carries one decision out.
func (x *Channel) Run(ctx context.Context, d plan.Decision) Outcome {
	var out Outcome
	err := x.RunAll(ctx, []plan.Decision{d}, Hooks{End: func(o Outcome) error { out = o; return nil }})
	if err != nil && out.Result == "" {
		out = Outcome{Decision: d, Result: Skipped, Why: err.Error()}
	}
	return out
}

// RunAll carries decisions out in their order, as many at once as the limits allow. What is refused is skipped with the reason; what
// may be asked for over admin REST alone comes last. Every decision has one outcome, also those that an error, or the end of ctx,
// keeps from being begun; the first error is returned. What is under way when ctx ends is followed for stopGrace.
func (x *Channel) RunAll(ctx context.Context, ds []plan.Decision, h Hooks) error {
	r := &channelRun{x: x, h: h, queue: ds, doubts: map[string]doubt{}, vigil: vigil{ctx: ctx, clock: x.o.Clock}}
	for len(r.queue) > 0 || len(r.flights) > 0 {
		r.fail(ctx.Err())
		r.land(ctx)
		before := len(r.queue)
		r.begin(ctx)
		if len(r.flights) == 0 && (len(r.queue) == 0 || r.err != nil) {
			break
		}
		if len(r.queue) < before {
			continue // what has arrived meanwhile is told at once
		}
		if err := r.vigil.sleep(x.o.Limits.Poll); err != nil {
			r.fail(err)
			r.vigil.deadline = x.o.Clock.Now() // nothing can be waited for
		}
	}
	r.overAdmin(ctx)
	for _, d := range r.queue {
		r.end(Outcome{Decision: d, Result: Skipped, Why: notBegun(ctx, r.err)})
	}
	return r.err
}

// channelRun is one call of RunAll.
type channelRun struct {
	x       *Channel
	h       Hooks
	queue   []plan.Decision
	flights []*flight
	later   []plan.Decision  // for admin REST
	next    time.Time        // not before this the next one begins
	doubts  map[string]doubt // by bundle: what may be otherwise in a moment
	vigil   vigil            // over what is under way
	err     error
}

// doubt is that a bundle could not be decided about.
type doubt struct {
	since time.Time // when it came up first
	next  time.Time // not before this it is looked at again
}

// errUnproven stops a run whose first write did not bring its bundle where it should be.
var errUnproven = errors.New("the first write of the run did not arrive as wanted: nothing further is written")

func (r *channelRun) end(o Outcome) {
	if r.h.End != nil {
		r.fail(r.h.End(o))
	}
}

// fail ends the run by an error, unless one has already: nothing further is begun. That the leadership has ended is told beside
// whatever ended the run before.
func (r *channelRun) fail(err error) {
	switch {
	case r.err == nil:
		r.err = err
	case leaderless(err) && !leaderless(r.err):
		r.err = errors.Join(r.err, err)
	}
}

// begin begins what there is room for.
func (r *channelRun) begin(ctx context.Context) {
	now := r.x.o.Clock.Now()
	if r.err != nil || len(r.queue) == 0 || now.Before(r.next) {
		return
	}
	room := max(r.x.o.Limits.Concurrent, 1)
	if r.h.Width != nil {
		room = min(room, max(r.h.Width(), 1))
	}
	if !r.x.proven {
		room = 1
	}
	if batch := r.take(now, room-len(r.flights)); len(batch) > 0 {
		r.start(ctx, batch)
	}
}

// take takes decisions out of the queue that may begin together: of different bundles, and only one when the next has to wait for
// it. What may only be asked for over admin REST is put aside.
func (r *channelRun) take(now time.Time, room int) (batch []*flight) {
	var left []plan.Decision
	taken, full := map[string]bool{}, false
	for _, d := range r.queue {
		switch {
		case d.Action == plan.Split:
			r.later = append(r.later, d)
			continue
		case full || len(batch) >= room || taken[d.Bundle] || now.Before(r.doubts[d.Bundle].next):
			left = append(left, d)
			continue
		}
		w := ownership.Want{Action: ownership.Action(d.Action), Bundle: d.Bundle, Source: d.Source, Destination: d.Destination}
		if w.Action == ownership.Transfer && w.Destination == "" {
			w.Action = ownership.Unload
		}
		batch = append(batch, &flight{d: d, want: w, begun: now})
		taken[d.Bundle] = true
		if r.h.Pace != nil {
			if pace := r.h.Pace(d); pace > 0 {
				r.next, full = now.Add(pace), true
			}
		}
	}
	r.queue = left
	return batch
}
