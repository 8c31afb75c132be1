package modular

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// Changes is what an Update found besides new numbers.
type Changes struct {
	DeadBrokers []string // registered at the last Update and not now
	NewBundles  []string // reported for the first time, in order
	GoneBundles []string // reported by no broker any more: their histories are dropped
}

// Update takes the load reports of a new picture of the cluster into the histories. It returns the snapshot with the
// histories of bundles and the time averages of brokers filled in, and the next state; neither argument is changed. The Data
// of the given snapshot's bundles is what is stored of them: a bundle starts with it when the state does not know it yet.
// Pulsar: updateAll and updateBundleData.
func (m *Manager) Update(snap *cluster.Snapshot, state plan.State) (*cluster.Snapshot, plan.State, Changes) {
	u := update{m: m, st: stateOf(state).next()}
	next := *snap
	next.Brokers, next.Bundles = slices.Clone(snap.Brokers), slices.Clone(snap.Bundles)
	u.snap = &next // names and places are the same, so the look-up tables are, too
	u.brokers()
	u.fold()
	u.preallocations()
	return u.snap, u.st, u.changes
}

type update struct {
	m       *Manager
	snap    *cluster.Snapshot
	st      *State
	data    []event.BundleData // by place in Snapshot.Bundles
	seen    []bool
	changes Changes
}

// brokers notes who is registered and forgets what is known of brokers that are not.
func (u *update) brokers() {
	active := make([]string, len(u.snap.Brokers))
	for i := range u.snap.Brokers {
		active[i] = u.snap.Brokers[i].ID
	}
	for _, id := range u.st.Registered {
		if u.snap.BrokerIndex(id) < 0 {
			u.changes.DeadBrokers = append(u.changes.DeadBrokers, id)
		}
	}
	u.st.Registered = active
	u.st.forgetBrokers(func(id string) bool { return u.snap.BrokerIndex(id) >= 0 })
	u.st.Sampled.Retain(func(id string, _ *int64) bool { return u.snap.BrokerIndex(id) >= 0 })
	for b, id := range u.st.Assigned {
		if slices.Contains(u.changes.DeadBrokers, id) {
			delete(u.st.Assigned, b)
		}
	}
	u.st.Preallocated.Retain(func(id string, _ *Preallocations) bool {
		i := u.snap.BrokerIndex(id)
		return i >= 0 && u.snap.Brokers[i].Local != nil
	})
}

// fold adds a sample of every reported bundle and sums up the brokers.
func (u *update) fold() {
	u.data, u.seen = make([]event.BundleData, len(u.snap.Bundles)), make([]bool, len(u.snap.Bundles))
	var extra Table[event.BundleData] // reported, but not among the snapshot's bundles
	defaults := load.DefaultStats()
	for i := range u.snap.Brokers {
		b := &u.snap.Brokers[i]
		if b.Local == nil {
			continue
		}
		count := u.newReport(i, b)
		var sum event.TimeAverageBrokerData
		for k := range b.Local.LastStats {
			s := &b.Local.LastStats[k]
			d := u.historyOf(u.snap.BundleIndex(s.Bundle), s.Bundle, &extra)
			if count {
				load.UpdateBundleData(d, &s.Stats)
			}
			load.AddBundleData(&sum, d, &defaults)
		}
		b.TimeAverage = &sum
	}
	u.keep(&extra)
}

// newReport says whether a broker's statistics count as a sample, and notes that they were counted.
func (u *update) newReport(hint int, b *cluster.Broker) bool {
	at, found := u.st.Sampled.Add(hint, b.ID)
	if u.m.Options.OneSamplePerReport && found && *at == b.Local.LastUpdate {
		return false
	}
	*at = b.Local.LastUpdate
	return true
}

// historyOf is the averages of a reported bundle, as remembered, stored or of one that was never seen.
func (u *update) historyOf(place int, bundle string, extra *Table[event.BundleData]) *event.BundleData {
	d, seen := (*event.BundleData)(nil), false
	if place >= 0 {
		d, seen = &u.data[place], u.seen[place]
		u.seen[place] = true
	} else {
		d, seen = extra.Add(-1, bundle)
	}
	if seen {
		return d
	}
	known := u.st.History.Get(place, bundle)
	switch {
	case known != nil:
		*d = *known
		return d
	case place >= 0 && u.snap.Bundles[place].Data != nil:
		*d = *u.snap.Bundles[place].Data
	default:
		*d = unseen
	}
	u.changes.NewBundles = append(u.changes.NewBundles, bundle)
	return d
}

// keep makes the reported bundles' averages the history and hands them to the snapshot.
func (u *update) keep(extra *Table[event.BundleData]) {
	var history Table[event.BundleData]
	history.entries = make([]Entry[event.BundleData], 0, len(u.data)+extra.Len())
	for i, seen := range u.seen {
		if seen {
			history.entries = append(history.entries, Entry[event.BundleData]{Key: u.snap.Bundles[i].Name, Value: u.data[i]})
			u.snap.Bundles[i].Data = &history.entries[len(history.entries)-1].Value
		}
	}
	history.entries = append(history.entries, extra.entries...)
	for k, e := range u.st.History.entries {
		if history.Get(k, e.Key) == nil {
			u.changes.GoneBundles = append(u.changes.GoneBundles, e.Key)
			u.st.Avg.bundleGone(e.Key)
		}
	}
	u.st.History = history
}

// preallocations forgets the assignments that are over: in Pulsar all but those that the leader itself owns and does not
// report yet, with Options.KeepPreallocations those that their broker reports, that another broker owns or that are old.
func (u *update) preallocations() {
	for k := range u.st.Preallocated.entries {
		e := &u.st.Preallocated.entries[k]
		i := u.snap.BrokerIndex(e.Key)
		kept := make([]Preallocation, 0, len(e.Value.Bundles))
		for _, p := range e.Value.Bundles {
			stays := u.stays(i, &p)
			if !stays || !u.m.Options.KeepPreallocations {
				delete(u.st.Assigned, p.Bundle)
			}
			if !stays {
				continue
			}
			if d := u.st.History.Get(-1, p.Bundle); d != nil {
				p.Data = *d
			}
			kept = append(kept, p)
		}
		e.Value = Preallocations{Bundles: kept}
	}
	u.st.Preallocated.Retain(func(_ string, p *Preallocations) bool { return len(p.Bundles) > 0 })
}

// stays says whether an assignment to a broker is still to be counted.
func (u *update) stays(broker int, p *Preallocation) bool {
	b, owner := u.snap.BundleIndex(p.Bundle), ""
	if b >= 0 {
		owner = u.snap.Bundles[b].Owner
	}
	reported := b >= 0 && serves(u.snap, broker, b)
	if !u.m.Options.KeepPreallocations {
		known := u.st.History.Get(b, p.Bundle) != nil
		return owner != "" && owner == u.snap.Leader && !(reported && known)
	}
	old := u.snap.Now-p.At > minutes(u.snap.Settings.LoadBalancerReportUpdateMaxIntervalMinutes)
	return !reported && !old && (owner == "" || owner == u.snap.Brokers[broker].ID)
}
