package drive_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/simulate/drive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const halfHour = 30 * 60 * 1000 // ms

// hot is Ballast on a hot start.
func hot(t *testing.T, seed uint64, o drive.Options) *drive.Result {
	t.Helper()
	o.Manager = extensible.New(nil, nil, extensible.Options{})
	o.Limits = guard.Limits{BundleCoolDown: halfHour, FailureCoolDown: 60_000, LoadDataTTL: 180_000}
	r, err := drive.Run(t.Context(), simulate.HotStart(seed, simulate.Messages(1000, 5000), 0.8, simulate.HotTuned), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHotStart: in govern, on derived and on published load, Ballast makes every layout even within four acting cycles, and
// no bundle moves twice.
func TestHotStart(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		for _, derive := range []bool{true, false} {
			var o drive.Options
			if derive {
				d, err := load.NewDerived(load.DeriveRules{Weights: load.Weights{BandwidthIn: 1, BandwidthOut: 1}})
				if err != nil {
					t.Fatal(err)
				}
				o.Derived = d
			}
			r := hot(t, seed, o)
			if s := r.Scoreboard(); s.Reached < 0 || s.Needed > 4 || s.Repeats > 0 {
				t.Errorf("layout %d, derived %v:\n%s%s", seed, derive, r.Log(), s)
			}
		}
	}
}

// TestOnlyGovernMoves: in the other modes the cluster is left alone.
func TestOnlyGovernMoves(t *testing.T) {
	for _, mode := range []control.Mode{control.Observe, control.Advise} {
		r := hot(t, 1, drive.Options{Mode: mode})
		if s := r.Scoreboard(); s.Moves != 0 || s.Acting != 0 || len(r.Cycles) == 0 {
			t.Errorf("%s: %s", mode, s)
		}
	}
}

// TestObserveBesideTheBuiltIn: Ballast watches a cluster that balances itself.
func TestObserveBesideTheBuiltIn(t *testing.T) {
	r := hot(t, 1, drive.Options{Mode: control.Observe, BuiltIn: extensible.New(nil, nil, extensible.Options{})})
	planned := 0
	for _, cy := range r.Cycles {
		planned += len(cy.Plan.Decisions)
	}
	s := r.Scoreboard()
	if s.Moves == 0 || planned == 0 || s.Acting != 0 {
		t.Errorf("planned %d moves, saw:\n%s", planned, s)
	}
	for _, m := range r.Cluster.Moves() {
		if m.Cause != simulate.Shed {
			t.Errorf("%+v", m)
		}
	}
}

// TestRunsRepeat: the whole of Ballast beside a cluster with a failing broker and failing requests does the same twice.
func TestRunsRepeat(t *testing.T) {
	run := func() string {
		s := simulate.Scenario{Name: "demo", Config: simulate.DemoCluster(3), Settle: 3 * time.Minute, Duration: 10 * time.Minute}
		s.Changes = []simulate.Change{{After: 90 * time.Second, What: "faults", Do: func(c *simulate.Cluster) error {
			c.SetAdminFaults(simulate.AdminFaults{Ignore: 0.1, Fail: 0.1, Stray: 0.2})
			return c.Kill("pulsar-broker-2:8080")
		}}}
		r, err := drive.Run(t.Context(), s, drive.Options{Manager: extensible.New(nil, nil, extensible.Options{})})
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(r.Log(), r.Scoreboard(), r.Samples, r.Cluster.Moves())
	}
	if a, b := run(), run(); a != b {
		t.Errorf("first\n%s\nsecond\n%s", a, b)
	}
}
