package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/watch"
)

// Anomalies says what should not be in the ownership log. Sentry does.
type Anomalies interface {
	// Look is what is wrong at the moment of the snapshot. An error means that a part could not be judged.
	Look(ctx context.Context, now time.Time, snap *cluster.Snapshot) ([]watch.Anomaly, error)
}

// Curer finds what in the ownership log has a safe cure, and carries the cures out: a decision that it made is carried out
// by its Actor, every other by the one that it was put around. What was treated is the controller's to remember: it is in the
// decision log's memory. It is used by one goroutine.
type Curer struct {
	anomalies Anomalies
	cluster   Cluster
	owners    Owners
	clock     Clock
	exec      ExecLimits
	limits    watch.CureLimits
	logger    *slog.Logger
	told      map[string]bool
	failed    bool // a part could not be judged, and that was said
}

// NewCurer makes a curer. c is changed by the holder of the lock alone (Locked).
func NewCurer(a Anomalies, c Cluster, o Owners, clock Clock, exec ExecLimits, l watch.CureLimits, logger *slog.Logger) *Curer {
	return &Curer{anomalies: a, cluster: c, owners: o, clock: clock, exec: exec, limits: l, logger: logger, told: map[string]bool{}}
}

// Decisions are the cures of this cycle, to be carried out before its plan: the guard has no say about bundles in flight. A
// nil curer has none. held is why a bundle may not be touched now; nil = none is held. left says why what is stuck is not cured
// now; next is the state with the cures counted as tried. New anomalies are logged, once for as long as they last.
func (c *Curer) Decisions(ctx context.Context, cy *Cycle, st watch.CureState, held func(bundle string) (plan.Reason, bool)) (cures []plan.Decision, left []plan.LeftOut, next watch.CureState) {
	if c == nil || cy.Snapshot == nil {
		return nil, nil, st
	}
	now := c.clock.Now()
	list, err := c.anomalies.Look(ctx, now, cy.Snapshot)
	if err != nil && !c.failed && ctx.Err() == nil {
		c.logger.Warn("who writes to the ownership topic is not known", "error", err)
	}
	c.failed = err != nil
	c.log(list)
	if len(cy.Frozen) > 0 {
		return nil, nil, st // the picture cannot be believed
	}
	cures, left, next = watch.Cures(list, st, now.UnixMilli(), c.limits, held)
	left = slices.DeleteFunc(left, func(l plan.LeftOut) bool { return l.Why.Code == watch.CureNone.ID })
	for _, l := range left {
		if key := l.Why.Code + l.Bundle; l.Why.Code == watch.CureExhausted.ID && !c.told[key] {
			c.told[key] = true
			c.logger.Error("a stuck bundle is not cured", "bundle", l.Bundle, "code", l.Why.Code, "why", l.Why.String())
		}
	}
	return cures, left, next
}

// Why a bundle that is stuck is not cured in a cycle though it could be, and why one that is cured is not moved.
var (
	CurePaused   = plan.Code{ID: "CURE_PAUSED", Template: "paused: {reason}"}
	CureReviewed = plan.Code{ID: "CURE_NEEDS_REVIEW", Template: "plans are reviewed (ballastReview): nothing is cured by itself; ballast unload {bundle} --execute does it"}
	BeingCured   = plan.Code{ID: "BEING_CURED", Template: "the bundle is stuck on its way and is being cured in this cycle"}
)

// cured says whether a decision is a cure.
func cured(d plan.Decision) bool { return d.Why.Code == watch.CureStuck.ID }

// cure decides what is cured in a cycle. A pause holds cures back, as nothing is to be done then, and so does review: who wants to
// see everything before it is done is told, and does it himself. A bundle that an earlier leader's request is about waits for
// what comes of that. What is held back does not count as tried.
func (c *Controller) cure(ctx context.Context, cy *Cycle) (left []plan.LeftOut) {
	if c.o.Curer == nil || c.o.Mode != Govern {
		return nil
	}
	cy.Cures, left, c.cures = c.o.Curer.Decisions(ctx, cy, c.cures, func(bundle string) (plan.Reason, bool) {
		switch {
		case c.pause != nil:
			return CurePaused.Because(plan.S("reason", c.pause.Reason)), true
		case c.o.Review:
			return CureReviewed.Because(plan.S("bundle", bundle)), true
		case slices.ContainsFunc(c.held, func(h Held) bool { return h.Decision.Bundle == bundle }):
			return EarlierRequest.Because(), true
		}
		return plan.Reason{}, false
	})
	return left
}

func (c *Curer) log(anomalies []watch.Anomaly) {
	told, stuck := map[string]bool{}, map[string]bool{}
	for _, a := range anomalies {
		stuck[a.Bundle] = stuck[a.Bundle] || a.Why.Code == watch.InFlight.ID
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
	for key := range c.told { // of what was given up, as long as it lasts
		if bundle, ok := strings.CutPrefix(key, watch.CureExhausted.ID); ok && stuck[bundle] {
			told[key] = true
		}
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
	if !cured(d) {
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
		if !cured(d) {
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
	if out.Result == TimedOut && asked == nil {
		out.Why += "; brokers ignore an unload of a bundle that is on its way: their leader has to override it"
	}
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
