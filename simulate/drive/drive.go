// Package drive runs Ballast's own loop against a simulated cluster, one step after another in the cluster's time: the same
// views, guard, executor and controller that run against a real one.
package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
)

var (
	_ control.Cluster = (*simulate.Embedded)(nil)
	_ control.Clock   = (*simulate.Embedded)(nil)
)

// Options say how Ballast runs.
type Options struct {
	Mode     control.Mode       // "" = govern, with a take-over
	Manager  plan.Manager       // what plans
	Settings *settings.Settings // what it plans with; nil = the cluster's
	Derived  *load.Derived      // nil = the averages that brokers publish
	BuiltIn  plan.Manager       // the cluster's own load manager; nil = it places only
	Limits   guard.Limits
	Interval time.Duration // between cycles; 0 = one minute
	Explain  bool
	Logger   *slog.Logger // nil = none
}

// Result is what came of it.
type Result struct {
	*simulate.Run
	Cycles []*control.Cycle
}

// Run runs Ballast against the cluster of a scenario, from the end of its Settle to its end.
func Run(ctx context.Context, s simulate.Scenario, o Options) (_ *Result, err error) {
	run, err := s.Start(o.BuiltIn)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults(run.Cluster)
	e, err := simulate.NewEmbedded(ctx, run.Cluster, simulate.EmbeddedOptions{SelfDriven: true})
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var views views
	var act control.Actor
	if s.Config.Kind != simulate.Extensible {
		reports := o.reported(e, run.Cluster.Version(), s.Config.Kind)
		views = reports
		o, act = o.onReports(e, reports, s.Config.Kind)
	} else {
		published := control.NewViews(control.ViewOptions{Cluster: e, Log: e.Log(), Settings: o.Settings, Version: run.Cluster.Version(),
			Stepwise: true, Derived: o.Derived, Logger: o.Logger})
		views, act = published, control.NewExecutor(e, published, e, limits)
	}
	if err := views.Open(ctx); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	defer func() { err = errors.Join(err, views.Close()) }()
	if err := follow(ctx, e, views, s.Settle); err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	r := &Result{Run: run}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	service := o.service(e, views, act, untilClock{e, views, e.Now().Add(s.Duration), stop})
	service.Each = func(cy *control.Cycle) { r.Cycles = append(r.Cycles, cy) }
	if err := service.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return r, err
	}
	return r, run.Err()
}

func (o Options) withDefaults(c *simulate.Cluster) Options {
	o.Mode = cmp.Or(o.Mode, control.Govern)
	o.Interval = cmp.Or(o.Interval, time.Minute)
	if o.Settings == nil {
		o.Settings = c.Settings()
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// limits bound one action.
var limits = control.ExecLimits{Request: time.Minute, Verify: 10 * time.Second, Poll: 100 * time.Millisecond}

// views are what Ballast sees the cluster through.
type views interface {
	control.Viewer
	Open(ctx context.Context) error
	CatchUp(ctx context.Context) error
	Close() error
}

func (o Options) service(e *simulate.Embedded, views views, act control.Actor, clock control.Clock) *control.Service {
	const instance = "simulation"
	lock := control.NewLock(e.Log(), instance, 5*time.Second, e.Now)
	controller := control.New(control.Options{Instance: instance, Mode: o.Mode, Manager: o.Manager, Viewer: views, Executor: act, Lock: lock,
		Clock: clock, Limits: o.Limits, Explain: o.Explain, Logger: o.Logger})
	return &control.Service{Cluster: e, Controller: controller, Lock: lock, TakeOvers: control.NewTakeOvers(e.Log(), e, instance, e.Now),
		TakeOver: o.Mode == control.Govern, Interval: o.Interval, Standby: time.Second, Leave: time.Minute, Clock: clock, Logger: o.Logger}
}

// hearing is how often the views take in what is on the log. Age counts from then, so it must be often.
const hearing = time.Second

// follow lets time pass while the views follow the log.
func follow(ctx context.Context, e *simulate.Embedded, views views, d time.Duration) error {
	for ; d > 0; d -= hearing {
		if err := e.Sleep(ctx, min(d, hearing)); err != nil {
			return err
		}
		if err := views.CatchUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// untilClock is the cluster's clock, and ends everything at a time. The views follow the log while somebody sleeps.
type untilClock struct {
	*simulate.Embedded
	views views
	end   time.Time
	stop  context.CancelFunc
}

// Sleep waits no longer than until the end.
func (c untilClock) Sleep(ctx context.Context, d time.Duration) error {
	err := follow(ctx, c.Embedded, c.views, min(d, c.end.Sub(c.Now())))
	if err == nil && !c.Now().Before(c.end) {
		c.stop()
		return ctx.Err()
	}
	return err
}

// Scoreboard is the account of the whole run. The cycles are Ballast's.
func (r *Result) Scoreboard() simulate.Scoreboard {
	var acting []int64
	for _, cy := range r.Cycles {
		if len(cy.Outcomes) > 0 {
			acting = append(acting, cy.At)
		}
	}
	return r.Run.ScoreboardOf(len(r.Cycles), acting)
}

// Log is a line for each cycle, consecutive ones that did nothing for the same reason together.
func (r *Result) Log() string {
	var b strings.Builder
	last, times := "", 0
	flush := func() {
		if times > 0 {
			fmt.Fprintf(&b, "%s (%d cycles)\n", last, times)
		}
		last, times = "", 0
	}
	for _, cy := range r.Cycles {
		what := cy.Plan.Outcome.Code
		if len(cy.Plan.Decisions) == 0 {
			if what != last {
				flush()
			}
			last, times = what, times+1
			continue
		}
		flush()
		fmt.Fprintf(&b, "%s %s%s, refused by the guard %d", r.Time(cy.At), what, simulate.Pairs(cy.Plan.Decisions), len(cy.Verdict.Refused))
		results := map[control.Result]int{}
		for _, out := range cy.Outcomes {
			results[out.Result]++
		}
		for _, result := range []control.Result{control.Done, control.Elsewhere, control.Refused, control.Failed, control.TimedOut, control.Skipped} {
			if n := results[result]; n > 0 {
				fmt.Fprintf(&b, ", %s %d", result, n)
			}
		}
		b.WriteByte('\n')
	}
	flush()
	return b.String()
}
