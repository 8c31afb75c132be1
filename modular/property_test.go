package modular_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

func anyOptions(t *rapid.T) modular.Options {
	var o modular.Options
	for _, name := range optionNames() {
		optionField(&o, name).SetBool(rapid.Bool().Draw(t, name))
	}
	return o
}

func shedders(o modular.Options) map[string]plan.Shedder {
	out := make(map[string]plan.Shedder)
	for _, e := range modular.Shedders(o) {
		out[e.Name] = e.New(nil)
	}
	return out
}

func placers(o modular.Options) map[string]plan.Placer {
	out := make(map[string]plan.Placer)
	for _, e := range modular.Placers(o) {
		out[e.Name] = e.New(nil)
	}
	return out
}

// sane is what a shedder's plan must be whatever the cluster reports.
func sane(t *rapid.T, s *spec, snap *cluster.Snapshot, p plan.Plan) {
	if p.Outcome.Code == "" || p.At != snap.Now {
		t.Fatalf("%s: outcome %+v at %d", p.Strategy, p.Outcome, p.At)
	}
	for _, d := range p.Decisions {
		i, b := snap.BrokerIndex(d.Source), snap.BundleIndex(d.Bundle)
		if i < 0 || b < 0 {
			t.Fatalf("%s: unloads %q from %q", p.Strategy, d.Bundle, d.Source)
		}
		lists := slices.ContainsFunc(snap.Brokers, func(x cluster.Broker) bool {
			return x.ID == d.Source && slices.ContainsFunc(x.Bundles, func(k int) bool { return snap.Bundles[k].Name == d.Bundle })
		})
		if !lists {
			t.Fatalf("%s: %q is not on %q", p.Strategy, d.Bundle, d.Source)
		}
		if _, recent := s.recent[d.Bundle]; recent {
			t.Fatalf("%s: %q was unloaded a moment ago", p.Strategy, d.Bundle)
		}
		if load.IsBrokerNamespace(policy.NamespaceOf(d.Bundle)) {
			t.Fatalf("%s: %q belongs to a broker", p.Strategy, d.Bundle)
		}
		if d.Why.Code == "" || d.Destination == d.Source && d.Destination != "" && p.Strategy != "AvgShedder" {
			t.Fatalf("%s: %+v", p.Strategy, d)
		}
	}
}

// shedProperty holds that a shedder is total, pure, repeatable, sane, and decides alike with and without a log.
func shedProperty(name string) func(*rapid.T) {
	return func(t *rapid.T) {
		s := hostile(t)
		shedder := shedders(anyOptions(t))[name]
		snap, st := s.snapshot(), s.state()
		p, next := shedder.Shed(snap, st, nil)
		sane(t, s, snap, p)
		if diff := cmp.Diff(s.snapshot(), snap, snapshotEqual...); diff != "" {
			t.Fatalf("the snapshot was changed:\n%s", diff)
		}
		if before, after := encoded(t, s.state()), encoded(t, st); before != after {
			t.Fatalf("the state was changed: %s", cmp.Diff(before, after))
		}
		trace := &plan.Trace{}
		again, nextAgain := shedder.Shed(s.snapshot(), s.state(), trace)
		if diff := cmp.Diff(p, again, cmpopts.EquateNaNs()); diff != "" {
			t.Fatalf("with a log it decides otherwise:\n%s", diff)
		}
		if a, b := encoded(t, next), encoded(t, nextAgain); a != b {
			t.Fatalf("with a log it remembers otherwise: %s", cmp.Diff(a, b))
		}
		explained(t, trace)
		for range 2 { // what it remembers is good for another round
			p, next = shedder.Shed(snap, next, trace)
			sane(t, s, snap, p)
		}
	}
}

var snapshotEqual = cmp.Options{cmpopts.IgnoreUnexported(cluster.Snapshot{}), cmpopts.EquateNaNs(), cmp.Comparer(func(a, b *policy.Set) bool { return a == b })}

func encoded(t *rapid.T, state plan.State) string {
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// explained holds that every entry of a log has a code and a sentence in which every number is filled in.
func explained(t *rapid.T, trace *plan.Trace) {
	for _, e := range trace.Entries {
		if e.Why.Code == "" || e.Why.Text == "" || slices.Contains([]byte(e.Why.Text), '{') {
			t.Fatalf("the log has %+v", e)
		}
	}
}

// placeProperty holds that a placement is total, among the candidates, and that a log changes nothing.
func placeProperty(name string) func(*rapid.T) {
	return func(t *rapid.T) {
		s := hostile(t)
		placer := placers(anyOptions(t))[name]
		snap, st := s.snapshot(), s.state()
		logged, traced, trace := s.snapshot(), s.state(), &plan.Trace{}
		r1, r2 := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(1, 1))
		for range 3 {
			candidates := rapid.SliceOfNDistinct(rapid.IntRange(0, max(0, len(snap.Brokers)-1)), 0, len(snap.Brokers), rapid.ID[int]).Draw(t, "candidates")
			bundle := rapid.SampledFrom([]string{"t/n/0x00000000_0x10000000", "unknown", ""}).Draw(t, "bundle")
			given := slices.Clone(candidates)
			i, why := placer.Place(snap, bundle, candidates, st, r1, nil)
			if i != -1 && !slices.Contains(candidates, i) {
				t.Fatalf("chose %d of %v", i, candidates)
			}
			if !slices.Equal(given, candidates) {
				t.Fatalf("the candidates %v became %v", given, candidates)
			}
			if why.Code != "" {
				t.Fatalf("a reason %+v that nobody asked for", why)
			}
			j, why := placer.Place(logged, bundle, candidates, traced, r2, trace)
			if i != j || why.Code == "" {
				t.Fatalf("with a log it chose %d instead of %d: %+v", j, i, why)
			}
		}
		explained(t, trace)
		if a, b := encoded(t, st), encoded(t, traced); a != b {
			t.Fatalf("with a log it remembers otherwise: %s", cmp.Diff(a, b))
		}
		if diff := cmp.Diff(s.snapshot(), snap, snapshotEqual...); diff != "" {
			t.Fatalf("the snapshot was changed:\n%s", diff)
		}
	}
}

// managerProperty goes through updates, placements, cycles and splits of any cluster with any strategies.
func managerProperty(t *rapid.T) {
	s, o := hostile(t), anyOptions(t)
	shedder := shedders(o)[rapid.SampledFrom([]string{"OverloadShedder", "ThresholdShedder", "UniformLoadShedder", "AvgShedder"}).Draw(t, "shedder")]
	placer := placers(o)[rapid.SampledFrom([]string{"LeastLongTermMessageRate", "LeastLongTermMessageRateDocumented", "LeastResourceUsageWithWeight", "RoundRobinBrokerSelector"}).Draw(t, "placer")]
	if _, avg := shedder.(modular.AvgShedder); avg && rapid.Bool().Draw(t, "both") {
		placer = modular.AvgShedder{Options: o}
	}
	m, err := modular.New(shedder, placer, o)
	if err != nil {
		t.Fatal(err)
	}
	rnd, trace := rand.New(rand.NewPCG(3, 4)), &plan.Trace{}
	snap, state := s.snapshot(), plan.State(s.state())
	before := encoded(t, state)
	snap, state, _ = m.Update(snap, state)
	if after := encoded(t, s.state()); before != after {
		t.Fatal("the spec is not repeatable")
	}
	for range 2 {
		d, next := m.Place(snap, rapid.SampledFrom([]string{"t/n/0x00000000_0x10000000", "t/m/0x00000000_0xffffffff", ""}).Draw(t, "bundle"), state, rnd, trace)
		state = next
		if (d.Destination == "") == (snap.BrokerIndex(d.Destination) >= 0) && d.Why.Code != modular.AlreadyAssigned.ID && d.Destination != "" {
			t.Fatalf("placed on %q", d.Destination)
		}
		if d.Why.Code == "" {
			t.Fatalf("placed for no reason: %+v", d)
		}
		kept := encoded(t, state)
		p, after := m.Shed(snap, state, rnd, trace)
		if encoded(t, state) != kept {
			t.Fatal("Shed changed the state it was given")
		}
		for _, d := range p.Decisions {
			allowed(t, s, snap, d)
			after = m.Record(after, d, snap.Now)
		}
		state = after
		splits, _ := m.Split(snap, state, trace)
		for _, d := range splits.Decisions {
			if d.Why.Code == "" || snap.BundleIndex(d.Bundle) < 0 {
				t.Fatalf("%+v", d)
			}
		}
		modular.BundleDataToStore(snap)
	}
	explained(t, trace)
	back := m.NewState()
	if err := json.Unmarshal([]byte(encoded(t, state)), back); err != nil {
		t.Fatal(err)
	}
	if a, b := encoded(t, state), encoded(t, back); a != b {
		t.Fatalf("the state does not come back from JSON: %s", cmp.Diff(a, b))
	}
}

// allowed holds that a transfer breaks no policy.
func allowed(t *rapid.T, s *spec, snap *cluster.Snapshot, d plan.Decision) {
	if d.Action != plan.Transfer || d.Destination == d.Source {
		t.Fatalf("%+v", d)
	}
	ns := policy.NamespaceOf(d.Bundle)
	if slices.Contains(s.settings.LoadBalancerSheddingExcludedNamespaces, ns) {
		t.Fatalf("%s is excluded", d.Bundle)
	}
	brokers := make([]policy.Broker, len(snap.Brokers))
	for i := range snap.Brokers {
		kinds := snap.Brokers[i].Local != nil
		brokers[i] = policy.Broker{ID: snap.Brokers[i].ID, PersistentTopics: kinds, NonPersistentTopics: kinds}
	}
	for _, b := range s.policies.Over(brokers).Allowed(ns, true).Brokers {
		if b.Broker == d.Destination && b.Allowed {
			return
		}
	}
	t.Fatalf("%s may not go to %s", d.Bundle, d.Destination)
}

func TestShedders(t *testing.T) {
	for name := range shedders(modular.Options{}) {
		t.Run(name, func(t *testing.T) { rapid.Check(t, shedProperty(name)) })
	}
}

func TestPlacers(t *testing.T) {
	for name := range placers(modular.Options{}) {
		t.Run(name, func(t *testing.T) { rapid.Check(t, placeProperty(name)) })
	}
}

func TestManager(t *testing.T) { rapid.Check(t, managerProperty) }

func fuzz(f *testing.F, property func(*rapid.T)) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 4 {
		b := make([]byte, 1<<20) // a property whose bytes run out is skipped
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		f.Add(b)
	}
	f.Fuzz(rapid.MakeFuzz(property))
}

func FuzzOverloadShedder(f *testing.F)    { fuzz(f, shedProperty("OverloadShedder")) }
func FuzzThresholdShedder(f *testing.F)   { fuzz(f, shedProperty("ThresholdShedder")) }
func FuzzUniformLoadShedder(f *testing.F) { fuzz(f, shedProperty("UniformLoadShedder")) }
func FuzzAvgShedder(f *testing.F)         { fuzz(f, shedProperty("AvgShedder")) }
func FuzzLeastLongTermMessageRate(f *testing.F) {
	fuzz(f, placeProperty("LeastLongTermMessageRate"))
}
func FuzzLeastLongTermMessageRateDocumented(f *testing.F) {
	fuzz(f, placeProperty("LeastLongTermMessageRateDocumented"))
}
func FuzzLeastResourceUsageWithWeight(f *testing.F) {
	fuzz(f, placeProperty("LeastResourceUsageWithWeight"))
}
func FuzzRoundRobinBrokerSelector(f *testing.F) { fuzz(f, placeProperty("RoundRobinBrokerSelector")) }
func FuzzAvgShedderPlacement(f *testing.F)      { fuzz(f, placeProperty("AvgShedder")) }
func FuzzManager(f *testing.F)                  { fuzz(f, managerProperty) }

// FuzzState decodes any text as a state: an error, or a state that decides.
func FuzzState(f *testing.F) {
	w := hot(f)
	m, err := modular.New(modular.AvgShedder{}, modular.AvgShedder{}, modular.Options{})
	if err != nil {
		f.Fatal(err)
	}
	_, st, _ := m.Update(w.snapshot(), nil)
	text, err := json.Marshal(st)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"version":1,"preallocated":[{"key":"b1:8080","value":{"bundles":[{}]}}],"avg":{"hits":[{"key":"b1:8080","value":{"low":-9223372036854775808}}],"targets":[{}]},"roundRobin":{"count":-2147483648,"brokers":["x"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		st := modular.NewState()
		if json.Unmarshal(text, st) != nil {
			return
		}
		snap, next, _ := m.Update(w.snapshot(), st)
		p, next := m.Shed(snap, next, nil, &plan.Trace{})
		if p.Outcome.Code == "" {
			t.Error("no outcome")
		}
		for _, placer := range placers(modular.Options{}) {
			if i, _ := placer.Place(snap, longBundle("t/n/0"), []int{0, 1}, next, nil, nil); i < 0 {
				t.Errorf("%T places on nobody", placer)
			}
		}
	})
}

// even is a cluster of distinct ordinary numbers, in which the order of brokers and bundles must not matter: usages are
// multiples of 1/128, rates whole numbers, so that sums are exact.
func even(t *rapid.T) *spec {
	s := &spec{version: "4.2.4", settings: *settings.Defaults(), recent: map[string]int64{}}
	s.settings.LoadBalancerBundleUnloadMinThroughputThreshold = 0
	s.settings.LoadBalancerAvgShedderHitCountHighThreshold = 1
	s.settings.LowerBoundarySheddingEnabled = rapid.Bool().Draw(t, "lower boundary")
	n := rapid.IntRange(2, 7).Draw(t, "brokers")
	usages := rapid.SliceOfNDistinct(rapid.IntRange(1, 128), n, n, rapid.ID[int]).Draw(t, "usages")
	weights := rapid.SliceOfNDistinct(rapid.IntRange(1, 1_000_000), 5*n, 5*n, rapid.ID[int]).Draw(t, "weights")
	for i, u := range usages {
		b := brokerSpec{id: fmt.Sprintf("b%d:8080", i), usage: event.SystemResourceUsage{CPU: event.ResourceUsage{Usage: float64(u), Limit: 128}}, class: modular.Class}
		for k := range 5 {
			x := float64(weights[5*i+k])
			stats := event.NamespaceBundleStats{MsgRateIn: x, MsgThroughputIn: 1000 * x}
			d := load.NewBundleData(load.ShortSamples, load.LongSamples, stats)
			b.bundles = append(b.bundles, len(s.bundles))
			b.totals[0] += x
			b.totals[2] += 1000 * x
			s.bundles = append(s.bundles, bundleSpec{name: fmt.Sprintf("t/n/0x%08x_0x%08x", len(s.bundles)<<20, (len(s.bundles)+1)<<20), data: &d, stats: stats})
		}
		b.average = &event.TimeAverageBrokerData{LongTermMsgRateIn: b.totals[0]}
		s.brokers = append(s.brokers, b)
	}
	return s
}

// shuffled is the same cluster in another order.
func (s *spec) shuffled(r *rand.Rand) *spec {
	out := *s
	out.brokers, out.bundles = slices.Clone(s.brokers), make([]bundleSpec, len(s.bundles))
	r.Shuffle(len(out.brokers), func(i, j int) { out.brokers[i], out.brokers[j] = out.brokers[j], out.brokers[i] })
	to := r.Perm(len(s.bundles))
	for i, k := range to {
		out.bundles[k] = s.bundles[i]
	}
	for i := range out.brokers {
		b := &out.brokers[i]
		b.bundles = slices.Clone(b.bundles)
		for k := range b.bundles {
			b.bundles[k] = to[b.bundles[k]]
		}
		r.Shuffle(len(b.bundles), func(x, y int) { b.bundles[x], b.bundles[y] = b.bundles[y], b.bundles[x] })
	}
	return &out
}

// moves is what a plan does, in no order.
func moves(p plan.Plan) []string {
	var out []string
	for _, d := range p.Decisions {
		out = append(out, d.Source+" "+d.Bundle+" "+d.Destination)
	}
	slices.Sort(out)
	return out
}

// TestOrderDoesNotMatter holds that shedders and placers of distinct loads decide alike in any order of brokers and bundles.
func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := even(t)
		o := s.shuffled(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		a, b := s.snapshot(), o.snapshot()
		for name, shedder := range shedders(modular.Options{}) {
			p, _ := shedder.Shed(a, nil, nil)
			q, _ := shedder.Shed(b, nil, nil)
			if diff := cmp.Diff(moves(p), moves(q)); diff != "" {
				t.Fatalf("%s:\n%s", name, diff)
			}
		}
		for name, best := range bestSets {
			if diff := cmp.Diff(sorted(ids(a, best(a, all(a)))), sorted(ids(b, best(b, all(b))))); diff != "" {
				t.Fatalf("%s:\n%s", name, diff)
			}
		}
	})
}

var bestSets = map[string]func(*cluster.Snapshot, []int) []int{
	"LeastLongTermMessageRate": func(s *cluster.Snapshot, c []int) []int { return modular.LeastLongTermMessageRate{}.Best(s, c, nil) },
	"LeastLongTermMessageRateDocumented": func(s *cluster.Snapshot, c []int) []int {
		return modular.LeastLongTermMessageRateDocumented{}.Best(s, c, nil)
	},
	"LeastResourceUsageWithWeight": func(s *cluster.Snapshot, c []int) []int {
		return modular.LeastResourceUsageWithWeight{}.Best(s, c, nil)
	},
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// TestScaling holds that a cluster with four times the traffic decides alike when the thresholds of traffic are four times
// as high, and placement alike without any change.
func TestScaling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := even(t)
		four := even4(s)
		a, b := s.snapshot(), four.snapshot()
		for _, name := range []string{"OverloadShedder", "ThresholdShedder", "AvgShedder"} { // UniformLoadShedder counts whole messages
			p, _ := shedders(modular.Options{})[name].Shed(a, nil, nil)
			q, _ := shedders(modular.Options{})[name].Shed(b, nil, nil)
			if diff := cmp.Diff(moves(p), moves(q)); diff != "" {
				t.Fatalf("%s:\n%s", name, diff)
			}
		}
		for name, best := range bestSets {
			if diff := cmp.Diff(best(a, all(a)), best(b, all(b))); diff != "" {
				t.Fatalf("%s:\n%s", name, diff)
			}
		}
	})
}

// even4 is the cluster with four times the traffic and thresholds to match.
func even4(s *spec) *spec {
	four := *s
	four.settings.MinUnloadMessage *= 4
	four.settings.MinUnloadMessageThroughput *= 4
	four.settings.LoadBalancerBundleUnloadMinThroughputThreshold *= 4
	four.brokers, four.bundles = slices.Clone(s.brokers), slices.Clone(s.bundles)
	for i := range four.brokers {
		b := &four.brokers[i]
		b.average = &event.TimeAverageBrokerData{LongTermMsgRateIn: 4 * b.average.LongTermMsgRateIn}
		for k := range b.totals {
			b.totals[k] *= 4
		}
	}
	for i := range four.bundles {
		stats := four.bundles[i].stats
		stats.MsgRateIn *= 4
		stats.MsgThroughputIn *= 4
		d := load.NewBundleData(load.ShortSamples, load.LongSamples, stats)
		four.bundles[i].data = &d
	}
	return &four
}
