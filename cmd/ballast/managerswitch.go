package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/manager"
	"github.com/ballast-lb/ballast/plan"
)

// switchPoll is the pause between two looks at whether the brokers have followed.
const switchPoll = time.Second

// switchOptions are the flags of manager switch.
type switchOptions struct {
	output  string
	execute bool
	reason  string
	wait    time.Duration
}

func newManagerSwitch(a *app) *cobra.Command {
	var o switchOptions
	cmd := &cobra.Command{
		Use:   "switch NAME",
		Short: "Switch all brokers to a load manager at run time, when that breaks nothing",
		Long: `NAME is simple or modular. Checks as ballast manager check does, prints what it would do and does it only with --execute:
sets loadManagerClassName dynamically, then waits until every broker runs it and topics are found. What breaks is refused;
the Extensible load manager is entered and left by restarting brokers (ballast migrate plan).

Exit code: 0 done or nothing to do, 2 there is something to do (without --execute), 1 refused, not verified, or an error.`,
		Args: oneName,
		PreRunE: func(*cobra.Command, []string) error {
			if o.wait < time.Second {
				return fmt.Errorf("--wait is %v: it must be 1s or more", o.wait)
			}
			return checkOutput(o.output)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.switchManager(cmd.Context(), args[0], o) },
	}
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "table, json or yaml")
	cmd.Flags().BoolVar(&o.execute, "execute", false, "make the change; without it, it is only planned")
	cmd.Flags().StringVar(&o.reason, "reason", "", "why; it goes into the decision log")
	cmd.Flags().DurationVar(&o.wait, "wait", 2*time.Minute, "how long to wait until every broker has followed")
	return cmd
}

// switched is the result of a switch.
type switched struct {
	manager.Check
	Executed bool              `json:"executed"`
	Verified bool              `json:"verified"`
	Looked   int               `json:"topicsLookedUp"`       // topics that were looked up afterwards
	Millis   int64             `json:"millis,omitempty"`     // until everything was verified
	Left     []manager.Finding `json:"unverified,omitempty"` // what is not as it should be
	Back     string            `json:"back,omitempty"`       // how to go back
}

func (a *app) switchManager(ctx context.Context, name string, o switchOptions) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	before, err := s.managersAndBallast(ctx)
	if err != nil {
		return err
	}
	out := switched{Check: manager.CheckSwitch(before, name)}
	if o.execute && !out.Refused && !out.Done {
		if err := s.carryOut(ctx, before, &out, o); err != nil {
			return err
		}
	}
	if o.output != "table" {
		err = a.encode(o.output, out)
	} else {
		a.printSwitched(out)
	}
	switch {
	case err != nil:
		return err
	case out.Refused || out.Executed && !out.Verified:
		return exitCode(exitError)
	case !out.Executed && !out.Done:
		return exitCode(exitPlanned)
	}
	return nil
}

func (a *app) printSwitched(out switched) {
	printCheck(a.stdout, out.Check)
	switch {
	case out.Verified:
		fmt.Fprintf(a.stdout, "\nDone: every broker runs %s, after %.1f s; %d topics were looked up and found.\n", out.To, float64(out.Millis)/1000, out.Looked)
	case out.Executed:
		fmt.Fprintf(a.stdout, "\nThe value was set, and this is not as it should be:")
		printFindings(a.stdout, out.Left)
		fmt.Fprintf(a.stdout, "\nTo go back: %s\n", out.Back)
	case !out.Refused && !out.Done:
		fmt.Fprintln(a.stdout, "\nNothing was changed: --execute does it.")
	}
}

// carryOut sets the value, under the lock that keeps other Ballast processes from acting, and verifies. The decision log has
// a record that it begins and one of what came of it.
func (s *session) carryOut(ctx context.Context, before *manager.Cluster, out *switched, o switchOptions) (err error) {
	journal := control.NewTopicJournal(s.log)
	m := &control.Manual{Instance: s.instance, Cluster: s.cluster, Lock: control.NewLock(s.log, s.instance, lockTimeout, time.Now),
		Journal: journal, Clock: control.SystemClock{}}
	if err := m.Begin(ctx); err != nil {
		return control.Beside(err, "stop it first")
	}
	defer func() { err = errors.Join(err, journal.Close(), m.End()) }()
	samples, err := s.sampleTopics(ctx, before)
	if err != nil {
		return err
	}
	change := control.ManagerSwitch{To: string(out.To), Class: out.To.Class()}
	for _, kind := range before.Kinds() {
		change.From = append(change.From, string(kind))
	}
	c := control.NewCommand(control.CommandSwitchManager, operator(), m.Clock.Now(), o.wait)
	c.Reason = o.reason
	if c.Args, err = json.Marshal(change); err != nil {
		return err
	}
	begins := fmt.Sprintf("from %s to %s: %s becomes %s", strings.Join(change.From, ", "), change.To, manager.Key, change.Class)
	return m.Change(ctx, c, begins, func(ctx context.Context) (control.Answer, error) {
		err := s.switchAndVerify(ctx, before, out, samples, o.wait)
		return out.answer(), err
	})
}

// answer is what came of a switch, for the decision log.
func (out *switched) answer() control.Answer {
	if out.Verified {
		return control.Answer{Done: true, Text: fmt.Sprintf("every broker runs %s, after %d ms; %d topics were looked up and found", out.To, out.Millis, out.Looked)}
	}
	var left []string
	for _, f := range out.Left {
		left = append(left, strings.TrimSpace(f.Broker+" "+f.Why.String()))
	}
	return control.Answer{Text: fmt.Sprintf("%s is set and after %d ms this is not as it should be: %s", manager.Key, out.Millis, strings.Join(left, "; "))}
}

// switchAndVerify sets the value and waits until every broker has followed.
func (s *session) switchAndVerify(ctx context.Context, before *manager.Cluster, out *switched, samples []manager.Lookup, wait time.Duration) error {
	out.Back = fmt.Sprintf("write %[1]s=%[2]s into every broker.conf, restart the brokers one by one, then ballast manager switch %[3]s", manager.Key, out.To.Class(), before.Kinds()[0])
	begun := time.Now()
	if err := s.cluster.SetDynamicConfig(ctx, manager.Key, out.To.Class()); err != nil {
		return err
	}
	out.Executed = true
	for clock := (control.SystemClock{}); ; {
		out.Left, out.Looked = s.unverified(ctx, before, out.To, samples)
		out.Millis = time.Since(begun).Milliseconds()
		if out.Verified = len(out.Left) == 0; out.Verified || time.Since(begun) > wait {
			return nil
		}
		if err := clock.Sleep(ctx, switchPoll); err != nil {
			return fmt.Errorf("%s is set and not verified (to go back: %s): %w", manager.Key, out.Back, err)
		}
	}
}

// unverified is what is not as it should be, now, and how many topics were looked up. While load managers change, brokers
// answer with errors: those are not yet as they should be, either.
func (s *session) unverified(ctx context.Context, before *manager.Cluster, to manager.Kind, samples []manager.Lookup) ([]manager.Finding, int) {
	after, err := s.managers(ctx)
	if err != nil {
		return []manager.Finding{{Severity: manager.Refuse, Why: manager.Unread.Because(plan.S("what", "the cluster"), plan.S("error", err.Error()))}}, 0
	}
	if left := manager.Verify(before, after, to, nil); len(left) > 0 {
		return left, 0 // look-ups would only add to what is going on
	}
	var looked []manager.Lookup
	for _, x := range samples {
		looked = append(looked, s.lookUp(ctx, x, after))
	}
	return manager.Verify(before, after, to, looked), len(looked)
}

// lookUp looks a topic up and asks the broker that it leads to whether it owns the bundle.
func (s *session) lookUp(ctx context.Context, x manager.Lookup, c *manager.Cluster) manager.Lookup {
	address, err := s.cluster.Lookup(ctx, x.Topic)
	if err != nil {
		x.Error = err.Error()
		return x
	}
	_, x.Broker, _ = strings.Cut(address, "://")
	if !slices.ContainsFunc(c.Brokers, func(b manager.Broker) bool { return b.ID == x.Broker }) { // another listener's address
		owner, err := s.cluster.OwnerOf(ctx, x.Bundle)
		if err != nil {
			x.Error = err.Error()
		}
		x.Owns = owner != ""
		return x
	}
	owned, err := s.cluster.Owned(ctx, x.Broker)
	if err != nil {
		x.Error = err.Error()
	}
	x.Owns = slices.Contains(owned, x.Bundle)
	return x
}

// samplesPerBroker is how many topics of each broker are looked up after a switch.
const samplesPerBroker = 3

// sampleTopics are topics of different bundles that the brokers serve now.
func (s *session) sampleTopics(ctx context.Context, c *manager.Cluster) ([]manager.Lookup, error) {
	var out []manager.Lookup
	for _, b := range c.Brokers {
		topics, err := s.cluster.TopicStats(ctx, b.ID)
		if err != nil {
			return nil, err
		}
		n, bundle := 0, ""
		for _, t := range topics {
			if t.Bundle == bundle || event.IsSystem(t.Bundle) || event.IsBrokerBound(t.Bundle) || n == samplesPerBroker {
				continue
			}
			bundle = t.Bundle
			n++
			out = append(out, manager.Lookup{Topic: t.Topic, Bundle: t.Bundle})
		}
	}
	return out, nil
}
