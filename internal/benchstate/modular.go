package benchstate

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/settings"
)

// PreallocatedPerBroker is how many bundles, the first it serves, are pre-allocated on each broker where placement is measured.
const PreallocatedPerBroker = 10

// ModularClass is the class name that brokers of these snapshots report.
const ModularClass = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"

// Data is the history of a bundle: both averages are its traffic.
func (b *Bundle) Data() event.BundleData {
	d := load.NewBundleData(load.ShortSamples, load.LongSamples, b.Stats())
	d.Topics = int32(b.Topics)
	return d
}

// Modular is the state as a snapshot of a cluster that runs the Modular load manager: every broker reports its usage and the
// sums over its bundles, and its long-term averages are those sums.
func (s *State) Modular() *cluster.Snapshot {
	conf := settings.Defaults()
	conf.LoadBalancerAvgShedderHitCountHighThreshold = 0
	conf.LoadBalancerAvgShedderHitCountLowThreshold = 0
	snap := &cluster.Snapshot{Now: Now, Cluster: "bench", Version: "4.2.4", Settings: conf}
	snap.Bundles = make([]cluster.Bundle, len(s.Bundles))
	data := make([]event.BundleData, len(s.Bundles))
	for j := range s.Bundles {
		b := &s.Bundles[j]
		data[j] = b.Data()
		snap.Bundles[j] = cluster.Bundle{
			Name: b.Name, Namespace: b.Name[:len(b.Name)-len("/0x00000000_0x00000000")],
			Owner: s.Brokers[b.Owner].ID, State: event.Owned, Stats: b.Stats(), Known: true, Data: &data[j],
		}
	}
	snap.Brokers = make([]cluster.Broker, len(s.Brokers))
	for i := range s.Brokers {
		snap.Brokers[i] = s.modularBroker(&s.Brokers[i])
	}
	return snap.Index()
}

func (s *State) modularBroker(b *Broker) cluster.Broker {
	d := event.NewLocalBrokerData(Now)
	d.CPU, d.Memory, d.DirectMemory = b.System.CPU, b.System.Memory, b.System.DirectMemory
	d.BandwidthIn, d.BandwidthOut = b.System.BandwidthIn, b.System.BandwidthOut
	d.MsgThroughputIn, d.MsgThroughputOut, d.MsgRateIn, d.MsgRateOut = b.In, b.Out, b.In/1000, b.Out/1000
	d.BrokerVersionString, d.LoadManagerClassName = "4.2.4", ModularClass
	for _, j := range b.Owned {
		x := &s.Bundles[j]
		d.Bundles = append(d.Bundles, x.Name)
		d.LastStats = append(d.LastStats, event.NamedBundleStats{Bundle: x.Name, Stats: x.Stats()})
		d.NumTopics += int64(x.Topics)
	}
	d.NumBundles = int32(len(b.Owned))
	return cluster.Broker{
		ID: b.ID, Version: "4.2.4", LoadManager: ModularClass, PersistentTopics: true, NonPersistentTopics: true, StartedAt: 0,
		Local: &d, Bundles: b.Owned,
		TimeAverage: &event.TimeAverageBrokerData{LongTermMsgRateIn: b.In / 1000, LongTermMsgRateOut: b.Out / 1000},
	}
}
