package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Clock is time as the controller sees it; a simulation has its own.
type Clock interface {
	Now() time.Time
	// Sleep waits for d or until ctx ends, whose error it then returns.
	Sleep(ctx context.Context, d time.Duration) error
}

// Owners tells who owns a bundle now, from the ownership log or, where there is none, from the brokers.
type Owners interface {
	Owner(ctx context.Context, bundle string) (Ownership, error)
}

// NearOwners are Owners that find out faster when they are told where a bundle probably is.
type NearOwners interface {
	Owners
	OwnerNear(ctx context.Context, bundle string, likely ...string) (Ownership, error)
}

// Executor carries decisions out, one at a time, and verifies what came of each.
type Executor struct {
	cluster Cluster
	owners  Owners
	clock   Clock
	limits  ExecLimits
}

// ExecLimits bound one action.
type ExecLimits struct {
	Request time.Duration // one admin request
	Verify  time.Duration // from the request until the new owner must be seen
	Poll    time.Duration // between two looks at the owner
}

// NewExecutor makes an executor.
func NewExecutor(c Cluster, o Owners, clock Clock, l ExecLimits) *Executor {
	return &Executor{cluster: c, owners: o, clock: clock, limits: l}
}

// Run carries one decision out. It never repeats a request whose outcome it does not know; it looks who owns the bundle
// instead, because what counts is the owner and not what the request said.
func (x *Executor) Run(ctx context.Context, d plan.Decision) Outcome {
	start := x.clock.Now()
	out := x.run(ctx, d)
	out.Decision, out.Millis = d, x.clock.Now().Sub(start).Milliseconds()
	return out
}

func (x *Executor) run(ctx context.Context, d plan.Decision) Outcome {
	why := x.changed(ctx, d)
	if ctx.Err() != nil {
		why = NotBegun
	}
	if why != "" {
		return Outcome{Result: Skipped, Why: why}
	}
	// What is begun is finished, for a bounded time, also when the process is told to stop meanwhile.
	going, end := beyond(ctx)
	defer end()
	request, cancel := context.WithTimeout(going, x.limits.Request)
	err := x.request(request, d)
	cancel()
	if errors.Is(err, ErrNotHolder) {
		return Outcome{Result: Skipped, Why: err.Error()}
	}
	if err != nil && refused(err) {
		return Outcome{Result: Refused, Why: err.Error(), Attempts: 1}
	}
	if d.Action == plan.Split {
		out := x.verifySplit(ctx, going, d, err)
		out.Attempts = 1
		return out
	}
	out := x.verify(ctx, going, d)
	out.Attempts = 1
	if err != nil && out.Result != Done {
		out.Why = fmt.Sprintf("%v; %s", err, out.Why)
		if out.Result == TimedOut {
			out.Result = Failed
		}
	}
	return out
}

// changed says what has changed since the plan was made, "" if the decision still holds.
func (x *Executor) changed(ctx context.Context, d plan.Decision) string {
	brokers, err := x.cluster.Brokers(ctx)
	if err != nil {
		return fmt.Sprintf("the registry cannot be read: %v", err)
	}
	if d.Destination != "" && !registered(brokers, d.Destination) {
		return fmt.Sprintf("the destination %s is not registered any more", d.Destination)
	}
	o, err := x.owner(ctx, d.Bundle, d.Source, d.Destination)
	if err != nil {
		return fmt.Sprintf("the owner cannot be read: %v", err)
	}
	if o.Owner != d.Source || o.State != event.Owned {
		return fmt.Sprintf("the bundle is %s by %q, not owned by %s any more", o.State, o.Owner, d.Source)
	}
	return ""
}

// owner is who owns a bundle that is probably on one of some brokers.
func (x *Executor) owner(ctx context.Context, bundle string, likely ...string) (Ownership, error) {
	if near, ok := x.owners.(NearOwners); ok {
		return near.OwnerNear(ctx, bundle, likely...)
	}
	return x.owners.Owner(ctx, bundle)
}

func registered(brokers []cluster.Broker, id string) bool {
	for i := range brokers {
		if brokers[i].ID == id {
			return true
		}
	}
	return false
}

func (x *Executor) request(ctx context.Context, d plan.Decision) error {
	if d.Action == plan.Split {
		algorithm := ""
		if len(d.Boundaries) > 0 {
			algorithm = "specified_positions_divide"
		}
		return x.cluster.Split(ctx, d.Bundle, algorithm, d.Boundaries, d.UnloadAfter)
	}
	return x.cluster.Unload(ctx, d.Bundle, d.Destination)
}

// verify waits until the bundle has the wanted owner, or another, or nobody, or time is up. It asks within going, which outlives ctx.
func (x *Executor) verify(ctx, going context.Context, d plan.Decision) Outcome {
	begun := x.clock.Now()
	v := vigil{ctx: ctx, clock: x.clock, deadline: begun.Add(x.limits.Verify)}
	var last string
	for {
		o, err := x.owner(going, d.Bundle, d.Destination, d.Source)
		switch {
		case err != nil:
			last = err.Error()
		case o.State == event.Owned && o.Owner != d.Source:
			if d.Destination == "" || o.Owner == d.Destination {
				return Outcome{Result: Done, Owner: o.Owner}
			}
			return Outcome{Result: Elsewhere, Owner: o.Owner, Why: fmt.Sprintf("%s owns it, not %s", o.Owner, d.Destination)}
		case d.Destination == "" && (o.State == event.Free || o.State == event.Init):
			return Outcome{Result: Done} // released; its next lookup gives it an owner
		default:
			last = fmt.Sprintf("the bundle is %s by %q", o.State, o.Owner)
		}
		if v.over() {
			return Outcome{Result: TimedOut, Owner: o.Owner, Why: v.why(fmt.Sprintf("after %v %s", x.clock.Now().Sub(begun).Round(time.Millisecond), last))}
		}
		if err := v.sleep(x.limits.Poll); err != nil {
			return Outcome{Result: TimedOut, Owner: o.Owner, Why: err.Error()}
		}
	}
}

// refused says whether the cluster said no before anything happened.
func refused(err error) bool {
	var r interface{ Refused() bool }
	return errors.As(err, &r) && r.Refused()
}
