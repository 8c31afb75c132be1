package advise_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/advise"
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

func snapshot() *cluster.Snapshot {
	return &cluster.Snapshot{Now: 1_700_000_000_000, Version: "4.2.4", Settings: settings.Defaults()}
}

// add adds a broker of an Extensible cluster: its load in percent and its traffic in and out in bytes/s.
func add(s *cluster.Snapshot, load, traffic float64) *event.BrokerLoadData {
	d := &event.BrokerLoadData{WeightedMaxEMA: load / 100, MsgThroughputIn: traffic / 2, MsgThroughputOut: traffic / 2, MsgRateIn: traffic / 1000}
	d.CPU = event.ResourceUsage{Usage: load, Limit: 100}
	s.Brokers = append(s.Brokers, cluster.Broker{ID: fmt.Sprintf("b%d:8080", len(s.Brokers)+1), PersistentTopics: true, Load: d})
	return d
}

// fill adds bundles of a namespace with so many topics each, and traffic of 1 MB/s for each topic.
func fill(s *cluster.Snapshot, namespace string, topics ...int64) {
	width := uint64(1<<32) / uint64(len(topics))
	for i, n := range topics {
		s.Bundles = append(s.Bundles, cluster.Bundle{
			Name: fmt.Sprintf("%s/0x%08x_0x%08x", namespace, uint64(i)*width, min(uint64(i+1)*width, math.MaxUint32)), Namespace: namespace,
			Owner: "b1:8080", State: event.Owned, Known: true, Stats: event.NamespaceBundleStats{Topics: n, MsgThroughputIn: 1e6 * float64(n)},
		})
	}
}

// text is advice as "bundle broker CODE: sentence", one a line.
func text(advice []plan.LeftOut) string {
	var out strings.Builder
	for _, a := range advice {
		fmt.Fprintln(&out, strings.Join(strings.Fields(a.Bundle+" "+a.Broker+" "+a.Why.Code+":"), " "), a.Why)
	}
	return out.String()
}

func check(t *testing.T, name string, advice []plan.LeftOut, want string) {
	t.Helper()
	want = strings.TrimLeft(want, "\n")
	if diff := cmp.Diff(want, text(advice)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestBundles: when a namespace has too few bundles, or too few with topics.
func TestBundles(t *testing.T) {
	for _, x := range []struct {
		name    string
		brokers int
		fill    func(*cluster.Snapshot)
		want    string
	}{
		{"four bundles, three brokers, topics in two of them", 3, func(s *cluster.Snapshot) { fill(s, "t/n", 4, 0, 4, 0) }, `
t/n FEW_BUNDLES: 4 bundles cannot fill 3 brokers evenly (at best one has 1.5 times the mean) and carry 1 of what the brokers carry; split to >= 12
t/n TOPICS_IN_FEW_BUNDLES: 8 topics lie in 2 of 4 bundles, so at most 2 of 3 brokers serve them; split the bundles that hold them
`},
		{"fewer bundles than brokers", 5, func(s *cluster.Snapshot) { fill(s, "t/n", 9, 9, 9, 9) }, `
t/n FEW_BUNDLES: 4 bundles cannot fill 5 brokers evenly (at best one has 1.25 times the mean) and carry 1 of what the brokers carry; split to >= 20
`},
		{"as many as brokers", 4, func(s *cluster.Snapshot) { fill(s, "t/n", 9, 9, 9, 9) }, ""},
		{"enough", 3, func(s *cluster.Snapshot) { fill(s, "t/n", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1) }, ""},
		{"one that carries little needs few", 3, func(s *cluster.Snapshot) {
			fill(s, "t/big", 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9)
			fill(s, "t/small", 1, 1, 1, 1)
		}, ""},
		{"one that carries half needs half", 3, func(s *cluster.Snapshot) {
			fill(s, "t/big", 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9)
			fill(s, "t/half", 27, 27, 27, 27)
		}, `
t/half FEW_BUNDLES: 4 bundles cannot fill 3 brokers evenly (at best one has 1.5 times the mean) and carry 0.5 of what the brokers carry; split to >= 6
`},
		{"no traffic yet: topics count", 3, func(s *cluster.Snapshot) {
			fill(s, "t/n", 4, 4, 4, 4)
			for i := range s.Bundles {
				s.Bundles[i].Stats.MsgThroughputIn = 0
			}
		}, `
t/n FEW_BUNDLES: 4 bundles cannot fill 3 brokers evenly (at best one has 1.5 times the mean) and carry 1 of what the brokers carry; split to >= 12
`},
		{"isolated to two brokers of four", 4, func(s *cluster.Snapshot) {
			s.Policies = policy.New([]policy.Isolation{{Name: "p", Namespaces: []string{"t/n"}, Primary: []string{"b1|b2"}}}, nil, nil, nil)
			fill(s, "t/n", 4, 4, 4)
		}, `
t/n FEW_BUNDLES: 3 bundles cannot fill 2 brokers evenly (at best one has 1.33333 times the mean) and carry 1 of what the brokers carry; split to >= 8
`},
		{"isolated to two of four, with half of the traffic, which is all that two can have", 4, func(s *cluster.Snapshot) {
			s.Policies = policy.New([]policy.Isolation{{Name: "p", Namespaces: []string{"t/n"}, Primary: []string{"b1|b2"}}}, nil, nil, nil)
			fill(s, "t/n", 4, 4, 4)
			fill(s, "t/rest", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
		}, `
t/n FEW_BUNDLES: 3 bundles cannot fill 2 brokers evenly (at best one has 1.33333 times the mean) and carry 1 of what the brokers carry; split to >= 8
`},
		{"topics of one that carries little lie in one bundle", 3, func(s *cluster.Snapshot) {
			fill(s, "t/big", 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9)
			fill(s, "t/small", 4, 0, 0, 0)
		}, ""},
		{"isolated to one", 4, func(s *cluster.Snapshot) {
			s.Policies = policy.New([]policy.Isolation{{Name: "p", Namespaces: []string{"t/n"}, Primary: []string{"b1"}}}, nil, nil, nil)
			fill(s, "t/n", 4, 4, 4)
		}, ""},
		{"policies unread", 3, func(s *cluster.Snapshot) {
			s.Policies = policy.New(nil, nil, nil, map[string]string{"": "503"})
			fill(s, "t/n", 4, 0, 4, 0)
		}, ""},
		{"stats of a bundle are not known", 3, func(s *cluster.Snapshot) { fill(s, "t/n", 4, 0, 4, 0); s.Bundles[1].Known = false }, `
t/n FEW_BUNDLES: 4 bundles cannot fill 3 brokers evenly (at best one has 1.5 times the mean) and carry 1 of what the brokers carry; split to >= 12
`},
		{"at the limit of bundles", 3, func(s *cluster.Snapshot) {
			s.Settings.LoadBalancerNamespaceMaximumBundles = 4
			fill(s, "t/n", 4, 4, 4, 4)
		}, ""},
		{"system and broker namespaces", 3, func(s *cluster.Snapshot) {
			fill(s, "pulsar/system", 4, 0, 4, 0)
			fill(s, "pulsar/b1:8080", 4)
		}, ""},
		{"a topic that cannot be divided", 3, func(s *cluster.Snapshot) { fill(s, "t/n", 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0) }, ""},
	} {
		s := snapshot()
		for range x.brokers {
			add(s, 10, 1e6)
		}
		x.fill(s)
		check(t, x.name, advise.Bundles(s.Index()), x.want)
	}
}

// TestHotTopics: one topic above a limit, of each kind; with two topics a split helps.
func TestHotTopics(t *testing.T) {
	s := snapshot()
	add(s, 10, 1e6)
	fill(s, "t/n", 1, 1, 1, 2, 1, 1)
	b := s.Bundles
	b[0].Stats.MsgRateIn = 300_000
	b[1].Stats.MsgThroughputOut = 105e6
	b[2].Stats.ConsumerCount, b[2].Stats.ProducerCount = 1000, 1
	b[3].Stats.MsgRateIn = 300_000
	b[4].Stats.MsgRateIn = 30_000
	b[5].Stats.MsgRateIn, b[5].Known = 300_000, false
	check(t, "hot", advise.HotTopics(s.Index()), `
t/n/0x00000000_0x2aaaaaaa b1:8080 HOT_TOPIC: its only topic has 300000 msg/s, a bundle may have 30000 (loadBalancerNamespaceBundleMaxMsgRate): no split can divide it, partitions can
t/n/0x2aaaaaaa_0x55555554 b1:8080 HOT_TOPIC: its only topic has 106000000 bytes/s, a bundle may have 104857600 (loadBalancerNamespaceBundleMaxBandwidthMbytes): no split can divide it, partitions can
t/n/0x55555554_0x7ffffffe b1:8080 HOT_TOPIC: its only topic has 1001 sessions, a bundle may have 1000 (loadBalancerNamespaceBundleMaxSessions): no split can divide it, partitions can
`)
	s.Settings.LoadBalancerNamespaceBundleMaxSessions = 0
	if got := advise.HotTopics(s); len(got) != 2 {
		t.Errorf("with the limit of sessions off: %s", text(got))
	}
}

// TestToldOnce: what holds is said once, and again after it was gone.
func TestToldOnce(t *testing.T) {
	s := snapshot()
	add(s, 10, 1e6)
	fill(s, "t/n", 1, 1)
	s.Bundles[0].Stats.MsgRateIn = 300_000
	s.Index()
	var told advise.Told
	round := func(want int) {
		t.Helper()
		var fresh []plan.LeftOut
		if fresh, told = told.Fresh(advise.HotTopics(s)); len(fresh) != want {
			t.Errorf("%d advices, want %d: %s", len(fresh), want, text(fresh))
		}
	}
	round(1)
	round(0)
	s.Bundles[1].Stats.MsgRateIn = 300_000
	round(1)
	round(0)
	s.Bundles[0].Stats.MsgRateIn = 0
	round(0)
	s.Bundles[0].Stats.MsgRateIn = 300_000
	round(1)
	twice := advise.HotTopics(s)
	if fresh, _ := advise.Told(nil).Fresh(append(twice, twice...)); len(fresh) != len(twice) {
		t.Errorf("said twice at once: %s", text(fresh))
	}
}

// TestSaturated: the average decides; while somebody's load is unknown nothing is said.
func TestSaturated(t *testing.T) {
	for _, x := range []struct {
		name  string
		loads []float64
		want  string
	}{
		{"all at 90", []float64{91, 90, 89, 90}, "CLUSTER_SATURATED: the average load 0.9 of 4 brokers reaches the overload threshold 0.85, the least is 0.89: moving cannot help, brokers can\n"},
		{"one has room, but not for all", []float64{100, 95, 70}, "CLUSTER_SATURATED: the average load 0.883333 of 3 brokers reaches the overload threshold 0.85, the least is 0.7: moving cannot help, brokers can\n"},
		{"hot brokers, a cool one", []float64{95, 95, 10}, ""},
		{"one is not heard", []float64{95, 95, math.NaN()}, ""},
		{"none", nil, ""},
	} {
		s := snapshot()
		for _, l := range x.loads {
			add(s, l, 1e6)
		}
		if got := strings.TrimSpace(text(advise.Saturated(s.Index()))); got != strings.TrimSpace(x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

// TestMustMove: a policy changed after its bundles were placed.
func TestMustMove(t *testing.T) {
	s := snapshot()
	for range 3 {
		add(s, 10, 1e6)
	}
	fill(s, "t/n", 1, 1)
	fill(s, "t/alone", 1)
	s.Policies = policy.New([]policy.Isolation{
		{Name: "p", Namespaces: []string{"t/n"}, Primary: []string{"b2"}},
		{Name: "q", Namespaces: []string{"t/alone"}, Primary: []string{"elsewhere"}},
	}, nil, nil, nil)
	check(t, "must move", advise.MustMove(s.Index()), `
t/n/0x00000000_0x80000000 b1:8080 MUST_MOVE: must leave b1:8080: isolation policy p names b1:8080 neither as primary nor as secondary
t/n/0x80000000_0xffffffff b1:8080 MUST_MOVE: must leave b1:8080: isolation policy p names b1:8080 neither as primary nor as secondary
t/alone/0x00000000_0xffffffff b1:8080 MUST_MOVE_NOWHERE: must leave b1:8080: isolation policy q names b1:8080 neither as primary nor as secondary; but no other broker than b1:8080 may take t/alone
`)
	s.Bundles[0].Owner, s.Bundles[1].Owner, s.Bundles[2].Owner = "b2:8080", "", "gone:8080"
	check(t, "where they belong, unowned, on a broker that is gone", advise.MustMove(s), "")
}

// TestSuspicious: a broker at 4 % CPU with the traffic of a busy one; network figures that cannot be.
func TestSuspicious(t *testing.T) {
	s := snapshot()
	for _, cpu := range []float64{80, 75, 4, 3, 60, 70} {
		add(s, cpu, 100e6)
	}
	s.Brokers[3].Load.MsgThroughputIn = 0 // half the traffic and little CPU: still cheap
	s.Brokers[3].Load.MsgThroughputOut = 10e6
	s.Brokers[2].Load.CPU = event.ResourceUsage{Usage: 8.13, Limit: 200}
	for i, limit := range []float64{1e7, 1e7, 1e6, 1e7, 1e7, 4e7} {
		d := s.Brokers[i].Load
		d.BandwidthIn = event.ResourceUsage{Usage: d.MsgThroughputIn * 8 / 1000, Limit: limit}
		d.BandwidthOut = event.ResourceUsage{Usage: -1, Limit: -1}
	}
	s.Brokers[1].Load.BandwidthIn.Usage = 100_000
	check(t, "odd reports", advise.Suspicious(s.Index()), `
b3:8080 CPU_UNLIKE_TRAFFIC: 8.13 of 200 % CPU at 100000000 bytes/s is 8.61009 times less per byte than the median broker's: usage and limit may be of different scope (host and container)
b2:8080 NETWORK_BELOW_TRAFFIC: bandwidthIn is 100000 kbit/s, its messages alone are 400000: the wrong interface is measured, or clients are on its host
b3:8080 LIMIT_UNLIKE_OTHERS: the limit of bandwidthIn is 1000000 kbit/s, the median broker's 10000000: override it (ballastCapacityOverridesFile) if it is not so
b6:8080 LIMIT_UNLIKE_OTHERS: the limit of bandwidthIn is 40000000 kbit/s, the median broker's 10000000: override it (ballastCapacityOverridesFile) if it is not so
`)
	s.Brokers[2].Estimated, s.Brokers[5].Estimated = true, true
	check(t, "estimated", advise.Suspicious(s.Index()), `
b2:8080 NETWORK_BELOW_TRAFFIC: bandwidthIn is 100000 kbit/s, its messages alone are 400000: the wrong interface is measured, or clients are on its host
`)
	s.Brokers[2].Estimated = false
	s.Brokers = s.Brokers[2:4]
	check(t, "of two brokers nobody can say which one is odd", advise.Suspicious(s.Index()), "")
}

// TestAllManagers: the reports of Modular and Simple brokers are read as those of Extensible ones.
func TestAllManagers(t *testing.T) {
	cpu := event.ResourceUsage{Usage: 90, Limit: 100}
	extensible := cluster.Broker{ID: "b:1", Load: &event.BrokerLoadData{WeightedMaxEMA: 0.9, MsgThroughputIn: 5, MsgRateIn: 1}}
	local := &event.LocalBrokerData{CPU: cpu, MsgThroughputIn: 5, MsgRateIn: 1}
	usage := event.SystemResourceUsage{CPU: cpu, Memory: event.ResourceUsage{Usage: 99, Limit: 100}}
	report := &event.LoadReport{SystemResourceUsage: &usage, BundleStats: []event.NamedBundleStats{{Stats: event.NamespaceBundleStats{MsgThroughputIn: 5, MsgRateIn: 1}}}}
	for name, b := range map[string]cluster.Broker{"extensible": extensible, "modular": {ID: "b:1", Local: local}, "simple": {ID: "b:1", Report: report}} {
		s := snapshot()
		s.Brokers = []cluster.Broker{b, {ID: "idle:1", Load: &event.BrokerLoadData{}}}
		s.Index()
		for _, by := range []advise.Measure{advise.Usage, advise.MsgRate, advise.Throughput} {
			if spread, ok := advise.Spread(s, by); !ok || spread != 2 {
				t.Errorf("%s by %s: %v, %v; want 2", name, by, spread, ok)
			}
		}
		s.Brokers = s.Brokers[:1]
		if got := advise.Saturated(s.Index()); len(got) != 1 {
			t.Errorf("%s: %s", name, text(got))
		}
	}
}

// TestTotal: whatever is in the snapshot there is an answer, the same each time, in whole sentences.
func TestTotal(t *testing.T) {
	odd := rapid.OneOf(rapid.SampledFrom([]float64{0, -1, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, 5e-324, 1e9}), rapid.Float64())
	rapid.Check(t, func(t *rapid.T) {
		s := snapshot()
		resource := func() event.ResourceUsage {
			return event.ResourceUsage{Usage: odd.Draw(t, "usage"), Limit: odd.Draw(t, "limit")}
		}
		for range rapid.IntRange(0, 5).Draw(t, "brokers") {
			d := add(s, odd.Draw(t, "load"), odd.Draw(t, "traffic"))
			d.CPU, d.BandwidthIn, d.BandwidthOut = resource(), resource(), resource()
			switch i := len(s.Brokers) - 1; rapid.IntRange(0, 3).Draw(t, "report") {
			case 0:
				s.Brokers[i].Load, s.Brokers[i].Local = nil, &event.LocalBrokerData{CPU: d.CPU, MsgRateIn: d.MsgRateIn, MsgThroughputIn: d.MsgThroughputIn}
			case 1:
				s.Brokers[i].Load, s.Brokers[i].Report = nil, &event.LoadReport{}
			case 2:
				s.Brokers[i].Load = nil
			}
		}
		for _, ns := range []string{"t/a", "t/b", "", "pulsar/system"} {
			if n := rapid.IntRange(0, 4).Draw(t, "bundles"); n > 0 {
				fill(s, ns, rapid.SliceOfN(rapid.Int64(), n, n).Draw(t, "topics")...)
			}
		}
		for i := range s.Bundles {
			s.Bundles[i].Stats.MsgThroughputIn, s.Bundles[i].Stats.MsgRateIn = odd.Draw(t, "throughput"), odd.Draw(t, "rate")
		}
		s.Settings.LoadBalancerNamespaceMaximumBundles = rapid.Int64().Draw(t, "maximum")
		s.Settings.LoadBalancerBrokerOverloadedThresholdPercentage = rapid.Int64().Draw(t, "threshold")
		s.Index()
		first := text(advise.All(s))
		if second := text(advise.All(s)); second != first {
			t.Fatalf("first\n%s\nthen\n%s", first, second)
		}
		if strings.ContainsAny(first, "{}") {
			t.Fatalf("a sentence lacks a number:\n%s", first)
		}
		p := advise.Progress{}
		for range 3 {
			p = p.Next(s, rapid.Bool().Draw(t, "moves"), advise.Usage)
		}
		b, err := json.Marshal(p)
		var back advise.Progress
		if err != nil || json.Unmarshal(b, &back) != nil || back != p {
			t.Fatalf("%+v is %s (%v) and then %+v", p, b, err, back)
		}
	})
}
