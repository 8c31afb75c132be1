package load

import (
	"math"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/settings"
	"pgregory.net/rapid"
)

func TestUpdateBrokerLoad(t *testing.T) {
	u := event.NewSystemResourceUsage()
	u.CPU = event.ResourceUsage{Usage: 10, Limit: 100}
	w := WeightsOf(settings.Defaults())
	d := event.NewBrokerLoadData()
	UpdateBrokerLoad(&d, u, Totals{MsgThroughputIn: 100, MsgThroughputOut: 300}, w, 0.9, 1)
	if d.MaxResourceUsage != 0.1 || d.WeightedMaxEMA != 0.1 || d.MsgThroughputEMA != 400 {
		t.Errorf("the first measurement is not taken whole: %+v", d)
	}
	u.CPU.Usage = 90
	UpdateBrokerLoad(&d, u, Totals{}, w, 0.5, 2)
	if d.WeightedMaxEMA != 0.5 || d.MsgThroughputEMA != 200 || d.MaxResourceUsage != 0.9 || d.UpdatedAt != 2 {
		t.Errorf("the second measurement does not count half: %+v", d)
	}
}

// Heap memory counts in the weighted usage only, and only with a weight.
func TestWeightedMaxMemory(t *testing.T) {
	u := event.SystemResourceUsage{Memory: event.ResourceUsage{Usage: 50, Limit: 100}}
	for _, c := range []struct{ weight, want float64 }{{0, 0}, {1, 0.5}, {0.5, 0.25}} {
		if got := WeightedMax(u, Weights{Memory: c.weight}); got != c.want {
			t.Errorf("weight %v: %v, want %v", c.weight, got, c.want)
		}
	}
	if got := maxUsage(u); got != 0 {
		t.Errorf("maxResourceUsage counts heap: %v", got)
	}
}

func TestWeightsOf(t *testing.T) {
	for _, c := range []struct{ key, alias, want float64 }{{1, 1, 1}, {1, 0.5, 0.5}, {0.3, 0.5, 0.3}, {0, 1, 0}, {0.3, 1, 0.3}} {
		s := settings.Defaults()
		s.LoadBalancerBandwidthInResourceWeight, s.LoadBalancerBandwithInResourceWeight = c.key, c.alias
		s.LoadBalancerBandwidthOutResourceWeight, s.LoadBalancerBandwithOutResourceWeight = c.key, c.alias
		if w := WeightsOf(s); w.BandwidthIn != c.want || w.BandwidthOut != c.want {
			t.Errorf("key %v, alias %v: %+v, want %v", c.key, c.alias, w, c.want)
		}
	}
}

func TestGreatest(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		in   []float64
		want float64
	}{{nil, -inf}, {[]float64{nan}, -inf}, {[]float64{nan, 1, nan}, 1}, {[]float64{-1, -2}, -1}, {[]float64{inf, nan}, inf}} {
		if got := Greatest(c.in...); got != c.want {
			t.Errorf("%v: %v, want %v", c.in, got, c.want)
		}
	}
}

// NaN is above everything and equal to itself, -0 is below 0.
func TestOrderedBits(t *testing.T) {
	ascending := []float64{math.Inf(-1), -1, -5e-324, math.Copysign(0, -1), 0, 5e-324, 1, math.Inf(1), math.NaN()}
	for i, a := range ascending {
		for j, b := range ascending {
			got := CompareDouble(a, b)
			if got < 0 != (i < j) || got > 0 != (i > j) {
				t.Errorf("%v, %v: %d", a, b, got)
			}
		}
	}
	if CompareDouble(math.NaN(), -math.NaN()) != 0 || CompareDouble(math.NaN(), math.Float64frombits(0xfff8000000000001)) != 0 {
		t.Error("NaNs differ")
	}
}

func TestNeedsReport(t *testing.T) {
	const maxMinutes, threshold = 15, 10
	now := int64(100 * 60_000)
	half, sixTenths := 0.5, 0.6 // variables: constants would be subtracted exactly
	base := event.BrokerLoadData{
		MaxResourceUsage: 0.5, MsgRateIn: 50, MsgRateOut: 50, MsgThroughputIn: 500, MsgThroughputOut: 500, BundleCount: 10,
		ReportedAt: now - 15*60_000,
	}
	for name, c := range map[string]struct {
		change func(d *event.BrokerLoadData)
		needed bool
		cause  ReportCause
		value  float64
	}{
		"nothing":          {func(*event.BrokerLoadData) {}, false, ReportNone, 0},
		"older by 1 ms":    {func(d *event.BrokerLoadData) { d.ReportedAt-- }, true, ReportAge, 15*60_000 + 1},
		"usage at limit":   {func(d *event.BrokerLoadData) { d.MaxResourceUsage = 0.6 }, false, ReportNone, 100 * math.Abs(half-sixTenths)},
		"usage":            {func(d *event.BrokerLoadData) { d.MaxResourceUsage = 0.25 }, true, ReportUsage, 25},
		"rate at limit":    {func(d *event.BrokerLoadData) { d.MsgRateIn = 60 }, false, ReportNone, 10},
		"rate":             {func(d *event.BrokerLoadData) { d.MsgRateIn = 100 }, true, ReportMsgRate, 50},
		"throughput":       {func(d *event.BrokerLoadData) { d.MsgThroughputOut = 0 }, true, ReportThroughput, 50},
		"bundles":          {func(d *event.BrokerLoadData) { d.BundleCount = 12 }, true, ReportBundles, 20},
		"the largest wins": {func(d *event.BrokerLoadData) { d.BundleCount, d.MsgRateIn = 12, 100 }, true, ReportMsgRate, 50},
		"NaN hides all":    {func(d *event.BrokerLoadData) { d.MsgRateIn, d.BundleCount = math.NaN(), 100 }, false, ReportNone, math.NaN()},
	} {
		current := base
		c.change(&current)
		got := NeedsReport(&base, &current, now, maxMinutes, threshold)
		if got.Needed != c.needed || got.Cause != c.cause || got.Change != c.value && !(math.IsNaN(got.Change) && math.IsNaN(c.value)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	zero := event.BrokerLoadData{ReportedAt: now}
	some := event.BrokerLoadData{ReportedAt: now, BundleCount: 1}
	if got := NeedsReport(&zero, &some, now, maxMinutes, threshold); !got.Needed || !math.IsInf(got.Change, 1) {
		t.Errorf("from 0 bundles: %+v", got)
	}
}

// The average stays between what it was and the new value, whatever the history weight.
func TestAverageProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Float64Range(0, 10).Draw(t, "old"), rapid.Float64Range(0, 10).Draw(t, "sample")
		h := rapid.Float64Range(0, 1).Draw(t, "history")
		got := average(a, b, h)
		if got < min(a, b)-1e-12 || got > max(a, b)+1e-12 {
			t.Fatalf("average of %v and %v at %v is %v", a, b, h, got)
		}
	})
}
