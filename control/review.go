package control

import (
	"context"
	"fmt"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// ReviewState is what became of a plan that an operator has to approve.
type ReviewState string

// The states of a review.
const (
	Waiting   ReviewState = "waiting"
	Approved  ReviewState = "approved"
	Discarded ReviewState = "discarded"
	Withdrawn ReviewState = "withdrawn" // the cluster changed: the plan does not hold any more
)

// Review is a plan that is carried out only when an operator approves it.
type Review struct {
	ID        string          `json:"id"` // epoch-cycle
	State     ReviewState     `json:"state"`
	Cycle     int64           `json:"cycle"` // that planned it
	At        int64           `json:"at"`    // Unix ms when it was planned
	Decisions []plan.Decision `json:"decisions"`
	Brokers   []string        `json:"brokers"` // that were registered then
	By        string          `json:"by,omitempty"`
	Why       string          `json:"why,omitempty"`
}

// AwaitsReview is the outcome of a cycle that plans nothing because an earlier plan waits.
var AwaitsReview = plan.Code{ID: "AWAITS_REVIEW", Template: "the plan {id} of {decisions} decisions waits for ballast approve or discard since {seconds} s"}

// propose makes a plan one that waits, if plans have to be reviewed.
func (c *Controller) propose(cy *Cycle) {
	if !c.o.Review || c.o.Mode != Govern || len(cy.Verdict.Run) == 0 {
		return
	}
	c.review = &Review{ID: fmt.Sprintf("%d-%d", c.epoch, cy.N), State: Waiting, Cycle: cy.N, At: cy.At,
		Decisions: cy.Verdict.Run, Brokers: brokerIDs(cy.Snapshot)}
	cy.Review = c.review
}

func brokerIDs(snap *cluster.Snapshot) []string {
	var ids []string
	for i := range snap.Brokers {
		ids = append(ids, snap.Brokers[i].ID)
	}
	return ids
}

// reviewed looks at the plan that waits: it waits on, and the cycle plans nothing; or the cluster has changed, and the cycle
// plans anew.
func (c *Controller) reviewed(ctx context.Context, cy *Cycle) error {
	if c.review == nil {
		return nil
	}
	if !c.o.Review {
		return c.close(ctx, Withdrawn, "", "plans need no review any more")
	}
	if why := c.changed(cy.Snapshot, c.review); c.pause == nil && why != "" {
		return c.close(ctx, Withdrawn, "", why)
	}
	cy.Review = c.review
	cy.Plan = plan.Plan{At: cy.At, Outcome: AwaitsReview.Because(plan.S("id", c.review.ID), plan.N("decisions", len(c.review.Decisions)),
		plan.N("seconds", (cy.At-c.review.At)/1000))}
	return nil
}

// changed says what keeps a plan from being carried out as it was reviewed, "" if nothing does.
func (c *Controller) changed(snap *cluster.Snapshot, r *Review) string {
	if ids := brokerIDs(snap); !slices.Equal(ids, r.Brokers) {
		return fmt.Sprintf("the registered brokers were %v, now they are %v", r.Brokers, ids)
	}
	v := guard.Check(snap, r.Decisions, policies(snap), c.guard, c.o.Limits)
	if len(v.Refused) > 0 {
		return fmt.Sprintf("%s may not move any more: %s", v.Refused[0].Decision.Bundle, v.Refused[0].Why)
	}
	return ""
}

// close ends a review.
func (c *Controller) close(ctx context.Context, state ReviewState, by, why string) error {
	r := *c.review
	r.State, r.By, r.Why = state, by, why
	c.review = nil
	record := c.record(KindReview, r.Cycle)
	record.Review = &r
	_, err := c.remember(ctx, record)
	return err
}

// asked is the plan that a command names.
func (c *Controller) asked(k Command) (*Review, error) {
	switch {
	case c.review == nil:
		return nil, fmt.Errorf("no plan waits, so not %q either", k.Plan)
	case c.review.ID != k.Plan:
		return nil, fmt.Errorf("plan is %q: the plan that waits is %s", k.Plan, c.review.ID)
	}
	return c.review, nil
}

// approve carries out the plan that waits, exactly as it was reviewed, or refuses because the cluster has changed.
func (c *Controller) approve(ctx context.Context, k Command) (string, func(context.Context) error, error) {
	r, err := c.asked(k)
	if err != nil {
		return "", nil, err
	}
	if c.pause != nil {
		return "", nil, fmt.Errorf("it is paused: %s; resume it first", c.pause.Reason)
	}
	look, err := c.look(ctx, c.o.Clock.Now())
	if err != nil {
		return "", nil, fmt.Errorf("the cluster cannot be looked at: %w; the plan waits on", err)
	}
	if len(look.Frozen) > 0 {
		return "", nil, fmt.Errorf("nothing can be done now: %s; the plan waits on", look.Frozen[0])
	}
	if why := c.changed(look.Snapshot, r); why != "" {
		if err := c.close(ctx, Withdrawn, k.By, why); err != nil {
			return "", nil, err
		}
		return "", nil, fmt.Errorf("the cluster changed since the plan was made: %s; the next cycle plans anew", why)
	}
	if err := c.close(ctx, Approved, k.By, k.Reason); err != nil {
		return "", nil, err
	}
	run := func(ctx context.Context) error {
		now := c.o.Clock.Now().UnixMilli()
		cy := &Cycle{N: r.Cycle, At: now, Mode: c.o.Mode}
		err := c.act(ctx, cy, now, r.Decisions)
		c.o.Metrics.acted(cy.Outcomes)
		return err
	}
	return fmt.Sprintf("approved: %d decisions are carried out now", len(r.Decisions)), run, nil
}

// discard drops the plan that waits.
func (c *Controller) discard(ctx context.Context, k Command) (string, func(context.Context) error, error) {
	r, err := c.asked(k)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("discarded: %d decisions are not carried out", len(r.Decisions)), nil, c.close(ctx, Discarded, k.By, k.Reason)
}
