package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/whatif"
)

func newWhatif(a *app) *cobra.Command {
	var output, traffic string
	var s whatif.Scenario
	var seed uint64
	cmd := &cobra.Command{
		Use:   "whatif",
		Short: "Say what the cluster would look like with brokers lost or added, or with other traffic",
		Long: `Takes the cluster as it is and projects it: brokers that are lost (their bundles are placed by the cluster's own placement),
empty brokers that are added, traffic that is multiplied. It says what each broker would have, how much traffic may grow, what
the loss of each single broker would do, and what the strategy would plan. A broker's usage is taken to be caused by the
traffic of its bundles. Without any assumption it says how much room there is now.

It changes nothing. Exit code: 0, or 1 for an error.`,
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := flagGiven(cmd, "lose", aBroker); err != nil {
				return err
			}
			if s.Traffic, err = parseFactor(traffic); err != nil {
				return err
			}
			return checkOutput(output)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := a.live(cmd.Context())
			if err != nil {
				return err
			}
			defer l.end()
			for _, why := range l.look.Frozen {
				l.logger.Warn("what is projected may be wrong", "code", why.Code, "why", why.String())
			}
			if err := l.statistics(cmd.Context()); err != nil {
				return err
			}
			for i := range s.Lose {
				if s.Lose[i], err = l.broker("--lose", s.Lose[i]); err != nil {
					return err
				}
			}
			if err := whatif.Check(l.look.Snapshot, s); err != nil {
				return err
			}
			manager, choice, err := l.manager()
			if err != nil {
				return err
			}
			set := l.settings.Settings
			p := whatif.Of(l.look.Snapshot, s, l.engine(manager, nil), float64(set.LoadBalancerBrokerOverloadedThresholdPercentage)/100,
				int(set.LoadBalancerSheddingConditionHitCountThreshold)+1, rand.New(rand.NewPCG(seed, seed)))
			if output != "table" {
				return a.encode(output, p)
			}
			printWhatif(a.stdout, p, choice.Placer)
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&s.Lose, "lose", nil, "a broker that is lost, as host:port; may be repeated")
	cmd.Flags().IntVar(&s.Add, "add", 0, fmt.Sprintf("how many empty brokers are added, at most %d", whatif.MaxAdd))
	cmd.Flags().StringVar(&traffic, "traffic", "x1", "by what traffic is multiplied, as x1.5")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "of the randomness of placement")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	return cmd
}

// parseFactor reads "x1.5" or "1.5".
func parseFactor(text string) (float64, error) {
	f, err := strconv.ParseFloat(strings.TrimPrefix(text, "x"), 64)
	if err != nil || !(f > 0) || f > 1e6 {
		return 0, fmt.Errorf("--traffic is %q: it must be a factor above 0 and at most 1000000, as x1.5", text)
	}
	return f, nil
}

func printWhatif(w io.Writer, p whatif.Projection, placer string) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "BROKER\tBUNDLES NOW\tTHEN\tMB/S NOW\tTHEN\tUSAGE % NOW\tTHEN\t")
	after := map[string]whatif.Broker{}
	for _, b := range p.After {
		after[b.ID] = b
	}
	for _, b := range p.Before {
		if b.Lost {
			fmt.Fprintf(t, "%s\t%d\t-\t%.3f\t-\t%.1f\t-\tlost\n", b.ID, b.Bundles, b.Throughput/1e6, b.Usage*100)
			continue
		}
		x := after[b.ID]
		fmt.Fprintf(t, "%s\t%d\t%d\t%.3f\t%.3f\t%.1f\t%.1f\t\n", b.ID, b.Bundles, x.Bundles, b.Throughput/1e6, x.Throughput/1e6, b.Usage*100, x.Usage*100)
	}
	for _, b := range p.After {
		if b.New {
			fmt.Fprintf(t, "%s\t-\t%d\t-\t%.3f\t-\t%.1f\tnew\n", b.ID, b.Bundles, b.Throughput/1e6, b.Usage*100)
		}
	}
	t.Flush()
	if p.Moved > 0 {
		fmt.Fprintf(w, "\n%d bundles get another owner, placed by %s\n", p.Moved, placer)
	}
	for _, x := range []struct {
		when string
		h    whatif.Headroom
	}{{"Now", p.Now}, {"Then", p.Then}} {
		fmt.Fprintf(w, "\n%s: the hottest broker is at %.1f %%, the average at %.1f %%, the limit is %.0f %%.", x.when, x.h.Highest*100, x.h.Average*100, x.h.Limit*100)
		if x.h.AsItIs > 0 {
			fmt.Fprintf(w, " Traffic may grow x%.2f as it is spread, x%.2f if it were even.", x.h.AsItIs, x.h.IfEven)
		}
	}
	fmt.Fprintln(w)
	if len(p.Losses) > 0 {
		fmt.Fprintln(w, "\nThe loss of one more broker then:")
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "LOST\tBUNDLES\tHOTTEST %\tON\tAVERAGE %\t")
		for _, l := range p.Losses {
			verdict := "fits"
			switch {
			case l.Stuck > 0:
				verdict = fmt.Sprintf("%d bundles would be served by nobody", l.Stuck)
			case !l.OK:
				verdict = "ABOVE THE LIMIT"
			}
			fmt.Fprintf(t, "%s\t%d\t%.1f\t%s\t%.1f\t%s\n", l.Broker, l.Bundles, l.Highest*100, l.On, l.Average*100, verdict)
		}
		t.Flush()
	}
	fmt.Fprintf(w, "\nThen %s: %s\n", p.Plan.Strategy, outcome(p.Plan))
	for _, d := range p.Plan.Decisions {
		fmt.Fprintf(w, "  %s %s from %s to %s: %s\n", d.Action, d.Bundle, d.Source, dash(d.Destination), d.Why)
	}
	printLeftOut(w, "Bundles that nobody may take", p.Nowhere)
}
