package simple

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// The strategies of loadBalancerPlacementStrategy. Any other name means weightedRandomSelection.
const (
	leastLoadedServer       = "leastLoadedServer"
	leastMsgPerSecond       = "leastMsgPerSecond"
	weightedRandomSelection = "weightedRandomSelection"
)

func strategyOf(snap *cluster.Snapshot) string {
	switch s := snap.Settings.LoadBalancerPlacementStrategy; s {
	case leastLoadedServer, leastMsgPerSecond:
		return s
	}
	return weightedRandomSelection
}

// Update takes the load reports of a new picture of the cluster into the quotas and ranks the brokers. The given state is
// not changed. The other methods call it themselves for a snapshot of another time than the last one; call it for every picture
// with new reports, as Pulsar ranks whenever a report was written. Without any report the old ranking stays.
// Pulsar: updateRanking, and start for the first call.
func (m *Manager) Update(snap *cluster.Snapshot, state plan.State) plan.State {
	st := stateOf(state).next()
	list := reports(snap)
	st.Quotas.learn(list)
	st.Factor = st.Quotas.CPUFactor
	if len(list) > 0 {
		st.rank(list, strategyOf(snap), m.Options)
	}
	if !st.Started {
		st.Started = true
		st.Quotas.Average, st.Quotas.Updated = st.Quotas.Stored.OfDefault(), snap.Now
	}
	st.RankedAt = snap.Now
	return st
}

// ranked is a state whose rankings are those of the snapshot.
func (m *Manager) ranked(snap *cluster.Snapshot, state plan.State) *State {
	if st := stateOf(state); st.Started && st.RankedAt == snap.Now {
		return st
	}
	return m.Update(snap, state).(*State)
}

// rank replaces the rankings. What a broker was promised and does not report yet stays promised. The bundles that count as
// served are those of the rankings before, minus what is reported now and was promised (Options.CurrentRanges: those of
// now). Pulsar: doLoadRanking.
func (st *State) rank(list []report, strategy string, o Options) {
	before := make(map[string]int, len(st.Rankings))
	for i := range st.Rankings {
		before[st.Rankings[i].Broker] = i
	}
	fresh := make([]Ranking, len(list))
	quota := st.Quotas.Stored.OfDefault()
	for i, report := range list {
		r := Ranking{Broker: report.broker, Usage: *report.SystemResourceUsage, Loaded: bundlesOf(report.LoadReport)}
		if at, ok := before[r.Broker]; ok {
			r.Preallocated = minus(st.Rankings[at].Preallocated, r.Loaded)
			st.Rankings[at].Preallocated = r.Preallocated
		}
		r.Allocated, r.PreallocatedQuota = sum(r.Loaded, st.Quotas.look), sum(r.Preallocated, st.Quotas.look)
		r.reckon(float64(st.Factor))
		r.Rank = r.rank(strategy, capacity(&r.Usage, quota, float64(st.Factor), o))
		fresh[i] = r
	}
	served := st.Rankings
	if o.CurrentRanges {
		served, st.Served = fresh, nil
	}
	for i := range served {
		if st.Served == nil {
			st.Served = make(map[string][]string)
		}
		st.Served[served[i].Broker] = union(served[i].Loaded, served[i].Preallocated)
	}
	st.Rankings, st.index = fresh, nil
}

// bundlesOf are the bundles of a report, each once.
func bundlesOf(r *event.LoadReport) []string {
	out := make([]string, 0, len(r.BundleStats))
	for i := range r.BundleStats {
		out = append(out, r.BundleStats[i].Bundle)
	}
	return union(out, nil)
}

// minus is the members of a list that are not in another.
func minus(list, other []string) []string {
	if len(list) == 0 {
		return nil
	}
	set := setOf(other)
	var out []string
	for _, x := range list {
		if _, ok := set[x]; !ok {
			out = append(out, x)
		}
	}
	return out
}

// union is both lists, each member once.
func union(a, b []string) []string {
	seen := make(map[string]struct{}, len(a)+len(b))
	out := make([]string, 0, len(a)+len(b))
	for _, list := range [2][]string{a, b} {
		for _, x := range list {
			if _, ok := seen[x]; !ok {
				seen[x] = struct{}{}
				out = append(out, x)
			}
		}
	}
	return out
}
