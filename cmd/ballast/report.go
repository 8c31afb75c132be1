package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/manager"
	"github.com/ballast-lb/ballast/monitor"
)

func newReport(a *app) *cobra.Command {
	var output string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "report BROKER",
		Short: "Show the load report of a broker, whatever its load manager",
		Long: `BROKER is a broker id, host:webPort. Prints the report of a Modular broker (LocalBrokerData) or of a Simple one (LoadReport) as
it answers it. An Extensible broker answers a request for its report with an error: its report is rebuilt, in the form of a
Modular one, from the load data that it publishes, from the statistics of its topics and from the ownership log. The member
"rebuilt" then says from what, and what is estimated or missing.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d brokers given: it must be one broker id, host:webPort", len(args))
			}
			return notBlank("BROKER", args[0], aBroker)
		},
		PreRunE: func(*cobra.Command, []string) error {
			if output != "json" && output != "yaml" {
				return fmt.Errorf("--output is %q: it must be json or yaml", output)
			}
			return checkOutput(output)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			document, err := a.report(cmd.Context(), args[0], wait)
			if err != nil {
				return err
			}
			return a.encode(output, document)
		},
	}
	lookFlags(cmd, &output, &wait)
	cmd.Flags().Lookup("output").DefValue, cmd.Flags().Lookup("output").Usage = "json", "json or yaml"
	output = "json"
	return cmd
}

// report is the load report of a broker, as it answers it or rebuilt.
func (a *app) report(ctx context.Context, broker string, wait time.Duration) (json.Marshaler, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	w := newWatcher(s)
	defer w.close()
	p, err := w.look(ctx, broker, wait)
	if err != nil {
		return nil, err
	}
	b := &p.brokers[0]
	if b.stored != "" {
		s.logger.Warn("the load report is read from ZooKeeper, where it may be older", "broker", broker, "why", b.stored)
	}
	switch {
	case b.local != nil || b.report != nil:
		return json.RawMessage(b.document), nil
	case b.Runs() != manager.Extensible:
		return nil, fmt.Errorf("the load report of %s cannot be had: %s", broker, b.Error)
	}
	return s.rebuild(ctx, p, b)
}

// rebuild makes the report of an Extensible broker.
func (s *session) rebuild(ctx context.Context, p *picture, b *seen) (json.Marshaler, error) {
	config, err := s.cluster.RuntimeConfigOf(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	src := monitor.Sources{Broker: b.ID, Version: b.Version, Class: b.Configured, Config: config, Now: p.at.UnixMilli(), Stats: b.stats, Top: b.top}
	if b.statsRead {
		src.StatsFrom = statsSource
	}
	if b.load != nil {
		src.Load, src.Heard, src.Estimated = b.load.Load, b.load.LoadHeard, b.load.Estimated
	}
	for name, bundle := range p.states {
		if bundle.Owner == b.ID {
			src.Owned = append(src.Owned, name)
		}
	}
	return monitor.Rebuild(src), nil
}
