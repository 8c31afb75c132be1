package modular

import (
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// Why a bundle of a broker that is being shed is left where it is. These are common to the shedders.
var (
	// NoHistory: the broker lists the bundle, but there are no averages of it.
	NoHistory = plan.Code{ID: "NO_HISTORY", Template: "no averages of the bundle are known"}
	// BrokerNamespace: a heartbeat or SLA namespace belongs to its broker.
	BrokerNamespace = plan.Code{ID: "BROKER_NAMESPACE", Template: "{namespace} is a broker's own heartbeat or SLA namespace"}
	// RecentlyUnloaded: the bundle was unloaded within loadBalancerSheddingGracePeriodMinutes.
	RecentlyUnloaded = plan.Code{ID: "RECENTLY_UNLOADED", Template: "unloaded at {at}, within the grace period"}
	// EnoughSelected: heavier bundles already add up to what has to leave.
	EnoughSelected = plan.Code{ID: "ENOUGH_SELECTED", Template: "{selected} bytes/s are selected, {needed} have to leave"}
	// OverBudget: the bundle carries more than what may still leave.
	OverBudget = plan.Code{ID: "OVER_BUDGET", Template: "bundle carries {value}, only {budget} may still leave"}
)

// Why a broker is not shed, common to the shedders.
var (
	// NoReport: the broker is registered but no load report of it was heard.
	NoReport = plan.Code{ID: "NO_LOAD_REPORT", Template: "no load report of the broker is known"}
	// SingleBundle: with one bundle or none, moving it would only move the load.
	SingleBundle = plan.Code{ID: "SINGLE_BUNDLE", Template: "broker serves {bundles} bundles, at least 2 are needed"}
	// NothingEligible: the broker should be shed but none of its bundles may leave.
	NothingEligible = plan.Code{ID: "NOTHING_ELIGIBLE", Template: "none of the broker's {bundles} bundles may leave"}
)

// Outcomes common to the shedders.
var (
	// Selected: the strategy selected bundles.
	Selected = plan.Code{ID: "SELECTED", Template: "{bundles} bundles of {brokers} brokers selected"}
	// NoBrokers: there is no broker with a load report.
	NoBrokers = plan.Code{ID: "NO_BROKERS", Template: "no broker with a load report"}
)

// margin is what shedders take on top of the excess (Pulsar: ADDITIONAL_THRESHOLD_PERCENT_MARGIN).
const margin = 0.05

// weighed is a bundle of a broker with the value by which it is chosen.
type weighed struct {
	bundle int // index into Snapshot.Bundles
	order  int64
	value  float64
}

type measure int

const (
	byThroughput measure = iota // bytes/s in and out
	byRate                      // msg/s in and out
)

func (m measure) of(t *event.TimeAverageMessageData) float64 {
	if m == byRate {
		return t.TotalMsgRate()
	}
	return t.TotalMsgThroughput()
}

// brokerThroughput is the reported bytes/s in and out of a broker.
func brokerThroughput(d *event.LocalBrokerData) float64 {
	return d.MsgThroughputIn + d.MsgThroughputOut
}

// brokerRate is the reported msg/s in and out of a broker.
func brokerRate(d *event.LocalBrokerData) float64 { return d.MsgRateIn + d.MsgRateOut }

// shedding is one run of a shedder.
type shedding struct {
	snap    *cluster.Snapshot
	st      *State
	trace   *plan.Trace
	options Options
	plan    plan.Plan
	buf     []weighed
	brokers int // brokers with selected bundles
}

func newShedding(strategy string, snap *cluster.Snapshot, st *State, o Options, trace *plan.Trace) *shedding {
	return &shedding{snap: snap, st: st, options: o, trace: trace, plan: plan.Plan{Strategy: strategy, At: snap.Now}}
}

// heaviestFirst is the bundles of a broker that may be shed, by short-term value, descending; of equal values the first in
// the snapshot comes first. The slice is used again by the next call.
func (s *shedding) heaviestFirst(broker int, m measure) []weighed {
	b := &s.snap.Brokers[broker]
	list := s.buf[:0]
	for _, i := range b.Bundles {
		bundle := &s.snap.Bundles[i]
		at, recent := s.st.RecentlyUnloaded[bundle.Name]
		if bundle.Data == nil || recent || load.IsBrokerNamespace(bundle.Namespace) {
			s.leaveOut(b.ID, bundle, recent, at)
			continue
		}
		if s.options.SelectMovable {
			if why, ok := s.movable(b.ID, bundle); !ok {
				s.trace.Skip(bundle.Name, b.ID, "", why)
				continue
			}
		}
		v := m.of(&bundle.Data.ShortTermData)
		list = append(list, weighed{bundle: i, order: load.OrderedBits(v), value: v})
	}
	slices.SortFunc(list, func(x, y weighed) int {
		switch {
		case x.order > y.order:
			return -1
		case x.order < y.order:
			return 1
		}
		return x.bundle - y.bundle
	})
	s.buf = list
	return slices.CompactFunc(list, func(x, y weighed) bool { return x.bundle == y.bundle })
}

// movable says whether the rules of the shedding cycle will let a bundle leave.
func (s *shedding) movable(broker string, b *cluster.Bundle) (plan.Reason, bool) {
	if slices.Contains(s.snap.Settings.LoadBalancerSheddingExcludedNamespaces, b.Namespace) {
		return NamespaceExcluded.Because(plan.S("namespace", b.Namespace)), false
	}
	m := Manager{Options: s.options}
	return m.choice(s.snap, s.st, b.Name, nil).mayLeave(broker)
}

func (s *shedding) leaveOut(broker string, b *cluster.Bundle, recent bool, at int64) {
	if s.trace == nil {
		return
	}
	why := NoHistory.Because()
	switch {
	case b.Data == nil:
	case load.IsBrokerNamespace(b.Namespace):
		why = BrokerNamespace.Because(plan.S("namespace", b.Namespace))
	case recent:
		why = RecentlyUnloaded.Because(plan.N("at", at))
	}
	s.trace.Skip(b.Name, broker, "", why)
}

// takeUntil selects bundles of a broker, heaviest first, until their throughput reaches need; at least one.
func (s *shedding) takeUntil(broker int, need float64, why func() plan.Reason) {
	list := s.heaviestFirst(broker, byThroughput)
	if len(list) == 0 {
		s.skipBroker(broker, func() plan.Reason { return s.nothingEligible(broker) })
		return
	}
	reason, sum := why(), 0.0
	for n, w := range list {
		if n == 0 || sum < need {
			s.take(broker, w.bundle, "", reason)
			sum += w.value
		} else if s.trace != nil {
			s.trace.Skip(s.snap.Bundles[w.bundle].Name, s.snap.Brokers[broker].ID, "",
				EnoughSelected.Because(plan.N("selected", sum), plan.N("needed", need)))
		}
	}
	s.brokers++
}

// take adds one bundle to the plan.
func (s *shedding) take(broker, bundle int, destination string, why plan.Reason) {
	d := unload(s.snap, bundle, s.snap.Brokers[broker].ID)
	d.Why = why
	if destination != "" {
		d.Action, d.Destination = plan.Transfer, destination
	}
	s.plan.Decisions = append(s.plan.Decisions, d)
}

// unload is the decision to unload a bundle, with what moves with it.
func unload(snap *cluster.Snapshot, bundle int, source string) plan.Decision {
	b := &snap.Bundles[bundle]
	d := plan.Decision{Action: plan.Unload, Bundle: b.Name, Source: source}
	if b.Data != nil {
		d.Throughput = b.Data.ShortTermData.TotalMsgThroughput()
		d.MsgRate = b.Data.ShortTermData.TotalMsgRate()
		d.Topics = int64(b.Data.Topics)
	}
	return d
}

// skipBroker records that a broker is not shed. why is called only if there is a trace.
func (s *shedding) skipBroker(broker int, why func() plan.Reason) {
	if s.trace != nil {
		s.trace.Skip("", s.snap.Brokers[broker].ID, "", why())
	}
}

// skipSingle records that a broker is not shed because it has less than two bundles.
func (s *shedding) skipSingle(broker int) {
	s.skipBroker(broker, func() plan.Reason {
		return SingleBundle.Because(plan.N("bundles", distinct(s.snap.Brokers[broker].Bundles)))
	})
}

// skipSilent records that a broker has no load report.
func (s *shedding) skipSilent(broker int) {
	s.skipBroker(broker, func() plan.Reason { return NoReport.Because() })
}

// nothingEligible is why a broker that should be shed is not.
func (s *shedding) nothingEligible(broker int) plan.Reason {
	return NothingEligible.Because(plan.N("bundles", distinct(s.snap.Brokers[broker].Bundles)))
}

// done is the plan; idle is its outcome when nothing was selected.
func (s *shedding) done(idle plan.Reason) plan.Plan {
	s.plan.Outcome = idle
	if n := len(s.plan.Decisions); n > 0 {
		s.plan.Outcome = Selected.Because(plan.N("bundles", n), plan.N("brokers", s.brokers))
	}
	return s.plan
}

// distinct is the number of different bundles in a broker's list.
func distinct(bundles []int) int {
	if len(bundles) < 2 {
		return len(bundles)
	}
	sorted := slices.Clone(bundles)
	slices.Sort(sorted)
	return len(slices.Compact(sorted))
}

// several says whether a list holds more than one bundle.
func several(bundles []int) bool {
	for _, b := range bundles {
		if b != bundles[0] {
			return true
		}
	}
	return false
}

// weightedUsage is the weighted maximum usage of every broker with a report, NaN for the others, which does not occur
// otherwise: usage that is not a number counts as -Inf.
func weightedUsage(snap *cluster.Snapshot) []float64 {
	w := load.WeightsOf(snap.Settings)
	usage := make([]float64, len(snap.Brokers))
	for i := range snap.Brokers {
		if d := snap.Brokers[i].Local; d != nil {
			usage[i] = load.LocalWeightedMaxUsage(d, &w)
		} else {
			usage[i] = math.NaN()
		}
	}
	return usage
}

// saturate is Java's cast of a double to an int: toward zero, NaN to 0, saturating.
func saturate(x float64) int32 {
	switch {
	case math.IsNaN(x):
		return 0
	case x >= math.MaxInt32:
		return math.MaxInt32
	case x <= math.MinInt32:
		return math.MinInt32
	}
	return int32(x)
}
