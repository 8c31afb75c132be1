package load

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/event"
)

// TestLocalMaxUsage holds numbers that Pulsar 4.2.4 gave: 32-bit floats, heap memory left out.
func TestLocalMaxUsage(t *testing.T) {
	for _, c := range []struct {
		name string
		d    event.LocalBrokerData
		max  float64
	}{
		{"10 % of direct memory", event.LocalBrokerData{DirectMemory: event.ResourceUsage{Usage: 10, Limit: 100}}, 0.10000000149011612},
		{"heap memory does not count", event.LocalBrokerData{Memory: event.ResourceUsage{Usage: 90, Limit: 100}}, 0},
		{"unknown resources count as 0", event.LocalBrokerData{CPU: event.ResourceUsage{Usage: -1, Limit: -1}, BandwidthIn: event.ResourceUsage{Usage: 5}}, 0},
		{"NaN never wins", event.LocalBrokerData{
			CPU:         event.ResourceUsage{Usage: math.NaN(), Limit: 100},
			BandwidthIn: event.ResourceUsage{Usage: 50, Limit: 100}, BandwidthOut: event.ResourceUsage{Usage: math.NaN(), Limit: 1},
		}, 0.5},
	} {
		if got := LocalMaxUsage(&c.d); got != c.max {
			t.Errorf("%s: %v, want %v", c.name, got, c.max)
		}
	}
}

func TestLocalWeightedMaxUsage(t *testing.T) {
	d := event.LocalBrokerData{CPU: event.ResourceUsage{Usage: 33.3, Limit: 100}, BandwidthOut: event.ResourceUsage{Usage: 20, Limit: 100}}
	for _, c := range []struct {
		w    Weights
		want float64
	}{
		{Weights{CPU: 1, BandwidthIn: 1, BandwidthOut: 1}, 0.33299999237060546},
		{Weights{CPU: 0.5, BandwidthOut: 1}, 0.2},
		{Weights{CPU: -1, BandwidthIn: 1, BandwidthOut: -1}, 0}, // the unused resources win
		{Weights{Memory: 100}, 0},
		{Weights{CPU: math.NaN(), DirectMemory: math.NaN(), BandwidthIn: math.NaN(), BandwidthOut: math.NaN()}, math.Inf(-1)},
	} {
		if got := LocalWeightedMaxUsage(&d, &c.w); got != c.want {
			t.Errorf("%+v: %v, want %v", c.w, got, c.want)
		}
	}
}

func reported(names ...string) []event.NamedBundleStats {
	var out []event.NamedBundleStats
	for _, n := range names {
		out = append(out, event.NamedBundleStats{Bundle: n, Stats: event.NamespaceBundleStats{MsgRateIn: 1, Topics: 2, ConsumerCount: 3, ProducerCount: 4}})
	}
	return out
}

// TestUpdateLocal follows gains and losses over three reports, the last of them after a successful write.
func TestUpdateLocal(t *testing.T) {
	d := event.NewLocalBrokerData(0)
	host := event.SystemResourceUsage{CPU: event.ResourceUsage{Usage: 1, Limit: 2}}
	steps := []struct {
		stats                  []event.NamedBundleStats
		bundles, gains, losses []string
		clean                  bool
		rate                   float64
		topics                 int64
		bundleCount, c, p      int32
	}{
		{reported("a", "b"), []string{"a", "b"}, []string{"a", "b"}, nil, false, 2, 4, 2, 6, 8},
		{reported("b", "c"), []string{"b", "c"}, []string{"a", "b", "c"}, []string{"a"}, true, 2, 4, 2, 6, 8},
		{reported("a"), []string{"a"}, []string{"a"}, []string{"b", "c"}, false, 1, 2, 1, 3, 4},
	}
	for i, s := range steps {
		UpdateLocal(&d, host, s.stats)
		for what, pair := range map[string][2][]string{
			"bundles": {s.bundles, d.Bundles}, "gains": {s.gains, d.LastBundleGains}, "losses": {s.losses, d.LastBundleLosses},
		} {
			if diff := cmp.Diff(pair[0], pair[1], cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("step %d, %s:\n%s", i, what, diff)
			}
		}
		if d.CPU != host.CPU || d.MsgRateIn != s.rate || d.NumTopics != s.topics || d.NumBundles != s.bundleCount || d.NumConsumers != s.c || d.NumProducers != s.p {
			t.Errorf("step %d: %+v", i, d)
		}
		if s.clean {
			CleanDeltas(&d)
		}
	}
}

func TestUpdateLocalTwoEntries(t *testing.T) {
	stats := reported("a", "b", "a")
	stats[2].Stats.MsgRateIn = 10
	d := event.NewLocalBrokerData(0)
	UpdateLocal(&d, event.SystemResourceUsage{}, stats)
	if d.NumBundles != 2 || d.MsgRateIn != 11 || !slices.Equal(d.Bundles, []string{"a", "b"}) {
		t.Errorf("%d bundles %v, rate %v", d.NumBundles, d.Bundles, d.MsgRateIn)
	}
}

// TestUpdateLocalSets holds, over any reports, that the bundles are those of the last one and that gains and losses explain
// how they came about.
func TestUpdateLocalSets(t *testing.T) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 0, 5, rapid.ID[string])
	rapid.Check(t, func(t *rapid.T) {
		d := event.NewLocalBrokerData(0)
		UpdateLocal(&d, event.SystemResourceUsage{}, reported(names.Draw(t, "before")...))
		before := slices.Clone(d.Bundles)
		CleanDeltas(&d)
		for range rapid.IntRange(1, 4).Draw(t, "reports") {
			now := names.Draw(t, "now")
			UpdateLocal(&d, event.SystemResourceUsage{}, reported(now...))
			same := cmpopts.SortSlices(func(a, b string) bool { return a < b })
			if diff := cmp.Diff(now, d.Bundles, same, cmpopts.EquateEmpty()); diff != "" {
				t.Fatal(diff)
			}
			for _, b := range now {
				if !slices.Contains(before, b) && !slices.Contains(d.LastBundleGains, b) {
					t.Fatalf("%s came without being a gain", b)
				}
			}
			for _, b := range before {
				if !slices.Contains(now, b) && !slices.Contains(d.LastBundleLosses, b) {
					t.Fatalf("%s went without being a loss", b)
				}
			}
		}
	})
}

func TestReportDue(t *testing.T) {
	last := event.LocalBrokerData{
		MsgRateIn: 60, MsgRateOut: 40, MsgThroughputIn: 1000, NumBundles: 10, LastUpdate: 1_000_000,
		CPU: event.ResourceUsage{Usage: 50, Limit: 100},
	}
	w := Weights{CPU: 1, BandwidthIn: 1, BandwidthOut: 1}
	for _, c := range []struct {
		name   string
		now    int64
		change func(*event.LocalBrokerData)
		due    bool
	}{
		{"nothing", 1_000_000, func(*event.LocalBrokerData) {}, false},
		{"exactly the interval", 1_000_000 + 900_000, func(*event.LocalBrokerData) {}, false},
		{"older than the interval", 1_000_000 + 900_001, func(*event.LocalBrokerData) {}, true},
		{"rate by 10 %", 0, func(d *event.LocalBrokerData) { d.MsgRateIn = 70 }, false},
		{"rate by 11 %", 0, func(d *event.LocalBrokerData) { d.MsgRateOut = 51 }, true},
		{"throughput to nothing", 0, func(d *event.LocalBrokerData) { d.MsgThroughputIn = 0 }, true},
		{"two bundles more", 0, func(d *event.LocalBrokerData) { d.NumBundles = 12 }, true},
		{"usage by 9 points", 0, func(d *event.LocalBrokerData) { d.CPU.Usage = 59 }, false},
		{"usage by 11 points", 0, func(d *event.LocalBrokerData) { d.CPU.Usage = 39 }, true},
		{"heap memory does not count", 0, func(d *event.LocalBrokerData) { d.Memory = event.ResourceUsage{Usage: 90, Limit: 100} }, false},
		{"NaN does not count", 0, func(d *event.LocalBrokerData) { d.MsgRateIn = math.NaN() }, false},
		{"NaN does not hide the others", 0, func(d *event.LocalBrokerData) { d.MsgRateIn, d.NumBundles = math.NaN(), 20 }, true},
	} {
		d := last
		c.change(&d)
		due, why := ReportDue(&last, &d, c.now, &w, 10, 15)
		if due != c.due {
			t.Errorf("%s: %v (%+v)", c.name, due, why)
		}
	}
	var idle event.LocalBrokerData
	if due, why := ReportDue(&idle, &idle, 0, &w, 10, 15); due || why.Max() != 0 {
		t.Errorf("an idle broker: %v %+v", due, why)
	}
	first := event.LocalBrokerData{MsgRateIn: 1}
	if due, why := ReportDue(&idle, &first, 0, &w, 10, 15); !due || !math.IsInf(why.Rate, 1) {
		t.Errorf("the first message: %v %+v", due, why)
	}
}

func FuzzUpdateLocal(f *testing.F) {
	f.Add("a,b", "b,c,b", 1.0, 2.0)
	f.Add("", ",,", math.NaN(), math.Inf(-1))
	f.Fuzz(func(t *testing.T, before, after string, usage, limit float64) {
		split := func(s string) []event.NamedBundleStats {
			var names []string
			for i := range len(s) {
				names = append(names, s[i:i+1])
			}
			return reported(names...)
		}
		d := event.NewLocalBrokerData(0)
		host := event.SystemResourceUsage{CPU: event.ResourceUsage{Usage: usage, Limit: limit}}
		UpdateLocal(&d, host, split(before))
		last := d
		UpdateLocal(&d, host, split(after))
		w := Weights{CPU: usage, BandwidthIn: limit}
		ReportDue(&last, &d, int64(len(before)), &w, 10, 15)
		if int(d.NumBundles) != len(d.Bundles) || len(d.LastStats) != len(d.Bundles) {
			t.Errorf("%d bundles, %d in the set, %d reported", d.NumBundles, len(d.Bundles), len(d.LastStats))
		}
	})
}

func TestSelectGreatest(t *testing.T) {
	// Pulsar's own moves for these values: 9, 7, 7 are taken, of the two 7s k5 first.
	type kv struct{ name, value int }
	values := []int{5, 1, 9, 3, 7, 7, 2}
	var a []kv
	for i, v := range values {
		a = append(a, kv{i, v})
	}
	SelectGreatest(a, 3, func(x, y *kv) int { return x.value - y.value })
	var order []int
	for _, x := range a {
		order = append(order, x.name)
	}
	if want := []int{2, 5, 4, 3, 0, 6, 1}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	rapid.Check(t, func(t *rapid.T) {
		a := rapid.SliceOf(rapid.IntRange(0, 9)).Draw(t, "values")
		k := rapid.IntRange(0, len(a)).Draw(t, "k")
		want := slices.Clone(a)
		slices.SortFunc(want, func(x, y int) int { return y - x })
		SelectGreatest(a, k, func(x, y *int) int { return *x - *y })
		if !slices.Equal(a[:k], want[:k]) {
			t.Fatalf("%v, want %v", a[:k], want[:k])
		}
	})
}
