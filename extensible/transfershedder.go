package extensible

import (
	"cmp"
	"math"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// TransferShedder pairs the most with the least loaded brokers and moves top bundles from one to the other until the
// standard deviation of the loads is at its target. It reads the snapshot's Load, all of it, and Brokers; its memory is
// *State. Without a trace decisions, and the outcome of a cycle that made some, have codes and numbers but no sentences.
// Pulsar: TransferShedder.
type TransferShedder struct {
	Options Options
	// Filters say who may take a bundle; nil = Filters(Options).
	Filters []Filter
	// Policies say which namespaces have policies; nil = those of the snapshot.
	Policies Policies
	// Detached leaves out who owns a bundle and who may take it, as in Pulsar's shedder without a broker around it.
	Detached bool
}

// Policies say which namespaces have policies. *policy.Set is one.
type Policies interface {
	HasIsolation(namespace string) bool
	HasAntiAffinity(namespace string) bool
}

// Shed implements plan.Shedder. The outcome's numbers hold what the cycle compared.
func (t *TransferShedder) Shed(snap *cluster.Snapshot, state plan.State, trace *plan.Trace) (plan.Plan, plan.State) {
	st := stateOf(state).next()
	s := &shedding{TransferShedder: t, snap: snap, st: st, tr: trace, conf: snap.Settings}
	s.plan = plan.Plan{Strategy: "TransferShedder", At: snap.Now}
	s.run()
	return s.plan, st
}

// Unreadable is the outcome of a cycle in which it could not be read which brokers are registered.
func (t *TransferShedder) Unreadable(now int64, state plan.State, err error) (plan.Plan, plan.State) {
	st := stateOf(state).next()
	st.Counters.Unload.add(Failure, Unknown)
	return plan.Plan{
		Strategy: "TransferShedder", At: now, Counts: []plan.Count{{Label: Failure, Reason: Unknown, N: 1}},
		Outcome: RegistryUnreadable.Because(plan.S("error", err.Error())),
	}, st
}

func (s *shedding) run() {
	if !s.measure() {
		return
	}
	s.st.Counters.LoadAvg, s.st.Counters.LoadStd = number(s.avg), number(s.std)
	s.plan.LoadAvg, s.plan.LoadStd = s.avg, s.std
	s.rank()
	if !s.due() {
		return
	}
	s.pairUp()
	s.conclude()
}

// measure takes average and standard deviation of the loads; it ends the cycle when they cannot be told.
func (s *shedding) measure() bool {
	ttl := s.conf.LoadBalancerBrokerLoadDataTTLInSeconds * 1000
	delay := s.conf.LoadBalanceSheddingDelayInSeconds * 1000
	outdated, cloned := 0, false
	var sum float64
	for i := range s.snap.Load {
		l := &s.snap.Load[i]
		if age := s.snap.Now - l.Data.UpdatedAt; age > ttl {
			outdated++
			if s.tr != nil {
				s.tr.Skip("", l.Broker, "", Outdated.Because(plan.N("age", age), plan.N("limit", ttl)))
			}
			continue
		}
		if at, ok := s.st.UnloadedBrokers[l.Broker]; ok {
			if elapsed := l.Data.UpdatedAt - at; elapsed < delay {
				s.avg, s.std = 0, 0
				s.end(Skip, CoolDown, CoolingDown, plan.S("broker", l.Broker), plan.N("elapsed", elapsed), plan.N("limit", delay))
				return false
			}
			forget(&s.st.UnloadedBrokers, &cloned, l.Broker)
		}
		sum += l.Data.WeightedMaxEMA
		s.sqSum += float64(l.Data.WeightedMaxEMA * l.Data.WeightedMaxEMA)
		s.n++
	}
	switch first, missing := s.missing(); {
	case s.n == 0 && outdated > 0:
		s.end(Skip, OutDatedData, LoadDataOutdated, plan.N("brokers", outdated), plan.N("limit", ttl))
		return false
	case s.n == 0:
		s.end(Skip, NoBrokers, NoLoadHeard)
		return false
	case missing > 0:
		s.end(Skip, NoLoadData, LoadDataMissing, plan.N("missing", missing), plan.N("brokers", len(s.snap.Brokers)), plan.S("broker", first))
		return false
	}
	s.avg = sum / float64(s.n)
	s.std = math.Sqrt(s.sqSum/float64(s.n) - float64(s.avg*s.avg))
	return true
}

// missing is how many registered brokers have no load data, and the first of them. Those that are known to be stale are left
// out of the cycle instead; clusters with the Extensible load manager have none.
func (s *shedding) missing() (first string, n int) {
	for i := range s.snap.Brokers {
		id := s.snap.Brokers[i].ID
		if i < len(s.snap.Load) && s.snap.Load[i].Broker == id || s.snap.LoadIndex(id) >= 0 {
			continue
		}
		if !s.snap.Brokers[i].Stale.IsZero() {
			continue
		}
		if n++; n == 1 {
			first = id
		}
		if s.tr != nil {
			s.tr.Skip("", id, "", NoLoad.Because())
		}
	}
	return first, n
}

// ranked is an entry of the load data and the key it sorts by.
type ranked struct {
	key   int64
	index int32
}

// rank sorts the load data by load, ties in the order of the snapshot.
func (s *shedding) rank() {
	ttl := s.conf.LoadBalancerBrokerLoadDataTTLInSeconds * 1000
	s.ranking = make([]ranked, 0, len(s.snap.Load))
	for i := range s.snap.Load {
		l := &s.snap.Load[i]
		if s.tr != nil || s.Options.RankFreshLiveOnly {
			live := s.snap.BrokerIndex(l.Broker) >= 0
			if !live && s.tr != nil {
				s.tr.Skip("", l.Broker, "", NotRegistered.Because())
			}
			if s.Options.RankFreshLiveOnly && (!live || s.snap.Now-l.Data.UpdatedAt > ttl) {
				continue
			}
		}
		s.ranking = append(s.ranking, ranked{load.OrderedBits(l.Data.WeightedMaxEMA), int32(i)})
	}
	slices.SortFunc(s.ranking, func(a, b ranked) int {
		if a.key != b.key {
			return cmp.Compare(a.key, b.key)
		}
		return cmp.Compare(a.index, b.index)
	})
	s.high = len(s.ranking) - 1
}

// at is the load data at a place of the ranking.
func (s *shedding) at(rank int) *cluster.BrokerLoad { return &s.snap.Load[s.ranking[rank].index] }

// multiplier is the fraction of the average below which a broker is underloaded.
func (s *shedding) multiplier() float64 {
	return min(0.5, max(0, s.conf.LoadBalancerBrokerLoadTargetStd/2))
}

// underloaded says whether a broker has next to nothing: of the average load, or of the hottest broker's throughput.
func (s *shedding) underloaded(d *event.BrokerLoadData) bool {
	m := s.multiplier()
	return d.WeightedMaxEMA < s.avg*m || d.MsgThroughputEMA < s.at(s.high).Data.MsgThroughputEMA*m
}

// overloaded says whether a broker is above the overload threshold and well above the average.
func (s *shedding) overloaded(d *event.BrokerLoadData) bool {
	return d.WeightedMaxEMA > s.overLimit() && d.WeightedMaxEMA > s.avg+s.conf.LoadBalancerBrokerLoadTargetStd
}

func (s *shedding) overLimit() float64 {
	return float64(s.conf.LoadBalancerBrokerOverloadedThresholdPercentage) / 100
}

// condition is which condition for shedding holds, nil for none.
func (s *shedding) condition() *plan.Code {
	switch {
	case s.std > s.conf.LoadBalancerBrokerLoadTargetStd:
		return &StdAboveTarget
	case s.underloaded(&s.at(s.low).Data):
		return &BrokerUnderloaded
	case s.overloaded(&s.at(s.high).Data):
		return &BrokerOverloaded
	}
	return nil
}

// compared is what the conditions other than the standard deviation compare at the present places of the ranking.
func (s *shedding) compared() []plan.Number {
	least, most, m := &s.at(s.low).Data, &s.at(s.high).Data, s.multiplier()
	return []plan.Number{
		plan.N("least", least.WeightedMaxEMA), plan.N("underLimit", s.avg*m),
		plan.N("leastThroughput", least.MsgThroughputEMA), plan.N("throughputLimit", most.MsgThroughputEMA*m),
		plan.N("most", most.WeightedMaxEMA), plan.N("overLimit", s.overLimit()),
	}
}

// due says whether the condition has held for long enough; otherwise it ends the cycle.
func (s *shedding) due() bool {
	if len(s.ranking) == 0 { // only with RankFreshLiveOnly: load data of others only
		s.end(Skip, NoBrokers, NoLoadHeard)
		return false
	}
	if s.holds = s.condition(); s.holds == nil {
		s.st.HitCount = 0
	} else {
		s.st.HitCount++
	}
	limit := s.conf.LoadBalancerSheddingConditionHitCountThreshold
	if s.st.HitCount > limit {
		return true
	}
	numbers := s.stdNumbers(s.compared()...)
	if s.holds == nil {
		s.end(Skip, HitCount, Balanced, numbers...)
	} else {
		s.end(Skip, HitCount, NotYet, append(numbers, plan.S("condition", s.holds.ID), plan.N("hits", s.st.HitCount), plan.N("limit", limit))...)
	}
	return false
}

// conclude says how the cycle ended.
func (s *shedding) conclude() {
	if n := len(s.plan.Decisions); n > 0 {
		s.st.HitCount = 0
		s.plan.Outcome = plan.Reason{Code: Planned.ID, Numbers: s.stdNumbers(plan.N("decisions", n), plan.N("pairs", s.pairs))}
		if s.tr != nil {
			s.plan.Outcome = Planned.Because(s.plan.Outcome.Numbers...)
		}
		return
	}
	condition := plan.S("condition", "no condition")
	if s.holds != nil {
		condition.Text = s.holds.ID
	}
	switch {
	case s.emptyData > 0:
		s.end(Skip, NoLoadData, NoTopBundles, s.stdNumbers(condition, plan.N("brokers", s.emptyData))...)
	case s.fewBundles > 0:
		s.end(Skip, NoBundles, NothingMovable, s.stdNumbers(condition, plan.N("brokers", s.fewBundles))...)
	default:
		s.end(Skip, HitCount, NoPairs, s.stdNumbers(condition, plan.N("brokers", len(s.ranking)),
			plan.N("limit", s.conf.LoadBalancerMaxNumberOfBrokerSheddingPerCycle))...)
	}
}

// end counts a cycle without decisions and says why there are none.
func (s *shedding) end(label, reason string, c plan.Code, numbers ...plan.Number) {
	s.st.Counters.Unload.add(label, reason)
	s.plan.Counts = []plan.Count{{Label: label, Reason: reason, N: 1}}
	s.plan.Outcome = c.Because(numbers...)
}

// stdNumbers are average and standard deviation with more numbers.
func (s *shedding) stdNumbers(more ...plan.Number) []plan.Number {
	return append(slices.Grow(more, 4), plan.N("avg", s.plan.LoadAvg), plan.N("std", s.plan.LoadStd), plan.N("stdAfter", s.std),
		plan.N("targetStd", s.conf.LoadBalancerBrokerLoadTargetStd))
}
