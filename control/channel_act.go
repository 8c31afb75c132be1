package control

import (
	"context"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/plan"
)

// Actor carries decisions out and says what came of each. Executor does so over admin REST, Channel through the ownership log.
type Actor interface {
	Run(ctx context.Context, d plan.Decision) Outcome
}

// Together is an Actor that can have many decisions under way at once.
type Together interface {
	Actor
	RunAll(ctx context.Context, ds []plan.Decision, h Hooks) error
}

// Hooks are what the caller of Together.RunAll does around each decision. They are called one at a time.
type Hooks struct {
	// Begin is called before a decision is carried out. A text skips it, and says why; an error ends the run: nothing further
	// is begun, what is under way is followed to its end.
	Begin func(ctx context.Context, d plan.Decision) (skip string, err error)
	// Pace is the least time from the beginning of a decision to that of the next one; nil = none.
	Pace func(d plan.Decision) time.Duration
	// Width is how many may be under way now, within the actor's own limit; nil = that one.
	Width func() int
	// End is told what came of each decision, in the order in which they end. An error ends the run as one of Begin does.
	End func(o Outcome) error
}

// Lost is the result of a write that another record on the ownership log came before: the next cycle plans anew.
const Lost Result = "lost"

// actTogether is act for an Actor that can have many decisions under way: each is still preceded by a confirmed lock and its
// intent, and followed by its outcome.
func (c *Controller) actTogether(ctx context.Context, cy *Cycle, ds []plan.Decision, actor Together) error {
	return actor.RunAll(ctx, ds, Hooks{
		Begin: func(ctx context.Context, d plan.Decision) (string, error) {
			if age := c.o.Clock.Now().Sub(time.UnixMilli(cy.At)); c.o.PlanLife > 0 && age > c.o.PlanLife {
				return fmt.Sprintf("the plan is %v old, the limit is %v", age, c.o.PlanLife), nil
			}
			if err := c.o.Lock.Confirm(ctx, d.Bundle); err != nil {
				return "", fmt.Errorf("cycle %d stopped before %s: %w", cy.N, d.Bundle, err)
			}
			intent := c.record(KindIntent, cy)
			intent.Decision = &d
			return "", c.append(ctx, intent)
		},
		Pace: func(d plan.Decision) time.Duration { return time.Duration(c.o.Limits.Pause(d)) * time.Millisecond },
		End: func(out Outcome) error {
			cy.Outcomes = append(cy.Outcomes, out)
			c.learn(out.Decision, out)
			r := c.record(KindOutcome, cy)
			r.Outcome = &out
			return c.appendOutcome(ctx, r)
		},
	})
}
