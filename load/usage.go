// Package load computes how loaded brokers and bundles are: resource usage, averages and weighted maximum usage, as
// Pulsar computes them bit for bit, and Ballast's own averages derived from raw usage. It is pure.
package load

import (
	"cmp"
	"math"

	"github.com/ballast-lb/ballast/settings"
)

// CompareDouble orders floats as Java's Double.compare: NaN above everything and equal to itself, -0 below 0.
func CompareDouble(a, b float64) int {
	return cmp.Compare(OrderedBits(a), OrderedBits(b))
}

// OrderedBits maps a float to an integer that sorts as CompareDouble sorts the floats.
func OrderedBits(f float64) int64 {
	if f != f {
		f = math.NaN() // all NaNs are one
	}
	bits := int64(math.Float64bits(f))
	if bits < 0 {
		return bits ^ math.MaxInt64
	}
	return bits
}

// Weights are the weights of a broker's resources in its weighted maximum usage.
type Weights struct {
	CPU          float64
	Memory       float64 // heap; counted by the Extensible manager only
	DirectMemory float64
	BandwidthIn  float64
	BandwidthOut float64
}

// WeightsOf are the effective weights of the settings. A bandwidth weight comes from the misspelt alias of its key when
// the well-spelt key has its default 1.0. Pulsar: ServiceConfiguration.getLoadBalancerBandwidth(In|Out)ResourceWeight.
func WeightsOf(s *settings.Settings) Weights {
	return Weights{
		CPU:          s.LoadBalancerCPUResourceWeight,
		Memory:       s.LoadBalancerMemoryResourceWeight,
		DirectMemory: s.LoadBalancerDirectMemoryResourceWeight,
		BandwidthIn:  aliased(s.LoadBalancerBandwidthInResourceWeight, s.LoadBalancerBandwithInResourceWeight),
		BandwidthOut: aliased(s.LoadBalancerBandwidthOutResourceWeight, s.LoadBalancerBandwithOutResourceWeight),
	}
}

func aliased(weight, alias float64) float64 {
	if weight != 1.0 {
		return weight
	}
	return alias
}

// Greatest is the greatest of the values, ignoring NaN; -Inf when there is none. Pulsar: LocalBrokerData.max.
func Greatest(values ...float64) float64 {
	most := math.Inf(-1)
	for _, v := range values {
		if v > most {
			most = v
		}
	}
	return most
}
