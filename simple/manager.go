package simple

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
)

// Name and Class are the load manager's short name and Pulsar's class name.
const (
	Name  = "simple"
	Class = "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl"
)

// Manager is the Simple load manager. It implements plan.Manager; its placement strategy is what
// loadBalancerPlacementStrategy names, its shedding strategy is its own.
type Manager struct {
	Options Options
}

// ManagerEntry is the load manager, under Pulsar's class name and its short name.
func ManagerEntry(o Options) plan.Entry[plan.NewManager] {
	return plan.Entry[plan.NewManager]{
		Name: Name, Class: Class,
		Doc: "Pulsar's oldest: every broker ranks all by what their bundles are expected to need; the leader sheds one bundle per overloaded broker.",
		New: func(plan.Parts) (plan.Manager, error) { return &Manager{Options: o}, nil },
	}
}

// NewState implements plan.Manager: it returns a *State. A caller that knows what is stored of quotas and load factors in
// the metadata store puts it into Quotas.
func (m *Manager) NewState() plan.State { return NewState() }

// Record implements plan.Manager: it notes what was carried out at time now (Unix ms). A shed bundle is left alone for
// loadBalancerSheddingGracePeriodMinutes. Pulsar: unloadedHotNamespaceCache.
func (m *Manager) Record(state plan.State, done plan.Decision, now int64) plan.State {
	st := stateOf(state).next()
	if (done.Action == plan.Unload || done.Action == plan.Transfer) && done.PulsarReason != plan.Admin {
		st.unloaded(done.Bundle, now)
	}
	return st
}

func (st *State) unloaded(bundle string, at int64) {
	if st.RecentlyUnloaded == nil {
		st.RecentlyUnloaded = make(map[string]int64)
	}
	st.RecentlyUnloaded[bundle] = at
}

// forgetUnloads drops the unloads whose grace period is over.
func (st *State) forgetUnloads(now, graceMinutes int64) {
	for b, at := range st.RecentlyUnloaded {
		if now-at >= minutes(graceMinutes) {
			delete(st.RecentlyUnloaded, b)
		}
	}
}

// bundleCounts counts the snapshot's bundles per namespace.
func bundleCounts(snap *cluster.Snapshot) map[string]int {
	counts := make(map[string]int)
	for i := range snap.Bundles {
		counts[snap.Bundles[i].Namespace]++
	}
	return counts
}
