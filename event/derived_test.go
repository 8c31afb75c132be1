package event_test

import (
	"math"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/google/go-cmp/cmp"
)

func TestPercentUsage(t *testing.T) {
	inf := math.Inf(1)
	for _, test := range []struct {
		usage event.ResourceUsage
		want  float32
	}{
		{event.ResourceUsage{Usage: 33.3, Limit: 400}, 8.325}, {event.ResourceUsage{Usage: 1, Limit: 3}, 33.333336},
		{event.ResourceUsage{Usage: -1, Limit: -1}, 0}, {event.ResourceUsage{Usage: 5}, 0}, {event.ResourceUsage{Usage: -1, Limit: 4}, -25},
		{event.ResourceUsage{Usage: 6, Limit: 4}, 150}, {event.ResourceUsage{Usage: 1, Limit: inf}, 0},
		{event.ResourceUsage{Usage: 1, Limit: 4.9e-324}, float32(inf)}, {event.ResourceUsage{Usage: 1, Limit: math.NaN()}, 0},
	} {
		if got := test.usage.PercentUsage(); got != test.want {
			t.Errorf("usage of %v is %v %%, want %v %%", test.usage, got, test.want)
		}
	}
	if got := (event.ResourceUsage{Usage: math.NaN(), Limit: 1}).PercentUsage(); got == got {
		t.Errorf("usage of NaN is %v %%", got)
	}
}

// TestCompareStats walks through the steps of the order of bundles, each just at and just beyond a border.
func TestCompareStats(t *testing.T) {
	base := event.NamespaceBundleStats{MsgThroughputIn: 1e6, MsgThroughputOut: 2e6, MsgRateIn: 1000, MsgRateOut: 500, ConsumerCount: 300, ProducerCount: 300, Topics: 400, CacheSize: 1e6}
	for _, test := range []struct {
		name   string
		change func(*event.NamespaceBundleStats)
		want   int // of what is changed, to base
	}{
		{"same", func(*event.NamespaceBundleStats) {}, 0},
		{"in below half", func(s *event.NamespaceBundleStats) { s.MsgThroughputIn += 49999 }, 0},
		{"in at half", func(s *event.NamespaceBundleStats) { s.MsgThroughputIn += 50000 }, 1},
		{"out below half", func(s *event.NamespaceBundleStats) { s.MsgThroughputOut -= 50000 }, 0},
		{"out beyond half", func(s *event.NamespaceBundleStats) { s.MsgThroughputOut -= 50001 }, -1},
		{"rate", func(s *event.NamespaceBundleStats) { s.MsgRateOut += 50 }, 1},
		{"sessions", func(s *event.NamespaceBundleStats) { s.Topics += 500 }, 1},
		{"sessions below a step", func(s *event.NamespaceBundleStats) { s.Topics += 499 }, 0},
		{"cache", func(s *event.NamespaceBundleStats) { s.CacheSize-- }, -1},
		{"in before out", func(s *event.NamespaceBundleStats) { s.MsgThroughputIn, s.MsgThroughputOut = 2e6, 0 }, 1},
		{"NaN is 0", func(s *event.NamespaceBundleStats) { s.MsgThroughputIn = math.NaN() }, -1},
		{"infinity saturates", func(s *event.NamespaceBundleStats) { s.MsgThroughputIn = math.Inf(1) }, 1},
		{"negative infinity saturates", func(s *event.NamespaceBundleStats) { s.MsgThroughputIn = math.Inf(-1) }, -1},
	} {
		changed := base
		test.change(&changed)
		if got := changed.Compare(base); got != test.want {
			t.Errorf("%s: compares as %d, want %d", test.name, got, test.want)
		}
		if got := base.Compare(changed); got != -test.want {
			t.Errorf("%s: compares the other way as %d, want %d", test.name, got, -test.want)
		}
	}
	almost := event.NamespaceBundleStats{MsgThroughputIn: 0.49999999999999994 * 100000}
	if got := almost.Compare(event.NamespaceBundleStats{}); got != 0 {
		t.Errorf("the largest number below a half is not rounded down: %d", got)
	}
	half := event.NamespaceBundleStats{MsgThroughputIn: -50000}
	if got := half.Compare(event.NamespaceBundleStats{}); got != 0 {
		t.Errorf("-0.5 is not rounded up: %d", got)
	}
}

func TestCompareAverages(t *testing.T) {
	base := event.TimeAverageMessageData{MsgThroughputIn: 1e6, MsgThroughputOut: 1e6, MsgRateIn: 100, MsgRateOut: 100}
	more := base
	more.MsgThroughputIn += 99999
	if got := more.Compare(base); got != 0 {
		t.Errorf("a part of a step compares as %d: it must be truncated", got)
	}
	more.MsgRateOut += 100
	if got := more.Compare(base); got != 1 {
		t.Errorf("a step of rate compares as %d", got)
	}
	a, b := event.BundleData{ShortTermData: base, LongTermData: more}, event.BundleData{ShortTermData: base, LongTermData: base}
	if got := a.Compare(b); got != 1 {
		t.Errorf("equal short terms: the long term compares as %d", got)
	}
	if more.TotalMsgRate() != 300 || base.TotalMsgThroughput() != 2e6 {
		t.Errorf("totals are %v and %v", more.TotalMsgRate(), base.TotalMsgThroughput())
	}
}

func TestLoadReportDerived(t *testing.T) {
	d := event.NewLoadReport()
	if got := d.Bottleneck(); got != event.CPU {
		t.Errorf("bottleneck of nothing is %s", got)
	}
	usage := event.NewSystemResourceUsage()
	usage.CPU, usage.BandwidthIn = event.ResourceUsage{Usage: 50, Limit: 100}, event.ResourceUsage{Usage: 5, Limit: 10}
	d.SystemResourceUsage = &usage
	if got := d.Bottleneck(); got != event.CPU {
		t.Errorf("bottleneck of equals is %s, want the first", got)
	}
	usage.DirectMemory, usage.BandwidthOut = event.ResourceUsage{Usage: 9, Limit: 10}, event.ResourceUsage{Usage: 51, Limit: 100}
	if got := d.Bottleneck(); got != event.BandwidthOut {
		t.Errorf("bottleneck is %s: direct memory does not count", got)
	}
	d.BundleStats = []event.NamedBundleStats{
		{Bundle: "a", Stats: event.NamespaceBundleStats{MsgRateIn: 100, MsgThroughputIn: 1e6, Topics: 1, ConsumerCount: math.MaxInt32}},
		{Bundle: "b", Stats: event.NamespaceBundleStats{MsgRateIn: 300, MsgThroughputIn: 1e6, Topics: 5e9, ConsumerCount: 1, ProducerCount: 7}},
		{Bundle: "c", Stats: event.NamespaceBundleStats{MsgRateOut: 340, MsgThroughputOut: 1e6}},
	}
	if d.MsgRateIn() != 400 || d.MsgRateOut() != 340 || d.NumTopics() != 5e9+1 || d.NumConsumers() != math.MinInt32 || d.NumProducers() != 7 || d.NumBundles() != 3 {
		t.Errorf("sums are %v, %v, %d, %d, %d, %d", d.MsgRateIn(), d.MsgRateOut(), d.NumTopics(), d.NumConsumers(), d.NumProducers(), d.NumBundles())
	}
	for by, want := range map[event.Resource]string{event.CPU: "bca", event.Memory: "bac", event.BandwidthIn: "abc", event.BandwidthOut: "cab"} {
		got := ""
		for _, s := range d.SortedBundleStats(by) {
			got += s.Bundle
		}
		if got != want {
			t.Errorf("by %s the order is %s, want %s", by, got, want)
		}
	}
	if d.BundleStats[0].Bundle != "a" {
		t.Error("sorting changed the report")
	}
}

func TestMaxResourceUsage(t *testing.T) {
	d := event.NewLocalBrokerData(1)
	if got := d.MaxResourceUsage(); got != 0 {
		t.Errorf("usage of nothing is %v", got)
	}
	d.DirectMemory, d.Memory = event.ResourceUsage{Usage: 10, Limit: 100}, event.ResourceUsage{Usage: 99, Limit: 100}
	if got := d.MaxResourceUsage(); got != 0.10000000149011612 {
		t.Errorf("10 %% of direct memory is %v: it is computed in 32 bits, and heap memory does not count", got)
	}
	d.CPU = event.ResourceUsage{Usage: math.NaN(), Limit: 100}
	if got := d.MaxResourceUsage(); got != 0.10000000149011612 {
		t.Errorf("with a NaN it is %v", got)
	}
	for _, r := range []*event.ResourceUsage{&d.DirectMemory, &d.BandwidthIn, &d.BandwidthOut} {
		*r = d.CPU
	}
	if got := d.MaxResourceUsage(); !math.IsInf(got, -1) {
		t.Errorf("of nothing but NaN it is %v", got)
	}
}

func TestResources(t *testing.T) {
	set := event.ResourceSet(0).With(event.BandwidthOut).With(event.CPU).With(event.Memory).Without(event.Memory)
	if diff := cmp.Diff("cpu, bandwidthOut", set.String()); diff != "" || set.Has(event.Memory) || !set.Has(event.CPU) {
		t.Errorf("set is %s", set)
	}
	if got := event.Resource(9).String(); got != "unknown" {
		t.Errorf("a resource that does not exist is called %s", got)
	}
}
