package advise_test

import (
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/advise"
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
)

// TestMismatch: which pairs of strategies compare brokers by different figures.
func TestMismatch(t *testing.T) {
	byThroughput := settings.Defaults()
	byThroughput.LoadBalancerMsgRateDifferenceShedderThreshold = 0
	for _, x := range []struct {
		shedder, placer string
		s               *settings.Settings
		want            bool
	}{
		{"ThresholdShedder", "LeastLongTermMessageRate", settings.Defaults(), true}, // Pulsar 4's default pair
		{"org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder", "org.apache.pulsar.broker.loadbalance.impl.LeastResourceUsageWithWeight", settings.Defaults(), false},
		{"AvgShedder", "AvgShedder", settings.DefaultsOf("5.0.1"), false},
		{"UniformLoadShedder", "LeastLongTermMessageRate", settings.Defaults(), false},
		{"UniformLoadShedder", "LeastLongTermMessageRate", byThroughput, true},
		{"TransferShedder", "LeastResourceUsageWithWeight", settings.Defaults(), false},
		{"OverloadShedder", "RoundRobinBrokerSelector", settings.Defaults(), false},
		{"Own", "LeastLongTermMessageRate", settings.Defaults(), false},
		{"", "", settings.Defaults(), false},
	} {
		if got := advise.Mismatch(x.shedder, x.placer, x.s); len(got) > 0 != x.want {
			t.Errorf("%s with %s: %s, want %v", x.shedder, x.placer, text(got), x.want)
		}
	}
	check(t, "sentence", advise.Mismatch("UniformLoadShedder", "LeastLongTermMessageRate", byThroughput),
		"SCORES_DIFFER: UniformLoadShedder compares brokers by throughput, LeastLongTermMessageRate by message rate: what is shed may land on a broker that is to be shed next\n")
}

// TestProgress follows loads of two brokers from round to round. A round is the load of the first (the second has the rest of
// 100), "+" for one that moves something, or the minutes that pass before the next.
func TestProgress(t *testing.T) {
	type round struct {
		load    float64
		moves   bool
		minutes int64
		restart bool
	}
	for _, x := range []struct {
		name   string
		rounds []round
		want   []int // Rounds after each
	}{
		{"it gets better", []round{{load: 90, moves: true}, {load: 80, moves: true}, {load: 70, moves: true}, {load: 50}}, []int{0, 0, 0, 0}},
		{"it swings", []round{{load: 90, moves: true}, {load: 60, moves: true}, {load: 80, moves: true}, {load: 60, moves: true}, {load: 80, moves: true}}, []int{0, 0, 1, 2, 3}},
		{"it swings back at once", []round{{load: 80, moves: true}, {load: 20, moves: true}, {load: 80, moves: true}, {load: 20, moves: true}}, []int{0, 1, 2, 3}},
		{"nothing helps, with pauses", []round{{load: 80, moves: true}, {load: 80}, {load: 80, moves: true}, {load: 80}, {load: 80, moves: true}, {load: 80}}, []int{0, 1, 1, 2, 2, 3}},
		{"uneven without moves", []round{{load: 80}, {load: 90}, {load: 95}}, []int{0, 0, 0}},
		{"better at last", []round{{load: 80, moves: true}, {load: 80, moves: true}, {load: 80, moves: true}, {load: 60}}, []int{0, 1, 2, 0}},
		{"even for long, then not", []round{{load: 50}, {load: 90, moves: true}, {load: 80, moves: true}, {load: 70}}, []int{0, 0, 0, 0}},
		{"a grace period without moves", []round{{load: 80, moves: true}, {load: 80, moves: true}, {load: 80, minutes: 31}, {load: 90, moves: true}, {load: 85}}, []int{0, 1, 0, 0, 0}},
		{"a broker restarts", []round{{load: 80, moves: true}, {load: 80, moves: true}, {load: 100, restart: true, moves: true}, {load: 90}}, []int{0, 1, 0, 0}},
	} {
		var p advise.Progress
		now := int64(1_700_000_000_000)
		started := int64(0)
		for i, r := range x.rounds {
			s := snapshot()
			add(s, r.load, 1e6)
			add(s, 100-r.load, 1e6)
			now += max(r.minutes, 1) * 60_000
			if r.restart {
				started = now
			}
			s.Now, s.Brokers[0].StartedAt = now, started
			if p = p.Next(s.Index(), r.moves, advise.Usage); p.Rounds != x.want[i] {
				t.Errorf("%s: after round %d: %d rounds for nothing, want %d (%+v)", x.name, i+1, p.Rounds, x.want[i], p)
			}
		}
	}
	p := advise.Progress{Rounds: 3, Last: 1.5}
	check(t, "three rounds", p.Advice(3, "TransferShedder", "LeastResourceUsageWithWeight", settings.Defaults()),
		"NO_PROGRESS: 3 rounds of moves by TransferShedder did not make usage more even (most to mean 1.5)\n")
	check(t, "not four", p.Advice(4, "TransferShedder", "", settings.Defaults()), "")
	check(t, "nobody asks", p.Advice(0, "TransferShedder", "", settings.Defaults()), "")
	silent := snapshot()
	add(silent, 90, 1e6)
	silent.Brokers[0].Load = nil
	before := advise.Progress{Rounds: 2, Best: 1.5, Acted: silent.Now, Moved: true}
	if got := before.Next(silent.Index(), true, advise.Usage); got != before {
		t.Errorf("a round that nobody reports for changed %+v to %+v", before, got)
	}
}

// watched stops a load manager whose rounds lead nowhere.
type watched struct {
	*modular.Manager
	rounds   int // for nothing, until it stops
	progress advise.Progress
	advice   []plan.LeftOut
	stopped  int
}

func (w *watched) Shed(snap *cluster.Snapshot, state plan.State, rnd plan.Rand, tr *plan.Trace) (plan.Plan, plan.State) {
	p, next := w.Manager.Shed(snap, state, rnd, tr)
	by := advise.MeasureOf("UniformLoadShedder", snap.Settings)
	w.progress = w.progress.Next(snap, len(p.Decisions) > 0, by)
	if a := w.progress.Advice(w.rounds, "UniformLoadShedder", "LeastLongTermMessageRate", snap.Settings); len(a) > 0 {
		w.advice = append(w.advice, a...)
		w.stopped++
		p.Decisions, p.Outcome = nil, a[0].Why
		return p, state
	}
	return p, next
}

// TestScoreMismatchIsSeen: two brokers have bundles of few large messages, the third many small ones and the fewest bytes.
// Shedding by throughput takes from the first two, placement by messages gives back to them, for ever. After three rounds for
// nothing it stops, and says why.
func TestScoreMismatchIsSeen(t *testing.T) {
	run := func(rounds int) (*watched, *simulate.Run) {
		s, err := simulate.CaseNamed("A7")
		if err != nil {
			t.Fatal(err)
		}
		s.Changes, s.Config.Kind = nil, simulate.Modular
		for i, b := range s.Config.Namespaces[0].Bundles {
			switch b.Owner {
			case "broker-1:8080":
				b.Traffic = simulate.Messages(22, 100_000)
			case "broker-2:8080":
				b.Traffic = simulate.Messages(20, 100_000)
			default:
				b.Traffic = simulate.Messages(5000, 100)
			}
			s.Config.Namespaces[0].Bundles[i] = b
		}
		if s, err = s.With("loadBalancerSheddingGracePeriodMinutes", "2"); err != nil {
			t.Fatal(err)
		}
		m, err := modular.New(modular.UniformLoadShedder{}, modular.LeastLongTermMessageRate{}, modular.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &watched{Manager: m, rounds: rounds}
		r, err := s.Run(w)
		if err != nil {
			t.Fatal(err)
		}
		return w, r
	}
	free, all := run(0)
	held, few := run(3)
	if a, f := all.Scoreboard().Moves, few.Scoreboard().Moves; free.stopped != 0 || held.stopped == 0 || f == 0 || 3*f > a {
		t.Errorf("%d moves without the stop, %d with it:\n%s\n%s", a, f, all.Log(), few.Log())
	}
	for _, a := range held.advice {
		if a.Why.Code != advise.ScoreMismatch.ID || !strings.Contains(a.Why.Text, "UniformLoadShedder sheds by it, LeastLongTermMessageRate places by message rate") {
			t.Errorf("advice is %s", text([]plan.LeftOut{a}))
		}
	}
}
