package control_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
	"github.com/ballast-lb/ballast/simulate"
)

// What Modular and Simple clusters move by themselves is seen in their reports, compared with the plan of their own strategies
// on the same data, and explained. What an operator moves is not taken for theirs.
func TestObserveExplainsReportedMoves(t *testing.T) {
	threshold := func() plan.Manager {
		m, err := modular.New(modular.ThresholdShedder{}, modular.LeastResourceUsageWithWeight{}, modular.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, tc := range []struct {
		name    string
		kind    simulate.Kind
		manager func() plan.Manager
		moves   int     // at least so many
		percent float64 // at least so much agreement
	}{
		{"Modular", simulate.Modular, threshold, 3, 75},
		{"Simple", simulate.Simple, func() plan.Manager { return &simple.Manager{} }, 3, 75},
	} {
		t.Run(tc.name, func(t *testing.T) {
			brokers := []string{"broker-1:8080", "broker-2:8080", "broker-3:8080"}
			r := modularCluster(t, func(cfg *simulate.Config) {
				*cfg = simulate.HotStart(1, simulate.Messages(1000, 5000), 0.95, func(set *settings.Settings) {
					set.LoadBalancerBundleUnloadMinThroughputThreshold = 0
					set.StatsUpdateFrequencyInSecs = 15
					set.LoadBalancerSheddingEnabled = false
					set.LoadBalancerBrokerOverloadedThresholdPercentage, set.LoadBalancerBrokerComfortLoadLevelPercentage = 50, 40
				}).Config
				cfg.Kind, cfg.Manager, cfg.System = tc.kind, tc.manager(), -1
			})
			sheds := func(value string) {
				t.Helper()
				if err := r.SetDynamicConfig(t.Context(), "loadBalancerSheddingEnabled", value); err != nil {
					t.Fatal(err)
				}
			}
			planning := *r.settings()
			planning.LoadBalancerSheddingEnabled = true
			v, m := r.views(nil, func(o *control.ReportOptions) { o.Settings = &planning }), tc.manager()
			loop := control.New(control.Options{Mode: control.Observe, Manager: control.OnReports(m, control.EngineOptions{Destinations: control.Ignored, Attempts: 3}),
				Viewer: v, Clock: r, Logger: quiet, Observer: control.NewLookObserver(control.Explaining{Manager: m})})
			step := func() *control.Cycle {
				t.Helper()
				for range 12 {
					r.pass(5 * time.Second)
					r.report(brokers...)
				}
				cy, err := loop.Step(t.Context())
				if err != nil || len(cy.Frozen) > 0 {
					t.Fatal(err, cy.Frozen)
				}
				return cy
			}
			made := func() (n int) {
				t.Helper()
				if err := r.With(t.Context(), func(cl *simulate.Cluster) {
					for _, m := range cl.Moves() {
						if m.Cause == simulate.Shed && m.From != m.To {
							n++
						}
					}
				}); err != nil {
					t.Fatal(err)
				}
				return n
			}
			step()
			step()
			begun := made()
			sheds("true")
			var all []extensible.Explained
			var last *control.Cycle
			take := func(cycles int) {
				t.Helper()
				for range cycles {
					if last = step(); last.Observed != nil {
						all = append(all, last.Observed.Moves...)
					}
				}
			}
			take(8)
			sheds("false")
			take(3)
			t.Logf("%+v", *last.Agreement)
			for _, m := range all {
				if m.Why.Text == "" {
					t.Errorf("the move of %s is not explained", m.Move.Bundle)
				}
				if m.Verdict != extensible.Same {
					t.Logf("%s %s -> %s: %s, %s", m.Move.Bundle, m.Move.Source, m.Move.Destination, m.Verdict, m.Why)
				}
			}
			if n := made() - begun; n < tc.moves || len(all) != n || last.Agreement.Moves != n {
				t.Fatalf("the cluster made %d moves, %d were seen, %d are in the score", n, len(all), last.Agreement.Moves)
			}
			if last.Agreement.Percent < tc.percent {
				t.Errorf("agreement %.0f %%: the cluster runs the same strategy on the same data", last.Agreement.Percent)
			}

			i := slices.IndexFunc(last.Snapshot.Bundles, func(b cluster.Bundle) bool { return b.Owner == brokers[1] })
			bundle := last.Snapshot.Bundles[i].Name
			moved := false
			for i := 0; i < 30 && !moved; i++ {
				if err := r.Unload(t.Context(), bundle, brokers[2]); err != nil {
					t.Fatal(err)
				}
				r.pass(time.Second)
				o, err := v.Owner(t.Context(), bundle)
				if err != nil {
					t.Fatal(err)
				}
				moved = o.Owner != "" && o.Owner != brokers[1]
			}
			if !moved && tc.kind == simulate.Modular { // Simple places where it likes
				t.Fatalf("%s does not leave %s", bundle, brokers[1])
			}
			all = nil
			take(3)
			if moved && (len(all) != 1 || all[0].Move.Bundle != bundle || all[0].Move.Source != brokers[1] || all[0].Verdict == extensible.Same) {
				t.Errorf("an operator's move: %+v", all)
			}

			if err := r.With(t.Context(), func(cl *simulate.Cluster) {
				if err := cl.Kill(brokers[2]); err != nil {
					t.Error(err)
				}
			}); err != nil {
				t.Fatal(err)
			}
			brokers, all = brokers[:2], nil
			take(3)
			if len(all) > 0 {
				t.Errorf("the bundles of a dead broker were taken for moves: %+v", all)
			}
		})
	}
}

// still is a cluster that is what a test says.
type still struct {
	control.Viewer
	snap *cluster.Snapshot
}

func (s *still) Look(_ context.Context, now time.Time) (*control.Look, error) {
	s.snap.Now = now.UnixMilli()
	out := *s.snap
	out.Bundles = slices.Clone(out.Bundles)
	return &control.Look{Snapshot: out.Index()}, nil
}

// A bundle that nobody serves for a while has moved when it is served again; one that nobody wanted for long has not.
func TestObserveForgetsWhatNobodyServes(t *testing.T) {
	for _, tc := range []struct {
		idle  time.Duration
		moves int
	}{{0, 1}, {2 * time.Minute, 1}, {9 * time.Minute, 1}, {12 * time.Minute, 0}} {
		clock := &testClock{now: time.Unix(1000, 0)}
		s := &still{snap: &cluster.Snapshot{Settings: settings.Defaults(), Brokers: []cluster.Broker{{ID: a}, {ID: b}},
			Bundles: []cluster.Bundle{{Name: ns + "/0x00000000_0x80000000", Namespace: ns, Owner: a}, {Name: ns + "/0x80000000_0xffffffff", Namespace: ns, Owner: b}}}}
		loop := control.New(control.Options{Mode: control.Observe, Manager: script{}, Viewer: s, Clock: clock, Logger: quiet,
			Observer: control.NewLookObserver(control.Explaining{Manager: script{}})})
		moves := 0
		pass := func(d time.Duration) {
			for end := clock.now.Add(d); clock.now.Before(end); {
				clock.now = clock.now.Add(30 * time.Second)
				cy, err := loop.Step(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if cy.Observed != nil {
					moves += len(cy.Observed.Moves)
				}
			}
		}
		pass(2 * time.Minute)
		s.snap.Bundles[0].Owner = ""
		pass(tc.idle)
		s.snap.Bundles[0].Owner = b
		pass(5 * time.Minute)
		if moves != tc.moves {
			t.Errorf("not served for %v: %d moves, want %d", tc.idle, moves, tc.moves)
		}
	}
}
