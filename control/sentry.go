package control

import (
	"context"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
	"github.com/ballast-lb/ballast/watch"
)

// TopicFacts asks for what the ownership topic's statistics say, with the addresses of the given brokers.
type TopicFacts func(ctx context.Context, brokers []string) (*watch.Topic, error)

// Sentry watches the ownership log that views follow, and says what should not be there.
type Sentry struct {
	views *Views
	facts TopicFacts

	mu      sync.Mutex
	watcher *watch.Watcher
	live    bool         // the log was read to its end at the last look, and was not interrupted since
	until   ownership.ID // what had been on the topic then
	backlog time.Time    // when it was read to its end first
	breaks  int64        // interruptions of the subscription so far
}

// WatchLimits are the limits for a cluster with these settings.
func WatchLimits(s *settings.Settings) watch.Limits {
	l := watch.DefaultLimits
	l.InFlight = s.LoadBalancerInFlightServiceUnitStateWaitingTimeInMillis
	l.Monitor = s.LoadBalancerServiceUnitStateMonitorIntervalInSeconds * 1000
	l.Tombstone = s.LoadBalancerServiceUnitStateTombstoneDelayTimeInSeconds * 1000
	return l
}

// NewSentry makes a sentry. facts is nil when the topic's statistics are not to be asked for.
func NewSentry(v *Views, l watch.Limits, facts TopicFacts) *Sentry {
	s := &Sentry{views: v, facts: facts, watcher: watch.New(l)}
	v.Watch(s.hear)
	return s
}

// hear takes an event. What had been on the topic before, and what follows an interruption, may have gaps that compaction made.
func (s *Sentry) hear(e OwnershipEvent) {
	st := s.views.ownershipStatus()
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.Resubscribe != s.breaks {
		s.live, s.breaks = false, st.Resubscribe
	}
	s.watcher.Hear(watch.Event{Outcome: e.Outcome, Data: e.Data, ID: e.ID, At: e.At.UnixMilli(), Producer: e.Producer,
		Continuous: s.live && e.ID.Compare(s.until) > 0})
}

// Look is what is wrong now. The snapshot is of the same moment. An error means that the topic's statistics could not be
// read: what depends on them is not judged then, everything else is.
func (s *Sentry) Look(ctx context.Context, now time.Time, snap *cluster.Snapshot) ([]watch.Anomaly, error) {
	p := watch.Picture{Now: now.UnixMilli()}
	for i := range snap.Brokers {
		p.Brokers = append(p.Brokers, snap.Brokers[i].ID)
	}
	var failed error
	if s.facts != nil { // before the log is read: what it says is no newer than what was delivered
		p.Topic, failed = s.facts(ctx, p.Brokers)
	}
	if s.views.o.Stepwise {
		if err := s.views.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	st := s.views.ownershipStatus()
	p.Owners, p.Loaded = s.views.Ownership(), s.views.loaded()
	p.Channel = &watch.Channel{Connected: st.Connected, CaughtUp: st.CaughtUp, Error: st.LastError, Last: ownership.ID(st.Last),
		Lost: st.Lost + st.Uncertain + st.Skipped}
	if !st.BlindSince.IsZero() {
		p.Channel.BlindSince = st.BlindSince.UnixMilli()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.CaughtUp && st.Connected && !s.live {
		s.live, s.until, s.breaks = true, ownership.ID(st.Last), st.Resubscribe
		if s.backlog.IsZero() {
			s.backlog = now
		}
	}
	if !s.backlog.IsZero() {
		p.Backlog = s.backlog.UnixMilli()
	}
	return s.watcher.Look(p), failed
}

// ownershipStatus is the health of the subscription to the ownership topic.
func (v *Views) ownershipStatus() topics.Status {
	for _, f := range v.feeds {
		if f.topic == topics.ServiceUnitState {
			if sub := f.subscription(); sub != nil {
				return sub.Status()
			}
		}
	}
	return topics.Status{}
}

// CaughtUp says whether the ownership topic is followed and was read to its end.
func (v *Views) CaughtUp() bool {
	st := v.ownershipStatus()
	return st.Connected && st.CaughtUp
}

// loaded are the bundles that brokers report load of, as they were heard.
func (v *Views) loaded() []watch.Loaded {
	var out []watch.Loaded
	for e := range v.top.Snapshot().All() {
		l := watch.Loaded{Broker: e.Key, Heard: e.Received.UnixMilli()}
		for _, b := range e.Value.TopBundlesLoadData {
			l.Bundles = append(l.Bundles, b.BundleName)
		}
		out = append(out, l)
	}
	return out
}
