package settings

import (
	"fmt"
	"reflect"
)

// Defaults returns the settings of a Pulsar 4.2.4 broker with an empty broker.conf.
func Defaults() *Settings { return DefaultsOf("4.2.4") }

// DefaultsOf returns the settings of a broker of a Pulsar version with an empty broker.conf. From 5.0.0 on they are those
// of 5.0.1, before (and for a version that cannot be read) those of 4.2.4.
func DefaultsOf(version string) *Settings {
	s := new(Settings)
	setDefaults(s, pulsarKeys, major(version))
	return s
}

func setDefaults(into any, keys []Key, major int) {
	v := reflect.ValueOf(into).Elem()
	for _, k := range keys {
		text := k.Default
		if major >= 5 {
			text = k.Default5
		}
		if err := setField(v.Field(k.field), k, text); err != nil {
			panic(fmt.Sprintf("settings: default of %s: %v", k.Name, err)) // a fault in this package's own table
		}
	}
}

// BandwidthInWeight is the effective weight of inbound bandwidth: the misspelt alias of the key counts when the well-spelt
// one has its default 1.0. Pulsar: ServiceConfiguration.getLoadBalancerBandwidthInResourceWeight.
func (s *Settings) BandwidthInWeight() float64 {
	return aliased(s.LoadBalancerBandwidthInResourceWeight, s.LoadBalancerBandwithInResourceWeight)
}

// BandwidthOutWeight is the effective weight of outbound bandwidth, as BandwidthInWeight.
func (s *Settings) BandwidthOutWeight() float64 {
	return aliased(s.LoadBalancerBandwidthOutResourceWeight, s.LoadBalancerBandwithOutResourceWeight)
}

func aliased(weight, misspelt float64) float64 {
	if weight != 1.0 {
		return weight
	}
	return misspelt
}
