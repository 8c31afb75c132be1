package simple

import (
	"math"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
)

// toLong is Java's cast to long: toward zero, saturating, NaN is 0.
func toLong(x float64) int64 {
	switch {
	case math.IsNaN(x):
		return 0
	case x >= math.MaxInt64:
		return math.MaxInt64
	case x <= math.MinInt64:
		return math.MinInt64
	}
	return int64(x)
}

// minutes is minutes in ms, saturating as Java's TimeUnit does.
func minutes(n int64) int64 {
	switch {
	case n > math.MaxInt64/60000:
		return math.MaxInt64
	case n < math.MinInt64/60000:
		return math.MinInt64
	}
	return n * 60000
}

// less is Java's Double.compare(a, b) < 0.
func less(a, b float64) bool { return load.CompareDouble(a, b) < 0 }

// usages are the resources that overload is judged by: not heap memory.
func usages(u *event.SystemResourceUsage) [4]float32 {
	return [4]float32{u.BandwidthOut.PercentUsage(), u.BandwidthIn.PercentUsage(), u.CPU.PercentUsage(), u.DirectMemory.PercentUsage()}
}

// above says whether any of them is above a percentage. Pulsar: isAboveLoadLevel.
func above(u *event.SystemResourceUsage, percent int64) bool {
	for _, p := range usages(u) {
		if p > float32(percent) {
			return true
		}
	}
	return false
}

// below says whether all of them are below a percentage. Pulsar: isBelowLoadLevel.
func below(u *event.SystemResourceUsage, percent int64) bool {
	for _, p := range usages(u) {
		if !(p < float32(percent)) {
			return false
		}
	}
	return true
}

// fullest is the greatest of them, in percent.
func fullest(u *event.SystemResourceUsage) float64 {
	most := math.Inf(-1)
	for _, p := range usages(u) {
		most = max(most, float64(p))
	}
	return most
}
