package modular_test

import (
	"fmt"
	"math"

	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// spec is a drawn cluster from which equal snapshots are made, so that a change of one can be seen.
type spec struct {
	version  string
	settings settings.Settings
	brokers  []brokerSpec
	bundles  []bundleSpec
	policies *policy.Set
	recent   map[string]int64
}

type brokerSpec struct {
	id      string
	silent  bool
	usage   event.SystemResourceUsage
	totals  [4]float64 // rate in, out, throughput in, out
	bundles []int
	version string
	class   string
	average *event.TimeAverageBrokerData
	topics  int64
}

type bundleSpec struct {
	name  string
	data  *event.BundleData
	stats event.NamespaceBundleStats
}

// odd are numbers that no sane cluster reports.
var odd = []float64{0, math.Copysign(0, -1), -1, math.NaN(), math.Inf(1), math.Inf(-1), 1e308, -1e308, 5e-324, math.MaxInt32, math.MaxInt32 + 1, 1 << 62}

// anyFloat is mostly ordinary, often odd.
func anyFloat(most float64) *rapid.Generator[float64] {
	return rapid.OneOf(rapid.Float64Range(0, most), rapid.Float64Range(0, most), rapid.SampledFrom(odd))
}

// hostile is clusters of any numbers and names: duplicates, silent brokers, unknown names, limits of 0.
func hostile(t *rapid.T) *spec {
	s := &spec{version: rapid.SampledFrom([]string{"4.2.4", "5.0.1", "", "x"}).Draw(t, "version"), settings: *settings.Defaults(), recent: map[string]int64{}}
	names := []string{
		"t/n/0x00000000_0x10000000", "t/n/0x10000000_0x20000000", "t/m/0x00000000_0xffffffff", "pulsar/b0:8080/0x00000000_0xffffffff",
		"sla-monitor/b0:8080/0x00000000_0xffffffff", "pulsar/system/0x00000000_0xffffffff", "", "/", "no slash", "bad*ns/x/0x00000000_0x00000001",
		"t/n/0x20000000_0x30000000", "t/m/ü", "\x00\u2028",
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "bundles") {
		b := bundleSpec{name: rapid.SampledFrom(names).Draw(t, "bundle")}
		if rapid.Bool().Draw(t, "regular") {
			b.name = fmt.Sprintf("t/r/0x%08x_0x%08x", i<<24, (i+1)<<24)
		}
		b.stats = event.NamespaceBundleStats{
			MsgRateIn: anyFloat(1e5).Draw(t, "rate"), MsgThroughputIn: anyFloat(1e9).Draw(t, "throughput"),
			Topics: rapid.Int64Range(-1, 5000).Draw(t, "topics"), ConsumerCount: rapid.Int32().Draw(t, "consumers"),
		}
		if rapid.IntRange(0, 4).Draw(t, "known") > 0 {
			d := load.NewBundleData(load.ShortSamples, load.LongSamples, b.stats)
			b.data = &d
		}
		if rapid.IntRange(0, 5).Draw(t, "recent") == 0 {
			s.recent[b.name] = rapid.Int64().Draw(t, "at")
		}
		s.bundles = append(s.bundles, b)
	}
	for range rapid.IntRange(0, 6).Draw(t, "brokers") {
		b := brokerSpec{
			id:      rapid.SampledFrom([]string{"b0:8080", "b1:8080", "b2:8080", "b3:8080", "b4:8080", "[::1]:8080", "no-port", ""}).Draw(t, "id"),
			silent:  rapid.IntRange(0, 6).Draw(t, "silent") == 0,
			version: rapid.SampledFrom([]string{"4.2.4", "4.2.3", "", "4", "5.0.1+b2"}).Draw(t, "broker version"),
			class:   rapid.SampledFrom([]string{modular.Class, modular.Class, modular.Class, "", "other"}).Draw(t, "class"),
			topics:  rapid.Int64().Draw(t, "broker topics"),
		}
		for _, r := range []*event.ResourceUsage{&b.usage.CPU, &b.usage.Memory, &b.usage.DirectMemory, &b.usage.BandwidthIn, &b.usage.BandwidthOut} {
			*r = event.ResourceUsage{Usage: anyFloat(100).Draw(t, "usage"), Limit: rapid.OneOf(rapid.Just(100.0), anyFloat(100)).Draw(t, "limit")}
		}
		for k := range b.totals {
			b.totals[k] = anyFloat(1e9).Draw(t, "total")
		}
		if len(s.bundles) > 0 {
			b.bundles = rapid.SliceOfN(rapid.IntRange(0, len(s.bundles)-1), 0, 8).Draw(t, "serves")
		}
		if rapid.Bool().Draw(t, "averaged") {
			b.average = &event.TimeAverageBrokerData{LongTermMsgRateIn: anyFloat(1e5).Draw(t, "average")}
		}
		s.brokers = append(s.brokers, b)
	}
	s.drawSettings(t)
	s.drawPolicies(t)
	return s
}

func (s *spec) drawSettings(t *rapid.T) {
	c := &s.settings
	for _, p := range []*int64{
		&c.LoadBalancerBrokerOverloadedThresholdPercentage, &c.LoadBalancerBrokerThresholdShedderPercentage,
		&c.LoadBalancerAverageResourceUsageDifferenceThresholdPercentage, &c.LoadBalancerAvgShedderLowThreshold, &c.LoadBalancerAvgShedderHighThreshold,
		&c.LoadBalancerAvgShedderHitCountLowThreshold, &c.LoadBalancerAvgShedderHitCountHighThreshold, &c.MinUnloadMessage, &c.MinUnloadMessageThroughput,
		&c.MaxUnloadBundleNumPerShedding, &c.LoadBalancerBrokerMaxTopics, &c.LoadBalancerSheddingGracePeriodMinutes,
		&c.LoadBalancerNamespaceMaximumBundles, &c.LoadBalancerNamespaceBundleMaxBandwidthMbytes, &c.LoadBalancerMaxNumberOfBundlesInBundleLoadReport,
	} {
		if rapid.Bool().Draw(t, "set") {
			*p = rapid.OneOf(rapid.Int64Range(-1, 100), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, math.MaxInt32})).Draw(t, "key")
		}
	}
	for _, p := range []*float64{
		&c.LoadBalancerCPUResourceWeight, &c.LoadBalancerDirectMemoryResourceWeight, &c.LoadBalancerBandwidthInResourceWeight,
		&c.LoadBalancerHistoryResourcePercentage, &c.LoadBalancerBundleUnloadMinThroughputThreshold, &c.MaxUnloadPercentage,
		&c.LoadBalancerMsgRateDifferenceShedderThreshold, &c.LoadBalancerMsgThroughputMultiplierDifferenceShedderThreshold,
	} {
		if rapid.Bool().Draw(t, "set") {
			*p = anyFloat(2).Draw(t, "key")
		}
	}
	for _, p := range []*bool{
		&c.LowerBoundarySheddingEnabled, &c.LoadBalancerDistributeBundlesEvenlyEnabled, &c.PreferLaterVersions, &c.FailureDomainsEnabled,
	} {
		*p = rapid.Bool().Draw(t, "key")
	}
	c.LoadBalancerSheddingExcludedNamespaces = rapid.SampledFrom([][]string{nil, {"t/m"}, {"", "no slash"}}).Draw(t, "excluded")
}

func (s *spec) drawPolicies(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "policies") {
	case 0:
		return
	case 1:
		s.policies = policy.New([]policy.Isolation{
			{Name: "p", Namespaces: []string{"t/.*"}, Primary: []string{"b[01]"}, Secondary: []string{"b2"}, AutoFailover: policy.AutoFailover{MinLimit: rapid.IntRange(-1, 3).Draw(t, "limit")}},
			{Name: "broken", Namespaces: []string{"((", "x"}, Primary: []string{"(?<=y)"}},
		}, map[string]string{"t/n": "g", "t/m": "G", "t/r": "g"}, []policy.Domain{{Name: "d", Brokers: []string{"b0:8080", "b1:8080"}}}, nil)
	case 2:
		s.policies = policy.New(nil, map[string]string{"t/n": "g", "t/m": "G", "t/r": "h"}, nil, nil)
	case 3:
		s.policies = policy.New(nil, nil, nil, map[string]string{"t/m": "timeout"})
	}
}

// snapshot makes a snapshot that shares nothing with another one of the same spec.
func (s *spec) snapshot() *cluster.Snapshot {
	conf := s.settings
	out := &cluster.Snapshot{Now: 1_700_000_000_000, Version: s.version, Settings: &conf, Policies: s.policies, Leader: "b0:8080"}
	for _, b := range s.bundles {
		x := cluster.Bundle{Name: b.name, Namespace: policy.NamespaceOf(b.name), Stats: b.stats}
		if b.data != nil {
			d := *b.data
			x.Data = &d
		}
		out.Bundles = append(out.Bundles, x)
	}
	for _, b := range s.brokers {
		x := cluster.Broker{ID: b.id, Bundles: append([]int(nil), b.bundles...)}
		if !b.silent {
			d := event.NewLocalBrokerData(7)
			d.CPU, d.Memory, d.DirectMemory, d.BandwidthIn, d.BandwidthOut = b.usage.CPU, b.usage.Memory, b.usage.DirectMemory, b.usage.BandwidthIn, b.usage.BandwidthOut
			d.MsgRateIn, d.MsgRateOut, d.MsgThroughputIn, d.MsgThroughputOut = b.totals[0], b.totals[1], b.totals[2], b.totals[3]
			d.BrokerVersionString, d.LoadManagerClassName, d.NumTopics = b.version, b.class, b.topics
			for _, i := range b.bundles {
				d.LastStats = append(d.LastStats, event.NamedBundleStats{Bundle: s.bundles[i].name, Stats: s.bundles[i].stats})
			}
			x.Local = &d
		}
		if b.average != nil {
			a := *b.average
			x.TimeAverage = &a
		}
		out.Brokers = append(out.Brokers, x)
	}
	return out.Index()
}

// state is a state with something in it.
func (s *spec) state() *modular.State {
	st := modular.NewState()
	st.RecentlyUnloaded = map[string]int64{}
	for b, at := range s.recent {
		st.RecentlyUnloaded[b] = at
	}
	for i, b := range s.brokers {
		if i < len(s.bundles) {
			st.Preallocate(b.id, modular.Preallocation{Bundle: s.bundles[i].name, Data: load.NewBundleData(1, 1, s.bundles[i].stats)})
		}
	}
	st.Assigned = nil
	return st
}
