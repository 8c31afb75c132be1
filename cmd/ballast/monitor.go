package main

import (
	"context"
	"fmt"
	"io"
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
		Long: `Prints a table for each broker and one for all, in the form of pulsar-perf monitor-brokers, every --interval, for each of the
three load managers and without ZooKeeper. Where that tool leaves cells empty or puts them under another header, they stand
where they belong. Short- and long-term averages of a Modular cluster are those that a Ballast process keeps on the log, or
else those of the reports that this run has read.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < time.Second {
				return fmt.Errorf("--interval is %v: it must be 1s or more", every)
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
	w := newWatcher(s)
	defer w.close()
	m := &tables{}
	clock := control.SystemClock{}
	for n := 0; count == 0 || n < count; n++ {
		if n > 0 {
			if err := clock.Sleep(ctx, every); err != nil {
				return nil // stopped by the user
			}
		}
		p, err := w.look(ctx, "", every)
		if err != nil {
			return err
		}
		h, err := s.history(ctx)
		if err != nil {
			return err
		}
		m.print(a.stdout, p, h)
	}
	return nil
}

// tables prints one picture after the other.
type tables struct {
	averages monitor.Averages // of this run, where nobody keeps any
}

// print prints what is known of each broker, then of all.
func (m *tables) print(w io.Writer, p *picture, h history) {
	var rows []monitor.Row
	own := false
	for i := range p.brokers {
		b := &p.brokers[i]
		if b.stored != "" {
			fmt.Fprintf(w, "(%s: read from ZooKeeper, which may be older)\n", b.ID)
		}
		switch {
		case b.another:
			fmt.Fprintf(w, "Nothing is known of broker %s: %s\n\n", b.ID, b.Error)
		case b.local != nil:
			avg := m.averages.Hear(b.ID, b.local)
			if kept, ok := h.brokers[b.ID]; ok {
				avg = &kept
			} else {
				own = true
			}
			fmt.Fprintf(w, "%s\n\n", monitor.Modular(b.ID, *b.local, avg))
			rows = append(rows, monitor.ModularRow(b.ID, *b.local, avg))
		case b.report != nil:
			fmt.Fprintf(w, "%s\n\n", monitor.Simple(b.ID, *b.report))
			rows = append(rows, monitor.SimpleRow(b.ID, *b.report))
		case b.load != nil:
			note := ""
			if b.load.Estimated {
				note = "(estimated from its metrics)\n"
			}
			fmt.Fprintf(w, "%s\n%s\n", monitor.Extensible(b.ID, *b.load.Load), note)
			rows = append(rows, monitor.ExtensibleRow(b.ID, *b.load.Load))
		case b.Error != "":
			fmt.Fprintf(w, "Broker %s does not answer: %s\n\n", b.ID, b.Error)
		default:
			fmt.Fprintf(w, "Broker %s is registered and has not reported yet.\n\n", b.ID)
		}
	}
	fmt.Fprintf(w, "%s\n\n", monitor.Overall(rows))
	if own {
		fmt.Fprintf(w, "SHORT and LONG are averages of the %d reports that this run has read: nobody keeps them on the log.\n\n", m.averages.Samples())
	}
	for _, why := range p.frozen {
		fmt.Fprintln(w, why)
	}
}
