package control

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// drainRound moves away what is on brokers that are drained, as much as the budgets of a cycle allow. It is done between cycles,
// during a pause, too: it is what an operator ordered. A round that does something, or finds something new, is on record as a
// plan of DrainStrategy.
func (c *Controller) drainRound(ctx context.Context) error {
	orders := c.drains()
	now := c.o.Clock.Now()
	if len(orders) == 0 || now.Before(c.drain.next) {
		return nil
	}
	c.drain.next = now.Add(drainPause)
	var look *Look
	var tried, moved int
	for _, id := range slices.Sorted(maps.Keys(orders)) {
		if orders = c.drains(); !c.stands(id) {
			continue // it was ended while another one was carried out
		}
		if look == nil {
			var err error
			if look, err = c.drainLook(ctx); err != nil || look == nil {
				return err
			}
		}
		outcomes, err := c.drainOne(ctx, look, id, orders)
		if err != nil {
			return err
		}
		if len(outcomes) > 0 {
			look = nil // the picture is from before these moves, which may have taken minutes
		}
		if !c.stands(id) {
			continue // it was ended meanwhile: what was not begun did not fail
		}
		tried += len(outcomes)
		for _, out := range outcomes {
			if !out.left() {
				c.drain.failed[out.Decision.Bundle] = true
				continue
			}
			delete(c.drain.failed, out.Decision.Bundle)
			moved++
		}
	}
	switch {
	case moved > 0: // that may have made room for more
		c.drain.next, c.drain.vain = time.Time{}, 0
	case tried > 0:
		c.drain.vain++
		c.drain.next = c.o.Clock.Now().Add(min(drainPause<<min(c.drain.vain, 10), drainSlow))
	case c.drain.plans.resting(slices.Collect(maps.Keys(orders))):
		c.drain.next = c.o.Clock.Now().Add(drainWatch)
	}
	return nil
}

// drainLook looks at the cluster for a round of drains; nil: the round has to wait.
func (c *Controller) drainLook(ctx context.Context) (*Look, error) {
	look, err := c.look(ctx, c.o.Clock.Now())
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		c.drainWaits("the cluster cannot be looked at: " + err.Error())
		return nil, nil
	case len(look.Frozen) > 0:
		c.drainWaits(look.Frozen[0].String())
		return nil, nil
	}
	c.drain.waits = false
	c.heedDrains()
	return look, nil
}

// drainWaits puts the next round off, and says so once until it goes on.
func (c *Controller) drainWaits(why string) {
	if !c.drain.waits {
		c.o.Logger.Warn("drains wait", "why", why)
	}
	c.drain.waits, c.drain.next = true, c.o.Clock.Now().Add(drainBlind)
}

// drainOne is a round of one broker, and what came of it. A broker that is not there is on record, too: who follows a drain is told.
func (c *Controller) drainOne(ctx context.Context, look *Look, id string, orders map[string]DrainOrder) ([]Outcome, error) {
	order := orders[id]
	others := slices.Concat(order.Also, slices.Sorted(maps.Keys(orders)))
	why := fmt.Sprintf("; %s ordered it: %s", named(order.By, "an operator"), named(order.Reason, "no reason given"))
	r, ok := c.drain.plans.round(ctx, drain.Input{Snapshot: look.Snapshot, Policies: policies(look.Snapshot), Broker: id, Others: others,
		Failed: c.drain.failed, Points: c.o.Limits.DrainPoints}, why, c.checkDrain)
	if !ok || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	snap, p := r.snap, r.plan
	c.n++
	cy := &Cycle{N: c.n, At: snap.Now, Mode: c.o.Mode, Missing: look.Missing, LeftOut: slices.Concat(p.Stay, p.Waiting), Snapshot: snap, Verdict: r.verdict}
	cy.Plan = plan.Plan{Strategy: DrainStrategy, At: snap.Now, Decisions: p.Decisions, Outcome: DrainGoesOn.Because(plan.S("broker", id),
		plan.N("leave", len(p.Decisions)), plan.N("waiting", len(p.Waiting)), plan.N("stay", len(p.Stay)))}
	switch {
	case snap.BrokerIndex(id) < 0:
		cy.Plan.Outcome = drain.Unknown.Because(plan.S("broker", id))
	case p.Empty():
		cy.Plan.Outcome = DrainedEmpty.Because(plan.S("broker", id), plan.N("stay", len(p.Stay)))
	}
	says := cy.Plan.Outcome.Text
	for _, l := range cy.LeftOut {
		says += " " + l.Bundle + l.Why.Code
	}
	for _, r := range cy.Verdict.Refused {
		says += " " + r.Decision.Bundle + r.Why.Code
	}
	if len(cy.Verdict.Run) == 0 && c.drain.told[id] == says {
		c.n--
		return nil, nil
	}
	c.drain.told[id] = says
	if err := c.finish(ctx, cy); err != nil {
		return nil, err
	}
	c.o.Logger.Info("drain", "broker", id, "run", len(cy.Verdict.Run), "outcome", cy.Plan.Outcome.String())
	err := c.act(ctx, cy, cy.At, cy.Verdict.Run)
	c.o.Metrics.acted(cy.Outcomes)
	return cy.Outcomes, err
}

// checkDrain is the guard of a round.
func (c *Controller) checkDrain(snap *cluster.Snapshot, ds []plan.Decision) guard.Verdict {
	cy := &Cycle{Verdict: guard.Check(snap, ds, policies(snap), c.guard, c.o.Limits)}
	c.restrict(cy)
	return cy.Verdict
}

// DrainOf is the broker that a record of a drain is about, and whether nothing is left on it that may leave, or it is not there;
// ok = false for other records.
func DrainOf(r Record) (broker string, empty, ok bool) {
	if r.Kind != KindPlan || r.Plan == nil || r.Plan.Strategy != DrainStrategy {
		return "", false, false
	}
	for _, n := range r.Plan.Outcome.Numbers {
		if n.Name == "broker" {
			code := r.Plan.Outcome.Code
			return n.Text, code == DrainedEmpty.ID || code == drain.Unknown.ID, true
		}
	}
	return "", false, false
}
