package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// TestCases runs the reported cases with the strategies of Pulsar. Commands:
//
//	case NAME
//	run    STRATEGY [place=STRATEGY] [KEY=VALUE...]: the decision log, the scoreboard and max/mean over time
//	       tuned stands for settings that suit TransferShedder, repaired for strategies without Pulsar's known faults
//	table  a line of those arguments for each run, after "=" the name of its row: the scoreboards side by side
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		var s Scenario
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			out, err := caseCommand(td, &s)
			if err != nil {
				td.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

func caseCommand(td *datadriven.TestData, s *Scenario) (string, error) {
	switch td.Cmd {
	case "case":
		named, err := CaseNamed(td.CmdArgs[0].Key)
		*s = named
		return s.Shows + "\n", err
	case "run":
		var words []string
		for _, a := range td.CmdArgs {
			words = append(words, a.String())
		}
		r, err := runCase(*s, words)
		if err != nil {
			return "", err
		}
		return r.Log() + r.Scoreboard().String() + r.Loads(r.Samples[len(r.Samples)-1]) + "\n" + Plot(r.Samples, 60, 6), nil
	case "table":
		var rows []Row
		for line := range strings.Lines(td.Input) {
			r, err := runCase(*s, strings.Fields(line))
			if err != nil {
				return "", err
			}
			rows = append(rows, Row{strings.TrimSpace(line), r.Scoreboard()})
		}
		return Table(rows), nil
	}
	return "", fmt.Errorf("no such command")
}

// runCase runs a scenario with a shedding strategy, and what else the words say.
func runCase(s Scenario, words []string) (*Run, error) {
	place, repaired := "LeastLongTermMessageRate", false
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		var err error
		switch key {
		case "place":
			place = value
		case "tuned":
			s = s.set(tuned)
		case "repaired":
			repaired = true
		default:
			if s, err = s.With(key, value); err != nil {
				return nil, err
			}
		}
	}
	m, kind, err := managerOf(words[0], place, repaired, s.Config.Settings)
	if err != nil {
		return nil, err
	}
	s.Config.Kind = kind
	return s.Run(m)
}

// tuned lets TransferShedder act at once, on fresh figures, until the load is even.
func tuned(x *settings.Settings) {
	x.LoadBalancerBrokerLoadTargetStd = 0.05
	x.LoadBalancerSheddingConditionHitCountThreshold = 0
	x.LoadBalanceSheddingDelayInSeconds = 120
	x.LoadBalancerHistoryResourcePercentage = 0
	x.LoadBalancerReportUpdateMaxIntervalMinutes = 1
}

// managerOf makes a load manager out of strategies, as Pulsar has them or repaired where they decide wrongly.
func managerOf(shed, place string, repaired bool, set *settings.Settings) (plan.Manager, Kind, error) {
	var xo extensible.Options
	var mo modular.Options
	if repaired {
		xo = extensible.Options{CountSwapGain: true, RankFreshLiveOnly: true, CheckSwapCandidates: true, TargetWithoutLoad: true,
			SkipInFlight: true, AvoidOverloaded: true, CountPending: true}
		mo = modular.Options{KeepPreallocations: true, SecondChoiceKeepsFilters: true, HistoryPerReport: true, CurrentUsageMustExceed: true,
			PlanByBundleName: true, SpareSingleBundles: true, OneSamplePerReport: true, AvoidOverloaded: true, CountPlanned: true, NeedReceiver: true}
	}
	switch shed {
	case "none":
		return nil, Extensible, nil
	case "TransferShedder":
		return extensible.New(nil, nil, xo), Extensible, nil
	}
	r := plan.Registry{Shedders: modular.Shedders(mo), Placers: modular.Placers(mo)}
	sh, err := r.Shedder(shed, modular.Name)
	if err != nil {
		return nil, 0, err
	}
	pl, err := r.Placer(place, modular.Name)
	if err != nil {
		return nil, 0, err
	}
	m, err := modular.New(sh.New(set), pl.New(set), mo)
	if err != nil {
		return nil, 0, fmt.Errorf("%s and %s: %w", shed, place, err)
	}
	return m, Modular, nil
}

// TestReportedCases holds what the strategies that get a case right must keep to.
func TestReportedCases(t *testing.T) {
	for _, x := range []struct {
		name, run string
		right     func(*Run, Scoreboard) bool
	}{
		// 40 points of load have to move; a fifth more is allowed.
		{"A1", "AvgShedder place=AvgShedder", func(_ *Run, s Scoreboard) bool { return s.Moved <= 1.2*0.4 && s.Repeats == 0 }},
		{"A1", "TransferShedder tuned repaired", func(_ *Run, s Scoreboard) bool { return s.Moved <= 1.2*0.4 && s.Repeats == 0 }},
		{"A2", "ThresholdShedder", func(_ *Run, s Scoreboard) bool { return s.Moves == 0 }},
		{"A2", "TransferShedder tuned repaired", func(_ *Run, s Scoreboard) bool { return s.Least > 0.5 && s.Repeats == 0 }},
		{"A3b", "TransferShedder tuned repaired", func(_ *Run, s Scoreboard) bool { return s.Least > 0.5 && s.Repeats == 0 }},
		{"A19", "ThresholdShedder", func(_ *Run, s Scoreboard) bool { return s.Moves == 0 }},
		{"A19", "TransferShedder", func(_ *Run, s Scoreboard) bool { return s.Moves == 0 }},
		{"A19", "AvgShedder place=AvgShedder", func(_ *Run, s Scoreboard) bool { return s.Moves == 0 }},
		{"A23", "TransferShedder", func(_ *Run, s Scoreboard) bool { return s.Moves == 0 }},
		{"A24", "TransferShedder tuned", func(r *Run, s Scoreboard) bool { return s.End <= 1.2 && r.mostGained() <= 0.25 }},
		{"A24", "AvgShedder place=AvgShedder", func(r *Run, s Scoreboard) bool { return s.End <= 1.2 && r.mostGained() <= 0.25 }},
	} {
		s, err := CaseNamed(x.name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := runCase(s, strings.Fields(x.run))
		if err != nil {
			t.Fatal(err)
		}
		if score := r.Scoreboard(); !x.right(r, score) {
			t.Errorf("%s, %s (one broker gained at most %.2f of all bundles in a cycle):\n%s%s", x.name, x.run, r.mostGained(), r.Log(), score)
		}
	}
}

// mostGained is the largest part of all bundles that one cycle of the balancer gave to one broker.
func (r *Run) mostGained() float64 {
	most := 0
	for _, l := range r.Cluster.Cycles() {
		gained := map[string]int{}
		for _, d := range l.Plan.Decisions {
			gained[d.Destination]++
			most = max(most, gained[d.Destination])
		}
	}
	return float64(most) / float64(len(r.Cluster.bundles))
}
