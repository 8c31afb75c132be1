package extensible

import (
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// source hands out the choices that a random cluster is made of.
type source interface {
	n(bound int) int // in [0, bound)
	float() float64  // anything
	text() string    // anything
}

// randomCluster is a cluster of any shape: names may repeat, numbers may be anything, entries may be missing.
func randomCluster(s source) (*cluster.Snapshot, Options, *State) {
	snap := &cluster.Snapshot{Now: 1_700_000_000_000, Version: []string{"4.2.4", "5.0.1", "", "x"}[s.n(4)], Settings: randomSettings(s)}
	var o Options
	v := reflect.ValueOf(&o).Elem()
	for i := range v.NumField() {
		v.Field(i).SetBool(s.n(4) == 0)
	}
	st := NewState()
	st.HitCount = int64(s.n(5))
	ids := []string{s.text(), "", "b"}
	for i := range 2 + s.n(5) {
		ids = append(ids, fmt.Sprintf("b%d:8080", i))
	}
	name := func() string { return ids[s.n(len(ids))] }
	stats := func() event.NamespaceBundleStats {
		return event.NamespaceBundleStats{
			MsgThroughputIn: s.float(), MsgThroughputOut: s.float(), MsgRateIn: s.float(), Topics: int64(s.n(2000)), ProducerCount: int32(s.n(2000)),
		}
	}
	bundles := []string{s.text(), "t/n0/0x0_0x1", "t/n0/nonsense"}
	for i := range s.n(20) {
		bundles = append(bundles, fmt.Sprintf("t/n%d/0x%08x_0x%08x", i%3, i<<24, (i+1)<<24))
	}
	for _, b := range bundles {
		snap.Bundles = append(snap.Bundles, cluster.Bundle{
			Name: b, Namespace: policy.NamespaceOf(b), Owner: name(), Stats: stats(), Known: true,
			State: []event.ServiceUnitState{event.Owned, event.Owned, "", event.Splitting, event.Releasing}[s.n(5)],
		})
	}
	for range s.n(8) {
		l := cluster.BrokerLoad{Broker: name(), HasTop: s.n(4) > 0, Data: event.BrokerLoadData{
			WeightedMaxEMA: s.float(), MsgThroughputEMA: s.float(), MsgThroughputIn: s.float(), MsgThroughputOut: s.float(),
			UpdatedAt: snap.Now - int64(s.n(4_000_000)), Topics: int64(s.n(100_000)), BundleCount: int64(s.n(10)),
		}}
		for range s.n(6) {
			l.TopBundles = append(l.TopBundles, event.BundleLoad{BundleName: bundles[s.n(len(bundles))], Stats: stats()})
		}
		snap.Load = append(snap.Load, l)
	}
	for range s.n(6) {
		b := cluster.Broker{
			ID: name(), Version: []string{"4.2.4", "4.2.4", "4.0.7", "bad"}[s.n(4)], LoadManager: []string{Class, Class, Class, ""}[s.n(4)],
			PersistentTopics: s.n(8) > 0, NonPersistentTopics: s.n(8) > 0,
		}
		for range s.n(6) {
			b.Bundles = append(b.Bundles, s.n(len(bundles)+1)-s.n(2))
		}
		snap.Brokers = append(snap.Brokers, b)
	}
	snap.Index()
	for i := range snap.Brokers {
		if j := snap.LoadIndex(snap.Brokers[i].ID); j >= 0 {
			snap.Brokers[i].Load = &snap.Load[j].Data
		}
	}
	if s.n(2) == 0 {
		snap.Policies = policy.New(
			[]policy.Isolation{{Name: "p", Namespaces: []string{"t/n1", s.text()}, Primary: []string{"b[01]", s.text()}, Secondary: []string{"b2"}}},
			map[string]string{"t/n2": "g", "t/n0": s.text()}, []policy.Domain{{Name: "d", Brokers: []string{"b0:8080", name()}}},
			map[string]string{"t/n" + s.text(): "unreadable"})
	}
	st.UnloadedBundles = map[string]int64{bundles[s.n(len(bundles))]: snap.Now - int64(s.n(4_000_000))}
	st.UnloadedBrokers = map[string]int64{name(): snap.Now - int64(s.n(400_000_000))}
	st.SplitHits = map[string]map[string]int64{name(): {bundles[s.n(len(bundles))]: int64(s.n(10))}}
	return snap, o, st
}

func randomSettings(s source) *settings.Settings {
	c := settings.Defaults()
	c.LoadManagerClassName = Class
	c.LoadBalancerSheddingConditionHitCountThreshold = int64(s.n(4)) - 1
	c.LoadBalancerMaxNumberOfBrokerSheddingPerCycle = int64(s.n(5)) - 1
	c.LoadBalancerNamespaceBundleSplitConditionHitCountThreshold = int64(s.n(4)) - 1
	c.LoadBalancerMaxNumberOfBundlesToSplitPerCycle = int64(s.n(4)) - 1
	c.LoadBalancerBrokerLoadTargetStd = []float64{0.25, 0.25, 0, 0.05, s.float()}[s.n(5)]
	c.LoadBalancerTransferEnabled = s.n(3) > 0
	c.LoadBalancerDebugModeEnabled = s.n(2) == 0
	c.PreferLaterVersions = s.n(3) == 0
	c.FailureDomainsEnabled = s.n(2) == 0
	c.LoadBalancerSheddingBundlesWithPoliciesEnabled = s.n(2) == 0
	c.DefaultNamespaceBundleSplitAlgorithm = []string{"range_equally_divide", "range_equally_divide", "topic_count_equally_divide", "x"}[s.n(4)]
	if s.n(3) == 0 {
		c.LoadBalancerSheddingExcludedNamespaces = []string{"t/n0"}
	}
	c.LoadBalanceSheddingDelayInSeconds = int64(s.n(300)) - 1
	return c
}

// bytesSource makes choices from bytes, zeros when they are used up.
type bytesSource struct{ rest []byte }

func (s *bytesSource) next() byte {
	if len(s.rest) == 0 {
		return 0
	}
	b := s.rest[0]
	s.rest = s.rest[1:]
	return b
}

func (s *bytesSource) n(bound int) int {
	x := int(s.next())
	for shift := 8; bound > 1<<shift; shift += 8 {
		x |= int(s.next()) << shift
	}
	return x % bound
}

func (s *bytesSource) float() float64 {
	switch k := s.next(); {
	case k < 200:
		return float64(k) / 128
	case k < 240:
		return float64(k) * 1e6
	}
	var bits [8]byte
	for i := range bits {
		bits[i] = s.next()
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(bits[:]))
}

func (s *bytesSource) text() string {
	n := int(s.next() % 12)
	out := make([]byte, n)
	for i := range out {
		out[i] = s.next()
	}
	return string(out)
}
