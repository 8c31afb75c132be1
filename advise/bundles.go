package advise

import (
	"math"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

var (
	// FewBundles: the namespace has too few bundles for the brokers that may serve it and for what it carries.
	FewBundles = plan.Code{ID: "FEW_BUNDLES", Template: "{bundles} bundles cannot fill {brokers} brokers evenly (at best one has {worst} times the mean) and carry {share} of what the brokers carry; split to >= {needed}"}
	// HashClumps: the topics of the namespace lie in few of its bundles.
	HashClumps = plan.Code{ID: "TOPICS_IN_FEW_BUNDLES", Template: "{topics} topics lie in {filled} of {bundles} bundles, so at most {filled} of {brokers} brokers serve them; split the bundles that hold them"}
)

const (
	perBroker = 4    // bundles per broker that an evenly spread namespace should have
	evenWorst = 1.25 // most loaded to mean broker that passes for even
)

// namespace is what the snapshot holds of one namespace.
type namespace struct {
	name    string
	bundles int
	unknown int // bundles whose traffic is not known
	filled  int // bundles with topics
	topics  int64
	traffic float64 // bytes/s
}

// Bundles are the namespaces whose number or filling of bundles keeps load from being even: there are fewer bundles than brokers,
// or if all were alike the broker with the most would still have more than 1.25 times the mean, or topics lie in too few of them.
// A namespace counts by its share of the traffic (of the topics while there is no traffic), so small ones need few bundles.
func Bundles(snap *cluster.Snapshot) []plan.LeftOut {
	all := namespaces(snap)
	weigh, total := trafficOf, sum(all, trafficOf)
	if total == 0 {
		weigh, total = topicsOf, sum(all, topicsOf)
	}
	if !measured(total) || total == 0 {
		return nil
	}
	policies := view(snap)
	var out []plan.LeftOut
	for _, ns := range all {
		if policy.KindOf(ns.name) != policy.Ordinary {
			continue
		}
		v := policies.Allowed(ns.name, true)
		brokers := len(v.Candidates())
		if brokers < 2 {
			continue // or nothing can be said
		}
		// What one broker carries on average is 1 of all brokers; the namespace should come in quarters of that.
		share := min(1, weigh(ns)/total*float64(len(snap.Brokers))/float64(brokers))
		needed := int(math.Ceil(perBroker * float64(brokers) * share))
		out = append(out, ns.advice(snap, brokers, share, needed)...)
	}
	return out
}

func (ns *namespace) advice(snap *cluster.Snapshot, brokers int, share float64, needed int) []plan.LeftOut {
	n, b := float64(ns.bundles), float64(brokers)
	worst := math.Ceil(n/b) * b / n
	needed = min(needed, int(snap.Settings.LoadBalancerNamespaceMaximumBundles))
	var out []plan.LeftOut
	if ns.bundles < needed && (ns.bundles < brokers || worst > evenWorst) {
		out = append(out, plan.LeftOut{Bundle: ns.name, Why: FewBundles.Because(plan.N("bundles", ns.bundles), plan.N("brokers", brokers),
			plan.N("worst", worst), plan.N("share", share), plan.N("needed", needed))})
	}
	if ns.unknown == 0 && ns.filled > 0 && ns.filled < min(brokers, ns.bundles, needed) && ns.topics > int64(ns.filled) {
		out = append(out, plan.LeftOut{Bundle: ns.name, Why: HashClumps.Because(plan.N("topics", ns.topics), plan.N("filled", ns.filled),
			plan.N("bundles", ns.bundles), plan.N("brokers", brokers))})
	}
	return out
}

// namespaces are the namespaces of the snapshot, in the order in which their first bundles stand in it.
func namespaces(snap *cluster.Snapshot) []*namespace {
	var all []*namespace
	byName := make(map[string]*namespace)
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		ns := byName[b.Namespace]
		if ns == nil {
			ns = &namespace{name: b.Namespace}
			byName[b.Namespace] = ns
			all = append(all, ns)
		}
		ns.bundles++
		traffic := load.Throughput(&b.Stats)
		if !b.Known || !measured(traffic) || b.Stats.Topics < 0 {
			ns.unknown++
			continue
		}
		if b.Stats.Topics > 0 {
			ns.filled++
		}
		ns.topics += b.Stats.Topics
		ns.traffic += traffic
	}
	return all
}

func trafficOf(ns *namespace) float64 { return ns.traffic }
func topicsOf(ns *namespace) float64  { return float64(ns.topics) }

func sum(all []*namespace, of func(*namespace) float64) float64 {
	total := 0.0
	for _, ns := range all {
		total += of(ns)
	}
	return total
}
