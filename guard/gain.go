package guard

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// Moves that make nothing better.
var (
	NoGain = plan.Code{ID: "GUARD_NO_GAIN", Template: "{figure} of {source} and {destination}, with what is under way, is {from} and {to}; " +
		"the move would make it {fromAfter} and {toAfter}: the higher does not fall"}
	Hotter = plan.Code{ID: "GUARD_HOTTER_DESTINATION", Template: "{destination} is used to {to}, {source} to {from}: load goes to the hotter one"}
)

// hotter is how much more of its resources a destination may use than the source, whatever figure the moves go by: load that is
// not the bundles' makes a broker hot, too.
const hotter = 0.1

// broker is what a broker carries: as reported, with the moves that its report cannot show and those let through so far.
type broker struct {
	usage                float64 // fraction
	throughput, rate     float64 // bytes/s and msg/s, in + out
	hasUsage, hasTraffic bool
}

// burden is what moves with a bundle.
type burden struct {
	throughput, rate float64
	known            bool
}

// figure is what the broker at an index carries.
func (c *check) figure(i int) *broker {
	if c.figures == nil {
		c.figures = make([]broker, len(c.snap.Brokers))
		c.readAll()
	}
	return &c.figures[i]
}

// readAll reads the reports and adds the moves that were made after a broker was heard.
func (c *check) readAll() {
	weights := load.Weights{CPU: 1, Memory: 1, DirectMemory: 1, BandwidthIn: 1, BandwidthOut: 1}
	if c.snap.Settings != nil {
		weights = load.WeightsOf(c.snap.Settings)
	}
	for i := range c.snap.Brokers {
		c.figures[i] = reported(&c.snap.Brokers[i], &weights)
	}
	for _, m := range c.st.Recent {
		b := burden{m.Throughput, m.MsgRate, true}
		if i := c.snap.BrokerIndex(m.Source); i >= 0 && m.At > c.snap.Brokers[i].LoadHeard {
			c.figures[i].add(b, -1, c.perByte(i))
		}
		if i := c.snap.BrokerIndex(m.Destination); i >= 0 && m.At > c.snap.Brokers[i].LoadHeard {
			c.figures[i].add(b, 1, c.perByte(i))
		}
	}
}

// reported is what a broker's own data says.
func reported(b *cluster.Broker, w *load.Weights) broker {
	f := broker{usage: -1, throughput: -1}
	switch {
	case b.Local != nil:
		d := b.Local
		f.usage, f.throughput, f.rate = load.LocalWeightedMaxUsage(d, w), d.MsgThroughputIn+d.MsgThroughputOut, d.MsgRateIn+d.MsgRateOut
	case b.Load != nil:
		d := b.Load
		f.usage, f.throughput, f.rate = d.WeightedMaxEMA, d.MsgThroughputIn+d.MsgThroughputOut, d.MsgRateIn+d.MsgRateOut
	case b.Report != nil:
		f.throughput = 0
		for _, s := range b.Report.BundleStats {
			f.throughput, f.rate = f.throughput+s.Stats.MsgThroughputIn+s.Stats.MsgThroughputOut, f.rate+s.Stats.MsgRateIn+s.Stats.MsgRateOut
		}
		if u := b.Report.SystemResourceUsage; u != nil {
			f.usage = load.WeightedMax(*u, load.Weights{CPU: 1, DirectMemory: 1, BandwidthIn: 1, BandwidthOut: 1})
		}
	}
	f.hasUsage, f.hasTraffic = measured(f.usage), measured(f.throughput) && measured(f.rate)
	return f
}

// perByte is the usage that a byte/s costs at a broker.
func (c *check) perByte(i int) float64 {
	f := &c.figures[i]
	if !f.hasUsage || !f.hasTraffic || f.throughput <= 0 {
		return 0
	}
	return f.usage / f.throughput
}

// add takes a bundle in (sign 1) or out (sign -1); usage changes by so much per byte.
func (f *broker) add(b burden, sign, perByte float64) {
	f.usage = max(0, f.usage+sign*b.throughput*perByte)
	f.throughput = max(0, f.throughput+sign*b.throughput)
	f.rate = max(0, f.rate+sign*b.rate)
}

// value is one figure of a broker, false if it is not known.
func (f *broker) value(by Figure) (float64, bool) {
	switch by {
	case Throughput, Traffic:
		return f.throughput, f.hasTraffic
	case MsgRate:
		return f.rate, f.hasTraffic
	}
	return f.usage, f.hasUsage
}

// loadOf is what moves with a bundle: what the decision says, else what was reported of the bundle.
func (c *check) loadOf(d *plan.Decision) burden {
	b := burden{d.Throughput, d.MsgRate, d.Throughput > 0 || d.MsgRate > 0}
	if i := c.snap.BundleIndex(d.Bundle); !b.known && i >= 0 && c.snap.Bundles[i].Known {
		s := &c.snap.Bundles[i].Stats
		b = burden{s.MsgThroughputIn + s.MsgThroughputOut, s.MsgRateIn + s.MsgRateOut, true}
	}
	if !measured(b.throughput) || !measured(b.rate) {
		return burden{}
	}
	b.throughput, b.rate = min(b.throughput, mostLoad), min(b.rate, mostLoad)
	return b
}

// topicsOf is how many topics move with a bundle.
func (c *check) topicsOf(d *plan.Decision) int64 {
	n := d.Topics
	if i := c.snap.BundleIndex(d.Bundle); n <= 0 && i >= 0 {
		n = c.snap.Bundles[i].Stats.Topics
	}
	return min(max(n, 0), 1<<40)
}

// cost is what a byte/s of the bundle costs in usage: what it costs its source, where it is no more than all that the source
// uses.
func (c *check) cost(source int, b burden) float64 {
	if f := c.figure(source); b.throughput > f.throughput && b.throughput > 0 && f.hasUsage {
		return f.usage / b.throughput
	}
	return c.perByte(source)
}

// shift moves a bundle that was let through from one figure to the other.
func (c *check) shift(d *plan.Decision) {
	if c.lim.GainBy == NoFigure && c.figures == nil {
		return
	}
	b, perByte := c.loadOf(d), 0.0
	if i := c.snap.BrokerIndex(d.Source); i >= 0 {
		perByte = c.cost(i, b)
		c.figure(i).add(b, -1, perByte)
	}
	if i := c.snap.BrokerIndex(d.Destination); i >= 0 {
		c.figure(i).add(b, 1, perByte)
	}
}

// gain: of the two brokers, the figure of the higher one must fall. A bundle of which nothing is known is let through, and so is
// one between brokers of which the figure is not known; what is known to carry nothing is not moved.
func (c *check) gain(d *plan.Decision) (plan.Reason, bool) {
	if c.lim.GainBy == NoFigure || c.swapping || Ordered(*d) || d.Action != plan.Transfer && d.Action != plan.Unload {
		return pass()
	}
	from, to := c.snap.BrokerIndex(d.Source), c.receiver(d)
	b := c.loadOf(d)
	if from < 0 || to < 0 || !b.known {
		return pass()
	}
	s, t := *c.figure(from), *c.figure(to)
	ids := []plan.Number{plan.S("source", d.Source), plan.S("destination", c.snap.Brokers[to].ID)}
	if s.hasUsage && t.hasUsage && t.usage >= s.usage+hotter {
		return Hotter.Because(append(ids, plan.N("from", s.usage), plan.N("to", t.usage))...), true
	}
	after, into := s, t
	perByte := c.cost(from, b)
	after.add(b, -1, perByte)
	into.add(b, 1, perByte)
	for _, by := range c.by(&s, &t) {
		x, y := two(&s, &t, by)
		x2, y2 := two(&after, &into, by)
		if max(x2, y2) < max(x, y) {
			return pass()
		}
		ids = append(ids[:2], plan.S("figure", string(by)), plan.N("from", x), plan.N("to", y), plan.N("fromAfter", x2), plan.N("toAfter", y2))
	}
	if len(ids) == 2 {
		return pass()
	}
	return NoGain.Because(ids...), true
}

func two(s, t *broker, by Figure) (float64, float64) {
	x, _ := s.value(by)
	y, _ := t.value(by)
	return x, y
}

// by are the figures that two brokers are compared by, of which one must fall: those that are set, or throughput where they are not
// known. There are none if nothing is known.
func (c *check) by(s, t *broker) []Figure {
	traffic := s.hasTraffic && t.hasTraffic
	switch {
	// Usage of a bundle is told from its part of the source's throughput.
	case c.lim.GainBy == Usage && s.hasUsage && t.hasUsage && s.throughput > 0:
		return []Figure{Usage}
	case !traffic:
		return nil
	case c.lim.GainBy == MsgRate:
		return []Figure{MsgRate}
	case c.lim.GainBy == Traffic:
		return []Figure{MsgRate, Throughput}
	}
	return []Figure{Throughput}
}

// receiver is the index of the destination; without one, of the least loaded broker that may take the bundle, which is the best
// that can come of it. -1 = none.
func (c *check) receiver(d *plan.Decision) int {
	if d.Destination != "" {
		return c.snap.BrokerIndex(d.Destination)
	}
	best, least := -1, 0.0
	for _, i := range c.mayTake(d) {
		if c.snap.Brokers[i].ID == d.Source {
			continue
		}
		if x, ok := c.figure(i).value(c.lim.GainBy); ok && (best < 0 || x < least) {
			best, least = i, x
		}
	}
	return best
}

// swapGains says whether the moves of a swap together make the higher of the two brokers fall.
func (c *check) swapGains(decisions []plan.Decision, moves []int) bool {
	if c.lim.GainBy == NoFigure {
		return true
	}
	a, b := c.snap.BrokerIndex(decisions[moves[0]].Source), c.snap.BrokerIndex(decisions[moves[0]].Destination)
	if a < 0 || b < 0 {
		return false
	}
	x, y := *c.figure(a), *c.figure(b)
	xBefore, yBefore, by := x, y, c.by(&x, &y)
	for _, i := range moves {
		d := &decisions[i]
		m := c.loadOf(d)
		if !m.known {
			return true
		}
		from, to, at := &x, &y, a
		if c.snap.BrokerIndex(d.Source) != a {
			from, to, at = &y, &x, b
		}
		perByte := c.cost(at, m)
		from.add(m, -1, perByte)
		to.add(m, 1, perByte)
	}
	for _, f := range by {
		u, v := two(&xBefore, &yBefore, f)
		u2, v2 := two(&x, &y, f)
		if max(u2, v2) < max(u, v) {
			return true
		}
	}
	return len(by) == 0
}
