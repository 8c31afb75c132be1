package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
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
	Instance  string
	Mode      Mode
	Manager   plan.Manager
	Strategy  string // name of what plans: only its own state is read back; "" = the manager's type
	Viewer    Viewer
	Executor  Actor     // govern only
	Lock      *Lock     // govern only
	Observer  *Observer // observe only
	Splits    *Splits   // nil = no bundle is split
	Journal   Journal   // nil = records are dropped (advise and observe)
	Clock     Clock
	Seed      uint64 // of the randomness of placement; the same seed and events give the same plans
	Limits    guard.Limits
	PlanLife  time.Duration // what is left of a plan that is older is not carried out; 0 = no limit
	Review    bool          // a plan waits until an operator approves it
	Explain   bool          // collect a trace in every cycle
	Retention Retention     // of the decision log; the zero value keeps everything
	Handlers  map[string]Handler
	Harm      Harmed // govern only: what clients see of the brokers that moves are about; nil = that is not known
	Drains    DrainAsks
	Curer     *Curer // govern only: cures what is stuck in the ownership log; nil = nothing is cured
	Logger    *slog.Logger
	Metrics   *Metrics // nil = none
}

// Controller makes one cycle after another. Its methods are for one goroutine at a time.
type Controller struct {
	o     Options
	state plan.State
	guard guard.State
	n     int64 // the newest cycle

	leading // what only a leader has
}

// New makes a controller in the state before its first cycle.
func New(o Options) *Controller {
	if o.Strategy == "" {
		o.Strategy = fmt.Sprintf("%T", o.Manager)
	}
	if o.Curer != nil {
		o.Executor = o.Curer.Actor(o.Executor)
	}
	c := &Controller{o: o}
	c.fresh()
	return c
}

// fresh is the state before the first cycle.
func (c *Controller) fresh() {
	c.state, c.guard, c.n = c.o.Manager.NewState(), guard.NewState(), 0
	c.leading = leading{seed: c.o.Seed, orders: map[string]json.RawMessage{}, drain: draining{told: map[string]string{}, failed: map[string]bool{},
		plans: newDrainer(c.o.Drains, c.o.Clock, c.o.Logger)}}
}

// Cycle is one cycle from look to outcome.
type Cycle struct {
	N        int64           `json:"cycle"`
	At       int64           `json:"at"` // Unix ms
	Mode     Mode            `json:"mode"`
	Missing  []string        `json:"missing,omitempty"` // registered brokers that were not heard
	Frozen   []plan.Reason   `json:"frozen,omitempty"`  // why nothing was decided
	Plan     plan.Plan       `json:"plan"`
	LeftOut  []plan.LeftOut  `json:"leftOut,omitempty"`
	Verdict  guard.Verdict   `json:"verdict"`
	Cures    []plan.Decision `json:"cures,omitempty"` // of bundles that are stuck, carried out before the plan
	Outcomes []Outcome       `json:"outcomes,omitempty"`
	Harm     *guard.Harm     `json:"harm,omitempty"`   // what clients see of the brokers that moves are about
	Pause    *Pause          `json:"pause,omitempty"`  // in force: nothing is done
	Review   *Review         `json:"review,omitempty"` // the plan that waits for an operator

	// Observed is what the cluster's own balancer did since the last cycle, each move with why, and Agreement how far it
	// and the plans agreed over the last day (observe only).
	Observed  *extensible.Observation `json:"observed,omitempty"`
	Agreement *extensible.Score       `json:"agreement,omitempty"`

	Snapshot *cluster.Snapshot `json:"-"`
}

// NoLook is the outcome of a cycle that could not look at the cluster.
var NoLook = plan.Code{ID: "NO_LOOK", Template: "the cluster cannot be looked at: {error}"}

// ErrStepDown is wrapped by the error of a leader that can lead no longer, so that another one may try.
var ErrStepDown = errors.New("this process steps down")

// A leader that cannot look at the cluster gives another process the turn after so many cycles in a row, or when so much time has
// passed since the first of them began: as long as a broker takes to ask after a silent connection (keepAliveIntervalSeconds).
const (
	blindCycles = 3
	blindTime   = 30 * time.Second
)

// Step makes one cycle: look, plan, guard and, in govern, act and verify. An error means that nothing could be looked at or
// that the right to act was lost; what was done before is in the cycle all the same.
func (c *Controller) Step(ctx context.Context) (*Cycle, error) {
	c.n++
	now := c.o.Clock.Now()
	cy := &Cycle{N: c.n, At: now.UnixMilli(), Mode: c.o.Mode, Pause: c.pause}
	if err := c.confirm(ctx, "cycle"); err != nil {
		return cy, fmt.Errorf("cycle %d: %w", c.n, err)
	}
	look, err := c.look(ctx, now)
	if err != nil {
		return cy, c.blind(ctx, cy, now, fmt.Errorf("cycle %d: look at the cluster: %w", c.n, err))
	}
	c.unseen = 0
	cy.Snapshot, cy.Missing, cy.Frozen = look.Snapshot, look.Missing, look.Frozen
	c.observe(cy, now)
	left := c.cure(ctx, cy)
	if len(cy.Frozen) > 0 {
		cy.Plan = plan.Plan{At: cy.At, Outcome: cy.Frozen[0]}
		return cy, c.finish(ctx, cy)
	}
	if err := c.reviewed(ctx, cy); err != nil || cy.Review != nil {
		cy.LeftOut = left
		if err == nil {
			err = c.finish(ctx, cy)
		}
		return cy, err
	}
	c.plan(ctx, cy, now)
	cy.LeftOut = append(cy.LeftOut, left...)
	c.propose(cy)
	if err := c.finish(ctx, cy); err != nil || c.o.Mode != Govern || cy.Review != nil {
		return cy, err
	}
	err = c.act(ctx, cy, cy.At, slices.Concat(cy.Cures, cy.Verdict.Run))
	c.o.Metrics.acted(cy.Outcomes)
	return cy, err
}

// plan has the strategy plan and the guard check. The randomness of a plan follows from the seed and from how many plans there were
// before, so that a leader that goes on with the log draws what the one before would have drawn. The cycle's number would not do:
// rounds of drains have numbers, too, and a new leader makes other rounds.
func (c *Controller) plan(ctx context.Context, cy *Cycle, now time.Time) {
	trace := new(plan.Trace)
	if !c.o.Explain {
		trace = nil
	}
	snap, drained := c.undrained(cy.Snapshot)
	c.draws++
	cy.Plan, c.state = c.o.Manager.Shed(snap, c.state, rand.New(rand.NewPCG(c.seed, uint64(c.draws))), trace)
	c.addSplits(ctx, cy, trace)
	if trace != nil {
		cy.LeftOut = trace.Entries
	}
	cy.LeftOut = append(cy.LeftOut, drained...)
	c.heedDrains()
	cy.Harm = c.harm(ctx, cy, now)
	c.guard = guard.Observe(c.guard, cy.Snapshot, cy.Harm, c.o.Limits)
	cy.Verdict = guard.Check(cy.Snapshot, cy.Plan.Decisions, policies(cy.Snapshot), c.guard, c.o.Limits)
	c.restrict(cy)
}

// look looks at the cluster. A leader that could do so before gives up after blindTime, or several times what that took.
func (c *Controller) look(ctx context.Context, now time.Time) (*Look, error) {
	if c.o.Mode == Govern && c.looked > 0 {
		limited, cancel := context.WithTimeout(ctx, max(blindTime, 4*c.looked))
		defer cancel()
		ctx = limited
	}
	began := time.Now()
	look, err := c.o.Viewer.Look(ctx, now)
	if err == nil {
		c.looked = max(time.Since(began), 1)
	}
	return look, err
}

// blind ends a cycle that began to look at the cluster at a time and could not, and the leadership when this lasts.
func (c *Controller) blind(ctx context.Context, cy *Cycle, began time.Time, err error) error {
	if ctx.Err() != nil {
		return err
	}
	cy.Plan = plan.Plan{At: cy.At, Outcome: NoLook.Because(plan.S("error", err.Error()))}
	if written := c.finish(ctx, cy); written != nil {
		return errors.Join(written, err)
	}
	if c.unseen++; c.unseen == 1 {
		c.unseenSince = began
	}
	lasted := c.o.Clock.Now().Sub(c.unseenSince)
	if c.o.Mode == Govern && (c.unseen >= blindCycles || lasted >= blindTime) {
		return fmt.Errorf("%w after %d cycles in %v that could not look: %w", ErrStepDown, c.unseen, lasted.Round(time.Millisecond), err)
	}
	return err
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
	if len(cy.Frozen) == 0 {
		c.o.Observer.look(cy.Snapshot)
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

// finish writes the cycle's plan down.
func (c *Controller) finish(ctx context.Context, cy *Cycle) error {
	c.o.Metrics.cycle(cy)
	r := c.record(KindPlan, cy.N)
	r.Plan, r.LeftOut, r.Missing, r.Frozen, r.Pause, r.Review, r.Cures = &cy.Plan, cy.LeftOut, cy.Missing, cy.Frozen, cy.Pause, cy.Review, cy.Cures
	r.Harm = cy.Harm
	if len(cy.Plan.Decisions) > 0 {
		r.Verdict = &cy.Verdict
	}
	_, err := c.remember(ctx, r)
	return err
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
// ends it with ErrNotHolder, and what keeps this process from leading with ErrStepDown. Between the cycles a leader does
// what operators ask.
func (c *Controller) Run(ctx context.Context, interval time.Duration, each func(*Cycle)) error {
	for {
		cy, err := c.Step(ctx)
		if each != nil {
			each(cy)
		}
		if err == nil {
			err = c.prune(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case ends(ctx, err):
			return err
		case err != nil:
			c.o.Logger.Error("cycle failed", "cycle", cy.N, "error", err)
		}
		if err := c.idle(ctx, interval); err != nil {
			return err
		}
	}
}
