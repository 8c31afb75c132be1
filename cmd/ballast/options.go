package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/access"
	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/watch"
)

// planLife is how old a plan may become while it is carried out.
const planLife = 2 * time.Minute

// auth is how to authenticate, the same for topics and admin REST.
func auth(b *settings.Ballast) access.Auth {
	out := access.Auth{Token: b.Token, TokenFile: b.TokenFile, Plugin: b.AuthPlugin, Params: b.AuthParams,
		OAuth2: access.OAuth2{IssuerURL: b.IssuerEndpoint, ClientID: b.ClientID, Audience: b.Audience, Scope: b.Scope, KeyFile: b.KeyFile}}
	if out.Token == "" && out.TokenFile == "" && out.Plugin == "" && out.OAuth2 == (access.OAuth2{}) {
		out.CertFile, out.KeyFile = b.TLSCertFile, b.TLSKeyFile // a client certificate alone is mutual TLS
	}
	return out
}

// transportCert is the client certificate of the transport, for clusters that ask for one beside another way to authenticate.
func transportCert(b *settings.Ballast, a access.Auth) (cert, key string) {
	if a.CertFile != "" || a.KeyFile != "" {
		return "", "" // it authenticates already
	}
	return b.TLSCertFile, b.TLSKeyFile
}

func adminOptions(b *settings.Ballast) (admin.Options, error) {
	addresses, err := parseAddresses(b.BallastBrokerAddresses)
	if err != nil {
		return admin.Options{}, err
	}
	a := auth(b)
	cert, key := transportCert(b, a)
	return admin.Options{
		URLs: []string{b.WebServiceURL}, Addresses: addresses, WriteTimeout: b.BallastUnloadTimeout,
		Auth: a,
		TLS:  access.TLS{TrustCertsFile: b.TLSTrustCertsFilePath, CertFile: cert, KeyFile: key, AllowInsecure: b.TLSAllowInsecureConnection},
	}, nil
}

// parseAddresses reads brokerId=host:port pairs.
func parseAddresses(pairs []string) (map[string]string, error) {
	out := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		id, address, ok := strings.Cut(pair, "=")
		if !ok || id == "" || address == "" {
			return nil, fmt.Errorf("ballastBrokerAddresses has %q: it must be brokerId=host:port", pair)
		}
		out[id] = address
	}
	return out, nil
}

// readCapacities reads limits per broker that count instead of the reported ones: a JSON object of broker id, or "*", to
// {"cpu": percent of one core, "bandwidthIn": kbit/s, ...}. No file, no overrides.
func readCapacities(path string) (map[string]load.Capacity, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("ballastCapacityOverridesFile: %w", err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	var out map[string]load.Capacity
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("ballastCapacityOverridesFile %s: %w; it must be like {\"host:8080\": {\"bandwidthIn\": 1000000}}", path, err)
	}
	return out, nil
}

// options are what the controller is made of.
func (s *session) options(views view, mode control.Mode, manager plan.Manager) control.Options {
	_, only := s.onReports()
	splits := &control.Splits{When: control.Splitting(s.settings.Ballast.BallastSplit), Extensible: !only, Cluster: s.cluster}
	return control.Options{
		Instance: s.instance, Mode: mode, Manager: manager, Viewer: views, Clock: control.SystemClock{}, Seed: uint64(time.Now().UnixNano()),
		Limits: s.limits(), PlanLife: planLife, Explain: true, Logger: s.logger, Metrics: s.metrics, Splits: splits,
	}
}

// service makes the loop around a controller. end closes what it opened.
func (s *session) service(views view, mode control.Mode) (service *control.Service, end func(), err error) {
	c, choice, err := s.manager()
	if err != nil {
		return nil, nil, err
	}
	s.logger.Info("strategies", "manager", choice.Manager, "shedding", choice.Shedder, "placement", choice.Placer)
	own := s.settings.Ballast
	lock := control.NewLock(s.log, s.instance, lockTimeout, time.Now)
	locked := control.Locked(s.cluster, lock)
	act, landings := s.actor(locked, views)
	o := s.options(views, mode, s.engine(c, landings))
	o.Strategy = choice.Manager + "/" + choice.Shedder
	var elector *control.Elector
	end = func() {}
	if mode == control.Observe {
		if published, ok := views.(*control.Views); !ok {
			o.Observer = control.NewLookObserver(control.Explaining{Manager: c})
		} else if e, ok := c.(control.Explainer); ok {
			o.Observer = control.NewObserver(published, e)
		}
	}
	if published, ok := views.(*control.Views); ok && mode == control.Govern && own.BallastCure {
		o.Curer = s.curer(published, locked)
	}
	var leaving func(context.Context) error
	if reports, ok := views.(*control.ReportViews); ok {
		leaving = reports.Leave
	}
	if mode == control.Govern {
		journal := control.NewTopicJournal(s.log)
		o.Lock, o.Journal, o.Executor = lock, journal, act
		o.Review, o.Retention = own.BallastReview, control.DefaultRetention
		o.Retention.Age = own.BallastDecisionRetention
		o.Drains = s.drainAsks()
		o.Harm = control.NewHarmReader(s.cluster, harmTimeout, s.logger)
		elector = control.NewElector(s.log, lock, o.Clock, s.logger)
		end = func() {
			if err := journal.Close(); err != nil {
				s.logger.Warn("close the decision log", "error", err)
			}
		}
		if own.BallastVia == viaChannel {
			if end, err = s.viaChannel(&o, views, lock, end); err != nil {
				return nil, nil, err
			}
		}
	}
	return &control.Service{
		Cluster: s.cluster, Controller: control.New(o), Lock: lock, Elector: elector, TakeOvers: control.NewTakeOvers(s.log, locked, s.instance, time.Now),
		TakeOver: own.BallastTakeOver, Interval: own.BallastCycleInterval, Standby: standby, Leave: leaveTimeout,
		Clock: control.SystemClock{}, Metrics: s.metrics, Logger: s.logger, Each: s.logCycle, Leaving: leaving,
	}, end, nil
}

// actor carries decisions out; landings tells what came of destinations where the cluster does not bind itself to them.
func (s *session) actor(c control.Cluster, views view) (act control.Actor, landings func() control.Landings) {
	own, limits := s.settings.Ballast, s.execLimits()
	destinations, only := s.onReports()
	if !only {
		return control.NewExecutor(c, views, control.SystemClock{}, limits), nil
	}
	limits.Poll = control.ReportPoll
	x := control.NewCoaxer(c, views, control.SystemClock{}, limits, destinations, int(own.BallastUnloadAttempts))
	return x, x.Landings
}

func (s *session) execLimits() control.ExecLimits {
	own := s.settings.Ballast
	return control.ExecLimits{Request: own.BallastUnloadTimeout, Verify: own.BallastVerifyTimeout, Poll: 50 * time.Millisecond}
}

// harmTimeout bounds what a cycle waits for the metrics of brokers, in which they say what their clients see.
const harmTimeout = 10 * time.Second

// factsTimeout bounds what a cycle waits for the statistics of the ownership topic and the addresses of the brokers.
const factsTimeout = 5 * time.Second

// curer cures what is stuck in the ownership log. c is changed by the holder of the lock alone.
func (s *session) curer(views *control.Views, c control.Cluster) *control.Curer {
	facts := s.topicFacts()
	sentry := control.NewSentry(views, control.WatchLimits(s.settings.Settings), func(ctx context.Context, brokers []string) (*watch.Topic, error) {
		ctx, cancel := context.WithTimeout(ctx, factsTimeout)
		defer cancel()
		return facts(ctx, brokers)
	})
	return control.NewCurer(sentry, c, views, control.SystemClock{}, s.execLimits(), watch.DefaultCureLimits, s.logger)
}

// logCycle writes a cycle into the log, with the moves that it planned.
func (s *session) logCycle(cy *control.Cycle) {
	if cy.Observed != nil {
		for _, m := range cy.Observed.Moves {
			s.logger.Info("the cluster moved", "bundle", m.Move.Bundle, "from", m.Move.Source, "to", m.Move.Destination, "verdict", m.Verdict, "why", m.Why.String())
		}
		s.logger.Info("agreement", "percent", cy.Agreement.Percent, "moves", cy.Agreement.Moves, "same", cy.Agreement.Same+cy.Agreement.SameButWaiting, "missed", cy.Agreement.Missed)
	}
	if len(cy.Frozen) > 0 {
		s.logger.Warn("nothing can be decided", "cycle", cy.N, "code", cy.Frozen[0].Code, "why", cy.Frozen[0].String())
		return
	}
	s.logger.Info("cycle", "cycle", cy.N, "mode", cy.Mode, "decisions", len(cy.Plan.Decisions), "run", len(cy.Verdict.Run), "outcome", cy.Plan.Outcome.String())
	for _, l := range cy.Plan.Advice {
		s.logger.Warn("advice", "about", subject(l), "code", l.Why.Code, "why", l.Why.String())
	}
	for _, d := range cy.Cures {
		s.logger.Warn("cures", "cycle", cy.N, "action", d.Action, "bundle", d.Bundle, "why", d.Why.String())
	}
	for _, d := range cy.Plan.Decisions {
		s.logger.Info("planned", "cycle", cy.N, "action", d.Action, "bundle", d.Bundle, "from", d.Source, "to", d.Destination, "why", d.Why.String())
	}
	for _, r := range cy.Verdict.Refused {
		s.logger.Info("held back", "cycle", cy.N, "bundle", r.Decision.Bundle, "code", r.Why.Code, "why", r.Why.String())
	}
}
