package simple_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
)

var _ plan.Manager = (*simple.Manager)(nil)

// sampled are the load reports of a real cluster of three brokers.
func sampled(t *testing.T) []*event.LoadReport {
	t.Helper()
	var out []*event.LoadReport
	for i := range 3 {
		text, err := os.ReadFile(fmt.Sprintf("testdata/cluster/load-report-%d.json", i+1))
		if err != nil {
			t.Fatal(err)
		}
		r := new(event.LoadReport)
		if err := json.Unmarshal(text, r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func snapshotOf(reports []*event.LoadReport) *cluster.Snapshot {
	snap := &cluster.Snapshot{Now: 1, Settings: settings.Defaults()}
	for _, r := range reports {
		snap.Brokers = append(snap.Brokers, cluster.Broker{ID: r.Name, Report: r})
		snap.Now = max(snap.Now, r.Timestamp)
		for _, b := range r.BundleStats {
			snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: b.Bundle, Namespace: event.NamespaceOf(b.Bundle), Owner: r.Name, Stats: b.Stats, Known: true})
		}
	}
	return snap.Index()
}

// TestAsARealCluster learns from the reports what the brokers had learnt when they made them. How long a broker had been
// learning follows from its memory allocation (80 MiB a bundle in the beginning, falling to 25); with that one number all its other
// allocations must come out, up to the steps in which it learnt. The ranks are those that the cluster answered to broker-resource-availability.
func TestAsARealCluster(t *testing.T) {
	reports := sampled(t)
	snap := snapshotOf(reports)
	latest := int64(0)
	for _, r := range reports {
		latest = max(latest, r.Timestamp)
	}
	ranks := map[string]int64{}
	for i, r := range reports {
		n := float64(len(r.BundleStats))
		elapsed := (80*n - r.AllocatedMemory) / (55 * n) * 86_400_000
		st := simple.NewState()
		st.Started, st.Quotas.Average, st.Quotas.Updated = true, event.DefaultResourceQuota(), latest-int64(math.Round(elapsed))
		next := new(simple.Manager).Update(snap, st).(*simple.State)
		k := &next.Rankings[i]
		ranks[k.Broker] = k.Rank
		want := event.ResourceQuota{MsgRateIn: r.AllocatedMsgRateIn, MsgRateOut: r.AllocatedMsgRateOut, BandwidthIn: r.AllocatedBandwidthIn,
			BandwidthOut: r.AllocatedBandwidthOut, Memory: r.AllocatedMemory, Dynamic: true}
		if diff := cmp.Diff(want, k.Allocated, cmpopts.EquateApprox(2e-6, 0)); diff != "" {
			t.Errorf("%s: allocated (-broker +Ballast):\n%s", r.Name, diff)
		}
		var s simple.ReportState
		made := s.Report(simple.Identity{Broker: r.Name}, r.Timestamp, *r.SystemResourceUsage, r.BundleStats, snap.Settings, next)
		if made.OverLoaded != r.OverLoaded || made.UnderLoaded != r.UnderLoaded || math.Abs(made.AllocatedCPU-r.AllocatedCPU) > 1e-6*r.AllocatedCPU {
			t.Errorf("%s: over %t under %t cpu %v, the broker's own report: %t %t %v", r.Name, made.OverLoaded, made.UnderLoaded, made.AllocatedCPU,
				r.OverLoaded, r.UnderLoaded, r.AllocatedCPU)
		}
	}
	if diff := cmp.Diff(map[string]int64{"127.0.0.1:18081": 99, "127.0.0.1:18082": 100, "127.0.0.1:18083": 100}, ranks); diff != "" {
		t.Errorf("ranks (-cluster +Ballast):\n%s", diff)
	}
}

func TestPlans(t *testing.T) {
	reports := sampled(t) // all three brokers are at 99.7 % CPU
	m := new(simple.Manager)
	cool := *reports[2]
	idle := event.SystemResourceUsage{CPU: event.ResourceUsage{Usage: 10, Limit: 200}}
	cool.SystemResourceUsage = &idle
	sole := *reports[0]
	sole.BundleStats = sole.BundleStats[:1]
	bare := *reports[0]
	bare.BundleStats = nil
	for _, c := range []struct {
		name    string
		reports []*event.LoadReport
		set     []string
		outcome string
		unloads []string // bundle from broker
		left    []string // codes of what was left out
		advice  int
	}{
		{"all hot", reports, nil, "NOTHING_TO_SHED", nil, []string{"NOT_BELOW_COMFORT", "NO_RECEIVER"}, 0},
		{"one cool", []*event.LoadReport{reports[0], reports[1], &cool}, nil, "SHEDDING", []string{
			"public/h2/0xd0000000_0xe0000000 from 127.0.0.1:18081", "public/h2/0xe0000000_0xf0000000 from 127.0.0.1:18082"}, []string{"NOT_OVERLOADED"}, 0},
		{"off", reports, []string{"loadBalancerEnabled", "false"}, "DISABLED", nil, nil, 0},
		{"dry run", []*event.LoadReport{reports[0], &cool}, []string{"loadBalancerSheddingEnabled", "false"}, "DRY_RUN", nil, []string{"NOT_OVERLOADED"}, 0},
		{"none hot", []*event.LoadReport{&cool}, nil, "NONE_OVERLOADED", nil, []string{"NOT_OVERLOADED"}, 0},
		{"no reports", nil, nil, "NO_REPORTS", nil, nil, 0},
		{"sole bundle", []*event.LoadReport{&sole, &cool}, nil, "NOTHING_TO_SHED", nil, []string{"NOT_OVERLOADED", "SOLE_BUNDLE"}, 1},
		{"no bundles", []*event.LoadReport{&bare, &cool}, nil, "NOTHING_TO_SHED", nil, []string{"NOT_OVERLOADED", "NO_BUNDLES"}, 0},
	} {
		snap := snapshotOf(c.reports)
		for i := 0; i < len(c.set); i += 2 {
			if err := settings.Set(snap.Settings, c.set[i], c.set[i+1]); err != nil {
				t.Fatal(err)
			}
		}
		trace := new(plan.Trace)
		p, st := m.Shed(snap, m.NewState(), nil, trace)
		var unloads, left []string
		for _, d := range p.Decisions {
			unloads = append(unloads, d.Bundle+" from "+d.Source)
			if d.Action != plan.Unload || d.Destination != "" || d.Why.Code != "OVERLOADED" || d.MsgRate <= 0 {
				t.Errorf("%s: decision %+v", c.name, d)
			}
		}
		for _, e := range trace.Entries {
			left = append(left, e.Why.Code)
		}
		slices.Sort(left)
		if diff := cmp.Diff([]any{c.outcome, c.unloads, c.left, c.advice}, []any{p.Outcome.Code, unloads, slices.Compact(left), len(p.Advice)}, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if p.Strategy != "simple" || p.At != snap.Now || strings.Contains(p.Outcome.Text, "{") {
			t.Errorf("%s: strategy %s at %d, outcome %s", c.name, p.Strategy, p.At, p.Outcome)
		}
		if c.outcome == "DRY_RUN" && len(st.(*simple.State).RecentlyUnloaded) != 1 {
			t.Errorf("%s: what a dry run would unload is not marked: %v", c.name, st.(*simple.State).RecentlyUnloaded)
		}
		again, _ := m.Shed(snap, st, nil, nil)
		if len(again.Advice) != 0 {
			t.Errorf("%s: the same advice came again: %v", c.name, again.Advice)
		}
	}
}

// TestUnreadPolicies: what cannot be read never means that there is no policy.
func TestUnreadPolicies(t *testing.T) {
	snap := snapshotOf(sampled(t))
	snap.Policies = policy.New(nil, nil, nil, map[string]string{"": "the metadata store does not answer"})
	m := new(simple.Manager)
	d, _ := m.Place(snap, "public/h2/0x00000000_0x10000000", m.NewState(), nil, nil)
	if d.Destination != "" || d.Why.Code != policy.Frozen.ID {
		t.Errorf("placed on %q: %v", d.Destination, d.Why)
	}
}

func TestRecordedUnloadsAreSpared(t *testing.T) {
	reports := sampled(t)
	cool := *reports[2]
	cool.SystemResourceUsage = &event.SystemResourceUsage{}
	snap := snapshotOf([]*event.LoadReport{reports[0], &cool})
	m := new(simple.Manager)
	p, st := m.Shed(snap, m.NewState(), nil, nil)
	if len(p.Decisions) != 1 {
		t.Fatalf("%d decisions: %s", len(p.Decisions), p.Outcome)
	}
	st = m.Record(st, p.Decisions[0], snap.Now)
	st = m.Record(st, plan.Decision{Action: plan.Split, Bundle: "a/b/0x00000000_0xffffffff"}, snap.Now)
	for _, c := range []struct {
		later int64
		want  int
	}{{1, 0}, {30*60_000 - 1, 0}, {30 * 60_000, 1}} {
		later := *snap
		later.Now = snap.Now + c.later
		got, _ := m.Shed(later.Index(), st, nil, nil)
		if len(got.Decisions) != c.want {
			t.Errorf("%d ms after the unload: %d decisions, want %d: %s", c.later, len(got.Decisions), c.want, got.Outcome)
		}
	}
}

// TestSameBandwidth: a quota that is what is stored is written all the same, because its inbound bandwidth is compared with the
// outbound one.
func TestSameBandwidth(t *testing.T) {
	st := simple.NewState()
	st.Quotas.Average = event.DefaultResourceQuota()
	st.Quotas.Bundles = map[string]event.ResourceQuota{"t/n/b": event.DefaultResourceQuota(), "t/n/a": event.DefaultResourceQuota()}
	count := func(o simple.Options) (out []string) {
		for _, w := range st.Quotas.Writes(o) {
			out = append(out, w.Bundle)
		}
		return out
	}
	if diff := cmp.Diff([]string{"", "t/n/a", "t/n/b"}, count(simple.Options{})); diff != "" {
		t.Errorf("as Pulsar (-want +got):\n%s", diff)
	}
	if got := count(simple.Options{SameBandwidth: true}); len(got) != 0 {
		t.Errorf("repaired: %q are written", got)
	}
	fixed := event.DefaultResourceQuota()
	fixed.Dynamic = false
	st.Quotas.Stored.Bundles = map[string]event.ResourceQuota{"t/n/a": fixed}
	if diff := cmp.Diff([]string{"", "t/n/b"}, count(simple.Options{})); diff != "" {
		t.Errorf("a stored quota that is not dynamic stays (-want +got):\n%s", diff)
	}
}

// TestTopicKinds: a broker that an isolation policy names gets non-persistent topics although it does not serve them.
func TestTopicKinds(t *testing.T) {
	r := event.NewLoadReport()
	r.Name, r.SystemResourceUsage, r.NonPersistentTopicsEnabled = "b1:8080", &event.SystemResourceUsage{}, false
	snap := &cluster.Snapshot{Now: 1, Settings: settings.Defaults(), Brokers: []cluster.Broker{{ID: r.Name, Report: &r}},
		Bundles:  []cluster.Bundle{{Name: "t/n/0x00000000_0xffffffff", Namespace: "t/n", NonPersistent: true}},
		Policies: policy.New([]policy.Isolation{{Name: "p", Namespaces: []string{"t/n"}, Primary: []string{"b1"}}}, nil, nil, nil)}
	for checked, want := range map[bool]string{false: "b1:8080", true: ""} {
		m := &simple.Manager{Options: simple.Options{CheckTopicKinds: checked}}
		d, _ := m.Place(snap.Index(), "t/n/0x00000000_0xffffffff", m.NewState(), nil, nil)
		if d.Destination != want {
			t.Errorf("checked %t: placed on %q: %s", checked, d.Destination, d.Why)
		}
	}
}

// TestReceiverMustBeRegistered: a report under a name that nobody has registered makes a receiver, unless repaired.
func TestReceiverMustBeRegistered(t *testing.T) {
	reports := sampled(t)
	cool := *reports[2]
	cool.SystemResourceUsage = &event.SystemResourceUsage{}
	for repaired, want := range map[bool]int{false: 1, true: 0} {
		snap := snapshotOf([]*event.LoadReport{reports[0], &cool})
		snap.Brokers[1].ID = "other:8080"
		m := &simple.Manager{Options: simple.Options{NeedReceiver: repaired}}
		if p, _ := m.Shed(snap.Index(), m.NewState(), nil, nil); len(p.Decisions) != want {
			t.Errorf("repaired %t: %d decisions, want %d: %s", repaired, len(p.Decisions), want, p.Outcome)
		}
	}
}

// TestStatesDoNotShare: what is done with a state does not show in another one that was made from the same.
func TestStatesDoNotShare(t *testing.T) {
	reports := sampled(t)
	cool := *reports[2]
	cool.SystemResourceUsage = &event.SystemResourceUsage{CPU: event.ResourceUsage{Usage: 1, Limit: 200}}
	snap := snapshotOf([]*event.LoadReport{&cool})
	m := new(simple.Manager)
	st := m.NewState()
	for i := range 3 { // leaves room behind the list of promises
		_, st = m.Place(snap, fmt.Sprintf("t/n/%d", i), st, nil, nil)
	}
	shed := func() plan.State { _, next := m.Shed(snap, st, nil, nil); return next }
	one, two := shed(), shed()
	_, one = m.Place(snap, "t/one/x", one, nil, nil)
	_, two = m.Place(snap, "t/two/y", two, nil, nil)
	promised := func(st plan.State) []string { return st.(*simple.State).Rankings[0].Preallocated }
	want := [][]string{{"t/n/0", "t/n/1", "t/n/2"}, {"t/n/0", "t/n/1", "t/n/2", "t/one/x"}, {"t/n/0", "t/n/1", "t/n/2", "t/two/y"}}
	if diff := cmp.Diff(want, [][]string{promised(st), promised(one), promised(two)}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestManagerEntry(t *testing.T) {
	e := simple.ManagerEntry(simple.Options{CountSplits: true})
	r := plan.Registry{Managers: []plan.Entry[plan.NewManager]{e}}
	for _, name := range []string{"simple", "Simple", "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl"} {
		found, err := r.Manager(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := found.New(plan.Parts{Settings: settings.Defaults()})
		if err != nil || !m.(*simple.Manager).Options.CountSplits {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

func TestReportDue(t *testing.T) {
	set := settings.Defaults()
	const now = int64(10_000_000)
	usage := event.SystemResourceUsage{CPU: event.ResourceUsage{Usage: 40, Limit: 400}}
	busier := usage
	busier.CPU.Usage = 84 // 11 points more
	tenMore := usage
	tenMore.CPU.Usage = 80
	last := func(age int64) *event.LoadReport {
		r := event.NewLoadReport()
		r.Timestamp, r.SystemResourceUsage = now-age, &usage
		return &r
	}
	unknown := last(70_000)
	unknown.SystemResourceUsage = nil
	for _, c := range []struct {
		name    string
		state   simple.ReportState
		bundles int64
		usage   event.SystemResourceUsage
		want    string
		due     bool
	}{
		{"the first", simple.ReportState{}, 0, usage, "REPORT_FORCED", true},
		{"forced", simple.ReportState{Last: last(1), Forced: true}, 0, usage, "REPORT_FORCED", true},
		{"at the maximum", simple.ReportState{Last: last(900_000), UsageChecked: now}, 0, usage, "USAGE_JUST_CHECKED", false},
		{"old", simple.ReportState{Last: last(900_001)}, 0, usage, "REPORT_OLD", true},
		{"young", simple.ReportState{Last: last(5000)}, 7, busier, "REPORT_YOUNG", false},
		{"more bundles", simple.ReportState{Last: last(5001)}, 7, usage, "BUNDLES_CHANGED", true},
		{"just checked", simple.ReportState{Last: last(5001), UsageChecked: now - 60_000}, 0, busier, "USAGE_JUST_CHECKED", false},
		{"busier", simple.ReportState{Last: last(70_000), UsageChecked: now - 60_001}, 0, busier, "USAGE_CHANGED", true},
		{"the same", simple.ReportState{Last: last(70_000), UsageChecked: now - 60_001}, 0, usage, "USAGE_UNCHANGED", false},
		{"ten points, at the threshold", simple.ReportState{Last: last(70_000), UsageChecked: now - 60_001}, 0, tenMore, "USAGE_UNCHANGED", false},
		{"unknown before", simple.ReportState{Last: unknown, UsageChecked: now - 60_001}, 0, usage, "USAGE_CHANGED", true},
	} {
		due, why := c.state.Due(now, c.bundles, c.usage, set)
		if due != c.due || why.Code != c.want || strings.Contains(why.Text, "{") {
			t.Errorf("%s: %t, %s: want %t, %s", c.name, due, why, c.due, c.want)
		}
		if c.state.Forced {
			t.Errorf("%s: still forced", c.name)
		}
	}
}

func TestHeapAverage(t *testing.T) {
	set := settings.Defaults() // 24 intervals in two minutes
	var s simple.ReportState
	var got []int64
	for _, used := range []int64{100, 100, 340, 340, 0} {
		s.AddHeap(used, set)
		got = append(got, s.Heap)
	}
	if diff := cmp.Diff([]int64{100, 100, 110, 119, 114}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	set.LoadBalancerReportUpdateMinIntervalMillis = 0
	if s.AddHeap(7, set); s.Heap != 7 {
		t.Errorf("without an interval: %d, want the measurement", s.Heap)
	}
	if got := s.WithHeap(event.SystemResourceUsage{Memory: event.ResourceUsage{Usage: 1, Limit: 9}}).Memory; got != (event.ResourceUsage{Usage: 7, Limit: 9}) {
		t.Errorf("memory %v", got)
	}
}

func TestReportGainsAndLosses(t *testing.T) {
	bundles := func(names ...string) []event.NamedBundleStats {
		out := make([]event.NamedBundleStats, len(names))
		for i, n := range names {
			out[i].Bundle = n
		}
		return out
	}
	st := simple.NewState()
	st.Rankings = []simple.Ranking{{Broker: "b:1", Preallocated: []string{"x/b", "x/d"}}}
	var s simple.ReportState
	first := s.Report(simple.Identity{Broker: "b:1"}, 1, event.NewSystemResourceUsage(), bundles("x/a", "x/b"), settings.Defaults(), st)
	s.Written(&first)
	second := s.Report(simple.Identity{Broker: "b:1"}, 2, event.NewSystemResourceUsage(), bundles("x/b", "x/c"), settings.Defaults(), st)
	if diff := cmp.Diff([][]string{{"x/a", "x/b"}, nil, {"x/c"}, {"x/a"}},
		[][]string{first.BundleGains, first.BundleLosses, second.BundleGains, second.BundleLosses}, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if second.AllocatedMemory != 160 || second.PreAllocatedMemory != 80 { // two bundles and x/d, by the built-in quota
		t.Errorf("allocated %v, promised %v", second.AllocatedMemory, second.PreAllocatedMemory)
	}
	if s.UsageChecked != 1 || second.StartTimestamp != 2 {
		t.Errorf("usage looked at %d, started %d", s.UsageChecked, second.StartTimestamp)
	}
}
