package simple_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
)

// benchSnapshot has bundles spread evenly over brokers, a tenth of which are hot.
func benchSnapshot(brokers, bundles int) *cluster.Snapshot {
	rnd := rand.New(rand.NewPCG(42, 42))
	snap := &cluster.Snapshot{Now: 1_700_000_000_000, Settings: settings.Defaults()}
	reports := make([]event.LoadReport, brokers)
	for i := range reports {
		r := event.NewLoadReport()
		r.Name, r.Timestamp = fmt.Sprintf("broker-%05d:8080", i), snap.Now
		u := 0.4 + 0.2*rnd.Float64()
		if i%10 == 0 {
			u = 0.9
		}
		full := func(limit float64) event.ResourceUsage { return event.ResourceUsage{Usage: u * limit, Limit: limit} }
		r.SystemResourceUsage = &event.SystemResourceUsage{CPU: full(800), Memory: full(16384), DirectMemory: full(32768), BandwidthIn: full(1e7), BandwidthOut: full(1e7)}
		reports[i] = r
	}
	for j := range bundles {
		name := fmt.Sprintf("bench/ns%06d/0x%08x_0x%08x", j/64, (j%64)*0x4000000, (j%64+1)*0x4000000-1)
		s := event.NamespaceBundleStats{MsgRateIn: 1000 * rnd.Float64(), MsgRateOut: 1000 * rnd.Float64(), MsgThroughputIn: 1e6 * rnd.Float64(), MsgThroughputOut: 1e6 * rnd.Float64(), Topics: 10}
		reports[j%brokers].BundleStats = append(reports[j%brokers].BundleStats, event.NamedBundleStats{Bundle: name, Stats: s})
		snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: name, Namespace: event.NamespaceOf(name), Stats: s, Known: true})
	}
	for i := range reports {
		snap.Brokers = append(snap.Brokers, cluster.Broker{ID: reports[i].Name, Report: &reports[i]})
	}
	return snap.Index()
}

var sizes = []struct{ brokers, bundles int }{{10, 1000}, {100, 10_000}, {1000, 100_000}}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%d/%d", n.brokers, n.bundles), func(b *testing.B) {
			snap, m := benchSnapshot(n.brokers, n.bundles), new(simple.Manager)
			st := m.Update(snap, m.NewState())
			b.ReportAllocs()
			for b.Loop() {
				st = m.Update(snap, st)
			}
		})
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, strategy := range []string{"leastLoadedServer", "weightedRandomSelection"} {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d/%d", strategy, n.brokers, n.bundles), func(b *testing.B) {
				snap, m := benchSnapshot(n.brokers, n.bundles), new(simple.Manager)
				snap.Settings.LoadBalancerPlacementStrategy = strategy
				st := m.Update(snap, m.NewState())
				rnd := rand.New(rand.NewPCG(1, 1))
				i := 0
				b.ReportAllocs()
				for b.Loop() {
					i++
					_, st = m.Place(snap, fmt.Sprintf("bench/new%d/0x00000000_0xffffffff", i), st, rnd, nil)
				}
			})
		}
	}
}

func BenchmarkShed(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%d/%d", n.brokers, n.bundles), func(b *testing.B) {
			snap, m := benchSnapshot(n.brokers, n.bundles), new(simple.Manager)
			st := m.Update(snap, m.NewState())
			b.ReportAllocs()
			for b.Loop() {
				m.Shed(snap, st, nil, nil)
			}
		})
	}
}
