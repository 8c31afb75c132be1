package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/manager"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/topics"
)

func newMigrate(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Plan the move of a cluster to the Extensible load manager",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q for ballast migrate: it is plan", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newMigratePlan(a))
	return cmd
}

func newMigratePlan(a *app) *cobra.Command {
	var output, to string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Check what must be so before the move, and print the steps with what to watch; change nothing",
		Long: `Looks at versions, the brokers' configuration, values left in the metadata store, the namespace pulsar/system and its
replication, the load manager's topics and the bundles of the namespaces in use. Prints what to do first, then the steps of
a restart broker by broker, with what to watch and when to stop.

Exit code: 0 the cluster is ready or through, 2 something is to be done first, 1 an error.`,
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if kind, ok := manager.Parse(to); !ok || kind != manager.Extensible {
				return fmt.Errorf("--to is %q: it must be extensible; between simple and modular, ballast manager switch changes at run time", to)
			}
			return checkOutput(output)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer s.close()
			facts, err := s.facts(cmd.Context())
			if err != nil {
				return err
			}
			m := manager.PlanMigration(facts)
			if output != "table" {
				if err := a.encode(output, m); err != nil {
					return err
				}
			} else {
				printManagers(a.stdout, &facts.Cluster)
				printMigration(a.stdout, m)
			}
			if !m.Ready {
				return exitCode(exitPlanned)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	cmd.Flags().StringVar(&to, "to", "extensible", "the load manager to move to")
	return cmd
}

// facts are what a migration is planned from. What cannot be read is in the facts, not an error.
func (s *session) facts(ctx context.Context) (*manager.Facts, error) {
	c, err := s.managers(ctx)
	if err != nil {
		return nil, err
	}
	f := &manager.Facts{Cluster: *c, Unread: map[string]string{}}
	if _, f.Config, err = s.clusterSettings(ctx); err != nil {
		return nil, err
	}
	f.System = s.namespace(ctx, event.SystemNamespace)
	for _, topic := range []string{topics.ServiceUnitState, topics.BrokerLoadData, topics.TopBundles} {
		info, err := s.cluster.TopicInfo(ctx, topic)
		t := manager.Topic{Name: topic, Exists: info.Exists, Partitions: info.Partitions, Entries: info.Entries}
		if err != nil {
			t.Error = err.Error()
		}
		f.Topics = append(f.Topics, t)
	}
	s.inUse(ctx, f)
	s.isolation(ctx, f)
	lock := control.NewLock(s.log, s.instance, lockTimeout, time.Now)
	current, err := control.NewTakeOvers(s.log, control.Locked(s.cluster, lock), s.instance, time.Now).Current(ctx)
	if err != nil {
		f.Unread[topics.Takeover] = err.Error()
	}
	f.TakenOver = current != nil
	return f, ctx.Err()
}

// namespace reads the policies and the bundles of a namespace.
func (s *session) namespace(ctx context.Context, name string) manager.Namespace {
	out := manager.Namespace{Name: name}
	info, err := s.cluster.NamespaceInfo(ctx, name)
	if errors.Is(err, admin.NotFound) {
		out.Missing = true
		return out
	}
	if err == nil {
		out.Clusters, out.TTL, out.PublishRate, out.SchemasClosed = info.Clusters, info.TTL, info.PublishRate, info.SchemasClosed
		var bundles []string
		bundles, err = s.cluster.Bundles(ctx, name)
		out.Bundles = len(bundles)
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

// inUse finds the namespaces that brokers serve topics of, with their traffic and how many bundles they have.
func (s *session) inUse(ctx context.Context, f *manager.Facts) {
	traffic := map[string]float64{}
	var order []string
	for _, b := range f.Brokers {
		stats, err := s.cluster.TopicStats(ctx, b.ID)
		if err != nil {
			f.Unread["the topics of "+b.ID] = err.Error()
			continue
		}
		for _, t := range stats {
			ns := event.NamespaceOf(t.Bundle)
			if event.IsSystem(t.Bundle) || event.IsBrokerBound(t.Bundle) {
				continue
			}
			if _, seen := traffic[ns]; !seen {
				order = append(order, ns)
			}
			traffic[ns] += t.MsgThroughputIn + t.MsgThroughputOut
		}
	}
	for _, ns := range order {
		bundles, err := s.cluster.Bundles(ctx, ns)
		if err != nil && !errors.Is(err, admin.NotFound) {
			f.Unread["the bundles of "+ns] = err.Error()
			continue
		}
		f.Namespaces = append(f.Namespaces, manager.Namespace{Name: ns, Bundles: len(bundles), Throughput: traffic[ns]})
	}
}

// isolation finds the isolation policies that hold for the namespace of the load manager's topics.
func (s *session) isolation(ctx context.Context, f *manager.Facts) {
	policies, err := s.cluster.Isolation(ctx, f.Name)
	if err != nil {
		f.Unread["the isolation policies"] = err.Error()
		return
	}
	if p, ok, _ := policy.New(policies, nil, nil, nil).Isolation(event.SystemNamespace); ok {
		f.Isolation = append(f.Isolation, p.Name)
	}
}

func printMigration(w io.Writer, m manager.Migration) {
	switch {
	case m.Done && !m.Ready:
		fmt.Fprintln(w, "\nThe cluster runs the Extensible load manager, and something was left behind.")
	case m.Done:
		fmt.Fprintln(w, "\nThe cluster runs the Extensible load manager: nothing is left to do.")
	case m.Ready:
		fmt.Fprintln(w, "\nThe cluster can be moved to the Extensible load manager.")
	default:
		fmt.Fprintln(w, "\nSomething is to be done before the cluster can be moved.")
	}
	printFindings(w, m.Findings)
	for i, step := range m.Steps {
		fmt.Fprintf(w, "\n%d. %s\n", i+1, step.Title)
		for _, do := range step.Do {
			fmt.Fprintf(w, "     %s\n", strings.ReplaceAll(do, "\n", " "))
		}
		for _, watch := range step.Watch {
			fmt.Fprintf(w, "   watch: %s\n", watch)
		}
		if step.Stop != "" {
			fmt.Fprintf(w, "   stop:  %s\n", step.Stop)
		}
	}
}
