package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// operatorAsked is why an operator's own action is done.
var operatorAsked = plan.Code{ID: "OPERATOR_ASKED", Template: "an operator asked for it: {reason}"}

// operation is how an operator's command is carried out.
type operation struct {
	execute, beside bool
	reason, output  string
	promises        bool // the plan says what can be promised of destinations
}

func (o *operation) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.execute, "execute", false, "do it; without, only the plan is shown")
	f.BoolVar(&o.beside, "beside-leader", false, "act although a Ballast process acts: it notices before its own next action on the bundle")
	f.StringVar(&o.reason, "reason", "", "why; it goes into the decision log")
	f.StringVarP(&o.output, "output", "o", "table", "table, json or yaml")
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if o.beside && !o.execute {
			return errors.New("--beside-leader says how to act: it needs --execute")
		}
		return checkOutput(o.output)
	}
}

// why is the reason of the operation's decisions.
func (o *operation) why() plan.Reason {
	reason := o.reason
	if reason == "" {
		reason = "no reason given"
	}
	return operatorAsked.Because(plan.S("reason", reason))
}

const operationExit = `
Without --execute it changes nothing. Exit code: 0 it is done, or there is nothing to do; 2 there is a plan and it was not
executed; 1 it is refused, or failed.`

// operated is what an operator's command planned, and what came of it.
type operated struct {
	Plan     []plan.Decision   `json:"plan"` // what may run
	Refused  []guard.Refusal   `json:"refused,omitempty"`
	LeftOut  []plan.LeftOut    `json:"leftOut,omitempty"`
	Advice   []plan.LeftOut    `json:"advice,omitempty"` // what can be promised of destinations
	Executed bool              `json:"executed"`
	Outcomes []control.Outcome `json:"outcomes,omitempty"`
}

// live is a session that follows the cluster, with a look at it.
type live struct {
	*session
	views view
	look  *control.Look
	stop  func()
}

// live follows the cluster until it can be looked at. Load that was not heard is estimated.
func (a *app) live(ctx context.Context) (*live, error) {
	s, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	l := &live{session: s, stop: func() {}}
	if l.views, l.stop, err = s.follow(ctx, true); err != nil {
		s.close()
		return nil, err
	}
	if published := l.ownership(); published != nil {
		err = s.caughtUp(ctx, published, 30*time.Second)
	} else {
		err = s.settle(ctx, l.views, 30*time.Second)
	}
	if err == nil {
		l.look, err = l.views.Look(ctx, control.SystemClock{}.Now())
	}
	if err != nil {
		l.end()
		return nil, err
	}
	return l, nil
}

func (l *live) end() {
	l.stop()
	l.close()
}

// ownership are the views with the ownership log, nil on a cluster that has none.
func (l *live) ownership() *control.Views {
	published, _ := l.views.(*control.Views)
	return published
}

// manual carries out what an operator asks for.
func (l *live) manual(beside bool) (m *control.Manual, end func()) {
	journal := control.NewTopicJournal(l.log)
	m = &control.Manual{Instance: l.instance, Cluster: l.cluster, Journal: journal, Clock: control.SystemClock{}, Limits: l.limits()}
	var acting control.Cluster = l.cluster
	if !beside {
		m.Lock = control.NewLock(l.log, l.instance, lockTimeout, time.Now)
		acting = control.Locked(l.cluster, m.Lock)
	}
	m.Actor, _ = l.actor(acting, l.views)
	return m, func() {
		if err := errors.Join(journal.Close(), m.End()); err != nil {
			l.logger.Warn("give the lock up", "error", err)
		}
	}
}

// unanswered is the error of a command whose exit code is an answer, and 0 the good one: stopped by the user before its end it has
// not given it.
func unanswered(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return exitCode(exitError)
	}
	return err
}

// operateWait is how long an operator's command waits until the picture may be decided on.
const operateWait = 15 * time.Second

// trust waits until the look may be decided on.
func (l *live) trust(ctx context.Context, wait time.Duration) error {
	if len(l.look.Frozen) == 0 {
		return nil
	}
	l.logger.Info("waiting until the cluster can be judged", "code", l.look.Frozen[0].Code, "why", l.look.Frozen[0].String(), "most", wait)
	clock := control.SystemClock{}
	look, err := control.Trusted(ctx, l.views, clock, clock.Now().Add(wait), nil)
	if err != nil {
		return err
	}
	l.look = look
	return nil
}

// operate plans with build, checks the plan as the guard does, and carries it out with --execute.
func (a *app) operate(ctx context.Context, o operation, wait time.Duration, build func(*live) ([]plan.Decision, []plan.LeftOut, error)) error {
	l, err := a.live(ctx)
	if err != nil {
		return unanswered(ctx, err)
	}
	defer l.end()
	return unanswered(ctx, a.operateOn(ctx, l, o, wait, build))
}

func (a *app) operateOn(ctx context.Context, l *live, o operation, wait time.Duration, build func(*live) ([]plan.Decision, []plan.LeftOut, error)) error {
	if err := l.trust(ctx, wait); err != nil {
		return err
	}
	decisions, left, err := build(l)
	if err != nil {
		return err
	}
	// Cool-downs and budgets are for what Ballast decides by itself; the pace holds for everybody.
	verdict := guard.Check(l.look.Snapshot, decisions, control.PolicyView(l.look.Snapshot), guard.State{Version: 1}, guard.Limits{})
	out := &operated{Plan: verdict.Run, Refused: verdict.Refused, LeftOut: left}
	if o.promises {
		out.Advice = l.promise(len(out.Plan), nil)
	}
	if o.execute && len(out.Plan) > 0 {
		m, end := l.manual(o.beside)
		defer end()
		m.Exact = true
		if err := m.Begin(ctx); err != nil {
			return control.Beside(err, "stop it first, or pass --beside-leader")
		}
		out.Executed = true
		err = m.Run(ctx, out.Plan, func(x control.Outcome) { out.Outcomes = append(out.Outcomes, x) })
	}
	if o.output != "table" {
		err = errors.Join(err, a.encode(o.output, out))
	} else {
		printOperated(a.stdout, out)
	}
	switch failed := slices.ContainsFunc(out.Outcomes, control.Outcome.Failed); {
	case err != nil:
		return err
	case len(out.Refused) > 0 || failed:
		return exitCode(exitError)
	case len(out.Plan) > 0 && !out.Executed:
		return exitCode(exitPlanned)
	}
	return nil
}

func printOperated(w io.Writer, o *operated) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if len(o.Plan)+len(o.Refused) > 0 {
		fmt.Fprintln(t, "ACTION\tBUNDLE\tFROM\tTO\tMB/S\tTOPICS\tWHAT CAME OF IT")
	}
	row := func(d plan.Decision, what string) {
		to := d.Destination
		if to == "" {
			to = "(the cluster chooses)"
		}
		if d.Action == plan.Split {
			to = strings.Join(d.Boundaries, " ")
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.3f\t%d\t%s\n", d.Action, d.Bundle, dash(d.Source), dash(to), d.Throughput/1e6, d.Topics, what)
	}
	for i, d := range o.Plan {
		what := "planned; --execute does it"
		switch {
		case i < len(o.Outcomes):
			x := o.Outcomes[i]
			what = strings.TrimSpace(fmt.Sprintf("%s after %d ms %s", x.Result, x.Millis, x.Why))
		case o.Executed:
			what = "not begun"
		}
		row(d, what)
	}
	for _, r := range o.Refused {
		row(r.Decision, "REFUSED: "+r.Why.Code+" "+r.Why.String())
	}
	t.Flush()
	if len(o.Plan)+len(o.Refused) == 0 {
		fmt.Fprintln(w, "nothing to do")
	}
	printLeftOut(w, "Left out", o.LeftOut)
	printLeftOut(w, "Advice", o.Advice)
}

// bundle checks that a bundle exists.
func (l *live) bundle(ctx context.Context, name string) (event.BundleName, error) {
	b, err := event.ParseBundle(name)
	if err != nil {
		return b, err
	}
	all, err := l.cluster.Bundles(ctx, b.Namespace)
	if err != nil {
		return b, fmt.Errorf("bundle %s: %w", name, err)
	}
	if slices.Contains(all, b.String()) {
		return b, nil
	}
	for _, other := range all {
		if o, err := event.ParseBundle(other); err == nil && o.Range.Contains(b.Range.Lower) {
			return b, fmt.Errorf("bundle %s does not exist: namespace %s has %d bundles, %s among them", name, b.Namespace, len(all), other)
		}
	}
	return b, fmt.Errorf("bundle %s does not exist in namespace %s", name, b.Namespace)
}

// broker checks that a broker is registered.
func (l *live) broker(flag, name string) (string, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "http://"), "https://"), "/")
	if l.look.Snapshot.BrokerIndex(id) >= 0 {
		return id, nil
	}
	var ids []string
	for i := range l.look.Snapshot.Brokers {
		ids = append(ids, l.look.Snapshot.Brokers[i].ID)
	}
	return "", fmt.Errorf("%s is %q: it must be a registered broker, one of %s", flag, name, strings.Join(ids, ", "))
}

// decision is an action on a bundle with what is known of it.
func (l *live) decision(action plan.Action, bundle, source, destination string, why plan.Reason) plan.Decision {
	d := plan.Decision{Action: action, Bundle: bundle, Source: source, Destination: destination, Label: "Success", PulsarReason: plan.Admin, Why: why}
	if i := l.look.Snapshot.BundleIndex(bundle); i >= 0 {
		s := l.look.Snapshot.Bundles[i].Stats
		d.Throughput, d.MsgRate, d.Topics = s.MsgThroughputIn+s.MsgThroughputOut, s.MsgRateIn+s.MsgRateOut, s.Topics
	}
	return d
}

// statistics fills the figures of all bundles into the look.
func (l *live) statistics(ctx context.Context) error {
	snap, err := l.figures(ctx, l.look.Snapshot)
	if err != nil {
		return err
	}
	l.look.Snapshot = snap
	return nil
}

// figures fills the figures of all bundles into a snapshot, from the brokers' own statistics of topics: what brokers publish
// names only their top bundles.
func (s *session) figures(ctx context.Context, of *cluster.Snapshot) (*cluster.Snapshot, error) {
	snap := *of
	snap.Bundles = slices.Clone(snap.Bundles)
	for i := range snap.Brokers {
		list, err := s.cluster.TopicStats(ctx, snap.Brokers[i].ID)
		if err != nil {
			return nil, err
		}
		begun := map[int]bool{}
		for _, t := range list {
			at := snap.BundleIndex(t.Bundle)
			if at < 0 {
				continue
			}
			b := &snap.Bundles[at]
			if b.Owner != "" && b.Owner != snap.Brokers[i].ID {
				continue // it has moved on
			}
			if !begun[at] {
				begun[at] = true
				b.Stats, b.Known = event.NamespaceBundleStats{}, true
			}
			b.Stats.MsgRateIn += t.MsgRateIn
			b.Stats.MsgThroughputIn += t.MsgThroughputIn
			b.Stats.MsgRateOut += t.MsgRateOut
			b.Stats.MsgThroughputOut += t.MsgThroughputOut
			b.Stats.ProducerCount += t.Producers
			b.Stats.ConsumerCount += t.Consumers
			b.Stats.Topics++
		}
	}
	return snap.Index(), nil
}

// owned is a bundle when a broker serves it. Where the owners in a look follow from load reports the brokers are asked before a bundle
// counts as nobody's: of one that does not report nothing is known.
func (l *live) owned(ctx context.Context, bundle string) (*cluster.Bundle, bool, error) {
	at := func() (*cluster.Bundle, bool) {
		i := l.look.Snapshot.BundleIndex(bundle)
		if i < 0 || l.look.Snapshot.Bundles[i].Owner == "" {
			return nil, false
		}
		return &l.look.Snapshot.Bundles[i], true
	}
	if b, ok := at(); ok {
		return b, true, nil
	}
	o, err := l.views.Owner(ctx, bundle)
	if err != nil {
		return nil, false, err
	}
	if o.Owner != "" && o.State == event.Owned {
		l.look.Snapshot = l.look.Snapshot.WithOwners(map[string]string{bundle: o.Owner})
	}
	b, ok := at()
	return b, ok, nil
}
