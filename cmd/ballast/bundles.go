package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/monitor"
)

// bundleFilter says which bundles are shown.
type bundleFilter struct {
	broker, namespace, sort string
	limit                   int
	all                     bool
}

func newBundles(a *app) *cobra.Command {
	var output string
	var wait time.Duration
	var f bundleFilter
	cmd := &cobra.Command{
		Use:   "bundles",
		Short: "Show the bundles: who owns them, what they carry now and on average",
		Long: `Every bundle that a broker owns, with its traffic where topics of it are in use. Short- and long-term averages are those that
a Ballast process keeps on the log. What is not known is blank. Bundles of the brokers' own heartbeat and SLA namespaces are
left out, unless --all.`,
		Args: cobra.NoArgs,
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			return cmp.Or(f.check(), checkOutput(output), flagGiven(cmd, "broker", aBroker), flagGiven(cmd, "namespace", aNamespace))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, h, err := a.lookOnce(cmd.Context(), wait)
			if err != nil {
				return err
			}
			if err := f.known(p); err != nil {
				return err
			}
			rows, err := f.apply(bundleRows(p, h))
			if err != nil {
				return err
			}
			if len(rows) == 0 && f.namespace != "" {
				fmt.Fprintln(a.stderr, f.none())
			}
			if output != "table" {
				return a.encode(output, bundlesDocument{Bundles: rows, Notes: missingFrom(p, h)})
			}
			if err := monitor.WriteBundles(a.stdout, rows); err != nil {
				return err
			}
			a.notes(missingFrom(p, h))
			return nil
		},
	}
	cmd.Flags().StringVar(&f.broker, "broker", "", "only bundles that this broker owns, host:port")
	cmd.Flags().StringVar(&f.namespace, "namespace", "", "only bundles of this namespace, tenant/namespace")
	cmd.Flags().StringVar(&f.sort, "sort", "throughput", strings.Join(monitor.SortKeys, ", "))
	cmd.Flags().IntVar(&f.limit, "limit", 0, "at most this many; 0 = all")
	cmd.Flags().BoolVar(&f.all, "all", false, "the brokers' heartbeat and SLA bundles, too")
	lookFlags(cmd, &output, &wait)
	return cmd
}

type bundlesDocument struct {
	Bundles []monitor.Bundle `json:"bundles"`
	Notes   []string         `json:"notes,omitempty"` // what is estimated or missing
}

func (f *bundleFilter) check() error {
	if err := monitor.SortBundles(nil, f.sort); err != nil {
		return fmt.Errorf("--sort: %w", err)
	}
	if tenant, name, ok := strings.Cut(f.namespace, "/"); f.namespace != "" && (!ok || tenant == "" || name == "") {
		return fmt.Errorf("--namespace is %q: it must be tenant/namespace", f.namespace)
	}
	return nil
}

// known checks that the broker that was asked for is registered.
func (f *bundleFilter) known(p *picture) error {
	if f.broker == "" {
		return nil
	}
	var ids []string
	for i := range p.brokers {
		if p.brokers[i].ID == f.broker {
			return nil
		}
		ids = append(ids, p.brokers[i].ID)
	}
	return fmt.Errorf("--broker %q is not registered: it must be one of %s", f.broker, strings.Join(ids, ", "))
}

// none says that nothing of the namespace is shown: an empty table could be a misspelt name.
func (f *bundleFilter) none() string {
	owner := "any broker"
	if f.broker != "" {
		owner = f.broker
	}
	return fmt.Sprintf("no bundle of namespace %s is known to be owned by %s", f.namespace, owner)
}

func (f *bundleFilter) apply(rows []monitor.Bundle) ([]monitor.Bundle, error) {
	rows = slices.DeleteFunc(rows, func(b monitor.Bundle) bool {
		return f.broker != "" && b.Owner != f.broker || f.namespace != "" && b.Namespace != f.namespace ||
			!f.all && f.namespace == "" && event.IsBrokerBound(b.Name)
	})
	if err := monitor.SortBundles(rows, f.sort); err != nil {
		return nil, err
	}
	if f.limit > 0 && len(rows) > f.limit {
		rows = rows[:f.limit]
	}
	return rows, nil
}
