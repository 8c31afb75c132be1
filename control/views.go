package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/tableview"
	"github.com/ballast-lb/ballast/topics"
)

// Why a cycle decides nothing.
var (
	NotHeard   = plan.Code{ID: "FROZEN_NOT_HEARD", Template: "not every registered broker was heard: {brokers} missing"}
	Unusable   = plan.Code{ID: "FROZEN_UNUSABLE_LOAD", Template: "the load data of {broker} cannot be used: {what} is {value}"}
	NotCaught  = plan.Code{ID: "FROZEN_NOT_CAUGHT_UP", Template: "{topic} has not been read to its end"}
	Blind      = plan.Code{ID: "FROZEN_BLIND", Template: "{topic} cannot be read since {seconds} s: {error}"}
	Silent     = plan.Code{ID: "FROZEN_SILENT", Template: "{topic} has been silent for {seconds} s, the limit is {limit} s"}
	LostEvents = plan.Code{ID: "FROZEN_LOST_EVENTS", Template: "{count} events of {topic} are lost or may be; who owns what is not certain"}
	NoAnswer   = plan.Code{ID: "FROZEN_NO_ANSWER", Template: "registered brokers do not answer, they may be dead: {brokers}"}
)

// ViewOptions say how the cluster is looked at.
type ViewOptions struct {
	Cluster  Cluster
	Log      topics.Log
	Settings *settings.Settings
	Version  string        // Pulsar version of the cluster
	Stepwise bool          // Look and Owner read the topics themselves; nobody calls Run. For simulated time.
	Estimate bool          // fill in brokers that were not heard from their metrics, marked as estimated
	Silence  time.Duration // a load topic silent for longer freezes and is subscribed again
	Derived  *load.Derived // decide on averages of our own; nil = on those that the brokers publish
	Logger   *slog.Logger
}

// Views follow the system topics of an Extensible cluster and make snapshots of what they say.
type Views struct {
	o      ViewOptions
	load   *tableview.View[event.BrokerLoadData]
	top    *tableview.View[event.TopBundlesLoadData]
	owners *owners
	feeds  []*feed

	mu     sync.Mutex // guards o.Derived and recent
	recent *Inputs    // of the last look
	read   time.Time  // when its policies were read

	replays       atomic.Int64 // reports that were refused
	withdrawnLoad withdrawn[event.BrokerLoadData]
	withdrawnTop  withdrawn[event.TopBundlesLoadData]
}

// NewViews makes the views; Open subscribes them.
func NewViews(o ViewOptions) *Views {
	v := &Views{o: o}
	v.load = tableview.New(tableview.Options[event.BrokerLoadData]{Decode: event.Decode[event.BrokerLoadData], Keep: replayed, MaxKeys: maxBrokers, Logger: o.Logger})
	v.top = tableview.New(tableview.Options[event.TopBundlesLoadData]{Decode: event.Decode[event.TopBundlesLoadData], MaxKeys: maxBrokers, Logger: o.Logger})
	v.owners = newOwners(o.Logger)
	v.load.Listen(v.derive)
	v.load.Listen(v.refused)
	v.load.Listen(v.withdrawnLoad.listen)
	v.top.Listen(v.withdrawnTop.listen)
	v.feeds = []*feed{
		{topic: topics.BrokerLoadData, apply: v.load.Apply},
		{topic: topics.TopBundles, apply: v.top.Apply},
		{topic: topics.ServiceUnitState, apply: v.owners.apply},
	}
	return v
}

// derive folds a report into our own averages.
func (v *Views) derive(c tableview.Change[event.BrokerLoadData]) {
	if v.o.Derived == nil {
		return
	}
	var notes []load.Note
	v.mu.Lock()
	switch c.Kind {
	case tableview.Put:
		notes = v.o.Derived.Hear(c.Key, &c.New.Value, c.New.Received.UnixMilli())
	case tableview.Expired: // one of too many: see maxBrokers
		v.o.Derived.Forget(c.Key)
	default:
	}
	v.mu.Unlock()
	for _, n := range notes {
		v.o.Logger.Warn("load report", "broker", c.Key, "note", n.Kind, "resource", n.Resource, "usage", n.Usage, "limit", n.Limit, "before", n.Before)
	}
}

// Watch calls f with what every further ownership record did, in order, whether it was accepted or not.
func (v *Views) Watch(f func(OwnershipEvent)) { v.owners.watch(f) }

// Ownership is who owns what now. It never changes.
func (v *Views) Ownership() *ownership.Snapshot { return v.owners.snapshot() }

// Open subscribes to the three topics. It creates none: a topic that is missing means that the cluster does not run the
// Extensible load manager.
func (v *Views) Open(ctx context.Context) error {
	for _, f := range v.feeds {
		sub, err := v.subscribe(ctx, f.topic)
		if err != nil {
			return errors.Join(err, v.Close())
		}
		f.replace(sub)
	}
	return nil
}

func (v *Views) subscribe(ctx context.Context, topic string) (topics.Subscription, error) {
	o := topics.SubscribeOptions{From: topics.Earliest, Existing: true}
	if topic == topics.ServiceUnitState {
		o.Compacted = true // brokers delete the history that was compacted
	} else {
		o.Silence = v.o.Silence
	}
	sub, err := v.o.Log.Subscribe(ctx, topic, o)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	return sub, nil
}

// Estimate switches filling in from metrics on or off.
func (v *Views) Estimate(on bool) { v.o.Estimate = on }

// Close ends the subscriptions.
func (v *Views) Close() error {
	var errs []error
	for _, f := range v.feeds {
		if sub := f.subscription(); sub != nil {
			errs = append(errs, sub.Close())
		}
	}
	return errors.Join(errs...)
}

// Run feeds the views until ctx ends.
func (v *Views) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range v.feeds {
		g.Go(func() error { return f.run(ctx) })
	}
	return g.Wait()
}

// CatchUp feeds the views with what the topics hold now, for callers that drive them one step at a time.
func (v *Views) CatchUp(ctx context.Context) error {
	for _, f := range v.feeds {
		if err := f.catchUp(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.topic, err)
		}
	}
	return nil
}

// Owner is who owns a bundle by the ownership log.
func (v *Views) Owner(ctx context.Context, bundle string) (Ownership, error) {
	if v.o.Stepwise {
		if err := v.CatchUp(ctx); err != nil {
			return Ownership{}, err
		}
	}
	return v.owners.owner(bundle)
}

// Look reads the registry and the policies and makes the snapshot of this moment.
func (v *Views) Look(ctx context.Context, now time.Time) (*Look, error) {
	if v.o.Stepwise {
		if err := v.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	in := Inputs{Now: now.UnixMilli(), Version: v.o.Version, Settings: v.o.Settings}
	var err error
	if in.Cluster, err = v.o.Cluster.Name(ctx); err != nil {
		return nil, err
	}
	if in.Brokers, err = v.o.Cluster.Brokers(ctx); err != nil {
		return nil, fmt.Errorf("read the registry of brokers: %w", err)
	}
	if in.Leader, err = v.o.Cluster.Leader(ctx); err != nil {
		return nil, fmt.Errorf("ask for the leader: %w", err)
	}
	if in.Policies, err = v.policies(ctx, now); err != nil {
		return nil, fmt.Errorf("read the policies: %w", err)
	}
	if err := v.reread(ctx); err != nil {
		v.o.Logger.Warn("the ownership topic cannot be read again", "error", err)
	}
	look := &Look{Frozen: v.trouble(now)}
	look.Missing = v.loads(ctx, &in, now)
	in.Owners = v.owners.all()
	v.mu.Lock()
	v.recent = &in
	v.mu.Unlock()
	if dead := silent(in.Brokers); len(dead) > 0 {
		look.Frozen = append(look.Frozen, NoAnswer.Because(plan.S("brokers", strings.Join(dead, ", "))))
	}
	if len(look.Missing) > 0 {
		look.Frozen = append(look.Frozen, NotHeard.Because(plan.S("brokers", strings.Join(look.Missing, ", "))))
	}
	for _, l := range in.Load {
		if why, bad := unusable(l); bad {
			look.Frozen = append(look.Frozen, why)
		}
	}
	look.Snapshot = Assemble(in)
	return look, nil
}

// policyAge is how old policies may be: reading them takes a request for every namespace.
const policyAge = 30 * time.Second

func (v *Views) policies(ctx context.Context, now time.Time) (*policy.Set, error) {
	v.mu.Lock()
	recent, read := v.recent, v.read
	v.mu.Unlock()
	if recent != nil && now.Sub(read) < policyAge {
		return recent.Policies, nil
	}
	set, err := v.o.Cluster.Policies(ctx)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	v.read = now
	v.mu.Unlock()
	return set, nil
}

// Before is the cluster as it was just before an ownership record: the registry and the policies of the last look, the load
// and the owners of now without the record. nil before the first look.
func (v *Views) Before(e OwnershipEvent) *cluster.Snapshot {
	v.mu.Lock()
	recent := v.recent
	v.mu.Unlock()
	if recent == nil {
		return nil
	}
	in := *recent
	in.Now, in.Load, in.Top = e.At.UnixMilli(), nil, nil
	v.reported(&in, e.At, true)
	in.Owners = v.owners.all()
	for i := range in.Owners {
		if in.Owners[i].Bundle == e.Bundle {
			in.Owners[i] = owned(e.Bundle, e.Outcome.Before)
		}
	}
	return Assemble(in)
}

// reported collects what the registered brokers reported, and returns those that did not. Load data of a broker that is not
// registered is left out: only the registry says who is alive. With back, what brokers took back counts still.
func (v *Views) reported(in *Inputs, now time.Time, back bool) (missing []string) {
	reports, top := v.load.Snapshot(), v.top.Snapshot()
	for i := range in.Brokers {
		id := in.Brokers[i].ID
		e, ok := reports.Get(id)
		if !ok && back {
			e, ok = v.withdrawnLoad.get(id)
		}
		d := e.Value
		if ok && v.o.Derived != nil {
			v.mu.Lock()
			d, ok = v.o.Derived.At(id, &e.Value, now.UnixMilli())
			v.mu.Unlock()
		}
		if !ok {
			missing = append(missing, id)
			continue
		}
		in.Load = append(in.Load, Heard[event.BrokerLoadData]{Key: id, Value: d, At: e.Received.UnixMilli()})
		t, ok := top.Get(id)
		if !ok && back {
			t, ok = v.withdrawnTop.get(id)
		}
		if ok {
			in.Top = append(in.Top, Heard[event.TopBundlesLoadData]{Key: id, Value: t.Value, At: t.Received.UnixMilli()})
		}
	}
	return missing
}

// loads is reported, with estimates for what is missing where that is wanted. It returns what is missing still.
func (v *Views) loads(ctx context.Context, in *Inputs, now time.Time) (missing []string) {
	missing = v.reported(in, now, false)
	if !v.o.Estimate {
		return missing
	}
	var still []string
	for _, id := range missing {
		d, bundles, err := v.o.Cluster.EstimateLoad(ctx, id)
		if err != nil {
			v.o.Logger.Warn("load cannot be estimated", "broker", id, "error", err)
			still = append(still, id)
			continue
		}
		in.Load = append(in.Load, Heard[event.BrokerLoadData]{Key: id, Value: d, At: now.UnixMilli(), Estimated: true})
		in.Top = append(in.Top, Heard[event.TopBundlesLoadData]{Key: id, Value: event.TopBundlesLoadData{TopBundlesLoadData: bundles}, At: now.UnixMilli(), Estimated: true})
	}
	return still
}

// silent are the registered brokers that did not say which load manager they run: one that died stays in the registry until
// its metadata session ends.
func silent(brokers []cluster.Broker) []string {
	var out []string
	for i := range brokers {
		if brokers[i].LoadManager == "" {
			out = append(out, brokers[i].ID)
		}
	}
	return out
}

// unusable says whether a broker's figures are no numbers to decide on. They are unknown then, not 0.
func unusable(l Heard[event.BrokerLoadData]) (plan.Reason, bool) {
	for _, f := range []struct {
		name  string
		value float64
	}{{"weightedMaxEMA", l.Value.WeightedMaxEMA}, {"msgThroughputEMA", l.Value.MsgThroughputEMA},
		{"msgThroughputIn", l.Value.MsgThroughputIn}, {"msgThroughputOut", l.Value.MsgThroughputOut}} {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) || f.value < 0 {
			return Unusable.Because(plan.S("broker", l.Key), plan.S("what", f.name), plan.N("value", f.value)), true
		}
	}
	return plan.Reason{}, false
}

// trouble is what keeps the topics from being believed.
func (v *Views) trouble(now time.Time) []plan.Reason {
	var out []plan.Reason
	for _, f := range v.feeds {
		st, topic := f.subscription().Status(), plan.S("topic", f.topic)
		switch {
		case !st.Connected:
			out = append(out, Blind.Because(topic, plan.N("seconds", seconds(now, st.BlindSince)), plan.S("error", st.LastError)))
		case f.topic == topics.ServiceUnitState && !st.CaughtUp:
			out = append(out, NotCaught.Because(topic))
		case f.topic == topics.ServiceUnitState && lossy(st):
			out = append(out, LostEvents.Because(topic, plan.N("count", st.Lost+st.Uncertain+st.Skipped)))
		case f.topic == topics.BrokerLoadData && v.o.Silence > 0 && !st.LastHeard.IsZero() && now.Sub(st.LastHeard) > v.o.Silence:
			out = append(out, Silent.Because(topic, plan.N("seconds", seconds(now, st.LastHeard)), plan.N("limit", int64(v.o.Silence.Seconds()))))
		}
	}
	return out
}

func seconds(now, since time.Time) int64 {
	if since.IsZero() {
		return 0
	}
	return int64(now.Sub(since).Seconds())
}
