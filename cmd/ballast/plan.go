package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/advise"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
)

func newPlan(a *app) *cobra.Command {
	var output string
	var estimate bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Make one plan and explain it; change nothing",
		Long: `Follows the cluster until every registered broker was heard, plans one cycle and prints the moves with their reasons, what
was left out and why. The plan assumes that the present state has lasted for as long as the strategy's hit count asks.
A steady broker reports only every loadBalancerReportUpdateMaxIntervalMinutes: --estimate fills in from its metrics meanwhile.

Exit code: 0 there is nothing to do, 2 there is a plan, 1 an error, or nothing can be decided: not every broker was heard, for
example. On Simple and Modular clusters a broker whose load report cannot be had is named, and the others are planned for.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cy, err := a.planOnce(cmd.Context(), estimate, wait)
			if err != nil {
				return err
			}
			advised := advisedCycle{Cycle: cy, Advice: slices.Concat(cy.Plan.Advice, advise.All(cy.Snapshot))}
			if output == "table" {
				printPlan(a.stdout, cy)
				printLeftOut(a.stdout, "Advice", advised.Advice)
			} else if err := a.encode(output, advised); err != nil {
				return err
			}
			switch {
			case len(cy.Frozen) > 0:
				return exitCode(exitError)
			case len(cy.Verdict.Run) > 0:
				return exitCode(exitPlanned)
			}
			return nil
		},
		PreRunE: func(*cobra.Command, []string) error { return checkOutput(output) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	cmd.Flags().BoolVar(&estimate, "estimate", false, "fill in brokers that were not heard from their metrics, marked as estimated")
	cmd.Flags().DurationVar(&wait, "wait", 20*time.Second, "how long to wait for brokers to be heard")
	return cmd
}

// advisedCycle is a cycle with what an operator should know besides.
type advisedCycle struct {
	*control.Cycle
	Advice []plan.LeftOut `json:"advice,omitempty"`
}

func checkOutput(output string) error {
	switch output {
	case "table", "json", "yaml":
		return nil
	}
	return fmt.Errorf("--output is %q: it must be table, json or yaml", output)
}

// planOnce follows the cluster until it can plan, or until the wait is over, and makes one cycle.
func (a *app) planOnce(ctx context.Context, estimate bool, wait time.Duration) (*control.Cycle, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	views, stop, err := s.follow(ctx, false)
	if err != nil {
		return nil, err
	}
	defer stop()
	if err := s.settle(ctx, views, wait); err != nil {
		return nil, err
	}
	if v, ok := views.(*control.Views); ok && estimate {
		v.Estimate(true)
	}
	manager, _, err := s.manager()
	if err != nil {
		return nil, err
	}
	c := control.New(s.options(views, control.Advise, s.engine(manager, nil)))
	most := int(s.settings.Settings.LoadBalancerSheddingConditionHitCountThreshold) + 1
	cy, _, err := c.Assume(ctx, max(most, 1))
	return cy, err
}

// printPlan prints a cycle for people.
func printPlan(w io.Writer, cy *control.Cycle) {
	if len(cy.Frozen) == 0 {
		printLoads(w, cy)
	}
	printVerdict(w, cy)
}

// printVerdict prints what a cycle plans and leaves out, and why.
func printVerdict(w io.Writer, cy *control.Cycle) {
	if len(cy.Frozen) > 0 {
		fmt.Fprintln(w, "Nothing can be decided:")
		for _, why := range cy.Frozen {
			fmt.Fprintf(w, "  %s: %s\n", why.Code, why)
		}
		return
	}
	fmt.Fprintf(w, "%s: %s\n", cy.Plan.Strategy, outcome(cy.Plan))
	if len(cy.Plan.Decisions) > 0 {
		fmt.Fprintln(w)
		printDecisions(w, cy)
	}
	printLeftOut(w, "Left out", cy.LeftOut)
}

// printLeftOut prints a list under a title, nothing when it is empty.
func printLeftOut(w io.Writer, title string, list []plan.LeftOut) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s:\n", title)
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, l := range list {
		fmt.Fprintf(t, "  %s\t%s\t%s\n", subject(l), l.Why.Code, l.Why)
	}
	t.Flush()
}

func outcome(p plan.Plan) string {
	if text := p.Outcome.String(); text != "" {
		return text
	}
	if len(p.Decisions) == 0 {
		return "nothing to do"
	}
	return fmt.Sprintf("%d decisions", len(p.Decisions))
}

func printLoads(w io.Writer, cy *control.Cycle) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "BROKER\tLOAD %\tMB/S\tMSG/S\tBUNDLES\tHEARD")
	for i := range cy.Snapshot.Brokers {
		b := &cy.Snapshot.Brokers[i]
		if b.Load == nil {
			fmt.Fprintf(t, "%s\t\t\t\t\tnever\n", b.ID)
			continue
		}
		heard := fmt.Sprintf("%.0f s ago", float64(cy.At-b.LoadHeard)/1000)
		if b.Estimated {
			heard = "estimated"
		}
		fmt.Fprintf(t, "%s\t%.1f\t%.3f\t%.0f\t%d\t%s\n", b.ID, b.Load.WeightedMaxEMA*100,
			(b.Load.MsgThroughputIn+b.Load.MsgThroughputOut)/1e6, b.Load.MsgRateIn+b.Load.MsgRateOut, b.Load.BundleCount, heard)
	}
	t.Flush()
	fmt.Fprintln(w)
}

func printDecisions(w io.Writer, cy *control.Cycle) {
	refused := map[string]plan.Reason{}
	for _, r := range cy.Verdict.Refused {
		refused[r.Decision.Bundle] = r.Why
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "ACTION\tBUNDLE\tFROM\tTO\tMB/S\tTOPICS\tWHY")
	for _, d := range cy.Plan.Decisions {
		why := d.Why.String()
		if r, no := refused[d.Bundle]; no {
			why = "HELD BACK: " + r.String()
		}
		to := d.Destination
		if to == "" {
			to = "(the cluster chooses)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.3f\t%d\t%s\n", d.Action, d.Bundle, d.Source, to, d.Throughput/1e6, d.Topics, why)
	}
	t.Flush()
}

// subject is what a left-out entry is about.
func subject(l plan.LeftOut) string {
	var parts []string
	for _, part := range []string{l.Bundle, l.Broker, l.Other} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " -> ")
}
