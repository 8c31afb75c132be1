package guard

import (
	"fmt"
	"testing"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// wave is a cluster that no assignment makes even at all times: one bundle carries as much as all others together in one half of
// each period, and nothing in the other.
func wave() *model {
	m := &model{snap: &cluster.Snapshot{Now: now, Settings: settings.Defaults()}, policies: policy.New(nil, nil, nil, nil)}
	for i := range 2 {
		m.snap.Brokers = append(m.snap.Brokers, cluster.Broker{ID: fmt.Sprintf("b%d:8080", i), PersistentTopics: true, NonPersistentTopics: true, StartedAt: 1})
	}
	add := func(owner string, throughput float64) {
		i := len(m.snap.Bundles)
		b := cluster.Bundle{Name: fmt.Sprintf("t/n/0x%08x_0x%08x", i, i+1), Namespace: "t/n", Owner: owner, State: event.Owned, Known: true}
		b.Stats.MsgThroughputIn = throughput
		m.snap.Bundles = append(m.snap.Bundles, b)
	}
	add("b0:8080", 300)
	for range 6 {
		add("b1:8080", 50)
	}
	m.report()
	return m
}

// waveRun makes a cycle a minute for hours, a greedy planner behind the guard, and returns the moves of each hour and how many
// cycles refused something because it was held.
func waveRun(t *testing.T, period, hours int, lim Limits) (perHour []int, held int) {
	m, st := wave(), NewState()
	perHour = make([]int, hours)
	for minute := range hours * 60 {
		m.snap.Bundles[0].Stats.MsgThroughputIn = 300
		if minute%period >= period/2 {
			m.snap.Bundles[0].Stats.MsgThroughputIn = 0
		}
		var v Verdict
		st, v = m.cycle(st, greedy(m), lim)
		perHour[minute/60] += len(v.Run)
		for _, r := range v.Refused {
			if r.Why.Code == HeldBundle.ID || r.Why.Code == HeldBroker.ID {
				held++
				break
			}
		}
	}
	if _, err := DecodeState(marshal(t, st)); err != nil {
		t.Fatal(err)
	}
	return perHour, held
}

// TestSquareWave: load that comes and goes is chased for a while, then less and less; without the detector it is chased for ever.
func TestSquareWave(t *testing.T) {
	const hours = 24
	limits := Limits{BundleCoolDown: 600_000, FailureCoolDown: 600_000, LoadDataTTL: 600_000, GainBy: Usage, OscillationWindow: 3_600_000, OscillationTurns: 4}
	blind := limits
	blind.OscillationWindow = 0
	for _, period := range []int{4, 10, 20, 40, 60, 90} {
		t.Run(fmt.Sprint(period, " minutes"), func(t *testing.T) {
			without, _ := waveRun(t, period, hours, blind)
			with, held := waveRun(t, period, hours, limits)
			t.Logf("moves per hour without the detector %v, with it %v; held in %d cycles", without, with, held)
			sum := func(hs []int) (n int) {
				for _, h := range hs {
					n += h
				}
				return n
			}
			if held == 0 {
				t.Error("nothing was held")
			}
			if a, b := sum(without[12:]), sum(with[12:]); a < 12*2 || b*3 > a {
				t.Errorf("moves of the last 12 hours: %d without the detector, %d with it; want at least 24, and at most a third of them", a, b)
			}
		})
	}
}

// TestStreamIsNoOscillation: a broker that is emptied over hours, bundle by bundle, is never slowed.
func TestStreamIsNoOscillation(t *testing.T) {
	lim := Limits{OscillationWindow: 3_600_000, OscillationTurns: 1}
	m, st := wave(), NewState()
	for i := 1; i < len(m.snap.Bundles); i++ {
		var v Verdict
		st, v = m.cycle(st, []plan.Decision{m.decision(i, "b0:8080")}, lim)
		if len(v.Run) != 1 || len(v.Slowed) != 0 {
			t.Fatalf("move %d: %+v", i, v)
		}
	}
}
