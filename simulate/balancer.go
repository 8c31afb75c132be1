package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// CycleLog is one cycle of the cluster's own balancer.
type CycleLog struct {
	At      int64 // Unix ms
	Leader  string
	Plan    plan.Plan
	LeftOut []plan.LeftOut // with Explain only
}

// balancer is the cluster's own: a load manager that runs on the leader, as in a real cluster.
type balancer struct {
	c       *Cluster
	manager plan.Manager
	state   plan.State
	rnd     *rand.Rand
	pending int  // unloads of the last cycle that have not ended
	held    bool // no shedding for now
	explain bool
}

func (b *balancer) init(c *Cluster) {
	b.c, b.manager, b.rnd = c, c.cfg.Manager, NewRand(c.cfg.Seed, 3)
	if b.manager != nil {
		b.state = b.manager.NewState()
	}
}

// Hold keeps the cluster's own balancer from shedding, or lets it go on, whatever the settings say. Scenarios begin so,
// to let load data settle first.
func (c *Cluster) Hold(held bool) { c.balancer.held = held }

// Explain makes the log of cycles carry what was left out and why.
func (c *Cluster) Explain() { c.balancer.explain = true }

// Cycles are the cycles of the cluster's own balancer so far, oldest first.
func (c *Cluster) Cycles() []CycleLog { return c.log }

// lead starts the cycles on a new leader, which remembers nothing.
func (b *balancer) lead(leader *broker) {
	if b.manager == nil {
		return
	}
	b.state, b.pending = b.manager.NewState(), 0
	term := b.c.term
	interval := max(time.Duration(b.c.settings.LoadBalancerSheddingIntervalMinutes)*time.Minute, time.Second)
	b.c.every(interval, interval, func() bool {
		if b.c.term != term {
			return false
		}
		if leader.alive() {
			b.shed(leader)
		}
		return true
	})
}

// shed is one cycle. A cycle whose unloads are not done when the next one is due makes that one wait, as in Pulsar.
func (b *balancer) shed(leader *broker) {
	c, set := b.c, b.c.settings
	if b.held || !set.LoadBalancerEnabled || !set.LoadBalancerSheddingEnabled || b.pending > 0 || len(c.registered()) <= 1 {
		return
	}
	var trace *plan.Trace
	if b.explain {
		trace = &plan.Trace{}
	}
	var p plan.Plan
	p, b.state = b.manager.Shed(c.Snapshot(), b.state, b.rnd, trace)
	entry := CycleLog{At: c.now, Leader: leader.ID, Plan: p}
	if trace != nil {
		entry.LeftOut = trace.Entries
	}
	c.log = append(c.log, entry)
	for _, d := range p.Decisions {
		b.carryOut(d)
	}
}

func (b *balancer) carryOut(d plan.Decision) {
	if d.Action != plan.Transfer && d.Action != plan.Unload {
		return
	}
	term, ended := b.c.term, false
	b.pending++
	if b.c.stored() { // the destination must be known before the bundle is looked up again
		b.state = b.manager.Record(b.state, d, b.c.now)
	}
	done := func(err error) {
		if ended {
			return
		}
		ended = true
		if b.c.term != term {
			return // the memory belongs to another leader now
		}
		b.pending--
		if err == nil && b.c.cfg.Kind == Extensible {
			b.state = b.manager.Record(b.state, d, b.c.now)
		}
	}
	if err := b.c.unload(d.Bundle, d.Destination, Shed, done); err != nil {
		done(err)
	}
}

// split is one round of splits. Every broker looks after its own bundles.
func (b *balancer) split(by *broker) {
	c, set := b.c, b.c.settings
	if b.manager == nil || by != c.leader || !set.LoadBalancerEnabled || !set.LoadBalancerAutoBundleSplitEnabled {
		return
	}
	var p plan.Plan
	p, b.state = b.manager.Split(c.Snapshot(), b.state, nil)
	for _, d := range p.Decisions {
		d := d
		_ = c.split(d.Bundle, "specified_positions_divide", d.Boundaries, func(err error) {
			if err == nil && c.leader == by {
				b.state = b.manager.Record(b.state, d, c.now)
			}
		})
	}
}

// choose is the broker that an unowned bundle goes to, "" if there is none. exclude is never chosen.
func (c *Cluster) choose(bundle, exclude string) string {
	if hint := c.modular.hints[bundle]; hint != "" {
		delete(c.modular.hints, bundle)
		return hint
	}
	if c.balancer.manager == nil {
		return c.leastBundles(exclude)
	}
	snap := c.snapshotWithout(exclude)
	if c.cfg.Kind == Simple {
		snap.Now = c.modular.picture.Now // brokers are ranked when a report was written, not when one is chosen
	}
	if i := snap.BundleIndex(bundle); i >= 0 && c.cfg.Kind == Extensible {
		snap.Bundles[i].Owner, snap.Bundles[i].State = "", event.Free // or it would stay where it is
	}
	var d plan.Decision
	d, c.balancer.state = c.balancer.manager.Place(snap, bundle, c.balancer.state, c.balancer.rnd, nil)
	return d.Destination
}

// leastBundles is the placement of a cluster that was given no load manager: a broker with the fewest bundles.
func (c *Cluster) leastBundles(exclude string) string {
	var best []string
	for _, b := range c.registered() {
		switch {
		case b.ID == exclude:
		case len(best) == 0 || c.given[b.ID] < c.given[best[0]]:
			best = []string{b.ID}
		case c.given[b.ID] == c.given[best[0]]:
			best = append(best, b.ID)
		}
	}
	if len(best) == 0 {
		return ""
	}
	return best[c.balancer.rnd.IntN(len(best))]
}
