package control_test

import (
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
)

// What the cluster's own TransferShedder does is found to be what TransferShedder says, and each move is explained. What an
// operator moves is not.
func TestObserveExplainsTheClustersOwnMoves(t *testing.T) {
	config := simulate.DemoCluster(1)
	own := extensible.New(&extensible.TransferShedder{}, extensible.LeastResourceUsageWithWeight{}, extensible.Options{})
	config.Manager = own
	cl, err := simulate.New(config)
	if err != nil {
		t.Fatal(err)
	}
	cl.Hold(true)
	e, err := simulate.NewEmbedded(t.Context(), cl, simulate.EmbeddedOptions{SelfDriven: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	runtime, err := e.RuntimeConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	layered, err := settings.Resolve("4.2.4", settings.ClusterLayer("cluster", runtime))
	if err != nil {
		t.Fatal(err)
	}
	views := control.NewViews(control.ViewOptions{Cluster: e, Log: e.Log(), Settings: layered.Settings, Version: "4.2.4", Stepwise: true, Logger: quiet})
	if err := views.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer views.Close()
	manager := extensible.New(&extensible.TransferShedder{}, extensible.LeastResourceUsageWithWeight{}, extensible.Options{})
	c := control.New(control.Options{Mode: control.Observe, Manager: manager, Viewer: views, Clock: e, Limits: guard.Limits{}, Logger: quiet,
		Observer: control.NewObserver(views, manager)})
	step := func() *control.Cycle {
		t.Helper()
		for range 60 { // read often, as a program does whose views are fed all the time
			if err := e.Sleep(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
			if err := views.CatchUp(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		cy, err := c.Step(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return cy
	}
	step()
	step()
	if err := e.With(t.Context(), func(cl *simulate.Cluster) { cl.Hold(false) }); err != nil {
		t.Fatal(err)
	}
	explained := 0
	var last *control.Cycle
	for range 12 {
		last = step()
		if last.Observed == nil {
			continue
		}
		for _, m := range last.Observed.Moves {
			explained++
			if m.Why.Text == "" {
				t.Errorf("the move of %s is not explained", m.Move.Bundle)
			}
		}
	}
	score := last.Agreement
	t.Logf("%+v", *score)
	if score.Moves < 20 || score.Moves != explained {
		t.Fatalf("%d moves observed, %d explained: want the same number, and many", score.Moves, explained)
	}
	if score.Percent < 90 {
		t.Errorf("agreement %.0f %%: the cluster runs the same strategy on the same data, want 90 or more", score.Percent)
	}

	if err := e.With(t.Context(), func(cl *simulate.Cluster) { cl.Hold(true) }); err != nil {
		t.Fatal(err)
	}
	step()
	snap := step().Snapshot
	idle := snap.Bundles[0]
	to := snap.Brokers[0].ID
	if to == idle.Owner {
		to = snap.Brokers[1].ID
	}
	if err := e.Unload(t.Context(), idle.Name, to); err != nil {
		t.Fatal(err)
	}
	cy := step()
	if cy.Observed == nil || len(cy.Observed.Moves) != 1 || cy.Observed.Moves[0].Verdict == extensible.Same {
		t.Errorf("an operator's move was taken for the balancer's: %+v", cy.Observed)
	}
}
