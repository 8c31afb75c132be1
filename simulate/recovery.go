package simulate

import (
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/topics"
)

// overridePause is between two batches of overrides.
const overridePause = 100 * time.Millisecond

// frozenCheck is how long the leader's health check of a frozen broker takes to fail.
const frozenCheck = 4 * time.Second

// cleanUp lets the leader give the bundles of a broker that left the registry to others, and remove its load data.
func (c *Cluster) cleanUp(gone string) {
	leader := c.leader
	if leader == nil || c.stored() {
		return
	}
	delay := c.latency()
	if b := c.brokerByID[gone]; b != nil && b.frozen {
		delay = frozenCheck
	}
	term := c.term
	c.after(delay, func() {
		if c.term != term || !leader.alive() || c.isRegistered(gone) {
			return
		}
		batch := max(int(c.settings.LoadBalancerServiceUnitStateMaxConcurrentOverrides), 1)
		names := c.recordsOf(gone)
		for i, bundle := range names {
			c.after(time.Duration(i/batch)*overridePause, func() { c.override(leader.ID, bundle, gone, false) })
		}
		c.after(time.Duration(len(names)/batch+1)*overridePause, func() {
			c.emitLoad(topics.BrokerLoadData, gone, nil, leader)
			c.emitLoad(topics.TopBundles, gone, nil, leader)
		})
	})
}

func (c *Cluster) isRegistered(id string) bool {
	b := c.brokerByID[id]
	return b != nil && b.registered
}

// override forces a bundle to another broker. exclude is never chosen. A broker that shuts down in order hands its own
// bundles over gracefully, topics first.
func (c *Cluster) override(producer, bundle, exclude string, graceful bool) {
	d := c.records[bundle]
	if d == nil {
		return
	}
	if exclude != "" && d.DstBroker != exclude && d.SourceBroker != exclude {
		return // somebody was faster
	}
	n := c.choose(bundle, exclude)
	source := d.SourceBroker
	if d.State == event.Owned {
		source = d.DstBroker
	}
	var next *event.ServiceUnitStateData
	switch {
	case n == "":
		next = c.next(d, event.Free, "", source)
	case d.State == event.Splitting:
		next = c.next(d, event.Splitting, d.DstBroker, n)
		next.SplitServiceUnitToDestBroker = d.SplitServiceUnitToDestBroker
	default:
		if source == n {
			source = ""
		}
		next = c.next(d, event.Owned, n, source)
		if graceful && source != "" && d.State == event.Owned {
			next.State = event.Releasing
		}
	}
	next.Force = true
	c.cause(bundle, Overridden)
	c.write(producer, bundle, next)
}

// monitor is the leader's watch over the ownership log: at once, and then periodically.
func (c *Cluster) monitor(leader *broker) {
	term := c.term
	period := time.Duration(c.settings.LoadBalancerServiceUnitStateMonitorIntervalInSeconds) * time.Second
	c.every(0, period, func() bool {
		if c.term != term {
			return false
		}
		if leader.alive() {
			c.monitorOnce(leader)
		}
		return true
	})
}

func (c *Cluster) monitorOnce(leader *broker) {
	waiting := c.settings.LoadBalancerInFlightServiceUnitStateWaitingTimeInMillis
	tombstone := c.settings.LoadBalancerServiceUnitStateTombstoneDelayTimeInSeconds * 1000
	gone := map[string]bool{}
	var order []string
	mark := func(id string) {
		if !gone[id] {
			gone[id] = true
			order = append(order, id)
		}
	}
	for _, bundle := range c.recordNames() {
		d := c.records[bundle]
		age := c.now - d.Timestamp
		switch {
		case d.State == event.Owned && !c.isRegistered(d.DstBroker):
			mark(d.DstBroker)
		case ownership.InFlight(d.State) && d.SourceBroker != "" && !c.isRegistered(d.SourceBroker):
			mark(d.SourceBroker)
		case ownership.InFlight(d.State) && d.DstBroker != "" && !c.isRegistered(d.DstBroker):
			mark(d.DstBroker)
		case ownership.InFlight(d.State) && age > waiting:
			c.override(leader.ID, bundle, "", false)
		case !ownership.Active(d.State) && age > tombstone:
			c.write(leader.ID, bundle, nil)
		}
	}
	for _, id := range order {
		c.cleanUp(id)
	}
}
