// Package whatif projects a cluster: brokers that are lost, brokers that are added, traffic that grows. It says what each
// broker would have, how much room there is, what the loss of any one broker would do, and what would be planned. It is pure.
package whatif

import (
	"fmt"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// Scenario is what is assumed. The zero value is the cluster as it is.
type Scenario struct {
	Lose    []string // broker ids
	Add     int      // brokers like the present ones, empty
	Traffic float64  // factor; 0 = 1
}

// Broker is what a broker has, before and after.
type Broker struct {
	ID         string  `json:"broker"`
	New        bool    `json:"new,omitempty"`
	Lost       bool    `json:"lost,omitempty"`
	Bundles    int     `json:"bundles"`
	Throughput float64 `json:"throughput"` // bytes/s, in and out
	MsgRate    float64 `json:"msgRate"`
	Usage      float64 `json:"usage"` // fraction, as strategies compare it
}

// Headroom is how much room a cluster has.
type Headroom struct {
	Limit   float64 `json:"limit"`   // usage that no broker should exceed, a fraction
	Highest float64 `json:"highest"` // usage of the hottest broker
	Average float64 `json:"average"`
	AsItIs  float64 `json:"asItIs"` // by how much traffic may grow until the hottest broker reaches the limit; 0 = unknown
	IfEven  float64 `json:"ifEven"` // likewise if all brokers were even
}

// Loss is what the loss of one broker would do.
type Loss struct {
	Broker  string  `json:"broker"`
	Bundles int     `json:"bundles"` // that need another owner
	Highest float64 `json:"highest"` // usage of the hottest broker afterwards
	On      string  `json:"on"`      // which that is
	Average float64 `json:"average"`
	Stuck   int     `json:"stuck,omitempty"` // bundles that no broker may take
	OK      bool    `json:"ok"`              // nobody is above the limit, and nothing is stuck
}

// Projection is what would be.
type Projection struct {
	Before   []Broker          `json:"before"`
	After    []Broker          `json:"after"`
	Now      Headroom          `json:"now"`
	Then     Headroom          `json:"then"`
	Moved    int               `json:"moved"`             // bundles that get another owner because theirs is lost
	Nowhere  []plan.LeftOut    `json:"nowhere,omitempty"` // bundles that no broker may take
	Losses   []Loss            `json:"losses"`            // the loss of each broker that is left, one at a time
	Plan     plan.Plan         `json:"plan"`              // what would be planned then
	LeftOut  []plan.LeftOut    `json:"leftOut,omitempty"`
	Snapshot *cluster.Snapshot `json:"-"`
}

// Nowhere is why a bundle of a lost broker has no new owner.
var Nowhere = plan.Code{ID: "WHATIF_NOWHERE", Template: "{broker} is lost and no broker may take the bundle: {why}"}

// MaxAdd bounds how many brokers a scenario adds: each is a broker in all that is computed.
const MaxAdd = 1000

// Check says what is wrong with a scenario for a cluster.
func Check(snap *cluster.Snapshot, s Scenario) error {
	for i, id := range s.Lose {
		if snap.BrokerIndex(id) < 0 {
			return fmt.Errorf("%q is not a registered broker", id)
		}
		if slices.Contains(s.Lose[:i], id) {
			return fmt.Errorf("broker %q is lost twice", id)
		}
	}
	switch {
	case s.Add < 0 || s.Add > MaxAdd:
		return fmt.Errorf("%d brokers are added: it must be from 0 to %d", s.Add, MaxAdd)
	case len(snap.Brokers)+s.Add-len(s.Lose) < 1:
		return fmt.Errorf("no broker is left: %d are registered, %d are lost", len(snap.Brokers), len(s.Lose))
	case s.Traffic < 0 || s.Traffic != s.Traffic || s.Traffic > 1e6:
		return fmt.Errorf("traffic is multiplied by %v: it must be above 0 and at most 1000000", s.Traffic)
	}
	return nil
}

// Of projects a scenario, which must have passed Check. The snapshot holds the figures of all bundles. limit is the usage that
// no broker should exceed (a fraction); rnd is the randomness of placement. hits is how often in a row a strategy must see its
// condition before it acts.
//
// A broker's usage is taken to be caused by the traffic of its bundles, in proportion to their bytes; new brokers are like the
// present ones. Bundles of lost brokers are placed by the cluster's own placement on the loads of before, as brokers do: their
// reports come later than that.
func Of(snap *cluster.Snapshot, s Scenario, m plan.Manager, limit float64, hits int, rnd plan.Rand) Projection {
	w := world{m: m, rnd: rnd}
	p := Projection{Before: w.brokers(snap), Now: w.headroom(snap, limit)}
	next := w.scale(clone(snap), s.Traffic)
	next = w.add(next, s.Add)
	var moved int
	next, moved, p.Nowhere = w.lose(next, s.Lose)
	p.Moved = moved
	p.After = w.brokers(next)
	for i := range p.After {
		p.After[i].New = snap.BrokerIndex(p.After[i].ID) < 0
	}
	for i := range p.Before {
		p.Before[i].Lost = slices.Contains(s.Lose, p.Before[i].ID)
	}
	p.Then = w.headroom(next, limit)
	p.Losses = w.losses(next, limit)
	p.Plan, p.LeftOut = w.plan(next, hits)
	p.Snapshot = next
	return p
}

type world struct {
	m   plan.Manager
	rnd plan.Rand
}

// plan is what the strategy plans once its condition has held for long enough.
func (w world) plan(snap *cluster.Snapshot, hits int) (plan.Plan, []plan.LeftOut) {
	state := w.m.NewState()
	for n := 0; ; n++ {
		trace := new(plan.Trace)
		p, next := w.m.Shed(snap, state, w.rnd, trace)
		if len(p.Decisions) > 0 || n >= hits {
			return p, trace.Entries
		}
		state = next
	}
}

// losses are what the loss of each broker would do.
func (w world) losses(snap *cluster.Snapshot, limit float64) []Loss {
	if len(snap.Brokers) < 2 {
		return nil
	}
	var out []Loss
	for i := range snap.Brokers {
		id := snap.Brokers[i].ID
		next, moved, nowhere := w.lose(clone(snap), []string{id})
		l := Loss{Broker: id, Bundles: moved + len(nowhere), Stuck: len(nowhere)}
		h := w.headroom(next, limit)
		l.Highest, l.Average = h.Highest, h.Average
		for _, b := range w.brokers(next) {
			if b.Usage == h.Highest {
				l.On = b.ID
				break
			}
		}
		l.OK = l.Stuck == 0 && l.Highest <= limit
		out = append(out, l)
	}
	return out
}

func (w world) brokers(snap *cluster.Snapshot) []Broker {
	out := make([]Broker, len(snap.Brokers))
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		out[i] = Broker{ID: b.ID, Usage: Usage(b)}
	}
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if at := snap.BrokerIndex(b.Owner); at >= 0 && policy.KindOf(b.Namespace) == policy.Ordinary {
			out[at].Bundles++
			out[at].Throughput += Throughput(b)
			out[at].MsgRate += b.Stats.MsgRateIn + b.Stats.MsgRateOut
		}
	}
	return out
}

func (w world) headroom(snap *cluster.Snapshot, limit float64) Headroom {
	h := Headroom{Limit: limit}
	for i := range snap.Brokers {
		u := Usage(&snap.Brokers[i])
		h.Highest = max(h.Highest, u)
		h.Average += u / float64(len(snap.Brokers))
	}
	if h.Highest > 0 {
		h.AsItIs, h.IfEven = limit/h.Highest, limit/h.Average
	}
	return h
}

// Throughput is the traffic of a bundle in bytes/s, in and out.
func Throughput(b *cluster.Bundle) float64 { return b.Stats.MsgThroughputIn + b.Stats.MsgThroughputOut }

// Usage is a broker's usage as strategies compare it: a fraction, 0 if nothing is known.
func Usage(b *cluster.Broker) float64 {
	if b.Load != nil {
		return max(b.Load.WeightedMaxEMA, 0)
	}
	return 0
}

func ownedBy(snap *cluster.Snapshot, id string) (list []int) {
	for i := range snap.Bundles {
		if snap.Bundles[i].Owner == id {
			list = append(list, i)
		}
	}
	return list
}
