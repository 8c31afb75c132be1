package modular

import (
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
)

// view counts, per namespace, the bundles that each broker serves or was just given, as the filters need them.
// Pulsar: brokerToNamespaceToBundleRange. It belongs to one snapshot and is never written to JSON: it can be made again.
type view struct {
	snap       *cluster.Snapshot
	namespaces map[string][]served
}

// served is how many bundles of a namespace a broker has.
type served struct {
	broker int // index into Snapshot.Brokers
	n      int
}

// viewOf is the view of a snapshot, made at the first call.
func (st *State) viewOf(snap *cluster.Snapshot) *view {
	if st.view != nil && st.view.snap == snap {
		return st.view
	}
	v := &view{snap: snap, namespaces: make(map[string][]served)}
	for i := range snap.Brokers {
		for _, j := range snap.Brokers[i].Bundles {
			v.count(snap.Bundles[j].Namespace, i)
		}
	}
	for _, e := range st.Preallocated.entries {
		i := snap.BrokerIndex(e.Key)
		if i < 0 {
			continue
		}
		for _, p := range e.Value.Bundles {
			v.add(snap, p.Bundle, i)
		}
	}
	st.view = v
	return v
}

// add counts a bundle that a broker was given, unless the broker already reports it.
func (v *view) add(snap *cluster.Snapshot, bundle string, broker int) {
	if b := snap.BundleIndex(bundle); b < 0 || !serves(snap, broker, b) {
		v.count(namespaceOf(bundle), broker)
	}
}

// count keeps the brokers of a namespace in the order of the snapshot.
func (v *view) count(namespace string, broker int) {
	list := v.namespaces[namespace]
	at, found := slices.BinarySearchFunc(list, broker, func(s served, b int) int { return s.broker - b })
	if found {
		list[at].n++
		return
	}
	v.namespaces[namespace] = slices.Insert(list, at, served{broker: broker, n: 1})
}

// serves says whether a broker reports a bundle.
func serves(snap *cluster.Snapshot, broker, bundle int) bool {
	return slices.Contains(snap.Brokers[broker].Bundles, bundle)
}

// namespaceOf is the tenant/namespace part of a bundle name, the whole name if it has none.
func namespaceOf(bundle string) string {
	if i := strings.LastIndexByte(bundle, '/'); i >= 0 {
		return bundle[:i]
	}
	return bundle
}
