package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Look is what was seen of the cluster at one moment.
type Look struct {
	Snapshot *cluster.Snapshot
	Missing  []string      // registered brokers without load data
	Frozen   []plan.Reason // why nothing may be decided from it; empty = it may be acted on
}

// Viewer looks at the cluster.
type Viewer interface {
	Owners
	Look(ctx context.Context, now time.Time) (*Look, error)
}

// Journal keeps the records of the decision log.
type Journal interface {
	Append(ctx context.Context, r Record) error
}

// Options are what a controller is made of.
type Options struct {
	Instance string
	Mode     Mode
	Manager  plan.Manager
	Viewer   Viewer
	Executor Actor     // govern only
	Lock     *Lock     // govern only
	Observer *Observer // observe only
	Journal  Journal   // nil = records are dropped (advise and observe)
	Clock    Clock
	Seed     uint64 // of the randomness of placement; the same seed and events give the same plans
	Limits   guard.Limits
	PlanLife time.Duration // what is left of a plan that is older is not carried out; 0 = no limit
	Explain  bool          // collect a trace in every cycle
	Logger   *slog.Logger
	Metrics  *Metrics // nil = none
}

// Controller makes one cycle after another. Its methods are for one goroutine at a time.
type Controller struct {
	o     Options
	rnd   *rand.Rand
	state plan.State
	guard guard.State
	n     int64
}

// New makes a controller in the state before its first cycle.
func New(o Options) *Controller {
	return &Controller{o: o, rnd: rand.New(rand.NewPCG(o.Seed, o.Seed)), state: o.Manager.NewState(), guard: guard.State{Version: 1}}
}

// Cycle is one cycle from look to outcome.
type Cycle struct {
	N        int64          `json:"cycle"`
	At       int64          `json:"at"` // Unix ms
	Mode     Mode           `json:"mode"`
	Missing  []string       `json:"missing,omitempty"` // registered brokers that were not heard
	Frozen   []plan.Reason  `json:"frozen,omitempty"`  // why nothing was decided
	Plan     plan.Plan      `json:"plan"`
	LeftOut  []plan.LeftOut `json:"leftOut,omitempty"`
	Verdict  guard.Verdict  `json:"verdict"`
	Outcomes []Outcome      `json:"outcomes,omitempty"`

	// Observed is what the cluster's own balancer did since the last cycle, each move with why, and Agreement how far it
	// and the plans agreed over the last day (observe only).
	Observed  *extensible.Observation `json:"observed,omitempty"`
	Agreement *extensible.Score       `json:"agreement,omitempty"`

	Snapshot *cluster.Snapshot `json:"-"`
}

// Step makes one cycle: look, plan, guard and, in govern, act and verify. An error means that nothing could be looked at or
// that the right to act was lost; what was done before is in the cycle all the same.
func (c *Controller) Step(ctx context.Context) (*Cycle, error) {
	c.n++
	now := c.o.Clock.Now()
	cy := &Cycle{N: c.n, At: now.UnixMilli(), Mode: c.o.Mode}
	look, err := c.o.Viewer.Look(ctx, now)
	if err != nil {
		return cy, fmt.Errorf("cycle %d: look at the cluster: %w", c.n, err)
	}
	cy.Snapshot, cy.Missing, cy.Frozen = look.Snapshot, look.Missing, look.Frozen
	c.observe(cy, now)
	if len(cy.Frozen) > 0 {
		cy.Plan = plan.Plan{At: cy.At, Outcome: cy.Frozen[0]}
		return cy, c.finish(ctx, cy)
	}
	trace := new(plan.Trace)
	if !c.o.Explain {
		trace = nil
	}
	var next plan.State
	cy.Plan, next = c.o.Manager.Shed(look.Snapshot, c.state, c.rnd, trace)
	c.state = next
	if trace != nil {
		cy.LeftOut = trace.Entries
	}
	cy.Verdict = guard.Check(look.Snapshot, cy.Plan.Decisions, policies(look.Snapshot), c.guard, c.o.Limits)
	if err := c.finish(ctx, cy); err != nil || c.o.Mode != Govern {
		return cy, err
	}
	err = c.act(ctx, cy)
	c.o.Metrics.acted(cy.Outcomes)
	return cy, err
}

// policies evaluates the snapshot's policies over its brokers; nil for a cluster without any.
func policies(snap *cluster.Snapshot) *policy.View {
	if snap.Policies == nil {
		return nil
	}
	brokers := make([]policy.Broker, len(snap.Brokers))
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		brokers[i] = policy.Broker{ID: b.ID, PersistentTopics: b.PersistentTopics, NonPersistentTopics: b.NonPersistentTopics}
	}
	return snap.Policies.Over(brokers)
}

// observe compares what the cluster's own balancer did with the plan on the same data, and tells the strategy of its moves,
// which count as unloads of the cluster, whoever made them.
func (c *Controller) observe(cy *Cycle, now time.Time) {
	if c.o.Observer == nil {
		return
	}
	if seen, ok := c.o.Observer.Observed(c.state, now); ok {
		cy.Observed = &seen
		for _, m := range seen.Moves {
			c.state = c.o.Manager.Record(c.state, plan.Decision{Action: plan.Transfer, Bundle: m.Move.Bundle, Source: m.Move.Source,
				Destination: m.Move.Destination, Label: extensible.Success, PulsarReason: extensible.Admin}, seen.At)
		}
	}
	score := c.o.Observer.Score(now)
	cy.Agreement = &score
	if score.Moves > 0 {
		c.o.Metrics.Agreement(score.Percent / 100)
	}
}

// maxLeftOut is how many left-out entries a record holds: brokers refuse messages above 5 MB, and a plan that cannot be
// written down is not carried out.
const maxLeftOut = 1000

// finish writes the cycle's plan down.
func (c *Controller) finish(ctx context.Context, cy *Cycle) error {
	c.o.Metrics.cycle(cy)
	r := c.record(KindPlan, cy)
	r.Plan, r.LeftOut = &cy.Plan, cy.LeftOut
	if more := len(cy.LeftOut) - maxLeftOut; more > 0 {
		r.LeftOut, r.LeftOutMore = cy.LeftOut[:maxLeftOut], more
	}
	state, err := json.Marshal(c.state)
	if err != nil {
		return fmt.Errorf("cycle %d: write the strategy's state: %w", cy.N, err)
	}
	r.State = state
	return c.append(ctx, r)
}

// act carries out what the guard let through. The lock is confirmed before every action: who has lost it stops at once.
func (c *Controller) act(ctx context.Context, cy *Cycle) error {
	if together, ok := c.o.Executor.(Together); ok {
		return c.actTogether(ctx, cy, cy.Verdict.Run, together)
	}
	for i, d := range cy.Verdict.Run {
		if age := c.o.Clock.Now().Sub(time.UnixMilli(cy.At)); c.o.PlanLife > 0 && age > c.o.PlanLife {
			// Requests that hang must not let a cycle act on a picture from long ago.
			c.o.Logger.Warn("the rest of the plan is too old", "cycle", cy.N, "age", age, "left", len(cy.Verdict.Run)-i)
			for _, d := range cy.Verdict.Run[i:] {
				cy.Outcomes = append(cy.Outcomes, Outcome{Decision: d, Result: Skipped, Why: fmt.Sprintf("the plan is %v old, the limit is %v", age, c.o.PlanLife)})
			}
			return nil
		}
		if err := c.o.Lock.Confirm(ctx, d.Bundle); err != nil {
			return fmt.Errorf("cycle %d stopped before %s: %w", cy.N, d.Bundle, err)
		}
		intent := c.record(KindIntent, cy)
		intent.Decision = &d
		if err := c.append(ctx, intent); err != nil {
			return err
		}
		out := c.o.Executor.Run(ctx, d)
		cy.Outcomes = append(cy.Outcomes, out)
		c.learn(d, out)
		r := c.record(KindOutcome, cy)
		r.Outcome = &out
		if err := c.appendOutcome(ctx, r); err != nil {
			return err
		}
		if pause := c.o.Limits.Pause(d); pause > 0 && i < len(cy.Verdict.Run)-1 {
			if err := c.o.Clock.Sleep(ctx, time.Duration(pause)*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// learn tells the strategy and the guard what came of a decision.
func (c *Controller) learn(d plan.Decision, out Outcome) {
	now := c.o.Clock.Now().UnixMilli()
	moved := out.Result == Done || out.Result == Elsewhere
	if moved {
		c.state = c.o.Manager.Record(c.state, d, now)
	}
	if out.Result != Skipped && out.Result != Lost { // who lost a race may try again at once
		c.guard = guard.Record(c.guard, d, moved, now, c.o.Limits)
	}
	c.o.Logger.Info("moved", "bundle", d.Bundle, "from", d.Source, "to", d.Destination, "result", out.Result, "owner", out.Owner, "millis", out.Millis, "why", out.Why)
}

func (c *Controller) record(k Kind, cy *Cycle) Record {
	return Record{Version: RecordVersion, Kind: k, At: c.o.Clock.Now().UnixMilli(), Instance: c.o.Instance, Cycle: cy.N, Mode: c.o.Mode}
}

func (c *Controller) append(ctx context.Context, r Record) error {
	if c.o.Journal == nil {
		return nil
	}
	if err := c.o.Journal.Append(ctx, r); err != nil {
		return fmt.Errorf("decision log: %w", err)
	}
	return nil
}

// outcomeLimit bounds the writing of an outcome after the run was stopped.
const outcomeLimit = 5 * time.Second

// appendOutcome writes an outcome, also when ctx has ended meanwhile: an intent must not stand without what came of it.
func (c *Controller) appendOutcome(ctx context.Context, r Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outcomeLimit)
	defer cancel()
	return c.append(ctx, r)
}

// Assume tells the strategy that its condition has held for as long as it asks for, so that a single cycle shows what
// would be planned: it looks and plans again at once while the only obstacle is the hit count.
func (c *Controller) Assume(ctx context.Context, most int) (*Cycle, int, error) {
	for hits := 1; ; hits++ {
		cy, err := c.Step(ctx)
		if err != nil || len(cy.Plan.Decisions) > 0 || hits >= most || !hitCountOnly(cy.Plan) {
			return cy, hits, err
		}
	}
}

func hitCountOnly(p plan.Plan) bool {
	return len(p.Counts) == 1 && p.Counts[0].Label == "Skip" && p.Counts[0].Reason == "HitCount"
}

// Run makes a cycle every interval until ctx ends. A cycle that fails is logged and the next one is tried; losing the lock
// ends it with ErrNotHolder.
func (c *Controller) Run(ctx context.Context, interval time.Duration, each func(*Cycle)) error {
	for {
		cy, err := c.Step(ctx)
		if each != nil {
			each(cy)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrNotHolder):
			return err
		case err != nil:
			c.o.Logger.Error("cycle failed", "cycle", cy.N, "error", err)
		}
		if err := c.o.Clock.Sleep(ctx, interval); err != nil {
			return err
		}
	}
}
