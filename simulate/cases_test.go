package simulate

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// TestCases runs the reported cases with the strategies of Pulsar. Commands:
//
//	case NAME
//	run    STRATEGY [place=STRATEGY] [KEY=VALUE...]: the decision log, the scoreboard and max/mean over time
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
	place := "LeastLongTermMessageRate"
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		if key == "place" {
			place = value
			continue
		}
		var err error
		if s, err = s.With(key, value); err != nil {
			return nil, err
		}
	}
	m, kind, err := managerOf(words[0], place, s.Config.Settings)
	if err != nil {
		return nil, err
	}
	s.Config.Kind = kind
	return s.Run(m)
}

// managerOf makes a faithful load manager out of strategies.
func managerOf(shed, place string, set *settings.Settings) (plan.Manager, Kind, error) {
	if shed == "none" {
		return nil, Extensible, nil
	}
	r := plan.Registry{Shedders: modular.Shedders(modular.Options{}), Placers: modular.Placers(modular.Options{})}
	sh, err := r.Shedder(shed, modular.Name)
	if err != nil {
		return nil, 0, err
	}
	pl, err := r.Placer(place, modular.Name)
	if err != nil {
		return nil, 0, err
	}
	m, err := modular.New(sh.New(set), pl.New(set), modular.Options{})
	if err != nil {
		return nil, 0, fmt.Errorf("%s and %s: %w", shed, place, err)
	}
	return m, Modular, nil
}
