package drive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/simulate/drive"
	"github.com/ballast-lb/ballast/topics"
)

// TestBallast runs Ballast's loop, with TransferShedder on derived load, on the reported cases and on clusters with faults.
// Commands:
//
//	cases                all reported cases: the scoreboards
//	modular [FAULT] [manager=modular]
//	                     the hot start on a Modular cluster, with TransferShedder or the cluster's own strategies, with a
//	                     fault: what every cycle did, where unloaded bundles ended
//	demo [FAULT]         the demonstration for ten minutes, with a fault from a minute before the first cycle on: what
//	                     every cycle did
func TestBallast(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "cases":
				return reported(t)
			case "demo":
				return demo(t, td)
			case "modular":
				return onModular(t, td)
			}
			td.Fatalf(t, "no such command")
			return ""
		})
	})
}

// options are Ballast as it might run in production: TransferShedder without Pulsar's known faults, on load of its own
// reckoning, behind a guard that lets a bundle rest.
func options(t *testing.T, weights load.Weights) drive.Options {
	d, err := load.NewDerived(load.DeriveRules{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	return drive.Options{
		Derived: d,
		Manager: extensible.New(nil, nil, extensible.Options{CountSwapGain: true, RankFreshLiveOnly: true, CheckSwapCandidates: true,
			TargetWithoutLoad: true, SkipInFlight: true}),
		Limits: guard.Limits{BundleCoolDown: halfHour, FailureCoolDown: 120_000, LoadDataTTL: 180_000},
	}
}

func reported(t *testing.T) string {
	var rows []simulate.Row
	for _, s := range simulate.Cases() {
		set := *s.Config.Settings
		set.LoadBalancerBrokerLoadTargetStd = 0.05
		set.LoadBalanceSheddingDelayInSeconds = 120
		set.LoadBalancerReportUpdateMaxIntervalMinutes = 1
		s.Config.Settings = &set
		r, err := drive.Run(t.Context(), s, options(t, load.WeightsOf(&set)))
		if err != nil {
			t.Fatal(err)
		}
		rested(t, r)
		rows = append(rows, simulate.Row{Name: s.Name, Score: r.Scoreboard()})
	}
	return simulate.Table(rows)
}

// rested checks that no bundle was moved twice within half an hour.
func rested(t *testing.T, r *drive.Result) {
	last := map[string]int64{}
	for _, m := range r.Cluster.Moves() {
		if m.Cause != simulate.Asked {
			continue
		}
		if before, again := last[m.Bundle]; again && m.At-before < halfHour {
			t.Errorf("%s: %s moved again after %d ms", r.Scenario.Name, m.Bundle, m.At-before)
		}
		last[m.Bundle] = m.At
	}
}

// faults are what goes wrong, by name.
var faults = map[string]func(*simulate.Cluster) error{
	"killed": func(c *simulate.Cluster) error { return c.Kill("pulsar-broker-3:8080") },
	"frozen": func(c *simulate.Cluster) error { return c.Freeze("pulsar-broker-3:8080") },
	"leader": func(c *simulate.Cluster) error { return c.Kill("pulsar-broker-0:8080") },
	"mute":   func(c *simulate.Cluster) error { return c.Mute("pulsar-broker-5:8080", true) },
	"clock":  func(c *simulate.Cluster) error { return c.Skew("pulsar-broker-5:8080", -time.Hour) },
	"garbage": func(c *simulate.Cluster) error {
		return c.Corrupt("pulsar-broker-5:8080", topics.BrokerLoadData, []byte("{garbage"))
	},
	"nan": func(c *simulate.Cluster) error {
		return c.Corrupt("pulsar-broker-5:8080", topics.BrokerLoadData, []byte(`{"cpu":{"usage":"NaN","limit":400.0},"weightedMaxEMA":"NaN"}`))
	},
	"huge": func(c *simulate.Cluster) error {
		return c.Corrupt("pulsar-broker-5:8080", topics.BrokerLoadData, []byte(`{"pad":"`+strings.Repeat("x", 4<<20)+`"}`))
	},
	"silent":  func(c *simulate.Cluster) error { c.Silence(topics.BrokerLoadData, time.Hour); return nil },
	"channel": func(c *simulate.Cluster) error { c.Silence(topics.ServiceUnitState, 3*time.Minute); return nil },
	"ignored": func(c *simulate.Cluster) error { c.SetAdminFaults(simulate.AdminFaults{Ignore: 0.5}); return nil },
	"failing": func(c *simulate.Cluster) error { c.SetAdminFaults(simulate.AdminFaults{Fail: 0.5}); return nil },
	"hanging": func(c *simulate.Cluster) error { c.SetAdminFaults(simulate.AdminFaults{Hang: 0.2}); return nil },
	"down":    func(c *simulate.Cluster) error { c.SetAdminFaults(simulate.AdminFaults{Down: true}); return nil },
}

func demo(t *testing.T, td *datadriven.TestData) string {
	cfg := simulate.DemoCluster(1)
	set := *cfg.Settings
	cfg.Settings = &set
	s := simulate.Scenario{Name: "demo", Config: cfg, Settle: 3 * time.Minute, Duration: 10 * time.Minute}
	for _, a := range td.CmdArgs {
		fault, ok := faults[a.Key]
		if !ok {
			td.Fatalf(t, "no such fault: %s", a.Key)
		}
		s.Changes = append(s.Changes, simulate.Change{After: -time.Minute, What: a.Key, Do: fault})
	}
	r, err := drive.Run(t.Context(), s, options(t, load.WeightsOf(settings.Defaults())))
	out := r.Log() + r.Scoreboard().String()
	if err != nil {
		out += fmt.Sprintf("ended with: %v\n", err)
	}
	return out
}

func onModular(t *testing.T, td *datadriven.TestData) string {
	s := simulate.HotStart(1, simulate.Messages(1000, 5000), 0.8, simulate.HotTuned)
	s.Config.Kind = simulate.Modular
	s.Config.Settings.MinUnloadMessage = 10
	o := options(t, load.WeightsOf(s.Config.Settings))
	for _, a := range td.CmdArgs {
		switch fault, ok := modularFaults[a.Key]; {
		case a.Key == "manager":
			m, err := modular.New(modular.UniformLoadShedder{}, modular.LeastResourceUsageWithWeight{}, modular.Options{CountPlanned: true})
			if err != nil {
				t.Fatal(err)
			}
			o.Manager = m
		case ok:
			s.Changes = append(s.Changes, simulate.Change{After: -30 * time.Second, What: a.Key, Do: fault})
		default:
			td.Fatalf(t, "no such fault: %s", a.Key)
		}
	}
	r, err := drive.Run(t.Context(), s, o)
	out := r.Log() + r.Scoreboard().String()
	asked, moved := 0, 0
	for _, cy := range r.Cycles {
		for _, x := range cy.Outcomes {
			asked += x.Attempts
			if x.Result == control.Done {
				moved++
			}
		}
	}
	out += fmt.Sprintf("%d bundles where they should be after %d requests\n", moved, asked)
	if err != nil {
		out += fmt.Sprintf("ended with: %v\n", err)
	}
	return out
}

// modularFaults are what goes wrong on a Modular cluster, by name.
var modularFaults = map[string]func(*simulate.Cluster) error{
	"stray":  func(c *simulate.Cluster) error { c.SetAdminFaults(simulate.AdminFaults{Stray: 0.5}); return nil },
	"frozen": func(c *simulate.Cluster) error { return c.Freeze("broker-3:8080") },
	"killed": func(c *simulate.Cluster) error { return c.Kill("broker-3:8080") },
}
