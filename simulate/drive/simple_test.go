package drive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/simulate/drive"
	"github.com/ballast-lb/ballast/strategies"
)

// hotSimple is the hot start on a Simple cluster whose hot broker uses a part of its bandwidth, with what Ballast chooses when
// nobody names a strategy.
func hotSimple(t *testing.T, seed uint64, hot float64, tune func(*settings.Settings)) (*drive.Result, float64) {
	t.Helper()
	s := simulate.HotStart(seed, simulate.Messages(1000, 5000), hot, tune)
	s.Config.Kind, s.Duration = simulate.Simple, 40*time.Minute
	layered, err := settings.Resolve("4.2.4", settings.ClusterLayer("cluster", map[string]string{"loadManagerClassName": simple.Class}))
	if err != nil {
		t.Fatal(err)
	}
	m, choice, err := strategies.For(layered, simple.Class)
	if _, own := m.(*simple.Manager); !own || err != nil || choice.Manager != simple.Name || choice.Shedder != "" {
		t.Fatalf("on a Simple cluster %T is chosen, %+v, %v", m, choice, err)
	}
	planning := *s.Config.Settings
	s.Config.Settings.LoadBalancerSheddingEnabled = false // the cluster's own: it only places
	o := drive.Options{Manager: m, BuiltIn: &simple.Manager{}, Settings: &planning, Explain: true}
	o.Limits.BundlesPerCycle, o.Limits.BundleCoolDown, o.Limits.FailureCoolDown, o.Limits.LoadDataTTL = 10, 600_000, 600_000, 1_800_000
	r, err := drive.Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	return r, r.Scoreboard().End
}

// On a Simple cluster Ballast sheds by Simple's own rules when nobody names a strategy. They know no evenness, only a threshold:
// one bundle a cycle leaves each broker above it, the heaviest one, while some broker is below the comfort level. So with the
// shipped thresholds a hot broker ends just below 85 %, and with thresholds near the mean the cluster becomes even.
func TestSimpleShedsByItsOwnRules(t *testing.T) {
	for _, tc := range []struct {
		name     string
		hot      float64 // usage of the hot broker: the mean is a third of it
		tune     func(*settings.Settings)
		limit    float64 // percent that no broker uses more of in the end
		evenness float64 // max/mean of the throughput in the end, at most
		acts     bool
	}{
		{"shipped", 0.99, nil, 85, 3, true},
		{"shipped, below the threshold", 0.84, nil, 85, 3.01, false},
		{"near the mean", 0.9, func(set *settings.Settings) {
			set.LoadBalancerBrokerOverloadedThresholdPercentage, set.LoadBalancerBrokerComfortLoadLevelPercentage = 36, 33
		}, 36, 1.25, true},
	} {
		for seed := uint64(1); seed <= 3; seed++ {
			t.Run(fmt.Sprintf("%s, layout %d", tc.name, seed), func(t *testing.T) {
				r, even := hotSimple(t, seed, tc.hot, tc.tune)
				board := r.Scoreboard()
				last := r.Cycles[len(r.Cycles)-1]
				t.Logf("max/mean %.2f, %d acting cycles, %d moves", even, board.Acting, board.Moves)
				if even > tc.evenness || (board.Acting > 0) != tc.acts {
					t.Errorf("max/mean is %.2f after %d acting cycles, want at most %v\n%s", even, board.Acting, tc.evenness, r.Log())
				}
				if board.Repeats > 0 {
					t.Errorf("%d bundles moved twice", board.Repeats)
				}
				for i := range last.Snapshot.Brokers {
					b := &last.Snapshot.Brokers[i]
					u := b.Report.SystemResourceUsage
					if used := u.BandwidthIn.PercentUsage(); float64(used) > tc.limit {
						t.Errorf("%s uses %.1f %% in the end: %s", b.ID, used, last.Plan.Outcome)
					}
					if used := u.BandwidthOut.PercentUsage(); float64(used) > tc.limit {
						t.Errorf("%s uses %.1f %% in the end: %s", b.ID, used, last.Plan.Outcome)
					}
				}
				if last.Plan.Outcome.Code != simple.NoneOverloaded.ID {
					t.Errorf("the last cycle: %s", last.Plan.Outcome)
				}
				for _, cy := range r.Cycles {
					checkSimple(t, cy)
				}
			})
		}
	}
}

// checkSimple holds a cycle against Simple's rules.
func checkSimple(t *testing.T, cy *control.Cycle) {
	t.Helper()
	from := map[string]int{}
	for _, d := range cy.Plan.Decisions {
		if from[d.Source]++; d.Action != plan.Unload || d.Destination != "" || d.Why.Code != simple.Overloaded.ID || from[d.Source] > 1 {
			t.Errorf("cycle %d planned %+v", cy.N, d)
		}
	}
	if n := len(cy.Plan.Decisions); n > 0 {
		advice := cy.Plan.Advice[len(cy.Plan.Advice)-1].Why
		if advice.Code != control.DestinationIgnored.ID || !strings.Contains(advice.Text, "where they go cannot be promised") {
			t.Errorf("cycle %d promises %s", cy.N, advice)
		}
	}
	for _, out := range cy.Outcomes {
		if out.Result != control.Done || out.Owner == "" || out.Owner == out.Decision.Source {
			t.Errorf("cycle %d: %s is at %q: %s (%s)", cy.N, out.Decision.Bundle, out.Owner, out.Result, out.Why)
		}
	}
}
