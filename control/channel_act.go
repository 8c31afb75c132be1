package control

import (
	"context"
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

// actTogether is act for an Actor that can have many decisions under way: each is still preceded by its intent and a
// confirmed lock, and followed by its outcome.
func (c *Controller) actTogether(ctx context.Context, cy *Cycle, made int64, ds []plan.Decision, actor Together) error {
	intents := map[string]string{} // bundle -> key
	return actor.RunAll(ctx, ds, Hooks{
		Begin: func(ctx context.Context, d plan.Decision) (string, error) {
			if err := c.interrupt(ctx); err != nil {
				return "", err
			}
			if why := c.halted(d, made); why != "" {
				return why, nil
			}
			key, err := c.begin(ctx, cy, d)
			intents[d.Bundle] = key
			return "", err
		},
		Pace:  func(d plan.Decision) time.Duration { return time.Duration(c.o.Limits.Pause(d)) * time.Millisecond },
		Width: func() int { return c.guard.Pace.AtOnce(c.o.Limits) },
		End: func(out Outcome) error {
			return c.ended(context.WithoutCancel(ctx), cy, intents[out.Decision.Bundle], out)
		},
	})
}
