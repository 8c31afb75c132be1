package guard

import (
	"math"

	"github.com/ballast-lb/ballast/plan"
)

// What brokers that have just come are spared.
var (
	Herd = plan.Code{ID: "GUARD_NEW_BROKER", Template: "{destination} is there for {age} ms, new for {limit} ms: it receives at most {bundles} bundles " +
		"and {topics} topics in a cycle, {had} and {hadTopics} so far"}
	GivesEarly = plan.Code{ID: "GUARD_NEW_BROKER_GIVES", Template: "{source} is there for {age} ms, new for {limit} ms: it gives nothing while its {figure} of {load} " +
		"is not above the average of {average}"}
)

// together (ms) is how far apart brokers may start and still count as started together: none of them is new to the others.
const together = 60_000

// newcomer: a broker that has just come receives a part of everything at a time, and gives nothing as long as it has less than the
// others.
func (c *check) newcomer(d *plan.Decision) (plan.Reason, bool) {
	if c.lim.NewBrokerTime <= 0 || Ordered(*d) || d.Action == plan.Split {
		return pass()
	}
	if age, is := c.isNew(d.Destination); is && c.lim.NewBrokerShare > 0 {
		bundles, topics := c.share()
		had, hadTopics := c.to[d.Destination], c.toTopics[d.Destination]
		if had >= bundles || had > 0 && c.topicsOf(d) > topics-hadTopics {
			return Herd.Because(plan.S("destination", d.Destination), plan.N("age", age), plan.N("limit", c.lim.NewBrokerTime),
				plan.N("bundles", bundles), plan.N("topics", topics), plan.N("had", had), plan.N("hadTopics", hadTopics)), true
		}
	}
	if age, is := c.isNew(d.Source); is {
		by := c.lim.GainBy
		if by == NoFigure {
			by = Usage
		}
		load, average, ok := c.average(c.snap.BrokerIndex(d.Source), by)
		if ok && load <= average {
			return GivesEarly.Because(plan.S("source", d.Source), plan.N("age", age), plan.N("limit", c.lim.NewBrokerTime), plan.S("figure", string(by)),
				plan.N("load", load), plan.N("average", average)), true
		}
	}
	return pass()
}

// isNew says whether a broker has come within the time in which it is new, and later than the others. age is in ms.
func (c *check) isNew(id string) (age int64, is bool) {
	i := c.snap.BrokerIndex(id)
	if i < 0 {
		return 0, false
	}
	if c.births == nil {
		c.births = make([]int64, len(c.snap.Brokers))
		c.oldest = math.MaxInt64
		for k := range c.snap.Brokers {
			c.births[k] = c.born(k)
			c.oldest = min(c.oldest, c.births[k])
		}
	}
	age = c.snap.Now - c.births[i]
	return age, age < c.lim.NewBrokerTime && c.births[i]-c.oldest > together
}

// born is since when a broker is there: since it was first seen or, if it was there from the beginning, since it says it started.
// A start in the future, by a clock that is wrong, says nothing.
func (c *check) born(i int) int64 {
	b := &c.snap.Brokers[i]
	if s, ok := c.st.Seen[b.ID]; ok && s.Since > 0 {
		return s.Since
	}
	if b.StartedAt > c.snap.Now {
		return 0
	}
	return b.StartedAt
}

// sizes are how much there is in all.
type sizes struct {
	bundles int
	topics  int64
}

// share is how many bundles and topics a new broker may receive in a cycle, at least one bundle whatever its topics.
func (c *check) share() (bundles int, topics int64) {
	if c.sizes == nil {
		c.sizes = &sizes{}
		// Extensible brokers report the topics of their top bundles alone, and those of all in one number.
		var known, reported, bundles int64
		for i := range c.snap.Bundles {
			known += clamp(c.snap.Bundles[i].Stats.Topics)
		}
		for i := range c.snap.Brokers {
			if load := c.snap.Brokers[i].Load; load != nil {
				reported, bundles = reported+clamp(load.Topics), bundles+clamp(load.BundleCount)
			}
		}
		c.sizes.bundles, c.sizes.topics = max(len(c.snap.Bundles), int(bundles)), max(known, reported)
	}
	share := min(c.lim.NewBrokerShare, 1)
	return max(1, int(share*float64(c.sizes.bundles))), int64(share * float64(c.sizes.topics))
}

// clamp makes a number of a report one that can be added up, whatever the report says.
func clamp(n int64) int64 { return min(max(n, 0), 1<<40) }

// average is a figure of a broker and of all brokers of which it is known.
func (c *check) average(i int, by Figure) (load, average float64, ok bool) {
	load, ok = c.figure(i).value(by)
	sum, n := 0.0, 0
	for k := range c.snap.Brokers {
		if x, known := c.figure(k).value(by); known {
			sum, n = sum+x, n+1
		}
	}
	if n == 0 {
		return 0, 0, false
	}
	return load, sum / float64(n), ok
}
