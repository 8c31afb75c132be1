package extensible

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/jsonfloat"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// rapidSource makes the choices of a random cluster from rapid's.
type rapidSource struct{ t *rapid.T }

func (s rapidSource) n(bound int) int { return rapid.IntRange(0, bound-1).Draw(s.t, "n") }

func (s rapidSource) float() float64 {
	return rapid.OneOf(rapid.Float64Range(0, 1.2), rapid.Float64Range(0, 1e9), rapid.SampledFrom([]float64{0, math.NaN(), math.Inf(1), -1, math.MaxFloat64})).Draw(s.t, "float")
}

func (s rapidSource) text() string { return rapid.StringN(0, 8, -1).Draw(s.t, "text") }

var stateOptions = cmp.Options{
	cmpopts.IgnoreUnexported(State{}), cmpopts.EquateEmpty(), cmpopts.EquateNaNs(),
	cmp.Comparer(func(a, b jsonfloat.Float) bool { return load.CompareDouble(float64(a), float64(b)) == 0 }),
}

// clone is a state that shares nothing with the given one.
func clone(t testing.TB, st *State) *State {
	text, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	out := new(State)
	if err := json.Unmarshal(text, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestShedProperty: on any cluster a cycle is the same with and without a trace and with a state that was written and read
// back; it leaves its input alone, moves nothing twice, and only to where it may go.
func TestShedProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		snap, o, st := randomCluster(rapidSource{rt})
		checkShed(t, rt, snap, o, st)
	})
}

type failer interface{ Fatalf(string, ...any) }

func checkShed(tb testing.TB, t failer, snap *cluster.Snapshot, o Options, st *State) {
	m := New(nil, nil, o)
	if !printable(st) { // names that JSON cannot carry do not come from JSON either
		return
	}
	before, copied := clone(tb, st), clone(tb, st)
	p, next := m.Shed(snap, st, nil, nil)
	if diff := cmp.Diff(before, st, stateOptions); diff != "" {
		t.Fatalf("the state was changed: %s", diff)
	}
	trace := &plan.Trace{}
	traced, tracedNext := m.Shed(snap, copied, nil, trace)
	if diff := cmp.Diff(bare(p), bare(traced), stateOptions); diff != "" {
		t.Fatalf("the trace changed the plan: %s", diff)
	}
	if diff := cmp.Diff(next, tracedNext, stateOptions); diff != "" {
		t.Fatalf("the trace changed the next state: %s", diff)
	}
	if p.Outcome.Code == "" || p.Outcome.Text == "" && len(p.Decisions) == 0 || traced.Outcome.Text == "" {
		t.Fatalf("no outcome")
	}
	for _, e := range trace.Entries {
		if e.Why.Code == "" {
			t.Fatalf("left out without a reason: %+v", e)
		}
	}
	if _, err := json.Marshal(traced); err != nil {
		t.Fatalf("%v", err)
	}
	moved := make(map[string]bool)
	for _, d := range p.Decisions {
		if moved[d.Bundle+" "+d.Source] {
			t.Fatalf("%s is moved twice", d.Bundle)
		}
		moved[d.Bundle+" "+d.Source] = true
		if (d.Action == plan.Transfer) != snap.Settings.LoadBalancerTransferEnabled {
			t.Fatalf("action %s with transfers %v", d.Action, snap.Settings.LoadBalancerTransferEnabled)
		}
		if d.Action == plan.Transfer && (snap.BrokerIndex(d.Destination) < 0 || d.Destination == d.Source) {
			t.Fatalf("%s goes from %s to %s, which is not another registered broker", d.Bundle, d.Source, d.Destination)
		}
	}
}

// bare is a plan without the parts that only a trace fills.
func bare(p plan.Plan) plan.Plan {
	p.Outcome.Text, p.Outcome.Numbers = "", nil
	p.Decisions = slices.Clone(p.Decisions)
	for i := range p.Decisions {
		p.Decisions[i].Why = plan.Reason{Code: p.Decisions[i].Why.Code}
	}
	return p
}

// printable says whether the names in a state survive JSON.
func printable(st *State) bool {
	for _, m := range []map[string]int64{st.UnloadedBundles, st.UnloadedBrokers} {
		for name := range m {
			if fmt.Sprintf("%q", name) != fmt.Sprintf("%q", string([]rune(name))) {
				return false
			}
		}
	}
	for broker, hits := range st.SplitHits {
		for name := range hits {
			if broker != string([]rune(broker)) || name != string([]rune(name)) {
				return false
			}
		}
	}
	return true
}

// TestPlaceProperty: a bundle goes to a registered broker or nowhere, and without a trace to the same one.
func TestPlaceProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := rapidSource{rt}
		snap, o, st := randomCluster(s)
		bundle := rapid.SampledFrom([]string{"t/n1/0x10000000_0x20000000", "t/n2/0x50000000_0x60000000", "x", "pulsar/b0:8080/0x0_0x1", "t/n0/0x0_0x1"}).Draw(rt, "bundle")
		checkPlace(t, rt, snap, o, st, bundle)
	})
}

func checkPlace(tb testing.TB, t failer, snap *cluster.Snapshot, o Options, st *State, bundle string) {
	m := New(nil, nil, o)
	owner := ""
	if i := snap.BundleIndex(bundle); i >= 0 {
		owner = snap.Bundles[i].Owner
	}
	a, _ := m.Place(snap, bundle, &State{RoundRobin: st.RoundRobin}, rand.New(rand.NewPCG(1, 1)), nil)
	b, _ := m.Place(snap, bundle, &State{RoundRobin: st.RoundRobin}, rand.New(rand.NewPCG(1, 1)), &plan.Trace{})
	if a.Destination != b.Destination || a.Label != b.Label {
		t.Fatalf("without a trace to %q (%s), with one to %q (%s)", a.Destination, a.Label, b.Destination, b.Label)
	}
	if a.Why.Code == "" && a.Destination != "" || b.Why.Code == "" {
		t.Fatalf("no reason: %+v, %+v", a.Why, b.Why)
	}
	if a.Destination != owner && a.Destination != "" && snap.BrokerIndex(a.Destination) < 0 {
		t.Fatalf("%q is not registered", a.Destination)
	}
}

// TestSplitProperty: splits name bundles of their broker, each once, and respect the limits of a round.
func TestSplitProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		snap, o, st := randomCluster(rapidSource{rt})
		checkSplit(t, rt, snap, o, st)
	})
}

func checkSplit(tb testing.TB, t failer, snap *cluster.Snapshot, o Options, st *State) {
	if !printable(st) {
		return
	}
	m := New(nil, nil, o)
	before, copied := clone(tb, st), clone(tb, st)
	p, next := m.Split(snap, st, nil)
	if diff := cmp.Diff(before, st, stateOptions); diff != "" {
		t.Fatalf("the state was changed: %s", diff)
	}
	traced, tracedNext := m.Split(snap, copied, &plan.Trace{})
	if diff := cmp.Diff(p, traced, stateOptions); diff != "" {
		t.Fatalf("the trace changed the plan: %s", diff)
	}
	if diff := cmp.Diff(next, tracedNext, stateOptions); diff != "" {
		t.Fatalf("the trace changed the next state: %s", diff)
	}
	for _, d := range p.Decisions {
		if i := snap.BundleIndex(d.Bundle); i < 0 || d.Action != plan.Split || d.PulsarReason == "" {
			t.Fatalf("decision %+v", d)
		}
	}
}

// balancedCluster is a cluster without odd values, from which all of a cycle's rules can be reached.
func balancedCluster(t *rapid.T) *cluster.Snapshot {
	conf := settings.Defaults()
	conf.LoadBalancerSheddingConditionHitCountThreshold = 0
	conf.LoadBalancerBrokerLoadTargetStd = rapid.SampledFrom([]float64{0.25, 0.1, 0.05}).Draw(t, "target")
	snap := &cluster.Snapshot{Now: 1_700_000_000_000, Version: "4.2.4", Settings: conf}
	for i := range rapid.IntRange(2, 8).Draw(t, "brokers") {
		id := fmt.Sprintf("b%d:8080", i)
		l := cluster.BrokerLoad{Broker: id, HasTop: true, Data: event.BrokerLoadData{UpdatedAt: snap.Now}}
		for j := range rapid.IntRange(0, 5).Draw(t, "bundles") {
			s := event.NamespaceBundleStats{MsgThroughputIn: float64(rapid.IntRange(1, 1000).Draw(t, "throughput"))}
			l.TopBundles = append(l.TopBundles, event.BundleLoad{BundleName: fmt.Sprintf("t/n/0x%08x_0x%08x", i<<16|j, i<<16|j+1), Stats: s})
			l.Data.MsgThroughputIn += s.MsgThroughputIn
		}
		l.Data.MsgThroughputEMA = l.Data.MsgThroughputIn
		l.Data.WeightedMaxEMA = l.Data.MsgThroughputIn/8192 + float64(i)*1e-6 // no ties
		snap.Load = append(snap.Load, l)
		snap.Brokers = append(snap.Brokers, cluster.Broker{ID: id})
	}
	return snap.Index()
}

func moves(p plan.Plan) []string {
	var out []string
	for _, d := range p.Decisions {
		out = append(out, fmt.Sprintf("%s %s %s", d.Bundle, d.Source, d.Destination))
	}
	slices.Sort(out)
	return out
}

// TestScaleProperty: throughputs that are all twice as high make the same moves, since loads are what thresholds are about.
func TestScaleProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snap := balancedCluster(t)
		shedder := &TransferShedder{Detached: true}
		p, _ := shedder.Shed(snap, nil, nil)
		for i := range snap.Load {
			l := &snap.Load[i]
			l.Data.MsgThroughputIn *= 2
			l.Data.MsgThroughputEMA *= 2
			for j := range l.TopBundles {
				l.TopBundles[j].Stats.MsgThroughputIn *= 2
			}
		}
		scaled, _ := shedder.Shed(snap, nil, nil)
		if diff := cmp.Diff(moves(p), moves(scaled)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestOrderProperty: the order of the load data and of the registry does not matter when no loads tie.
func TestOrderProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snap := balancedCluster(t)
		shedder := &TransferShedder{Detached: true}
		p, _ := shedder.Shed(snap, nil, nil)
		snap.Load = rapid.Permutation(snap.Load).Draw(t, "load")
		snap.Brokers = rapid.Permutation(snap.Brokers).Draw(t, "brokers")
		other, _ := shedder.Shed(snap.Index(), nil, nil)
		if diff := cmp.Diff(moves(p), moves(other)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestBetterProperty: a pair that is moved for its standard deviation, with throughput in proportion to load, is not left
// further apart than it was.
func TestBetterProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		snap := balancedCluster(t)
		shedder := &TransferShedder{Detached: true, Options: Options{CountSwapGain: true}}
		p, _ := shedder.Shed(snap, nil, nil)
		for i := range p.Outcome.Numbers {
			if n := p.Outcome.Numbers[i]; n.Name == "stdAfter" && len(p.Decisions) > 0 && n.Value > p.LoadStd+1e-9 {
				t.Fatalf("std %v became %v", p.LoadStd, n.Value)
			}
		}
	})
}

func FuzzShed(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("some bytes that make a small cluster with loads and bundles, as good as any"))
	for seed := range uint64(20) {
		data := make([]byte, 600)
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &bytesSource{rest: data}
		snap, o, st := randomCluster(s)
		checkShed(t, t, snap, o, st)
		checkPlace(t, t, snap, o, st, s.text()+"/0x0_0x1")
		checkSplit(t, t, snap, o, st)
	})
}
