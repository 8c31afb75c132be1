package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// confirm confirms the lock where there is one.
func (c *Controller) confirm(ctx context.Context, what string) error {
	if c.o.Mode != Govern || c.o.Lock == nil {
		return nil
	}
	return c.o.Lock.Confirm(ctx, what)
}

// act carries out what the guard let through of a plan made, or approved, at a time (Unix ms). Every decision ends with a
// record of what came of it, also if it is not tried.
func (c *Controller) act(ctx context.Context, cy *Cycle, made int64, run []plan.Decision) error {
	if together, ok := c.o.Executor.(Together); ok {
		// A first write that did not arrive ends this plan, and the next cycle plans anew.
		return c.survive(ctx, fmt.Sprintf("the plan of cycle %d", cy.N), c.actTogether(ctx, cy, made, run, together))
	}
	for i, d := range run {
		err := c.actOn(ctx, cy, made, d)
		if pause := c.o.Limits.Pause(d); err == nil && pause > 0 && i < len(run)-1 {
			err = c.rest(ctx, time.Duration(pause)*time.Millisecond, c.interrupt)
		}
		if err != nil {
			return c.abandon(ctx, cy, run[i+1:], err)
		}
	}
	return nil
}

// actOn carries one decision out, unless something speaks against it by now.
func (c *Controller) actOn(ctx context.Context, cy *Cycle, made int64, d plan.Decision) error {
	if err := c.interrupt(ctx); err != nil {
		return c.abandon(ctx, cy, []plan.Decision{d}, err)
	}
	if why := c.halted(d, made); why != "" {
		return c.skip(ctx, cy, d, "", why)
	}
	return c.carryOut(ctx, cy, d)
}

// abandon ends what is left of a plan when an error ends its run. Only a process that was told to stop says so of each: who has
// lost the lock leaves them to the next leader.
func (c *Controller) abandon(ctx context.Context, cy *Cycle, left []plan.Decision, err error) error {
	if ctx.Err() == nil || leaderless(err) {
		return err
	}
	for _, d := range left {
		if written := c.skip(ctx, cy, d, "", NotBegun); written != nil {
			return errors.Join(err, written)
		}
	}
	return err
}

// clocksApart is how far the clocks of two processes may be apart for what one of them planned to be carried out by the other.
const clocksApart = 5 * time.Second

// halted says why a decision of a plan made at a time may not be begun now, "" if it may. What an operator orders is done
// during a pause, too, but not while moves that ended badly hold everything; cures are neither counted nor held by that.
func (c *Controller) halted(d plan.Decision, made int64) string {
	if c.pause != nil && !guard.Ordered(d) {
		return "paused: " + c.pause.Reason
	}
	if d.Why.Code == drain.Leaves.ID && !c.stands(d.Source) {
		return fmt.Sprintf(drainEnded, d.Source)
	}
	now := c.o.Clock.Now()
	if why := guard.Held(c.guard, now.UnixMilli(), c.o.Limits); why.Code != "" && !cured(d) {
		return why.Code + ": " + why.Text
	}
	// Requests that hang must not let a cycle act on a picture from long ago. What comes from the future was planned by another
	// clock: how old it is cannot be told.
	switch age := now.Sub(time.UnixMilli(made)); {
	case c.o.PlanLife <= 0:
	case age > c.o.PlanLife:
		return fmt.Sprintf("the plan is %v old, the limit is %v", age, c.o.PlanLife)
	case age < -clocksApart:
		return fmt.Sprintf("the plan was made %v from now by the clock of another process: how old it is cannot be told", -age)
	}
	return ""
}

// skip records that a decision was not tried. of is the record that it was to follow, "" for none.
func (c *Controller) skip(ctx context.Context, cy *Cycle, d plan.Decision, of, why string) error {
	return c.conclude(ctx, cy, of, Outcome{Decision: d, Result: Skipped, Why: why})
}

// carryOut does one thing.
func (c *Controller) carryOut(ctx context.Context, cy *Cycle, d plan.Decision) error {
	key, err := c.begin(ctx, cy, d)
	if err != nil {
		return err
	}
	return c.ended(ctx, cy, key, c.o.Executor.Run(ctx, d))
}

// begin stores the intent, then confirms the lock; only then may it be asked for. In this order a next leader, which reads
// the log after it took the lock, knows of everything that may have been asked for. It returns the key of the intent.
func (c *Controller) begin(ctx context.Context, cy *Cycle, d plan.Decision) (key string, err error) {
	if err := ctx.Err(); err != nil {
		return "", c.abandon(ctx, cy, []plan.Decision{d}, err)
	}
	intents := []Record{c.intent(cy, d)}
	if err := c.appendAll(ctx, intents); err != nil {
		return "", err
	}
	key = intents[0].Key()
	err = c.confirm(ctx, inWords(&d, 1))
	switch {
	case err == nil:
		return key, nil
	case errors.Is(err, ErrNotHolder):
		_ = c.tell(ctx, cy, key, Outcome{Decision: d, Result: Skipped, Why: err.Error()}) // it logs its error
	default: // this process was told to stop
		if written := c.skip(ctx, cy, d, key, notBegun(ctx, err)); written != nil {
			return "", written
		}
	}
	return "", fmt.Errorf("cycle %d stopped before %s: %w", cy.N, d.Bundle, err)
}

// intent is the record of what is about to be done.
func (c *Controller) intent(cy *Cycle, d plan.Decision) Record {
	r := c.record(KindIntent, cy.N)
	r.Decision = &d
	if c.o.Lock != nil {
		r.Limit = c.o.Lock.lease().Milliseconds()
	}
	return r
}

// ended is told what came of an intent. Who has lost the lock meanwhile stops.
func (c *Controller) ended(ctx context.Context, cy *Cycle, key string, out Outcome) error {
	if c.o.Lock != nil {
		if err := c.o.Lock.Held(); err != nil {
			err = fmt.Errorf("cycle %d stopped at %s: %w", cy.N, out.Decision.Bundle, err)
			return errors.Join(err, c.tell(ctx, cy, key, out))
		}
	}
	return c.conclude(ctx, cy, key, out)
}

// outcomeLimit bounds the writing of an outcome after the run was stopped.
const outcomeLimit = 5 * time.Second

// conclude learns from an outcome and writes it down, also when ctx has ended meanwhile: an intent must not stand without
// what came of it.
func (c *Controller) conclude(ctx context.Context, cy *Cycle, of string, out Outcome) error {
	cy.Outcomes = append(cy.Outcomes, out)
	c.learn(out)
	r := c.record(KindOutcome, cy.N)
	r.Of, r.Outcome = of, &out
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeLimit)
	defer cancel()
	_, err := c.remember(ctx, r)
	return err
}

// tell writes down what a leader that has lost the lock still knows. The next one does not depend on it.
func (c *Controller) tell(ctx context.Context, cy *Cycle, of string, out Outcome) error {
	cy.Outcomes = append(cy.Outcomes, out)
	r := c.record(KindOutcome, cy.N)
	r.Of, r.Outcome = of, &out
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeLimit)
	defer cancel()
	_, err := c.append(ctx, r)
	if err != nil {
		c.o.Logger.Warn("an outcome could not be written", "bundle", out.Decision.Bundle, "result", out.Result, "error", err)
	}
	return err
}

// learn tells the strategy and the guard what came of a decision.
func (c *Controller) learn(out Outcome) {
	now, d := c.o.Clock.Now().UnixMilli(), out.Decision
	if cured(d) { // no move of a plan: neither the strategy nor the guard's pace counts it
		if out.Result == Skipped && !out.Inherited {
			c.cures = c.cures.Untried(d.Bundle) // it was counted with the plan, so that no other leader repeats it
		}
		c.o.Logger.Info("cured", "bundle", d.Bundle, "result", out.Result, "owner", out.Owner, "millis", out.Millis, "why", out.Why)
		return
	}
	moved := out.Result == Done || out.Result == Elsewhere
	if moved {
		c.state = c.o.Manager.Record(c.state, d, now)
	}
	switch out.Result {
	case Skipped, Lost, Unknown: // who lost a race may try again at once
	default:
		c.guard = guard.Learn(c.guard, guard.Outcome{Decision: d, Moved: moved, Owner: out.Owner, Millis: out.Millis, At: now}, c.o.Limits)
	}
	c.o.Logger.Info("moved", "bundle", d.Bundle, "from", d.Source, "to", d.Destination, "result", out.Result, "owner", out.Owner, "millis", out.Millis, "why", out.Why)
}

func (c *Controller) record(k Kind, cycle int64) Record {
	return Record{Version: RecordVersion, Kind: k, At: c.o.Clock.Now().UnixMilli(), Instance: c.o.Instance, Epoch: c.epoch, Cycle: cycle, Mode: c.o.Mode}
}

// remember appends a record with everything that a next leader goes on with.
func (c *Controller) remember(ctx context.Context, r Record) (key string, err error) {
	m := &Memory{Strategy: c.o.Strategy, Seed: c.seed, Draws: c.draws, Pause: c.pause, Review: c.review, Held: c.held, Orders: c.orders, Clients: c.clients, Cures: c.cures}
	if m.State, err = json.Marshal(c.state); err != nil {
		return "", fmt.Errorf("cycle %d: write the strategy's state: %w", r.Cycle, err)
	}
	if m.Guard, err = json.Marshal(c.guard); err != nil {
		return "", fmt.Errorf("cycle %d: write the guard's state: %w", r.Cycle, err)
	}
	if size := len(m.State) + len(m.Guard); size > maxState {
		c.o.Logger.Warn("the state is too large for the decision log: a next leader begins without it", "bytes", size, "limit", maxState)
		m.State, m.Guard, m.TooLarge = nil, nil, size
	}
	r.Memory = m
	return c.append(ctx, r)
}

// append writes a record. A leader that cannot write is none: without the log nothing may be done.
func (c *Controller) append(ctx context.Context, r Record) (key string, err error) {
	if c.o.Journal == nil {
		return "", nil
	}
	r = c.numbered(r)
	if err := c.o.Journal.Append(ctx, r); err != nil {
		return "", c.unwritten(ctx, r.Cycle, err)
	}
	return r.Key(), nil
}

// appendAll writes records, many on their way at once where the journal can, and sets their numbers. It is finished also when
// ctx ends meanwhile, so that no intent stands on the log of which nothing is known.
func (c *Controller) appendAll(ctx context.Context, rs []Record) error {
	if c.o.Journal == nil {
		return nil
	}
	for i := range rs {
		rs[i] = c.numbered(rs[i])
	}
	stop := ctx
	ctx, cancel := beyond(ctx)
	defer cancel()
	if all, ok := c.o.Journal.(interface {
		AppendAll(ctx context.Context, rs []Record) error
	}); ok && len(rs) > 1 {
		if err := all.AppendAll(ctx, rs); err != nil {
			return c.unwritten(stop, rs[0].Cycle, err)
		}
		return nil
	}
	for _, r := range rs {
		if err := c.o.Journal.Append(ctx, r); err != nil {
			return c.unwritten(stop, r.Cycle, err)
		}
	}
	return nil
}

// numbered is a record as it is written.
func (c *Controller) numbered(r Record) Record {
	if c.epoch > 0 {
		c.seq++
		r.Seq = c.seq
	}
	return r.bounded()
}

// errUnwritten is wrapped by the error of a record that could not be written.
var errUnwritten = errors.New("write the decision log")

func (c *Controller) unwritten(ctx context.Context, cycle int64, err error) error {
	if ctx.Err() == nil && c.o.Mode == Govern {
		err = fmt.Errorf("%w: %w", ErrStepDown, err)
	}
	return fmt.Errorf("cycle %d: %w: %w", cycle, errUnwritten, err)
}
