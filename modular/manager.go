package modular

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// Manager is the Modular load manager: the rules around a shedding and a placement strategy. It implements plan.Manager.
// Call Update with every new picture of the cluster and use the snapshot it returns for the other calls.
// Pulsar: ModularLoadManagerImpl.
type Manager struct {
	Shedder plan.Shedder
	Placer  plan.Placer
	Options Options
}

// ErrStrategies is wrapped by the error about strategies that do not go together.
var ErrStrategies = errors.New("strategies do not go together")

// New makes a manager. AvgShedder as placement needs AvgShedder as shedding strategy; Pulsar 4 does not start otherwise,
// Pulsar 5 silently places with LeastLongTermMessageRate.
func New(shedder plan.Shedder, placer plan.Placer, o Options) (*Manager, error) {
	if shedder == nil || placer == nil {
		return nil, fmt.Errorf("modular: a shedding and a placement strategy are needed, got %T and %T", shedder, placer)
	}
	if _, ok := placer.(AvgShedder); ok {
		if _, ok := shedder.(AvgShedder); !ok {
			return nil, fmt.Errorf("modular: %w: AvgShedder places only what it sheds itself; "+
				"loadBalancerLoadSheddingStrategy is %T, it must be AvgShedder or loadBalancerLoadPlacementStrategy another one", ErrStrategies, shedder)
		}
	}
	return &Manager{Shedder: shedder, Placer: placer, Options: o}, nil
}

// Memory is implemented by strategies of other packages that remember something: State.Other is what it returns at first.
type Memory interface{ NewMemory() any }

// NewState implements plan.Manager: it returns a *State.
func (m *Manager) NewState() plan.State {
	st := NewState()
	for _, s := range []any{m.Shedder, m.Placer} {
		if s, ok := s.(Memory); ok && st.Other == nil {
			st.Other = s.NewMemory()
		}
	}
	return st
}

// Why a broker was chosen for a bundle, or none.
var (
	// Placed: the placement strategy chose the broker.
	Placed = plan.Code{ID: "PLACED", Template: "chosen among {candidates} candidates"}
	// HasAffinity: the bundle was unloaded to this broker.
	HasAffinity = plan.Code{ID: "UNLOADED_TO", Template: "the bundle was unloaded to {broker}"}
	// AlreadyAssigned: the bundle was assigned to this broker a moment ago.
	AlreadyAssigned = plan.Code{ID: "ALREADY_ASSIGNED", Template: "the bundle was just assigned to {broker}"}
	// AffinityGone: the broker that the bundle was unloaded to is not registered any more.
	AffinityGone = plan.Code{ID: "UNLOADED_TO_GONE", Template: "{broker}, which the bundle was unloaded to, is not registered"}
	// OwnNamespace: a heartbeat or SLA namespace belongs to the broker it names.
	OwnNamespace = plan.Code{ID: "OWN_NAMESPACE", Template: "{namespace} belongs to {broker}"}
	// NoneAllowed: policies allow no broker.
	NoneAllowed = plan.Code{ID: "NO_BROKER_ALLOWED", Template: "none of {brokers} brokers may take {namespace}"}
	// NoneChosen: the strategy chose none, or one of which nothing is known.
	NoneChosen = plan.Code{ID: "NO_BROKER_CHOSEN", Template: "no broker chosen among {candidates} candidates"}
	// SecondChoice: the chosen broker is overloaded, so another choice was made.
	SecondChoice = plan.Code{ID: "SECOND_CHOICE", Template: "first choice {broker} has usage {usage} > overload threshold {threshold}, chosen again among {candidates}"}
)

// Place implements plan.Manager. It changes the state in place: the bundle counts as pre-allocated on its broker until that
// reports it (see Options.KeepPreallocations). Pulsar: ModularLoadManagerWrapper and selectBrokerForAssignment.
func (m *Manager) Place(snap *cluster.Snapshot, bundle string, state plan.State, rnd plan.Rand, trace *plan.Trace) (plan.Decision, plan.State) {
	st := stateOf(state)
	d := plan.Decision{Action: plan.Place, Bundle: bundle}
	if id, ok := ownerOf(snap, namespaceOf(snap, bundle)); ok {
		d.Destination, d.Why = id, OwnNamespace.Because(plan.S("namespace", namespaceOf(snap, bundle)), plan.S("broker", id))
		return withLoad(d, snap, st), st
	}
	if id, ok := st.Affinity[bundle]; ok {
		delete(st.Affinity, bundle)
		if !m.Options.CheckAffinity || snap.BrokerIndex(id) >= 0 {
			d.Destination, d.Why = id, HasAffinity.Because(plan.S("broker", id))
			return withLoad(d, snap, st), st
		}
		trace.Skip(bundle, id, "", AffinityGone.Because(plan.S("broker", id)))
	}
	if id, ok := st.Assigned[bundle]; ok {
		d.Destination, d.Why = id, AlreadyAssigned.Because(plan.S("broker", id))
		return withLoad(d, snap, st), st
	}
	st.learn(snap, bundle)
	i, why := m.choice(snap, st, bundle, trace).broker(rnd)
	d.Why = why
	if i >= 0 {
		d.Destination = snap.Brokers[i].ID
		st.preallocate(snap, bundle, i, dataOf(snap, st, bundle))
	}
	return withLoad(d, snap, st), st
}

// ownerOf is the broker that a heartbeat namespace belongs to, and that of an SLA namespace if it is registered.
// Pulsar: NamespaceService.getHeartbeatNamespace and checkSLAMonitorNamespace, asked before the load manager.
func ownerOf(snap *cluster.Snapshot, namespace string) (string, bool) {
	if !load.IsBrokerNamespace(namespace) {
		return "", false
	}
	tenant, broker, _ := strings.Cut(namespace, "/")
	return broker, tenant == "pulsar" || snap.BrokerIndex(broker) >= 0
}

// learn gives a bundle that nothing is known of the history of one that was never seen.
func (st *State) learn(snap *cluster.Snapshot, bundle string) {
	i := snap.BundleIndex(bundle)
	if i >= 0 && snap.Bundles[i].Data != nil {
		return
	}
	if d, found := st.History.Add(i, bundle); !found {
		*d = unseen
	}
}

// withLoad fills in what moves with a bundle.
func withLoad(d plan.Decision, snap *cluster.Snapshot, st *State) plan.Decision {
	data := dataOf(snap, st, d.Bundle)
	d.Throughput, d.MsgRate = data.ShortTermData.TotalMsgThroughput(), data.ShortTermData.TotalMsgRate()
	d.Topics = int64(data.Topics)
	return d
}

// broker chooses a broker (index into Snapshot.Brokers), -1 for none. Pulsar: selectBroker.
func (c *choice) broker(rnd plan.Rand) (int, plan.Reason) {
	candidates := c.candidates()
	if len(candidates) == 0 {
		if why := c.policies.Allowed(c.namespace, c.kind).Frozen; !why.IsZero() {
			return -1, policyReason(why)
		}
		return -1, NoneAllowed.Because(plan.N("brokers", len(c.snap.Brokers)), plan.S("namespace", c.namespace))
	}
	placer := c.m.Placer
	if slices.Contains(c.snap.Settings.LoadBalancerSheddingExcludedNamespaces, c.namespace) {
		placer = RoundRobinBrokerSelector{excluded: true}
	}
	i, n := c.place(placer, candidates, rnd), len(candidates)
	if i < 0 {
		return -1, NoneChosen.Because(plan.N("candidates", n))
	}
	w, threshold := load.WeightsOf(c.snap.Settings), overloadThreshold(c.snap)
	usage := load.LocalWeightedMaxUsage(c.snap.Brokers[i].Local, &w)
	if !(usage > threshold) {
		return i, Placed.Because(plan.N("candidates", n))
	}
	second := c.secondCandidates(candidates, &w, threshold)
	why := SecondChoice.Because(plan.S("broker", c.snap.Brokers[i].ID), plan.N("usage", usage), plan.N("threshold", threshold), plan.N("candidates", len(second)))
	if c.m.Options.SecondChoiceKeepsFilters {
		if len(second) == 0 {
			return i, Placed.Because(plan.N("candidates", n))
		}
	} else {
		placer = c.m.Placer
	}
	if j := c.place(placer, second, rnd); j >= 0 {
		return j, why
	}
	return i, Placed.Because(plan.N("candidates", n))
}

// secondCandidates is what is chosen from when the first choice is overloaded: all that policies allow, or those of the
// filtered candidates that are not overloaded.
func (c *choice) secondCandidates(candidates []int, w *load.Weights, threshold float64) []int {
	if !c.m.Options.SecondChoiceKeepsFilters {
		return c.allowed()
	}
	var out []int
	for _, i := range candidates {
		d := c.snap.Brokers[i].Local
		if d != nil && load.LocalWeightedMaxUsage(d, w) <= threshold {
			out = append(out, i)
		}
	}
	return out
}

// place asks a strategy. A broker of which nothing is known is no answer (Pulsar fails on it).
func (c *choice) place(placer plan.Placer, candidates []int, rnd plan.Rand) int {
	i, why := placer.Place(c.snap, c.bundle, candidates, c.st, rnd, c.trace)
	switch {
	case i < 0:
		if c.trace != nil {
			c.trace.Skip(c.bundle, "", "", why)
		}
		return -1
	case i >= len(c.snap.Brokers) || c.snap.Brokers[i].Local == nil:
		if i < len(c.snap.Brokers) {
			leaveSilent(c.trace, c.bundle, &c.snap.Brokers[i])
		}
		return -1
	}
	if c.trace != nil {
		c.trace.Skip(c.bundle, "", c.snap.Brokers[i].ID, why) // why this one
	}
	return i
}

// Record implements plan.Manager: it notes what was carried out at time now (Unix ms). A bundle that a strategy unloaded is left alone for
// loadBalancerSheddingGracePeriodMinutes, and each is assigned next to the destination of its unload; the history of a split bundle is
// dropped.
func (m *Manager) Record(state plan.State, done plan.Decision, now int64) plan.State {
	st := stateOf(state).next()
	switch done.Action {
	case plan.Unload, plan.Transfer:
		if done.PulsarReason != plan.Admin {
			if st.RecentlyUnloaded == nil {
				st.RecentlyUnloaded = make(map[string]int64)
			}
			st.RecentlyUnloaded[done.Bundle] = now
		}
		if m.Options.KeepPreallocations {
			st.forgetAssignment(done.Bundle)
		}
		if done.Destination != "" {
			if st.Affinity == nil {
				st.Affinity = make(map[string]string)
			}
			st.Affinity[done.Bundle] = done.Destination
		}
	case plan.Split:
		st.forgetBundles(func(b string) bool { return b == done.Bundle })
	}
	return st
}

// forgetAssignment drops the pre-allocation of a bundle.
func (st *State) forgetAssignment(bundle string) {
	delete(st.Assigned, bundle)
	for i := range st.Preallocated.entries {
		p := &st.Preallocated.entries[i].Value
		if k := slices.IndexFunc(p.Bundles, func(x Preallocation) bool { return x.Bundle == bundle }); k >= 0 {
			*p = Preallocations{Bundles: slices.Delete(slices.Clone(p.Bundles), k, k+1)}
		}
	}
}

// forgetBundles drops the histories of bundles.
func (st *State) forgetBundles(gone func(bundle string) bool) {
	st.History = st.History.Clone()
	st.History.Retain(func(b string, _ *event.BundleData) bool {
		if !gone(b) {
			return true
		}
		st.Avg.bundleGone(b)
		return false
	})
}
