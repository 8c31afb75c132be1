package load

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func derived(t testing.TB, r DeriveRules) *Derived {
	t.Helper()
	d, err := NewDerived(r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func report(cpu float64) *event.BrokerLoadData {
	return &event.BrokerLoadData{CPU: event.ResourceUsage{Usage: cpu, Limit: 100}, MsgThroughputIn: cpu * 1000, UpdatedAt: 77, WeightedMaxEMA: 9, BundleCount: 3}
}

func usageAt(t testing.TB, d *Derived, last *event.BrokerLoadData, now int64) float64 {
	t.Helper()
	data, ok := d.At("b:1", last, now)
	if !ok {
		t.Fatal("no load data")
	}
	return data.WeightedMaxEMA
}

// A report counts from when it was heard: after one half-life the average is half way to it, although no other report came.
func TestDerivedHalfLife(t *testing.T) {
	d := derived(t, DeriveRules{Weights: Weights{CPU: 1}, HalfLifeMillis: 1000})
	d.Hear("b:1", report(80), 0)
	d.Hear("b:1", report(20), 10_000)
	last := report(20)
	for now, want := range map[int64]float64{10_000: 0.8, 11_000: 0.5, 12_000: 0.35, 9_000: 0.8} {
		if got := usageAt(t, d, last, now); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %d: %v, want %v", now, got, want)
		}
	}
	data, _ := d.At("b:1", last, 11_000)
	if data.UpdatedAt != 10_000 || data.BundleCount != 3 || math.Abs(data.MsgThroughputEMA-50_000) > 1e-6 {
		t.Errorf("load data %+v", data)
	}
}

// With history 0 only the latest report counts, at once.
func TestDerivedNoHistory(t *testing.T) {
	d := derived(t, DeriveRules{Weights: Weights{CPU: 1}})
	d.Hear("b:1", report(80), 0)
	d.Hear("b:1", report(20), 1)
	if got := usageAt(t, d, report(20), 2); got != 0.2 {
		t.Errorf("usage %v, want 0.2", got)
	}
}

// The history weight is per interval: as much time gives as much weight, in however many reports.
func TestDerivedIrregular(t *testing.T) {
	rules := DeriveRules{Weights: Weights{CPU: 1}, History: 0.9, IntervalMillis: 5000}
	often, seldom := derived(t, rules), derived(t, rules)
	for _, d := range []*Derived{often, seldom} {
		d.Hear("b:1", report(80), 0)
		d.Hear("b:1", report(20), 60_000)
	}
	for now := int64(61_000); now <= 90_000; now += 1000 {
		often.Hear("b:1", report(20), now)
	}
	a, b := usageAt(t, often, report(20), 90_000), usageAt(t, seldom, report(20), 90_000)
	want := 0.2 + 0.6*math.Pow(0.9, 6)
	if math.Abs(a-want) > 1e-12 || math.Abs(b-want) > 1e-12 {
		t.Errorf("often %v, seldom %v, want %v", a, b, want)
	}
}

// What is unknown is left out and reported; it is neither 0 nor infinite.
func TestDerivedUnknown(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	weights := Weights{CPU: 1, BandwidthIn: 1, BandwidthOut: 0}
	for name, c := range map[string]struct {
		cpu, in event.ResourceUsage
		want    float64 // -1 = unknown
		notes   []Note
	}{
		"both known":     {cpu: event.ResourceUsage{Usage: 30, Limit: 100}, in: event.ResourceUsage{Usage: 50, Limit: 100}, want: 0.5},
		"limit 0":        {cpu: event.ResourceUsage{Usage: 30, Limit: 100}, in: event.ResourceUsage{Usage: 50}, want: 0.3, notes: []Note{{Kind: UnknownResource, Resource: event.BandwidthIn, Usage: 50}}},
		"-1, -1":         {cpu: event.ResourceUsage{Usage: 30, Limit: 100}, in: event.ResourceUsage{Usage: -1, Limit: -1}, want: 0.3, notes: []Note{{Kind: UnknownResource, Resource: event.BandwidthIn, Usage: -1, Limit: -1}}},
		"negative usage": {cpu: event.ResourceUsage{Usage: -1, Limit: 100}, in: event.ResourceUsage{Usage: 50, Limit: 100}, want: 0.5, notes: []Note{{Kind: UnknownResource, Resource: event.CPU, Usage: -1, Limit: 100}}},
		"infinite limit": {cpu: event.ResourceUsage{Usage: 30, Limit: inf}, in: event.ResourceUsage{Usage: 50, Limit: 100}, want: 0.5, notes: []Note{{Kind: UnknownResource, Resource: event.CPU, Usage: 30, Limit: inf}}},
		"none known": {cpu: event.ResourceUsage{Usage: nan, Limit: 100}, in: event.ResourceUsage{}, want: -1, notes: []Note{
			{Kind: UnknownResource, Resource: event.CPU, Usage: nan, Limit: 100}, {Kind: UnknownResource, Resource: event.BandwidthIn}, {Kind: UnknownUsage}}},
		"idle is known": {cpu: event.ResourceUsage{Usage: 0, Limit: 100}, in: event.ResourceUsage{Usage: 0, Limit: 100}, want: 0},
		"above limit":   {cpu: event.ResourceUsage{Usage: 130, Limit: 100}, in: event.ResourceUsage{Usage: 0, Limit: 100}, want: 1.3},
	} {
		t.Run(name, func(t *testing.T) {
			d := derived(t, DeriveRules{Weights: weights})
			r := &event.BrokerLoadData{CPU: c.cpu, BandwidthIn: c.in, BandwidthOut: event.ResourceUsage{Usage: -1, Limit: -1}}
			notes := d.Hear("b:1", r, 0)
			if diff := cmp.Diff(c.notes, notes, cmp.Comparer(func(a, b float64) bool { return CompareDouble(a, b) == 0 })); diff != "" {
				t.Error(diff)
			}
			data, ok := d.At("b:1", r, 1)
			if ok != (c.want >= 0) || ok && data.WeightedMaxEMA != c.want {
				t.Errorf("usage %v, %v; want %v", data.WeightedMaxEMA, ok, c.want)
			}
		})
	}
}

func TestDerivedThroughput(t *testing.T) {
	d := derived(t, DeriveRules{Weights: Weights{CPU: 1}})
	d.Hear("b:1", report(50), 0)
	bad := report(50)
	bad.MsgThroughputOut, bad.MsgRateIn = math.NaN(), math.Inf(1)
	if diff := cmp.Diff([]NoteKind{UnknownThroughput}, kinds(d.Hear("b:1", bad, 10))); diff != "" {
		t.Error(diff)
	}
	data, ok := d.At("b:1", bad, 20)
	if !ok || data.MsgThroughputEMA != 50_000 || data.MsgThroughputOut != 0 || data.MsgRateIn != 0 {
		t.Errorf("an unknown throughput did not leave the average alone: %+v", data)
	}
}

func kinds(notes []Note) []NoteKind {
	var out []NoteKind
	for _, n := range notes {
		out = append(out, n.Kind)
	}
	return out
}

// A NIC that says 10 Gbit/s and carries 1: the override wins over what is reported, a broker's own over that of all.
func TestDerivedCapacity(t *testing.T) {
	d := derived(t, DeriveRules{Weights: Weights{BandwidthIn: 1}, Capacities: map[string]Capacity{
		"b:1": {BandwidthIn: 1e6}, AnyBroker: {BandwidthIn: 5e6},
	}})
	for broker, want := range map[string]float64{"b:1": 0.9, "c:1": 0.18} {
		r := &event.BrokerLoadData{BandwidthIn: event.ResourceUsage{Usage: 9e5, Limit: 1e7}}
		d.Hear(broker, r, 0)
		data, ok := d.At(broker, r, 0)
		if !ok || data.WeightedMaxEMA != want || data.BandwidthIn.Usage != 9e5 || data.MaxResourceUsage != want {
			t.Errorf("%s: %+v, want usage %v", broker, data, want)
		}
	}
	unknown := &event.BrokerLoadData{BandwidthIn: event.ResourceUsage{Usage: 5e5, Limit: -1}}
	if notes := d.Hear("b:1", unknown, 1); len(notes) != 0 {
		t.Errorf("a limit that is overridden is not unknown: %+v", notes)
	}
}

func TestDerivedLimitChanged(t *testing.T) {
	d := derived(t, DeriveRules{Weights: Weights{CPU: 1}})
	for _, c := range []struct {
		limit  float64
		before float64 // 0 = no note
	}{{100, 0}, {199, 0}, {398, 199}, {398, 0}, {199, 398}, {0, 0}, {398, 0}} {
		var want []Note
		if c.before > 0 {
			want = []Note{{Kind: LimitChanged, Resource: event.CPU, Limit: c.limit, Before: c.before}}
		}
		notes := d.Hear("b:1", &event.BrokerLoadData{CPU: event.ResourceUsage{Usage: 10, Limit: c.limit}}, 0)
		var got []Note
		for _, n := range notes {
			if n.Kind == LimitChanged {
				got = append(got, n)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %v: %s", c.limit, diff)
		}
	}
}

// A new leader that reads the history decides as the old one would have.
func TestDerivedJSON(t *testing.T) {
	rules := DeriveRules{Weights: Weights{CPU: 1}, HalfLifeMillis: 7000}
	old := derived(t, rules)
	old.Hear("b:1", report(80), 0)
	old.Hear("b:1", report(33.3), 5000)
	bad := report(math.NaN())
	old.Hear("c:1", bad, 5000)
	text, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	next := derived(t, rules)
	if err := json.Unmarshal(text, next); err != nil {
		t.Fatal(err)
	}
	for _, d := range []*Derived{old, next} {
		d.Hear("b:1", report(50), 9000)
		d.Hear("c:1", report(50), 9000)
	}
	for _, b := range []string{"b:1", "c:1"} {
		x, _ := old.At(b, report(50), 20_000)
		y, ok := next.At(b, report(50), 20_000)
		if !ok || x != y {
			t.Errorf("%s: before %+v, after %+v", b, x, y)
		}
	}
	if err := json.Unmarshal([]byte(`{"version":2}`), next); err == nil || !strings.Contains(err.Error(), "version 2") {
		t.Errorf("another version: %v", err)
	}
}

func TestDerivedForget(t *testing.T) {
	d := derived(t, DeriveRules{Weights: Weights{CPU: 1}, HalfLifeMillis: 1000})
	if _, ok := d.At("b:1", report(1), 0); ok {
		t.Error("load data of a broker that was never heard")
	}
	d.Hear("b:1", report(80), 0)
	d.Forget("b:1")
	d.Hear("b:1", report(20), 10)
	if got := usageAt(t, d, report(20), 10); got != 0.2 {
		t.Errorf("usage %v after the history was dropped, want 0.2", got)
	}
}

func TestDeriveRulesValidate(t *testing.T) {
	for name, c := range map[string]struct {
		rules DeriveRules
		wrong string
	}{
		"half-life":         {DeriveRules{HalfLifeMillis: -1}, "half-life"},
		"history above 1":   {DeriveRules{History: 1.1, IntervalMillis: 1}, "between 0 and 1"},
		"history NaN":       {DeriveRules{History: math.NaN(), IntervalMillis: 1}, "between 0 and 1"},
		"no interval":       {DeriveRules{History: 0.9}, "interval"},
		"negative capacity": {DeriveRules{Capacities: map[string]Capacity{"b:1": {CPU: -1}}}, "cpu of b:1"},
		"infinite capacity": {DeriveRules{Capacities: map[string]Capacity{"*": {BandwidthOut: math.Inf(1)}}}, "bandwidthOut of *"},
	} {
		if _, err := NewDerived(c.rules); err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: error %v, want one about %q", name, err, c.wrong)
		}
	}
}

// TestDerivedProperty: whatever the reports, the average is unknown or between the least and the greatest usage heard.
func TestDerivedProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, err := NewDerived(DeriveRules{
			Weights: Weights{CPU: 1}, HalfLifeMillis: rapid.Int64Range(0, 100_000).Draw(t, "half-life"),
			History: rapid.Float64Range(0, 1).Draw(t, "history"), IntervalMillis: rapid.Int64Range(1, 100_000).Draw(t, "interval"),
		})
		if err != nil {
			t.Fatal(err)
		}
		least, most := math.Inf(1), math.Inf(-1)
		now := int64(0)
		for range rapid.IntRange(1, 10).Draw(t, "reports") {
			r := &event.BrokerLoadData{CPU: event.ResourceUsage{
				Usage: rapid.OneOf(rapid.Float64Range(0, 200), rapid.Float64()).Draw(t, "usage"), Limit: rapid.SampledFrom([]float64{100, 100, 100, 0, -1}).Draw(t, "limit"),
			}}
			now += rapid.Int64Range(-1000, 100_000).Draw(t, "elapsed")
			d.Hear("b:1", r, now)
			if !unknown(r.CPU) {
				least, most = min(least, r.CPU.Usage/100), max(most, r.CPU.Usage/100)
			}
			data, ok := d.At("b:1", r, now+rapid.Int64Range(0, 1_000_000).Draw(t, "later"))
			if ok == unknown(r.CPU) {
				t.Fatalf("known %v after %+v", ok, r.CPU)
			}
			slack := 1e-9 * max(1, most)
			if ok && (data.WeightedMaxEMA < least-slack || data.WeightedMaxEMA > most+slack) {
				t.Fatalf("average %v is outside [%v, %v]", data.WeightedMaxEMA, least, most)
			}
		}
	})
}
