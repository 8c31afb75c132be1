package drive

import (
	"context"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/simple"
	"github.com/ballast-lb/ballast/simulate"
)

// reading is how often the load reports of a Modular or Simple cluster are read.
const reading = 5 * time.Second

// reported are the views of a Modular or Simple cluster together with the reporter that feeds them: one round whenever it is due.
type reported struct {
	*control.ReportViews
	e        *simulate.Embedded
	reporter *reporter.Reporter
	next     time.Time
}

func (o Options) reported(e *simulate.Embedded, version string, kind simulate.Kind) *reported {
	class := modular.Class
	if kind == simulate.Simple {
		class = simple.Class
	}
	history := control.NewHistory(control.HistoryOptions{Log: e.Log(), Keep: true, Stepwise: true, Logger: o.Logger,
		Interval: time.Duration(o.Settings.LoadBalancerResourceQuotaUpdateIntervalMinutes) * time.Minute})
	return &reported{
		ReportViews: control.NewReportViews(control.ReportOptions{Cluster: e, Log: e.Log(), History: history, Settings: o.Settings, Version: version,
			Class: class, Stale: 3*reading + 10*time.Second, Derived: o.Derived, Stepwise: true, Now: e.Now, Logger: o.Logger}),
		e:        e,
		reporter: reporter.New(reporter.Options{Cluster: e, Log: e.Log(), Settings: o.Settings, Version: version, Clock: e, Interval: reading, Concurrent: 1, Logger: o.Logger}),
	}
}

// CatchUp reads the reports when that is due and takes in what is on the log.
func (v *reported) CatchUp(ctx context.Context) error {
	if now := v.e.Now(); !now.Before(v.next) {
		v.next = now.Add(reading)
		if _, err := v.reporter.Poll(ctx, now); err != nil && ctx.Err() != nil {
			return fmt.Errorf("read the load reports: %w", err)
		}
	}
	return v.ReportViews.CatchUp(ctx)
}

// attempts is how often a bundle is unloaded for one decision.
const attempts = 3

// onReports makes Ballast act on a cluster that takes destinations for hints, or ignores them.
func (o Options) onReports(e *simulate.Embedded, views *reported, kind simulate.Kind) (Options, control.Actor) {
	destinations := control.Hinted
	if kind == simulate.Simple {
		destinations = control.Ignored
	}
	x := control.NewCoaxer(e, views, e, limits, destinations, attempts)
	o.Manager = control.OnReports(o.Manager, control.EngineOptions{Destinations: destinations, Attempts: attempts, Landings: x.Landings})
	return o, x
}
