package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/topics"
)

// OwnershipTopic is the ownership topic as it is followed. Views is one.
type OwnershipTopic interface {
	// Ownership is who owns what now. It never changes.
	Ownership() *ownership.Snapshot
	// Reading is how well the topic is read now. It brings the fold up to date first where nothing else does.
	Reading(ctx context.Context) (ownership.Reading, error)
	// Watch calls f with what every further record did, in order.
	Watch(f func(OwnershipEvent))
}

// errNoOwnershipTopic is returned for a cluster whose ownership is not on a topic.
var errNoOwnershipTopic = errors.New("the ownership topic is not followed: the cluster does not run the Extensible load manager")

// Reading implements OwnershipTopic.
func (v *Views) Reading(ctx context.Context) (ownership.Reading, error) {
	i := slices.IndexFunc(v.feeds, func(f *feed) bool { return f.topic == topics.ServiceUnitState })
	if i < 0 || v.feeds[i].subscription() == nil {
		return ownership.Reading{}, errNoOwnershipTopic
	}
	if v.o.Stepwise {
		if err := v.feeds[i].catchUp(ctx); err != nil {
			return ownership.Reading{}, err
		}
	}
	st := v.feeds[i].subscription().Status()
	r := ownership.Reading{CaughtUp: st.CaughtUp, Missing: st.Lost + st.Uncertain + st.Skipped}
	if !st.Connected {
		r.Trouble = st.LastError
		if r.Trouble == "" {
			r.Trouble = "not connected"
		}
	}
	return r, nil
}

// How old an answer may be that a write is decided from: the registry and the brokers' own answers are asked for again in a
// batch that takes longer. Of a cluster that answers slowly they may be older, or a batch would do nothing but ask; a broker
// that dies stays registered for longer than that. Policies take a request for every namespace.
const (
	factAge   = time.Second
	oldestAge = 8 * time.Second
)

// stale says whether an answer that was asked for at a time, and took so long, is too old now.
func stale(now, asked time.Time, took time.Duration) bool {
	return asked.IsZero() || now.Sub(asked) > min(max(factAge, 5*took), oldestAge)
}

// sights puts together what a write is decided from, and remembers answers for a moment, so that a batch does not ask for
// every bundle anew.
type sights struct {
	cluster Cluster
	topic   OwnershipTopic
	clock   Clock

	factsAt  time.Time
	took     time.Duration // to ask for the facts
	facts    ownership.Facts
	brokers  []cluster.Broker
	policyAt time.Time
	policies *policy.Set
	view     *policy.View
	owned    map[string]answered            // by broker
	bundles  map[string]map[string]struct{} // by namespace
	listed   map[string]time.Time
}

// answered is what one broker says it owns.
type answered struct {
	at      time.Time
	took    time.Duration
	bundles map[string]struct{}
	err     error
}

func newSights(c Cluster, t OwnershipTopic, clock Clock) *sights {
	return &sights{cluster: c, topic: t, clock: clock, owned: map[string]answered{}, bundles: map[string]map[string]struct{}{}, listed: map[string]time.Time{}}
}

// channelFacts asks the cluster for what must hold before anything is written.
func channelFacts(ctx context.Context, c Cluster) (ownership.Facts, []cluster.Broker, error) {
	brokers, err := c.Brokers(ctx)
	if err != nil {
		return ownership.Facts{}, nil, fmt.Errorf("read the registry of brokers: %w", err)
	}
	config, err := c.RuntimeConfig(ctx)
	if err != nil {
		return ownership.Facts{}, nil, fmt.Errorf("read the runtime configuration: %w", err)
	}
	f := ownership.Facts{TableView: config["loadManagerServiceUnitStateTableViewClassName"], Syncer: config["loadBalancerServiceUnitTableViewSyncer"]}
	const delay = "loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds"
	var seconds int64
	if _, err := fmt.Sscanf(config[delay], "%d", &seconds); err != nil || seconds < 0 {
		return ownership.Facts{}, nil, fmt.Errorf("%s is %q in the runtime configuration: it must be a number of seconds", delay, config[delay])
	}
	f.TombstoneDelay = seconds * 1000
	for i := range brokers {
		b := &brokers[i]
		f.Brokers = append(f.Brokers, ownership.Member{Broker: b.ID, Version: b.Version, LoadManager: b.LoadManager})
	}
	return f, brokers, nil
}

// ChannelCheck is why nothing may be written onto the ownership topic of a cluster; the zero reason if bundles may be.
func ChannelCheck(ctx context.Context, c Cluster) (plan.Reason, error) {
	f, _, err := channelFacts(ctx, c)
	if err != nil {
		return plan.Reason{}, err
	}
	if r := f.Check(); !r.IsZero() {
		return plan.FromPolicy(r.Reason), nil
	}
	return plan.Reason{}, nil
}

func (s *sights) refresh(ctx context.Context) error {
	now := s.clock.Now()
	if stale(now, s.factsAt, s.took) {
		var err error
		if s.facts, s.brokers, err = channelFacts(ctx, s.cluster); err != nil {
			return err
		}
		s.factsAt, s.took, s.view = now, s.clock.Now().Sub(now), nil
	}
	if s.policies == nil || now.Sub(s.policyAt) > policyAge {
		set, err := s.cluster.Policies(ctx)
		if err != nil {
			return fmt.Errorf("read the policies: %w", err)
		}
		s.policies, s.policyAt, s.view = set, now, nil
	}
	if s.view == nil {
		all := make([]policy.Broker, len(s.brokers))
		for i := range s.brokers {
			b := &s.brokers[i]
			all[i] = policy.Broker{ID: b.ID, PersistentTopics: b.PersistentTopics, NonPersistentTopics: b.NonPersistentTopics}
		}
		s.view = s.policies.Over(all)
	}
	return nil
}

// of is what a write for a decision is decided from.
func (s *sights) of(ctx context.Context, w ownership.Want) (ownership.Sight, error) {
	var out ownership.Sight
	if err := s.refresh(ctx); err != nil {
		return out, err
	}
	out.Facts, out.Policy = s.facts, s.forbids(w)
	var err error
	if w.Action == ownership.Place {
		if out.Exists, err = s.exists(ctx, w.Bundle); err != nil {
			return out, err
		}
	}
	// The topic is looked at before the brokers are asked and again after: what they say must be newer than the record.
	if out.Topic, err = s.topic.Reading(ctx); err != nil {
		return out, err
	}
	record, _ := s.topic.Ownership().Get(w.Bundle)
	var since int64
	if record != nil {
		since = record.Since
	}
	out.Answer = s.answer(ctx, w, since)
	if out.Topic, err = s.topic.Reading(ctx); err != nil {
		return out, err
	}
	out.Snapshot, out.Now = s.topic.Ownership(), s.clock.Now().UnixMilli()
	return out, nil
}

// forbids is why policies do not let the bundle go where it is wanted.
func (s *sights) forbids(w ownership.Want) policy.Reason {
	ns := event.NamespaceOf(w.Bundle)
	if w.Destination != "" {
		return s.view.Move(policy.Placed{Bundle: w.Bundle, Broker: w.Source}, w.Destination)
	}
	verdict := s.view.Allowed(ns, true)
	switch {
	case !verdict.Frozen.IsZero():
		return verdict.Frozen
	case !verdict.Others(w.Source):
		return policy.NoOtherBroker.Because(policy.S("broker", w.Source), policy.S("namespace", ns))
	}
	return policy.Reason{}
}

// exists says whether the namespace has the bundle.
func (s *sights) exists(ctx context.Context, bundle string) (bool, error) {
	ns := event.NamespaceOf(bundle)
	if at, ok := s.listed[ns]; !ok || s.clock.Now().Sub(at) > oldestAge {
		names, err := s.cluster.Bundles(ctx, ns)
		if err != nil {
			return false, fmt.Errorf("list the bundles of %s: %w", ns, err)
		}
		set := make(map[string]struct{}, len(names))
		for _, name := range names {
			set[name] = struct{}{}
		}
		s.bundles[ns], s.listed[ns] = set, s.clock.Now()
	}
	_, ok := s.bundles[ns][bundle]
	return ok, nil
}

// answer asks the brokers that it depends on, unless they have answered a moment ago and after since (Unix ms).
func (s *sights) answer(ctx context.Context, w ownership.Want, since int64) ownership.BrokersAnswer {
	ask := []string{w.Source}
	if w.Action == ownership.Place {
		ask = ask[:0]
		for _, b := range s.facts.Brokers {
			ask = append(ask, b.Broker)
		}
	}
	var out ownership.BrokersAnswer
	for _, id := range ask {
		a, ok := s.owned[id]
		if now := s.clock.Now(); !ok || a.err != nil || stale(now, a.at, a.took) || a.at.UnixMilli() < since {
			a = s.ask(ctx, id, now)
		}
		if a.err != nil {
			out.Failed = fmt.Sprintf("%s: %v", id, a.err)
			return out
		}
		if _, owns := a.bundles[w.Bundle]; owns {
			out.Owners = append(out.Owners, id)
		}
		if at := a.at.UnixMilli(); out.Asked == 0 || at < out.Asked {
			out.Asked = at
		}
	}
	return out
}

// ask lets a broker say what it owns.
func (s *sights) ask(ctx context.Context, id string, now time.Time) answered {
	names, err := s.cluster.Owned(ctx, id)
	a := answered{at: now, took: s.clock.Now().Sub(now), err: err, bundles: make(map[string]struct{}, len(names))}
	for _, name := range names {
		a.bundles[name] = struct{}{}
	}
	s.owned[id] = a
	return a
}

// owns asks a broker whether it owns a bundle by now.
func (s *sights) owns(ctx context.Context, id, bundle string) (bool, error) {
	a := s.ask(ctx, id, s.clock.Now())
	_, owns := a.bundles[bundle]
	return owns, a.err
}
