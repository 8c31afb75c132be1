package control_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/guard"
)

func drainOf(broker string, also ...string) func(*control.Command) {
	return func(c *control.Command) {
		c.Reason = "new disks"
		c.Args, _ = json.Marshal(control.DrainArgs{Broker: broker, Also: also})
	}
}

// drainTown is a town whose leaders plan nothing by themselves.
func drainTown(seed uint64) *town {
	w := newTown(seed, 12)
	w.manager = script{}
	w.options = func(o *control.Options) {
		o.Lock.Lease = time.Second
		o.Limits = guard.Limits{BundlesPerCycle: 5}
	}
	return w
}

func (t *town) on(broker string) (n int) {
	for _, owner := range t.owners {
		if owner == broker {
			n++
		}
	}
	return n
}

// drained is when the log said first, from a time on, that a broker is empty.
func (t *town) drained(broker string, from time.Time) (at time.Time) {
	for _, r := range t.since(from, control.KindPlan) {
		if id, empty, ok := control.DrainOf(r); ok && empty && id == broker {
			return time.UnixMilli(r.At)
		}
	}
	return at
}

// The leader empties a broker, evenly and within the budget of a cycle, moves away what arrives later, also after a change of the
// leader and during a pause, and stops when it is told to.
func TestDrainByTheLeader(t *testing.T) {
	w := drainTown(1)
	defer w.stop()
	leader := w.start()
	w.run(5 * time.Second)
	for what, args := range map[string]func(*control.Command){"nobody:8080": drainOf("nobody:8080"), "no other": drainOf(a, b, c)} {
		if answer := w.order(t, control.CommandDrain, args); answer.Done || !strings.Contains(answer.Text, what) {
			t.Errorf("drain of %s: %+v", what, answer)
		}
	}
	if answer := w.order(t, control.CommandUndrain, drainOf(a)); answer.Done {
		t.Errorf("ending a drain that is none: %+v", answer)
	}
	begun := w.now
	if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.run(20 * time.Second)
	if w.on(a) > 0 || w.on(b) < 5 || w.on(c) < 5 {
		t.Fatalf("owned are %d, %d and %d", w.on(a), w.on(b), w.on(c))
	}
	if w.drained(a, begun).IsZero() {
		t.Error("the log does not say that it is empty")
	}
	for _, r := range w.since(begun, control.KindPlan) {
		if _, _, ok := control.DrainOf(r); ok && r.Verdict != nil && len(r.Verdict.Run) > 5 {
			t.Errorf("a round moves %d bundles", len(r.Verdict.Run))
		}
	}
	for _, r := range w.since(begun, control.KindIntent) {
		if r.Decision.Why.Code != drain.Leaves.ID || !strings.Contains(r.Decision.Why.Text, "anna@desk ordered it: new disks") {
			t.Errorf("a bundle leaves because of %s", r.Decision.Why.Text)
		}
	}
	quietly := len(w.records())
	w.run(8 * time.Second)
	if n := len(w.records()) - quietly; n > 4 {
		t.Errorf("%d records in 8 s of an empty broker", n)
	}
	back := w.bundles()[3]
	w.owners[back] = a
	w.run(5 * time.Second)
	if w.on(a) > 0 {
		t.Error("what arrives later stays")
	}

	leader.kill()
	w.start()
	w.owners[back] = a
	w.run(8 * time.Second)
	if w.on(a) > 0 {
		t.Error("the next leader does not go on")
	}
	if answer := w.order(t, control.CommandPause, reason("upgrade")); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.owners[back] = a
	w.run(5 * time.Second)
	if w.on(a) > 0 {
		t.Error("a pause stops what an operator ordered")
	}
	if codes := leftOut(w, a); !slices.Contains(codes, control.DrainStands.ID) {
		t.Errorf("cycles say of the broker %v", codes)
	}
	if answer := w.order(t, control.CommandUndrain, drainOf(a)); !answer.Done {
		t.Fatal(answer.Text)
	}
	w.owners[back] = a
	w.run(15 * time.Second)
	if w.on(a) != 1 {
		t.Error("after undrain it is still emptied")
	}
}

// leftOut are the codes of what cycles say of a broker.
func leftOut(w *town, broker string) (codes []string) {
	for _, r := range w.since(time.UnixMilli(town0), control.KindPlan) {
		for _, l := range r.LeftOut {
			if l.Broker == broker && l.Bundle == "" {
				codes = append(codes, l.Why.Code)
			}
		}
	}
	return codes
}

// A strategy does not see a broker that is drained, so that nothing of its plan goes there.
func TestNothingIsPlannedToADrainedBroker(t *testing.T) {
	w := newTown(2, 12)
	defer w.stop()
	w.start()
	w.run(25 * time.Second)
	if answer := w.order(t, control.CommandDrain, drainOf(b)); !answer.Done {
		t.Fatal(answer.Text)
	}
	begun := w.now
	w.run(60 * time.Second)
	others := 0
	for _, r := range w.since(begun, control.KindPlan) {
		for _, d := range r.Plan.Decisions {
			if d.Destination == b {
				t.Errorf("cycle %d plans %s to the drained broker", r.Cycle, short(d.Bundle))
			}
			if d.Why.Code != drain.Leaves.ID {
				others++
			}
		}
	}
	if w.on(b) > 0 || others == 0 {
		t.Errorf("%d bundles are left, %d others were planned", w.on(b), others)
	}
}

// The leader is changed at every point of a drain at which it calls the outside (every 19th in short): no bundle is asked for twice
// while it moves, the broker ends empty, and the log says so.
func TestADrainSurvivesALeaderChange(t *testing.T) {
	scripted := func(killAt int) (w *town, points int) {
		w = drainTown(3)
		w.start()
		w.run(5 * time.Second)
		if answer := w.order(t, control.CommandDrain, drainOf(a)); !answer.Done {
			t.Fatal(answer.Text)
		}
		begun := w.now
		w.dieAt(killAt, &points)
		for range 120 {
			w.step()
			if at := w.drained(a, begun.Add(time.Second)); !at.IsZero() {
				break
			}
		}
		w.stop()
		return w, points
	}
	every := 19
	if os.Getenv("BALLAST_FULL") != "" {
		every = 1
	}
	_, points := scripted(0)
	for at := 0; at <= points; at += every {
		w, _ := scripted(at)
		if w.on(a) > 0 || w.drained(a, time.UnixMilli(town0)).IsZero() {
			t.Fatalf("changed at point %d of %d: %d bundles are left\n%s", at, points, w.on(a), w.dump())
		}
		moved := map[string]int{}
		for _, r := range w.requests {
			if r.effect {
				moved[r.bundle]++
			}
		}
		for bundle, n := range moved {
			if n != 1 {
				t.Fatalf("changed at point %d of %d: %s moved %d times\n%s", at, points, short(bundle), n, w.dump())
			}
		}
	}
	t.Logf("%d points", points)
}
