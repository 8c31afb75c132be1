package simulate

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/simple"
)

// Kind is which load manager the brokers of a cluster run. It decides what they publish and who knows what.
type Kind int

// The kinds.
const (
	// Extensible brokers publish load data and ownership on system topics.
	Extensible Kind = iota
	// Modular brokers write load reports and ownership to the metadata store: nothing is on a topic. A dead broker's bundles
	// are without owner as soon as its session ends, and the destination of an unload is a hint.
	Modular
	// Simple brokers do as Modular ones, but their reports have another form, and the destination of an unload is ignored.
	Simple
)

// class is the class that the brokers of a kind run.
func (k Kind) class() string {
	switch k {
	case Modular:
		return modular.Class
	case Simple:
		return simple.Class
	}
	return "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
}

// stored says whether ownership and load are in the metadata store.
func (c *Cluster) stored() bool { return c.cfg.Kind != Extensible }

// updater is a load manager that keeps histories from load reports.
type updater interface {
	Update(*cluster.Snapshot, plan.State) (*cluster.Snapshot, plan.State, modular.Changes)
}

var _ updater = (*modular.Manager)(nil)

// modularView is what every broker of a Modular cluster reads from the metadata store.
type modularView struct {
	reports map[string]*event.LocalBrokerData
	picture *cluster.Snapshot // as of the last update; nil before
	hints   map[string]string // bundle -> the broker that an admin unload named

	simple map[string]*event.LoadReport // of a Simple cluster, instead of reports
}

// newLocal is a Modular broker's load report before its first measurement.
func (b *broker) newLocal() event.LocalBrokerData {
	d := event.NewLocalBrokerData(b.clock())
	host := short(b.ID)
	d.WebServiceURL, d.PulsarServiceURL = "http://"+b.ID, "pulsar://"+host+":6650"
	d.PersistentTopicsEnabled, d.NonPersistentTopicsEnabled = b.c.settings.EnablePersistentTopics, b.c.settings.EnableNonPersistentTopics
	d.BrokerVersionString, d.LoadManagerClassName = b.Version, Modular.class()
	d.LastUpdate = 0 // the first report is due at once
	return d
}

// reportLocal is the periodic task of a Modular broker: it writes its load report when that changed enough.
func (b *broker) reportLocal() {
	c, r, set := b.c, &b.reporter, b.c.settings
	now, all := b.clock(), load.WeightsOf(set)
	load.UpdateLocal(&r.local, b.systemUsage(), b.stats)
	due, _ := load.ReportDue(&r.written, &r.local, now, &all, set.LoadBalancerReportUpdateThresholdPercentage, set.LoadBalancerReportUpdateMaxIntervalMinutes)
	if !due && !r.forced || b.mute {
		return
	}
	r.forced = false
	r.local.LastUpdate = now
	written := r.local
	written.Bundles, written.LastStats = slices.Clone(r.local.Bundles), slices.Clone(r.local.LastStats)
	load.CleanDeltas(&r.local)
	r.written = written
	c.modular.reports[b.ID] = &written
	c.updateAll()
}

// updateAll is what brokers do when a load report was written or a broker came or went: they take all reports into the
// histories.
func (c *Cluster) updateAll() {
	if !c.stored() {
		return
	}
	c.modular.picture = c.modularSnapshot()
	if m, ok := c.balancer.manager.(*simple.Manager); ok {
		c.balancer.state = m.Update(c.modular.picture, c.balancer.state)
	}
	if m, ok := c.balancer.manager.(updater); ok {
		c.modular.picture, c.balancer.state, _ = m.Update(c.modular.picture, c.balancer.state)
	}
}

// modularSnapshot is the registry, the load reports and the ownership of this moment.
func (c *Cluster) modularSnapshot() *cluster.Snapshot {
	s := c.emptySnapshot()
	for _, name := range c.recorded {
		s.Bundles = append(s.Bundles, bundleOfRecord(name, c.records[name]))
	}
	for _, b := range c.registered() {
		s.Brokers = append(s.Brokers, c.registration(b))
	}
	s.Index()
	for i := range s.Brokers {
		b := &s.Brokers[i]
		var stats []event.NamedBundleStats
		if b.Local = c.modular.reports[b.ID]; b.Local != nil {
			stats = b.Local.LastStats
		}
		if b.Report = c.modular.simple[b.ID]; b.Report != nil {
			stats = b.Report.BundleStats
		}
		for _, x := range stats {
			if j := s.BundleIndex(x.Bundle); j >= 0 {
				b.Bundles = append(b.Bundles, j)
				s.Bundles[j].Stats, s.Bundles[j].Known = x.Stats, true
			}
		}
	}
	return s
}

// latest is the last picture that the histories were updated from, at the present time.
func (c *Cluster) latest() *cluster.Snapshot {
	if c.modular.picture == nil {
		c.updateAll()
	}
	s := *c.modular.picture
	s.Now, s.Settings = c.now, c.settings
	return &s
}

// forget is what the end of a Modular or Simple broker's session does: its report and its ownership nodes are gone.
func (c *Cluster) forget(id string) {
	delete(c.modular.reports, id)
	delete(c.modular.simple, id)
	for _, bundle := range c.recordNames() {
		if d := c.records[bundle]; d.DstBroker == id || d.State == event.Releasing && d.SourceBroker == id {
			c.setRecord(bundle, nil)
			c.cause(bundle, Overridden)
			c.settle(bundle, nil)
			c.lookUp(bundle)
		}
	}
	c.updateAll()
}

// LoadReport is what a broker of a Modular cluster answers when asked for its load report: as of now, not as last written.
func (c *Cluster) LoadReport(id string) (event.LocalBrokerData, error) {
	b, err := c.answering(id)
	if err != nil {
		return event.LocalBrokerData{}, err
	}
	load.UpdateLocal(&b.reporter.local, b.systemUsage(), b.stats)
	return b.reporter.local, nil
}
