package control

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// start writes the records of decisions that begin together, except of those to which a rail or the hook says no. All of it is
// within one lease: the hook stores the intents, then the lock is confirmed, and what is written is decided after that.
func (r *channelRun) start(ctx context.Context, batch []*flight) {
	x := r.x
	if batch = r.allowed(ctx, r.admit(ctx, batch)); len(batch) == 0 {
		return
	}
	err := x.o.Lock.Act(ctx, inWords(&batch[0].d, len(batch)), func(lease context.Context) error {
		ready, records := r.decided(lease, batch)
		x.write(lease, ready, records) // before anything else: what it was decided by ages
		r.flights = append(r.flights, ready...)
		for _, f := range batch {
			if f.refused != "" {
				if ctx.Err() != nil {
					f.refused = NotBegun
				}
				r.skip(f, f.refused)
			}
		}
		return nil
	})
	if err != nil {
		r.abort(ctx, batch, err)
	}
}

// abort ends the run before decisions were begun.
func (r *channelRun) abort(ctx context.Context, batch []*flight, err error) {
	r.fail(err)
	for _, f := range batch {
		r.skip(f, notBegun(ctx, err))
	}
}

func (r *channelRun) skip(f *flight, why string) {
	r.end(Outcome{Decision: f.d, Result: Skipped, Why: why, Millis: r.x.o.Clock.Now().Sub(f.begun).Milliseconds()})
}

// admit leaves those that may be written for all that is known now.
func (r *channelRun) admit(ctx context.Context, batch []*flight) (out []*flight) {
	x := r.x
	var back []plan.Decision
	for _, f := range batch {
		_, refused, err := x.decide(ctx, f.want)
		switch {
		case err == nil && refused.IsZero():
			delete(r.doubts, f.d.Bundle)
			out = append(out, f)
		case ctx.Err() != nil:
			back = append(back, f.d) // the run ends
		case r.wait(f, refused, err):
			back = append(back, f.d)
		case err != nil:
			r.skip(f, err.Error())
		case refused.AdminREST && x.o.Admin != nil:
			x.o.Logger.Info("over admin REST instead", "bundle", f.d.Bundle, "code", refused.Code, "why", refused.Text)
			r.later = append(r.later, f.d)
		default:
			r.skip(f, coded(refused))
		}
	}
	r.queue = append(back, r.queue...)
	return out
}

// doubtPause is how soon a doubt about a bundle is looked at again.
const doubtPause = 250 * time.Millisecond

// passing are the refusals that may be over in a moment: while many records are written the topic is behind, a broker that has much
// to do answers late, and its own answer is behind the topic.
var passing = map[string]bool{ownership.TopicBehind.ID: true, ownership.TopicBlind.ID: true, ownership.NotAsked.ID: true, ownership.Disagree.ID: true,
	ownership.SilentBroker.ID: true}

// wait says whether a decision is looked at again later.
func (r *channelRun) wait(f *flight, refused ownership.Refusal, err error) bool {
	if err == nil && !passing[refused.Code] {
		return false
	}
	now := r.x.o.Clock.Now()
	d, doubted := r.doubts[f.d.Bundle]
	if !doubted {
		d.since = now
	}
	if now.Sub(d.since) >= r.x.o.Limits.Seen {
		return false
	}
	d.next = now.Add(doubtPause)
	if refused.Code == ownership.TopicBehind.ID {
		d.next = now.Add(r.x.o.Limits.Poll)
	}
	r.doubts[f.d.Bundle] = d
	return true
}

// allowed asks the hook before decisions are carried out.
func (r *channelRun) allowed(ctx context.Context, batch []*flight) []*flight {
	if len(batch) == 0 || r.h.Begin == nil {
		return batch
	}
	ds := make([]plan.Decision, len(batch))
	for i, f := range batch {
		ds[i] = f.d
	}
	why, err := r.h.Begin(ctx, ds)
	if err != nil {
		r.abort(ctx, batch, err)
		return nil
	}
	var out []*flight
	for i, f := range batch {
		if i < len(why) && why[i] != "" {
			r.end(Outcome{Decision: f.d, Result: Skipped, Why: why[i]})
			continue
		}
		out = append(out, f)
	}
	return out
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

// decided is which of the bundles are written for, and the records. The hook took its time, and so did the lock: what is written is
// decided right before it is. When deciding takes long, because brokers were asked again, it is decided once more.
func (r *channelRun) decided(ctx context.Context, batch []*flight) (ready []*flight, records []event.ServiceUnitStateData) {
	x, begun := r.x, r.x.o.Clock.Now()
	for again := 0; ; {
		pass, behind := x.o.Clock.Now(), false
		ready, records = ready[:0], records[:0]
		for _, f := range batch {
			record, refused, err := x.decide(ctx, f.want)
			f.refused = ""
			switch {
			case err != nil:
				f.refused = err.Error()
			case !refused.IsZero():
				f.refused = coded(refused)
				behind = behind || refused.Code == ownership.TopicBehind.ID
			default:
				ready, records = append(ready, f), append(records, record)
			}
		}
		now, err := x.o.Clock.Now(), ctx.Err()
		switch {
		case err != nil:
		case behind && now.Sub(begun) < x.o.Limits.Seen:
			err = x.o.Clock.Sleep(ctx, x.o.Limits.Poll)
		case now.Sub(pass) > factAge && again < 2:
			again++
		default:
			return ready, records
		}
		if err != nil {
			for _, f := range ready {
				f.refused = "it could not be written within the lease: " + err.Error()
			}
			return nil, nil
		}
	}
}

// writeLimit bounds one write, of one record or of many. The rails hold for records that land soon after they were decided.
const writeLimit = 1500 * time.Millisecond

// write publishes the records of bundles. They are followed from before they are sent, as they may be read back before the send
// returns. Within the lease of ctx it is not broken off when the process is told to stop.
func (x *Channel) write(ctx context.Context, batch []*flight, records []event.ServiceUnitStateData) {
	if len(batch) == 0 {
		return
	}
	now := x.o.Clock.Now()
	x.mu.Lock()
	for i, f := range batch {
		f.attempt, f.written = ownership.Follow(f.want, records[i]), now
		x.flying[f.d.Bundle] = f
	}
	x.mu.Unlock()
	limit := writeLimit
	if end, ok := ctx.Deadline(); ok {
		limit = min(limit, time.Until(end))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for i, err := range x.publish(ctx, batch, records) {
		batch[i].fault = err
	}
}

func (x *Channel) publish(ctx context.Context, batch []*flight, records []event.ServiceUnitStateData) []error {
	errs := make([]error, len(batch))
	all := func(err error) []error {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	if x.pub == nil {
		pub, err := x.open(ctx)
		if err != nil {
			return all(err)
		}
		x.pub = pub
	}
	events := make([]topics.Event, len(batch))
	for i, f := range batch {
		payload, err := json.Marshal(records[i])
		if err != nil {
			return all(err)
		}
		events[i] = topics.Event{Key: f.d.Bundle, Payload: payload}
	}
	return topics.PublishAll(ctx, x.pub, events)
}

func (x *Channel) open(ctx context.Context) (topics.Publisher, error) {
	o := topics.PublishOptions{}
	for i, s := range event.SchemasOf("ServiceUnitStateData") {
		schema := topics.Schema{Definition: s.Definition, Properties: s.Properties()}
		if i == 0 {
			o.Schema = schema
		} else {
			o.Alternatives = append(o.Alternatives, schema)
		}
	}
	return x.o.Log.Publisher(ctx, topics.ServiceUnitState, o)
}
