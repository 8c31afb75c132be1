package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// ChannelLimits bound what is written onto the ownership topic.
type ChannelLimits struct {
	Concurrent int           // bundles that are under way at once; at least 1
	Seen       time.Duration // from a write until it must have been read back
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
// The first bundle of a run goes alone, until its new owner says itself that it has it. Run and RunAll are for one goroutine.
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
	attempt *ownership.Attempt
	begun   time.Time
	written time.Time
	ended   time.Time // when the record that decided came
	fault   error     // of the write itself: whether it was stored is not known
	by      string    // producer of the record that decided
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
// may be asked for over admin REST alone comes last. Every decision has one outcome, also those that an error keeps from
// being begun; the first error is returned.
func (x *Channel) RunAll(ctx context.Context, ds []plan.Decision, h Hooks) error {
	r := &channelRun{x: x, h: h, queue: ds}
	for len(r.queue) > 0 || len(r.flights) > 0 {
		r.land(ctx)
		begun := r.begin(ctx) // one at a time: what has arrived meanwhile is told at once
		if len(r.flights) == 0 && (len(r.queue) == 0 || r.err != nil) {
			break
		}
		if begun {
			continue
		}
		if err := x.o.Clock.Sleep(ctx, x.o.Limits.Poll); err != nil && r.err == nil {
			r.err = err
		}
	}
	r.overAdmin(ctx)
	for _, d := range r.queue {
		r.end(Outcome{Decision: d, Result: Skipped, Why: "not begun: " + r.err.Error()})
	}
	return r.err
}

// channelRun is one call of RunAll.
type channelRun struct {
	x       *Channel
	h       Hooks
	queue   []plan.Decision
	flights []*flight
	later   []plan.Decision // for admin REST
	next    time.Time       // not before this the next one begins
	behind  time.Time       // since when the topic is not read to its end; zero = it is
	err     error
}

// errUnproven stops a run whose first write did not bring its bundle where it should be.
var errUnproven = errors.New("the first write of the run did not arrive as wanted: nothing further is written")

func (r *channelRun) end(o Outcome) {
	if r.h.End == nil {
		return
	}
	if err := r.h.End(o); err != nil && r.err == nil {
		r.err = err
	}
}

// begin begins the next decision, if there is one, and room for it. It says whether it took one.
func (r *channelRun) begin(ctx context.Context) bool {
	if r.err != nil || len(r.queue) == 0 {
		return false
	}
	room := max(r.x.o.Limits.Concurrent, 1)
	if r.h.Width != nil {
		room = min(room, max(r.h.Width(), 1))
	}
	if !r.x.proven {
		room = 1
	}
	now := r.x.o.Clock.Now()
	if len(r.flights) >= room || now.Before(r.next) {
		return false
	}
	d := r.queue[0]
	r.queue = r.queue[1:]
	if d.Action == plan.Split {
		r.later = append(r.later, d)
		return true
	}
	if r.h.Pace != nil {
		r.next = now.Add(r.h.Pace(d))
	}
	r.start(ctx, d)
	return r.behind.IsZero()
}

// start writes one record, unless a rail or the hook says no.
func (r *channelRun) start(ctx context.Context, d plan.Decision) {
	x := r.x
	f := &flight{d: d, begun: x.o.Clock.Now()}
	w := ownership.Want{Action: ownership.Action(d.Action), Bundle: d.Bundle, Source: d.Source, Destination: d.Destination}
	if w.Action == ownership.Transfer && w.Destination == "" {
		w.Action = ownership.Unload
	}
	skip := func(why string) {
		r.end(Outcome{Decision: d, Result: Skipped, Why: why, Millis: x.o.Clock.Now().Sub(f.begun).Milliseconds()})
	}
	if _, refused, err := x.decide(ctx, w); err != nil {
		skip(err.Error())
		return
	} else if r.wait(d, refused) {
		return
	} else if !refused.IsZero() {
		if refused.AdminREST && x.o.Admin != nil {
			x.o.Logger.Info("over admin REST instead", "bundle", d.Bundle, "code", refused.Code, "why", refused.Text)
			r.later = append(r.later, d)
			return
		}
		skip(coded(refused))
		return
	}
	if !r.allowed(ctx, d) {
		return
	}
	// The hook takes its time, and so does the lock: what is written is decided right before it is.
	if err := x.o.Lock.Confirm(ctx, string(w.Action)+" "+d.Bundle); err != nil {
		skip(err.Error())
		r.err = err
		return
	}
	record, refused, err := x.decide(ctx, w)
	for ; err == nil && refused.Code == ownership.TopicBehind.ID && x.o.Clock.Now().Sub(f.begun) < x.o.Limits.Seen; record, refused, err = x.decide(ctx, w) {
		if err = x.o.Clock.Sleep(ctx, x.o.Limits.Poll); err != nil {
			break
		}
	}
	switch {
	case err != nil:
		skip(err.Error())
	case !refused.IsZero():
		skip(coded(refused))
	default:
		f.attempt = ownership.Follow(w, record)
		x.write(ctx, f, record)
		r.flights = append(r.flights, f)
	}
}

// wait puts a decision back while the topic is not read to its end: while many records are written it is behind for moments.
func (r *channelRun) wait(d plan.Decision, refused ownership.Refusal) bool {
	now := r.x.o.Clock.Now()
	switch {
	case refused.Code != ownership.TopicBehind.ID:
		r.behind = time.Time{}
		return false
	case r.behind.IsZero():
		r.behind = now
	case now.Sub(r.behind) >= r.x.o.Limits.Seen:
		return false
	}
	r.queue = append([]plan.Decision{d}, r.queue...)
	r.next = now.Add(r.x.o.Limits.Poll)
	return true
}

// allowed asks the hook before a decision is carried out.
func (r *channelRun) allowed(ctx context.Context, d plan.Decision) bool {
	if r.h.Begin == nil {
		return true
	}
	why, err := r.h.Begin(ctx, d)
	if err != nil {
		r.err = err
		why = err.Error()
	}
	if why != "" {
		r.end(Outcome{Decision: d, Result: Skipped, Why: why})
	}
	return why == ""
}

func (x *Channel) decide(ctx context.Context, w ownership.Want) (event.ServiceUnitStateData, ownership.Refusal, error) {
	s, err := x.sights.of(ctx, w)
	if err != nil {
		return event.ServiceUnitStateData{}, ownership.Refusal{}, err
	}
	d, refused := ownership.Write(s, w)
	return d, refused, nil
}

func coded(r ownership.Refusal) string { return r.Text + " (" + r.Code + ")" }

// writeLimit bounds one write. The rails hold for a record that lands soon after it was decided.
const writeLimit = 1500 * time.Millisecond

// write publishes a record. It is followed from before it is sent, as it may be read back before the send returns.
func (x *Channel) write(ctx context.Context, f *flight, d event.ServiceUnitStateData) {
	x.mu.Lock()
	x.flying[f.d.Bundle] = f
	x.mu.Unlock()
	f.written = x.o.Clock.Now()
	f.fault = x.publish(ctx, f.d.Bundle, d)
}

func (x *Channel) publish(ctx context.Context, bundle string, d event.ServiceUnitStateData) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
	defer cancel()
	if x.pub == nil {
		o := topics.PublishOptions{}
		for i, s := range event.SchemasOf("ServiceUnitStateData") {
			schema := topics.Schema{Definition: s.Definition, Properties: s.Properties()}
			if i == 0 {
				o.Schema = schema
			} else {
				o.Alternatives = append(o.Alternatives, schema)
			}
		}
		pub, err := x.o.Log.Publisher(ctx, topics.ServiceUnitState, o)
		if err != nil {
			return err
		}
		x.pub = pub
	}
	payload, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = x.pub.Publish(ctx, bundle, payload)
	return err
}

// land ends the flights of which something is known, or whose time is up.
func (r *channelRun) land(ctx context.Context) {
	if len(r.flights) == 0 {
		return
	}
	// A run that is stopped still sees how far its bundles have come.
	if _, err := r.x.o.Topic.Reading(context.WithoutCancel(ctx)); err != nil {
		r.x.o.Logger.Warn("the ownership topic cannot be read", "error", err)
	}
	snapshot := r.x.o.Topic.Ownership()
	still := r.flights[:0]
	var ended []Outcome
	for _, f := range r.flights {
		record, _ := snapshot.Get(f.d.Bundle)
		if out, over := r.x.judge(ctx, f, record); over {
			ended = append(ended, out)
		} else {
			still = append(still, f)
		}
	}
	r.flights = still
	for _, out := range ended {
		if !r.x.proven && !r.prove(ctx, &out) && r.err == nil {
			r.err = errUnproven
		}
		r.end(out)
	}
}

// judge says what came of a flight, or that it is not over.
func (x *Channel) judge(ctx context.Context, f *flight, record *ownership.Record) (Outcome, bool) {
	now := x.o.Clock.Now()
	x.mu.Lock()
	defer x.mu.Unlock()
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
	case age >= x.o.Limits.Verify || ctx.Err() != nil:
		out.Result, out.Owner = TimedOut, record.Owner()
		out.Why = fmt.Sprintf("after %v the bundle is %s by %q", age.Round(time.Millisecond), record.State(), record.Assigned())
		if ctx.Err() != nil {
			out.Why = ctx.Err().Error() + ": " + out.Why
		}
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
	for deadline := x.o.Clock.Now().Add(x.o.Limits.Seen); ; {
		owns, err := x.sights.owns(ctx, out.Owner, out.Decision.Bundle)
		if owns {
			x.proven = true
			return true
		}
		if !x.o.Clock.Now().Before(deadline) || x.o.Clock.Sleep(ctx, x.o.Limits.Poll) != nil {
			out.Result = TimedOut
			out.Why = fmt.Sprintf("by the ownership topic %s owns it, and it does not say so itself within %v (%v)", out.Owner, x.o.Limits.Seen, err)
			return false
		}
	}
}

// overAdmin carries out what may not be written.
func (r *channelRun) overAdmin(ctx context.Context) {
	for _, d := range r.later {
		switch {
		case r.err != nil:
			r.end(Outcome{Decision: d, Result: Skipped, Why: "not begun: " + r.err.Error()})
		case r.x.o.Admin == nil:
			r.end(Outcome{Decision: d, Result: Skipped, Why: "it cannot be written onto the ownership topic, and there is no admin REST to ask"})
		case r.allowed(ctx, d):
			r.end(r.x.o.Admin.Run(ctx, d))
		}
	}
	r.later = nil
}
