package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Destinations is what a cluster makes of the destination of an unload.
type Destinations string

// What clusters make of it. A cluster with the Extensible load manager is bound by it.
const (
	// Hinted: the destination is a hint that the next assignment takes, unless another one is faster (Modular; 21 of 25 moves of
	// Pulsar 4.2.4 ended where they should).
	Hinted Destinations = "hint"
	// Ignored: the cluster places by itself (Simple; 1 of 10 ended there, by chance).
	Ignored Destinations = "ignored"
)

// Landings counts where unloaded bundles ended.
type Landings struct {
	Requests  int64 // unload requests that were carried out
	Honoured  int64 // the bundle went to the wanted broker
	Elsewhere int64 // it went to a third one
	Back      int64 // it came back to where it was
	Nowhere   int64 // nobody has asked for it since
}

// Coaxer carries decisions out on a cluster that does not bind itself to destinations. It verifies the owner with the brokers
// and asks again, up to a limit, when a bundle did not go where it should: on Modular clusters also when a third broker got
// it, as long as the destination is still right; on Simple ones only when the bundle came back, for there another request
// would be another draw, and a bundle that has left is not to bounce.
type Coaxer struct {
	x            *Executor
	destinations Destinations
	attempts     int

	mu    sync.Mutex
	count Landings
}

// coaxRest is the time between a bundle's arrival and the next request about it. Its clients are just coming back: one whose topic
// closes again within a moment may stay away (seen of a consumer of pulsar-client-go v0.19.0 that was closed again 150 ms after it
// had come back: it never did a second time, while its producer did).
const coaxRest = 3 * time.Second

// NewCoaxer makes one that asks at most attempts times for one decision.
func NewCoaxer(c Cluster, o Owners, clock Clock, l ExecLimits, d Destinations, attempts int) *Coaxer {
	return &Coaxer{x: NewExecutor(c, o, clock, l), destinations: d, attempts: max(attempts, 1)}
}

// Landings are the counts so far.
func (c *Coaxer) Landings() Landings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count
}

// Run carries one decision out.
func (c *Coaxer) Run(ctx context.Context, d plan.Decision) Outcome {
	if d.Action == plan.Split {
		return c.x.Run(ctx, d)
	}
	start := c.x.clock.Now()
	out := c.run(ctx, d)
	out.Decision, out.Millis = d, c.x.clock.Now().Sub(start).Milliseconds()
	return out
}

func (c *Coaxer) run(ctx context.Context, d plan.Decision) Outcome {
	why := c.x.changed(ctx, d)
	if ctx.Err() != nil {
		why = NotBegun
	}
	if why != "" {
		return Outcome{Result: Skipped, Why: why}
	}
	destination := d.Destination
	if c.destinations == Ignored {
		destination = ""
	}
	out := c.once(ctx, d, destination)
	out.Attempts = 1
	for out.Attempts < c.attempts && c.again(ctx, d, out) {
		if c.x.clock.Sleep(ctx, coaxRest) != nil {
			break // stopped: what came of the request before stands
		}
		next := c.once(ctx, d, destination)
		next.Attempts = out.Attempts + 1
		if next.Result == Skipped || next.Result == Refused { // what came of the request before stands
			out.Why += "; asking again: " + next.Why
			break
		}
		out = next
	}
	return out
}

// again says whether it makes sense to ask once more.
func (c *Coaxer) again(ctx context.Context, d plan.Decision, out Outcome) bool {
	if out.Result != Elsewhere && out.Result != Failed || out.Owner == "" || ctx.Err() != nil {
		return false
	}
	if c.destinations == Ignored || d.Destination == "" {
		return out.Owner == d.Source
	}
	brokers, err := c.x.cluster.Brokers(ctx)
	if err != nil {
		return false
	}
	for i := range brokers {
		if brokers[i].ID == d.Destination {
			return brokers[i].Version != "" // it answers
		}
	}
	return false
}

// once asks for the unload and looks where the bundle went.
func (c *Coaxer) once(ctx context.Context, d plan.Decision, destination string) Outcome {
	going, end := beyond(ctx)
	defer end()
	request, cancel := context.WithTimeout(going, c.x.limits.Request)
	err := c.x.cluster.Unload(request, d.Bundle, destination)
	cancel()
	switch {
	case errors.Is(err, ErrNotHolder):
		return Outcome{Result: Skipped, Why: err.Error()}
	case err != nil && refused(err):
		return Outcome{Result: Refused, Why: err.Error()}
	}
	out := c.landed(ctx, going, d, err == nil)
	if err != nil && out.Result != Done {
		out.Why = fmt.Sprintf("%v; %s", err, out.Why)
		if out.Result == TimedOut {
			out.Result = Failed
		}
	}
	c.tally(d, out, err == nil)
	return out
}

// landed waits until somebody owns the bundle. When the unload is known to be done its owner is a new one, also if that is the
// old one; until then only another one shows that anything happened.
func (c *Coaxer) landed(ctx, going context.Context, d plan.Decision, unloaded bool) Outcome {
	begun := c.x.clock.Now()
	v := vigil{ctx: ctx, clock: c.x.clock, deadline: begun.Add(c.x.limits.Verify)}
	for {
		o, err := c.x.owner(going, d.Bundle, d.Destination, d.Source)
		last := fmt.Sprintf("the bundle is %s by %q", o.State, o.Owner)
		switch {
		case err != nil:
			last = err.Error()
		case o.State != event.Owned:
			last = "nobody owns the bundle"
		case o.Owner == d.Source && unloaded:
			return Outcome{Result: Failed, Owner: o.Owner, Why: "the cluster gave it back to " + o.Owner}
		case o.Owner == d.Source:
		case d.Destination == "" || o.Owner == d.Destination:
			return Outcome{Result: Done, Owner: o.Owner}
		default:
			return Outcome{Result: Elsewhere, Owner: o.Owner, Why: fmt.Sprintf("%s owns it, not %s", o.Owner, d.Destination)}
		}
		if v.over() {
			waited := c.x.clock.Now().Sub(begun).Round(time.Millisecond)
			if err == nil && o.State != event.Owned && unloaded {
				return Outcome{Result: Done, Why: fmt.Sprintf("released; nobody has asked for it in %v", waited)}
			}
			return Outcome{Result: TimedOut, Owner: o.Owner, Why: v.why(fmt.Sprintf("after %v %s", waited, last))}
		}
		if err := v.sleep(min(c.x.limits.Poll, v.deadline.Sub(c.x.clock.Now()))); err != nil {
			return Outcome{Result: TimedOut, Owner: o.Owner, Why: err.Error()}
		}
	}
}

func (c *Coaxer) tally(d plan.Decision, out Outcome, unloaded bool) {
	if !unloaded {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count.Requests++
	switch {
	case out.Owner == "":
		c.count.Nowhere++
	case out.Owner == d.Source:
		c.count.Back++
	case d.Destination == "" || out.Owner != d.Destination:
		c.count.Elsewhere++
	default:
		c.count.Honoured++
	}
}

var _ Actor = (*Coaxer)(nil)

// ReportPoll is how often the brokers are asked who owns a bundle whose move is verified.
const ReportPoll = 200 * time.Millisecond
