package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/control/story"
	"github.com/ballast-lb/ballast/topics"
)

// logOptions say what ballast log shows.
type logOptions struct {
	filter story.Filter
	kinds  []string
	since  string
	follow bool
	last   int
	output string
}

func newLog(a *app) *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Print what Ballast decided and did, from the decision log",
		Long: `Prints the records of the decision log, oldest first, a sentence each, or as JSON lines (-o json) exactly as they are stored.
The log holds each cycle's plan or why there is none, intents and outcomes, leaders, pauses, reviewed plans and commands;
docs/decision-log.md describes the records.`,
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := cmp.Or(flagGiven(cmd, "broker", aBroker), flagGiven(cmd, "bundle", aBundle)); err != nil {
				return err
			}
			o.filter.Since, o.filter.Kinds, err = o.check(time.Now())
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return a.showLog(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.filter.Bundle, "bundle", "", "only what concerns this bundle (tenant/namespace/0x00000000_0x40000000)")
	f.StringVar(&o.filter.Broker, "broker", "", "only what concerns this broker (host:port)")
	f.Int64Var(&o.filter.Cycle, "cycle", 0, "only this cycle; 0 = all")
	f.StringSliceVar(&o.kinds, "kind", nil, "only these kinds: "+kindNames())
	f.StringVar(&o.since, "since", "", "only what is newer: an age like 2h, or a time like 2006-01-02T15:04:05Z")
	f.IntVarP(&o.last, "last", "n", 0, "only the last so many; 0 = all")
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what comes")
	f.StringVarP(&o.output, "output", "o", "table", "table or json (one record a line)")
	return cmd
}

func kindNames() string {
	var names []string
	for _, k := range control.Kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// check reads the options that are texts.
func (o logOptions) check(now time.Time) (since int64, kinds []control.Kind, err error) {
	if o.output != "table" && o.output != "json" {
		return 0, nil, fmt.Errorf("--output is %q: it must be table or json", o.output)
	}
	for _, name := range o.kinds {
		if !slices.Contains(control.Kinds, control.Kind(name)) {
			return 0, nil, fmt.Errorf("--kind is %q: it must be one of %s", name, kindNames())
		}
		kinds = append(kinds, control.Kind(name))
	}
	if o.since == "" {
		return 0, kinds, nil
	}
	if age, err := time.ParseDuration(o.since); err == nil && age >= 0 {
		return now.Add(-age).UnixMilli(), kinds, nil
	}
	at, err := time.Parse(time.RFC3339, o.since)
	if err != nil {
		return 0, nil, fmt.Errorf("--since is %q: it must be an age like 2h, or a time like 2006-01-02T15:04:05Z", o.since)
	}
	return at.UnixMilli(), kinds, nil
}

func (a *app) showLog(ctx context.Context, o logOptions) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	records, sub, err := readDecisions(ctx, s.log)
	if errors.Is(err, topics.ErrNoTopic) && !o.follow {
		_, err := fmt.Fprintln(a.stderr, "there is no decision log: no Ballast has governed this cluster")
		return err
	}
	if errors.Is(err, topics.ErrNoTopic) {
		sub, err = s.log.Subscribe(ctx, topics.Decisions, topics.SubscribeOptions{From: topics.Earliest})
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	p := &logPrinter{out: a.stdout, json: o.output == "json"}
	records = slices.DeleteFunc(records, func(r stored) bool { return !o.filter.Match(r.Record) })
	if o.last > 0 && len(records) > o.last {
		records = records[len(records)-o.last:]
	}
	for _, r := range records {
		p.print(r)
	}
	p.flush()
	for o.follow {
		m, err := sub.Receive(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", topics.Decisions, err)
		}
		if r, err := control.DecodeRecord(m.Payload); err == nil && o.filter.Match(r) {
			p.print(stored{r, m.Payload})
			p.flush()
		}
	}
	return nil
}

// stored is a record and the payload that it was read from.
type stored struct {
	control.Record
	payload []byte
}

// readDecisions reads everything that the decision log holds. What is not readable is left out. The subscription goes on.
func readDecisions(ctx context.Context, log topics.Log) ([]stored, topics.Subscription, error) {
	sub, err := log.Subscribe(ctx, topics.Decisions, topics.SubscribeOptions{From: topics.Earliest, Compacted: true, Existing: true})
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", topics.Decisions, err)
	}
	byKey, order := map[string]stored{}, []string(nil)
	err = topics.Drain(ctx, sub, func(m topics.Message) error {
		if m.Tombstone() {
			delete(byKey, m.Key)
			return nil
		}
		if r, err := control.DecodeRecord(m.Payload); err == nil {
			if _, known := byKey[m.Key]; !known {
				order = append(order, m.Key)
			}
			byKey[m.Key] = stored{r, m.Payload}
		}
		return nil
	})
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read %s: %w", topics.Decisions, err), sub.Close())
	}
	var out []stored
	for _, key := range order {
		if r, ok := byKey[key]; ok {
			out = append(out, r)
		}
	}
	return out, sub, nil
}

// logPrinter prints records.
type logPrinter struct {
	out   io.Writer
	json  bool
	table *tabwriter.Writer
	begun bool
}

func (p *logPrinter) print(r stored) {
	if p.json {
		fmt.Fprintln(p.out, string(compactJSON(r.payload)))
		return
	}
	if p.table == nil {
		p.table = tabwriter.NewWriter(p.out, 0, 8, 2, ' ', 0)
	}
	if !p.begun {
		fmt.Fprintln(p.table, "TIME\tEPOCH\tCYCLE\tKIND\tWHAT")
		p.begun = true
	}
	fmt.Fprintf(p.table, "%s\t%s\t%s\t%s\t%s\n", story.At(r.At), orDash(r.Epoch), orDash(r.Cycle), r.Kind, story.Line(r.Record))
}

func (p *logPrinter) flush() {
	if p.table != nil {
		p.table.Flush()
	}
}

func compactJSON(b []byte) []byte {
	var v json.RawMessage
	if err := json.Unmarshal(b, &v); err != nil {
		return b
	}
	out, err := json.Marshal(v) // on one line
	if err != nil {
		return b
	}
	return out
}

func orDash(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
