package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/topics"
)

func newPlace(a *app) *cobra.Command {
	var output string
	var execute bool
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "place NAMESPACE",
		Short: "Give the unowned bundles of a namespace their brokers before anybody looks them up",
		Long: `Plans a broker for every bundle of the namespace that nobody owns: within the policies, evenly, and among equals by the
cluster's placement strategy. With --execute the placements are written onto the ownership topic, the first one alone, and
each is followed until the broker has the bundle. Without, nothing is changed.

Only for clusters with the Extensible load manager. Refuses while a Ballast process acts on the cluster.

Exit code: 0 there is nothing to do or all was done, 2 there is a plan, 1 an error or something was not placed.`,
		Args: one("NAMESPACE", aNamespace),
		RunE: func(cmd *cobra.Command, args []string) error {
			cy, err := a.place(cmd.Context(), args[0], execute, wait)
			if err != nil {
				return err
			}
			if output == "table" {
				printPlacements(a, cy)
			} else if err := a.encode(output, cy); err != nil {
				return err
			}
			return placeCode(cy, execute)
		},
		PreRunE: func(*cobra.Command, []string) error { return checkOutput(output) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table, json or yaml")
	cmd.Flags().BoolVar(&execute, "execute", false, "write the placements onto the ownership topic")
	cmd.Flags().DurationVar(&wait, "wait", 20*time.Second, "how long to wait for brokers to be heard; what is missing then is estimated from their metrics")
	return cmd
}

func placeCode(cy *control.Cycle, execute bool) error {
	switch {
	case len(cy.Frozen) > 0:
		return exitCode(exitError)
	case len(cy.Plan.Decisions) > 0 && !execute:
		return exitCode(exitPlanned)
	}
	for _, o := range cy.Outcomes {
		if o.Result != control.Done && o.Result != control.Lost {
			return exitCode(exitError)
		}
	}
	return nil
}

// place plans the placements of a namespace and, with execute, carries them out.
func (a *app) place(ctx context.Context, namespace string, execute bool, wait time.Duration) (*control.Cycle, error) {
	if why := policy.Unmanaged(namespace, nil); !why.IsZero() {
		return nil, fmt.Errorf("NAMESPACE is %q: %s", namespace, why.Text)
	}
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer s.close()
	names, err := s.cluster.Bundles(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("NAMESPACE is %q: %w", namespace, err)
	}
	if why, err := control.ChannelCheck(ctx, s.cluster); err != nil {
		return nil, err
	} else if why.Code != "" {
		return nil, fmt.Errorf("placements are written onto the ownership topic, and nothing may be written there: %s (%s)", why, why.Code)
	}
	followed, stop, err := s.follow(ctx, false)
	if err != nil {
		return nil, err
	}
	defer stop()
	views, ok := followed.(*control.Views)
	if !ok {
		return nil, errNoChannel
	}
	if err := s.settle(ctx, views, wait); err != nil {
		return nil, err
	}
	views.Estimate(true)
	manager, _, err := s.manager()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	look, err := views.Look(ctx, now)
	if err != nil {
		return nil, err
	}
	cy := &control.Cycle{N: 1, At: now.UnixMilli(), Mode: control.Advise, Snapshot: look.Snapshot, Missing: look.Missing, Frozen: look.Frozen}
	if len(cy.Frozen) > 0 {
		cy.Plan = plan.Plan{At: cy.At, Decisions: []plan.Decision{}, Outcome: cy.Frozen[0]}
		return cy, nil
	}
	trace := new(plan.Trace)
	cy.Plan, _ = control.PlaceEvenly(look.Snapshot, names, manager, manager.NewState(), rand.New(rand.NewPCG(uint64(now.UnixNano()), 0)), trace)
	cy.LeftOut = unplaced(trace, namespace)
	if !execute || len(cy.Plan.Decisions) == 0 {
		return cy, nil
	}
	cy.Mode = control.Govern
	return cy, s.placeNow(ctx, views, cy, func(snap *cluster.Snapshot) plan.Plan {
		p, _ := control.PlaceEvenly(snap, names, manager, manager.NewState(), rand.New(rand.NewPCG(uint64(now.UnixNano()), 0)), nil)
		return p
	})
}

// unplaced is what was left out of the bundles themselves; that a broker was no candidate for one is no news.
func unplaced(trace *plan.Trace, namespace string) (out []plan.LeftOut) {
	for _, l := range trace.Entries {
		if (l.Why.Code == control.PlaceNobody.ID || l.Why.Code == control.PlaceInFlight.ID) && event.NamespaceOf(l.Bundle) == namespace {
			out = append(out, l)
		}
	}
	return out
}

// placeNow carries placements out under the lock, with their intents and outcomes in the decision log.
// When a broker gives a bundle an owner meanwhile, what is left is planned anew, so that it comes out even.
func (s *session) placeNow(ctx context.Context, views *control.Views, cy *control.Cycle, again func(*cluster.Snapshot) plan.Plan) (err error) {
	for _, topic := range []string{topics.Leader, topics.Decisions} {
		if err := s.cluster.CreateTopic(ctx, topic); err != nil {
			return fmt.Errorf("create %s: %w", topic, err)
		}
	}
	lock := control.NewLock(s.log, s.instance, lockTimeout, time.Now)
	if err := lock.Acquire(ctx, false); err != nil {
		if errors.Is(err, control.ErrNotHolder) {
			return fmt.Errorf("a Ballast process acts on this cluster; with ballastPrePlace it places by itself: %w", err)
		}
		return err
	}
	journal := control.NewTopicJournal(s.log)
	channel := s.channel(views, lock, nil)
	defer func() { err = errors.Join(err, channel.Close(), journal.Close(), lock.Release()) }()
	record := func(kind control.Kind) control.Record {
		return control.Record{Version: control.RecordVersion, Kind: kind, At: time.Now().UnixMilli(), Instance: s.instance, Cycle: cy.N, Mode: cy.Mode}
	}
	r := record(control.KindPlan)
	r.Plan, r.LeftOut = &cy.Plan, cy.LeftOut
	if err := journal.Append(ctx, r); err != nil {
		return fmt.Errorf("decision log: %w", err)
	}
	changed := false
	hooks := control.Hooks{
		Begin: func(ctx context.Context, ds []plan.Decision) ([]string, error) {
			why, intents := make([]string, len(ds)), make([]control.Record, len(ds))
			for i := range ds {
				why[i] = "planned anew"
				intents[i] = record(control.KindIntent)
				intents[i].Decision = &ds[i]
			}
			if changed {
				return why, nil
			}
			if err := lock.Confirm(ctx, fmt.Sprintf("place %d bundles", len(ds))); err != nil {
				return nil, err
			}
			return nil, journal.AppendAll(ctx, intents)
		},
		End: func(o control.Outcome) error {
			if o.Result == control.Skipped && o.Attempts == 0 && (changed || s.taken(views, o.Decision.Bundle)) {
				changed = true
				return nil // it has an owner, or comes again
			}
			changed = changed || o.Result == control.Lost || o.Result == control.Elsewhere
			cy.Outcomes = append(cy.Outcomes, o)
			r := record(control.KindOutcome)
			r.Outcome = &o
			return journal.Append(context.WithoutCancel(ctx), r)
		},
	}
	for round, ds := 1, cy.Plan.Decisions; ; round++ {
		if err := channel.RunAll(ctx, ds, hooks); err != nil || !changed {
			return err
		}
		if round == placeRounds {
			return fmt.Errorf("bundles of the namespace got owners in each of %d rounds: run ballast place again", placeRounds)
		}
		changed = false
		look, err := views.Look(ctx, time.Now())
		if err != nil {
			return err
		}
		if len(look.Frozen) > 0 {
			return fmt.Errorf("the rest is not placed: %s (%s)", look.Frozen[0], look.Frozen[0].Code)
		}
		ds = again(look.Snapshot).Decisions
	}
}

// placeRounds is how often placements are planned anew.
const placeRounds = 5

// taken says whether somebody owns a bundle by now, or is about to.
func (s *session) taken(views *control.Views, bundle string) bool {
	record, _ := views.Ownership().Get(bundle)
	return ownership.Active(record.State())
}

func printPlacements(a *app, cy *control.Cycle) {
	if len(cy.Frozen) > 0 || len(cy.Outcomes) == 0 {
		printVerdict(a.stdout, cy)
		return
	}
	fmt.Fprintf(a.stdout, "%s: %s\n\n", cy.Plan.Strategy, cy.Plan.Outcome)
	for _, o := range cy.Outcomes {
		fmt.Fprintf(a.stdout, "%s\t%s\t%s\t%d ms\t%s\n", o.Decision.Bundle, o.Decision.Destination, o.Result, o.Millis, o.Why)
	}
	printLeftOut(a.stdout, "Left out", cy.LeftOut)
}
