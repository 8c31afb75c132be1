package control

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/simple"
	"github.com/ballast-lb/ballast/tableview"
)

// managerClass is the class of a load manager as brokers report it; a blank one is the Simple load manager.
func managerClass(class string) string { return cmp.Or(strings.TrimSpace(class), simple.Class) }

// Look reads the registry and the policies and makes the snapshot of this moment.
func (v *ReportViews) Look(ctx context.Context, now time.Time) (*Look, error) {
	if v.o.Stepwise {
		if err := v.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	v.looking.Lock()
	defer v.looking.Unlock()
	l := &reportLook{ReportViews: v, now: now}
	if err := l.registry(ctx); err != nil {
		return nil, err
	}
	l.heard()
	look := &Look{Frozen: v.trouble(now), Missing: l.settle()}
	if len(look.Missing) > 0 {
		look.Frozen = append(look.Frozen, NotHeard.Because(plan.S("brokers", strings.Join(look.Missing, ", "))))
	} else if why, none := noneFresh(l.snap); none {
		look.Frozen = append(look.Frozen, why)
	}
	listed := v.bundles.refresh(ctx, v.o.Cluster, now, v.atOnce(), v.o.Logger)
	l.addBundles()
	l.join()
	l.remember(len(look.Frozen) == 0)
	if listed {
		l.forget()
	}
	v.keep(ctx, now)
	look.Snapshot = l.snap
	return look, nil
}

// reportLook is one look: what was heard until now, and the snapshot that becomes of it.
type reportLook struct {
	*ReportViews
	now      time.Time
	snap     *cluster.Snapshot
	reports  tableview.Snapshot[report]
	loads    map[string]foldedLoad
	verified map[string]evidence
}

// heard takes what was heard until now.
func (l *reportLook) heard() {
	l.reports = l.view.Snapshot() // first: what is told to fold meanwhile is in loads then
	l.mu.Lock()
	defer l.mu.Unlock()
	l.loads = make(map[string]foldedLoad, len(l.ReportViews.loads))
	for id, f := range l.ReportViews.loads {
		l.loads[id] = *f
	}
	l.verified = maps.Clone(l.ReportViews.verified)
}

func (v *ReportViews) atOnce() int {
	if v.o.Stepwise {
		return 1
	}
	return 8
}

// registry begins the snapshot with who is there.
func (l *reportLook) registry(ctx context.Context) error {
	v := l.ReportViews
	set := *v.o.Settings
	set.LoadManagerClassName = managerClass(v.o.Class)
	snap := &cluster.Snapshot{Now: l.now.UnixMilli(), Version: v.o.Version, Settings: &set}
	var err error
	if snap.Cluster, err = v.o.Cluster.Name(ctx); err != nil {
		return err
	}
	if snap.Brokers, err = v.o.Cluster.Brokers(ctx); err != nil {
		return fmt.Errorf("read the registry of brokers: %w", err)
	}
	slices.SortFunc(snap.Brokers, func(a, b cluster.Broker) int { return strings.Compare(a.ID, b.ID) })
	if snap.Leader, err = v.o.Cluster.Leader(ctx); err != nil {
		return fmt.Errorf("ask for the leader: %w", err)
	}
	if v.policies == nil || l.now.Sub(v.read) >= policyAge {
		if v.policies, err = v.o.Cluster.Policies(ctx); err != nil {
			v.policies = nil
			return fmt.Errorf("read the policies: %w", err)
		}
		v.read = l.now
	}
	snap.Policies = v.policies
	l.snap = snap
	return nil
}

// settle says of each registered broker whether its load is known, and returns those that were not heard yet but may be
// soon.
func (l *reportLook) settle() (missing []string) {
	v, snap, now := l.ReportViews, l.snap, l.now
	there := make(map[string]time.Time, len(snap.Brokers))
	var faults map[string]plan.Reason
	if v.o.Faults != nil {
		faults = v.o.Faults()
	}
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		since, known := v.since[b.ID]
		if !known {
			since = now
		}
		there[b.ID] = since
		answers := b.Version != ""
		if answers {
			b.LoadManager = managerClass(b.LoadManager)
		}
		e, heard := l.reports.Get(b.ID)
		f, taken := l.loads[b.ID]
		age := now.Sub(e.Received)
		id, limit := policy.S("broker", b.ID), policy.N("limit", int(v.o.Stale.Milliseconds()))
		switch {
		case !answers:
			b.Stale = StaleNoAnswer.Because(id)
		case !v.sameManager(b):
			b.Stale = StaleOtherManager.Because(id, policy.S("class", b.LoadManager), policy.S("wanted", managerClass(v.o.Class)))
		case faults[b.ID].Code != "" && (!heard || age > v.o.Stale/2):
			b.Stale = toPolicy(faults[b.ID])
		case !heard && (v.o.Stale == 0 || now.Sub(since) <= v.o.Stale):
			missing = append(missing, b.ID)
		case !heard:
			b.Stale = StaleNotHeard.Because(id, policy.N("age", int(now.Sub(since).Milliseconds())), limit)
		case v.o.Stale > 0 && age > v.o.Stale:
			b.Stale = StaleReport.Because(id, policy.N("age", int(age.Milliseconds())), limit)
		case !taken: // it has come this moment
			missing = append(missing, b.ID)
		case f.fault != "":
			b.Stale = StaleUnusable.Because(id, policy.S("what", f.fault))
		}
		v.logStale(b)
	}
	v.since = there
	for id := range v.stale {
		if _, ok := there[id]; !ok {
			delete(v.stale, id)
		}
	}
	return missing
}

// toPolicy is a reason for a package that cannot import plan.
func toPolicy(r plan.Reason) policy.Reason {
	out := policy.Reason{Code: r.Code, Text: r.Text}
	for _, n := range r.Numbers {
		out.Numbers = append(out.Numbers, policy.Number(n))
	}
	return out
}

// logStale says it once when a broker becomes stale, and when it is not any more.
func (v *ReportViews) logStale(b *cluster.Broker) {
	before := v.stale[b.ID]
	switch {
	case !b.Stale.IsZero() && before != b.Stale.Code:
		v.o.Logger.Warn("a broker is stale: it is no destination, what it serves stays with it", "broker", b.ID, "code", b.Stale.Code, "why", b.Stale.String())
	case b.Stale.IsZero() && before != "":
		v.o.Logger.Info("a broker is not stale any more", "broker", b.ID)
	}
	if v.stale[b.ID] = b.Stale.Code; b.Stale.IsZero() {
		delete(v.stale, b.ID)
	}
}

// noneFresh says that no broker's load is known, and why of the first.
func noneFresh(snap *cluster.Snapshot) (plan.Reason, bool) {
	for i := range snap.Brokers {
		if snap.Brokers[i].Stale.IsZero() {
			return plan.Reason{}, false
		}
	}
	why := "there is none"
	if len(snap.Brokers) > 0 {
		why = snap.Brokers[0].Stale.String()
	}
	return NoneFresh.Because(plan.N("brokers", len(snap.Brokers)), plan.S("why", why)), true
}

// claim is what is known of a bundle from the report that counts.
type claim struct {
	owner string
	heard time.Time
	stats event.NamespaceBundleStats
	known bool
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
			if j := snap.BundleIndex(s.Bundle); snap.Bundles[j].Owner == b.ID && !slices.Contains(b.Bundles, j) {
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

// remember takes new reports into the histories of the bundles, and fills those in. Every look that heard something new adds
// one sample of every reported bundle, as in Pulsar every report of any broker does; with oneSamplePerReport only of the
// brokers that reported.
func (l *reportLook) remember(ready bool) {
	v, h := l.ReportViews, l.o.History
	news := false
	for i := range l.snap.Brokers {
		if !ready {
			break // a part of the brokers, or of what was kept, would give other averages
		}
		b := &l.snap.Brokers[i]
		if e, ok := l.reports.Get(b.ID); ok && b.Local != nil && e.Received.After(v.counted[b.ID]) {
			v.counted[b.ID], news = e.Received, true
		}
	}
	for i := range l.snap.Bundles {
		l.snap.Bundles[i].Data = h.Bundle(l.snap.Bundles[i].Name)
	}
	if !news {
		for i := range l.snap.Brokers {
			b := &l.snap.Brokers[i]
			if a, ok := v.averages[b.ID]; ok && b.Local != nil {
				b.TimeAverage = &a
			}
		}
		return
	}
	manager := modular.Manager{Options: v.o.Repairs}
	next, st, _ := manager.Update(l.snap, &modular.State{Version: modular.StateVersion, Sampled: v.sampled})
	l.snap, v.sampled = next, st.(*modular.State).Sampled
	h.take(l.snap)
	clear(v.averages)
	for i := range l.snap.Brokers {
		if a := l.snap.Brokers[i].TimeAverage; a != nil {
			v.averages[l.snap.Brokers[i].ID] = *a
		}
	}
}

// forget ends the histories of what is gone: bundles that no broker reports and that are in no namespace, and brokers that
// are not registered.
func (l *reportLook) forget() {
	l.o.History.forget(func(bundle string) bool {
		i := l.snap.BundleIndex(bundle)
		return i >= 0 && l.snap.Bundles[i].Owner != "" || !l.bundles.gone(bundle)
	}, func(broker string) bool { return l.snap.BrokerIndex(broker) >= 0 })
}

// keep has the history written when that is due.
func (v *ReportViews) keep(ctx context.Context, now time.Time) {
	if !v.o.History.due(now) {
		return
	}
	if v.o.Stepwise {
		v.save(ctx, now)
		return
	}
	select {
	case v.due <- now:
	default: // it is being written
	}
}
