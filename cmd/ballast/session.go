package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/access"
	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/cluster/zookeeper"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
	"github.com/ballast-lb/ballast/strategies"
	"github.com/ballast-lb/ballast/topics"
	"github.com/ballast-lb/ballast/topics/pulsar"
)

// session is a connection to a cluster: its admin REST, its topics and the settings as it has them.
type session struct {
	cluster  *admin.Client
	log      topics.Log
	settings *settings.Layered
	guard    guard.Limits
	keeper   *zookeeper.Client // nil = none
	version  string            // of Pulsar
	class    string            // of the load manager that the cluster runs
	instance string
	logger   *slog.Logger
	metrics  *control.Metrics  // nil = none
	reported *reporter.Metrics // nil = none
}

// connect asks the cluster for its version and runtime configuration, and lays the program's own settings over them.
func (a *app) connect(ctx context.Context) (*session, error) {
	given, err := a.resolve("")
	if err != nil {
		return nil, err
	}
	own := given.Ballast
	s := &session{logger: a.logger(own), instance: instanceName()}
	options, err := adminOptions(own)
	if err != nil {
		return nil, err
	}
	options.Logger = s.logger
	if s.cluster, err = admin.New(options); err != nil {
		return nil, err
	}
	if s.keeper, err = newZooKeeper(own, s.logger); err != nil {
		return nil, err
	}
	runtime, err := s.cluster.RuntimeConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("the cluster at %s (webServiceUrl) does not answer: %w", own.WebServiceURL, err)
	}
	s.class = runtime["loadManagerClassName"]
	if s.version, err = clusterVersion(ctx, s.cluster); err != nil {
		return nil, err
	}
	if s.settings, err = a.resolve(s.version, settings.ClusterLayer(own.WebServiceURL, runtime)); err != nil {
		return nil, err
	}
	planAnyway(s.settings)
	if s.guard, err = guardLimits(s.settings); err != nil {
		return nil, err
	}
	if s.log, err = pulsar.Open(pulsarOptions(own, s.logger)); err != nil {
		return nil, err
	}
	return s, nil
}

// planAnyway makes the strategies plan although the cluster's own shedding is off: off means that the cluster does not shed
// by itself, and it is off whenever Ballast has taken over. Who wants no plans says so to Ballast.
func planAnyway(l *settings.Layered) {
	for key, on := range map[string]*bool{"loadBalancerEnabled": &l.Settings.LoadBalancerEnabled,
		"loadBalancerSheddingEnabled": &l.Settings.LoadBalancerSheddingEnabled} {
		if v, ok := l.Value(key); ok && v.Origin == settings.OriginCluster {
			*on = true
		}
	}
}

// versionLimit is how long one broker is asked for its version while there are others to ask.
const versionLimit = 5 * time.Second

// clusterVersion is the Pulsar version of the leader, whose decisions are the cluster's; of another broker where there is no leader,
// or it does not answer: one that has died stays registered for a while.
func clusterVersion(ctx context.Context, c *admin.Client) (string, error) {
	ids, err := c.BrokerIDs(ctx)
	if err != nil {
		return "", err
	}
	if leader, err := c.Leader(ctx); err == nil && leader != "" {
		ids = append([]string{leader}, slices.DeleteFunc(ids, func(id string) bool { return id == leader })...)
	}
	if len(ids) == 0 {
		return "", errors.New("the cluster has no registered broker")
	}
	var failed error
	for i, id := range ids {
		asked, cancel := ctx, context.CancelFunc(func() {})
		if i+1 < len(ids) {
			asked, cancel = context.WithTimeout(ctx, versionLimit)
		}
		version, err := c.Version(asked, id)
		cancel()
		if err == nil || ctx.Err() != nil {
			return version, err
		}
		failed = errors.Join(failed, err)
	}
	return "", failed
}

func (s *session) close() {
	err := errors.Join(s.log.Close(), s.cluster.Close())
	if s.keeper != nil {
		err = errors.Join(err, s.keeper.Close())
	}
	if err != nil {
		s.logger.Warn("close the connection", "error", err)
	}
}

// instanceName tells this process from others in the logs and in the decision log.
func instanceName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// derived is our own average of the load, nil when the settings ask for the published one.
func (s *session) derived() (*load.Derived, error) {
	own := s.settings.Ballast
	if own.BallastLoadSource != "derived" {
		return nil, nil
	}
	capacities, err := readCapacities(own.BallastCapacityOverridesFile)
	if err != nil {
		return nil, err
	}
	return load.NewDerived(load.DeriveRules{
		Weights: load.Weights{CPU: own.BallastCPUWeight, Memory: own.BallastMemoryWeight, DirectMemory: own.BallastDirectMemoryWeight,
			BandwidthIn: own.BallastBandwidthInWeight, BandwidthOut: own.BallastBandwidthOutWeight},
		HalfLifeMillis: own.BallastLoadHalfLife.Milliseconds(), Capacities: capacities,
	})
}

// settle waits until every registered broker was heard and the ownership topic was read, or until the wait is over.
func (s *session) settle(ctx context.Context, views view, wait time.Duration) error {
	clock := control.SystemClock{}
	for end := clock.Now().Add(wait); ; {
		look, err := views.Look(ctx, clock.Now())
		if err != nil {
			return err
		}
		if len(look.Frozen) == 0 || clock.Now().After(end) {
			return nil
		}
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// manager is the load manager that the settings name.
func (s *session) manager() (plan.Manager, strategies.Choice, error) {
	return strategies.For(s.settings, s.class)
}

// onReports says whether the cluster's brokers only report, and what they make of destinations.
func (s *session) onReports() (control.Destinations, bool) {
	switch running, err := strategies.Running(s.class); {
	case err != nil || running == extensible.Name:
		return "", false
	case running == simple.Name:
		return control.Ignored, true
	}
	return control.Hinted, true
}

// destinations is what the cluster makes of the destinations of unloads; "" = it is bound by them.
func (s *session) destinations() control.Destinations {
	d, _ := s.onReports()
	return d
}

// engineOptions are those of a cluster whose brokers only report.
func (s *session) engineOptions() (o control.EngineOptions, only bool) {
	d, only := s.onReports()
	return control.EngineOptions{Destinations: d, Attempts: int(s.settings.Ballast.BallastUnloadAttempts)}, only
}

// promise says what can be promised of the destinations of n moves, which act carries out; nil = nobody does yet.
func (s *session) promise(n int, act control.Actor) []plan.LeftOut {
	o, only := s.engineOptions()
	if !only || n == 0 {
		return nil
	}
	if x, ok := act.(*control.Coaxer); ok {
		o.Landings = x.Landings
	}
	return []plan.LeftOut{{Why: o.Promise(s.settings.Settings.LoadBalancerPlacementStrategy, n)}}
}

// engine fits a load manager to the cluster. landings tells what came of moves so far; it may be nil.
func (s *session) engine(m plan.Manager, landings func() control.Landings) plan.Manager {
	o, only := s.engineOptions()
	if !only {
		return m
	}
	o.Landings = landings
	return control.OnReports(m, o)
}

// pulsarOptions say how to reach the topics.
func pulsarOptions(b *settings.Ballast, logger *slog.Logger) pulsar.Options {
	a := auth(b)
	cert, key := transportCert(b, a)
	return pulsar.Options{
		ServiceURL: b.ServiceURL, AdminURL: b.WebServiceURL, ListenerName: b.ListenerName, Logger: logger,
		Auth: a, TLS: access.TLS{TrustCertsFile: b.TLSTrustCertsFilePath, CertFile: cert, KeyFile: key, AllowInsecure: b.TLSAllowInsecureConnection},
	}
}
