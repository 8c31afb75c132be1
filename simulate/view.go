package simulate

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/topics"
)

// views are the table views of the two load topics that the leader decides from.
type views struct {
	load map[string]loadEntry
	top  map[string]topEntry
}

type loadEntry struct {
	data  event.BrokerLoadData
	heard int64
}

type topEntry struct{ bundles []event.BundleLoad }

func (v *views) reset() {
	v.load, v.top = map[string]loadEntry{}, map[string]topEntry{}
}

// take folds one message. What cannot be read is left out, as a broker leaves it out.
func (v *views) take(now int64, topic, key string, payload []byte) {
	switch topic {
	case topics.BrokerLoadData:
		delete(v.load, key)
		d := event.NewBrokerLoadData()
		if len(payload) > 0 && json.Unmarshal(payload, &d) == nil {
			v.load[key] = loadEntry{d, now}
		}
	case topics.TopBundles:
		delete(v.top, key)
		d := event.NewTopBundlesLoadData()
		if len(payload) > 0 && json.Unmarshal(payload, &d) == nil {
			v.top[key] = topEntry{d.TopBundlesLoadData}
		}
	}
}

// Snapshot is the cluster as its own leader sees it: load data as published, ownership as on the log.
func (c *Cluster) Snapshot() *cluster.Snapshot { return c.snapshotWithout("") }

func (c *Cluster) emptySnapshot() *cluster.Snapshot {
	s := &cluster.Snapshot{Now: c.now, Cluster: c.cfg.Name, Version: c.cfg.Version, Policies: c.cfg.Policies, Settings: c.settings}
	if c.leader != nil {
		s.Leader = c.leader.ID
	}
	return s
}

// snapshotWithout leaves a broker out of the registry.
func (c *Cluster) snapshotWithout(exclude string) *cluster.Snapshot {
	if c.stored() {
		return c.latest()
	}
	s := c.emptySnapshot()
	place := map[string]int{}
	for _, name := range c.recorded {
		place[name] = len(s.Bundles)
		s.Bundles = append(s.Bundles, bundleOfRecord(name, c.records[name]))
	}
	for _, b := range c.registered() {
		for _, x := range b.stats {
			if i, ok := place[x.Bundle]; ok && s.Bundles[i].Owner == b.ID {
				s.Bundles[i].Stats, s.Bundles[i].Known = x.Stats, true
			}
		}
		if b.ID != exclude {
			s.Brokers = append(s.Brokers, c.registration(b))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(c.views.load)) {
		e := c.views.load[id]
		l := cluster.BrokerLoad{Broker: id, Data: e.data, Heard: e.heard}
		if top, ok := c.views.top[id]; ok {
			l.TopBundles, l.HasTop = top.bundles, true
		}
		s.Load = append(s.Load, l)
	}
	s.Index()
	for i := range s.Brokers {
		b := &s.Brokers[i]
		if j := s.LoadIndex(b.ID); j >= 0 {
			b.Load, b.LoadHeard = &s.Load[j].Data, s.Load[j].Heard
		}
	}
	for i := range s.Bundles {
		if j := s.BrokerIndex(s.Bundles[i].Owner); j >= 0 {
			s.Brokers[j].Bundles = append(s.Brokers[j].Bundles, i)
		}
	}
	return s
}

// registration is what the registry says about a broker.
func (c *Cluster) registration(b *broker) cluster.Broker {
	return cluster.Broker{ID: b.ID, Version: b.Version, LoadManager: c.cfg.Kind.class(), StartedAt: b.startedAt,
		PersistentTopics: c.settings.EnablePersistentTopics, NonPersistentTopics: c.settings.EnableNonPersistentTopics}
}

// bundleOfRecord is a bundle as its record tells: the owner is who serves it or is asked to.
func bundleOfRecord(name string, d *event.ServiceUnitStateData) cluster.Bundle {
	b := cluster.Bundle{Name: name, Namespace: event.NamespaceOf(name), State: d.State}
	switch d.State {
	case event.Owned, event.Assigning, event.Releasing:
		b.Owner = d.DstBroker
	case event.Splitting:
		b.Owner = d.SourceBroker
	}
	return b
}
