package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/control/story"
	"github.com/ballast-lb/ballast/topics"
)

func newExplain(a *app) *cobra.Command {
	var since, output string
	var filter story.Filter
	cmd := &cobra.Command{
		Use:   "explain BUNDLE|BROKER|CYCLE",
		Short: "Tell why a bundle moved or did not, what a broker gave and took, or what a cycle did",
		Long: `Tells the story of a bundle (tenant/namespace/0x00000000_0x40000000), of a broker (host:port) or of a cycle (its number) from
the decision log, in sentences with the numbers that were compared: what was planned and why, what was held back or
passed over and why, what came of it.`,
		Args: one("BUNDLE|BROKER|CYCLE", aBundle+", a broker, host:port, or the number of a cycle"),
		PreRunE: func(_ *cobra.Command, args []string) (err error) {
			if err := checkOutput(output); err != nil {
				return err
			}
			if filter, err = story.ParseSubject(args[0]); err != nil {
				return err
			}
			filter.Since, _, err = logOptions{since: since, output: "table"}.check(time.Now())
			return err
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.explain(cmd.Context(), args[0], filter, output)
		},
	}
	cmd.Flags().StringVar(&since, "since", "", "only what is newer: an age like 2h, or a time like 2006-01-02T15:04:05Z")
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	return cmd
}

// explained is a story as -o json and yaml print it.
type explained struct {
	Subject string   `json:"subject"`
	Story   []string `json:"story"`
}

func (a *app) explain(ctx context.Context, subject string, f story.Filter, output string) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	all, sub, err := readDecisions(ctx, s.log)
	switch {
	case errors.Is(err, topics.ErrNoTopic):
	case err != nil:
		return err
	default:
		defer sub.Close()
	}
	var records []control.Record
	for _, r := range all {
		records = append(records, r.Record)
	}
	lines := story.Explain(records, f)
	if output != "table" {
		return a.encode(output, explained{subject, lines})
	}
	for _, line := range lines {
		fmt.Fprintln(a.stdout, line)
	}
	return nil
}
