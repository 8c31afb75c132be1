package simulate

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/topics"
)

// The ownership channel: every change of ownership is a record on the log first; brokers act on the records that concern
// them, some milliseconds later, by doing something and writing the next record.

// write appends a record for a bundle to the ownership log; nil is a tombstone. What the conflict rule rejects stays on the
// log but has no effect, as on a real one.
func (c *Cluster) write(producer, bundle string, d *event.ServiceUnitStateData) {
	c.emit(topics.ServiceUnitState, bundle, payload(d), producer)
	c.fold(bundle, d)
}

// fold takes a record of the log into the state of ownership and lets the brokers react.
func (c *Cluster) fold(bundle string, d *event.ServiceUnitStateData) {
	if (ownership.Resolver{}).Decide(c.records[bundle], d).Keep {
		return
	}
	if d == nil {
		c.setRecord(bundle, nil)
		c.settle(bundle, nil)
		if c.bundles[bundle] != nil {
			c.lookUp(bundle)
		}
		return
	}
	c.setRecord(bundle, d)
	c.settle(bundle, d)
	c.react(bundle, d)
}

// react has the broker act that a record is for.
func (c *Cluster) react(bundle string, d *event.ServiceUnitStateData) {
	switch d.State {
	case event.Assigning:
		c.at(d.DstBroker, bundle, d, c.latency(), func(b *broker) {
			c.write(b.ID, bundle, c.next(d, event.Owned, d.DstBroker, d.SourceBroker))
		})
	case event.Owned:
		c.at(d.DstBroker, bundle, d, c.latency()+c.loadTime(bundle), func(b *broker) {
			if x := c.bundles[bundle]; x != nil {
				c.serve(x, b)
			}
		})
		c.at(d.DstBroker, bundle, d, c.latency(), func(b *broker) { b.reporter.reset(b) })
	case event.Releasing:
		c.at(d.SourceBroker, bundle, d, c.latency(), func(b *broker) {
			b.reporter.reset(b)
			c.close(b, bundle, d)
		})
	case event.Splitting:
		c.at(d.SourceBroker, bundle, d, c.latency(), func(b *broker) {
			b.reporter.reset(b)
			c.splitOn(b, bundle, d)
		})
	case event.Deleted:
		c.at(d.SourceBroker, bundle, d, c.latency(), func(b *broker) { c.write(b.ID, bundle, nil) })
	case event.Free:
		c.lookUp(bundle)
	}
}

// at lets a broker act on a record after a time, unless the record has been replaced by then or the broker is gone. A
// frozen broker acts when it thaws.
func (c *Cluster) at(id, bundle string, d *event.ServiceUnitStateData, delay time.Duration, do func(*broker)) {
	b := c.brokerByID[id]
	if b == nil || !b.up {
		return
	}
	life := b.life
	var act func()
	act = func() {
		switch {
		case b.life != life || c.records[bundle] != d:
		case b.frozen:
			b.deferred = append(b.deferred, act)
		default:
			do(b)
		}
	}
	c.after(delay+c.faults.silence(c.now, topics.ServiceUnitState), act)
}

// close unloads the bundle's topics on their broker, then passes the bundle on or sets it free.
func (c *Cluster) close(b *broker, bundle string, d *event.ServiceUnitStateData) {
	x := c.bundles[bundle]
	if x != nil && x.server == b {
		c.serve(x, nil)
	}
	c.at(b.ID, bundle, d, c.closeTime(bundle), func(b *broker) {
		if d.DstBroker != "" {
			c.write(b.ID, bundle, c.next(d, event.Assigning, d.DstBroker, d.SourceBroker))
		} else {
			c.write(b.ID, bundle, c.next(d, event.Free, "", d.SourceBroker))
		}
	})
}

// lookUp is what clients do about a bundle without an owner: some broker is asked and assigns it.
func (c *Cluster) lookUp(bundle string) {
	c.after(c.jittered(c.cfg.Timing.Lookup), func() {
		d := c.records[bundle]
		if c.bundles[bundle] == nil || d != nil && d.State != event.Free {
			return
		}
		asked := c.anyBroker()
		dst := c.choose(bundle, "")
		if asked == nil || dst == "" {
			c.lookUp(bundle)
			return
		}
		c.cause(bundle, Placed)
		c.write(asked.ID, bundle, c.next(d, event.Assigning, dst, ""))
	})
}

// assignFirst gives a bundle its first owner at the cluster's start.
func (c *Cluster) assignFirst(x *bundle, owner string) {
	if owner == "" {
		owner = c.choose(x.name, "")
	}
	b := c.brokerByID[owner]
	if b == nil {
		x.gapSince = c.now
		c.lookUp(x.name)
		return
	}
	d := c.next(nil, event.Assigning, owner, "")
	c.setRecord(x.name, d)
	c.emit(topics.ServiceUnitState, x.name, payload(d), owner)
	d = c.next(d, event.Owned, owner, "")
	c.setRecord(x.name, d)
	c.emit(topics.ServiceUnitState, x.name, payload(d), owner)
	x.last = b
	c.serve(x, b)
}

// next is the record that follows another one.
func (c *Cluster) next(after *event.ServiceUnitStateData, s event.ServiceUnitState, dst, src string) *event.ServiceUnitStateData {
	d := &event.ServiceUnitStateData{State: s, DstBroker: dst, SourceBroker: src, Timestamp: c.now, VersionID: 1}
	if after != nil {
		d.VersionID = after.VersionID + 1
	}
	return d
}

func (c *Cluster) latency() time.Duration { return c.jittered(c.cfg.Timing.Channel) }

func (c *Cluster) closeTime(bundle string) time.Duration {
	return c.jittered(c.cfg.Timing.Close + time.Duration(c.topicsOf(bundle))*c.cfg.Timing.CloseTopic)
}

func (c *Cluster) loadTime(bundle string) time.Duration {
	return c.jittered(c.cfg.Timing.Load + time.Duration(c.topicsOf(bundle))*c.cfg.Timing.LoadTopic)
}

func (c *Cluster) topicsOf(bundle string) int {
	if x := c.bundles[bundle]; x != nil {
		return len(x.topics)
	}
	return 0
}

// setRecord makes d a bundle's record, nil to have none.
func (c *Cluster) setRecord(bundle string, d *event.ServiceUnitStateData) {
	at, found := slices.BinarySearch(c.recorded, bundle)
	switch {
	case d == nil && found:
		c.recorded = slices.Delete(c.recorded, at, at+1)
	case d != nil && !found:
		c.recorded = slices.Insert(c.recorded, at, bundle)
	}
	if old := c.records[bundle]; old != nil {
		c.given[old.DstBroker]--
	}
	if d == nil {
		delete(c.records, bundle)
		return
	}
	c.records[bundle] = d
	c.given[d.DstBroker]++
}

// recordNames are the bundles that have a record, ordered by name. The list is the caller's.
func (c *Cluster) recordNames() []string { return slices.Clone(c.recorded) }

// anyBroker is a registered broker that answers, nil if there is none.
func (c *Cluster) anyBroker() *broker {
	all := slices.DeleteFunc(c.registered(), func(b *broker) bool { return !b.alive() })
	if len(all) == 0 {
		return nil
	}
	return all[c.rnd.IntN(len(all))]
}

// anyAlive is a broker that runs, nil if there is none. Unlike anyBroker it draws no lot.
func (c *Cluster) anyAlive() *broker {
	for _, b := range c.brokers {
		if b.alive() {
			return b
		}
	}
	return nil
}

func payload(d *event.ServiceUnitStateData) []byte {
	if d == nil {
		return nil
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic(fmt.Sprintf("simulate: a record that this package made cannot be written: %v", err))
	}
	return b
}
