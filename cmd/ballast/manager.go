package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/manager"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

func newManager(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Show, check or switch the load manager of the cluster's brokers",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for ballast manager: it is show, check or switch", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newManagerShow(a), newManagerCheck(a), newManagerSwitch(a))
	return cmd
}

func newManagerShow(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show which load manager runs on each broker, and how that is told",
		Long: `A broker's configuration shows what it should run; the form of its load report shows what it does run: LocalBrokerData is
Modular, LoadReport is Simple, and an Extensible broker refuses to give one. Where the two differ, where brokers differ and
where a value in the metadata store counts instead of broker.conf, that is said.`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return checkOutput(output) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			c, err := s.managers(cmd.Context())
			if err != nil {
				return err
			}
			doc := managerDocument{Cluster: c.Name, Leader: c.Leader, Runs: c.Kinds(), Brokers: c.Brokers, Findings: manager.Show(c)}
			if class, ok := c.Dynamic[manager.Key]; ok {
				doc.Dynamic = &class
			}
			if output != "table" {
				return a.encode(output, doc)
			}
			printManagers(a.stdout, c)
			printFindings(a.stdout, doc.Findings)
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	return cmd
}

// managerDocument is what show prints as JSON.
type managerDocument struct {
	Cluster  string            `json:"cluster"`
	Leader   string            `json:"leader,omitempty"`
	Runs     []manager.Kind    `json:"runs"`
	Dynamic  *string           `json:"dynamic"` // loadManagerClassName in the metadata store, null = none
	Brokers  []manager.Broker  `json:"brokers"`
	Findings []manager.Finding `json:"findings,omitempty"`
}

func newManagerCheck(a *app) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Say what a switch to a load manager would break; change nothing",
		Long: `NAME is simple, modular, extensible or a class name. Looks at what runs, at versions, at the values in the metadata store and
at the strategies that would count, and says what is refused and why.

Exit code: 0 a switch would work or there is nothing to do, 2 it is refused, 1 an error.`,
		Args:    oneName,
		PreRunE: func(*cobra.Command, []string) error { return checkOutput(output) },
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			c, err := s.managersAndBallast(cmd.Context())
			if err != nil {
				return err
			}
			check := manager.CheckSwitch(c, args[0])
			if output != "table" {
				if err := a.encode(output, check); err != nil {
					return err
				}
			} else {
				printCheck(a.stdout, check)
			}
			if check.Refused {
				return exitCode(exitPlanned)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	return cmd
}

func oneName(_ *cobra.Command, args []string) error {
	const what = "one load manager, simple, modular, extensible or a class name"
	if len(args) != 1 {
		return fmt.Errorf("%d names given: it must be %s", len(args), what)
	}
	return notBlank("NAME", args[0], what)
}

// managers asks every broker what it runs.
func (s *session) managers(ctx context.Context) (*manager.Cluster, error) {
	brokers, silent, err := s.cluster.Answers(ctx)
	if err != nil {
		return nil, err
	}
	c := &manager.Cluster{Version: s.version, Brokers: make([]manager.Broker, len(brokers))}
	if c.Dynamic, err = s.cluster.DynamicConfig(ctx); err != nil {
		return nil, err
	}
	_, dynamic := c.Dynamic[manager.Key]
	var g errgroup.Group
	g.SetLimit(8)
	for i := range brokers {
		g.Go(func() error {
			c.Brokers[i] = s.managerOf(ctx, dynamic, brokers[i].ID, brokers[i].Version, brokers[i].LoadManager, silent[brokers[i].ID])
			return nil
		})
	}
	_ = g.Wait() // what a broker did not answer is in its Error
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.Name, err = s.cluster.Name(ctx); err != nil {
		return nil, err
	}
	if c.Leader, err = s.cluster.Leader(ctx); err != nil {
		return nil, err
	}
	keys, err := s.cluster.DynamicConfigNames(ctx)
	if err != nil {
		return nil, err
	}
	for _, key := range keys {
		c.Settable = c.Settable || key == manager.Key
	}
	if c.Settings, _, err = s.clusterSettings(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// managersAndBallast is managers, and whether a Ballast process governs.
func (s *session) managersAndBallast(ctx context.Context) (*manager.Cluster, error) {
	c, err := s.managers(ctx)
	if err != nil {
		return nil, err
	}
	producers, err := s.cluster.Publishers(ctx, topics.Leader)
	c.Governing = producers > 0
	return c, err
}

// clusterSettings are the settings that the cluster runs with, without this program's own, and the configuration that they
// were read from.
func (s *session) clusterSettings(ctx context.Context) (*settings.Settings, map[string]string, error) {
	runtime, err := s.cluster.RuntimeConfig(ctx)
	if err != nil {
		return nil, nil, err
	}
	l, err := settings.Resolve(s.version, settings.ClusterLayer(s.settings.Ballast.WebServiceURL, runtime))
	if err != nil {
		return nil, nil, err
	}
	return l.Settings, runtime, nil
}

// managerOf is what a broker says about its load manager. dynamic says whether one is set in the metadata store.
func (s *session) managerOf(ctx context.Context, dynamic bool, id, version, class string, failed error) manager.Broker {
	b := manager.Broker{ID: id, Version: version, Configured: class}
	if failed != nil {
		b.Error = failed.Error()
		return b
	}
	var begun int64 // Modular: when its load manager started
	report, err := s.cluster.LoadReport(ctx, id)
	switch {
	case errors.Is(err, admin.Unsupported):
		b.Report = manager.UnsupportedReport
	case err != nil:
		b.Error = err.Error()
	case report.Simple != nil:
		b.Report, b.Named = manager.LoadReport, report.Simple.LoadManagerClassName
	default:
		b.Report, b.Named = manager.LocalBrokerData, report.Local.LoadManagerClassName
		begun = report.Local.StartTimestamp
	}
	if runs := b.Runs(); runs == manager.Simple || runs == manager.Modular {
		s.ranBefore(ctx, &b, begun, dynamic)
	}
	return b
}

// ranBefore fills in what a broker's process has run before, which its metrics tell.
func (s *session) ranBefore(ctx context.Context, b *manager.Broker, begun int64, dynamic bool) {
	const processStart = "process_start_time_seconds"
	samples, err := s.cluster.Metrics(ctx, b.ID, processStart, manager.ModularMetric)
	if err != nil {
		b.RanUnknown = err.Error()
		return
	}
	process, made := int64(0), false
	for _, x := range samples {
		if x.Name == processStart {
			process = int64(x.Value * 1000)
		}
		made = made || strings.HasPrefix(x.Name, manager.ModularMetric)
	}
	if process == 0 {
		b.RanUnknown = "its metrics have no " + processStart
	}
	b.Ran = manager.RanBefore(b.Runs(), process, begun, made, dynamic)
}

func printManagers(w io.Writer, c *manager.Cluster) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "BROKER\tLEADS\tVERSION\tRUNS\tLOAD REPORT\tCONFIGURED")
	for _, b := range c.Brokers {
		leads, report := "", string(b.Report)
		if b.ID == c.Leader {
			leads = "*"
		}
		if report == "" {
			report = "none"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", b.ID, leads, b.Version, b.Runs(), report, b.Configured)
	}
	t.Flush()
}

func printCheck(w io.Writer, c manager.Check) {
	var from []string
	for _, k := range c.From {
		from = append(from, k.String())
	}
	verdict := "would work"
	switch {
	case c.Refused:
		verdict = "is refused"
	case c.Done:
		verdict = "has nothing to do"
	}
	fmt.Fprintf(w, "A switch from %s to %s %s.\n", strings.Join(from, ", "), c.Name, verdict)
	printFindings(w, c.Findings)
	if len(c.Steps) > 0 {
		fmt.Fprintln(w, "\nSteps:")
		for i, step := range c.Steps {
			fmt.Fprintf(w, "  %d. %s\n", i+1, step)
		}
	}
}

// printFindings prints findings as a table, nothing when there are none.
func printFindings(w io.Writer, findings []manager.Finding) {
	if len(findings) == 0 {
		return
	}
	fmt.Fprintln(w, "\nFindings:")
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for _, f := range findings {
		text := f.Why.String()
		if f.Broker != "" {
			text = f.Broker + ": " + text
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\n", f.Severity, f.Why.Code, text)
	}
	t.Flush()
}
