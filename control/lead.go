package control

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/watch"
)

// leading is what a controller has of the decision log while it leads.
type leading struct {
	epoch       int64
	seq         int64 // of the newest record
	seed        uint64
	draws       int64         // plans that drew from the seed
	unseen      int           // cycles in a row that could not look at the cluster,
	unseenSince time.Time     // and when the first of them began to
	looked      time.Duration // how long the last look took; 0 = there was none
	pause       *Pause
	review      *Review
	held        []Held
	orders      map[string]json.RawMessage
	cures       watch.CureState
	clients     HarmState
	drain       draining
	elector     *Elector
	beat        time.Time // when the lock was last confirmed for its own sake
}

// Held is a decision whose request an earlier leader may have sent: nothing is done with its bundle until the request has
// had an effect, or cannot have one any more.
type Held struct {
	Decision plan.Decision `json:"decision"`
	Of       string        `json:"of"`    // key of the intent
	Cycle    int64         `json:"cycle"` // that planned it
	Made     int64         `json:"made"`  // Unix ms when it was planned
	Until    int64         `json:"until"` // Unix ms
}

// EarlierRequest holds a decision back.
var EarlierRequest = plan.Code{ID: "EARLIER_REQUEST", Template: "an earlier leader's request about the bundle may still have an effect"}

// lead writes the first record of an epoch.
func (c *Controller) lead(ctx context.Context, epoch int64) (key string, err error) {
	c.fresh()
	c.epoch = epoch
	r := c.record(KindLeader, 0)
	r.Leader = &Leadership{What: Leads}
	return c.append(ctx, r)
}

// end writes the last one.
func (c *Controller) end(ctx context.Context, what, why string) error {
	if c.epoch == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeLimit)
	defer cancel()
	r := c.record(KindLeader, c.n)
	r.Leader = &Leadership{What: what, Why: why}
	_, err := c.append(ctx, r)
	c.epoch = 0
	return err
}

// restore goes on with what the leader before left: the cycles' numbers, the states of strategy and guard, pause and review.
func (c *Controller) restore(ctx context.Context, e *Elector) error {
	h := e.past
	c.elector, c.n = e, h.Cycle
	m := h.memory
	if m == nil {
		return nil
	}
	c.seed, c.draws, c.pause, c.review, c.held, c.cures, c.clients = m.Seed, m.Draws, m.Pause, m.Review, m.Held, m.Cures, m.Clients
	if m.Orders != nil {
		c.orders = m.Orders
	}
	why := ""
	switch {
	case m.TooLarge > 0:
		why = fmt.Sprintf("it was too large to be kept: %d bytes", m.TooLarge)
	case m.Strategy != c.o.Strategy:
		why = fmt.Sprintf("it belongs to %s, this leader plans with %s", m.Strategy, c.o.Strategy)
	default:
		state := c.o.Manager.NewState()
		if state != nil {
			if err := json.Unmarshal(m.State, state); err != nil {
				why = err.Error()
				break
			}
		}
		c.state = state
	}
	if st, err := guard.DecodeState(m.Guard); err == nil {
		c.guard = st
	} else if why == "" {
		why = "the guard's: " + err.Error()
	}
	c.heedDrains()
	if why == "" {
		return nil
	}
	c.o.Logger.Warn("the state of the leader before is not used", "why", why)
	r := c.record(KindLeader, c.n)
	r.Leader = &Leadership{What: Leads, After: c.epoch - 1, Memory: why}
	_, err := c.append(ctx, r)
	return err
}

// inherit settles what earlier leaders began: each intent without an outcome gets one.
func (c *Controller) inherit(ctx context.Context) error {
	h := c.elector.past
	for _, o := range h.open {
		r, d := o.record, *o.record.Decision
		cy := &Cycle{N: r.Cycle, Mode: c.o.Mode}
		out, settled := c.found(ctx, d)
		if !settled {
			until := c.o.Clock.Now().Add(time.Duration(r.Limit) * time.Millisecond)
			out.Result = Unknown
			out.Why = fmt.Sprintf("%s; the request of epoch %d may have an effect until %s", out.Why, r.Epoch, clockTime(until.UnixMilli()))
			made := r.At
			if h.batch.cycle == r.Cycle {
				made = h.batch.at
			}
			c.held = append(c.held, Held{Decision: d, Of: o.key, Cycle: r.Cycle, Made: made, Until: until.UnixMilli()})
		}
		if err := c.conclude(ctx, cy, o.key, out); err != nil {
			return err
		}
	}
	return nil
}

// goOn carries out what is left of the plan that the leader before was carrying out, then waits until that one would have
// made its next cycle.
func (c *Controller) goOn(ctx context.Context, interval time.Duration) error {
	b := c.elector.past.batch
	cy := &Cycle{N: b.cycle, At: b.at, Mode: c.o.Mode}
	err := c.act(ctx, cy, b.at, slices.Clone(b.left))
	c.o.Metrics.acted(cy.Outcomes)
	if err != nil {
		return err
	}
	next := time.UnixMilli(c.elector.past.planned).Add(interval)
	return c.idle(ctx, min(next.Sub(c.o.Clock.Now()), interval))
}

// found is what came of an earlier leader's intent, as far as the owner of the bundle tells.
func (c *Controller) found(ctx context.Context, d plan.Decision) (Outcome, bool) {
	out := Outcome{Decision: d, Inherited: true}
	o, err := c.o.Viewer.Owner(ctx, d.Bundle)
	out.Owner = o.Owner
	switch {
	case err != nil:
		out.Why = err.Error()
		return out, false
	case o.State == event.Owned && o.Owner == d.Source:
		out.Why = fmt.Sprintf("%s still owns it", d.Source)
		return out, false
	case d.Action == plan.Split && o.State == event.Owned:
		out.Result, out.Why = Failed, fmt.Sprintf("%s owns it, undivided", o.Owner)
	case d.Action == plan.Split:
		out.Result = Done // a bundle that was split is nobody's
		return out, !ownership.InFlight(o.State)
	case o.State == event.Owned && (d.Destination == "" || o.Owner == d.Destination):
		out.Result = Done
	case o.State == event.Owned:
		out.Result, out.Why = Elsewhere, fmt.Sprintf("%s owns it, not %s", o.Owner, d.Destination)
	case d.Destination == "" && (o.State == event.Free || o.State == event.Init):
		out.Result = Done
	default:
		out.Why = fmt.Sprintf("the bundle is %s by %q", o.State, o.Owner)
		return out, false
	}
	return out, true
}

// settleHeld looks at the held decisions: what had an effect is concluded; what cannot have one any more is carried out now,
// as the plan that it belongs to would have been.
func (c *Controller) settleHeld(ctx context.Context) error {
	for _, h := range slices.Clone(c.held) {
		cy := &Cycle{N: h.Cycle, At: h.Made, Mode: c.o.Mode}
		out, settled := c.found(ctx, h.Decision)
		if !settled && c.o.Clock.Now().UnixMilli() < h.Until {
			continue
		}
		c.release(h)
		var err error
		switch why := c.halted(h.Decision, h.Made); {
		case settled:
			err = c.conclude(ctx, cy, h.Of, out)
		case why != "":
			err = c.conclude(ctx, cy, h.Of, Outcome{Decision: h.Decision, Result: Skipped, Why: why, Inherited: true})
		case cured(h.Decision): // the back-off decides when it is tried again
			why := "the earlier leader's request did not help; it is not repeated before the back-off is over"
			err = c.conclude(ctx, cy, h.Of, Outcome{Decision: h.Decision, Result: Skipped, Why: why, Inherited: true})
		default:
			err = c.carryOut(ctx, cy, h.Decision)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) release(h Held) {
	c.held = slices.DeleteFunc(slices.Clone(c.held), func(o Held) bool { return o.Of == h.Of })
}

// restrict holds back what may not run though the guard lets it through.
func (c *Controller) restrict(cy *Cycle) {
	full := c.full(cy)
	c.hold(cy, func(d plan.Decision) (plan.Reason, bool) {
		for _, h := range c.held {
			if h.Decision.Bundle == d.Bundle {
				return EarlierRequest.Because(), true
			}
		}
		for _, cure := range cy.Cures {
			if cure.Bundle == d.Bundle {
				return BeingCured.Because(), true
			}
		}
		if full(d) {
			return CycleFull.Because(plan.N("limit", maxDecisions), plan.N("bytes", maxDecided)), true
		}
		return plan.Reason{}, false
	})
}

func (c *Controller) hold(cy *Cycle, why func(plan.Decision) (plan.Reason, bool)) {
	var run []plan.Decision
	for _, d := range cy.Verdict.Run {
		if reason, held := why(d); held {
			cy.Verdict.Refused = append(cy.Verdict.Refused, guard.Refusal{Decision: d, Why: reason})
			continue
		}
		run = append(run, d)
	}
	cy.Verdict.Run = run
}

// prunedAtOnce is how many records a leader removes after one cycle.
const prunedAtOnce = 200

// prune removes the oldest records of the decision log beyond the retention.
func (c *Controller) prune(ctx context.Context) error {
	j, ok := c.o.Journal.(interface {
		Delete(ctx context.Context, key string) error
	})
	if !ok || c.elector == nil || c.o.Retention == (Retention{}) {
		return nil
	}
	if err := c.elector.Follow(ctx); err != nil {
		return stepDown(ctx, err)
	}
	for _, key := range c.elector.past.Excess(c.o.Clock.Now().UnixMilli(), c.o.Retention, prunedAtOnce) {
		if err := j.Delete(ctx, key); err != nil {
			return stepDown(ctx, err)
		}
	}
	return nil
}

// stepDown is the error of a leader that cannot use its own topics.
func stepDown(ctx context.Context, err error) error {
	if ends(ctx, err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrStepDown, err)
}
