package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/monitor"
)

func newBrokers(a *app) *cobra.Command {
	var output string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "brokers",
		Short: "Show the brokers: what they use, what they carry now and on average, and which one leads",
		Long: `Reads the load report of each Modular or Simple broker, and of an Extensible one what it publishes, and its topics'
statistics. Short- and long-term averages are those that a Ballast process keeps on the log. What is not known is blank.`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return checkOutput(output) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, h, err := a.lookOnce(cmd.Context(), wait)
			if err != nil {
				return err
			}
			rows := brokerRows(p, h)
			if output != "table" {
				return a.encode(output, brokersDocument{Leader: p.leader, Brokers: rows, Notes: missingFrom(p, h)})
			}
			if err := monitor.WriteBrokers(a.stdout, rows); err != nil {
				return err
			}
			a.notes(missingFrom(p, h))
			return nil
		},
	}
	lookFlags(cmd, &output, &wait)
	return cmd
}

type brokersDocument struct {
	Leader  string           `json:"leader,omitempty"`
	Brokers []monitor.Broker `json:"brokers"`
	Notes   []string         `json:"notes,omitempty"` // what is estimated or missing
}

// lookFlags are the flags of commands that look at the brokers' load once.
func lookFlags(cmd *cobra.Command, output *string, wait *time.Duration) {
	cmd.Flags().StringVarP(output, "output", "o", "table", "table, json or yaml")
	cmd.Flags().DurationVar(wait, "wait", 10*time.Second, "how long to wait for Extensible brokers to be heard, before they are estimated from their metrics")
}

// lookOnce looks at all brokers and reads what is kept of them.
func (a *app) lookOnce(ctx context.Context, wait time.Duration) (*picture, history, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, history{}, err
	}
	defer s.close()
	w := newWatcher(s)
	defer w.close()
	p, err := w.look(ctx, "", wait)
	if err != nil {
		return nil, history{}, err
	}
	h, err := s.history(ctx)
	return p, h, err
}

// notes prints what is estimated or missing, below a table.
func (a *app) notes(notes []string) {
	if len(notes) > 0 {
		fmt.Fprintln(a.stdout)
	}
	for _, n := range notes {
		fmt.Fprintln(a.stdout, n)
	}
}
