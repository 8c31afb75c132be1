package drain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/watch"
)

func brokers(ids ...string) (out []cluster.Broker) {
	for _, id := range ids {
		out = append(out, cluster.Broker{ID: id, PersistentTopics: true, NonPersistentTopics: true})
	}
	return out
}

func bundle(ns string, i int, owner string, state event.ServiceUnitState, throughput float64) cluster.Bundle {
	lower := uint32(i) << 24
	name := event.BundleName{Namespace: ns, Range: event.Range{Lower: lower, Upper: lower + 1<<24 - 1}}.String()
	return cluster.Bundle{Name: name, Namespace: ns, Owner: owner, State: state, Known: throughput > 0,
		Stats: event.NamespaceBundleStats{MsgThroughputIn: throughput, Topics: int64(i)}}
}

func view(snap *cluster.Snapshot, iso ...policy.Isolation) *policy.View {
	var list []policy.Broker
	for _, b := range snap.Brokers {
		list = append(list, policy.Broker{ID: b.ID, PersistentTopics: true, NonPersistentTopics: true})
	}
	return policy.New(iso, nil, nil, nil).Over(list)
}

func pairs(ds []plan.Decision) (out []string) {
	for _, d := range ds {
		out = append(out, fmt.Sprintf("%s %s->%s", d.Bundle[strings.LastIndexByte(d.Bundle, '/')+1:][:6], d.Source, d.Destination))
	}
	return out
}

func codes(list []plan.LeftOut) (out []string) {
	for _, l := range list {
		out = append(out, strings.TrimSpace(l.Why.Code+" "+l.Bundle))
		if strings.Contains(l.Why.Text, "{") {
			out = append(out, "a number is missing in "+l.Why.Text)
		}
	}
	return out
}

func TestOf(t *testing.T) {
	snap := (&cluster.Snapshot{Brokers: brokers("a:1", "b:1", "c:1"), Bundles: []cluster.Bundle{
		bundle("t/n", 1, "a:1", event.Owned, 100), bundle("t/n", 2, "a:1", event.Owned, 300), bundle("t/n", 3, "a:1", event.Owned, 0),
		bundle("t/n", 4, "a:1", event.Owned, 250), bundle("t/n", 5, "a:1", event.Releasing, 5), bundle("t/n", 6, "b:1", event.Owned, 200),
		bundle("pulsar/system", 7, "a:1", event.Owned, 1), bundle("pulsar/a:1", 8, "a:1", event.Owned, 1), bundle("t/only", 9, "a:1", event.Owned, 50),
	}}).Index()
	only := policy.Isolation{Name: "only-a", Namespaces: []string{"t/only"}, Primary: []string{"a"}, AutoFailover: policy.AutoFailover{MinLimit: 1, UsageThreshold: 100}}
	p := drain.Of(drain.Input{Snapshot: snap, Broker: "a:1", Policies: view(snap, only)})
	if p.Empty() {
		t.Error("it is empty")
	}
	// Heaviest first: 300 to c (0 against 200), 250 to b, 100 to c; the one without figures to whom has fewer. b and c should have at
	// most 23 of 45 topics.
	if diff := cmp.Diff([]string{"0x0200 a:1->c:1", "0x0400 a:1->b:1", "0x0100 a:1->c:1", "0x0300 a:1->b:1"}, pairs(p.Decisions)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"NAMESPACE_SYSTEM pulsar/system/0x07000000_0x07ffffff", "NAMESPACE_OF_A_BROKER pulsar/a:1/0x08000000_0x08ffffff",
		"DRAIN_NOWHERE t/only/0x09000000_0x09ffffff"}, codes(p.Stay)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"DRAIN_IN_FLIGHT t/n/0x05000000_0x05ffffff"}, codes(p.Waiting)); diff != "" {
		t.Error(diff)
	}
	p = drain.Of(drain.Input{Snapshot: snap, Broker: "a:1", Others: []string{"c:1"}, Failed: map[string]bool{snap.Bundles[1].Name: true}})
	if diff := cmp.Diff([]string{"0x0400 a:1->b:1", "0x0100 a:1->b:1", "0x0900 a:1->b:1", "0x0300 a:1->b:1", "0x0200 a:1->b:1"}, pairs(p.Decisions)); diff != "" {
		t.Errorf("with c drained too and one that failed:\n%s", diff)
	}
	if p = drain.Of(drain.Input{Snapshot: snap, Broker: "z:1"}); !p.Empty() || codes(p.Stay)[0] != "DRAIN_NOT_REGISTERED" {
		t.Errorf("a broker that is not registered: %+v", p)
	}
	if p = drain.Of(drain.Input{Snapshot: snap, Broker: "c:1"}); !p.Empty() || len(p.Stay) > 0 {
		t.Errorf("an empty broker: %+v", p)
	}
	if p = drain.Of(drain.Input{Snapshot: snap, Broker: "a:1", Others: []string{"b:1", "c:1"}}); len(p.Decisions) > 0 || !p.Empty() == (len(p.Waiting) == 0) {
		t.Errorf("nobody is left: %+v", p)
	}
}

// Every bundle of the broker leaves, waits or stays, once; what leaves goes to brokers that may take it. No two of those differ by
// more traffic than the heaviest bundle that was placed, beyond what they differed by before, unless the one with less has its
// part of the topics; and none gets more than its part, and 2 points, unless all are there.
func TestOfIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := []string{"a:1", "b:1", "c:1", "d:1"}[:rapid.IntRange(2, 4).Draw(t, "brokers")]
		snap := &cluster.Snapshot{Brokers: brokers(ids...)}
		mine := 0
		for i := range rapid.IntRange(0, 40).Draw(t, "bundles") {
			owner := rapid.SampledFrom(append(slices.Clone(ids), "")).Draw(t, "owner")
			state := rapid.SampledFrom([]event.ServiceUnitState{event.Owned, event.Owned, event.Splitting}).Draw(t, "state")
			snap.Bundles = append(snap.Bundles, bundle("t/n", i, owner, state, rapid.Float64Range(1, 100).Draw(t, "throughput")))
			if owner == "a:1" {
				mine++
			}
		}
		p := drain.Of(drain.Input{Snapshot: snap.Index(), Broker: "a:1"})
		if got := len(p.Decisions) + len(p.Waiting) + len(p.Stay); got != mine {
			t.Fatalf("%d bundles are accounted for, of %d", got, mine)
		}
		traffic, topics, heaviest, largest, spread, total := map[string]float64{}, map[string]float64{}, 0.0, 0.0, 0.0, 0.0
		for _, b := range snap.Bundles {
			if b.Owner == "" {
				continue
			}
			traffic[b.Owner] += b.Stats.MsgThroughputIn
			topics[b.Owner] += max(float64(b.Stats.Topics), 1) // of a broker without a report one that is not known counts as one
			total += max(float64(b.Stats.Topics), 1)
		}
		others := ids[1:]
		for _, x := range others {
			for _, y := range others {
				spread = max(spread, traffic[x]-traffic[y])
			}
		}
		most, got := total*(1/float64(len(others))+0.02), map[string]bool{}
		for i, d := range p.Decisions {
			if d.Source != "a:1" || !slices.Contains(others, d.Destination) {
				t.Fatalf("%+v", d)
			}
			if i > 0 && d.Throughput > p.Decisions[i-1].Throughput {
				t.Fatal("a heavier bundle comes after a lighter one")
			}
			traffic[d.Destination] += d.Throughput
			topics[d.Destination] += max(float64(d.Topics), 1)
			got[d.Destination] = true
			heaviest, largest = max(heaviest, d.Throughput), max(largest, max(float64(d.Topics), 1))
		}
		count, bundles := map[string]float64{}, 0.0
		for _, b := range snap.Bundles {
			if b.Owner != "" {
				count[b.Owner]++
				bundles++
			}
		}
		for _, d := range p.Decisions {
			count[d.Destination]++
		}
		full := func(y string) bool {
			return topics[y]+largest > most-1e-6 || count[y]+1 > bundles*(1/float64(len(others))+0.02)-1e-6
		}
		for _, x := range others {
			for _, y := range others {
				if diff := traffic[x] - traffic[y]; diff > max(spread, heaviest)+1e-6 && !full(y) {
					t.Errorf("%s has %v more than %s; before it was at most %v, the heaviest bundle has %v", x, diff, y, spread, heaviest)
				}
				if got[x] && topics[x] > most+1e-6 && topics[y]+largest <= most-1e-6 && count[y]+1 <= bundles*(1/float64(len(others))+0.02)-1e-6 {
					t.Errorf("%s has %v of %v topics, %s has %v", x, topics[x], total, y, topics[y])
				}
			}
		}
	})
}

// The broker with least traffic does not get everything: none gets more than an even part of the topics and 2 points. Of bundles that
// are not among a broker's top ones nothing is known but the number of all topics.
func TestOfSpreadsTopics(t *testing.T) {
	list := brokers("a:1", "b:1", "c:1")
	snap := &cluster.Snapshot{Brokers: list}
	for i, owner := range []string{"a:1", "b:1", "c:1"} {
		list[i].Load = &event.BrokerLoadData{Topics: 20, BundleCount: 10, MsgThroughputIn: []float64{500, 5000, 100}[i]}
		for k := range 10 {
			b := bundle("t/n", 10*i+k, owner, event.Owned, 0)
			if b.Stats.Topics = 0; k < 4 { // the top ones
				b.Known, b.Stats.Topics, b.Stats.MsgThroughputIn = true, 2, float64(10*(k+1))
			}
			snap.Bundles = append(snap.Bundles, b)
		}
	}
	topics := map[string]int{"b:1": 20, "c:1": 20}
	p := drain.Of(drain.Input{Snapshot: snap.Index(), Broker: "a:1"})
	for _, d := range p.Decisions {
		topics[d.Destination] += 2
	}
	if len(p.Decisions) != 10 || topics["c:1"] > 31 || topics["b:1"] > 31 {
		t.Errorf("%d decisions, topics %v: want 10, and at most 31 of 60", len(p.Decisions), topics)
	}
	for _, d := range p.Decisions[:4] {
		if d.Destination != "c:1" {
			t.Errorf("a bundle with traffic goes to %s, which has most", d.Destination)
		}
	}
}

// A broker that would get more than an even part of all topics and the points gets nothing while another may take it, whatever else
// speaks for it: here b has least traffic and few bundles of the namespace, but many topics of another.
func TestOfHeedsTheLimit(t *testing.T) {
	snap := &cluster.Snapshot{Brokers: brokers("a:1", "b:1", "c:1")}
	add := func(ns string, i int, owner string, topics int64, throughput float64) {
		b := bundle(ns, i, owner, event.Owned, throughput)
		b.Known, b.Stats.Topics = true, topics
		snap.Bundles = append(snap.Bundles, b)
	}
	for i := range 4 {
		add("t/n", i, "a:1", 5, 10)
		add("t/n", 10+i, "c:1", 5, 100) // c has its part of the namespace
	}
	add("t/big", 0, "b:1", 40, 1)
	for points, want := range map[float64]string{0: "b:1", 0.05: "c:1"} {
		p := drain.Of(drain.Input{Snapshot: snap.Index(), Broker: "a:1", Points: points})
		to := map[string]int{}
		for _, d := range p.Decisions {
			to[d.Destination]++
		}
		if len(p.Decisions) != 4 || to[want] < 3 {
			t.Errorf("with %v points they go to %v, want most on %s", points, to, want)
		}
	}
	// Nobody else may take them: then they go there.
	p := drain.Of(drain.Input{Snapshot: snap.Index(), Broker: "a:1", Others: []string{"c:1"}, Points: 0.01})
	if len(p.Decisions) != 4 {
		t.Errorf("with no other destination %d of 4 leave", len(p.Decisions))
	}
}

func TestGate(t *testing.T) {
	open := func() drain.Facts {
		return drain.Facts{Snapshot: (&cluster.Snapshot{Leader: "a:1", Brokers: brokers("a:1", "b:1")}).Index(), Owners: ownership.NewFold().Snapshot(), CaughtUp: true}
	}
	flying := ownership.NewFold()
	flying.Apply(ownership.Message{Bundle: "t/n/0x00000000_0xffffffff", Data: &event.ServiceUnitStateData{State: event.Assigning, DstBroker: "a:1", VersionID: 1}})
	for _, tc := range []struct {
		name   string
		change func(*drain.Facts)
		want   []string
	}{
		{"open", func(*drain.Facts) {}, nil},
		{"as many as wanted", func(f *drain.Facts) { f.Want = 2 }, nil},
		{"too few", func(f *drain.Facts) { f.Want = 3 }, []string{"GATE_BROKERS_MISSING"}},
		{"one", func(f *drain.Facts) { f.Snapshot.Brokers = f.Snapshot.Brokers[:1] }, []string{"GATE_LAST_BROKER"}},
		{"one is wanted", func(f *drain.Facts) { f.Snapshot.Brokers, f.Want = f.Snapshot.Brokers[:1], 1 }, []string{"GATE_LAST_BROKER"}},
		{"silent", func(f *drain.Facts) { f.Silent = map[string]string{"b:1": "no"} }, []string{"GATE_BROKER_SILENT"}},
		{"not ready", func(f *drain.Facts) { f.NotReady = map[string]string{"b:1": "no"} }, []string{"GATE_BROKER_NOT_READY"}},
		{"not heard", func(f *drain.Facts) { f.Missing = []string{"b:1"} }, []string{"GATE_BROKER_NOT_REPORTING"}},
		{"its report is too old", func(f *drain.Facts) { f.Snapshot.Brokers[1].Stale = policy.Reason{Code: "STALE_REPORT", Text: "old"} }, []string{"GATE_BROKER_NOT_REPORTING"}},
		{"it does not answer, so its report is old", func(f *drain.Facts) {
			f.Silent = map[string]string{"b:1": "no"}
			f.Snapshot.Brokers[1].Stale = policy.Reason{Code: "STALE_NO_ANSWER"}
		}, []string{"GATE_BROKER_SILENT"}},
		{"the picture is frozen", func(f *drain.Facts) { f.Frozen = []plan.Reason{{Code: "FROZEN_BLIND", Text: "cut off"}} }, []string{"GATE_FROZEN"}},
		{"no leader", func(f *drain.Facts) { f.Snapshot.Leader = "" }, []string{"GATE_NO_LEADER"}},
		{"log not read", func(f *drain.Facts) { f.CaughtUp = false }, []string{"GATE_LOG_NOT_READ"}},
		{"in flight", func(f *drain.Facts) { f.Owners = flying.Snapshot() }, []string{"GATE_IN_FLIGHT t/n/0x00000000_0xffffffff"}},
		{"anomaly", func(f *drain.Facts) { f.Anomalies = []watch.Anomaly{{Broker: "x", Why: watch.OwnerGone.Because()}} }, []string{"GATE_ANOMALY"}},
	} {
		f := open()
		tc.change(&f)
		got := drain.Gate(f)
		var list []string
		for _, l := range got {
			list = append(list, strings.TrimSpace(l.Why.Code+" "+l.Bundle))
		}
		if diff := cmp.Diff(tc.want, list); diff != "" {
			t.Errorf("%s:\n%s", tc.name, diff)
		}
	}
}

// While policies cannot be read nothing is known of where bundles may go: they wait, and the broker is not empty.
func TestUnreadPoliciesWait(t *testing.T) {
	snap := (&cluster.Snapshot{Brokers: brokers("a:1", "b:1"), Bundles: []cluster.Bundle{
		bundle("t/n", 1, "a:1", event.Owned, 100), bundle("t/m", 2, "a:1", event.Owned, 300)}}).Index()
	over := []policy.Broker{{ID: "a:1", PersistentTopics: true}, {ID: "b:1", PersistentTopics: true}}
	for unread, want := range map[string][]string{
		"t/m": {"POLICY_FROZEN t/m/0x02000000_0x02ffffff"},
		"":    {"POLICY_FROZEN t/m/0x02000000_0x02ffffff", "POLICY_FROZEN t/n/0x01000000_0x01ffffff"},
	} {
		view := policy.New(nil, nil, nil, map[string]string{unread: "503"}).Over(over)
		p := drain.Of(drain.Input{Snapshot: snap, Broker: "a:1", Policies: view})
		if diff := cmp.Diff(want, codes(p.Waiting)); diff != "" || len(p.Stay) > 0 || len(p.Decisions)+len(p.Waiting) != 2 || p.Empty() {
			t.Errorf("of %q nothing can be read: empty %v, stay %v\n%s", unread, p.Empty(), codes(p.Stay), diff)
		}
	}
}

// What a broker says that it owns counts more than an old report, and is a doubt where the ownership is known otherwise.
func TestToldByTheBroker(t *testing.T) {
	snap := (&cluster.Snapshot{Brokers: brokers("a:1", "b:1"), Bundles: []cluster.Bundle{bundle("t/n", 1, "a:1", event.Owned, 0),
		bundle("t/n", 2, "", event.Init, 0), bundle("t/n", 3, "b:1", event.Owned, 0), bundle("t/n", 4, "b:1", event.Owned, 0)}}).Index()
	snap.Brokers[0].Bundles, snap.Brokers[1].Bundles = []int{0}, []int{2, 3}
	const fresh = "t/n/0x05000000_0x05ffffff"
	owned := []string{snap.Bundles[1].Name, snap.Bundles[2].Name, fresh, "pulsar/system/0x00000000_0xffffffff"}
	told := drain.Told(snap, "a:1", owned)
	var owners []string
	for _, b := range told.Bundles {
		owners = append(owners, b.Name[len(b.Namespace)+1:][:6]+" "+b.Owner+" "+string(b.State))
	}
	if diff := cmp.Diff([]string{"0x0100  " + string(event.Init), "0x0200 a:1 Owned", "0x0300 a:1 Owned", "0x0400 b:1 Owned", "0x0000 a:1 Owned", "0x0500 a:1 Owned"}, owners); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]int{{4, 1, 2, 5}, {3}}, [][]int{told.Brokers[0].Bundles, told.Brokers[1].Bundles}); diff != "" {
		t.Errorf("bundles of the brokers:\n%s", diff)
	}
	if snap.Bundles[2].Owner != "b:1" || len(snap.Brokers[1].Bundles) != 2 || snap.BundleIndex(fresh) >= 0 {
		t.Error("the snapshot itself was changed")
	}
	if drain.Told(told, "a:1", owned) != told {
		t.Error("what is known already makes another snapshot")
	}
	if diff := cmp.Diff([]string{"DRAIN_STILL_OWNED " + snap.Bundles[1].Name, "DRAIN_STILL_OWNED " + snap.Bundles[2].Name, "DRAIN_STILL_OWNED " + fresh},
		codes(drain.Doubts(snap, "a:1", owned))); diff != "" {
		t.Error(diff)
	}
}
