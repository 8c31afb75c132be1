package modular

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// AvgShedder pairs the most with the least used broker, the second most with the second least, and so on, and evens out
// pairs whose scores (100 x weighted maximum usage) have been apart often enough. It is a shedding and a placement
// strategy at once: the pair's lower broker is remembered as the destination of each bundle. Pulsar: AvgShedder.
// Memory: State.Avg.
type AvgShedder struct{ Options Options }

// AvgMemory is what AvgShedder remembers.
type AvgMemory struct {
	// Hits is how often each broker was in a pair that is apart.
	Hits Table[AvgHits] `json:"hits"`
	// Targets is where bundles should go, by the value of their averages (Pulsar 4).
	Targets []AvgTarget `json:"targets,omitempty"`
	// Plan is where bundles should go, by name (Pulsar 5). It lives for one shedding round.
	Plan map[string]AvgPlanned `json:"plan,omitempty"`

	byValue map[dataKey]int // places in Targets; nil: to be built
}

// AvgHits counts consecutive hits at the low and at the high threshold.
type AvgHits struct {
	Low  int64 `json:"low"`
	High int64 `json:"high"`
}

// AvgTarget is the destination of bundles with these averages. Bundle is the one whose averages they are, "" once that
// bundle is gone.
type AvgTarget struct {
	Bundle string           `json:"bundle"`
	Data   event.BundleData `json:"data"`
	Broker string           `json:"broker"`
}

// AvgPlanned is the destination of a bundle that is being shed.
type AvgPlanned struct {
	Source      string `json:"source"`
	Destination string `json:"destination"`
}

var (
	// PairClose: the scores of a pair are less than loadBalancerAvgShedderLowThreshold apart.
	PairClose = plan.Code{ID: "PAIR_CLOSE", Template: "scores {high} and {low} are {gap} apart, less than {threshold}"}
	// PairHits: the pair is apart, but not for long enough.
	PairHits = plan.Code{ID: "PAIR_HITS", Template: "scores {high} and {low} are {gap} apart; {lowHits} of {lowNeeded} low hits, {highHits} of {highNeeded} high hits"}
	// PairTraffic: the pair is apart, but the part of the traffic gap that would move is too small.
	PairTraffic = plan.Code{ID: "PAIR_TRAFFIC_TOO_EVEN", Template: "rate delta {rate} <= minUnloadMessage {rateLimit} and throughput delta {throughput} <= minUnloadMessageThroughput {throughputLimit}"}
	// PairApart: the bundle evens out a pair.
	PairApart = plan.Code{ID: "PAIR_APART", Template: "scores {high} and {low} of {destination} are {gap} apart often enough; {budget} {unit} may leave"}
	// NoLoadCarried: the bundle carries nothing, so moving it evens nothing out.
	NoLoadCarried = plan.Code{ID: "NO_LOAD_CARRIED", Template: "bundle carries {value}"}
	// PairsClose is the outcome when all pairs are close.
	PairsClose = plan.Code{ID: "PAIRS_CLOSE", Template: "no two paired brokers of {brokers} are {threshold} or more apart"}
	// PairsWait is the outcome when pairs are apart but none moves anything.
	PairsWait = plan.Code{ID: "PAIRS_WAIT", Template: "{pairs} pairs are apart, none moves anything yet"}
)

// pair is two brokers, indexes into Snapshot.Brokers.
type pair struct{ low, high int }

// avgRun is one run.
type avgRun struct {
	*shedding
	byName bool
	score  []float64
	// gap limits and hits needed
	lowGap, highGap, lowHits, highHits int64
}

// Shed implements plan.Shedder. A decision has the planned destination.
func (a AvgShedder) Shed(snap *cluster.Snapshot, state plan.State, trace *plan.Trace) (plan.Plan, plan.State) {
	st := stateOf(state).next()
	c := snap.Settings
	r := avgRun{
		shedding: newShedding("AvgShedder", snap, st, a.Options, trace), byName: a.byName(snap),
		score:  weightedUsage(snap),
		lowGap: c.LoadBalancerAvgShedderLowThreshold, highGap: c.LoadBalancerAvgShedderHighThreshold,
		lowHits: c.LoadBalancerAvgShedderHitCountLowThreshold, highHits: c.LoadBalancerAvgShedderHitCountHighThreshold,
	}
	for i := range r.score {
		r.score[i] *= 100
	}
	st.Avg.Plan = nil
	st.Avg.dropLost(snap)
	pairs, brokers := r.pairs()
	if brokers == 0 {
		st.Avg.Hits = Table[AvgHits]{}
		return r.done(NoBrokers.Because()), st
	}
	if len(pairs) == 0 {
		st.Avg.Hits = Table[AvgHits]{}
		return r.done(PairsClose.Because(plan.N("brokers", brokers), plan.N("threshold", r.lowGap))), st
	}
	for _, p := range pairs {
		r.evenOut(p)
	}
	r.nameDestinations()
	st.Avg.Hits.Retain(func(_ string, h *AvgHits) bool { return *h != AvgHits{} })
	return r.done(PairsWait.Because(plan.N("pairs", len(pairs)))), st
}

// byName says whether the plan is keyed by bundle name.
func (a AvgShedder) byName(snap *cluster.Snapshot) bool {
	return a.Options.PlanByBundleName || isPulsar5(snap.Version)
}

// pairs counts the hits of every pair and returns the pairs that are apart, widest gap first, and the number of brokers.
func (r *avgRun) pairs() (apart []pair, brokers int) {
	order := make([]int, 0, len(r.snap.Brokers))
	for i := range r.snap.Brokers {
		if r.snap.Brokers[i].Local == nil {
			r.skipSilent(i)
			continue
		}
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(x, y int) int { return load.CompareDouble(r.score[x], r.score[y]) })
	for i, j := 0, len(order)-1; i <= j; i, j = i+1, j-1 {
		p := pair{low: order[i], high: order[j]}
		if r.hit(p) {
			apart = append(apart, p)
		}
	}
	return apart, len(order)
}

// hit counts a pair's hits and says whether it is apart.
func (r *avgRun) hit(p pair) bool {
	gap := r.score[p.high] - r.score[p.low]
	if gap < float64(r.lowGap) {
		r.reset(p)
		if p.low != p.high {
			r.skipPair(p, func() plan.Reason {
				return PairClose.Because(append(r.gapNumbers(p), plan.N("threshold", r.lowGap))...)
			})
		}
		return false
	}
	high := !(gap < float64(r.highGap))
	for _, b := range [...]int{p.low, p.high} {
		h, _ := r.st.Avg.Hits.Add(b, r.snap.Brokers[b].ID)
		h.Low++
		if high {
			h.High++
		} else {
			h.High = 0
		}
	}
	return true
}

// reset forgets the hits of both brokers of a pair.
func (r *avgRun) reset(p pair) {
	for _, b := range [...]int{p.low, p.high} {
		if h := r.st.Avg.Hits.Get(b, r.snap.Brokers[b].ID); h != nil {
			*h = AvgHits{}
		}
	}
}

// hits is the larger count of both brokers of a pair.
func (r *avgRun) hits(p pair) AvgHits {
	var most AvgHits
	for _, b := range [...]int{p.low, p.high} {
		if h := r.st.Avg.Hits.Get(b, r.snap.Brokers[b].ID); h != nil {
			most.Low, most.High = max(most.Low, h.Low), max(most.High, h.High)
		}
	}
	return most
}

// evenOut selects bundles of a pair's higher broker.
func (r *avgRun) evenOut(p pair) {
	h := r.hits(p)
	if h.High < r.highHits && h.Low < r.lowHits {
		r.skipPair(p, func() plan.Reason {
			return PairHits.Because(append(r.gapNumbers(p), plan.N("lowHits", h.Low), plan.N("lowNeeded", r.lowHits),
				plan.N("highHits", h.High), plan.N("highNeeded", r.highHits))...)
		})
		return
	}
	r.reset(p)
	high, low := &r.snap.Brokers[p.high], &r.snap.Brokers[p.low]
	if r.options.SpareSingleBundles && !several(high.Bundles) {
		r.skipSingle(p.high)
		return
	}
	c := r.snap.Settings
	rate := (brokerRate(high.Local) - brokerRate(low.Local)) * c.MaxUnloadPercentage
	throughput := (brokerThroughput(high.Local) - brokerThroughput(low.Local)) * c.MaxUnloadPercentage
	switch {
	case rate > float64(c.MinUnloadMessage):
		r.selectBundles(p, byRate, rate)
	case throughput > float64(c.MinUnloadMessageThroughput):
		r.selectBundles(p, byThroughput, throughput)
	default:
		r.skipPair(p, func() plan.Reason {
			return PairTraffic.Because(plan.N("rate", rate), plan.N("rateLimit", c.MinUnloadMessage),
				plan.N("throughput", throughput), plan.N("throughputLimit", c.MinUnloadMessageThroughput))
		})
	}
}

func (r *avgRun) selectBundles(p pair, m measure, budget float64) {
	unit := "msg/s"
	if m == byThroughput {
		unit = "bytes/s"
	}
	var reason plan.Reason
	before, source, destination := len(r.plan.Decisions), &r.snap.Brokers[p.high], r.snap.Brokers[p.low].ID
	list := r.heaviestFirst(p.high, m)
	for _, w := range list {
		if w.value > 0 && w.value <= budget {
			if reason.Code == "" {
				reason = PairApart.Because(append(r.gapNumbers(p), plan.S("destination", destination), plan.N("budget", budget), plan.S("unit", unit))...)
			}
			budget -= w.value
			r.take(p.high, w.bundle, destination, reason)
			r.remember(w.bundle, source.ID, destination)
			continue
		}
		if r.trace != nil {
			why := OverBudget.Because(plan.N("value", w.value), plan.N("budget", budget))
			if !(w.value > 0) {
				why = NoLoadCarried.Because(plan.N("value", w.value))
			}
			r.trace.Skip(r.snap.Bundles[w.bundle].Name, source.ID, destination, why)
		}
	}
	switch {
	case len(r.plan.Decisions) > before:
		r.brokers++
	case len(list) == 0:
		r.skipBroker(p.high, func() plan.Reason { return r.nothingEligible(p.high) })
	}
}

// remember plans a bundle's destination.
func (r *avgRun) remember(bundle int, source, destination string) {
	m, b := &r.st.Avg, &r.snap.Bundles[bundle]
	if !r.byName {
		m.put(r.snap, b.Name, b.Data, destination)
		return
	}
	if m.Plan == nil {
		m.Plan = make(map[string]AvgPlanned)
	}
	m.Plan[b.Name] = AvgPlanned{Source: source, Destination: destination}
}

// nameDestinations puts the remembered destinations into the decisions: in Pulsar 4 a later bundle of equal averages has
// changed that of an earlier one.
func (r *avgRun) nameDestinations() {
	if r.byName {
		return
	}
	for i := range r.plan.Decisions {
		d := &r.plan.Decisions[i]
		b := r.snap.BundleIndex(d.Bundle)
		if b < 0 {
			continue
		}
		if t, ok := r.st.Avg.get(r.snap, r.snap.Bundles[b].Data); ok {
			d.Destination = t
		}
	}
}

func (r *avgRun) skipPair(p pair, why func() plan.Reason) {
	if r.trace != nil {
		r.trace.Skip("", r.snap.Brokers[p.high].ID, r.snap.Brokers[p.low].ID, why())
	}
}

func (r *avgRun) gapNumbers(p pair) []plan.Number {
	high, low := r.score[p.high], r.score[p.low]
	return []plan.Number{plan.N("high", high), plan.N("low", low), plan.N("gap", high-low)}
}

// dataKey is the value of a bundle's averages; NaN equals NaN in it and 0 does not equal -0.
type dataKey struct {
	short, long [6]uint64
	topics      int32
}

func keyOf(d *event.BundleData) dataKey {
	return dataKey{short: averageKey(&d.ShortTermData), long: averageKey(&d.LongTermData), topics: d.Topics}
}

func averageKey(t *event.TimeAverageMessageData) [6]uint64 {
	return [6]uint64{
		bits(t.MsgThroughputIn), bits(t.MsgThroughputOut), bits(t.MsgRateIn), bits(t.MsgRateOut),
		uint64(uint32(t.MaxSamples)), uint64(uint32(t.NumSamples)),
	}
}

func bits(x float64) uint64 {
	if math.IsNaN(x) {
		return math.Float64bits(math.NaN())
	}
	return math.Float64bits(x)
}

// clone is a copy that shares nothing that is written.
func (m *AvgMemory) clone() AvgMemory {
	n := AvgMemory{Hits: m.Hits.Clone(), Targets: slices.Clone(m.Targets)}
	if m.Plan != nil {
		n.Plan = make(map[string]AvgPlanned, len(m.Plan))
		for b, p := range m.Plan {
			n.Plan[b] = p
		}
	}
	return n
}

// find is the place of the destination for these averages in Targets, -1 if there is none. The averages of an entry are
// those of a bundle that may have changed since: then Pulsar's hash map finds the entry no more.
func (m *AvgMemory) find(snap *cluster.Snapshot, d *event.BundleData) int {
	if len(m.Targets) == 0 || d == nil {
		return -1
	}
	if m.byValue == nil {
		m.byValue = make(map[dataKey]int, len(m.Targets))
		for i := range m.Targets {
			m.byValue[keyOf(&m.Targets[i].Data)] = i
		}
	}
	i, ok := m.byValue[keyOf(d)]
	if !ok || m.Targets[i].lost(snap) {
		return -1
	}
	return i
}

// lost says whether the averages of the entry's bundle have changed.
func (t *AvgTarget) lost(snap *cluster.Snapshot) bool {
	b := snap.BundleIndex(t.Bundle)
	return b >= 0 && snap.Bundles[b].Data != nil && keyOf(snap.Bundles[b].Data) != keyOf(&t.Data)
}

// get is the destination of bundles with these averages.
func (m *AvgMemory) get(snap *cluster.Snapshot, d *event.BundleData) (string, bool) {
	i := m.find(snap, d)
	if i < 0 {
		return "", false
	}
	return m.Targets[i].Broker, true
}

// put sets the destination of bundles with these averages.
func (m *AvgMemory) put(snap *cluster.Snapshot, bundle string, d *event.BundleData, broker string) {
	if i := m.find(snap, d); i >= 0 {
		m.Targets[i].Broker = broker
		return
	}
	m.Targets = append(m.Targets, AvgTarget{Bundle: bundle, Data: *d, Broker: broker})
	if m.byValue != nil {
		m.byValue[keyOf(d)] = len(m.Targets) - 1
	}
}

// dropLost forgets the entries that can be found no more. (Pulsar keeps them for ever.)
func (m *AvgMemory) dropLost(snap *cluster.Snapshot) {
	m.Targets = slices.DeleteFunc(m.Targets, func(t AvgTarget) bool { return t.lost(snap) })
	m.byValue = nil
}

// bundleGone notes that a bundle's averages were dropped: an entry with them changes no more.
func (m *AvgMemory) bundleGone(bundle string) {
	for i := range m.Targets {
		if m.Targets[i].Bundle == bundle {
			m.Targets[i].Bundle = ""
		}
	}
}
