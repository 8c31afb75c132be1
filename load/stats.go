package load

import "github.com/ballast-lb/ballast/event"

// Throughput is the bytes/s in and out of a bundle.
func Throughput(s *event.NamespaceBundleStats) float64 {
	return s.MsgThroughputIn + s.MsgThroughputOut
}

// MsgRate is the messages/s in and out of a bundle.
func MsgRate(s *event.NamespaceBundleStats) float64 {
	return s.MsgRateIn + s.MsgRateOut
}
