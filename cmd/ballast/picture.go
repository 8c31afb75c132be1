package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/manager"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/reporter"
)

// statsSource is where the statistics of an Extensible broker's bundles come from.
const statsSource = "the statistics of its topics"

// seen is what one broker says about its load now.
type seen struct {
	manager.Broker
	document  []byte                   // its load report as it answered it; nil of an Extensible broker
	local     *event.LocalBrokerData   // Modular
	report    *event.LoadReport        // Simple
	load      *cluster.Broker          // Extensible: Load, LoadHeard, Estimated; nil = nothing was heard
	top       []event.BundleLoad       // Extensible: its heaviest bundles
	stats     []event.NamedBundleStats // of all its bundles that have topics in use
	statsRead bool
	owned     []string // bundles that it owns, those without topics too
	stored    string   // why its load report is the one in ZooKeeper; "" = it is its own
	another   bool     // another broker answers at its address: Error says which
}

// picture is what the brokers say about their load now.
type picture struct {
	at      time.Time
	leader  string
	brokers []seen
	states  map[string]cluster.Bundle // Extensible: by the ownership log
	frozen  []string                  // what of the topics cannot be believed
}

// watcher looks at the brokers' load. It asks each broker for its load report; where one is Extensible it follows the topics
// that such brokers publish on.
type watcher struct {
	s      *session
	stored reporter.Reports // where reports are that brokers do not give; nil = nowhere
	views  *control.Views   // nil until an Extensible broker was seen
	stop   func()
}

func newWatcher(s *session) *watcher {
	w := &watcher{s: s}
	if s.keeper != nil {
		w.stored = s.keeper
	}
	return w
}

func (w *watcher) close() {
	if w.stop != nil {
		w.stop()
	}
}

// follow subscribes to the topics of Extensible brokers, once.
func (w *watcher) follow(ctx context.Context) error {
	if w.views != nil {
		return nil
	}
	s := w.s
	views := control.NewViews(control.ViewOptions{Cluster: s.cluster, Log: s.log, Settings: s.settings.Settings, Version: s.version, Logger: s.logger})
	if err := views.Open(ctx); err != nil {
		return fmt.Errorf("the topics at %s (serviceUrl) cannot be read: %w", s.settings.Ballast.ServiceURL, errors.Join(err, views.Close()))
	}
	end := background(ctx, views.Run)
	w.views, w.stop = views, func() {
		if err := errors.Join(end(), views.Close()); err != nil {
			s.logger.Warn("following the topics ended", "error", err)
		}
	}
	return nil
}

// look asks the brokers, all of them or only one. Extensible ones that were not heard are waited for, and then estimated from
// their metrics.
func (w *watcher) look(ctx context.Context, only string, wait time.Duration) (*picture, error) {
	s := w.s
	brokers, silent, err := s.cluster.Answers(ctx)
	if err != nil {
		return nil, err
	}
	registered := map[string]bool{}
	for i := range brokers {
		registered[brokers[i].ID] = true
	}
	if only != "" {
		if brokers, err = pick(brokers, only); err != nil {
			return nil, err
		}
	}
	p := &picture{brokers: make([]seen, len(brokers)), states: map[string]cluster.Bundle{}}
	if p.leader, err = s.cluster.Leader(ctx); err != nil {
		return nil, err
	}
	var g errgroup.Group
	g.SetLimit(8)
	for i := range brokers {
		g.Go(func() error {
			p.brokers[i] = w.see(ctx, &brokers[i], silent[brokers[i].ID], registered)
			return nil
		})
	}
	_ = g.Wait() // what a broker did not answer is in its Error
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	extensible := slices.ContainsFunc(p.brokers, func(b seen) bool { return b.Runs() == manager.Extensible })
	if extensible {
		if err := w.follow(ctx); err != nil {
			return nil, err
		}
		if err := w.listen(ctx, p, wait); err != nil {
			return nil, err
		}
	}
	p.at = time.Now()
	return p, nil
}

// pick is the one broker of an id, or the error that names those there are.
func pick(brokers []cluster.Broker, id string) ([]cluster.Broker, error) {
	var ids []string
	for i := range brokers {
		if brokers[i].ID == id {
			return brokers[i : i+1], nil
		}
		ids = append(ids, brokers[i].ID)
	}
	return nil, fmt.Errorf("broker %q is not registered: it must be one of %v", id, ids)
}

// see asks one broker for its load report and its bundles. A report that it does not give is read where it is stored; that of
// another broker is none.
func (w *watcher) see(ctx context.Context, b *cluster.Broker, failed error, registered map[string]bool) seen {
	s := w.s
	out := seen{Broker: manager.Broker{ID: b.ID, Version: b.Version, Configured: b.LoadManager}}
	err := failed
	if err == nil {
		out.document, err = s.cluster.LoadReportDocument(ctx, b.ID)
	}
	switch {
	case errors.Is(err, admin.Unsupported):
		out.Report = manager.UnsupportedReport
		out.stats, err = s.cluster.BundleStats(ctx, b.ID)
		out.statsRead = err == nil
	case err != nil:
		err = w.fetch(ctx, &out, err)
	default:
		if err = out.decode(); err != nil {
			err = w.fetch(ctx, &out, err)
		}
	}
	if other, is := reporter.Another(b.ID, event.BrokerReport{Local: out.local, Simple: out.report}, func(id string) bool { return registered[id] }); is {
		why := reporter.OfAnother.Because(plan.S("other", other))
		return seen{Broker: manager.Broker{ID: b.ID, Error: fmt.Sprintf("%s (%s)", why, why.Code)}, another: true}
	}
	if err == nil {
		if err = failed; err == nil {
			out.owned, err = s.cluster.Owned(ctx, b.ID)
		}
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// fetch takes the report that a broker did not give, because of why, from where it is stored.
func (w *watcher) fetch(ctx context.Context, out *seen, why error) error {
	if w.stored == nil || ctx.Err() != nil {
		return why
	}
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	report, err := w.stored.LoadReport(limited, out.ID)
	if err == nil {
		out.document, err = report.MarshalJSON()
	}
	if err == nil {
		err = out.decode()
	}
	if err != nil {
		return fmt.Errorf("%w; %w", why, err)
	}
	out.stored = why.Error()
	return nil
}

// decode reads the load report.
func (b *seen) decode() error {
	kind, err := event.KindOfReport(b.document)
	if err != nil {
		return err
	}
	if kind == event.SimpleReport {
		d, err := event.Decode[event.LoadReport](b.document)
		if err != nil {
			return err
		}
		b.report, b.stats, b.Report, b.Named = &d, d.BundleStats, manager.LoadReport, d.LoadManagerClassName
	} else {
		d, err := event.Decode[event.LocalBrokerData](b.document)
		if err != nil {
			return err
		}
		b.local, b.stats, b.Report, b.Named = &d, d.LastStats, manager.LocalBrokerData, d.LoadManagerClassName
	}
	b.statsRead = true
	return nil
}

// listen takes what Extensible brokers publish into the picture.
func (w *watcher) listen(ctx context.Context, p *picture, wait time.Duration) error {
	clock := control.SystemClock{}
	w.views.Estimate(false)
	for end := clock.Now().Add(wait); ; {
		look, err := w.views.Look(ctx, clock.Now())
		if err != nil {
			return err
		}
		late := !clock.Now().Before(end)
		if heard := p.take(look); heard || late {
			if heard {
				return nil
			}
			break
		}
		if err := clock.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
	w.views.Estimate(true)
	look, err := w.views.Look(ctx, clock.Now())
	if err != nil {
		return err
	}
	p.take(look)
	return nil
}

// take takes a look at the topics into the picture, and says whether every Extensible broker was heard and the ownership
// topic was read.
func (p *picture) take(look *control.Look) bool {
	snap, all := look.Snapshot, true
	p.frozen = nil
	for _, why := range look.Frozen {
		if why.Code != control.NotHeard.ID && why.Code != control.NoAnswer.ID {
			p.frozen = append(p.frozen, why.String())
			all = false
		}
	}
	for i := range p.brokers {
		b := &p.brokers[i]
		if b.Runs() != manager.Extensible {
			continue
		}
		b.load, b.top = nil, nil
		if at := snap.BrokerIndex(b.ID); at >= 0 && snap.Brokers[at].Load != nil {
			b.load = &snap.Brokers[at]
		}
		if at := snap.LoadIndex(b.ID); at >= 0 {
			b.top = snap.Load[at].TopBundles
		}
		all = all && b.load != nil
	}
	clear(p.states)
	for i := range snap.Bundles {
		p.states[snap.Bundles[i].Name] = snap.Bundles[i]
	}
	return all
}
