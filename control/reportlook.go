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
	v.bundles.catchUp(ctx, v.o.Cluster, l.named, v.o.Logger)
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
	asked    map[string]struct{}
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
	l.asked, l.ReportViews.asked = l.ReportViews.asked, map[string]struct{}{}
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
