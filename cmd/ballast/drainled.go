package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// brokerID is a broker's id as operators may write it.
func brokerID(name string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "http://"), "https://"), "/")
}

// tellDrain sends a drain or undrain to the leader.
func (s *session) tellDrain(ctx context.Context, what, broker, reason string, also []string, wait time.Duration) (control.Record, error) {
	args := control.DrainArgs{Broker: brokerID(broker)}
	for _, id := range also {
		args.Also = append(args.Also, brokerID(id))
	}
	c := control.NewCommand(what, operator(), time.Now(), wait)
	c.Reason = reason
	var err error
	if c.Args, err = json.Marshal(args); err != nil {
		return control.Record{}, err
	}
	r, err := control.Send(ctx, s.log, s.cluster, c)
	switch {
	case errors.Is(err, control.ErrNoAnswer):
		return r, fmt.Errorf("%w; what holds the lock may be a command of another operator", err)
	case err == nil && !r.Answer.Done:
		return r, fmt.Errorf("%s refused: %s", r.Instance, r.Answer.Text)
	}
	return r, err
}

// drainLed lets the leader drain a broker and follows it in the decision log until the broker is empty. An error that is
// control.ErrNoLeader means that nobody leads, and nothing was done.
func (a *app) drainLed(ctx context.Context, o operation, broker string, also []string, how drainHow) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	n, err := s.cluster.Publishers(ctx, topics.Leader)
	switch {
	case err != nil:
		return err
	case n == 0:
		return control.ErrNoLeader
	case how.hold > 0:
		return errors.New("--hold is for a drain while no Ballast governs: beside one it lasts until ballast undrain")
	}
	sub, err := s.log.Subscribe(ctx, topics.Decisions, topics.SubscribeOptions{From: topics.Latest})
	if err != nil {
		return fmt.Errorf("read %s: %w", topics.Decisions, err)
	}
	defer sub.Close()
	answer, err := s.tellDrain(ctx, control.CommandDrain, broker, o.reason, also, how.wait)
	if err != nil {
		return err
	}
	id := brokerID(broker)
	s.logger.Info("the leader drains", "broker", id, "leader", answer.Instance, "answer", answer.Answer.Text)
	out := &operated{Executed: true, Plan: []plan.Decision{}}
	if !how.detach {
		following, cancel := ctx, context.CancelFunc(func() {})
		if how.follow > 0 {
			following, cancel = context.WithTimeout(ctx, how.follow)
		}
		defer cancel()
		err = s.followDrain(following, sub, id, answer.Command.ID, out)
		switch {
		case ctx.Err() != nil:
			s.logger.Info("the leader goes on with the drain; ballast undrain ends it", "broker", id)
			err = exitCode(exitError) // it was stopped before the broker was known to be empty
		case err != nil && following.Err() != nil:
			err = fmt.Errorf("%s is not empty after %v (--follow): the leader goes on with the drain; ballast undrain ends it", id, how.follow)
		default:
			out.LeftOut = append(out.LeftOut, s.elsewhere(ctx, id)...)
		}
	}
	switch {
	case o.output != "table":
		err = errors.Join(err, a.encode(o.output, out))
	case how.detach:
		_, err = fmt.Fprintf(a.stdout, "%s: %s\n", answer.Instance, answer.Answer.Text)
	default:
		printOperated(a.stdout, out)
	}
	if err == nil && slices.ContainsFunc(out.LeftOut, nowhere) {
		return exitCode(exitError)
	}
	return err
}

// followDrain reads what the leader, or the one after it, does for a drain, from its command on, until the broker is empty or gone.
func (s *session) followDrain(ctx context.Context, sub topics.Subscription, id, command string, out *operated) error {
	frozen := "" // why the leader decides nothing, as it was said last
	for heard := false; ; {
		m, err := sub.Receive(ctx)
		if err != nil {
			return fmt.Errorf("read %s: %w", topics.Decisions, err)
		}
		r, err := control.DecodeRecord(m.Payload)
		if err != nil {
			continue // a tombstone, or a record of a newer version
		}
		switch {
		case r.Kind == control.KindCommand && r.Command.ID == command:
			heard = true
		case !heard:
		case r.Kind == control.KindCommand && r.Command.What == control.CommandUndrain && r.Answer.Done:
			var args control.DrainArgs
			if json.Unmarshal(r.Command.Args, &args) == nil && args.Broker == id {
				return fmt.Errorf("%s ended the drain of %s before it was empty: %s", r.Command.By, id, dash(r.Command.Reason))
			}
		case r.Kind == control.KindOutcome && r.Outcome.Decision.Source == id && r.Outcome.Decision.Why.Code == drain.Leaves.ID:
			x := *r.Outcome
			out.Plan, out.Outcomes = append(out.Plan, x.Decision), append(out.Outcomes, x)
			s.logger.Info("drain", "bundle", x.Decision.Bundle, "to", x.Decision.Destination, "result", x.Result, "millis", x.Millis, "why", x.Why)
		case r.Kind == control.KindPlan:
			broker, over, ok := control.DrainOf(r)
			if !ok {
				if now := codes(r.Frozen); now != frozen {
					if frozen = now; now != "" {
						s.logger.Warn("the drain waits: the leader decides nothing now", "codes", now, "why", r.Frozen[0].String())
					}
				}
				continue
			}
			if broker != id {
				continue
			}
			s.logger.Info("drain", "round", r.Cycle, "outcome", r.Plan.Outcome.String())
			if out.LeftOut = r.LeftOut; over {
				said := "the broker is empty"
				if r.Plan.Outcome.Code == drain.Unknown.ID {
					said = "the broker has left the registry"
				}
				s.logger.Info(said, "broker", id, "moved", len(out.Outcomes), "stay", len(r.LeftOut))
				return nil
			}
			for _, l := range r.LeftOut {
				s.logger.Info("stays", "bundle", l.Bundle, "code", l.Why.Code, "why", l.Why.String())
			}
		}
	}
}

// codes are the codes of reasons, in one text.
func codes(reasons []plan.Reason) string {
	var list []string
	for _, r := range reasons {
		list = append(list, r.Code)
	}
	return strings.Join(list, " ")
}

// standing are the drains that the decision log has, of a leader that may be gone.
func (s *session) standing(ctx context.Context) (map[string]control.DrainOrder, error) {
	sub, err := s.log.Subscribe(ctx, topics.Decisions, topics.SubscribeOptions{From: topics.Earliest, Compacted: true, Existing: true})
	if errors.Is(err, topics.ErrNoTopic) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topics.Decisions, err)
	}
	defer sub.Close()
	past := control.NewPast()
	if err := topics.Drain(ctx, sub, func(m topics.Message) error {
		past.Apply(m.Key, m.Payload)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read %s: %w", topics.Decisions, err)
	}
	return control.Drains(past.Orders())
}

// undrain ends a drain.
func (a *app) undrain(ctx context.Context, broker, reason string, wait time.Duration) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	r, err := s.tellDrain(ctx, control.CommandUndrain, broker, reason, nil, wait)
	switch {
	case err == nil:
		_, err = fmt.Fprintf(a.stdout, "%s: %s\n", r.Instance, r.Answer.Text)
		return err
	case !errors.Is(err, control.ErrNoLeader):
		return err
	}
	orders, err := s.standing(ctx)
	if err != nil {
		return err
	}
	id := brokerID(broker)
	if order, ok := orders[id]; ok {
		return fmt.Errorf("%s has been drained since %s by order of %s, and nobody governs now: the next leader goes on with it; start one and undrain then",
			id, stamp(time.UnixMilli(order.Since)), dash(order.By))
	}
	_, err = fmt.Fprintf(a.stdout, "%s is not drained: it takes bundles as the cluster places them\n", id)
	return err
}
