package extensible

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/event"
)

func TestMoveOf(t *testing.T) {
	for name, c := range map[string]struct {
		record event.ServiceUnitStateData
		want   Move
	}{
		"transfer": {event.ServiceUnitStateData{State: event.Releasing, SourceBroker: "a:1", DstBroker: "b:1", Timestamp: 5}, Move{"t/n/x", "a:1", "b:1", 5}},
		"unload":   {event.ServiceUnitStateData{State: event.Releasing, SourceBroker: "a:1", Timestamp: 5}, Move{"t/n/x", "a:1", "", 5}},
		"assigned": {event.ServiceUnitStateData{State: event.Assigning, SourceBroker: "a:1", DstBroker: "b:1"}, Move{}},
		"owned":    {event.ServiceUnitStateData{State: event.Owned, DstBroker: "b:1"}, Move{}},
		"split":    {event.ServiceUnitStateData{State: event.Splitting, SourceBroker: "a:1"}, Move{}},
		"nameless": {event.ServiceUnitStateData{State: event.Releasing}, Move{}},
	} {
		got, ok := MoveOf("t/n/x", &c.record)
		if got != c.want || ok != (c.want != Move{}) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

func TestCycles(t *testing.T) {
	at := func(times ...int64) []Move {
		var out []Move
		for _, x := range times {
			out = append(out, Move{At: x})
		}
		return out
	}
	got := Cycles(at(0, 10, 20, 60_020, 60_021, 200_000), 1000)
	if diff := cmp.Diff([][]Move{at(0, 10, 20), at(60_020, 60_021), at(200_000)}, got); diff != "" {
		t.Error(diff)
	}
	if got := Cycles(nil, 1000); got != nil {
		t.Errorf("of nothing: %v", got)
	}
}

// The cluster: b1 is hot and gives t/a/7, 6 and 5 (10 MB/s each of 80) to b3, the least loaded, which has nothing to swap.
func agreementWorld(t *testing.T) *world {
	w := newWorld(t)
	for _, line := range []string{
		"set loadBalancerSheddingConditionHitCountThreshold=0", "broker b1", "broker b2", "broker b3 base=0.01",
		"bundle t/a/0..7 on=b1 throughput=10M", "bundle t/b/0..3 on=b2 throughput=10M",
	} {
		w.line(line)
	}
	return w
}

func TestExplain(t *testing.T) {
	move := func(bundle, source, destination string) Move {
		return Move{Bundle: longBundle(bundle), Source: longID(source), Destination: longID(destination)}
	}
	for _, c := range []struct {
		name    string
		change  []string
		move    Move
		verdict Verdict
		why     string // part of it
	}{
		{"the same move", nil, move("t/a/7", "b1", "b3"), Same, "std 0.322525 > target 0.25: load 0.8 to 0.01"},
		{"to another broker", nil, move("t/a/7", "b1", "b2"), OtherDestination, "planned to b3:8080 instead: std"},
		{"without a destination", nil, move("t/a/7", "b1", ""), OtherDestination, "planned to b3:8080 instead"},
		{"of another bundle", nil, move("t/a/0", "b1", "b3"), OtherBundle, "3 other bundles are planned from b1:8080; this one is left out: not looked at"},
		{"of a bundle too big", nil, move("t/a/4", "b1", "b3"), OtherBundle, "> target 39500000 bytes/s; no swap makes room for it"},
		{"of a bundle without traffic", []string{"bundle t/a/9 on=b1"}, move("t/a/9", "b1", "b3"), OtherBundle, "not among the top bundles of b1:8080"},
		{"from another broker", nil, move("t/b/0", "b2", "b3"), NotPlanned, "load 0.4 to 0.01, average 0.403333, std 0.322525: not looked at; the plan: 3 decisions"},
		{"from a broker that is not known", nil, move("t/b/0", "b9", "b3"), NotPlanned, "load unknown to 0.01"},
		{"before the hits are there", []string{"set loadBalancerSheddingConditionHitCountThreshold=3"}, move("t/a/7", "b1", "b3"), SameButWaiting, "the plan waits: STD_ABOVE_TARGET: hit 1"},
		{"during a cool-down", []string{"unloaded b2=1m"}, move("t/a/7", "b1", "b3"), SameButWaiting, "the plan waits: b2:8080 was unloaded 60000 ms"},
		{"of a bundle unloaded recently", []string{"unloaded t/a/7=1m"}, move("t/a/7", "b1", "b3"), SameButWaiting, "the plan waits: unloaded 60000 ms ago"},
		{"while all is even", []string{
			"set loadBalancerBrokerLoadTargetStd=2", "set loadBalancerBrokerOverloadedThresholdPercentage=95", "bundle t/c/0..2 on=b3 throughput=20M",
		}, move("t/a/7", "b1", "b3"), NotPlanned, "the plan: std 0.163"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := agreementWorld(t)
			for _, line := range c.change {
				w.line(line)
			}
			before := clone(t, w.st)
			o := New(nil, nil, Options{}).Explain(w.snapshot(), w.st, []Move{c.move})
			if len(o.Moves) != 1 || o.Moves[0].Verdict != c.verdict || !strings.Contains(o.Moves[0].Why.String(), c.why) || o.Moves[0].Why.Code == "" {
				t.Errorf("%+v\nwant %s: ...%s...", o.Moves, c.verdict, c.why)
			}
			if diff := cmp.Diff(before, w.st, stateOptions); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAgreement(t *testing.T) {
	w := agreementWorld(t)
	m := New(nil, nil, Options{})
	a := &Agreement{WindowMillis: 600_000}
	if s := a.Score(w.now); s.Percent != 100 || s.Moves != 0 {
		t.Errorf("of nothing: %+v", s)
	}
	first := m.Explain(w.snapshot(), w.st, []Move{
		{Bundle: longBundle("t/a/7"), Source: longID("b1"), Destination: longID("b3")},
		{Bundle: longBundle("t/a/6"), Source: longID("b1"), Destination: longID("b2")},
		{Bundle: longBundle("t/a/0"), Source: longID("b1"), Destination: longID("b3")},
		{Bundle: longBundle("t/b/0"), Source: longID("b2"), Destination: longID("b3")},
	})
	a.Add(first, w.now)
	if len(first.Missed) != 1 || first.Missed[0].Bundle != longBundle("t/a/5") {
		t.Errorf("missed %+v", first.Missed)
	}
	w.now += 60_000
	w.line("unloaded b1=1s")
	a.Add(m.Explain(w.snapshot(), w.st, []Move{{Bundle: longBundle("t/a/7"), Source: longID("b1"), Destination: longID("b3")}}), w.now)
	want := Score{Moves: 5, Same: 1, SameButWaiting: 1, OtherDestination: 1, OtherBundle: 1, NotPlanned: 1, Missed: 1, Percent: 40}
	if diff := cmp.Diff(want, a.Score(w.now)); diff != "" {
		t.Error(diff)
	}
	// The window passes over the first observation; adding drops it.
	if s := a.Score(w.now + 541_000); s.Moves != 1 || s.Percent != 100 {
		t.Errorf("later: %+v", s)
	}
	a.Add(Observation{At: w.now + 541_000}, w.now+541_000)
	if len(a.Observations) != 2 {
		t.Errorf("%d observations", len(a.Observations))
	}
	if _, err := json.Marshal(a); err != nil {
		t.Error(err)
	}
}
