package extensible

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/jsonfloat"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// shedding is one run of TransferShedder.
type shedding struct {
	*TransferShedder
	snap *cluster.Snapshot
	st   *State
	tr   *plan.Trace
	conf *settings.Settings
	plan plan.Plan

	avg, std, sqSum float64
	n               int // brokers counted in avg and std
	ranking         []ranked
	low, high       int // places of the next pair in the ranking
	holds           *plan.Code

	pairs      int // pairs with moves
	emptyData  int // brokers to unload without top bundles
	fewBundles int // brokers to unload with none that may move

	cycle   *Cycle
	base    map[int]dropped // by index of a broker: why no bundle may go there; only with a trace
	scratch []int
}

func number(x float64) jsonfloat.Float { return jsonfloat.Float(x) }

// pair is a broker to unload and one to load.
type pair struct {
	source, destination *cluster.BrokerLoad
	reason              string // Pulsar's word for why
	code                *plan.Code
	lx, ln              float64       // loads
	tx, tn              float64       // throughputs of now, bytes/s
	target              float64       // bytes/s to move
	underLimit          float64       // the destination is underloaded below this load,
	throughputLimit     float64       // or below this throughput
	out, gain           float64       // bytes/s moved away, and back by swaps
	remaining           int           // top bundles that stay so far
	next                int           // the next swap candidate of the destination
	first               int           // the pair's first decision
	numbers             []plan.Number // of all decisions of the pair; the last is the std after it
	moved               []float64     // with a trace: bytes/s moved before each decision
}

// pairUp goes through the pairs of brokers from the outside of the ranking inwards.
func (s *shedding) pairUp() {
	limit := s.conf.LoadBalancerMaxNumberOfBrokerSheddingPerCycle
	for int64(s.pairs) < limit && s.low < s.high {
		code := s.condition()
		if code == nil {
			return
		}
		p := &pair{source: s.at(s.high), destination: s.at(s.low), code: code, reason: Overloaded, first: len(s.plan.Decisions)}
		if code == &BrokerUnderloaded {
			p.reason = Underloaded
		}
		m := s.multiplier()
		p.underLimit, p.throughputLimit = s.avg*m, p.source.Data.MsgThroughputEMA*m
		s.high--
		s.measurePair(p)
		top := p.source.TopBundles
		switch {
		case len(top) == 0:
			s.emptyData++
			if s.tr != nil {
				heard := "none were heard"
				if p.source.HasTop {
					heard = "its list is empty"
				}
				s.tr.Skip("", p.source.Broker, p.destination.Broker, WithoutTopBundles.Because(plan.S("heard", heard)))
			}
			continue
		case len(top) == 1:
			s.fewBundles++
			if s.tr != nil {
				s.tr.Skip("", p.source.Broker, p.destination.Broker, SoleBundle.Because(plan.S("bundle", top[0].BundleName)))
			}
			continue
		}
		p.remaining = len(top)
		for i := range top {
			if !s.move(p, &top[i]) {
				break
			}
		}
		s.settle(p)
	}
}

// measurePair works out how much is to move between the brokers of a pair.
func (s *shedding) measurePair(p *pair) {
	x, n := &p.source.Data, &p.destination.Data
	p.lx, p.ln = x.WeightedMaxEMA, n.WeightedMaxEMA
	p.tx, p.tn = x.MsgThroughputIn+x.MsgThroughputOut, n.MsgThroughputIn+n.MsgThroughputOut
	p.target = p.tx * ((p.lx - p.ln) / 2) / p.lx // NaN when nothing is loaded
	if s.Options.TargetWithoutLoad && p.lx == 0 {
		p.target = max(0, (p.tx-p.tn)/2)
	}
}

// move plans to move a bundle, with a swap if it is too big; false ends the pair.
func (s *shedding) move(p *pair, b *event.BundleLoad) bool {
	if !s.movable(p, b.BundleName) {
		return true
	}
	if p.remaining <= 1 {
		if s.tr != nil {
			s.tr.Skip(b.BundleName, p.source.Broker, p.destination.Broker, LastBundle.Because(plan.N("bundles", len(p.source.TopBundles))))
		}
		return false
	}
	q := load.Throughput(&b.Stats)
	if q == 0 {
		s.skip(p, b.BundleName, Idle)
		return true
	}
	transfer := s.conf.LoadBalancerTransferEnabled
	if p.out-p.gain+q > p.target {
		if !transfer || !p.destination.HasTop {
			s.exceeds(p, b.BundleName, q, "swaps are off or the destination's top bundles were not heard")
			return false
		}
		back, z := s.swap(p, q)
		if back == nil {
			s.exceeds(p, b.BundleName, q, "no swap makes room for it")
			return false
		}
		for _, m := range back {
			s.decide(p, &p.destination.TopBundles[m], p.destination.Broker, p.source.Broker, &SwappedBack)
		}
		if s.conf.LoadBalancerDebugModeEnabled || s.Options.CountSwapGain {
			p.gain += z
		}
	}
	destination := ""
	if transfer {
		destination = p.destination.Broker
	}
	s.decide(p, b, p.source.Broker, destination, p.code)
	p.out += q
	p.remaining--
	return true
}

// swap finds bundles of the destination to move back, so that the one of throughput q fits: their places in its top list
// and their throughput, nil if there are none. Candidates that were looked at are not looked at again in this pair.
func (s *shedding) swap(p *pair, q float64) (back []int, throughput float64) {
	nx, nn := p.tx-p.out+p.gain-q, p.tn+p.out-p.gain+q
	top := p.destination.TopBundles
	for p.next < len(top) {
		m := &top[p.next]
		p.next++
		if !s.swappable(p, m.BundleName) {
			continue
		}
		v := load.Throughput(&m.Stats)
		if v == 0 {
			if s.tr != nil {
				s.tr.Skip(m.BundleName, p.destination.Broker, p.source.Broker, Idle.Because())
			}
			continue
		}
		x, n := nx+v, nn-v
		if !(x < p.tx && n < p.tx) {
			if s.tr != nil {
				s.tr.Skip(m.BundleName, p.destination.Broker, p.source.Broker, SwapExceeds.Because(
					plan.N("throughput", v), plan.N("sourceAfter", x), plan.N("destinationAfter", n), plan.N("limit", p.tx)))
			}
			continue
		}
		back = append(back, p.next-1)
		nx, nn = x, n
		throughput += v
		if nn <= nx && nx < p.tx*0.75 {
			return back, throughput
		}
	}
	return nil, 0
}

// swappable says whether a bundle of the destination may move back.
func (s *shedding) swappable(p *pair, bundle string) bool {
	back := &pair{source: p.destination, destination: p.source}
	if s.Options.CheckSwapCandidates {
		return s.movable(back, bundle)
	}
	return s.transferable(back, bundle)
}

// movable says whether a bundle of the source may be considered at all.
func (s *shedding) movable(p *pair, bundle string) bool {
	if !s.Detached {
		owner, state := "", event.ServiceUnitState("")
		if i := s.snap.BundleIndex(bundle); i >= 0 {
			owner, state = s.snap.Bundles[i].Owner, s.snap.Bundles[i].State
		}
		if owner != p.source.Broker {
			if s.tr != nil {
				s.tr.Skip(bundle, p.source.Broker, p.destination.Broker, NotOwned.Because(plan.S("owner", quoted(owner))))
			}
			return false
		}
		if s.Options.SkipInFlight && (state == event.Assigning || state == event.Releasing || state == event.Splitting) {
			if s.tr != nil {
				s.tr.Skip(bundle, p.source.Broker, p.destination.Broker, InFlight.Because(plan.S("state", string(state))))
			}
			return false
		}
	}
	if excluded := s.conf.LoadBalancerSheddingExcludedNamespaces; len(excluded) > 0 && slices.Contains(excluded, policy.NamespaceOf(bundle)) {
		if s.tr != nil {
			s.tr.Skip(bundle, p.source.Broker, p.destination.Broker, Excluded.Because(plan.S("namespace", policy.NamespaceOf(bundle))))
		}
		return false
	}
	if at, ok := s.st.UnloadedBundles[bundle]; ok {
		if s.tr != nil {
			s.tr.Skip(bundle, p.source.Broker, p.destination.Broker, RecentlyUnloaded.Because(
				plan.N("age", s.snap.Now-at), plan.N("limit", s.conf.LoadBalancerSheddingGracePeriodMinutes*60_000)))
		}
		return false
	}
	return s.transferable(p, bundle)
}

// decide adds a decision unless the pair has the same one already. Its numbers are those of the pair; with a trace it gets
// its own when the pair is settled.
func (s *shedding) decide(p *pair, b *event.BundleLoad, source, destination string, c *plan.Code) {
	for i := p.first; i < len(s.plan.Decisions); i++ {
		if d := &s.plan.Decisions[i]; d.Bundle == b.BundleName && d.Source == source {
			return
		}
	}
	action := plan.Transfer
	if destination == "" {
		action = plan.Unload
	}
	if s.plan.Decisions == nil {
		s.plan.Decisions = make([]plan.Decision, 0, min(len(p.source.TopBundles), 64))
	}
	if p.numbers == nil {
		p.numbers = []plan.Number{
			plan.N("sourceLoad", p.lx), plan.N("destinationLoad", p.ln), plan.N("avg", s.avg), plan.N("std", s.std),
			plan.N("targetStd", s.conf.LoadBalancerBrokerLoadTargetStd), plan.N("target", p.target),
			plan.N("underLimit", p.underLimit), plan.N("leastThroughput", p.destination.Data.MsgThroughputEMA),
			plan.N("throughputLimit", p.throughputLimit), plan.N("overLimit", s.overLimit()), plan.N("stdAfter", s.std),
		}
	}
	s.plan.Decisions = append(s.plan.Decisions, plan.Decision{})
	d := &s.plan.Decisions[len(s.plan.Decisions)-1] // filled in place: it is too big to copy for nothing
	d.Action, d.Bundle, d.Source, d.Destination = action, b.BundleName, source, destination
	d.Label, d.PulsarReason = Success, p.reason
	d.Throughput, d.MsgRate, d.Topics = load.Throughput(&b.Stats), load.MsgRate(&b.Stats), b.Stats.Topics
	d.Why.Code, d.Why.Numbers = c.ID, p.numbers
	if s.tr != nil {
		p.moved = append(p.moved, p.out-p.gain)
	}
}

// explain gives every decision of a pair its own numbers and its sentence.
func (s *shedding) explain(p *pair) {
	for i := p.first; i < len(s.plan.Decisions); i++ {
		d := &s.plan.Decisions[i]
		own := append(slices.Clip(p.numbers), plan.N("moved", p.moved[i-p.first]), plan.N("throughput", d.Throughput),
			plan.S("source", d.Source), plan.S("destination", p.destination.Broker))
		d.Why = s.code(d.Why.Code).Because(own...)
	}
}

// settle takes the moves of a pair into the standard deviation.
func (s *shedding) settle(p *pair) {
	if !(p.out > 0) {
		s.fewBundles++
		if s.tr != nil && len(s.plan.Decisions) == p.first {
			s.tr.Skip("", p.source.Broker, p.destination.Broker, PairWithoutMoves.Because(plan.N("bundles", len(p.source.TopBundles)),
				plan.N("sourceLoad", p.lx), plan.N("destinationLoad", p.ln), plan.N("target", p.target)))
		}
	} else {
		adj := (p.out - p.gain) * p.lx / p.tx
		s.sqSum -= float64(p.lx*p.lx) + float64(p.ln*p.ln)
		a, c := max(0, p.lx-adj), p.ln+adj
		s.sqSum += float64(a*a) + float64(c*c)
		s.std = math.Sqrt(math.Abs(s.sqSum/float64(s.n) - float64(s.avg*s.avg)))
		s.pairs++
		s.low++
	}
	if len(p.numbers) > 0 {
		p.numbers[len(p.numbers)-1].Value = s.std // all decisions of the pair see it
	}
	if s.tr != nil {
		s.explain(p)
	}
}

// code is the code of a decision.
func (s *shedding) code(id string) *plan.Code {
	for _, c := range []*plan.Code{&StdAboveTarget, &BrokerUnderloaded, &BrokerOverloaded} {
		if c.ID == id {
			return c
		}
	}
	return &SwappedBack
}

// skip records that a bundle of the source was passed over.
func (s *shedding) skip(p *pair, bundle string, c plan.Code) {
	if s.tr != nil {
		s.tr.Skip(bundle, p.source.Broker, p.destination.Broker, c.Because())
	}
}

// exceeds records that a bundle is too big to move.
func (s *shedding) exceeds(p *pair, bundle string, q float64, swap string) {
	if s.tr != nil {
		s.tr.Skip(bundle, p.source.Broker, p.destination.Broker, ExceedsTarget.Because(plan.N("moved", p.out), plan.N("gained", p.gain),
			plan.N("throughput", q), plan.N("target", p.target), plan.S("swap", swap)))
	}
}
