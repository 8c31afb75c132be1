package control_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/watch"
)

// stuckFor is how long a bundle of the town may be stuck before its leader should have mended it.
const stuckFor = 20 * time.Second

// anomalies are the town's stuck bundles, as a sentry would tell them.
type anomalies struct{ *proc }

func (s anomalies) Look(_ context.Context, now time.Time, _ *cluster.Snapshot) (out []watch.Anomaly, err error) {
	for _, bundle := range s.bundles() {
		since, stuck := s.stuck[bundle]
		if !stuck {
			continue
		}
		a := watch.Anomaly{Severity: watch.Warning, Bundle: bundle, Since: since.UnixMilli(), Why: watch.InFlight.Because(plan.S("state", "Releasing"))}
		if now.Sub(since) > stuckFor {
			a.Severity = watch.Error
		}
		out = append(out, a)
	}
	return out, nil
}

// cureTown is a town whose leaders cure, a minute after each other.
func cureTown(seed uint64) *town {
	w := newTown(seed, 12)
	w.options = func(o *control.Options) {
		p := o.Viewer.(*proc)
		o.Lock.Lease = time.Second
		o.Curer = control.NewCurer(anomalies{p}, control.Locked(p, o.Lock), p, p,
			control.ExecLimits{Request: time.Minute, Verify: 5 * time.Second, Poll: 100 * time.Millisecond},
			watch.CureLimits{AtOnce: 1, Attempts: 3, BackOff: 60_000}, quiet)
	}
	return w
}

// asked are the requests to unload a bundle without a destination.
func (t *town) asked(bundle string) (out []time.Duration) {
	for _, r := range t.requests {
		if r.bundle == bundle && r.to == "" {
			out = append(out, r.sent.Sub(time.UnixMilli(town0)))
		}
	}
	return out
}

// told are the codes of what records from a time on say about a bundle that was passed over, each once.
func (t *town) passedOver(at time.Time, bundle string) (codes []string) {
	for _, r := range t.since(at, control.KindPlan) {
		for _, l := range r.LeftOut {
			if l.Bundle == bundle && !slices.Contains(codes, l.Why.Code) {
				codes = append(codes, l.Why.Code)
			}
		}
	}
	return codes
}

// A stuck bundle is cured once, before the plan's own decisions, and not moved in the same cycle; stuck again at once it waits
// for the back-off.
func TestControllerCures(t *testing.T) {
	w := cureTown(1)
	defer w.stop()
	w.mends = true
	w.start()
	w.run(5 * time.Second)
	bundle := w.bundles()[4]
	w.stuck[bundle] = w.now
	w.run(15 * time.Second)
	if n := len(w.asked(bundle)); n > 0 {
		t.Fatalf("%d requests before the cluster's leader had its time", n)
	}
	w.run(30 * time.Second)
	if _, stuck := w.stuck[bundle]; stuck || len(w.asked(bundle)) != 1 {
		t.Fatalf("requests at %v, still stuck: %v", w.asked(bundle), stuck)
	}
	var cure, first, moves int
	for i, e := range w.records() {
		switch d := e.Decision; {
		case e.Kind == control.KindPlan && len(e.Cures) > 0:
			if e.Cures[0].Bundle != bundle || e.Cures[0].Action != plan.Unload {
				t.Errorf("the plan's cures are %+v", e.Cures)
			}
			for _, d := range e.Verdict.Run {
				if d.Bundle == bundle {
					t.Error("what is cured is moved in the same cycle")
				}
			}
			cure, moves = i, len(e.Verdict.Run)
		case e.Kind == control.KindIntent && cure > 0 && first == 0:
			if first = i; d.Bundle != bundle || d.Why.Code != watch.CureStuck.ID {
				t.Errorf("after the plan first of all %+v is begun", d)
			}
		case e.Kind == control.KindOutcome && e.Outcome.Decision.Why.Code == watch.CureStuck.ID && e.Outcome.Result != control.Done:
			t.Errorf("the cure ended with %+v", e.Outcome)
		}
	}
	if cure == 0 || first == 0 || moves == 0 {
		t.Errorf("record of the cure %d, of its intent %d, %d moves beside it", cure, first, moves)
	}
	w.stuck[bundle] = w.now.Add(-time.Hour)
	again := w.now
	w.run(25 * time.Second)
	if got := w.asked(bundle); len(got) != 1 || !slices.Contains(w.passedOver(again, bundle), watch.CureBacksOff.ID) {
		t.Errorf("inside the back-off it is asked for at %v, passed over because of %v", got, w.passedOver(again, bundle))
	}
	w.run(60 * time.Second)
	if got := w.asked(bundle); len(got) != 2 || got[1]-got[0] < time.Minute {
		t.Errorf("after the back-off it is asked for at %v", got)
	}
}

// Brokers that ignore the unload are asked three times, with longer and longer pauses; then an operator has to look.
func TestCureThatIsIgnored(t *testing.T) {
	w := cureTown(2)
	defer w.stop()
	w.start()
	w.run(5 * time.Second)
	bundle := w.bundles()[0]
	w.stuck[bundle] = w.now
	w.run(10 * time.Minute)
	got := w.asked(bundle)
	if len(got) != 3 || got[1]-got[0] < time.Minute || got[2]-got[1] < 2*time.Minute {
		t.Errorf("it is asked for at %v", got)
	}
	ignored := 0
	for _, e := range w.records() {
		if e.Kind == control.KindOutcome && e.Outcome.Decision.Bundle == bundle && e.Outcome.Result == control.TimedOut && strings.Contains(e.Outcome.Why, "brokers ignore") {
			ignored++
		}
	}
	if ignored != 3 {
		t.Errorf("%d outcomes say that it was ignored", ignored)
	}
	if codes := w.passedOver(w.now.Add(-time.Minute), bundle); !slices.Contains(codes, watch.CureExhausted.ID) {
		t.Errorf("at last it is passed over because of %v", codes)
	}
	if n := len(w.since(w.now.Add(-time.Minute), control.KindIntent)); n == 0 {
		t.Error("nothing else is moved any more")
	}
}

// A pause and reviews hold cures back, which does not use attempts up.
func TestCuresAreHeldBack(t *testing.T) {
	w := cureTown(3)
	defer w.stop()
	w.mends = true
	leader := w.start()
	w.run(5 * time.Second)
	if a := w.order(t, control.CommandPause, reason("upgrade")); !a.Done {
		t.Fatal(a.Text)
	}
	bundle := w.bundles()[7]
	w.stuck[bundle] = w.now
	paused := w.now
	w.run(90 * time.Second)
	if got := w.asked(bundle); len(got) > 0 || !slices.Contains(w.passedOver(paused, bundle), control.CurePaused.ID) {
		t.Errorf("while it is paused it is asked for at %v, passed over because of %v", got, w.passedOver(paused, bundle))
	}
	leader.kill()
	cures := w.options
	w.options = func(o *control.Options) { cures(o); o.Review = true }
	leader = w.start()
	w.run(5 * time.Second)
	if a := w.order(t, control.CommandResume, reason("")); !a.Done {
		t.Fatal(a.Text)
	}
	reviewed := w.now
	w.run(60 * time.Second)
	if got := w.asked(bundle); len(got) > 0 || !slices.Contains(w.passedOver(reviewed, bundle), control.CureReviewed.ID) {
		t.Errorf("while plans are reviewed it is asked for at %v, passed over because of %v", got, w.passedOver(reviewed, bundle))
	}
	leader.kill()
	w.options = cures
	w.start()
	free := w.now
	w.run(40 * time.Second)
	if got := w.asked(bundle); len(got) != 1 {
		t.Errorf("after that it is asked for at %v", got)
	}
	for _, r := range w.since(free, control.KindIntent) {
		if r.Decision.Bundle == bundle && r.Decision.Why.Code == watch.CureStuck.ID && !strings.Contains(r.Decision.Why.Text, "attempt 1 of 3") {
			t.Errorf("the cure is %s", r.Decision.Why.Text)
		}
	}
}

// The leader is changed at every point at which it calls the outside (every fifth one in short) from before the cure to after it:
// nobody asks twice inside the back-off, and the bundle is mended in the end.
func TestALeaderChangeDoesNotCureTwice(t *testing.T) {
	scripted := func(killAt int) (w *town, points int) {
		w = cureTown(4)
		w.start()
		w.run(5 * time.Second)
		w.mends = true
		w.stuck[w.bundles()[2]] = w.now
		w.run(10 * time.Second)
		w.dieAt(killAt, &points)
		for range 100 {
			w.step()
		}
		w.fault = nil
		if _, stuck := w.stuck[w.bundles()[2]]; !stuck {
			w.stuck[w.bundles()[2]] = w.now.Add(-time.Hour) // it comes back
		}
		w.run(25 * time.Second)
		return w, points
	}
	w, points := scripted(0)
	w.stop()
	if got := w.asked(w.bundles()[2]); len(got) != 1 {
		t.Fatalf("without a change it is asked for at %v", got)
	}
	every := 5
	if os.Getenv("BALLAST_FULL") != "" {
		every = 1
	}
	held := 0
	for at := 1; at <= points; at += every {
		w, _ := scripted(at)
		bundle := w.bundles()[2]
		tries := map[int64]bool{} // times of intents
		for _, e := range w.records() {
			if e.Kind == control.KindIntent && e.Decision.Bundle == bundle && e.Decision.Why.Code == watch.CureStuck.ID {
				tries[e.At] = true
			}
			if e.Kind == control.KindOutcome && e.Outcome.Decision.Bundle == bundle && e.Outcome.Result == control.Unknown {
				held++
			}
		}
		if got := w.asked(bundle); len(got) > 1 || len(tries) != 1 {
			t.Fatalf("changed at point %d of %d: it is asked for at %v, %d intents\n%s", at, points, got, len(tries), w.dump())
		}
		w.run(100 * time.Second)
		if _, stuck := w.stuck[bundle]; stuck {
			t.Fatalf("changed at point %d of %d: it is still stuck after requests at %v\n%s", at, points, w.asked(bundle), w.dump())
		}
		w.stop()
	}
	t.Logf("%d points, %d requests of earlier leaders that were not seen to have an effect", points, held)
}
