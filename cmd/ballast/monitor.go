package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/monitor"
)

func newMonitor(a *app) *cobra.Command {
	var every time.Duration
	var count int
	cmd := &cobra.Command{
		Use:   "monitor",
		Short: "Show the brokers' load as tables, live",
		Long: `Prints a table for each broker and one for all, in the form of pulsar-perf monitor-brokers, every --interval. Where that tool
leaves cells empty or puts them under another header, they stand where they belong.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < time.Second {
				return fmt.Errorf("--interval is %v: it must be 1s or more", every)
			}
			if count < 0 {
				return fmt.Errorf("--count is %d: it must be 0 or more", count)
			}
			return a.monitor(cmd.Context(), every, count)
		},
	}
	cmd.Flags().DurationVar(&every, "interval", 10*time.Second, "time between two prints")
	cmd.Flags().IntVarP(&count, "count", "n", 0, "stop after this many prints; 0 = never")
	return cmd
}

func (a *app) monitor(ctx context.Context, every time.Duration, count int) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	views, stop, err := s.follow(ctx, true)
	if err != nil {
		return err
	}
	defer stop()
	if err := s.settle(ctx, views, every); err != nil {
		return err
	}
	clock := control.SystemClock{}
	for n := 0; count == 0 || n < count; n++ {
		if n > 0 {
			if err := clock.Sleep(ctx, every); err != nil {
				return nil // stopped by the user
			}
		}
		look, err := views.Look(ctx, clock.Now())
		if err != nil {
			return err
		}
		printTables(a.stdout, look)
	}
	return nil
}

// printTables prints what is known of each broker, then of all.
func printTables(w io.Writer, look *control.Look) {
	var rows []monitor.Row
	for i := range look.Snapshot.Brokers {
		b := &look.Snapshot.Brokers[i]
		if b.Load == nil {
			fmt.Fprintf(w, "Broker %s is registered and has not reported yet.\n\n", b.ID)
			continue
		}
		note := ""
		if b.Estimated {
			note = "(estimated from its metrics)\n"
		}
		fmt.Fprintf(w, "%s\n%s\n", monitor.Extensible(b.ID, *b.Load), note)
		rows = append(rows, monitor.Row{Broker: b.ID, Bundles: int64(b.Load.BundleCount), MsgRate: b.Load.MsgRateIn + b.Load.MsgRateOut,
			LongMsgRate: math.NaN(), Throughput: b.Load.MsgThroughputIn + b.Load.MsgThroughputOut, MaxUsage: b.Load.MaxResourceUsage})
	}
	fmt.Fprintf(w, "%s\n\n", monitor.Overall(rows))
	for _, why := range look.Frozen {
		fmt.Fprintf(w, "%s: %s\n", why.Code, why)
	}
}
