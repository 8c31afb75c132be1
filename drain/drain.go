// Package drain plans how a broker is emptied before it is taken out of service, evenly, and says what stays there and why;
// and whether the next broker may be restarted. It is pure.
package drain

import (
	"cmp"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/shares"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Why a bundle leaves a broker that is drained, or stays.
var (
	Leaves  = plan.Code{ID: "DRAIN", Template: "{broker} is drained; of the brokers that may take the bundle, and have most room for it, {destination} has least: {throughput} bytes/s in {bundles} bundles"}
	OnWay   = plan.Code{ID: "DRAIN_IN_FLIGHT", Template: "the bundle is {state}: it is looked at again when it has arrived"}
	Nowhere = plan.Code{ID: "DRAIN_NOWHERE", Template: "no broker may take it: {brokers} others are registered, {refused} of them are not allowed by policies, {drained} are drained"}
	Unknown = plan.Code{ID: "DRAIN_NOT_REGISTERED", Template: "{broker} is not registered"}
)

// Input is what a broker is drained by.
type Input struct {
	Snapshot *cluster.Snapshot // with the figures of bundles where they are known
	Policies *policy.View      // nil = the cluster has none
	Broker   string            // that is drained
	Others   []string          // brokers that are drained too: nothing is moved to them
	Failed   map[string]bool   // bundles whose last move failed: they come last
	Points   float64           // of all topics beyond an even part that a broker gets only if no other may take a bundle, a fraction; 0 = no limit
}

// Plan is what leaves the broker, heaviest first, and what stays and why.
type Plan struct {
	Decisions []plan.Decision `json:"decisions"`
	Waiting   []plan.LeftOut  `json:"waiting,omitempty"` // on their way, or policies cannot be read: they may leave later
	Stay      []plan.LeftOut  `json:"stay,omitempty"`    // for as long as policies and brokers are as they are
}

// Empty says whether nothing is left that could leave.
func (p Plan) Empty() bool { return len(p.Decisions)+len(p.Waiting) == 0 }

// slack is by how much of all topics a broker may have more than an even part of them, while another one is drained.
const slack = 0.02

// Of plans the drain of a broker. Each bundle goes to the broker that would have least traffic, of those that its policies
// allow; what was planned before counts. Bundles without figures are spread by number. A broker that would have more than an
// even part of all topics, or of the namespace's bundles, and the slack has no room: it takes a bundle only if no other one has. Above
// all, none gets more than an even part and Points while another may take the bundle: the guard holds strategies to the same. The
// brokers that stay were not even before, and the one with least traffic would otherwise get nearly everything, and with it
// everybody's reconnections.
func Of(in Input) Plan {
	snap := in.Snapshot
	p := Plan{Decisions: []plan.Decision{}}
	at := snap.BrokerIndex(in.Broker)
	if at < 0 {
		p.Stay = []plan.LeftOut{{Broker: in.Broker, Why: Unknown.Because(plan.S("broker", in.Broker))}}
		return p
	}
	d := newDrainage(in)
	var leaving []*cluster.Bundle
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if b.Owner != in.Broker {
			continue
		}
		switch why := policy.Unmanaged(b.Namespace, nil); {
		case !why.IsZero():
			p.Stay = append(p.Stay, plan.LeftOut{Bundle: b.Name, Broker: in.Broker, Why: plan.FromPolicy(why)})
		case b.State != "" && b.State != event.Owned:
			p.Waiting = append(p.Waiting, plan.LeftOut{Bundle: b.Name, Broker: in.Broker, Why: OnWay.Because(plan.S("state", string(b.State)))})
		default:
			leaving = append(leaving, b)
		}
	}
	slices.SortStableFunc(leaving, func(a, b *cluster.Bundle) int {
		return cmp.Or(compareBool(in.Failed[a.Name], in.Failed[b.Name]), cmp.Compare(throughput(b), throughput(a)), cmp.Compare(a.Name, b.Name))
	})
	for _, b := range leaving {
		switch decision, why, ok := d.place(b); {
		case ok:
			p.Decisions = append(p.Decisions, decision)
		case why.Code == policy.Frozen.ID: // until they can be read nobody knows whether it may leave
			p.Waiting = append(p.Waiting, plan.LeftOut{Bundle: b.Name, Broker: in.Broker, Why: why})
		default:
			p.Stay = append(p.Stay, plan.LeftOut{Bundle: b.Name, Broker: in.Broker, Why: why})
		}
	}
	return p
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func throughput(b *cluster.Bundle) float64 { return b.Stats.MsgThroughputIn + b.Stats.MsgThroughputOut }

// drainage is a drain as it is planned: what each broker has, with what was planned so far.
type drainage struct {
	in      Input
	traffic []float64
	count   []int
	topics  []float64            // without the system's own
	unknown []float64            // topics that a bundle of this broker has whose number is not known
	of      map[string][]float64 // bundles of each namespace by broker
	all     map[string]float64   // bundles of each namespace that have an owner
	part    float64              // of all that a broker should have at most, a fraction
	total   float64              // topics of all brokers, without the system's own
	shares  *shares.Count
	limit   shares.Limit
}

func newDrainage(in Input) *drainage {
	snap := in.Snapshot
	n := len(snap.Brokers)
	system := make([]float64, n) // topics of the system's own bundles: they stay, and users' clients have none of them
	others := make([]float64, n) // of these bundles, those whose number of topics is not known
	d := &drainage{in: in, traffic: make([]float64, n), count: make([]int, n), topics: make([]float64, n),
		unknown: make([]float64, n), of: map[string][]float64{}, all: map[string]float64{}, shares: shares.Of(snap)}
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if owner := snap.BrokerIndex(b.Owner); owner >= 0 {
			d.traffic[owner] += throughput(b)
			d.count[owner]++
			why := policy.Unmanaged(b.Namespace, nil)
			switch own := !why.IsZero(); {
			case own && b.Stats.Topics > 0:
				system[owner] += float64(b.Stats.Topics)
			case own:
				others[owner]++
			case b.Stats.Topics > 0:
				d.topics[owner] += float64(b.Stats.Topics)
			default:
				d.unknown[owner]++
			}
			if d.of[b.Namespace] == nil {
				d.of[b.Namespace] = make([]float64, n)
			}
			d.of[b.Namespace][owner]++
			d.all[b.Namespace]++
		}
	}
	open := 0
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		// Extensible brokers name their top bundles alone; what all have together is one number.
		each, without := 1.0, d.unknown[i]
		if b.Load != nil {
			d.traffic[i] = max(d.traffic[i], b.Load.MsgThroughputIn+b.Load.MsgThroughputOut)
			if all := without + others[i]; all > 0 {
				each = max(0, float64(b.Load.Topics)-d.topics[i]-system[i]) / all
			}
		}
		d.unknown[i] = each
		d.topics[i] += each * without
		d.total += d.topics[i]
		if b.ID != in.Broker && !slices.Contains(in.Others, b.ID) {
			open++
		}
	}
	d.part = 1/float64(max(open, 1)) + slack
	d.limit = shares.Limit{Serving: open, Points: in.Points}
	return d
}

// topicsOf is how many topics a bundle has, or about has.
func (d *drainage) topicsOf(b *cluster.Bundle) float64 {
	if owner := d.in.Snapshot.BrokerIndex(b.Owner); b.Stats.Topics <= 0 && owner >= 0 {
		return d.unknown[owner]
	}
	return float64(b.Stats.Topics)
}

// over is how much of what a bundle would give a broker is more than its part: of all topics, and of the namespace's bundles. The
// second holds where the numbers of topics are not known, or are mostly those of the system's own.
func (d *drainage) over(i int, b *cluster.Bundle) (n int) {
	if d.topics[i]+d.topicsOf(b) > d.total*d.part {
		n++
	}
	if d.of[b.Namespace][i]+1 > d.all[b.Namespace]*d.part {
		n++
	}
	return n
}

// place chooses where a bundle goes.
func (d *drainage) place(b *cluster.Bundle) (plan.Decision, plan.Reason, bool) {
	snap := d.in.Snapshot
	best, refused, drained := -1, 0, 0
	var frozen plan.Reason
	for i := range snap.Brokers {
		id := snap.Brokers[i].ID
		switch {
		case id == d.in.Broker:
			continue
		case slices.Contains(d.in.Others, id):
			drained++
			continue
		}
		if d.in.Policies != nil {
			if why := d.in.Policies.Move(policy.Placed{Bundle: b.Name, Broker: b.Owner, NonPersistent: b.NonPersistent}, id); !why.IsZero() {
				refused++
				if why.Code == policy.Frozen.ID {
					frozen = plan.FromPolicy(why)
				}
				continue
			}
		}
		if best < 0 || d.less(i, best, b) {
			best = i
		}
	}
	if best < 0 {
		if frozen.Code != "" {
			return plan.Decision{}, frozen, false
		}
		return plan.Decision{}, Nowhere.Because(plan.N("brokers", len(snap.Brokers)-1), plan.N("refused", refused), plan.N("drained", drained)), false
	}
	to := snap.Brokers[best].ID
	why := Leaves.Because(plan.S("broker", d.in.Broker), plan.S("destination", to), plan.N("throughput", d.traffic[best]), plan.N("bundles", d.count[best]))
	d.traffic[best] += throughput(b)
	d.topics[best] += d.topicsOf(b)
	d.of[b.Namespace][best]++
	d.count[best]++
	d.shares.Move(snap.BundleIndex(b.Name), best)
	return plan.Decision{Action: plan.Transfer, Bundle: b.Name, Source: b.Owner, Destination: to, Label: "Success", PulsarReason: plan.Admin,
		Throughput: throughput(b), MsgRate: b.Stats.MsgRateIn + b.Stats.MsgRateOut, Topics: b.Stats.Topics, Why: why}, plan.Reason{}, true
}

// less says whether broker i has less than broker j for a bundle: traffic counts for bundles with traffic, and the number of
// bundles for those without.
func (d *drainage) less(i, j int, b *cluster.Bundle) bool {
	at := d.in.Snapshot.BundleIndex(b.Name)
	_, bi := d.shares.Beyond(i, at, d.limit)
	if _, bj := d.shares.Beyond(j, at, d.limit); bi != bj {
		return bj
	}
	if oi, oj := d.over(i, b), d.over(j, b); oi != oj {
		return oi < oj
	}
	if throughput(b) > 0 && d.traffic[i] != d.traffic[j] {
		return d.traffic[i] < d.traffic[j]
	}
	return d.count[i] < d.count[j]
}
