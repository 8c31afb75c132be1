package simple_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
)

var (
	floats = rapid.OneOf(rapid.SampledFrom([]float64{0, -1, 1, 50, 99, 100, 1e6, 1e300, math.NaN(), math.Inf(1), math.Inf(-1), math.SmallestNonzeroFloat64, math.Copysign(0, -1)}),
		rapid.Float64Range(0, 1e6))
	names   = rapid.SampledFrom([]string{"t/a/0x00000000_0x80000000", "t/a/0x80000000_0xffffffff", "t/b/0x00000000_0xffffffff", "t/b/0x00000000_0x00000001", "pulsar/system/0x00000000_0xffffffff", "", "/", "x", "t/b/0xzz_0x", "t/\x00/0x00000000_0xffffffff"})
	brokers = rapid.SampledFrom([]string{"b1:8080", "b2:8080", "b3:8080", "b3:8081", "nohost", "", "[::1]:8080"})
)

func drawUsage(t *rapid.T, label string) event.ResourceUsage {
	return event.ResourceUsage{Usage: floats.Draw(t, label), Limit: floats.Draw(t, label+" limit")}
}

// drawSnapshot makes a picture of a cluster in which anything may be wrong.
func drawSnapshot(t *rapid.T, set *settings.Settings, now int64) *cluster.Snapshot {
	snap := &cluster.Snapshot{Now: now, Settings: set}
	if rapid.Bool().Draw(t, "policies") {
		snap.Policies = policy.New([]policy.Isolation{{Name: "p", Namespaces: []string{"t/a"}, Primary: []string{rapid.SampledFrom([]string{"b1", "b.", "(?<=x)", ""}).Draw(t, "primary")},
			Secondary: []string{"b2"}, AutoFailover: policy.AutoFailover{MinLimit: 1}}}, nil, nil, nil)
	}
	for range rapid.IntRange(0, 4).Draw(t, "brokers") {
		b := cluster.Broker{ID: brokers.Draw(t, "id")}
		if rapid.IntRange(0, 9).Draw(t, "reported") > 0 {
			b.Report = drawReport(t, b.ID)
		}
		snap.Brokers = append(snap.Brokers, b)
	}
	for range rapid.IntRange(0, 4).Draw(t, "bundles") {
		n := names.Draw(t, "known bundle")
		snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: n, Namespace: event.NamespaceOf(n), NonPersistent: rapid.Bool().Draw(t, "non-persistent")})
	}
	return snap.Index()
}

func drawReport(t *rapid.T, id string) *event.LoadReport {
	r := event.NewLoadReport()
	r.Name, r.Timestamp = rapid.SampledFrom([]string{id, id, id, "", "other:1"}).Draw(t, "name"), rapid.Int64().Draw(t, "timestamp")
	r.PersistentTopicsEnabled = rapid.IntRange(0, 4).Draw(t, "persistent") > 0
	if rapid.IntRange(0, 9).Draw(t, "usage") > 0 {
		r.SystemResourceUsage = &event.SystemResourceUsage{CPU: drawUsage(t, "cpu"), Memory: drawUsage(t, "memory"), DirectMemory: drawUsage(t, "direct"),
			BandwidthIn: drawUsage(t, "in"), BandwidthOut: drawUsage(t, "out")}
	}
	if rapid.IntRange(0, 9).Draw(t, "stats") == 0 {
		return &r
	}
	r.BundleStats = []event.NamedBundleStats{}
	for range rapid.IntRange(0, 4).Draw(t, "reported bundles") {
		r.BundleStats = append(r.BundleStats, event.NamedBundleStats{Bundle: names.Draw(t, "bundle"), Stats: event.NamespaceBundleStats{
			MsgRateIn: floats.Draw(t, "rate in"), MsgRateOut: floats.Draw(t, "rate out"), MsgThroughputIn: floats.Draw(t, "bytes in"), MsgThroughputOut: floats.Draw(t, "bytes out"),
			ConsumerCount: rapid.Int32().Draw(t, "consumers"), ProducerCount: rapid.Int32().Draw(t, "producers"), Topics: rapid.Int64().Draw(t, "topics")}})
	}
	return &r
}

func drawSettings(t *rapid.T) *settings.Settings {
	s := settings.Defaults()
	s.LoadBalancerPlacementStrategy = rapid.SampledFrom([]string{"leastLoadedServer", "leastMsgPerSecond", "weightedRandomSelection", "?"}).Draw(t, "strategy")
	wild := rapid.SampledFrom([]int64{math.MinInt64, -1, 0, 50, 65, 85, 100, math.MaxInt64})
	s.LoadBalancerBrokerOverloadedThresholdPercentage = wild.Draw(t, "overload")
	s.LoadBalancerBrokerUnderloadedThresholdPercentage = wild.Draw(t, "underload")
	s.LoadBalancerBrokerComfortLoadLevelPercentage = wild.Draw(t, "comfort")
	s.LoadBalancerSheddingGracePeriodMinutes = wild.Draw(t, "grace")
	s.LoadBalancerNamespaceMaximumBundles = wild.Draw(t, "maximum bundles")
	s.LoadBalancerNamespaceBundleMaxTopics = wild.Draw(t, "topics")
	s.LoadBalancerNamespaceBundleMaxBandwidthMbytes = wild.Draw(t, "bandwidth")
	s.LoadBalancerSheddingEnabled = rapid.IntRange(0, 4).Draw(t, "shedding") > 0
	return s
}

func drawOptions(t *rapid.T) (o simple.Options) {
	v := reflect.ValueOf(&o).Elem()
	for i := range v.NumField() {
		v.Field(i).SetBool(rapid.Bool().Draw(t, v.Type().Field(i).Name))
	}
	return o
}

// TestTotal: whatever comes in, decisions are made and their promises kept: sources and destinations are registered, or were
// promised; nothing that is given is changed; the state survives JSON; the same input gives the same output.
func TestTotal(t *testing.T) { rapid.Check(t, total) }

// FuzzTotal is TestTotal with inputs that go test -fuzz finds.
func FuzzTotal(f *testing.F) { f.Fuzz(rapid.MakeFuzz(total)) }

func total(t *rapid.T) {
	m := &simple.Manager{Options: drawOptions(t)}
	set := drawSettings(t)
	st := m.NewState()
	for step := range rapid.IntRange(1, 4).Draw(t, "steps") {
		snap := drawSnapshot(t, set, int64(step)*rapid.Int64Range(0, 1e9).Draw(t, "time"))
		st = m.Update(snap, st)
		before := toJSON(t, st)
		st = fromJSON(t, before)
		seed := rapid.Uint64().Draw(t, "seed")
		one, two := play(t, m, snap, st, seed), play(t, m, snap, fromJSON(t, before), seed)
		if diff := cmp.Diff(one.log, two.log, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("the same input gave another output:\n%s", diff)
		}
		if one.state != two.state {
			t.Fatalf("the same input gave another state:\n%s", cmp.Diff(one.state, two.state))
		}
		st = fromJSON(t, one.state)
	}
}

type played struct {
	log   []any
	state string
}

// play sheds, splits and places, and checks what must hold.
func play(t *rapid.T, m *simple.Manager, snap *cluster.Snapshot, st plan.State, seed uint64) played {
	rnd := rand.New(rand.NewPCG(seed, seed))
	var p played
	kept := toJSON(t, st)
	shed, next := m.Shed(snap, st, rnd, nil)
	split, last := m.Split(snap, next, nil)
	if toJSON(t, st) != kept {
		t.Fatalf("planning changed the state that was given:\n%s", cmp.Diff(kept, toJSON(t, st)))
	}
	traced, _ := m.Shed(snap, st, rnd, new(plan.Trace))
	if diff := cmp.Diff(shed, traced, cmpopts.EquateNaNs()); diff != "" {
		t.Fatalf("a trace changes the plan:\n%s", diff)
	}
	seen := map[string]bool{}
	for _, d := range shed.Decisions {
		if seen[d.Source] {
			t.Fatalf("more than one bundle of %s: %+v", d.Source, shed.Decisions)
		}
		seen[d.Source] = true
		last = m.Record(last, d, snap.Now)
	}
	p.log = append(p.log, shed, split)
	for i := range 3 {
		bundle := fmt.Sprintf("t/c/0x%08x_0x%08x", i, i+1)
		var d plan.Decision
		before := fromJSON(t, toJSON(t, last)).(*simple.State)
		d, last = m.Place(snap, bundle, last, rnd, new(plan.Trace))
		if d.Why.Code == "" {
			t.Fatalf("no reason: %+v", d)
		}
		if d.Destination != "" && snap.BrokerIndex(d.Destination) < 0 && (d.Why.Code != "ALREADY_ASSIGNED" || !promised(before, d)) {
			t.Fatalf("%s is neither registered nor was the bundle promised to it: %+v", d.Destination, d)
		}
		p.log = append(p.log, d)
	}
	p.state = toJSON(t, last)
	return p
}

func promised(st *simple.State, d plan.Decision) bool {
	for _, r := range st.Rankings {
		for _, b := range r.Preallocated {
			if b == d.Bundle && r.Broker == d.Destination {
				return true
			}
		}
	}
	return false
}

func toJSON(t *rapid.T, st plan.State) string {
	b, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func fromJSON(t *rapid.T, text string) plan.State {
	st := simple.NewState()
	if err := json.Unmarshal([]byte(text), st); err != nil {
		t.Fatal(err)
	}
	return st
}

// TestMoreLoadIsNeverPreferred: of two brokers that differ in load alone, by more than the 5 points that count as equal,
// leastLoadedServer takes the less loaded one.
func TestMoreLoadIsNeverPreferred(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.Float64Range(0, 90).Draw(t, "a")
		b := rapid.Float64Range(a+6, 100).Draw(t, "b")
		report := func(id string, load float64) *event.LoadReport {
			r := event.NewLoadReport()
			r.Name, r.SystemResourceUsage = id, &event.SystemResourceUsage{CPU: event.ResourceUsage{Usage: load * 1e4, Limit: 1e6}}
			r.BundleStats = []event.NamedBundleStats{{Bundle: "t/" + id + "/0x00000000_0xffffffff"}}
			return &r
		}
		snap := &cluster.Snapshot{Now: 1, Settings: settings.Defaults()}
		first, second := report("b1:8080", a), report("b2:8080", b)
		if rapid.Bool().Draw(t, "swapped") {
			first, second = report("b1:8080", b), report("b2:8080", a)
		}
		snap.Brokers = []cluster.Broker{{ID: "b1:8080", Report: first}, {ID: "b2:8080", Report: second}}
		want := "b1:8080"
		if first.SystemResourceUsage.CPU.Usage > second.SystemResourceUsage.CPU.Usage {
			want = "b2:8080"
		}
		m := new(simple.Manager)
		d, _ := m.Place(snap.Index(), "t/new/0x00000000_0xffffffff", m.NewState(), nil, nil)
		if d.Destination != want {
			t.Fatalf("%s, want %s: %s", d.Destination, want, d.Why)
		}
	})
}

// FuzzState: no text that decodes as a state breaks the load manager.
func FuzzState(f *testing.F) {
	snap := drawnOnce()
	m := new(simple.Manager)
	b, err := json.Marshal(m.Update(snap, m.NewState()))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"started":true,"rankedAt":1,"rankings":[{"broker":"b1:8080","loaded":["a"],"preallocated":["t/n/0x00000000_0xffffffff"],"rank":-1}],"cursor":-7,"quotas":{"cpuFactor":"NaN"}}`))
	f.Add([]byte(`{"rankings":null,"served":{"b1:8080":["x"]},"factor":"Infinity"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		st := simple.NewState()
		if json.Unmarshal(text, st) != nil {
			return
		}
		for _, strategy := range []string{"leastLoadedServer", "weightedRandomSelection"} {
			snap.Settings.LoadBalancerPlacementStrategy = strategy
			_, next := m.Shed(snap, st, nil, new(plan.Trace))
			_, next = m.Split(snap, next, new(plan.Trace))
			d, _ := m.Place(snap, "t/n/0x00000000_0xffffffff", next, nil, new(plan.Trace))
			if d.Why.Code == "" {
				t.Fatalf("no reason: %+v", d)
			}
		}
	})
}

func drawnOnce() *cluster.Snapshot {
	r := event.NewLoadReport()
	r.Name, r.Timestamp = "b1:8080", 1
	r.SystemResourceUsage = &event.SystemResourceUsage{CPU: event.ResourceUsage{Usage: 380, Limit: 400}}
	r.BundleStats = []event.NamedBundleStats{{Bundle: "t/m/0x00000000_0x80000000", Stats: event.NamespaceBundleStats{Topics: 5000, MsgRateIn: 7}},
		{Bundle: "t/m/0x80000000_0xffffffff"}}
	snap := &cluster.Snapshot{Now: 1, Settings: settings.Defaults(), Brokers: []cluster.Broker{{ID: "b1:8080", Report: &r}, {ID: "b2:8080"}},
		Bundles: []cluster.Bundle{{Name: "t/m/0x00000000_0x80000000", Namespace: "t/m"}}}
	return snap.Index()
}
