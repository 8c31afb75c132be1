package control_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
	"github.com/ballast-lb/ballast/watch"
)

// write puts a record on the ownership topic, as somebody does who is no broker.
func (w *world) write(t *testing.T, bundle string, d event.ServiceUnitStateData) {
	t.Helper()
	pub, err := w.Log().Publisher(t.Context(), topics.ServiceUnitState, topics.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	d.Timestamp = w.Now().UnixMilli()
	payload, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pub.Publish(t.Context(), bundle, payload); err != nil {
		t.Fatal(err)
	}
}

// look lets time pass and looks.
func (w *world) look(t *testing.T, s *control.Sentry, after time.Duration) []watch.Anomaly {
	t.Helper()
	if err := w.Sleep(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	look, err := w.views.Look(t.Context(), w.Now())
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.Look(t.Context(), w.Now(), look.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// mending is a cluster whose brokers give a stuck bundle to b when they are asked to unload it.
type mending struct {
	control.Cluster
	mend  func(bundle string)
	asked []string
}

func (m *mending) Unload(_ context.Context, bundle, _ string) error {
	m.asked = append(m.asked, bundle)
	m.mend(bundle)
	return nil
}

// A bundle is set on its way by a record of somebody who is no broker, with a gap, and nobody takes it on. The sentry says
// so; once the cluster's leader has had its time it is cured, once.
func TestStuckBundleIsSeenAndCured(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Govern, script{}, false)
	bundle := w.bundles(t)[0]
	facts := func(context.Context, []string) (*watch.Topic, error) { return nil, nil }
	// The simulated leader mends it within a minute: what counts as long is shorter here.
	s := control.NewSentry(w.views, watch.Limits{InFlight: 1000, Monitor: 4000}, facts)
	if list := w.look(t, s, time.Second); len(list) > 0 {
		t.Fatalf("before anything happened: %v", watch.Codes(list))
	}
	w.write(t, bundle, event.ServiceUnitStateData{State: event.Splitting, SourceBroker: "gone:8080", VersionID: 9})
	if got := watch.Codes(w.look(t, s, time.Second)); !slices.Equal(got, []string{"VERSION_GAP"}) {
		t.Errorf("after the record: %v", got)
	}
	w.write(t, bundle, event.ServiceUnitStateData{State: event.Releasing, SourceBroker: "gone:8080", DstBroker: "gone:8081", VersionID: 19})

	m := &mending{Cluster: e, mend: func(bundle string) {
		w.write(t, bundle, event.ServiceUnitStateData{State: event.Owned, DstBroker: b, VersionID: 20, Force: true})
	}}
	exec := control.ExecLimits{Request: time.Second, Verify: 5 * time.Second, Poll: 50 * time.Millisecond}
	curer := control.NewCurer(s, m, w.views, e, exec, watch.DefaultCureLimits, quiet)
	var st watch.CureState
	cycle := func(frozen ...plan.Reason) (ds []plan.Decision) {
		look, err := w.views.Look(t.Context(), w.Now())
		if err != nil {
			t.Fatal(err)
		}
		ds, _, st = curer.Decisions(t.Context(), &control.Cycle{Snapshot: look.Snapshot, Frozen: frozen}, st, nil)
		return ds
	}
	if list := w.look(t, s, 2*time.Second); !slices.Contains(watch.Codes(list), "BUNDLE_IN_FLIGHT") {
		t.Fatalf("after 2 s: %v", watch.Codes(list))
	}
	if ds := cycle(); len(ds) > 0 {
		t.Errorf("cured before the leader had its time: %v", ds)
	}
	if err := e.Sleep(t.Context(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if ds := cycle(control.NotHeard.Because()); len(ds) > 0 {
		t.Errorf("cured on a picture that is not to be believed: %v", ds)
	}
	ds := cycle()
	if len(ds) != 1 || ds[0].Bundle != bundle || ds[0].Action != plan.Unload || ds[0].Why.Code != watch.CureStuck.ID {
		t.Fatalf("cures are %+v", ds)
	}
	if again := cycle(); len(again) > 0 {
		t.Errorf("cured twice in a row: %v", again)
	}
	next := control.NewExecutor(e, w.views, e, exec)
	out := curer.Actor(next).Run(t.Context(), ds[0])
	if out.Result != control.Done || out.Owner != b || !slices.Equal(m.asked, []string{bundle}) || out.Decision.Bundle != bundle {
		t.Errorf("outcome is %+v after requests %v", out, m.asked)
	}
	if out := curer.Actor(next).Run(t.Context(), ds[0]); out.Result != control.Skipped || !strings.Contains(out.Why, "moved on by itself") {
		t.Errorf("a bundle that is not stuck any more: %+v", out)
	}
	other := transfer(w.bundles(t)[1], a, b)
	if out := curer.Actor(next).Run(t.Context(), other); out.Result != control.Done || out.Owner != b {
		t.Errorf("an ordinary move beside cures: %+v", out)
	}
}

// A cure that the cluster refuses says so.
func TestCureThatFailsSaysWhy(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Govern, script{}, false)
	bundle := w.bundles(t)[0]
	w.write(t, bundle, event.ServiceUnitStateData{State: event.Splitting, SourceBroker: "gone:8080", VersionID: 9})
	w.look(t, control.NewSentry(w.views, watch.DefaultLimits, nil), 0)
	var none *control.Curer
	if ds, _, _ := none.Decisions(t.Context(), &control.Cycle{}, watch.CureState{}, nil); ds != nil {
		t.Errorf("no curer decides %v", ds)
	}
	exec := control.ExecLimits{Request: time.Second, Verify: time.Second, Poll: 50 * time.Millisecond}
	if next := control.NewExecutor(e, w.views, e, exec); none.Actor(next) != control.Actor(next) {
		t.Error("no curer changes the actor")
	}
	curer := control.NewCurer(control.NewSentry(w.views, watch.DefaultLimits, nil), e, w.views, e, exec, watch.DefaultCureLimits, quiet)
	out := curer.Actor(nil).Run(t.Context(), plan.Decision{Action: plan.Unload, Bundle: bundle, Why: watch.CureStuck.Because()})
	if out.Result == control.Done || !strings.Contains(out.Why, "Splitting") || out.Attempts != 1 {
		t.Errorf("outcome is %+v", out)
	}
}
