package guard

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

const (
	b1, b2, b3 = "b1:8080", "b2:8080", "b3:8080"
	first      = "t/n/0x00000000_0x40000000"
	second     = "t/n/0x40000000_0x80000000"
	third      = "t/n/0x80000000_0xc0000000"
	now        = int64(1_700_000_000_000)
)

// three brokers that were heard a second ago; b1 owns three bundles.
func snapshot(change func(*cluster.Snapshot)) *cluster.Snapshot {
	s := &cluster.Snapshot{Now: now}
	for _, id := range []string{b1, b2, b3} {
		s.Brokers = append(s.Brokers, cluster.Broker{ID: id, PersistentTopics: true, Load: &event.BrokerLoadData{}, LoadHeard: now - 1000})
	}
	for _, name := range []string{first, second, third} {
		s.Bundles = append(s.Bundles, cluster.Bundle{Name: name, Namespace: "t/n", Owner: b1, State: event.Owned})
	}
	if change != nil {
		change(s)
	}
	return s.Index()
}

func transfer(bundle, to string) plan.Decision {
	return plan.Decision{Action: plan.Transfer, Bundle: bundle, Source: b1, Destination: to, Topics: 100}
}

func TestCheck(t *testing.T) {
	isolated := policy.New([]policy.Isolation{{Name: "p", Namespaces: []string{"t/n"}, Primary: []string{"b1|b2"}, AutoFailover: policy.AutoFailover{MinLimit: 1}}}, nil, nil, nil)
	alone := policy.New([]policy.Isolation{{Name: "p", Namespaces: []string{"t/n"}, Primary: []string{"b1"}, AutoFailover: policy.AutoFailover{MinLimit: 1}}}, nil, nil, nil)
	unread := policy.New(nil, nil, nil, map[string]string{"": "503"})
	for _, tc := range []struct {
		name     string
		change   func(*cluster.Snapshot)
		policies *policy.Set
		state    State
		limits   Limits
		plan     []plan.Decision
		refused  []string // code of each decision, "" = let through
	}{
		{name: "no limits, no policies", plan: []plan.Decision{transfer(first, b2), transfer(second, b3)}, refused: []string{"", ""}},
		{name: "one bundle twice", plan: []plan.Decision{transfer(first, b2), transfer(first, b3)}, refused: []string{"", Twice.ID}},
		{name: "destination not registered", plan: []plan.Decision{transfer(first, "gone:8080")}, refused: []string{NotRegistered.ID}},
		{name: "source not registered", plan: []plan.Decision{transfer(first, b2)}, refused: []string{NotRegistered.ID},
			change: func(s *cluster.Snapshot) { s.Brokers = s.Brokers[1:] }},
		{name: "another owner", plan: []plan.Decision{transfer(first, b2)}, refused: []string{SourceChanged.ID},
			change: func(s *cluster.Snapshot) { s.Bundles[0].Owner = b3 }},
		{name: "in flight", plan: []plan.Decision{transfer(first, b2)}, refused: []string{InFlight.ID},
			change: func(s *cluster.Snapshot) { s.Bundles[0].State = event.Releasing }},
		{name: "destination not heard", plan: []plan.Decision{transfer(first, b2)}, refused: []string{Missing.ID},
			change: func(s *cluster.Snapshot) { s.Brokers[1].Load = nil }},
		{name: "stale at the limit passes, above it does not", limits: Limits{LoadDataTTL: 1000},
			plan: []plan.Decision{transfer(first, b2), transfer(second, b3)}, refused: []string{"", Stale.ID},
			change: func(s *cluster.Snapshot) { s.Brokers[2].LoadHeard = now - 1001 }},
		{name: "policy forbids the destination", policies: isolated,
			plan: []plan.Decision{transfer(first, b2), transfer(second, b3)}, refused: []string{"", policy.NotListed.ID}},
		{name: "unload without any other broker allowed", policies: alone, plan: []plan.Decision{transfer(first, "")}, refused: []string{policy.NoOtherBroker.ID}},
		{name: "policies that cannot be read", policies: unread,
			plan: []plan.Decision{transfer(first, b2), transfer(second, "")}, refused: []string{policy.Frozen.ID, policy.Frozen.ID}},
		{name: "system namespace", plan: []plan.Decision{transfer("pulsar/system/0x00000000_0xffffffff", b2)}, refused: []string{policy.SystemNamespace.ID}},
		{name: "heartbeat namespace", plan: []plan.Decision{transfer("pulsar/b1:8080/0x00000000_0xffffffff", b2)}, refused: []string{policy.BrokerNamespace.ID}},
		{name: "moved and failed recently", limits: Limits{BundleCoolDown: 100, FailureCoolDown: 100},
			state: State{Moved: map[string]int64{first: now - 99, third: now - 100}, Failed: map[string]int64{second: now - 99}},
			plan:  []plan.Decision{transfer(first, b2), transfer(second, b2), transfer(third, b2)}, refused: []string{CoolDown.ID, FailedRecently.ID, ""}},
		{name: "brokers rest", limits: Limits{BrokerCoolDown: 100}, state: State{Brokers: map[string]int64{b2: now - 99, b3: now - 100}},
			plan: []plan.Decision{transfer(first, b2), transfer(second, b3)}, refused: []string{BrokerRests.ID, ""}},
		{name: "budget of the cycle", limits: Limits{BundlesPerCycle: 1},
			plan: []plan.Decision{transfer(first, b2), transfer(second, b3)}, refused: []string{"", CycleBudget.ID}},
		{name: "budget of the source", limits: Limits{BundlesPerSource: 2},
			plan: []plan.Decision{transfer(first, b2), transfer(second, b3), transfer(third, b2)}, refused: []string{"", "", SourceBudget.ID}},
		{name: "budget of the destination", limits: Limits{BundlesPerTarget: 1},
			plan: []plan.Decision{transfer(first, b2), transfer(second, b2), transfer(third, b3)}, refused: []string{"", TargetBudget.ID, ""}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			snap := snapshot(tc.change)
			var view *policy.View
			if tc.policies != nil {
				var brokers []policy.Broker
				for _, b := range snap.Brokers {
					brokers = append(brokers, policy.Broker{ID: b.ID, PersistentTopics: b.PersistentTopics})
				}
				view = tc.policies.Over(brokers)
			}
			v := Check(snap, tc.plan, view, tc.state, tc.limits)
			refused := map[string]string{}
			for _, r := range v.Refused {
				refused[r.Decision.Bundle+r.Decision.Destination] = r.Why.Code
				if r.Why.Text == "" {
					t.Errorf("%s is refused without a sentence", r.Decision.Bundle)
				}
			}
			var got []string
			for _, d := range tc.plan {
				got = append(got, refused[d.Bundle+d.Destination])
			}
			if diff := cmp.Diff(tc.refused, got); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if len(v.Run)+len(v.Refused) != len(tc.plan) {
				t.Errorf("%d of %d decisions have a verdict", len(v.Run)+len(v.Refused), len(tc.plan))
			}
		})
	}
}

func TestRecordKeepsWhatStillCounts(t *testing.T) {
	limits := Limits{BundleCoolDown: 100, FailureCoolDown: 50, BrokerCoolDown: 20}
	before := State{Version: 1, Moved: map[string]int64{first: now - 100, second: now - 99}, Failed: map[string]int64{third: now - 10}}
	got := Record(before, transfer(third, b2), true, now, limits)
	want := State{Version: StateVersion, Moved: map[string]int64{second: now - 99, third: now}, Failed: map[string]int64{},
		Brokers: map[string]int64{b1: now, b2: now}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("state (-want +got):\n%s", diff)
	}
	if len(before.Moved) != 2 || len(before.Failed) != 1 {
		t.Error("the state that went in was changed")
	}
}

func TestPauseKeepsTopicsPerSecond(t *testing.T) {
	for _, tc := range []struct {
		perSecond    float64
		topics, want int64
	}{{500, 1000, 2000}, {500, 1, 2}, {0.5, 3, 6000}, {2.5, 10, 4000}, {1e-300, 1, maxPause}, {500, math.MaxInt64, maxPause},
		{0, 1000, 0}, {math.NaN(), 1, 0}, {math.Inf(1), 1, 0}, {500, 0, 0}, {500, -5, 0}} {
		if got := (Limits{TopicsPerSecond: tc.perSecond}).Pause(plan.Decision{Topics: tc.topics}); got != tc.want {
			t.Errorf("%d topics at %v/s: pause is %d ms, want %d", tc.topics, tc.perSecond, got, tc.want)
		}
	}
}

// An order is tried again soon after a failure, later after each further one, and never later than a strategy would; a bundle that
// moved begins anew.
func TestOrdersRestShortlyAfterAFailure(t *testing.T) {
	limits := Limits{FailureCoolDown: 60_000}
	order := transfer(first, b2)
	order.PulsarReason = "Admin"
	rested := func(st State, d plan.Decision) (ms int64) {
		for snap := snapshot(nil); ; ms += 1000 {
			snap.Now = now + ms
			if v := Check(snap, []plan.Decision{d}, nil, st, limits); len(v.Run) == 1 {
				return ms
			} else if v.Refused[0].Why.Code != FailedRecently.ID || ms > 100_000 {
				t.Fatal(v.Refused)
			}
		}
	}
	st := NewState()
	for i, want := range []int64{10_000, 20_000, 40_000, 60_000, 60_000} {
		at := now - int64(4-i)*60_000 // each right when the longest rest is over
		st = Learn(st, Outcome{Decision: order, At: at}, limits)
		late := st
		late.Failed = map[string]int64{first: now}
		if got := rested(late, order); got != want {
			t.Errorf("after %d failures an order rests for %d ms, not %d", i+1, got, want)
		}
		if got := rested(late, transfer(first, b2)); got != 60_000 {
			t.Errorf("after %d failures a strategy's move rests for %d ms", i+1, got)
		}
	}
	st = Learn(st, Outcome{Decision: order, Moved: true, At: now}, limits)
	if st = Learn(st, Outcome{Decision: order, At: now}, limits); rested(st, order) != 10_000 {
		t.Errorf("after a move that was made the first failure does not count as the first: %v", st.Failures)
	}
	if st = Learn(st, Outcome{Decision: transfer(second, b2), At: now + 120_000}, limits); len(st.Failures) != 1 {
		t.Errorf("failures of long ago are remembered: %v", st.Failures)
	}
}
