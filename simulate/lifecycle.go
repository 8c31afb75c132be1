package simulate

import (
	"fmt"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/ownership"
)

func (c *Cluster) addBroker(spec Broker) *broker {
	b := &broker{Broker: spec, c: c}
	if b.Version == "" {
		b.Version = c.cfg.Version
	}
	c.brokers = append(c.brokers, b)
	c.brokerByID[b.ID] = b
	return b
}

// boot starts a broker's process; it is registered after a time.
func (b *broker) boot(after time.Duration) {
	b.life++
	life := b.life
	if after <= 0 {
		b.register()
		return
	}
	b.c.after(after, func() {
		if b.life == life {
			b.register()
			b.resume()
			if b.c.leader == nil || b.c.leader == b {
				b.c.elect()
			}
		}
	})
}

// register makes a started broker part of the cluster, with all counters at zero, and starts what it does periodically.
func (b *broker) register() {
	c := b.c
	b.up, b.frozen, b.registered, b.startedAt = true, false, true, c.now
	b.session++
	b.counted, b.cpu, b.in, b.out, b.bytes = c.now, 0, 0, 0, 0
	b.hostAt, b.statsAt, b.hostAs = c.now, c.now, struct{ cpu, in, out float64 }{}
	b.host = b.resources(0, 0, 0)
	b.stats, b.totals = nil, load.Totals{}
	b.reporter = b.newReporter()

	report := time.Duration(c.settings.LoadBalancerReportUpdateMinIntervalMillis) * time.Millisecond
	b.periodically(report, b.report)
	b.periodically(time.Duration(c.settings.StatsUpdateFrequencyInSecs)*time.Second, b.updateStats)
	b.periodically(time.Duration(c.settings.LoadBalancerHostUsageCheckIntervalMinutes)*time.Minute, b.measureHost)
	b.periodically(time.Duration(c.settings.LoadBalancerSplitIntervalMinutes)*time.Minute, func() { c.balancer.split(b) })
}

// resume takes up, after a restart within the session, what the log says the broker owns or was asked to.
func (b *broker) resume() {
	c := b.c
	if c.stored() {
		c.forget(b.ID)
		return
	}
	for _, name := range c.recordNames() {
		d := c.records[name]
		if d.DstBroker == b.ID && (d.State == event.Owned || d.State == event.Assigning) {
			c.react(name, d)
		}
	}
}

// periodically repeats something while this start of the process lives. Brokers that are there from the beginning were not
// all started in one moment: their first turn comes anywhere in the period.
func (b *broker) periodically(period time.Duration, do func()) {
	c, life := b.c, b.life
	if period <= 0 {
		return
	}
	first := period
	if c.now == c.cfg.Start {
		first = time.Duration(1+c.rnd.IntN(int(period/time.Millisecond))) * time.Millisecond
	}
	c.every(first, period, func() bool {
		if b.life != life {
			return false
		}
		if b.alive() {
			do()
		}
		return true
	})
}

// Kill ends a broker's process at once (kill -9). It stays registered until its session times out; then the leader gives
// its bundles to others.
func (c *Cluster) Kill(id string) error {
	b, err := c.known(id)
	if err != nil {
		return err
	}
	if !b.up {
		return fmt.Errorf("broker %s does not run", id)
	}
	b.end()
	b.loseSession()
	return nil
}

// end is the end of a broker's process.
func (b *broker) end() {
	b.count()
	for _, x := range slices.Clone(b.serving) {
		b.c.serve(x, nil)
	}
	b.up, b.frozen, b.deferred = false, false, nil
	b.life++
}

// Restart starts a broker that was killed or stopped.
func (c *Cluster) Restart(id string) error {
	b, err := c.known(id)
	if err != nil {
		return err
	}
	if b.up {
		return fmt.Errorf("broker %s runs already", id)
	}
	b.boot(max(c.jittered(c.cfg.Timing.Boot), time.Millisecond))
	return nil
}

// AddBroker adds a broker and starts it.
func (c *Cluster) AddBroker(spec Broker) error {
	if spec.ID == "" || c.brokerByID[spec.ID] != nil {
		return fmt.Errorf("broker id is %q: it must be there and new", spec.ID)
	}
	c.addBroker(spec).boot(max(c.jittered(c.cfg.Timing.Boot), time.Millisecond))
	return nil
}

// Freeze stops a broker's process without ending it (SIGSTOP) until Thaw.
func (c *Cluster) Freeze(id string) error {
	b, err := c.known(id)
	if err != nil {
		return err
	}
	if !b.alive() {
		return fmt.Errorf("broker %s does not run", id)
	}
	b.count()
	b.frozen = true
	b.noticeAll()
	b.loseSession()
	return nil
}

// Thaw lets a frozen broker go on: it registers again if its session is gone, and does what it had to do.
func (c *Cluster) Thaw(id string) error {
	b, err := c.known(id)
	if err != nil {
		return err
	}
	if !b.frozen {
		return fmt.Errorf("broker %s is not frozen", id)
	}
	b.count()
	b.frozen, b.registered = false, true
	b.session++
	b.noticeAll()
	todo := b.deferred
	b.deferred = nil
	for _, do := range todo {
		do()
	}
	if c.leader == nil {
		c.elect()
	}
	return nil
}

// Stop shuts a broker down in order: it hands its bundles over first, then leaves the registry.
func (c *Cluster) Stop(id string) error {
	b, err := c.known(id)
	if err != nil {
		return err
	}
	if !b.alive() {
		return fmt.Errorf("broker %s does not run", id)
	}
	for _, bundle := range c.recordsOf(b.ID) {
		if d := c.records[bundle]; c.stored() && d.State == event.Owned {
			c.write(b.ID, bundle, c.next(d, event.Releasing, "", b.ID))
		} else if c.cfg.Kind == Extensible {
			c.override(b.ID, bundle, b.ID, true)
		}
	}
	life := b.life
	c.after(5*time.Second, func() {
		if b.life == life {
			b.end()
			c.deregister(b)
		}
	})
	return nil
}

func (c *Cluster) known(id string) (*broker, error) {
	if b, ok := c.brokerByID[id]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("broker %q does not exist", id)
}

// loseSession takes a broker out of the registry when it has been dead or frozen for the session's time-out.
func (b *broker) loseSession() {
	b.session++
	c, session := b.c, b.session
	c.after(c.cfg.Timing.Session, func() {
		if b.session == session && b.registered {
			c.deregister(b)
		}
	})
}

// deregister takes a broker out of the registry: a new leader is elected if it led, and its bundles are given to others.
func (c *Cluster) deregister(b *broker) {
	b.registered = false
	if c.leader == b {
		c.elect()
	} else {
		c.cleanUp(b.ID)
	}
	if c.stored() {
		c.forget(b.ID)
	}
}

// elect makes the broker that registered first the leader. A new leader starts with an empty view of the top bundles and
// without memory, and every broker reports to it at once.
func (c *Cluster) elect() {
	c.leader = nil
	c.term++
	for _, b := range c.registered() {
		if b.alive() && (c.leader == nil || b.startedAt < c.leader.startedAt) {
			c.leader = b
		}
	}
	if c.leader == nil {
		return
	}
	c.views.top = map[string]topEntry{}
	for _, b := range c.registered() {
		b.force()
	}
	c.balancer.lead(c.leader)
	if c.cfg.Kind == Extensible {
		c.monitor(c.leader)
	} else {
		c.updateAll()
	}
}

// notice keeps account of how long clients were cut off from a bundle.
func (c *Cluster) notice(x *bundle) {
	switch served := x.served(); {
	case served && x.gapSince >= 0:
		c.gaps.add(c.now-x.gapSince, len(x.topics))
		x.gapSince = -1
	case !served && x.gapSince < 0:
		x.gapSince = c.now
	}
}

func (b *broker) noticeAll() {
	for _, x := range b.serving {
		b.c.notice(x)
	}
}

// gaps is how long clients were cut off.
type gaps struct {
	bundleSeconds float64
	topicSeconds  float64
	longest       int64 // ms
}

func (g *gaps) add(ms int64, topics int) {
	g.bundleSeconds += float64(ms) / 1000
	g.topicSeconds += float64(ms) / 1000 * float64(topics)
	g.longest = max(g.longest, ms)
}

// recordsOf are the bundles that have a broker as owner or are in flight from it, ordered by name.
func (c *Cluster) recordsOf(id string) []string {
	var out []string
	for _, name := range c.recordNames() {
		d := c.records[name]
		if d.DstBroker == id && ownership.Active(d.State) || d.SourceBroker == id && ownership.InFlight(d.State) {
			out = append(out, name)
		}
	}
	return out
}
