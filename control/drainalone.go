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

	Destinations Destinations // what the cluster makes of them; "" = it is bound by them
}

// Drained is what a LoneDrain did.
type Drained struct {
	Empty    bool // nothing was left at the end that may leave, or the broker was gone
	Plan     []plan.Decision
	Outcomes []Outcome
	Refused  []guard.Refusal // of the last round
	LeftOut  []plan.LeftOut  // likewise
}

const (
	drainRounds = 10 // in a row, of which nothing can be done, before a drain gives up
	drainTries  = 5  // of a bundle in a row that may fail before a drain gives up, once nothing else is left
)

// drainFailures bounds the rest of a bundle whose move failed. It is twice as long after each failure, and drainTries end that before.
const drainFailures = time.Hour

// loneTries is what a LoneDrain remembers of its moves.
type loneTries struct {
	failed map[string]bool // bundles whose last move failed
	guard  guard.State     // which of them rest
}

func newLoneTries() *loneTries {
	return &loneTries{map[string]bool{}, guard.NewState()}
}

// learn notes what came of a move.
func (t *loneTries) learn(x Outcome, now time.Time, limits guard.Limits) {
	t.failed[x.Decision.Bundle] = !x.left()
	if x.Result != Skipped { // that was not tried
		t.guard = guard.Learn(t.guard, guard.Outcome{Decision: x.Decision, Moved: x.left(), Owner: x.Owner, Millis: x.Millis, At: now.UnixMilli()}, limits)
	}
}

// stuck are the bundles that failed too often, if nothing else of a round will be tried. rest says whether some of it rests.
func (t *loneTries) stuck(r *drainRound) (names []string, rest bool) {
	refused := map[string]string{}
	for _, x := range r.verdict.Refused {
		refused[x.Decision.Bundle] = x.Why.Code
		rest = rest || x.Why.Code == guard.FailedRecently.ID
	}
	for _, d := range r.plan.Decisions {
		switch code := refused[d.Bundle]; {
		case t.guard.Failures[d.Bundle] >= drainTries:
			names = append(names, d.Bundle)
		case code == "" || code == guard.CycleBudget.ID || code == guard.FailedRecently.ID:
			return nil, rest
		}
	}
	return names, rest
}

// Plan is the first round, of which nothing is done; the look is replaced by what it was planned from.
func (d *LoneDrain) Plan(ctx context.Context, look *Look) drain.Plan {
	r, _ := d.round(ctx, newDrainer(d.Asks, d.Manual.Clock, d.Logger), look, newLoneTries())
	look.Snapshot = r.snap
	return r.plan
}

// limits are those that hold for an operator, too.
func (d *LoneDrain) limits() guard.Limits {
	return guard.Limits{BundlesPerCycle: d.Manual.Limits.BundlesPerCycle, TopicsPerSecond: d.Manual.Limits.TopicsPerSecond,
		FailureCoolDown: drainFailures.Milliseconds()}
}

func (d *LoneDrain) round(ctx context.Context, plans *drainer, look *Look, tries *loneTries) (drainRound, bool) {
	return plans.round(ctx, drain.Input{Snapshot: look.Snapshot, Policies: policies(look.Snapshot), Broker: d.Broker, Others: d.Also, Failed: tries.failed, Points: d.Points},
		d.Why, func(snap *cluster.Snapshot, ds []plan.Decision) guard.Verdict {
			return guard.Check(snap, ds, policies(snap), tries.guard, d.limits())
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
	clock, plans, tries := d.Manual.Clock, newDrainer(d.Asks, d.Manual.Clock, d.Logger), newLoneTries()
	var end time.Time     // of the hold; zero before the broker was empty
	idle, vain := 0, 0    // rounds in a row of which nothing could be done, and which tried and moved nothing
	lately := clock.Now() // since when it is not known what is on the broker, or whether that may leave
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
		r, asked := d.round(ctx, plans, look, tries)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		moved, tried, pause := 0, 0, drainPause
		if asked {
			if moved, tried, err = d.move(ctx, &r, tries, out); err != nil {
				return err
			}
		}
		now := clock.Now()
		switch {
		case out.Empty && end.IsZero():
			d.Logger.Info("the broker is empty", "broker", d.Broker, "moved", len(out.Outcomes), "stay", len(r.plan.Stay))
			end = now.Add(d.Hold)
		case moved > 0:
			idle, vain = 0, 0
		case !asked: // it may still be planned for what has left since
		case len(r.plan.Decisions) == 0:
			idle, vain = 0, 0
		default:
			switch names, rest := tries.stuck(&r); {
			case len(names) > 0:
				return d.givesUp(names)
			case tried > 0:
				idle, vain = 0, vain+1
				pause = min(drainPause<<min(vain, 10), drainSlow)
			case rest && len(r.verdict.Run) == 0:
				pause = drainWatch
			default:
				if idle++; idle >= drainRounds {
					return fmt.Errorf("%s is not empty: nothing could be done about %d bundles in %d rounds: %s", d.Broker, len(r.plan.Decisions), drainRounds, whyNot(&r, out))
				}
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
			if err := clock.Sleep(ctx, pause); err != nil {
				return err
			}
		}
	}
}

// whyNot is what stood in the way of a round that tried nothing.
func whyNot(r *drainRound, out *Drained) string {
	if refused := r.verdict.Refused; len(refused) > 0 {
		return fmt.Sprintf("%s: %s (%s)", refused[0].Decision.Bundle, refused[0].Why, refused[0].Why.Code)
	}
	if n := len(out.Outcomes); n > 0 {
		return fmt.Sprintf("%s: %s", out.Outcomes[n-1].Decision.Bundle, out.Outcomes[n-1].Why)
	}
	return "nothing is let run"
}

// givesUp says which bundles do not leave, and what may be done about it.
func (d *LoneDrain) givesUp(names []string) error {
	const most = 10 // that are named
	list, how := strings.Join(names[:min(len(names), most)], ", "), "what came of each move says why"
	if more := len(names) - most; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	switch d.Destinations {
	case Ignored:
		how = "the Simple load manager takes no destination and chose this broker again: stop the broker, which leaves them to the others, or drain it again once it is not the least loaded one"
	case Hinted:
		how = "the Modular load manager takes a destination for a hint: stop the broker, which leaves them to the others, or drain it again later"
	}
	return fmt.Errorf("%s is not empty: %d bundles come back or do not leave, after %d tries of each: %s; %s", d.Broker, len(names), drainTries, list, how)
}

// move does what a round lets run, and notes what it left. tried are the moves that failed or succeeded, and were not skipped.
func (d *LoneDrain) move(ctx context.Context, r *drainRound, tries *loneTries, out *Drained) (moved, tried int, err error) {
	out.Empty, out.LeftOut = r.plan.Empty(), slices.Concat(r.plan.Stay, r.plan.Waiting)
	out.Refused = slices.DeleteFunc(r.verdict.Refused, func(x guard.Refusal) bool { return x.Why.Code == guard.CycleBudget.ID })
	out.Plan = append(out.Plan, r.verdict.Run...)
	err = d.Manual.Run(ctx, r.verdict.Run, func(x Outcome) {
		out.Outcomes = append(out.Outcomes, x)
		tries.learn(x, d.Manual.Clock.Now(), d.limits())
		if x.left() {
			moved++
		}
		if x.Result != Skipped {
			tried++
		}
		d.Logger.Info("drain", "bundle", x.Decision.Bundle, "to", x.Decision.Destination, "result", x.Result, "millis", x.Millis, "why", x.Why)
	})
	out.Plan = out.Plan[:len(out.Outcomes)] // what was not begun is planned anew
	return moved, tried, err
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
