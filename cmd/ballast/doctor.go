package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/diagnose"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/topics"
	"github.com/ballast-lb/ballast/watch"
)

func newDoctor(a *app) *cobra.Command {
	var output string
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check a cluster, the ownership log and what the credentials may do; change nothing",
		Long: `Checks the brokers, their versions and configuration, dynamic settings that are dangerous or were left behind, what the
credentials may do (by requests that change nothing), replication of pulsar/system, a take-over that was not undone, the
schemas of the load topics and the brokers' clocks. Then it follows the ownership log for --watch and says what should not
be there: bundles that are stuck, owners that are gone, records that no broker wrote. docs/doctor.md lists every code.

Exit code: 0 nothing is wrong, 2 there are warnings, 1 there are errors, or something could not be checked.`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return checkOutput(output) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := a.doctor(cmd.Context(), o)
			if err != nil {
				return err
			}
			if output == "table" {
				printDiagnosis(a.stdout, d)
			} else if err := a.encode(output, d); err != nil {
				return err
			}
			switch d.Severity {
			case diagnose.Error:
				return exitCode(exitError)
			case diagnose.Warning:
				return exitCode(exitPlanned)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	cmd.Flags().DurationVar(&o.watch, "watch", 10*time.Second, "how long to follow the ownership log")
	cmd.Flags().DurationVar(&o.stuck, "stuck-after", 0, "how long a bundle may be in flight; 0 = as long as brokers let it (loadBalancerInFlightServiceUnitStateWaitingTimeInMillis)")
	return cmd
}

type doctorOptions struct{ watch, stuck time.Duration }

// diagnosis is what doctor prints.
type diagnosis struct {
	Cluster  string             `json:"cluster"`
	Version  string             `json:"version"`
	Severity diagnose.Severity  `json:"severity"`
	Findings []diagnose.Finding `json:"findings"`
}

func (a *app) doctor(ctx context.Context, o doctorOptions) (*diagnosis, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	name, err := s.cluster.Name(ctx)
	if err != nil {
		return nil, err
	}
	e := &examination{session: s, facts: diagnose.Facts{Cluster: name, Version: s.version, Mode: s.settings.Ballast.BallastMode}}
	e.all(ctx)
	if err := e.ownership(ctx, o); err != nil {
		return nil, err
	}
	d := &diagnosis{Cluster: name, Version: s.version, Findings: diagnose.Check(e.facts)}
	d.Severity = diagnose.Worst(d.Findings)
	return d, ctx.Err()
}

// ownership follows the ownership log and adds what is wrong in it.
func (e *examination) ownership(ctx context.Context, o doctorOptions) error {
	if _, only := e.onReports(); only {
		e.facts.NoLog = e.settings.Settings.LoadManagerClassName
		return nil
	}
	followed, stop, err := e.follow(ctx, false)
	if err != nil {
		e.unchecked(diagnose.Ownership, "", err)
		return nil
	}
	defer stop()
	views := followed.(*control.Views) // as its brokers publish
	limits := control.WatchLimits(e.settings.Settings)
	// What holds for the whole time counts, but for what may be younger than the cluster needs to mend it.
	held := max(o.watch.Milliseconds()*3/4, 1)
	limits.Gone, limits.Overlap, limits.Silence = min(limits.Gone, held), min(limits.Overlap, held), min(limits.Silence, held)
	if o.stuck > 0 {
		limits.InFlight = o.stuck.Milliseconds()
	}
	sentry := control.NewSentry(views, limits, e.topicFacts())
	clock := control.SystemClock{}
	begun := clock.Now()
	if err := e.caughtUp(ctx, views, 20*time.Second); err != nil {
		e.unchecked(diagnose.Ownership, topics.ServiceUnitState, err)
	}
	for end := clock.Now().Add(o.watch); ; {
		look, err := views.Look(ctx, clock.Now())
		if err != nil {
			e.unchecked(diagnose.Ownership, "", err)
			return nil
		}
		var failed error
		if e.facts.Anomalies, failed = sentry.Look(ctx, clock.Now(), look.Snapshot); failed != nil && !clock.Now().Before(end) {
			e.unchecked(diagnose.Ownership, "statistics of "+topics.ServiceUnitState, failed)
		}
		if !clock.Now().Before(end) {
			break
		}
		if err := clock.Sleep(ctx, min(2*time.Second, time.Until(end))); err != nil {
			return err
		}
	}
	e.facts.Watched, e.facts.Bundles = max(clock.Now().Sub(begun).Milliseconds(), 1), views.Ownership().Len()
	return nil
}

// caughtUp waits until the ownership topic was read to its end.
func (s *session) caughtUp(ctx context.Context, views *control.Views, wait time.Duration) error {
	clock := control.SystemClock{}
	for end := clock.Now().Add(wait); !views.CaughtUp(); {
		if clock.Now().After(end) {
			return fmt.Errorf("it was not read to its end within %v", wait)
		}
		if err := clock.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// topicFacts asks for the statistics of the ownership topic, and for the addresses of the brokers' hosts.
func (s *session) topicFacts() control.TopicFacts {
	known := map[string][]string{}
	return func(ctx context.Context, brokers []string) (*watch.Topic, error) {
		state, err := s.cluster.TopicState(ctx, topics.ServiceUnitState)
		if err != nil {
			return nil, err
		}
		out := &watch.Topic{Hosts: map[string][]string{}, Last: ownership.ID{Ledger: state.Ledger, Entry: state.Entry}}
		for _, p := range state.Producers {
			out.Producers = append(out.Producers, watch.Producer{Name: p.Name, Address: p.Address, Own: p.Own})
		}
		for _, id := range brokers {
			if known[id] == nil {
				known[id] = addresses(ctx, id)
			}
			out.Hosts[id] = known[id]
		}
		return out, nil
	}
}

// addresses are the addresses of a broker's host; none when its name is not known here.
func addresses(ctx context.Context, id string) []string {
	host, _, err := net.SplitHostPort(id)
	if err != nil {
		return nil
	}
	if net.ParseIP(host) != nil {
		return []string{host}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	list, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil
	}
	return list
}

// printDiagnosis prints the findings for people.
func printDiagnosis(w io.Writer, d *diagnosis) {
	fmt.Fprintf(w, "cluster %s, Pulsar %s: %s\n\n", d.Cluster, d.Version, d.Severity)
	for _, f := range d.Findings {
		fmt.Fprintf(w, "%-8s %-14s ", f.Severity, f.Area)
		if f.Severity == diagnose.OK {
			fmt.Fprintln(w, f.Why)
			continue
		}
		fmt.Fprintln(w, strings.TrimSpace(strings.Join([]string{f.Why.Code, f.About}, " ")))
		const indent = "                        "
		fmt.Fprintln(w, indent+f.Why.String())
		if f.Advice != "" {
			fmt.Fprintln(w, indent+"-> "+f.Advice)
		}
		if f.Anomaly == nil {
			continue
		}
		for _, r := range f.Anomaly.Evidence {
			ignored := ""
			if r.Ignored {
				ignored = ", ignored"
			}
			fmt.Fprintf(w, "%s   %s %s v%d %s -> %s by %s (%s%s)\n", indent, stamp(time.UnixMilli(r.At)), r.State, r.Version, dash(r.Source), dash(r.Destination), dash(r.Producer), r.Rule, ignored)
		}
	}
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
