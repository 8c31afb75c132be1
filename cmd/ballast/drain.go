package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// drainHow is how a drain is followed.
type drainHow struct {
	hold   time.Duration // nobody leads: how long to stay after the broker is empty
	wait   time.Duration // for the leader's answer
	follow time.Duration // how long the leader's drain is followed; 0 = until the broker is empty
	detach bool          // the leader does it, and nobody waits for that
}

func newDrain(a *app) *cobra.Command {
	var o operation
	var also []string
	var how drainHow
	cmd := &cobra.Command{
		Use:   "drain BROKER",
		Short: "Empty a broker, evenly and within the budgets",
		Long: `Moves the bundles of a broker to the others: each to the broker that would have least traffic of those that isolation policies
allow, at most ballastMaxBundlesPerCycle at a time, at the pace of ballastMaxTopicsPerSecond. What may not leave is named: bundles
of pulsar/system and the broker's own namespaces, and what no other broker may take. Policies are not changed.

Beside "ballast run --mode govern" the leader does it: the order is in the decision log, a leader that comes later goes on with it,
and it lasts until "ballast undrain". What arrives later is moved away. The command follows it until the broker is empty or gone, or for
--follow, after which it fails; stopping the command does not stop the drain, and with --detach it ends once the leader has taken the order.

While nobody governs the command does it by itself, holds the lock meanwhile, and ends when the broker is empty. An empty broker
is the favourite of every placement: with --hold it stays for so long, or until it is stopped, or the broker is gone, and moves
away what arrives.
` + operationExit,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case how.hold < 0:
				return fmt.Errorf("--hold is %v: it must not be negative", how.hold)
			case how.wait < time.Second:
				return fmt.Errorf("--wait is %v: it must be at least 1s", how.wait)
			case how.follow < 0:
				return fmt.Errorf("--follow is %v: it must not be negative", how.follow)
			case how.detach && !o.execute:
				return errors.New("--detach says how to act: it needs --execute")
			}
			if o.execute {
				err := a.drainLed(cmd.Context(), o, args[0], also, how)
				if !errors.Is(err, control.ErrNoLeader) {
					return err
				}
				if how.detach {
					return fmt.Errorf("--detach leaves the drain to the leader: %w", err)
				}
				return a.drain(cmd.Context(), o, args[0], also, how.hold)
			}
			return a.operate(cmd.Context(), o, func(l *live) ([]plan.Decision, []plan.LeftOut, error) {
				p, _, err := l.drainPlan(cmd.Context(), args[0], also, nil)
				return p.Decisions, slices.Concat(p.Stay, p.Waiting), err
			})
		},
	}
	o.flags(cmd)
	cmd.Flags().StringSliceVar(&also, "also", nil, "other brokers that are being drained: nothing is moved to them")
	cmd.Flags().DurationVar(&how.hold, "hold", 0, "while nobody governs: stay for so long after the broker is empty, and move away what arrives")
	cmd.Flags().DurationVar(&how.wait, "wait", 15*time.Second, "how long to wait for the leader's answer")
	cmd.Flags().DurationVar(&how.follow, "follow", 0, "while the leader drains: how long to wait until the broker is empty; 0 = no limit")
	cmd.Flags().BoolVar(&how.detach, "detach", false, "let the leader drain the broker, and do not wait until it is empty")
	cmd.MarkFlagsMutuallyExclusive("follow", "detach")
	cmd.Flags().Lookup("beside-leader").Hidden = true
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if o.beside {
			return errors.New("drain does not act beside another process, which would move bundles back: the leader does it")
		}
		return check(cmd, args)
	}
	return cmd
}

func newUndrain(a *app) *cobra.Command {
	var flags commandFlags
	cmd := &cobra.Command{
		Use:   "undrain BROKER",
		Short: "Let a drained broker take bundles again",
		Long: `Tells the process that governs to end the drain of a broker. While nobody governs there is nothing to end but an order that the
next leader would go on with: undrain says so. A "ballast drain" that drains by itself ends with its process.`,
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error { return flags.check() },
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.undrain(cmd.Context(), args[0], flags.reason, flags.wait)
		},
	}
	flags.add(cmd, "why; it goes into the decision log")
	return cmd
}

// drainPlan looks anew and plans the drain of a broker.
func (l *live) drainPlan(ctx context.Context, broker string, also []string, failed map[string]bool) (drain.Plan, string, error) {
	id, err := l.broker("BROKER", broker)
	if err != nil {
		return drain.Plan{}, "", err
	}
	for i := range also {
		if also[i], err = l.broker("--also", also[i]); err != nil {
			return drain.Plan{}, "", err
		}
	}
	if err := l.statistics(ctx); err != nil {
		return drain.Plan{}, "", err
	}
	p := drain.Of(drain.Input{Snapshot: l.look.Snapshot, Policies: control.PolicyView(l.look.Snapshot), Broker: id, Others: also, Failed: failed,
		Points: l.limits().DrainPoints})
	return p, id, nil
}

// drain empties a broker, and keeps it empty for the time of hold.
func (a *app) drain(ctx context.Context, o operation, broker string, also []string, hold time.Duration) error {
	l, err := a.live(ctx)
	if err != nil {
		return err
	}
	defer l.end()
	p, id, err := l.drainPlan(ctx, broker, also, nil)
	if err != nil {
		return err
	}
	m, end := l.manual(false)
	defer end()
	if err := m.Begin(ctx); err != nil {
		return control.Beside(err, "stop it for as long as the drain takes")
	}
	if on, err := control.BuiltInShedding(ctx, l.cluster); err == nil && on {
		l.logger.Warn("the cluster's own shedder is on: it may move bundles to the broker that is drained", "broker", id)
	}
	out := &operated{Executed: true, Plan: []plan.Decision{}}
	err = l.keepEmpty(ctx, m, o, id, also, hold, p, out)
	if o.output != "table" {
		err = errors.Join(err, a.encode(o.output, out))
	} else {
		printOperated(a.stdout, out)
	}
	if err != nil {
		return err
	}
	if len(out.Refused) > 0 || slices.ContainsFunc(out.LeftOut, func(x plan.LeftOut) bool { return x.Why.Code == drain.Nowhere.ID }) {
		return exitCode(exitError)
	}
	return nil
}

// drainRounds is how many rounds in a row may move nothing before a drain gives up.
const drainRounds = 10

// keepEmpty is the loop of a drain: rounds within the budgets until nothing is left, then watching until the hold is over.
func (l *live) keepEmpty(ctx context.Context, m *control.Manual, o operation, id string, also []string, hold time.Duration, p drain.Plan, out *operated) error {
	clock := control.SystemClock{}
	failed := map[string]bool{}
	var until time.Time // of the hold; zero before the broker was empty
	for idle := 0; ; {
		out.LeftOut = slices.Concat(p.Stay, p.Waiting)
		for i := range p.Decisions {
			p.Decisions[i].Why.Text += "; " + o.why().String()
		}
		limits := guard.Limits{BundlesPerCycle: m.Limits.BundlesPerCycle, TopicsPerSecond: m.Limits.TopicsPerSecond}
		verdict := guard.Check(l.look.Snapshot, p.Decisions, control.PolicyView(l.look.Snapshot), guard.State{Version: 1}, limits)
		out.Refused = slices.DeleteFunc(verdict.Refused, func(r guard.Refusal) bool { return r.Why.Code == guard.CycleBudget.ID })
		moved := 0
		out.Plan = append(out.Plan, verdict.Run...)
		err := m.Run(ctx, verdict.Run, func(x control.Outcome) {
			out.Outcomes = append(out.Outcomes, x)
			if failed[x.Decision.Bundle] = x.Failed(); !x.Failed() {
				moved++
			}
			l.logger.Info("drain", "bundle", x.Decision.Bundle, "to", x.Decision.Destination, "result", x.Result, "millis", x.Millis, "why", x.Why)
		})
		out.Plan = out.Plan[:len(out.Outcomes)] // what was not begun is planned anew
		if ctx.Err() != nil {
			return nil // stopped by the user
		}
		if err != nil {
			return err
		}
		now := clock.Now()
		switch {
		case p.Empty() && until.IsZero():
			l.logger.Info("the broker is empty", "broker", id, "moved", len(out.Outcomes), "stay", len(p.Stay))
			until = now.Add(hold)
		case moved > 0 || len(p.Waiting) > 0 && until.IsZero():
			idle = 0
		case !p.Empty():
			if idle++; idle >= drainRounds {
				return fmt.Errorf("%d bundles do not leave %s after %d tries", len(p.Decisions), id, drainRounds)
			}
		}
		if !until.IsZero() && !now.Before(until) && p.Empty() {
			return nil
		}
		if moved == 0 {
			if err := clock.Sleep(ctx, time.Second); err != nil {
				return nil
			}
		}
		look, err := l.views.Look(ctx, clock.Now())
		if err != nil {
			return err
		}
		l.look = look
		if look.Snapshot.BrokerIndex(id) < 0 {
			l.logger.Info("the broker has left the registry", "broker", id)
			return nil
		}
		if p, _, err = l.drainPlan(ctx, id, also, failed); err != nil {
			return err
		}
		if left := l.elsewhere(ctx, id); len(left) > 0 {
			p.Stay = append(p.Stay, left...)
		}
	}
}

// elsewhere are the broker's own namespaces, which are on no ownership log and never leave it.
func (s *session) elsewhere(ctx context.Context, id string) (out []plan.LeftOut) {
	names, err := s.cluster.Owned(ctx, id)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if event.IsBrokerBound(name) {
			out = append(out, plan.LeftOut{Bundle: name, Broker: id, Why: brokerBound.Because()})
		}
	}
	return out
}

var brokerBound = plan.Code{ID: "NAMESPACE_OF_A_BROKER", Template: "it is the heartbeat or SLA namespace of the broker and belongs to it"}
