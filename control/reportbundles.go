package control

import (
	"slices"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
)

// claim is what is known of a bundle from the report that counts.
type claim struct {
	owner string
	heard time.Time
	stats event.NamespaceBundleStats
	known bool
}

// named are the bundles that registered brokers report, and those whose owner was asked for, as those are that a split has
// just made.
func (l *reportLook) named(yield func(bundle string) bool) {
	for bundle := range l.asked {
		if !yield(bundle) {
			return
		}
	}
	for i := range l.snap.Brokers {
		e, ok := l.reports.Get(l.snap.Brokers[i].ID)
		if !ok {
			continue
		}
		for k := range e.Value.stats() {
			if !yield(e.Value.stats()[k].Bundle) {
				return
			}
		}
	}
}

// addBundles fills in every bundle: those of the reports with their owners, then those that nobody serves. Where two brokers
// report one bundle, because it has just moved, the newer report counts; where the cluster told an owner after that owner's
// last report, that counts.
func (l *reportLook) addBundles() {
	snap := l.snap
	claims := map[string]claim{}
	heard := map[string]time.Time{}
	for i := range snap.Brokers {
		e, ok := l.reports.Get(snap.Brokers[i].ID)
		if !ok {
			continue
		}
		heard[e.Key] = e.Received
		for k := range e.Value.stats() {
			s := &e.Value.stats()[k]
			if l.bundles.replaced(s.Bundle) {
				continue // brokers' statistics go on naming a bundle that was split, for a minute by default
			}
			if c, again := claims[s.Bundle]; !again || e.Received.After(c.heard) {
				claims[s.Bundle] = claim{e.Key, e.Received, s.Stats, true}
			}
		}
	}
	for bundle, told := range l.verified {
		at, ok := heard[told.owner]
		if !ok || at.After(told.at) {
			l.disregard(bundle, told) // it is gone, or its own report tells
			continue
		}
		if l.bundles.replaced(bundle) {
			l.disregard(bundle, told)
			continue
		}
		c := claims[bundle]
		c.owner = told.owner
		claims[bundle] = c
	}
	for _, list := range l.bundles.bundles {
		for _, bundle := range list {
			if _, served := claims[bundle]; !served {
				claims[bundle] = claim{}
			}
		}
	}
	snap.Bundles = make([]cluster.Bundle, 0, len(claims))
	for name, c := range claims {
		b := cluster.Bundle{Name: name, Namespace: event.NamespaceOf(name), Owner: c.owner, State: event.Init, Stats: c.stats, Known: c.known}
		if c.owner != "" {
			b.State = event.Owned
		}
		snap.Bundles = append(snap.Bundles, b)
	}
	slices.SortFunc(snap.Bundles, func(a, b cluster.Bundle) int { return strings.Compare(a.Name, b.Name) })
	snap.Index()
}

// disregard forgets what the cluster told of a bundle's owner, unless it has told again meanwhile.
func (v *ReportViews) disregard(bundle string, told evidence) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.verified[bundle] == told {
		delete(v.verified, bundle)
	}
}

// join gives each broker its load and what it serves, in the order of its report.
func (l *reportLook) join() {
	v, snap := l.ReportViews, l.snap
	snap.Load = make([]cluster.BrokerLoad, 0, len(snap.Brokers)) // the brokers point into it
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		e, ok := l.reports.Get(b.ID)
		if !ok {
			continue
		}
		for _, s := range e.Value.stats() {
			if j := snap.BundleIndex(s.Bundle); j >= 0 && snap.Bundles[j].Owner == b.ID && !slices.Contains(b.Bundles, j) {
				b.Bundles = append(b.Bundles, j)
			}
		}
		f, taken := l.loads[b.ID]
		if !b.Stale.IsZero() || !taken {
			continue
		}
		at := e.Received.UnixMilli()
		b.Local, b.Report, b.LoadHeard = e.Value.asLocal(b, at), e.Value.asSimple(b, at), at
		d := v.derived(b.ID, f.data, snap.Now)
		d.UpdatedAt = at
		snap.Load = append(snap.Load, cluster.BrokerLoad{Broker: b.ID, Data: d, Heard: at, TopBundles: v.topBundles(snap, b), HasTop: true})
		b.Load = &snap.Load[len(snap.Load)-1].Data
	}
	for i := range snap.Bundles { // whose move the reports do not show yet
		if j := snap.BrokerIndex(snap.Bundles[i].Owner); j >= 0 && !slices.Contains(snap.Brokers[j].Bundles, i) {
			snap.Brokers[j].Bundles = append(snap.Brokers[j].Bundles, i)
		}
	}
	snap.Index()
}

// derived is the load data with averages of our own, where those are wanted.
func (v *ReportViews) derived(broker string, d event.BrokerLoadData, now int64) event.BrokerLoadData {
	if v.o.Derived == nil {
		return d
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if own, ok := v.o.Derived.At(broker, &d, now); ok {
		return own
	}
	return d
}

// topBundles are the heaviest bundles of a broker, lightest first, as an Extensible broker publishes them.
func (v *ReportViews) topBundles(snap *cluster.Snapshot, b *cluster.Broker) []event.BundleLoad {
	stats := make([]event.NamedBundleStats, 0, len(b.Bundles))
	for _, j := range b.Bundles {
		stats = append(stats, event.NamedBundleStats{Bundle: snap.Bundles[j].Name, Stats: snap.Bundles[j].Stats})
	}
	set := snap.Settings
	rules := load.TopKRules{K: int(set.LoadBalancerMaxNumberOfBundlesInBundleLoadReport), Excluded: set.LoadBalancerSheddingExcludedNamespaces,
		WithPolicies: set.LoadBalancerSheddingBundlesWithPoliciesEnabled}
	if p := snap.Policies; p != nil {
		rules.HasPolicy = func(namespace string) (bool, error) { return p.HasPolicy(namespace), nil }
	}
	top, _ := load.TopK(stats, rules) // HasPolicy has no error
	return top
}
