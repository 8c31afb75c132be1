package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/tableview"
	"github.com/ballast-lb/ballast/topics"
)

// NoneFresh freezes: no registered broker's load is known.
var NoneFresh = plan.Code{ID: "FROZEN_NONE_FRESH", Template: "the load of none of {brokers} registered brokers is known: {why}"}

// ReportOptions say how a cluster without the Extensible load manager is looked at.
type ReportOptions struct {
	Cluster  ReportCluster
	Log      topics.Log // where the brokers' load reports are: the cluster's own log, or one in memory
	History  *History   // the averages of bundles; nil = they begin and end with this process
	Settings *settings.Settings
	Version  string // Pulsar version of the cluster
	// Class is the load manager that the cluster runs. Strategies compare the brokers with it, whatever engine was chosen.
	Class string
	Stale time.Duration // a report that was heard longer ago is too old; 0 = never
	// Faults is why the reporter of this process cannot read brokers' reports, by broker id; nil = nobody says. They count for
	// brokers that were not heard lately: another process may report instead.
	Faults   func() map[string]plan.Reason
	Repairs  modular.Options
	Derived  *load.Derived // decide on averages of our own; nil = as the Extensible load manager averages
	Stepwise bool          // Look and Owner read the topics themselves; nobody calls Run. For simulated time.
	Now      func() time.Time
	Logger   *slog.Logger
}

// ReportViews follow the load reports of a cluster whose brokers do not publish load or ownership themselves, and make
// snapshots that every strategy can decide on: the reports in the form of both load managers, the histories of the bundles,
// and load data and top bundles as brokers of the Extensible load manager would publish them. A broker of which nothing
// fresh is known is stale: it is no destination, its bundles stay with it, and the others go on.
type ReportViews struct {
	o    ReportOptions
	view *tableview.View[report]
	feed *feed
	due  chan time.Time // the history is to be written

	mu       sync.Mutex // guards what follows, and Derived; never held while something is asked
	loads    map[string]*foldedLoad
	verified map[string]evidence // bundles whose owner the cluster told
	asked    map[string]struct{} // bundles whose owner was asked for since the last look

	looking  sync.Mutex           // one look at a time; guards what follows
	since    map[string]time.Time // registered brokers: when they were seen first
	stale    map[string]string    // code by broker, for the log
	sampled  modular.Table[int64]
	counted  map[string]time.Time // when the report was heard that was last taken into the histories
	averages map[string]event.TimeAverageBrokerData
	bundles  inventory
	policies *policy.Set
	read     time.Time // when the policies were read
}

// foldedLoad is a broker's load data, averaged over its reports.
type foldedLoad struct {
	data    event.BrokerLoadData
	bundles map[string]struct{}
	fault   string // why the newest report cannot be used
}

// evidence is an owner that the cluster told, and when.
type evidence struct {
	owner string
	at    time.Time
}

// NewReportViews makes the views; Open subscribes them.
func NewReportViews(o ReportOptions) *ReportViews {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.History == nil {
		o.History = NewHistory(HistoryOptions{Logger: o.Logger})
	}
	v := &ReportViews{o: o, due: make(chan time.Time, 1), loads: map[string]*foldedLoad{}, since: map[string]time.Time{}, stale: map[string]string{},
		counted: map[string]time.Time{}, averages: map[string]event.TimeAverageBrokerData{}, verified: map[string]evidence{}, asked: map[string]struct{}{}}
	v.view = tableview.New(tableview.Options[report]{Decode: decodeReport, Logger: o.Logger})
	v.view.Listen(v.fold)
	v.feed = &feed{topic: topics.LocalBrokerData, apply: v.view.Apply}
	return v
}

// fold takes a report into the broker's averages. They begin anew when the broker gained or lost a bundle, as those of an
// Extensible broker do. Pulsar: BrokerLoadDataReporter.
func (v *ReportViews) fold(c tableview.Change[report]) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch c.Kind {
	case tableview.Removed, tableview.Expired:
		delete(v.loads, c.Key)
		return
	case tableview.Put:
	default:
		return
	}
	r := &c.New.Value
	f := v.loads[c.Key]
	if f == nil {
		f = &foldedLoad{}
		v.loads[c.Key] = f
	}
	if f.fault = r.unusable(); f.fault != "" {
		return
	}
	served := make(map[string]struct{}, len(r.stats()))
	for i := range r.stats() {
		served[r.stats()[i].Bundle] = struct{}{}
	}
	if f.bundles == nil || !sameKeys(f.bundles, served) {
		f.data = event.NewBrokerLoadData()
	}
	f.bundles = served
	usage, _ := r.usage()
	at, set := c.New.Received.UnixMilli(), v.o.Settings
	load.UpdateBrokerLoad(&f.data, usage, r.totals(), load.WeightsOf(set), set.LoadBalancerHistoryResourcePercentage, at)
	f.data.ReportedAt = at
	if v.o.Derived == nil {
		return
	}
	for _, n := range v.o.Derived.Hear(c.Key, &f.data, at) {
		v.o.Logger.Warn("load report", "broker", c.Key, "note", n.Kind, "resource", n.Resource, "usage", n.Usage, "limit", n.Limit, "before", n.Before)
	}
}

func sameKeys(a, b map[string]struct{}) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			return false
		}
	}
	return true
}

// Open subscribes to the reports and to the history.
func (v *ReportViews) Open(ctx context.Context) error {
	sub, err := v.o.Log.Subscribe(ctx, v.feed.topic, topics.SubscribeOptions{From: topics.Earliest, Silence: v.o.Stale})
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", v.feed.topic, err)
	}
	v.feed.replace(sub)
	if err := v.o.History.Open(ctx); err != nil {
		return errors.Join(err, v.Close())
	}
	return nil
}

// Close ends the subscriptions.
func (v *ReportViews) Close() error {
	var errs []error
	if sub := v.feed.subscription(); sub != nil {
		errs = append(errs, sub.Close())
	}
	return errors.Join(append(errs, v.o.History.Close())...)
}

// Run feeds the views, and writes the history when that is due, until ctx ends.
func (v *ReportViews) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return v.feed.run(ctx) })
	g.Go(func() error { return v.o.History.run(ctx) })
	g.Go(func() error {
		for {
			select {
			case now := <-v.due:
				v.save(ctx, now)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return g.Wait()
}

func (v *ReportViews) save(ctx context.Context, now time.Time) {
	if err := v.o.History.Write(ctx, now); err != nil && ctx.Err() == nil {
		v.o.Logger.Warn("the averages could not be written, they will be again", "error", err)
	}
}

// Leave writes the averages of this moment, so that whoever acts next goes on with them.
func (v *ReportViews) Leave(ctx context.Context) error {
	return v.o.History.Write(ctx, v.o.Now())
}

// CatchUp feeds the views with what the topics hold now, for callers that drive them one step at a time.
func (v *ReportViews) CatchUp(ctx context.Context) error {
	if err := v.feed.catchUp(ctx); err != nil {
		return fmt.Errorf("%s: %w", v.feed.topic, err)
	}
	return v.o.History.catchUp(ctx)
}

// Owner is who serves a bundle, as the brokers say: their reports lag.
func (v *ReportViews) Owner(ctx context.Context, bundle string) (Ownership, error) {
	return v.OwnerNear(ctx, bundle)
}

// OwnerNear is Owner for a bundle that is likely on one of some brokers, which are asked first.
func (v *ReportViews) OwnerNear(ctx context.Context, bundle string, likely ...string) (Ownership, error) {
	v.mu.Lock()
	v.asked[bundle] = struct{}{}
	if e, ok := v.verified[bundle]; ok {
		likely = append(slices.Clone(likely), e.owner)
	}
	v.mu.Unlock()
	asked, trouble := map[string]bool{"": true}, error(nil)
	ask := func(broker string) (bool, error) {
		if asked[broker] {
			return false, nil
		}
		asked[broker] = true
		owned, err := v.o.Cluster.Owned(ctx, broker)
		if err != nil && !isNotFound(err) { // not found: it left
			trouble = err
		}
		return err == nil && slices.Contains(owned, bundle), ctx.Err()
	}
	for _, broker := range likely {
		if here, err := ask(broker); here || err != nil {
			return v.told(bundle, broker, err)
		}
	}
	brokers, err := v.registered(ctx)
	if err != nil {
		return Ownership{}, err
	}
	for _, broker := range brokers {
		if here, err := ask(broker); here || err != nil {
			return v.told(bundle, broker, err)
		}
	}
	if trouble != nil {
		return Ownership{}, fmt.Errorf("find the owner of %s: %w", bundle, trouble)
	}
	return Ownership{Bundle: bundle, State: event.Free}, nil
}

func (v *ReportViews) registered(ctx context.Context) ([]string, error) {
	if c, ok := v.o.Cluster.(interface {
		BrokerIDs(ctx context.Context) ([]string, error)
	}); ok {
		return c.BrokerIDs(ctx) // without asking each broker about itself
	}
	brokers, err := v.o.Cluster.Brokers(ctx)
	ids := make([]string, len(brokers))
	for i := range brokers {
		ids[i] = brokers[i].ID
	}
	return ids, err
}

func (v *ReportViews) told(bundle, owner string, err error) (Ownership, error) {
	if err != nil {
		return Ownership{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.verified[bundle] = evidence{owner, v.o.Now()}
	return Ownership{Bundle: bundle, Owner: owner, State: event.Owned}, nil
}

// trouble is what keeps the topics from being believed.
func (v *ReportViews) trouble(now time.Time) (out []plan.Reason) {
	st, topic := v.feed.subscription().Status(), plan.S("topic", v.feed.topic)
	switch {
	case !st.Connected:
		out = append(out, Blind.Because(topic, plan.N("seconds", seconds(now, st.BlindSince)), plan.S("error", st.LastError)))
	case v.o.Stale > 0 && !st.LastHeard.IsZero() && now.Sub(st.LastHeard) > v.o.Stale:
		out = append(out, Silent.Because(topic, plan.N("seconds", seconds(now, st.LastHeard)), plan.N("limit", int64(v.o.Stale.Seconds()))))
	}
	if name, behind := v.o.History.behind(); behind {
		out = append(out, NotCaught.Because(plan.S("topic", name)))
	}
	return out
}

// sameManager says whether a broker runs what the cluster runs.
func (v *ReportViews) sameManager(b *cluster.Broker) bool {
	return managerClass(b.LoadManager) == managerClass(v.o.Class)
}
