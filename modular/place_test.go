package modular

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/settings"
)

// TestOverloadTest holds that the comparison turned around is the comparison: for any threshold, near it and for odd numbers.
func TestOverloadTest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		conf := settings.Defaults()
		percent := rapid.OneOf(rapid.Int64Range(-5, 200), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64})).Draw(t, "threshold")
		conf.LoadBalancerBrokerOverloadedThresholdPercentage = percent
		conf.LoadBalancerCPUResourceWeight = rapid.OneOf(rapid.Just(1.0), rapid.Float64Range(-1, 3), rapid.Just(math.NaN())).Draw(t, "weight")
		number := rapid.OneOf(
			rapid.Float64Range(0, 200), rapid.Float64Range(float64(percent)-1e-6, float64(percent)+1e-6),
			rapid.SampledFrom([]float64{0, -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e300, float64(percent)}),
		)
		d := &event.LocalBrokerData{}
		for _, r := range []*event.ResourceUsage{&d.CPU, &d.DirectMemory, &d.BandwidthIn, &d.BandwidthOut} {
			*r = event.ResourceUsage{Usage: number.Draw(t, "usage"), Limit: rapid.OneOf(rapid.Just(100.0), number).Draw(t, "limit")}
		}
		snap := &cluster.Snapshot{Settings: conf}
		test := newOverloadTest(snap)
		want := load.LocalWeightedMaxUsage(d, &test.weights) > overloadThreshold(snap)
		if got := test.above(d); got != want {
			t.Fatalf("above %v, want %v", got, want)
		}
	})
}
