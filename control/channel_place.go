package control

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Why unowned bundles get the brokers that they get, or none.
var (
	PlaceEven     = plan.Code{ID: "PLACE_EVEN", Template: "{broker} is one of {candidates} allowed brokers with the fewest of the namespace, {count}"}
	PlacePlanned  = plan.Code{ID: "PLACE_PLANNED", Template: "{unowned} of {bundles} bundles are unowned; with {placed} placed the brokers have {fewest} to {most}"}
	PlaceNothing  = plan.Code{ID: "PLACE_NOTHING", Template: "none of {bundles} bundles is unowned"}
	PlaceInFlight = plan.Code{ID: "PLACE_IN_FLIGHT", Template: "the bundle is {state}"}
	PlaceNobody   = plan.Code{ID: "PLACE_NO_BROKER", Template: "no broker may take it: {why}"}
)

// placing is one pass over unowned bundles. What it has given out counts before the next choice.
type placing struct {
	snap    *cluster.Snapshot
	manager plan.Manager
	state   plan.State
	rnd     plan.Rand
	trace   *plan.Trace
	pending map[string]int // broker -> bundles given to it in this pass, of all namespaces
}

// PlaceEvenly plans the first owner of each unowned bundle of a namespace. names are all its bundles. Among the brokers that
// policies allow, those with the fewest of the namespace come first, of them those that were given the fewest in this pass, and
// of them the manager's placement strategy chooses: so brokers differ by one bundle at most, as far as policies let them.
func PlaceEvenly(snap *cluster.Snapshot, names []string, m plan.Manager, state plan.State, rnd plan.Rand, trace *plan.Trace) (plan.Plan, plan.State) {
	p := &placing{snap: snap, manager: m, state: state, rnd: rnd, trace: trace, pending: map[string]int{}}
	out := p.namespace(names)
	return out, p.state
}

func (p *placing) namespace(names []string) plan.Plan {
	out := plan.Plan{Strategy: "PlaceEvenly", At: p.snap.Now, Decisions: []plan.Decision{}}
	have, unowned := p.take(names)
	if len(unowned) == 0 {
		out.Outcome = PlaceNothing.Because(plan.N("bundles", len(names)))
		return out
	}
	allowed, why := p.allowed(event.NamespaceOf(names[0]))
	for _, name := range unowned {
		if d, ok := p.one(name, allowed, have, why); ok {
			have[d.Destination]++
			p.pending[d.Destination]++
			out.Decisions = append(out.Decisions, d)
		}
	}
	least, most := spread(allowed, have)
	out.Outcome = PlacePlanned.Because(plan.N("unowned", len(unowned)), plan.N("bundles", len(names)), plan.N("placed", len(out.Decisions)),
		plan.N("fewest", least), plan.N("most", most))
	return out
}

// take counts what brokers have of a namespace, and finds what nobody has.
func (p *placing) take(names []string) (have map[string]int, unowned []string) {
	have = map[string]int{}
	for _, name := range names {
		i := p.snap.BundleIndex(name)
		if i < 0 {
			unowned = append(unowned, name)
			continue
		}
		switch b := &p.snap.Bundles[i]; b.State {
		case event.Owned:
			have[b.Owner]++
		case event.Init, event.Free, "":
			unowned = append(unowned, name)
		default:
			p.trace.Skip(name, b.Owner, "", PlaceInFlight.Because(plan.S("state", string(b.State))))
		}
	}
	return have, unowned
}

// allowed are the brokers that policies let a namespace's bundles go to, in the order of the snapshot; why others may not.
func (p *placing) allowed(ns string) ([]string, plan.Reason) {
	if why := policy.Unmanaged(ns, nil); !why.IsZero() {
		return nil, plan.FromPolicy(why)
	}
	var out []string
	view := policies(p.snap)
	if view == nil {
		for i := range p.snap.Brokers {
			out = append(out, p.snap.Brokers[i].ID)
		}
		return out, plan.Reason{}
	}
	verdict := view.Allowed(ns, true)
	if !verdict.Frozen.IsZero() {
		return nil, plan.FromPolicy(verdict.Frozen)
	}
	var why plan.Reason
	for i := range verdict.Brokers {
		if verdict.Brokers[i].Allowed {
			out = append(out, verdict.Brokers[i].Broker)
		} else if why.Code == "" {
			why = plan.FromPolicy(verdict.Why(i))
		}
	}
	return out, why
}

// one chooses the broker of one bundle. Brokers that the manager's own rules leave out make way for those that come next.
func (p *placing) one(name string, allowed []string, have map[string]int, why plan.Reason) (plan.Decision, bool) {
	for left := slices.Clone(allowed); len(left) > 0; {
		best := fewest(fewest(left, have), p.pending)
		d, next := p.manager.Place(among(p.snap, best), name, p.state, p.rnd, p.trace)
		p.state = next
		if d.Destination != "" && slices.Contains(best, d.Destination) {
			d.Why = PlaceEven.Because(plan.S("broker", d.Destination), plan.N("candidates", len(best)), plan.N("count", have[d.Destination]))
			return d, true
		}
		why = d.Why
		left = slices.DeleteFunc(left, func(id string) bool { return slices.Contains(best, id) })
	}
	p.trace.Skip(name, "", "", PlaceNobody.Because(plan.S("why", why.String())))
	return plan.Decision{}, false
}

// fewest are the brokers of a list that have the least of something.
func fewest(ids []string, have map[string]int) []string {
	least, _ := spread(ids, have)
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return have[id] > least })
}

func spread(ids []string, have map[string]int) (least, most int) {
	for i, id := range ids {
		if i == 0 || have[id] < least {
			least = have[id]
		}
		most = max(most, have[id])
	}
	return least, most
}

// among is the snapshot with some of its brokers only.
func among(snap *cluster.Snapshot, ids []string) *cluster.Snapshot {
	if len(ids) == len(snap.Brokers) {
		return snap
	}
	s := *snap
	s.Brokers = nil
	for i := range snap.Brokers {
		if slices.Contains(ids, snap.Brokers[i].ID) {
			s.Brokers = append(s.Brokers, snap.Brokers[i])
		}
	}
	return s.Index()
}

// PrePlacing is a load manager that also gives bundles that have lost their owner the next one, before a client looks them up:
// after a mass restart lookups would bring most of them to the broker that is up first. The placements come first in the plan.
func PrePlacing(m plan.Manager) plan.Manager { return prePlacing{m} }

type prePlacing struct{ plan.Manager }

// Shed plans what the manager plans, after the placements.
func (m prePlacing) Shed(snap *cluster.Snapshot, state plan.State, rnd plan.Rand, trace *plan.Trace) (plan.Plan, plan.State) {
	pass := &placing{snap: snap, manager: m.Manager, state: state, rnd: rnd, trace: trace, pending: map[string]int{}}
	var placed []plan.Decision
	for _, names := range orphaned(snap) {
		for _, d := range pass.namespace(names).Decisions {
			if snap.BundleIndex(d.Bundle) >= 0 { // what never had an owner has no clients that come back
				placed = append(placed, d)
			}
		}
	}
	p, next := m.Manager.Shed(snap, pass.state, rnd, trace)
	p.Decisions = append(placed, p.Decisions...)
	return p, next
}

// orphaned are the bundles of the managed namespaces in which a bundle is Free, namespace by namespace.
func orphaned(snap *cluster.Snapshot) (out [][]string) {
	var names []string
	lost := false
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if b.State != event.Deleted {
			names = append(names, b.Name)
			lost = lost || b.State == event.Free
		}
		if i+1 == len(snap.Bundles) || snap.Bundles[i+1].Namespace != b.Namespace {
			if lost && policy.Unmanaged(b.Namespace, nil).IsZero() {
				out = append(out, names)
			}
			names, lost = nil, false
		}
	}
	return out
}
