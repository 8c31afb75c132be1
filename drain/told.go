package drain

import (
	"cmp"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// What a broker's own word makes of a drain that found nothing left on it.
var (
	NotTold    = plan.Code{ID: "DRAIN_NOT_TOLD", Template: "{broker} does not say what it owns: {error}"}
	StillOwned = plan.Code{ID: "DRAIN_STILL_OWNED", Template: "{broker} says that it owns it, on record is {owner}"}
)

// Told is the snapshot with what a broker says itself that it owns, where that is newer than what is known otherwise: what it does
// not name is nobody's.
func Told(snap *cluster.Snapshot, broker string, owned []string) *cluster.Snapshot {
	owners, named := map[string]string{}, make(map[string]bool, len(owned))
	for _, name := range owned {
		named[name] = true
	}
	for i := range snap.Bundles {
		if b := &snap.Bundles[i]; b.Owner == broker && !named[b.Name] {
			owners[b.Name] = ""
		}
	}
	for _, name := range owned {
		if i := snap.BundleIndex(name); i < 0 || snap.Bundles[i].Owner != broker {
			owners[name] = broker
		}
	}
	if len(owners) == 0 {
		return snap
	}
	return snap.WithOwners(owners)
}

// Doubts are the bundles that a broker says it owns, could leave, and are not its own by the snapshot: until both agree it is not
// empty.
func Doubts(snap *cluster.Snapshot, broker string, owned []string) (out []plan.LeftOut) {
	for _, name := range owned {
		owner := ""
		if i := snap.BundleIndex(name); i >= 0 {
			owner = snap.Bundles[i].Owner
		}
		if owner != broker && policy.Unmanaged(event.NamespaceOf(name), nil).IsZero() {
			out = append(out, plan.LeftOut{Bundle: name, Broker: broker, Why: StillOwned.Because(plan.S("broker", broker), plan.S("owner", cmp.Or(owner, "nobody")))})
		}
	}
	return out
}
