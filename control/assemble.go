package control

import (
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// Heard is the latest value of a key and when it was heard, by our clock.
type Heard[T any] struct {
	Key       string
	Value     T
	At        int64 // Unix ms
	Estimated bool  // filled in from metrics, not published by the broker
}

// Ownership is who owns a bundle.
type Ownership struct {
	Bundle string
	Owner  string // "" = nobody
	To     string // the broker that it is on its way to; "" = none
	State  event.ServiceUnitState
}

// Inputs is what a snapshot is assembled from. Slices may be in any order.
type Inputs struct {
	Now      int64 // Unix ms
	Cluster  string
	Version  string
	Leader   string
	Brokers  []cluster.Broker // the registry
	Load     []Heard[event.BrokerLoadData]
	Top      []Heard[event.TopBundlesLoadData]
	Owners   []Ownership
	Policies *policy.Set
	Settings *settings.Settings
}

// Assemble makes the snapshot. It orders everything by name, so that the same inputs give the same snapshot, and counts the
// age of load data from when it was heard: brokers' clocks may be off, so UpdatedAt becomes the time of hearing.
func Assemble(in Inputs) *cluster.Snapshot {
	snap := &cluster.Snapshot{Now: in.Now, Cluster: in.Cluster, Version: in.Version, Leader: in.Leader,
		Brokers: slices.Clone(in.Brokers), Policies: in.Policies, Settings: in.Settings}
	slices.SortFunc(snap.Brokers, func(a, b cluster.Broker) int { return strings.Compare(a.ID, b.ID) })
	snap.Load = loadEntries(in)
	snap.Bundles = bundles(in)
	snap.Index()
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		b.Bundles = nil
		if at := snap.LoadIndex(b.ID); at >= 0 {
			l := &snap.Load[at]
			b.Load, b.LoadHeard, b.Estimated = &l.Data, l.Heard, l.Estimated
		}
	}
	for i := range snap.Bundles {
		if at := snap.BrokerIndex(snap.Bundles[i].Owner); at >= 0 {
			snap.Brokers[at].Bundles = append(snap.Brokers[at].Bundles, i)
		}
	}
	return snap
}

func loadEntries(in Inputs) []cluster.BrokerLoad {
	top := make(map[string]Heard[event.TopBundlesLoadData], len(in.Top))
	for _, t := range in.Top {
		top[t.Key] = t
	}
	out := make([]cluster.BrokerLoad, 0, len(in.Load))
	for _, l := range in.Load {
		entry := cluster.BrokerLoad{Broker: l.Key, Data: l.Value, Heard: l.At, Estimated: l.Estimated}
		entry.Data.UpdatedAt = l.At
		if t, ok := top[l.Key]; ok {
			entry.TopBundles, entry.HasTop = t.Value.TopBundlesLoadData, true
		}
		out = append(out, entry)
	}
	slices.SortFunc(out, func(a, b cluster.BrokerLoad) int { return strings.Compare(a.Broker, b.Broker) })
	return out
}

// bundles is every bundle of the ownership log and of the top-bundles lists. Where two brokers list one bundle, because it
// has just moved, its owner's figures count, and without an owner those heard last.
func bundles(in Inputs) []cluster.Bundle {
	known := make(map[string]*cluster.Bundle, len(in.Owners))
	for _, o := range in.Owners {
		known[o.Bundle] = &cluster.Bundle{Name: o.Bundle, Namespace: event.NamespaceOf(o.Bundle), Owner: o.Owner, Heading: o.To, State: o.State}
	}
	from := map[string]Heard[event.TopBundlesLoadData]{}
	for _, t := range in.Top {
		for _, l := range t.Value.TopBundlesLoadData {
			b := known[l.BundleName]
			if b == nil {
				b = &cluster.Bundle{Name: l.BundleName, Namespace: event.NamespaceOf(l.BundleName), State: event.Init}
				known[l.BundleName] = b
			}
			before, again := from[l.BundleName]
			if again && (before.Key == b.Owner || t.Key != b.Owner && before.At > t.At) {
				continue
			}
			from[l.BundleName] = t
			b.Stats, b.Known = l.Stats, true
		}
	}
	out := make([]cluster.Bundle, 0, len(known))
	for _, b := range known {
		out = append(out, *b)
	}
	slices.SortFunc(out, func(a, b cluster.Bundle) int { return strings.Compare(a.Name, b.Name) })
	return out
}
