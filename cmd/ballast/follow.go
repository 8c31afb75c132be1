package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/strategies"
	"github.com/ballast-lb/ballast/topics"
)

// view is what a cluster is seen through: *control.Views where brokers publish, *control.ReportViews where they only report.
type view interface {
	control.Viewer
	control.Watched
	Open(ctx context.Context) error
	Run(ctx context.Context) error
	Close() error
}

// follow feeds views of the cluster until stop is called, and publishes nothing: what a cluster's brokers do not publish is read
// into a log in memory.
func (s *session) follow(ctx context.Context, estimate bool) (view, func(), error) {
	return s.feed(ctx, control.Observe, false, estimate)
}

// followIn is follow for a run in a mode, which publishes what ballastReport says.
func (s *session) followIn(ctx context.Context, mode control.Mode) (view, func(), error) {
	return s.feed(ctx, mode, reporter.Wanted(s.settings.Ballast.BallastReport, string(mode)), false)
}

func (s *session) feed(ctx context.Context, mode control.Mode, publish, estimate bool) (view, func(), error) {
	running, err := strategies.Running(s.class)
	if err != nil {
		return nil, nil, err
	}
	var views view
	var report *reporter.Reporter
	if running == extensible.Name {
		if views, err = s.published(estimate); err != nil {
			return nil, nil, err
		}
		if publish {
			report = s.reporter(s.log, s.cluster)
		}
	} else {
		log := topics.Log(s.log)
		if !publish {
			log = topics.NewMemory(topics.MemoryOptions{})
			report = s.reporter(log, unpublished{s.cluster})
		} else {
			report = s.reporter(log, s.cluster)
		}
		if views, err = s.reports(ctx, log, mode, publish, report.Stale); err != nil {
			return nil, nil, err
		}
	}
	if err := views.Open(ctx); err != nil {
		return nil, nil, fmt.Errorf("the topics at %s (serviceUrl) cannot be read: %w", s.settings.Ballast.ServiceURL, err)
	}
	runs := []func(context.Context) error{views.Run}
	if report != nil {
		runs = append(runs, report.Run)
	}
	end := background(ctx, runs...)
	return views, func() {
		if err := end(); err != nil {
			s.logger.Warn("following the cluster ended", "error", err)
		}
		if err := views.Close(); err != nil {
			s.logger.Warn("close the subscriptions", "error", err)
		}
	}, nil
}

// background runs functions until stop is called or one of them fails. They outlive ctx: what is under way when the process is
// told to stop is followed until it has ended.
func background(ctx context.Context, runs ...func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range runs {
		g.Go(func() error { return run(ctx) })
	}
	return func() error {
		cancel()
		if err := g.Wait(); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
}

// unpublished is a cluster whose reports are read into a log of our own: no topic is made for them.
type unpublished struct{ reporter.Cluster }

// CreateTopic does nothing.
func (unpublished) CreateTopic(context.Context, string) error { return nil }

// reporter reads what brokers do not publish into a log. On the cluster's own log only one process does.
func (s *session) reporter(log topics.Log, c reporter.Cluster) *reporter.Reporter {
	own := s.settings.Ballast
	o := reporter.Options{Cluster: c, Reports: reportSource(c, s.keeper), Log: log, Settings: s.settings.Settings, Version: s.version, Clock: control.SystemClock{},
		Interval: reporter.Interval(own, s.settings.Settings), BundleStatsInterval: own.BallastBundleStatsInterval,
		Logger: s.logger, Metrics: s.reported}
	if log == s.log {
		o.Lock = control.NewLockOn(s.log, topics.Reporter, s.instance, lockTimeout, time.Now)
	}
	return reporter.New(o)
}

// published are the views of a cluster whose brokers publish their load and their ownership.
func (s *session) published(estimate bool) (*control.Views, error) {
	if store := s.settings.Settings.LoadManagerServiceUnitStateTableViewClassName; !strings.HasSuffix(store, "ServiceUnitStateTableViewImpl") {
		return nil, fmt.Errorf("this cluster keeps ownership in its metadata store (loadManagerServiceUnitStateTableViewClassName is %s); "+
			"this version reads it from the system topic, ServiceUnitStateTableViewImpl", store)
	}
	derived, err := s.derived()
	if err != nil {
		return nil, err
	}
	silence := 2 * time.Duration(max(s.settings.Settings.LoadBalancerReportUpdateMaxIntervalMinutes, 1)) * time.Minute
	return control.NewViews(control.ViewOptions{Cluster: s.cluster, Log: s.log, Settings: s.settings.Settings, Version: s.version,
		Estimate: estimate, Silence: silence, Derived: derived, Logger: s.logger}), nil
}

// reports are the views of a cluster whose brokers only report. Who governs keeps the history.
func (s *session) reports(ctx context.Context, log topics.Log, mode control.Mode, publish bool, faults func() map[string]plan.Reason) (*control.ReportViews, error) {
	derived, err := s.derived()
	if err != nil {
		return nil, err
	}
	repairs, err := strategies.ModularOptions(s.settings.Ballast.BallastRepairs)
	if err != nil {
		return nil, err
	}
	keep := mode == control.Govern
	var needed []string
	if publish {
		needed = append(needed, topics.LocalBrokerData)
	}
	if keep {
		needed = append(needed, topics.BundleData, topics.BrokerAverages)
	}
	for _, topic := range needed { // automatic creation may be off
		if err := s.cluster.CreateTopic(ctx, topic); err != nil {
			return nil, fmt.Errorf("create %s: %w", topic, err)
		}
	}
	set := s.settings.Settings
	history := control.NewHistory(control.HistoryOptions{Log: s.log, Keep: keep, Logger: s.logger})
	return control.NewReportViews(control.ReportOptions{Cluster: s.cluster, Log: log, History: history, Settings: set, Version: s.version,
		Class: s.class, Stale: staleAfter(s.settings), Faults: faults, Repairs: repairs, Derived: derived, Logger: s.logger}), nil
}

// staleAfter is how old a load report may be: three of them were not heard then.
func staleAfter(l *settings.Layered) time.Duration {
	return 3*reporter.Interval(l.Ballast, l.Settings) + 10*time.Second
}
