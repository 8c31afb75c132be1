package extensible

import (
	"fmt"
	"maps"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
)

// Manager is the Extensible load manager: the rules around a shedding and a placement strategy. It implements plan.Manager;
// its states are *State. Pulsar: ExtensibleLoadManagerImpl, UnloadScheduler, SplitScheduler.
type Manager struct {
	Shedder plan.Shedder
	Placer  plan.Placer
	Options Options
	// Filters say who may take an unowned bundle; nil = Filters(Options).
	Filters []Filter
	// Splits finds the bundles to split; nil = DefaultNamespaceBundleSplitStrategy with Options.
	Splits *DefaultNamespaceBundleSplitStrategy
}

// New makes a manager. A nil shedder is TransferShedder, a nil placer LeastResourceUsageWithWeight, as in Pulsar.
func New(shedder plan.Shedder, placer plan.Placer, o Options) *Manager {
	if shedder == nil {
		shedder = &TransferShedder{Options: o}
	}
	if placer == nil {
		placer = LeastResourceUsageWithWeight{Options: o}
	}
	return &Manager{Shedder: shedder, Placer: placer, Options: o}
}

// NewState implements plan.Manager: it returns a *State.
func (m *Manager) NewState() plan.State { return NewState() }

// Why a shedding cycle or a round of splits was not run.
var (
	// SheddingOff: shedding is switched off.
	SheddingOff = plan.Code{ID: "SHEDDING_OFF", Template: "{key} is false"}
	// SingleBroker: there is no other broker to move anything to.
	SingleBroker = plan.Code{ID: "SINGLE_BROKER", Template: "{brokers} registered brokers: nothing can move"}
	// SplittingOff: automatic splitting is switched off.
	SplittingOff = plan.Code{ID: "SPLITTING_OFF", Template: "{key} is false"}
)

// Shed implements plan.Manager: one run of the leader's unload scheduler.
func (m *Manager) Shed(snap *cluster.Snapshot, state plan.State, _ plan.Rand, trace *plan.Trace) (plan.Plan, plan.State) {
	st := stateOf(state).next()
	st.CycleSources = nil
	p := plan.Plan{Strategy: "UnloadScheduler", At: snap.Now}
	if key := off(snap.Settings.LoadBalancerEnabled, "loadBalancerEnabled", snap.Settings.LoadBalancerSheddingEnabled, "loadBalancerSheddingEnabled"); key != "" {
		p.Outcome = SheddingOff.Because(plan.S("key", key))
		return p, st
	}
	st.forgetUnloaded(snap)
	if n := len(snap.Brokers); n <= 1 {
		p.Outcome = SingleBroker.Because(plan.N("brokers", n))
		return p, st
	}
	return m.Shedder.Shed(snap, st, trace)
}

// off is the first key that is not set, "" if both are.
func off(a bool, keyA string, b bool, keyB string) string {
	switch {
	case !a:
		return keyA
	case !b:
		return keyB
	}
	return ""
}

// forgetUnloaded forgets bundles whose grace period is over, and what was placed on brokers that are gone.
func (st *State) forgetUnloaded(snap *cluster.Snapshot) {
	grace, cloned := snap.Settings.LoadBalancerSheddingGracePeriodMinutes*60_000, false
	for bundle, at := range st.UnloadedBundles {
		if snap.Now-at > grace {
			forget(&st.UnloadedBundles, &cloned, bundle)
		}
	}
	maps.DeleteFunc(st.Pending, func(id string, _ Pending) bool { return snap.BrokerIndex(id) < 0 })
}

// Record implements plan.Manager: a decision was carried out, or failed if its label says so. Of one that was carried out
// the bundle and its broker count as unloaded at now. Pulsar counts a decision when it is complete, too.
func (m *Manager) Record(state plan.State, done plan.Decision, now int64) plan.State {
	st := stateOf(state).next()
	failed := done.Label == Failure
	switch done.Action {
	case plan.Transfer, plan.Unload:
		if failed {
			st.Counters.Unload.add(Failure, Unknown)
			break
		}
		st.Counters.Unload.add(Success, done.PulsarReason)
		st.Counters.UnloadBundles++
		if st.addSource(done.Source) {
			st.Counters.UnloadBrokers++
		}
		if done.PulsarReason != plan.Admin { // the grace period is that of the scheduler's own unloads (Pulsar: UnloadScheduler)
			st.UnloadedBundles = with(st.UnloadedBundles, done.Bundle, now)
		}
		st.UnloadedBrokers = with(st.UnloadedBrokers, done.Source, now)
	case plan.Split:
		if failed {
			st.Counters.Split.add(Failure, Unknown)
			break
		}
		st.Counters.Split.add(Success, done.PulsarReason)
		st.Counters.SplitBundles++
	case plan.Place: // counted when the broker was chosen
	default:
	}
	return st
}

// String names the manager and its strategies.
func (m *Manager) String() string {
	return fmt.Sprintf("%s(%T, %T)", Name, m.Shedder, m.Placer)
}
