package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/plan"
)

var (
	alreadyThere = plan.Code{ID: "ALREADY_THERE", Template: "{broker} owns it already"}
	nobodyOwns   = plan.Code{ID: "NOBODY_OWNS_IT", Template: "no broker owns it: its next lookup gives it one"}
)

func newMove(a *app) *cobra.Command {
	var o operation
	var to string
	cmd := &cobra.Command{
		Use:   "move BUNDLE --to BROKER",
		Short: "Move a bundle to a broker",
		Long: `Unloads a bundle (tenant/namespace/0x........_0x........) to a broker (host:port as the registry has it) and waits until
that broker owns it. Isolation policies hold: an unload over admin REST would ignore them.

On the Modular load manager a bundle that nobody is connected to has no owner after its unload, until somebody asks for it. The move
is not done then: it ends as timed-out, with exit code 1, and the first client decides where the bundle goes.
` + operationExit,
		Args: one("BUNDLE", aBundle),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(to) == "" {
				return errors.New("--to is missing: name the broker that the bundle shall move to")
			}
			return a.operate(cmd.Context(), o, operateWait, func(l *live) ([]plan.Decision, []plan.LeftOut, error) {
				if strings.HasSuffix(l.settings.Settings.LoadManagerClassName, "SimpleLoadManagerImpl") {
					return nil, nil, errors.New("the Simple load manager ignores the destination of an unload (loadManagerClassName): use ballast unload")
				}
				b, err := l.bundle(cmd.Context(), args[0])
				if err != nil {
					return nil, nil, err
				}
				broker, err := l.broker("--to", to)
				if err != nil {
					return nil, nil, err
				}
				bundle, ok, err := l.owned(cmd.Context(), b.String())
				switch {
				case err != nil:
					return nil, nil, err
				case !ok:
					return nil, []plan.LeftOut{{Bundle: b.String(), Why: nobodyOwns.Because()}}, nil
				case bundle.Owner == broker && bundle.State == "Owned":
					return nil, []plan.LeftOut{{Bundle: b.String(), Broker: broker, Why: alreadyThere.Because(plan.S("broker", broker))}}, nil
				}
				return []plan.Decision{l.decision(plan.Transfer, bundle.Name, bundle.Owner, broker, o.why())}, nil, nil
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the broker to move to, as host:port")
	o.flags(cmd)
	return cmd
}

func newUnload(a *app) *cobra.Command {
	var o operation
	cmd := &cobra.Command{
		Use:   "unload BUNDLE|NAMESPACE",
		Short: "Unload a bundle, or all bundles of a namespace",
		Long: `Unloads a bundle, or one after the other all bundles of a namespace that are owned, at the pace of ballastMaxTopicsPerSecond.
The cluster chooses who owns them next, at their next lookup.
` + operationExit,
		Args: one("BUNDLE|NAMESPACE", aBundle+", or "+aNamespace),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operate(cmd.Context(), o, operateWait, func(l *live) ([]plan.Decision, []plan.LeftOut, error) {
				names, err := l.named(cmd.Context(), args[0])
				if err != nil {
					return nil, nil, err
				}
				var ds []plan.Decision
				var left []plan.LeftOut
				for _, name := range names {
					switch b, ok, err := l.owned(cmd.Context(), name); {
					case err != nil:
						return nil, nil, err
					case ok:
						ds = append(ds, l.decision(plan.Unload, name, b.Owner, "", o.why()))
					default:
						left = append(left, plan.LeftOut{Bundle: name, Why: nobodyOwns.Because()})
					}
				}
				return ds, left, nil
			})
		},
	}
	o.flags(cmd)
	return cmd
}

// checkNamespace checks the form tenant/namespace.
func checkNamespace(name string) error {
	parts := strings.Split(name, "/")
	if len(parts) < 2 || len(parts) > 3 || strings.Contains(name, "//") || strings.HasPrefix(name, "/") || strings.HasSuffix(name, "/") || strings.Contains(name, ":/") {
		return fmt.Errorf("%q is neither a bundle nor a namespace: it must be tenant/namespace/0x........_0x........ or tenant/namespace", name)
	}
	return nil
}
