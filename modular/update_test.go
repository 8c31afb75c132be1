package modular_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
)

// TestUpdateHistories follows a bundle from its first report to the last.
func TestUpdateHistories(t *testing.T) {
	w := describe(t, "broker b1", "broker b2", "broker b3 silent=true", "bundle t/n/0 on=b1 rate=10 topics=3 stored=false", "bundle t/n/1 on=b2 rate=1 stored=false", "bundle t/n/2 stored=false")
	m := manager(t, modular.Options{})
	snap, st, changes := m.Update(w.snapshot(), nil)
	want := event.BundleData{
		ShortTermData: event.TimeAverageMessageData{MaxSamples: 10, NumSamples: 1, MsgRateIn: 10},
		LongTermData:  event.TimeAverageMessageData{MaxSamples: 1000, NumSamples: 1, MsgRateIn: 10}, Topics: 3,
	}
	if diff := cmp.Diff(&want, snap.Bundles[0].Data); diff != "" {
		t.Errorf("the first sample:\n%s", diff)
	}
	if snap.Bundles[2].Data != nil {
		t.Errorf("a bundle that nobody reports has the history %+v", snap.Bundles[2].Data)
	}
	if got := snap.Brokers[0].TimeAverage; got == nil || got.LongTermMsgRateIn != 10 || snap.Brokers[2].TimeAverage != nil {
		t.Errorf("time averages: %+v, of a silent broker %+v", got, snap.Brokers[2].TimeAverage)
	}
	wantSlice(t, "new", changes.NewBundles, []string{longBundle("t/n/0"), longBundle("t/n/1")})

	w.add(t, "bundle t/n/0 rate=20", "bundle t/n/2 on=b2")
	w.bundle("t/n/1").owner = nil // its topics were unloaded
	second, st, changes := m.Update(w.snapshot(), st)
	if got := second.Bundles[0].Data.LongTermData; got.MsgRateIn != 15 || got.NumSamples != 2 {
		t.Errorf("the second sample: %+v", got)
	}
	wantSlice(t, "new", changes.NewBundles, []string{longBundle("t/n/2")})
	wantSlice(t, "gone", changes.GoneBundles, []string{longBundle("t/n/1")})
	if snap.Bundles[0].Data.LongTermData.MsgRateIn != 10 {
		t.Error("the snapshot of before has changed")
	}

	w.brokers = w.brokers[:1]
	_, st, changes = m.Update(w.snapshot(), st)
	wantSlice(t, "dead", changes.DeadBrokers, []string{"b2:8080", "b3:8080"})
	wantSlice(t, "registered", st.(*modular.State).Registered, []string{"b1:8080"})
}

// TestUpdateStored holds that a bundle begins with what is stored of it.
func TestUpdateStored(t *testing.T) {
	w := describe(t, "broker b1", "bundle t/n/0 on=b1 rate=10", "bundle t/n/1 rate=7")
	in := w.snapshot()
	in.Bundles[0].Data.LongTermData.NumSamples = 3 // of 10 msg/s each
	w.add(t, "bundle t/n/0 rate=50")
	in.Brokers[0].Local.LastStats[0].Stats.MsgRateIn = 50
	out, _, _ := manager(t, modular.Options{}).Update(in, nil)
	if got := out.Bundles[0].Data.LongTermData; got.NumSamples != 4 || got.MsgRateIn != 20 {
		t.Errorf("%+v, want 4 samples of 20", got)
	}
	if got := out.Bundles[1].Data; got == nil || got.LongTermData.MsgRateIn != 7 {
		t.Errorf("what is stored of a bundle that nobody reports: %+v", got)
	}
	if in.Bundles[0].Data.LongTermData.NumSamples != 3 || in.Brokers[0].TimeAverage.LongTermMsgRateIn != 10 {
		t.Error("Update changed the snapshot it was given")
	}
}

// TestOneSamplePerReport holds that in Pulsar every update adds a sample of every bundle, and with the option only a new
// report does.
func TestOneSamplePerReport(t *testing.T) {
	for one, want := range map[bool]int32{false: 4, true: 2} {
		w := describe(t, "broker b1", "broker b2", "bundle t/n/0 on=b1 rate=10 stored=false")
		m := manager(t, modular.Options{OneSamplePerReport: one})
		old := w.snapshot()
		_, st, _ := m.Update(old, nil)
		_, st, _ = m.Update(old, st)
		w.now += 5000
		fresh := w.snapshot()
		_, st, _ = m.Update(fresh, st)
		out, _, _ := m.Update(fresh, st)
		if got := out.Bundles[0].Data.LongTermData.NumSamples; got != want {
			t.Errorf("one %v: %d samples of two reports, want %d", one, got, want)
		}
	}
}

// TestUpdateUnlisted holds that a report of a bundle that the snapshot does not list is not lost, and two reports of one
// bundle are two samples.
func TestUpdateUnlisted(t *testing.T) {
	w := describe(t, "broker b1", "broker b2", "bundle t/n/0 on=b1 rate=10 stored=false")
	in := w.snapshot()
	ghost := event.NamedBundleStats{Bundle: "t/n/ghost", Stats: event.NamespaceBundleStats{MsgRateIn: 4}}
	twice := event.NamedBundleStats{Bundle: longBundle("t/n/0"), Stats: event.NamespaceBundleStats{MsgRateIn: 30}}
	in.Brokers[1].Local.LastStats = []event.NamedBundleStats{ghost, twice}
	out, next, _ := manager(t, modular.Options{}).Update(in, nil)
	st := next.(*modular.State)
	if d := st.History.Get(-1, "t/n/ghost"); d == nil || d.LongTermData.MsgRateIn != 4 {
		t.Errorf("ghost: %+v", d)
	}
	if d := out.Bundles[0].Data.LongTermData; d.NumSamples != 2 || d.MsgRateIn != 20 {
		t.Errorf("reported twice: %+v", d)
	}
	if got := out.Brokers[1].TimeAverage.LongTermMsgRateIn; got != 24 {
		t.Errorf("b2 sums up to %v", got)
	}
}

// TestPreallocations holds what an update leaves of assignments: in Pulsar what the leader itself owns and does not report,
// with KeepPreallocations what nobody else owns and the broker does not report.
func TestPreallocations(t *testing.T) {
	for _, c := range []struct {
		name           string
		lines          []string
		owner          string
		pulsar, repair bool // still pre-allocated on b1
		assigned       bool // with the repair an assignment is answered again
	}{
		{"nothing is known yet", nil, "", false, true, true},
		{"owned by its broker", nil, "b1:8080", false, true, true},
		{"owned by its broker, the leader", []string{"cluster leader=b1"}, "b1:8080", true, true, true},
		{"owned by another broker", nil, "b2:8080", false, false, false},
		{"owned by the leader, another broker", []string{"cluster leader=b2"}, "b2:8080", true, false, false},
		{"reported", []string{"cluster leader=b1", "bundle t/n/0 on=b1"}, "b1:8080", false, false, false},
		{"its broker is silent", []string{"broker b1 silent=true"}, "", false, false, true},
	} {
		for _, keep := range []bool{false, true} {
			w := describe(t, "broker b1", "broker b2", "bundle t/n/0")
			m, st := manager(t, modular.Options{KeepPreallocations: keep}), modular.NewState()
			st.Preallocate("b1:8080", modular.Preallocation{Bundle: longBundle("t/n/0"), At: w.now})
			w.add(t, c.lines...)
			snap := w.snapshot()
			snap.Bundles[0].Owner = c.owner
			_, next, _ := m.Update(snap, st)
			after := next.(*modular.State)
			want := c.pulsar
			if keep {
				want = c.repair
			}
			if got := after.Preallocated.Get(-1, "b1:8080") != nil; got != want {
				t.Errorf("%s, keep %v: pre-allocated %v, want %v", c.name, keep, got, want)
			}
			if _, assigned := after.Assigned[longBundle("t/n/0")]; assigned != (keep && c.assigned) && c.name != "its broker is silent" {
				t.Errorf("%s, keep %v: assigned %v", c.name, keep, assigned)
			}
			if st.Preallocated.Get(-1, "b1:8080") == nil {
				t.Errorf("%s: Update changed the state it was given", c.name)
			}
		}
	}
}

// TestAssignmentsOfTheDead holds that an assignment to a broker that is gone is forgotten: the bundle is placed anew.
func TestAssignmentsOfTheDead(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w := describe(t, "broker b1", "broker b2 cpu=50")
		m := manager(t, modular.Options{KeepPreallocations: keep})
		_, st, _ := m.Update(w.snapshot(), nil)
		d, st := m.Place(w.snapshot(), longBundle("t/n/0"), st, nil, nil)
		if short(d.Destination) != "b1" {
			t.Fatal(d.Destination)
		}
		w.brokers = w.brokers[1:]
		_, st, _ = m.Update(w.snapshot(), st)
		if d, _ = m.Place(w.snapshot(), longBundle("t/n/0"), st, nil, nil); short(d.Destination) != "b2" {
			t.Errorf("keep %v: placed on %s, which is gone", keep, d.Destination)
		}
	}
}

// TestPreallocatedDataFollows holds that a kept pre-allocation counts with the averages of now.
func TestPreallocatedDataFollows(t *testing.T) {
	w := describe(t, "cluster leader=b1", "broker b1", "broker b2", "bundle t/n/0 on=b2 rate=70 stored=false")
	st := modular.NewState()
	st.Preallocate("b1:8080", modular.Preallocation{Bundle: longBundle("t/n/0")})
	snap := w.snapshot()
	snap.Bundles[0].Owner = "b1:8080" // on its way: b2 still reports it
	(modular.LeastLongTermMessageRate{}).Score(snap, 0, st)
	_, next, _ := manager(t, modular.Options{}).Update(snap, st)
	p := next.(*modular.State).Preallocated.Get(-1, "b1:8080")
	if p == nil || p.Bundles[0].Data.LongTermData.MsgRateIn != 70 {
		t.Errorf("pre-allocated: %+v", p)
	}
	if got := (modular.LeastLongTermMessageRate{}).Score(snap, 0, next); got != 70 {
		t.Errorf("b1 counts for %v", got)
	}
}

// TestSplitRules holds what is asked of a hot bundle besides being hot.
func TestSplitRules(t *testing.T) {
	two := []string{"broker b1", "broker b2"}
	hot := "bundle t/n/0 on=b1 topics=5000"
	for _, c := range []struct {
		name  string
		lines []string
		want  []string // bundles
		after bool     // unloaded afterwards
		code  string   // in the log or the outcome
	}{
		{"hot", append(slices.Clone(two), hot), []string{"t/n/0"}, true, modular.Splitting.ID},
		{"switched off", append(slices.Clone(two), hot, "set loadBalancerAutoBundleSplitEnabled=false"), nil, false, modular.Disabled.ID},
		{"alone", []string{"broker b1", hot}, nil, false, modular.TooFewBrokers.ID},
		{"no unload", append(slices.Clone(two), hot, "set loadBalancerAutoUnloadSplitBundlesEnabled=false"), []string{"t/n/0"}, false, modular.Splitting.ID},
		{"policies keep it", append(slices.Clone(two), hot, "isolation p namespaces=t/n primary=b1"), []string{"t/n/0"}, false, modular.Splitting.ID},
		{"range of one", append(slices.Clone(two), "bundle t/n/0x00000000_0x00000001 on=b1 topics=5000"), nil, false, modular.RangeTooSmall.ID},
		{"range of none", append(slices.Clone(two), "bundle t/n/0xzz_0x10 on=b1 topics=5000"), nil, false, modular.RangeTooSmall.ID},
		{"namespace is full", append(slices.Clone(two), hot, "set loadBalancerNamespaceMaximumBundles=1"), nil, false, modular.NamespaceFull.ID},
		{"sessions", append(slices.Clone(two), "bundle t/n/0 on=b1 topics=2 sessions=1001"), []string{"t/n/0"}, true, modular.SplitSessions.ID},
		{"bandwidth", append(slices.Clone(two), "bundle t/n/0 on=b1 topics=2 throughput=101Mi"), []string{"t/n/0"}, true, modular.SplitBandwidth.ID},
		{"below every limit", append(slices.Clone(two), "bundle t/n/0 on=b1 topics=1000 sessions=1000 rate=30k throughput=100Mi"), nil, false, modular.NotHot.ID},
	} {
		w, trace := describe(t, c.lines...), &plan.Trace{}
		p, _ := manager(t, modular.Options{}).Split(w.snapshot(), nil, trace)
		wantSlice(t, c.name, bundles(p), c.want)
		found := hasReason(trace, plan.Code{ID: c.code}) || p.Outcome.Code == c.code
		for _, d := range p.Decisions {
			found = found || d.Why.Code == c.code
			if d.UnloadAfter != c.after || d.Action != plan.Split || d.Source != "b1:8080" || len(d.Boundaries) != 1 || d.Boundaries[0] != "0x08000000" {
				t.Errorf("%s: %+v", c.name, d)
			}
		}
		if !found {
			t.Errorf("%s: nobody says %s: %s\n%s", c.name, c.code, p.Outcome, logged(trace))
		}
	}
}

// TestSplitAlgorithm holds that the boundary is left to the cluster where it depends on the topics.
func TestSplitAlgorithm(t *testing.T) {
	for algorithm, want := range map[string]int{"range_equally_divide": 1, "unheard_of": 1, "topic_count_equally_divide": 0, "flow_or_qps_equally_divide": 0} {
		w := describe(t, "broker b1", "broker b2", "bundle t/n/0 on=b1 topics=5000", "set defaultNamespaceBundleSplitAlgorithm="+algorithm)
		p, _ := manager(t, modular.Options{}).Split(w.snapshot(), nil, nil)
		if len(p.Decisions) != 1 || len(p.Decisions[0].Boundaries) != want {
			t.Errorf("%s: %+v", algorithm, p.Decisions)
		}
	}
}

// TestSplitOfTheUnlisted holds that a bundle that its namespace does not have any more is not split.
func TestSplitOfTheUnlisted(t *testing.T) {
	w, trace := describe(t, "broker b1", "broker b2", "bundle t/n/0 on=b1 topics=2"), &plan.Trace{}
	snap := w.snapshot()
	snap.Brokers[0].Local.LastStats[0].Bundle = longBundle("t/n/9")
	snap.Brokers[0].Local.LastStats[0].Stats.Topics = 5000
	p, _ := manager(t, modular.Options{}).Split(snap, nil, trace)
	if len(p.Decisions) != 0 || !hasReason(trace, modular.NotABundle) {
		t.Errorf("%+v\n%s", p.Decisions, logged(trace))
	}
}

// TestBandwidthLimitWraps holds that a limit of 2048 MiB/s is negative in Pulsar: every bundle is above it.
func TestBandwidthLimitWraps(t *testing.T) {
	for wide, want := range map[bool]int{false: 1, true: 0} {
		w := describe(t, "broker b1", "bundle t/n/0 on=b1 topics=2 throughput=1", "set loadBalancerNamespaceBundleMaxBandwidthMbytes=2048")
		got, _ := modular.BundlesToSplit(w.snapshot(), modular.Options{WideBandwidthLimit: wide}, func(string) (int, bool) { return 1, true }, nil)
		if len(got) != want {
			t.Errorf("wide %v: %d splits, want %d", wide, len(got), want)
		}
	}
}

// TestBundleDataToStore holds which histories the leader stores.
func TestBundleDataToStore(t *testing.T) {
	w := describe(t, "broker b1", "broker b2 silent=true", "bundle t/n/0..5 on=b1 throughput=1M", "bundle t/m/3 on=b1 throughput=9M", "bundle t/x/0 on=b1 throughput=50M",
		"bundle t/n/6 stored=false", "bundle t/m/4 on=b1 throughput=7M", "set loadBalancerSheddingExcludedNamespaces=t/x loadBalancerMaxNumberOfBundlesInBundleLoadReport=2")
	names := func() (out []string) {
		snap := w.snapshot()
		for _, i := range modular.BundleDataToStore(snap) {
			out = append(out, short(snap.Bundles[i].Name))
		}
		return out
	}
	wantSlice(t, "two of one reporting broker", names(), []string{"t/m/3", "t/m/4"})
	w.add(t, "broker b2 silent=false")
	wantSlice(t, "two of each of two", names()[:2], []string{"t/m/3", "t/m/4"})
	if got := names(); len(got) != 4 {
		t.Errorf("two of each of two brokers: %v", got)
	}
	w.add(t, "set loadBalancerMaxNumberOfBundlesInBundleLoadReport=9")
	if got := names(); len(got) != 8 || got[0] != "t/m/3" {
		t.Errorf("all that there are: %v", got)
	}
	w.add(t, "set loadBalancerMaxNumberOfBundlesInBundleLoadReport=0")
	wantSlice(t, "no limit, in order", names(), []string{"t/n/0", "t/n/1", "t/n/2", "t/n/3", "t/n/4", "t/n/5", "t/m/3", "t/m/4"})
	w.add(t, "set loadBalancerMaxNumberOfBundlesInBundleLoadReport=9223372036854775807")
	if got := names(); len(got) != 8 {
		t.Errorf("the greatest limit: %v", got)
	}
}

// TestStateJSON holds that a state with something in every field comes back from JSON without loss and decides alike.
func TestStateJSON(t *testing.T) {
	w := hot(t)
	m := manager(t, modular.Options{})
	snap, st, _ := m.Update(w.snapshot(), nil)
	d, st := m.Place(snap, longBundle("x/y/0"), st, nil, nil)
	p, st := m.Shed(snap, st, nil, nil)
	if len(p.Decisions) == 0 || d.Destination == "" {
		t.Fatal(p.Outcome, d.Why)
	}
	st = m.Record(st, p.Decisions[0], w.now)
	s := st.(*modular.State)
	modular.LeastResourceUsageWithWeight{}.Place(snap, "", all(snap), s, nil, nil)
	modular.RoundRobinBrokerSelector{}.Place(snap, "", all(snap), s, nil, nil)
	modular.AvgShedder{}.Place(snap, longBundle("t/n/0"), all(snap), s, nil, nil)
	s.Threshold.Entries()[0].Value = modular.Double(math.NaN())
	s.History.Entries()[0].Value.LongTermData.MsgRateIn = math.Inf(1)
	s.Avg.Plan = map[string]modular.AvgPlanned{"b": {Source: "x", Destination: "y"}}
	*hits(s, "b1:8080") = modular.AvgHits{Low: 3, High: 1}

	text, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	back := m.NewState()
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(again)); diff != "" {
		t.Error(diff)
	}
	first, _ := m.Shed(snap, st, nil, nil)
	second, _ := m.Shed(snap, back, nil, nil)
	if diff := cmp.Diff(first, second, cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("the read state decides otherwise:\n%s", diff)
	}
}

func hits(s *modular.State, broker string) *modular.AvgHits {
	h, _ := s.Avg.Hits.Add(-1, broker)
	return h
}

// TestStateVersion holds that a state of another version is refused.
func TestStateVersion(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"version":1}`: true, `{"version":2}`: false, `{}`: false, `{"version":1,"threshold":[{"key":"a","value":1},{"key":"a","value":2}]}`: false,
		`{"version":1,"threshold":[{"key":"a","value":"x"}]}`: false, `{"version":1,"threshold":[{"key":"a","value":"Infinity"}]}`: true,
		`{"version":1,"threshold":[{"key":"a","value":"-Infinity"},{"key":"b","value":null}]}`: true, `[]`: false,
	} {
		if err := json.Unmarshal([]byte(text), modular.NewState()); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// counting is a shedding strategy of another package that remembers something.
type counting struct{}

type count struct{ Calls int }

func (counting) NewMemory() any { return &count{} }

func (counting) Shed(_ *cluster.Snapshot, state plan.State, _ *plan.Trace) (plan.Plan, plan.State) {
	st := state.(*modular.State)
	old, ok := st.Other.(*count)
	if !ok {
		return plan.Plan{}, nil
	}
	next := *st
	next.Other = &count{Calls: old.Calls + 1}
	return plan.Plan{Strategy: "counting"}, &next
}

// TestForeignStrategy holds that the memory of a strategy that is not of this package goes through JSON with its type.
func TestForeignStrategy(t *testing.T) {
	m, err := modular.New(counting{}, modular.RoundRobinBrokerSelector{}, modular.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := describe(t, "broker b1", "broker b2")
	_, st := m.Shed(w.snapshot(), m.NewState(), nil, nil)
	text, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	back := m.NewState()
	if err := json.Unmarshal(text, back); err != nil {
		t.Fatal(err)
	}
	_, st = m.Shed(w.snapshot(), back, nil, nil)
	if got, ok := st.(*modular.State).Other.(*count); !ok || got.Calls != 2 {
		t.Errorf("remembers %#v", st.(*modular.State).Other)
	}
	kept := modular.NewState() // without the strategy's memory it returns no state: the manager keeps its own
	kept.RecentlyUnloaded = map[string]int64{"b": w.now}
	if _, st = m.Shed(w.snapshot(), kept, nil, nil); st.(*modular.State).RecentlyUnloaded["b"] != w.now {
		t.Error("the manager's memory is lost")
	}
}
