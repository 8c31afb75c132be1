// Package shares counts what part of all topics each broker has, as far as that is known. It is pure.
package shares

import (
	"math"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
)

// Limit is how much of everything a broker may have while others are drained: an even part among those that serve, and Points more.
type Limit struct {
	Serving int     // brokers that are registered and not drained, at least 1
	Points  float64 // a fraction; 0 = no limit
}

// Over is what a broker would have too much of.
type Over struct {
	Measure string  // topics, or bundles
	After   float64 // what it would have
	All     float64 // what all have together
	Limit   float64 // what it may have
}

// Count is how many topics and bundles each broker has, without the system's own, which stay where they are and have no clients of
// users: a broker that has many of them would otherwise get too few of the others. What is on its way to a broker is that one's.
//
// Extensible brokers publish the topics of their top bundles alone, and how many they have together. A bundle without a
// number is taken for an even part of what its broker has beyond those with one. That is a guess, so where one was needed the bundles
// count, too; and they alone where not even that is known.
type Count struct {
	snap    *cluster.Snapshot
	at      []int     // by bundle: index of the broker that has or gets it, nowhere or gone
	each    []float64 // by bundle: its topics
	topics  []float64 // by broker
	bundles []int     // by broker

	allTopics  float64
	allBundles int
	guessed    bool // the topics of some bundle were not published
	blind      bool // nor were those of its broker
}

const (
	nowhere = -1 // nobody has it, or it is the system's own
	gone    = -2 // of a broker that is not registered
)

// Of counts. The snapshot is indexed.
func Of(snap *cluster.Snapshot) *Count {
	n := len(snap.Brokers)
	c := &Count{snap: snap, at: make([]int, len(snap.Bundles)), each: make([]float64, len(snap.Bundles)),
		topics: make([]float64, n), bundles: make([]int, n)}
	known, unknown := make([]float64, n), make([]float64, n) // by broker that serves it
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if c.at[i] = place(snap, b); c.at[i] == nowhere {
			continue
		}
		owner := snap.BrokerIndex(b.Owner)
		switch {
		case published(b):
			c.each[i] = float64(clamp(b.Stats.Topics))
			if owner >= 0 {
				known[owner] += c.each[i]
			}
		case owner >= 0:
			unknown[owner]++
		}
		if why := policy.Unmanaged(b.Namespace, nil); !why.IsZero() {
			c.at[i] = nowhere
		}
	}
	c.guess(known, unknown)
	for i, at := range c.at {
		if at == nowhere {
			continue
		}
		c.allTopics += c.each[i]
		c.allBundles++
		c.put(i, at, 1)
	}
	return c
}

// place is who has a bundle, or gets it.
func place(snap *cluster.Snapshot, b *cluster.Bundle) int {
	id := b.Owner
	if b.Heading != "" {
		id = b.Heading
	}
	switch at := snap.BrokerIndex(id); {
	case at >= 0:
		return at
	case id != "" && (b.State == "" || b.State == event.Owned):
		return gone
	}
	return nowhere
}

// published says whether it is known how many topics a bundle has.
func published(b *cluster.Bundle) bool { return b.Known || b.Stats.Topics > 0 }

// clamp makes a number of a report one that can be added up, whatever the report says.
func clamp(n int64) int64 { return min(max(n, 0), 1<<40) }

// guess gives the bundles without a number one: an even part of what their broker has beyond, or what such bundles have elsewhere
// where that broker is not known to have any number.
func (c *Count) guess(known, unknown []float64) {
	part, sum, of := make([]float64, len(unknown)), 0.0, 0.0
	for i := range part {
		load := c.snap.Brokers[i].Load
		if part[i] = -1; load == nil || unknown[i] == 0 {
			continue
		}
		rest := max(0, float64(clamp(load.Topics))-known[i])
		part[i] = rest / unknown[i]
		sum, of = sum+rest, of+unknown[i]
	}
	for i := range c.at {
		b := &c.snap.Bundles[i]
		if c.at[i] == nowhere || published(b) {
			continue
		}
		c.guessed = true
		switch owner := c.snap.BrokerIndex(b.Owner); {
		case owner >= 0 && part[owner] >= 0:
			c.each[i] = part[owner]
		case of > 0:
			c.each[i] = sum / of
		default:
			c.blind = true
		}
	}
}

// put adds a bundle to a broker (sign 1), or takes it away.
func (c *Count) put(bundle, broker, sign int) {
	if broker < 0 {
		return
	}
	c.topics[broker] += float64(sign) * c.each[bundle]
	c.bundles[broker] += sign
}

// Move counts a bundle as a broker's; both are indexes.
func (c *Count) Move(bundle, broker int) {
	if bundle < 0 || c.at[bundle] == nowhere {
		return
	}
	c.put(bundle, c.at[bundle], -1)
	c.at[bundle] = broker
	c.put(bundle, broker, 1)
}

// Beyond says whether a broker would have more than it may if it got a bundle; both are indexes.
func (c *Count) Beyond(broker, bundle int, lim Limit) (Over, bool) {
	if broker < 0 || bundle < 0 || c.at[bundle] == nowhere || c.at[bundle] == broker {
		return Over{}, false
	}
	return c.over(c.topics[broker]+c.each[bundle], float64(c.bundles[broker]+1), lim)
}

// Has says whether a broker has more than it may.
func (c *Count) Has(broker int, lim Limit) (Over, bool) {
	if broker < 0 {
		return Over{}, false
	}
	return c.over(c.topics[broker], float64(c.bundles[broker]), lim)
}

// over judges by the topics where they are known, and by the bundles where they are not, or are a guess. A broker may always have an
// even number of bundles, rounded up: they cannot be divided.
func (c *Count) over(topics, bundles float64, lim Limit) (Over, bool) {
	if !(lim.Points > 0) {
		return Over{}, false
	}
	part := 1/float64(max(lim.Serving, 1)) + lim.Points
	dark := c.blind || c.allTopics <= 0
	if most := c.allTopics * part; !dark && topics > most+1e-9*c.allTopics {
		return Over{Measure: "topics", After: rounded(topics), All: rounded(c.allTopics), Limit: rounded(most)}, true
	}
	all := float64(c.allBundles)
	if most := max(math.Floor(all*part+1e-9), math.Ceil(all/float64(max(lim.Serving, 1)))); (dark || c.guessed) && bundles > most {
		return Over{Measure: "bundles", After: bundles, All: all, Limit: most}, true
	}
	return Over{}, false
}

// rounded is a number of topics as it is told: guesses are fractions.
func rounded(x float64) float64 { return math.Round(x*10) / 10 }
