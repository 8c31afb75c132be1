package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// The words that stand for a bundle, as pulsar-admin has them.
const (
	largest = "LARGEST" // most topics
	hottest = "HOT"     // most throughput
)

var splitsOneTopic = plan.Code{ID: "SPLIT_OF_ONE_TOPIC", Template: "it has {topics} topics: a split divides no topic; partition the topic to spread it"}

func newSplit(a *app) *cobra.Command {
	var o operation
	var namespace string
	var at []string
	var unload bool
	cmd := &cobra.Command{
		Use:   "split BUNDLE|LARGEST|HOT",
		Short: "Split a bundle",
		Long: `Splits a bundle by the brokers' default algorithm (defaultNamespaceBundleSplitAlgorithm), or at the hashes that --at names.
LARGEST is the bundle with most topics, HOT the one with most throughput, of the cluster or of --namespace; of bundles with
at least two topics, as a split divides no topic. The parts stay on their broker; with --unload they are placed anew.
` + operationExit,
		Args: one("BUNDLE", aBundle+", or LARGEST or HOT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.operate(cmd.Context(), o, operateWait, func(l *live) ([]plan.Decision, []plan.LeftOut, error) {
				if err := l.statistics(cmd.Context()); err != nil {
					return nil, nil, err
				}
				bundle, err := l.splittable(cmd.Context(), args[0], namespace)
				if err != nil {
					return nil, nil, err
				}
				if err := checkBoundaries(bundle.Name, at); err != nil {
					return nil, nil, err
				}
				var left []plan.LeftOut
				if bundle.Known && bundle.Stats.Topics < 2 {
					left = append(left, plan.LeftOut{Bundle: bundle.Name, Why: splitsOneTopic.Because(plan.N("topics", bundle.Stats.Topics))})
				}
				d := l.decision(plan.Split, bundle.Name, bundle.Owner, "", o.why())
				d.Boundaries, d.UnloadAfter = at, unload
				return []plan.Decision{d}, left, nil
			})
		},
	}
	cmd.Flags().StringVar(&namespace, "namespace", "", "LARGEST and HOT: of this namespace")
	cmd.Flags().StringSliceVar(&at, "at", nil, "hashes to split at, as 0x........")
	cmd.Flags().BoolVar(&unload, "unload", false, "unload the parts afterwards, so that they are placed anew")
	o.flags(cmd)
	return cmd
}

// splittable is the bundle that a name or one of the words stands for.
func (l *live) splittable(ctx context.Context, name, namespace string) (*cluster.Bundle, error) {
	snap := l.look.Snapshot
	if name != largest && name != hottest {
		if namespace != "" {
			return nil, fmt.Errorf("--namespace belongs to %s and %s, not to a bundle's name", largest, hottest)
		}
		b, err := l.bundle(ctx, name)
		if err != nil {
			if up := strings.ToUpper(name); up == largest || up == hottest {
				err = fmt.Errorf("%w; did you mean %s?", err, up)
			}
			return nil, err
		}
		if found, ok, err := l.owned(ctx, b.String()); ok || err != nil {
			return found, err
		}
		return nil, fmt.Errorf("bundle %s is owned by nobody: a split needs its broker; look one of its topics up first", name)
	}
	if namespace != "" {
		if _, err := l.cluster.Bundles(ctx, namespace); err != nil {
			return nil, fmt.Errorf("--namespace %s: %w", namespace, err)
		}
	}
	var best *cluster.Bundle
	score := func(b *cluster.Bundle) float64 {
		if name == largest {
			return float64(b.Stats.Topics)
		}
		return b.Stats.MsgThroughputIn + b.Stats.MsgThroughputOut
	}
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if !b.Known || b.Owner == "" || b.Stats.Topics < 2 || namespace != "" && b.Namespace != namespace || policy.KindOf(b.Namespace) != policy.Ordinary {
			continue
		}
		if best == nil || score(b) > score(best) {
			best = b
		}
	}
	if best == nil {
		return nil, errors.New("no bundle has two topics or more: there is none whose split could help")
	}
	return best, nil
}

// named are the bundles that a name stands for: one, or all of a namespace.
func (l *live) named(ctx context.Context, name string) ([]string, error) {
	if _, text, _ := event.CutBundle(name); strings.HasPrefix(text, "0x") {
		b, err := l.bundle(ctx, name)
		return []string{b.String()}, err
	}
	if err := checkNamespace(name); err != nil {
		return nil, err
	}
	names, err := l.cluster.Bundles(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("namespace %s: %w", name, err)
	}
	return names, nil
}

// checkBoundaries checks that hashes lie inside a bundle and rise.
func checkBoundaries(bundle string, at []string) error {
	if len(at) == 0 {
		return nil
	}
	b, err := event.ParseBundle(bundle)
	if err != nil {
		return err
	}
	hash := b.Range.String()
	texts := append([]string{hash[:10]}, at...)
	if _, err := event.ParseBoundaries(append(texts, hash[11:])); err != nil {
		return fmt.Errorf("--at: %w; they must rise and lie inside %s", err, hash)
	}
	return nil
}
