package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/watch"
)

// Curer finds what in the ownership log has a safe cure, and carries the cures out: a decision that it made is carried out
// by its Actor, every other by the one that it was put around. It is used by one goroutine.
type Curer struct {
	sentry  *Sentry
	cluster Cluster
	owners  Owners
	clock   Clock
	exec    ExecLimits
	limits  watch.CureLimits
	logger  *slog.Logger
	state   watch.CureState
	told    map[string]bool
}

// NewCurer makes a curer. c is changed by the holder of the lock alone (Locked).
func NewCurer(s *Sentry, c Cluster, o Owners, clock Clock, exec ExecLimits, l watch.CureLimits, logger *slog.Logger) *Curer {
	return &Curer{sentry: s, cluster: c, owners: o, clock: clock, exec: exec, limits: l, logger: logger, told: map[string]bool{}}
}

// Decisions are the cures of this cycle, to be carried out before its plan: the guard has no say about bundles in flight. A
// nil curer has none. New anomalies are logged, once for as long as they last.
func (c *Curer) Decisions(ctx context.Context, cy *Cycle) []plan.Decision {
	if c == nil || cy.Snapshot == nil {
		return nil
	}
	now := c.clock.Now()
	anomalies, err := c.sentry.Look(ctx, now, cy.Snapshot)
	if err != nil {
		c.logger.Warn("who writes to the ownership topic is not known", "error", err)
	}
	c.log(anomalies)
	if len(cy.Frozen) > 0 {
		return nil // the picture cannot be believed
	}
	cures, _, next := watch.Cures(anomalies, c.state, now.UnixMilli(), c.limits)
	c.state = next
	return cures
}

func (c *Curer) log(anomalies []watch.Anomaly) {
	told := map[string]bool{}
	for _, a := range anomalies {
		key := string(a.Severity) + a.Why.Code + a.Bundle + a.Broker + a.Producer
		if told[key] = true; c.told[key] {
			continue
		}
		level := slog.LevelWarn
		if a.Severity == watch.Error {
			level = slog.LevelError
		}
		c.logger.Log(context.Background(), level, "anomaly", "code", a.Why.Code, "bundle", a.Bundle, "broker", a.Broker, "why", a.Why.String(), "advice", a.Advice)
	}
	c.told = told
}

// Actor carries cures out, and hands everything else to next.
func (c *Curer) Actor(next Actor) Actor {
	if c == nil {
		return next
	}
	a := curing{c, next}
	if t, ok := next.(Together); ok {
		return curingTogether{a, t}
	}
	return a
}

type curing struct {
	curer *Curer
	next  Actor
}

// Run carries one decision out.
func (a curing) Run(ctx context.Context, d plan.Decision) Outcome {
	if d.Why.Code != watch.CureStuck.ID {
		return a.next.Run(ctx, d)
	}
	start := a.curer.clock.Now()
	out := a.curer.cure(ctx, d)
	out.Decision, out.Millis = d, a.curer.clock.Now().Sub(start).Milliseconds()
	return out
}

type curingTogether struct {
	curing
	together Together
}

// RunAll carries the cures out one by one, then the others together. Every decision has one outcome.
func (a curingTogether) RunAll(ctx context.Context, ds []plan.Decision, h Hooks) error {
	var others []plan.Decision
	var failed error
	for _, d := range ds {
		if d.Why.Code != watch.CureStuck.ID {
			others = append(others, d)
			continue
		}
		if failed == nil {
			failed = ctx.Err()
		}
		out := Outcome{Decision: d, Result: Skipped}
		var why []string
		if failed == nil {
			why, failed = h.Begin(ctx, []plan.Decision{d})
		}
		switch {
		case failed != nil:
			out.Why = notBegun(ctx, failed)
		case len(why) > 0 && why[0] != "":
			out.Why = why[0]
		default:
			out = a.Run(ctx, d)
		}
		if err := h.End(out); failed == nil {
			failed = err
		}
	}
	if failed == nil {
		return a.together.RunAll(ctx, others, h)
	}
	for _, d := range others {
		if err := h.End(Outcome{Decision: d, Result: Skipped, Why: notBegun(ctx, failed)}); err != nil {
			return errors.Join(failed, err)
		}
	}
	return failed
}

// cure unloads a bundle that is stuck on its way, and waits until it is not any more. A bundle that has moved on by itself
// is left alone.
func (c *Curer) cure(ctx context.Context, d plan.Decision) Outcome {
	o, err := c.owners.Owner(ctx, d.Bundle)
	switch {
	case ctx.Err() != nil:
		return Outcome{Result: Skipped, Why: NotBegun}
	case err != nil:
		return Outcome{Result: Skipped, Why: fmt.Sprintf("the owner cannot be read: %v", err)}
	case !ownership.InFlight(o.State):
		return Outcome{Result: Skipped, Owner: o.Owner, Why: fmt.Sprintf("the bundle is %s by %q: it has moved on by itself", o.State, o.Owner)}
	}
	going, end := beyond(ctx)
	defer end()
	request, cancel := context.WithTimeout(going, c.exec.Request)
	asked := c.cluster.Unload(request, d.Bundle, "")
	cancel()
	out := c.settled(ctx, going, d.Bundle)
	out.Attempts = 1
	if asked != nil && out.Result != Done {
		out.Why = fmt.Sprintf("%v; %s", asked, out.Why)
		if refused(asked) {
			out.Result = Refused
		}
	}
	return out
}

// settled waits until a bundle is not in flight.
func (c *Curer) settled(ctx, going context.Context, bundle string) Outcome {
	begun := c.clock.Now()
	v := vigil{ctx: ctx, clock: c.clock, deadline: begun.Add(c.exec.Verify)}
	for {
		o, err := c.owners.Owner(going, bundle)
		if err == nil && (o.State == event.Owned || o.State == event.Free || o.State == event.Init) {
			return Outcome{Result: Done, Owner: o.Owner}
		}
		if v.over() {
			why := fmt.Sprintf("after %v the bundle is still %s by %q", c.clock.Now().Sub(begun).Round(time.Millisecond), o.State, o.Owner)
			if err != nil {
				why = err.Error()
			}
			return Outcome{Result: TimedOut, Owner: o.Owner, Why: v.why(why)}
		}
		if err := v.sleep(max(c.exec.Poll, time.Millisecond)); err != nil {
			return Outcome{Result: TimedOut, Owner: o.Owner, Why: err.Error()}
		}
	}
}
