// Package reporter gives clusters whose brokers do not publish their load the event log of those that do: it reads the load
// report of each Modular or Simple broker over admin REST and publishes what an Extensible broker would, on the same topics,
// and the whole report on topics.LocalBrokerData. For Extensible brokers it publishes on topics.BundleStats alone, which
// holds the bundles that they do not publish.
//
// Broker and what it calls are pure. Reporter is the service around it: Poll is one round, Run is rounds until it is stopped.
package reporter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// Cluster is what the reporter asks of a cluster. admin.Client is the real one, simulate.Embedded the simulated one.
type Cluster interface {
	// BrokerIDs are the ids of the registered brokers, ordered: the cluster's own registry.
	BrokerIDs(ctx context.Context) ([]string, error)
	// LoadManagerOf is the class name of the load manager that a broker runs.
	LoadManagerOf(ctx context.Context, broker string) (string, error)
	// LoadReport is the load report of a Modular or Simple broker.
	LoadReport(ctx context.Context, broker string) (event.BrokerReport, error)
	// BundleStats are the statistics of every bundle that a broker serves, from those of its topics.
	BundleStats(ctx context.Context, broker string) ([]event.NamedBundleStats, error)
	// RuntimeConfig is the effective configuration of a broker.
	RuntimeConfig(ctx context.Context) (map[string]string, error)
	// Policies are the isolation policies and anti-affinity groups.
	Policies(ctx context.Context) (*policy.Set, error)
	// CreateTopic makes a non-partitioned topic where it does not exist yet.
	CreateTopic(ctx context.Context, topic string) error
}

// Reports is who tells brokers' load reports. A Cluster is one; zookeeper.Client.Behind another.
type Reports interface {
	LoadReport(ctx context.Context, broker string) (event.BrokerReport, error)
}

// Lock lets one of several instances report. control.Lock on topics.Reporter is one.
type Lock interface {
	Acquire(ctx context.Context, wait bool) error
	Confirm(ctx context.Context, what string) error
	Release() error
}

// Clock is the time that Run goes by.
type Clock interface {
	Now() time.Time
	Sleep(ctx context.Context, d time.Duration) error
}

// Options say what is read and where it goes. Every zero value but those of Cluster, Log, Settings and Clock has a default.
type Options struct {
	Cluster  Cluster
	Reports  Reports    // nil = Cluster
	Log      topics.Log // on Pulsar, or a private one in memory
	Settings *settings.Settings
	Version  string // Pulsar version of the cluster: its schema is declared on Pulsar's topics
	Clock    Clock  // of Run; Poll takes the time as an argument

	Lock                Lock          // nil = nobody else reports onto the log
	Interval            time.Duration // between two rounds; 0 = loadBalancerReportUpdateMinIntervalMillis
	BundleStatsInterval time.Duration // between two readings of an Extensible broker's topics; 0 = they are not read
	BundleStatsRate     float64       // such readings per second, over all brokers; 0 = 2
	Timeout             time.Duration // of one reading and of one sending; 0 = 5 s
	Concurrent          int           // brokers that are read at once; 0 = 16
	Standby             time.Duration // between two tries to get the lock; 0 = 2 s
	Leave               time.Duration // limit of taking everything back at the end; 0 = 10 s

	Logger  *slog.Logger // nil = slog.Default()
	Metrics *Metrics     // nil = none
}

// Interval is how often reports are read: ballastReportInterval, or if that is 0 the cluster's own interval, so that
// averages move as fast as those of Extensible brokers.
func Interval(own *settings.Ballast, s *settings.Settings) time.Duration {
	return cmp.Or(own.BallastReportInterval, clusterInterval(s))
}

func clusterInterval(s *settings.Settings) time.Duration {
	return max(time.Duration(s.LoadBalancerReportUpdateMinIntervalMillis)*time.Millisecond, time.Second)
}

// Wanted says whether a run in a mode (observe, advise or govern) publishes: ballastReport is report.
func Wanted(report, mode string) bool {
	return report == "always" || report == "auto" && mode != "observe"
}

func (o Options) withDefaults() Options {
	o.Interval = cmp.Or(o.Interval, clusterInterval(o.Settings))
	o.BundleStatsRate = cmp.Or(o.BundleStatsRate, 2)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.Concurrent = cmp.Or(o.Concurrent, 16)
	o.Standby = cmp.Or(o.Standby, 2*time.Second)
	o.Leave = cmp.Or(o.Leave, 10*time.Second)
	if o.Reports == nil {
		o.Reports = o.Cluster
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Reporter publishes what brokers do not. One goroutine at a time may call Run, Poll and Close; Stale may be called by any.
type Reporter struct {
	o        Options
	rules    Rules
	known    bool // the rules know whether brokers store reports
	brokers  map[string]*member
	gone     []departed // left the registry; what was published of them is to be taken back
	record   record
	tookOver bool                // record was read since it is our turn
	found    map[string][]string // what it said, until the registry tells who of them is gone
	sinks    sinks
	limiter  *rate.Limiter
	policies policies

	mu    sync.Mutex
	stale map[string]plan.Reason
}

// member is a registered broker.
type member struct {
	*Broker
	class     string // of its load manager; "" = not known yet
	bundlesAt time.Time
}

// New makes a reporter. It does nothing until Run or Poll.
func New(o Options) *Reporter {
	o = o.withDefaults()
	r := &Reporter{o: o, rules: RulesOf(o.Settings, o.Interval), brokers: map[string]*member{}, stale: map[string]plan.Reason{}}
	r.sinks = sinks{o: &r.o, open: map[string]*sink{}}
	r.record.kept = map[string][]string{}
	r.policies = policies{o: &r.o}
	r.limiter = rate.NewLimiter(rate.Limit(o.BundleStatsRate), max(1, int(o.BundleStatsRate)))
	return r
}

// Stale is why brokers are stale, by broker id: their load is not known, so they are no destinations, while what they served
// last is theirs still.
func (r *Reporter) Stale() map[string]plan.Reason {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.stale)
}

func (r *Reporter) setStale(id string, why *plan.Reason) {
	r.mu.Lock()
	before, was := r.stale[id]
	if why == nil {
		delete(r.stale, id)
	} else {
		r.stale[id] = *why
	}
	r.mu.Unlock()
	switch {
	case why != nil && (!was || before.Code != why.Code):
		r.o.Logger.Warn("a broker is stale", "broker", id, "code", why.Code, "why", why.String())
	case why == nil && was:
		r.o.Logger.Info("a broker is no longer stale", "broker", id)
	}
}

// Round is what one round read and published.
type Round struct {
	At        int64         // Unix ms
	Brokers   []BrokerRound // ordered by id
	Published []Event       // by broker, then in the order of sending
	Why       []plan.Reason // what was not done, and why
}

// BrokerRound is what a round read of one broker.
type BrokerRound struct {
	ID     string
	Class  string                // of its load manager, "" if it did not say
	Report event.BrokerReport    // as it was read now; empty if it was not
	Load   *event.BrokerLoadData // what follows from its reports, published or not; nil when there is none to believe
	Stale  *plan.Reason
	Heard  int64 // when its last good report was read, Unix ms; 0 = never
}

// PublishesItself says whether brokers with a load manager of this class publish their load themselves.
func PublishesItself(class string) bool {
	return strings.HasSuffix(class, "ExtensibleLoadManagerImpl") || class == "extensible"
}

// Poll reads all brokers once and publishes what is due. now is when the round begins: it stamps what is read. The error is
// about sending and about the registry; a broker that cannot be read is no error but stale.
func (r *Reporter) Poll(ctx context.Context, now time.Time) (Round, error) {
	round := &round{r: r, now: now, out: Round{At: now.UnixMilli()}}
	if err := r.takeOver(ctx); err != nil {
		round.why(NoRecord.Because(plan.S("error", err.Error())))
		return round.finish(), err
	}
	round.configuration(ctx)
	round.registry(ctx)
	var g errgroup.Group
	g.SetLimit(r.o.Concurrent)
	for _, m := range r.order() {
		g.Go(func() error { round.broker(ctx, m); return nil })
	}
	_ = g.Wait() // what goes wrong is collected in the round
	if ctx.Err() != nil {
		return round.finish(), ctx.Err()
	}
	round.alone(ctx)
	out := round.finish()
	r.o.Metrics.round(&out)
	return out, errors.Join(round.errs...)
}

// order is the registered brokers in the order in which they are read: those that answered first, as others keep a place
// until their time is over; among Extensible ones whose bundles were read longest ago.
func (r *Reporter) order() []*member {
	all := slices.Collect(maps.Values(r.brokers))
	slices.SortFunc(all, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.failing, b.failing), a.bundlesAt.Compare(b.bundlesAt), strings.Compare(a.ID, b.ID))
	})
	return all
}

// Close takes back everything that was published and closes the publishers. The log stays open.
func (r *Reporter) Close(ctx context.Context) error {
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(r.brokers)) {
		r.gone = append(r.gone, departed{Broker: r.brokers[id].Broker})
		delete(r.brokers, id)
	}
	for _, b := range r.gone {
		all := true
		for _, e := range b.Withdraw() {
			if err := r.sinks.send(ctx, e); err != nil {
				errs, all = append(errs, err), false
			}
		}
		if all {
			if err := r.settle(ctx, b.ID); err != nil {
				errs = append(errs, err)
			}
		}
	}
	r.gone = nil
	return errors.Join(append(errs, r.sinks.close())...)
}
