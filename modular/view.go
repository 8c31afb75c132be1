package modular

import (
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/policy"
)

// view is what the filters look up in a snapshot: per namespace, the bundles that each broker serves or was just given
// (Pulsar: brokerToNamespaceToBundleRange), and the policies over the registered brokers. It belongs to one snapshot and is
// never written to JSON: it can be made again.
type view struct {
	snap       *cluster.Snapshot
	namespaces map[string][]served
	policies   [2]*policy.View // with the index 1 those that check topic kinds; nil: to be made
}

// served is how many bundles of a namespace a broker has.
type served struct {
	broker int // index into Snapshot.Brokers
	n      int
}

// policiesOf is the policies over the registered brokers. A broker without a load report serves no kind of topics.
func (v *view) policiesOf(checkKinds bool) *policy.View {
	k, opts := 0, []policy.ViewOption(nil)
	if checkKinds {
		k, opts = 1, []policy.ViewOption{policy.CheckTopicKinds}
	}
	if v.policies[k] == nil {
		brokers := make([]policy.Broker, len(v.snap.Brokers))
		for i := range v.snap.Brokers {
			b := &v.snap.Brokers[i]
			brokers[i].ID = b.ID
			if b.Local != nil {
				brokers[i].PersistentTopics = b.Local.PersistentTopicsEnabled
				brokers[i].NonPersistentTopics = b.Local.NonPersistentTopicsEnabled
			}
		}
		v.policies[k] = v.snap.Policies.Over(brokers, opts...)
	}
	return v.policies[k]
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
		v.count(namespaceOf(snap, bundle), broker)
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

// namespaceOf is the tenant/namespace of a bundle, the whole name if it has none.
func namespaceOf(snap *cluster.Snapshot, bundle string) string {
	if i := snap.BundleIndex(bundle); i >= 0 {
		return snap.Bundles[i].Namespace
	}
	if i := strings.LastIndexByte(bundle, '/'); i >= 0 {
		return bundle[:i]
	}
	return bundle
}
