package control

import (
	"context"
	"errors"
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

// Hooks are what the caller of Together.RunAll does around the decisions. They are called one at a time.
type Hooks struct {
	// Begin is called before decisions are carried out that are begun together. A text skips the decision of the same place, and
	// says why; nil skips none. An error ends the run: none of them and nothing further is begun, what is under way is followed
	// to its end.
	Begin func(ctx context.Context, ds []plan.Decision) (skip []string, err error)
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
// confirmed lock, and followed by its outcome. When one outcome cannot be written the others are not tried, which would take its
// time for each: a next leader finds out itself what came of the intents.
func (c *Controller) actTogether(ctx context.Context, cy *Cycle, made int64, ds []plan.Decision, actor Together) error {
	intents := map[string]string{} // bundle -> key
	mute := false                  // an outcome could not be written
	return actor.RunAll(ctx, ds, Hooks{
		Begin: func(ctx context.Context, ds []plan.Decision) ([]string, error) {
			if err := c.interrupt(ctx); err != nil {
				return nil, err
			}
			return c.beginAll(ctx, cy, made, ds, intents)
		},
		Pace:  func(d plan.Decision) time.Duration { return time.Duration(c.o.Limits.Pause(d)) * time.Millisecond },
		Width: func() int { return c.guard.Pace.AtOnce(c.o.Limits) },
		End: func(out Outcome) error {
			if mute {
				cy.Outcomes = append(cy.Outcomes, out)
				return nil
			}
			err := c.ended(context.WithoutCancel(ctx), cy, intents[out.Decision.Bundle], out)
			mute = errors.Is(err, errUnwritten)
			return err
		},
	})
}

// beginAll is begin for decisions that are begun together: their intents are on their way at once, and the lock is confirmed when
// all of them are stored. The keys of the intents, also of those that may be stored, go into keys, by bundle.
func (c *Controller) beginAll(ctx context.Context, cy *Cycle, made int64, ds []plan.Decision, keys map[string]string) ([]string, error) {
	why := make([]string, len(ds))
	var intents []Record
	for i, d := range ds {
		if why[i] = c.halted(d, made); why[i] == "" {
			intents = append(intents, c.intent(cy, d))
		}
	}
	if len(intents) == 0 {
		return why, nil
	}
	err := c.appendAll(ctx, intents)
	for i := range intents {
		keys[intents[i].Decision.Bundle] = intents[i].Key()
	}
	if err == nil {
		err = c.confirm(ctx, inWords(intents[0].Decision, len(intents)))
	}
	if err != nil {
		return why, fmt.Errorf("cycle %d stopped before %s: %w", cy.N, inWords(intents[0].Decision, len(intents)), err)
	}
	return why, nil
}

// inWords is what is begun: one decision, or how many more with it.
func inWords(d *plan.Decision, n int) string {
	if n == 1 {
		return fmt.Sprintf("%s %s", d.Action, d.Bundle)
	}
	return fmt.Sprintf("%s %s and %d more", d.Action, d.Bundle, n-1)
}
