package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// ErrFrozen is wrapped by the error that says why a picture of the cluster may not be decided on.
var ErrFrozen = errors.New("nothing can be decided from what is seen of the cluster")

// Trusted looks until the picture may be decided on, or enough says of one that may not that it will do (nil = never), at most until
// a time. The error is ErrFrozen then, with why.
func Trusted(ctx context.Context, v Viewer, clock Clock, until time.Time, enough func(*Look) bool) (*Look, error) {
	for {
		look, err := v.Look(ctx, clock.Now())
		if err != nil {
			return nil, err
		}
		if len(look.Frozen) == 0 || enough != nil && enough(look) {
			return look, nil
		}
		if !clock.Now().Before(until) {
			return nil, fmt.Errorf("%w: %s (%s)", ErrFrozen, look.Frozen[0], look.Frozen[0].Code)
		}
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// NamespaceBound is why a namespace of a broker's own stays on it.
var NamespaceBound = plan.Code{ID: "NAMESPACE_OF_A_BROKER", Template: "it is the heartbeat or SLA namespace of the broker and belongs to it"}

// Bound are those of the bundles that a broker owns that are bound to it: they are on no ownership log, and in no report.
func Bound(broker string, owned []string) (out []plan.LeftOut) {
	for _, name := range owned {
		if event.IsBrokerBound(name) {
			out = append(out, plan.LeftOut{Bundle: name, Broker: broker, Why: NamespaceBound.Because()})
		}
	}
	return out
}

// LoneDrain empties a broker while nobody leads, under the lock of its Manual.
type LoneDrain struct {
	Broker string
	Also   []string      // other brokers that are drained: nothing is moved to them
	Hold   time.Duration // how long to stay after the broker is empty, and move away what arrives
	Wait   time.Duration // how long what cannot be seen or known is waited for
	Why    string        // is added to the reasons
	Viewer Viewer
	Asks   DrainAsks
	Manual *Manual
	Points float64 // see drain.Input
	Logger *slog.Logger
}

// Drained is what a LoneDrain did.
type Drained struct {
	Empty    bool // nothing was left at the end that may leave, or the broker was gone
	Plan     []plan.Decision
	Outcomes []Outcome
	Refused  []guard.Refusal // of the last round
	LeftOut  []plan.LeftOut  // likewise
}

// drainRounds is how many rounds in a row may move nothing before a drain gives up.
const drainRounds = 10

// Plan is the first round, of which nothing is done; the look is replaced by what it was planned from.
func (d *LoneDrain) Plan(ctx context.Context, look *Look) drain.Plan {
	r, _ := d.round(ctx, newDrainer(d.Asks, d.Manual.Clock, d.Logger), look, nil)
	look.Snapshot = r.snap
	return r.plan
}

func (d *LoneDrain) round(ctx context.Context, plans *drainer, look *Look, failed map[string]bool) (drainRound, bool) {
	limits := guard.Limits{BundlesPerCycle: d.Manual.Limits.BundlesPerCycle, TopicsPerSecond: d.Manual.Limits.TopicsPerSecond}
	return plans.round(ctx, drain.Input{Snapshot: look.Snapshot, Policies: policies(look.Snapshot), Broker: d.Broker, Others: d.Also, Failed: failed, Points: d.Points},
		d.Why, func(snap *cluster.Snapshot, ds []plan.Decision) guard.Verdict {
			return guard.Check(snap, ds, policies(snap), guard.State{Version: 1}, limits)
		})
}

// Run makes rounds within the budgets until nothing is left, and watches until the hold is over. It ends without an error when ctx
// does.
func (d *LoneDrain) Run(ctx context.Context) (*Drained, error) {
	out := &Drained{Plan: []plan.Decision{}}
	err := d.run(ctx, out)
	if ctx.Err() != nil {
		err = nil // stopped by the user
	}
	return out, err
}

func (d *LoneDrain) run(ctx context.Context, out *Drained) error {
	clock, plans, failed := d.Manual.Clock, newDrainer(d.Asks, d.Manual.Clock, d.Logger), map[string]bool{}
	var end time.Time              // of the hold; zero before the broker was empty
	idle, lately := 0, clock.Now() // since when it is not known what is on the broker, or whether that may leave
	for {
		look, err := Trusted(ctx, d.Viewer, clock, later(clock.Now(), end).Add(d.Wait), func(l *Look) bool { return l.Snapshot.BrokerIndex(d.Broker) < 0 })
		if err != nil {
			out.Empty = false
			return err
		}
		if look.Snapshot.BrokerIndex(d.Broker) < 0 {
			d.Logger.Info("the broker has left the registry", "broker", d.Broker)
			out.Empty = true
			return nil
		}
		r, asked := d.round(ctx, plans, look, failed)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		moved := 0
		if asked {
			if moved, err = d.move(ctx, &r, failed, out); err != nil {
				return err
			}
		}
		now := clock.Now()
		switch {
		case out.Empty && end.IsZero():
			d.Logger.Info("the broker is empty", "broker", d.Broker, "moved", len(out.Outcomes), "stay", len(r.plan.Stay))
			end = now.Add(d.Hold)
		case moved > 0:
			idle = 0
		case len(r.plan.Decisions) > 0:
			if idle++; idle >= drainRounds {
				return fmt.Errorf("%d bundles do not leave %s after %d tries", len(r.plan.Decisions), d.Broker, drainRounds)
			}
		}
		doubt := unknown(out.LeftOut)
		if doubt == nil || moved > 0 {
			lately = now
		}
		switch {
		case out.Empty && !now.Before(end) && asked:
			return nil
		case out.Empty && !now.Before(end):
			plans.awake(d.Broker) // the last word is not from before
			continue
		case doubt != nil && !now.Before(later(lately, end).Add(d.Wait)):
			return fmt.Errorf("%s is not empty: %s %s (%s)", d.Broker, doubt.Bundle, doubt.Why, doubt.Why.Code)
		}
		if moved == 0 {
			if err := clock.Sleep(ctx, drainPause); err != nil {
				return err
			}
		}
	}
}

// move does what a round lets run, and notes what it left.
func (d *LoneDrain) move(ctx context.Context, r *drainRound, failed map[string]bool, out *Drained) (moved int, err error) {
	out.Empty, out.LeftOut = r.plan.Empty(), slices.Concat(r.plan.Stay, r.plan.Waiting)
	out.Refused = slices.DeleteFunc(r.verdict.Refused, func(x guard.Refusal) bool { return x.Why.Code == guard.CycleBudget.ID })
	out.Plan = append(out.Plan, r.verdict.Run...)
	err = d.Manual.Run(ctx, r.verdict.Run, func(x Outcome) {
		out.Outcomes = append(out.Outcomes, x)
		if failed[x.Decision.Bundle] = x.Failed(); !x.Failed() {
			moved++
		}
		d.Logger.Info("drain", "bundle", x.Decision.Bundle, "to", x.Decision.Destination, "result", x.Result, "millis", x.Millis, "why", x.Why)
	})
	out.Plan = out.Plan[:len(out.Outcomes)] // what was not begun is planned anew
	return moved, err
}

// unknown is the first of what a round left of which it is not known whether it is there, or may leave.
func unknown(left []plan.LeftOut) *plan.LeftOut {
	i := slices.IndexFunc(left, func(l plan.LeftOut) bool {
		return l.Why.Code == drain.NotTold.ID || l.Why.Code == drain.StillOwned.ID || l.Why.Code == policy.Frozen.ID
	})
	if i < 0 {
		return nil
	}
	return &left[i]
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
