package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/plan"
)

func newRestartGate(a *app) *cobra.Command {
	var output string
	var wait, calm time.Duration
	var want int
	cmd := &cobra.Command{
		Use:   "restart-gate",
		Short: "Say whether the next broker may be restarted",
		Long: `The next broker may be restarted when every broker is registered, ready and reporting, no bundle is on its way, and nothing
is wrong in the ownership log, for as long as --calm. A broker that is down is not in the registry: say with --brokers how many
there must be. With --wait it waits until it may.

Exit code: 0 it may be restarted, 2 not now (it says why), 1 an error.`,
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error { return checkOutput(output) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := a.restartGate(cmd.Context(), want, wait, calm)
			if err != nil {
				return unanswered(cmd.Context(), err)
			}
			if output == "table" {
				if g.Open {
					fmt.Fprintf(a.stdout, "the next broker may be restarted: %d are registered, nothing is on its way\n", g.Brokers)
				} else {
					fmt.Fprintln(a.stdout, "no broker may be restarted now")
					printLeftOut(a.stdout, "Why", g.Why)
				}
			} else if err := a.encode(output, g); err != nil {
				return err
			}
			if !g.Open {
				return exitCode(exitPlanned)
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait so long until it may")
	cmd.Flags().DurationVar(&calm, "calm", 3*time.Second, "for how long everything must be well")
	cmd.Flags().IntVar(&want, "brokers", 0, "how many brokers must be registered; 0 = at least two")
	return cmd
}

// gate is what restart-gate prints.
type gate struct {
	Open    bool           `json:"open"`
	Brokers int            `json:"brokers"`
	Why     []plan.LeftOut `json:"why,omitempty"`
}

func (a *app) restartGate(ctx context.Context, want int, wait, calm time.Duration) (*gate, error) {
	l, err := a.live(ctx)
	if err != nil {
		return nil, err
	}
	defer l.end()
	var sentry *control.Sentry
	if published := l.ownership(); published != nil {
		limits := control.WatchLimits(l.settings.Settings)
		limits.Gone = 1 // an owner that is not registered is reason enough at once
		sentry = control.NewSentry(published, limits, l.topicFacts())
	}
	clock := control.SystemClock{}
	end := clock.Now().Add(wait)
	var well time.Time
	for {
		f, err := l.gateFacts(ctx, sentry, want)
		if err != nil {
			return nil, err
		}
		g := &gate{Brokers: len(f.Snapshot.Brokers), Why: drain.Gate(f)}
		now := clock.Now()
		switch {
		case len(g.Why) > 0:
			well = time.Time{}
			if !now.Before(end) {
				return g, nil
			}
		case well.IsZero():
			well = now
		}
		if g.Open = !well.IsZero() && now.Sub(well) >= calm; g.Open {
			return g, nil
		}
		if err := clock.Sleep(ctx, min(time.Second, max(calm/3, 50*time.Millisecond))); err != nil {
			return nil, err
		}
	}
}

func (l *live) gateFacts(ctx context.Context, sentry *control.Sentry, want int) (drain.Facts, error) {
	look, err := l.views.Look(ctx, control.SystemClock{}.Now())
	if err != nil {
		return drain.Facts{}, err
	}
	f := drain.Facts{Snapshot: look.Snapshot, Silent: map[string]string{}, NotReady: map[string]string{}, Missing: look.Missing, Want: want, CaughtUp: true}
	if published := l.ownership(); published != nil {
		f.Owners, f.CaughtUp = published.Ownership(), published.CaughtUp()
		if f.Anomalies, err = sentry.Look(ctx, control.SystemClock{}.Now(), look.Snapshot); err != nil {
			l.logger.Warn("who writes to the ownership topic is not known", "error", err)
		}
	}
	for _, why := range look.Frozen {
		switch why.Code { // the others have reasons of their own
		case control.NotHeard.ID, control.NoAnswer.ID:
		case control.NotCaught.ID:
			if f.CaughtUp { // of another topic than that of ownership
				f.Frozen = append(f.Frozen, why)
			}
		default:
			f.Frozen = append(f.Frozen, why)
		}
	}
	for i := range look.Snapshot.Brokers {
		b := &look.Snapshot.Brokers[i]
		if b.LoadManager == "" {
			f.Silent[b.ID] = "it did not tell its configuration"
		} else if err := l.cluster.Ready(ctx, b.ID); err != nil {
			f.NotReady[b.ID] = err.Error()
		}
	}
	return f, nil
}
