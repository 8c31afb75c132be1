package extensible

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/benchstate"
	"github.com/ballast-lb/ballast/internal/jsonfloat"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

func TestRecord(t *testing.T) {
	m := New(nil, nil, Options{})
	first := NewState()
	var st plan.State = first
	for _, d := range []plan.Decision{
		{Action: plan.Transfer, Bundle: "t/n/1", Source: "a:1", Destination: "b:1", Label: Success, PulsarReason: Overloaded},
		{Action: plan.Unload, Bundle: "t/n/2", Source: "a:1", Label: Success, PulsarReason: Underloaded},
		{Action: plan.Transfer, Bundle: "t/n/3", Source: "c:1", Label: Success, PulsarReason: Admin},
		{Action: plan.Transfer, Bundle: "t/n/4", Source: "d:1", Label: Failure, PulsarReason: Overloaded},
		{Action: plan.Split, Bundle: "t/n/5", Source: "a:1", Label: Success, PulsarReason: Topics},
		{Action: plan.Split, Bundle: "t/n/6", Source: "a:1", Label: Failure},
		{Action: plan.Place, Bundle: "t/n/7", Destination: "a:1", Label: Success},
		{Action: plan.Transfer, Bundle: "t/n/8", Source: "a:1", Label: Success, PulsarReason: "from elsewhere"},
	} {
		st = m.Record(st, d, 77)
	}
	got := st.(*State)
	// What an operator ordered is not left alone for the grace period (t/n/3).
	if diff := cmp.Diff(map[string]int64{"t/n/1": 77, "t/n/2": 77, "t/n/8": 77}, got.UnloadedBundles); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]int64{"a:1": 77, "c:1": 77}, got.UnloadedBrokers); diff != "" {
		t.Error(diff)
	}
	text, err := json.Marshal(got.Counters)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"assign":{},"unload":{"Failure/Unknown":1,"Success/Admin":1,"Success/Overloaded":1,"Success/Underloaded":1},` +
		`"unloadBrokers":2,"unloadBundles":4,"loadAvg":0,"loadStd":0,"split":{"Failure/Unknown":1,"Success/Topics":1},"splitBundles":1}`
	if string(text) != want {
		t.Errorf("counters %s", text)
	}
	if first.UnloadedBundles != nil || first.Counters.UnloadBundles != 0 {
		t.Errorf("the first state was changed: %+v", first)
	}
	// The next cycle counts its brokers anew.
	snap := benchstate.New(1, 2, 4, 0).Extensible(10)
	_, st = m.Shed(snap, st, nil, nil)
	st = m.Record(st, plan.Decision{Action: plan.Unload, Bundle: "t/n/9", Source: "a:1", Label: Success, PulsarReason: Overloaded}, 99)
	if n := st.(*State).Counters.UnloadBrokers; n != 3 {
		t.Errorf("%d brokers, want 3", n)
	}
}

func TestUnreadable(t *testing.T) {
	shedder := &TransferShedder{}
	st := NewState()
	st.HitCount = 2
	p, next := shedder.Unreadable(5, st, errors.New("time-out"))
	if p.Outcome.Code != RegistryUnreadable.ID || !strings.Contains(p.Outcome.Text, "time-out") || len(p.Decisions) > 0 || p.At != 5 {
		t.Errorf("plan %+v", p)
	}
	if got := next.(*State); got.HitCount != 2 || got.Counters.Unload.Pairs()[10] != (plan.Count{Label: Failure, Reason: Unknown, N: 1}) {
		t.Errorf("state %+v", got)
	}
}

func TestStateJSON(t *testing.T) {
	st := NewState()
	st.HitCount = 3
	st.UnloadedBundles = map[string]int64{"t/n/0x0_0x1": 1}
	st.UnloadedBrokers = map[string]int64{"a:1": 2}
	st.CycleSources = []string{"a:1"}
	st.SplitHits = map[string]map[string]int64{"a:1": {"t/n/0x0_0x1": 2}}
	st.Told = map[string]bool{"t/n/0x0_0x1": true}
	st.RoundRobin = RoundRobin{Count: 7, Brokers: []string{"a:1"}}
	st.Pending = map[string]Pending{"a:1": {UpdatedAt: 3, Bundles: 4}}
	st.Counters.LoadStd = jsonfloat.Float(math.NaN())
	st.Counters.Unload.add(Skip, HitCount)
	st.Counters.Assign.add(Success)
	st.Counters.Split.add(Success, Topics)
	if diff := cmp.Diff(st, clone(t, st), stateOptions); diff != "" {
		t.Error(diff)
	}
	for text, wrong := range map[string]string{
		`{"version":2}`: "version 2", `{}`: "version 0", `{"version":1,"hitCount":"x"}`: "hitCount",
		`{"version":1,"counters":{"unload":{"Skip/Nonsense":1}}}`: "Skip/Nonsense", `[]`: "state",
	} {
		if err := json.Unmarshal([]byte(text), new(State)); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: error %v, want one about %s", text, err, wrong)
		}
	}
}

// TestLeaderChange: a new leader that reads the state decides as the old one would have.
func TestLeaderChange(t *testing.T) {
	m := New(nil, nil, Options{})
	snap := benchstate.New(7, 6, 120, 3).Extensible(10)
	snap.Settings.LoadBalancerSheddingConditionHitCountThreshold = 2
	snap.Settings.LoadBalancerBrokerLoadTargetStd = 0.1
	var st plan.State = m.NewState()
	var p plan.Plan
	for range 2 {
		p, st = m.Shed(snap, st, nil, nil)
		if len(p.Decisions) > 0 {
			t.Fatalf("acts too early: %s", p.Outcome)
		}
	}
	took := clone(t, st.(*State))
	p, _ = m.Shed(snap, st, nil, nil)
	q, _ := m.Shed(snap, took, nil, nil)
	if len(p.Decisions) == 0 {
		t.Fatalf("does not act: %s", p.Outcome)
	}
	if diff := cmp.Diff(p, q); diff != "" {
		t.Error(diff)
	}
}

func TestPlaceCounts(t *testing.T) {
	m := New(nil, nil, Options{})
	s := benchstate.New(1, 3, 3, 0)
	snap := s.Extensible(10)
	st := m.NewState()
	rnd := benchstate.NewRand(1)
	for _, bundle := range []string{"t/n/0x00000000_0xffffffff", snap.Bundles[0].Name, "pulsar/nobody:8080/0x00000000_0xffffffff", "pulsar/" + s.Brokers[0].ID + "/0x00000000_0xffffffff"} {
		_, st = m.Place(snap, bundle, st, rnd, nil)
	}
	want := []plan.Count{{Label: Success, N: 1}, {Label: Failure, N: 1}, {Label: Skip, N: 1}}
	if diff := cmp.Diff(want, st.(*State).Counters.Assign.Pairs()); diff != "" {
		t.Error(diff)
	}
	if d, _ := m.Place(&cluster.Snapshot{Settings: settings.Defaults()}, "t/n/0x0_0x1", nil, rnd, nil); d.Destination != "" || d.Why.Code != NoneLeft.ID {
		t.Errorf("without brokers: %+v", d)
	}
}

// Placement allocates nothing when nobody traces, once a snapshot was seen.
func TestPlaceAllocations(t *testing.T) {
	snap := benchstate.New(42, 50, 500, 10).Extensible(10)
	rnd := benchstate.NewRand(1)
	candidates := make([]int, len(snap.Brokers))
	for i := range candidates {
		candidates[i] = i
	}
	l, m := LeastResourceUsageWithWeight{}, New(nil, nil, Options{})
	st := m.NewState()
	for name, place := range map[string]func(){
		"strategy": func() { l.Place(snap, "t/n/0x00000000_0xffffffff", candidates, nil, rnd, nil) },
		"manager":  func() { m.Place(snap, "t/n/0x00000000_0xffffffff", st, rnd, nil) },
		"owned":    func() { m.Place(snap, snap.Bundles[7].Name, st, rnd, nil) },
	} {
		place()
		if n := testing.AllocsPerRun(100, place); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestRoundRobin(t *testing.T) {
	snap := &cluster.Snapshot{Settings: settings.Defaults(), Brokers: []cluster.Broker{{ID: "a:1"}, {ID: "b:1"}, {ID: "c:1"}}}
	st := NewState()
	var got []int
	place := func(candidates ...int) {
		i, _ := RoundRobinBrokerSelectionStrategy{}.Place(snap, "x", candidates, st, nil, nil)
		got = append(got, i)
	}
	for range 4 {
		place(0, 1, 2)
	}
	place(2, 1, 0) // another order of the same ones: the turns stay
	place(1, 2)    // fewer: the list is made anew
	place(0, 2)    // as many, but others: made anew when the turn is at one that is gone
	place()
	st.RoundRobin.Count = math.MaxInt32
	place(0, 1, 2)
	place(0, 1, 2)
	if diff := cmp.Diff([]int{0, 1, 2, 0, 1, 2, 0, -1, 1, 0}, got); diff != "" {
		t.Error(diff)
	}
	st.RoundRobin.Count = -5
	place(0, 1, 2)
	if last := got[len(got)-1]; last < 0 || last > 2 {
		t.Errorf("negative count: %d", last)
	}
}

// The configured class may be the short name, and an unknown load of 0 brokers draws nothing.
func TestShortName(t *testing.T) {
	snap := benchstate.New(1, 2, 2, 0).Extensible(10)
	snap.Settings.LoadManagerClassName = "Extensible"
	left, err := BrokerLoadManagerClassFilter{}.Keep(&Cycle{Snap: snap}, "", []int{0, 1})
	if err != nil || len(left) != 2 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestRegistry(t *testing.T) {
	r := plan.Registry{Shedders: Shedders(Options{}), Placers: Placers(Options{})}
	for _, name := range []string{"TransferShedder", "transfershedder", "org.apache.pulsar.broker.loadbalance.extensions.scheduler.TransferShedder"} {
		e, err := r.Shedder(name, Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.New(settings.Defaults()).(*TransferShedder); !ok {
			t.Errorf("%s makes %T", name, e.New(settings.Defaults()))
		}
	}
	for name, want := range map[string]plan.Placer{
		"LeastResourceUsageWithWeight": LeastResourceUsageWithWeight{}, "RoundRobinBrokerSelectionStrategy": RoundRobinBrokerSelectionStrategy{},
	} {
		e, err := r.Placer(name, Name)
		if err != nil || e.New(settings.Defaults()) != want {
			t.Errorf("%s: %v, %v", name, e.Name, err)
		}
	}
}

func TestNotes(t *testing.T) {
	got := Notes("b:1", []load.Note{
		{Kind: load.UnknownResource, Resource: event.BandwidthIn, Usage: -1, Limit: -1}, {Kind: load.UnknownUsage},
		{Kind: load.UnknownThroughput, Usage: math.NaN()}, {Kind: load.LimitChanged, Resource: event.CPU, Before: 200, Limit: 400}, {Kind: "other"},
	})
	var texts []string
	for _, e := range got {
		texts = append(texts, e.Broker+" "+e.Why.Code+" "+e.Why.String())
	}
	if diff := cmp.Diff([]string{
		"b:1 RESOURCE_UNKNOWN bandwidthIn is unknown (usage -1, limit -1) and left out of the load",
		"b:1 LOAD_UNKNOWN no resource with a weight can be judged: the load is unknown",
		"b:1 THROUGHPUT_UNKNOWN throughput NaN cannot be used; its average stays as it was",
		"b:1 RESOURCE_LIMIT_CHANGED the reported limit of cpu changed from 200 to 400",
		`b:1 LOAD_NOTE "other"`,
	}, texts); diff != "" {
		t.Error(diff)
	}
}
