package whatif

import (
	"fmt"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// clone is a copy of a snapshot that may be changed.
func clone(snap *cluster.Snapshot) *cluster.Snapshot {
	next := *snap
	next.Brokers, next.Bundles, next.Load = slices.Clone(snap.Brokers), slices.Clone(snap.Bundles), slices.Clone(snap.Load)
	for i := range next.Load {
		next.Load[i].TopBundles = slices.Clone(next.Load[i].TopBundles)
	}
	return reindex(&next)
}

// reindex makes brokers point to their own load data and bundles again.
func reindex(snap *cluster.Snapshot) *cluster.Snapshot {
	snap.Index()
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		b.Load, b.Bundles = nil, nil
		if at := snap.LoadIndex(b.ID); at >= 0 {
			b.Load = &snap.Load[at].Data
		}
	}
	for i := range snap.Bundles {
		if at := snap.BrokerIndex(snap.Bundles[i].Owner); at >= 0 {
			snap.Brokers[at].Bundles = append(snap.Brokers[at].Bundles, i)
		}
	}
	return snap
}

// scale multiplies traffic, and the usage that it causes.
func (w world) scale(snap *cluster.Snapshot, by float64) *cluster.Snapshot {
	if by == 0 || by == 1 {
		return snap
	}
	for i := range snap.Bundles {
		scaleStats(&snap.Bundles[i].Stats, by)
	}
	for i := range snap.Load {
		scaleLoad(&snap.Load[i].Data, by)
		for j := range snap.Load[i].TopBundles {
			scaleStats(&snap.Load[i].TopBundles[j].Stats, by)
		}
	}
	return snap
}

func scaleStats(s *event.NamespaceBundleStats, by float64) {
	s.MsgRateIn *= by
	s.MsgRateOut *= by
	s.MsgThroughputIn *= by
	s.MsgThroughputOut *= by
}

// scaleLoad multiplies what a broker reports. Memory is left as it is: it does not follow the traffic.
func scaleLoad(d *event.BrokerLoadData, by float64) {
	for _, x := range []*float64{&d.CPU.Usage, &d.BandwidthIn.Usage, &d.BandwidthOut.Usage, &d.MsgRateIn, &d.MsgRateOut, &d.MsgThroughputIn,
		&d.MsgThroughputOut, &d.MsgThroughputEMA, &d.MaxResourceUsage, &d.WeightedMaxEMA} {
		*x *= by
	}
}

// add adds empty brokers that are like the first one that is there.
func (w world) add(snap *cluster.Snapshot, n int) *cluster.Snapshot {
	for i := range n {
		id := fmt.Sprintf("new-%d:8080", i+1)
		b := cluster.Broker{ID: id, Version: snap.Version, PersistentTopics: true, NonPersistentTopics: true}
		if len(snap.Brokers) > 0 {
			b = snap.Brokers[0]
			b.ID, b.Bundles, b.StartedAt = id, nil, snap.Now
		}
		snap.Brokers = append(snap.Brokers, b)
		d := event.BrokerLoadData{UpdatedAt: snap.Now, ReportedAt: snap.Now}
		if b.Load != nil {
			d.CPU, d.Memory, d.DirectMemory, d.BandwidthIn, d.BandwidthOut = b.Load.CPU, b.Load.Memory, b.Load.DirectMemory, b.Load.BandwidthIn, b.Load.BandwidthOut
			scaleLoad(&d, 0)
		}
		snap.Load = append(snap.Load, cluster.BrokerLoad{Broker: id, Data: d, Heard: snap.Now, Estimated: true, HasTop: true})
	}
	if n > 0 {
		reindex(snap)
		for i := range snap.Brokers[len(snap.Brokers)-n:] {
			snap.Brokers[len(snap.Brokers)-n+i].LoadHeard = snap.Now
		}
	}
	return snap
}

// lose takes brokers away and gives their bundles to others by the cluster's placement.
func (w world) lose(snap *cluster.Snapshot, lost []string) (next *cluster.Snapshot, moved int, nowhere []plan.LeftOut) {
	if len(lost) == 0 {
		return snap, 0, nil
	}
	perByte := make(map[string]float64, len(lost)) // usage that a byte/s caused on its broker
	for _, id := range lost {
		total := 0.0
		for _, i := range ownedBy(snap, id) {
			total += Throughput(&snap.Bundles[i])
		}
		if total > 0 {
			perByte[id] = Usage(&snap.Brokers[snap.BrokerIndex(id)]) / total
		}
	}
	snap.Brokers = slices.DeleteFunc(snap.Brokers, func(b cluster.Broker) bool { return slices.Contains(lost, b.ID) })
	snap.Load = slices.DeleteFunc(snap.Load, func(l cluster.BrokerLoad) bool { return slices.Contains(lost, l.Broker) })
	if slices.Contains(lost, snap.Leader) && len(snap.Brokers) > 0 {
		snap.Leader = snap.Brokers[0].ID
	}
	var orphans []int
	from := map[int]string{}
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if !slices.Contains(lost, b.Owner) {
			continue
		}
		if policy.KindOf(b.Namespace) == policy.Ordinary {
			orphans, from[i] = append(orphans, i), b.Owner
		}
		b.Owner, b.State = "", event.Free
	}
	reindex(snap)
	state := w.m.NewState()
	to := make([]string, len(orphans))
	for n, i := range orphans {
		var d plan.Decision
		d, state = w.m.Place(snap, snap.Bundles[i].Name, state, w.rnd, nil)
		if to[n] = d.Destination; d.Destination == "" {
			nowhere = append(nowhere, plan.LeftOut{Bundle: snap.Bundles[i].Name, Broker: from[i],
				Why: Nowhere.Because(plan.S("broker", from[i]), plan.S("why", d.Why.String()))})
		}
	}
	for n, i := range orphans {
		if to[n] == "" {
			continue
		}
		moved++
		w.give(snap, &snap.Bundles[i], to[n], perByte[from[i]])
	}
	return reindex(snap), moved, nowhere
}

// give makes a broker the owner of a bundle, with the traffic and the usage that come with it.
func (w world) give(snap *cluster.Snapshot, b *cluster.Bundle, to string, perByte float64) {
	b.Owner, b.State = to, event.Owned
	at := snap.LoadIndex(to)
	if at < 0 {
		return
	}
	d, s := &snap.Load[at].Data, &b.Stats
	d.MsgRateIn += s.MsgRateIn
	d.MsgRateOut += s.MsgRateOut
	d.MsgThroughputIn += s.MsgThroughputIn
	d.MsgThroughputOut += s.MsgThroughputOut
	d.MsgThroughputEMA += Throughput(b)
	d.Topics += s.Topics
	d.BundleCount++
	usage := Throughput(b) * perByte
	d.MaxResourceUsage += usage
	d.WeightedMaxEMA += usage
	if b.Known {
		snap.Load[at].TopBundles = append(snap.Load[at].TopBundles, event.BundleLoad{BundleName: b.Name, Stats: b.Stats})
		slices.SortStableFunc(snap.Load[at].TopBundles, func(x, y event.BundleLoad) int {
			switch tx, ty := x.Stats.MsgThroughputIn+x.Stats.MsgThroughputOut, y.Stats.MsgThroughputIn+y.Stats.MsgThroughputOut; {
			case tx < ty:
				return -1
			case tx > ty:
				return 1
			}
			return 0
		})
	}
}
