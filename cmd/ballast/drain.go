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
	"github.com/ballast-lb/ballast/plan"
)

// drainHow is how a drain is followed.
type drainHow struct {
	hold   time.Duration // nobody leads: how long to stay after the broker is empty
	wait   time.Duration // for the leader's answer; nobody leads: for what cannot be seen or known
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
away what arrives. It fails when what is on the broker, or the policies of that, cannot be known for --wait. A bundle whose move
failed rests for 10s, twice as long after each further failure, and rounds that move nothing come more rarely, once a minute at
last; when only such bundles are left that failed 5 times in a row, the command fails and names them.
` + operationExit,
		Args: one("BROKER", aBroker),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case how.wait < time.Second:
				return fmt.Errorf("--wait is %v: it must be at least 1s", how.wait)
			case how.detach && !o.execute:
				return errors.New("--detach says how to act: it needs --execute")
			}
			if o.execute {
				err := a.drainLed(cmd.Context(), o, args[0], also, how)
				if !errors.Is(err, control.ErrNoLeader) {
					return unanswered(cmd.Context(), err)
				}
				if how.detach {
					return fmt.Errorf("--detach leaves the drain to the leader: %w", err)
				}
				return unanswered(cmd.Context(), a.drain(cmd.Context(), o, args[0], also, how))
			}
			return a.drainPlan(cmd.Context(), o, args[0], also, how)
		},
	}
	o.flags(cmd)
	cmd.Flags().StringSliceVar(&also, "also", nil, "other brokers that are being drained: nothing is moved to them")
	cmd.Flags().DurationVar(&how.hold, "hold", 0, "while nobody governs: stay for so long after the broker is empty, and move away what arrives")
	cmd.Flags().DurationVar(&how.wait, "wait", 15*time.Second, "how long to wait for the leader's answer; while nobody governs, for what cannot be seen or read now")
	cmd.Flags().DurationVar(&how.follow, "follow", 0, "while the leader drains: how long to wait until the broker is empty; 0 = no limit")
	cmd.Flags().BoolVar(&how.detach, "detach", false, "let the leader drain the broker, and do not wait until it is empty")
	cmd.MarkFlagsMutuallyExclusive("follow", "detach")
	cmd.Flags().Lookup("beside-leader").Hidden = true
	check := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if o.beside {
			return errors.New("drain does not act beside another process, which would move bundles back: the leader does it")
		}
		if err := flagGiven(cmd, "also", aBroker); err != nil {
			return err
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
		Args:    one("BROKER", aBroker),
		PreRunE: func(*cobra.Command, []string) error { return flags.check() },
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.undrain(cmd.Context(), args[0], flags.reason, flags.wait)
		},
	}
	flags.add(cmd, "why; it goes into the decision log")
	return cmd
}

// lone is the drain of a broker by this process.
func (l *live) lone(o operation, broker string, also []string, how drainHow, m *control.Manual) (*control.LoneDrain, error) {
	id, err := l.broker("BROKER", broker)
	if err != nil {
		return nil, err
	}
	others := make([]string, len(also))
	for i := range also {
		if others[i], err = l.broker("--also", also[i]); err != nil {
			return nil, err
		}
	}
	return &control.LoneDrain{Broker: id, Also: others, Hold: how.hold, Wait: how.wait, Why: "; " + o.why().String(), Viewer: l.views, Asks: l.drainAsks(),
		Manual: m, Points: l.limits().DrainPoints, Logger: l.logger, Destinations: l.destinations()}, nil
}

// drainAsks is what drains ask of the cluster beside a look.
func (s *session) drainAsks() control.DrainAsks {
	_, reported := s.onReports()
	return control.DrainAsks{Figures: s.figures, Owned: s.cluster.Owned, Reported: reported}
}

// drainPlan shows the first round of a drain.
func (a *app) drainPlan(ctx context.Context, o operation, broker string, also []string, how drainHow) error {
	var p drain.Plan
	o.promises = true
	err := a.operate(ctx, o, how.wait, func(l *live) ([]plan.Decision, []plan.LeftOut, error) {
		d, err := l.lone(o, broker, also, how, &control.Manual{Clock: control.SystemClock{}})
		if err != nil {
			return nil, nil, err
		}
		p = d.Plan(ctx, l.look)
		return p.Decisions, slices.Concat(p.Stay, p.Waiting), nil
	})
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(p.Stay, nowhere):
		return exitCode(exitError)
	case !p.Empty(): // nothing can be planned yet of what is left
		return exitCode(exitPlanned)
	}
	return nil
}

// nowhere says of what a drain left whether no other broker may take it.
func nowhere(l plan.LeftOut) bool { return l.Why.Code == drain.Nowhere.ID }

// drain empties a broker while nobody leads, and keeps it empty for the time of the hold.
func (a *app) drain(ctx context.Context, o operation, broker string, also []string, how drainHow) error {
	l, err := a.live(ctx)
	if err != nil {
		return err
	}
	defer l.end()
	if err := l.trust(ctx, how.wait); err != nil {
		return err
	}
	m, end := l.manual(false)
	defer end()
	d, err := l.lone(o, broker, also, how, m)
	if err != nil {
		return err
	}
	if err := m.Begin(ctx); err != nil {
		return control.Beside(err, "stop it for as long as the drain takes")
	}
	if on, err := control.BuiltInShedding(ctx, l.cluster); err == nil && on {
		l.logger.Warn("the cluster's own shedder is on: it may move bundles to the broker that is drained", "broker", d.Broker)
	}
	done, err := d.Run(ctx)
	out := &operated{Executed: true, Plan: done.Plan, Refused: done.Refused, LeftOut: append(done.LeftOut, l.elsewhere(ctx, d.Broker)...), Outcomes: done.Outcomes,
		Advice: l.promise(len(done.Plan), m.Actor)}
	if o.output != "table" {
		err = errors.Join(err, a.encode(o.output, out))
	} else {
		printOperated(a.stdout, out)
	}
	if err == nil && (!done.Empty || len(out.Refused) > 0 || slices.ContainsFunc(out.LeftOut, nowhere)) {
		return exitCode(exitError)
	}
	return err
}

// elsewhere are the broker's own namespaces, which are on no ownership log and never leave it.
func (s *session) elsewhere(ctx context.Context, id string) []plan.LeftOut {
	names, err := s.cluster.Owned(ctx, id)
	if err != nil {
		return nil // they are named for completeness
	}
	return control.Bound(id, names)
}
