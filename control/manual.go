package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/topics"
)

// Manual carries out what an operator asks for, outside of a controller's cycles: under the lock on acting, at the pace of
// the limits, each action with its intent and its outcome in the decision log.
type Manual struct {
	Instance string
	Cluster  Cluster
	Lock     *Lock // nil = beside the process that acts, without the lock
	Journal  Journal
	Actor    Actor
	Clock    Clock
	Limits   guard.Limits
	Exact    bool // a move is done only once its destination owns the bundle, and not when it was released
}

// Begin takes the lock; ErrNotHolder means that another process acts.
func (m *Manual) Begin(ctx context.Context) error {
	for _, topic := range []string{topics.Leader, topics.Decisions} {
		if err := m.Cluster.CreateTopic(ctx, topic); err != nil {
			return fmt.Errorf("create %s: %w", topic, err)
		}
	}
	if m.Lock == nil {
		return nil
	}
	return m.Lock.Acquire(ctx, false)
}

// End gives the lock up.
func (m *Manual) End() error {
	if m.Lock == nil {
		return nil
	}
	return m.Lock.Release()
}

// Run carries the decisions out, one after the other, and calls each with what came of it. An error means that the right to
// act was lost, or that the decision log cannot be written: nothing further is begun.
func (m *Manual) Run(ctx context.Context, ds []plan.Decision, each func(Outcome)) error {
	for i, d := range ds {
		if m.Lock != nil {
			if err := m.Lock.Confirm(ctx, string(d.Action)+" "+d.Bundle); err != nil {
				return fmt.Errorf("stopped before %s: %w", d.Bundle, err)
			}
		} else if err := ctx.Err(); err != nil {
			return err
		}
		intent := m.stamped(Record{Kind: KindIntent, Decision: &d})
		if err := m.append(ctx, intent); err != nil {
			return err
		}
		out := m.Actor.Run(ctx, d)
		if m.Exact && out.Result == Done && d.Destination != "" && out.Owner != d.Destination {
			out.Result, out.Why = TimedOut, out.Why+": its first client decides where it goes, which may be another broker than "+d.Destination
		}
		each(out)
		// Also when ctx has ended meanwhile: an intent must not stand without what came of it.
		written, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		err := m.append(written, m.stamped(Record{Kind: KindOutcome, Of: intent.Key(), Outcome: &out}))
		cancel()
		if err != nil {
			return err
		}
		if pause := m.Limits.Pause(d); pause > 0 && i < len(ds)-1 {
			if err := m.Clock.Sleep(ctx, time.Duration(pause)*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

// changeRecorded is how long the record of what came of a change may take: the change may move the very topic.
const changeRecorded = 30 * time.Second

// Change carries out a change of the whole cluster, which c describes, under the lock. A record that it begins comes before
// it and one with the answer after it, with the same command id; without the first nothing is done. An error of do is the
// answer, too.
func (m *Manual) Change(ctx context.Context, c Command, begins string, do func(context.Context) (Answer, error)) error {
	if m.Lock != nil {
		if err := m.Lock.Confirm(ctx, c.What); err != nil {
			return fmt.Errorf("stopped before %s: %w", c.What, err)
		}
	}
	if err := m.append(ctx, m.stamped(Record{Kind: KindCommand, Command: &c, Answer: &Answer{Begun: true, Text: begins}})); err != nil {
		return err
	}
	answer, err := do(ctx)
	if err != nil {
		answer = Answer{Text: err.Error()}
	}
	written, cancel := context.WithTimeout(context.WithoutCancel(ctx), changeRecorded) // also when ctx has ended meanwhile
	defer cancel()
	return errors.Join(err, m.append(written, m.stamped(Record{Kind: KindCommand, Command: &c, Answer: &answer})))
}

// stamped is a record that is made now.
func (m *Manual) stamped(r Record) Record {
	r.Version, r.At, r.Instance, r.Mode = RecordVersion, m.Clock.Now().UnixMilli(), m.Instance, Govern
	return r
}

func (m *Manual) append(ctx context.Context, r Record) error {
	if err := m.Journal.Append(ctx, r); err != nil {
		return fmt.Errorf("decision log: %w", err)
	}
	return nil
}

// Failed says whether an outcome is not what was asked for.
func (o Outcome) Failed() bool { return o.Result != Done }

// left says whether a bundle is where it was no longer, wherever it is now: that is what a drain wants of a move.
func (o Outcome) left() bool { return o.Result == Done || o.Result == Elsewhere }

// PolicyView evaluates the snapshot's policies over its brokers; nil for a cluster without any.
func PolicyView(snap *cluster.Snapshot) *policy.View { return policies(snap) }

// Beside explains what to do when another process acts.
func Beside(err error, how string) error {
	if !errors.Is(err, ErrNotHolder) {
		return err
	}
	return fmt.Errorf("a Ballast process acts on this cluster, and two must not act without knowing of each other: %s: %w", how, err)
}

// BuiltInShedding says whether the cluster's own shedder is on.
func BuiltInShedding(ctx context.Context, c Cluster) (bool, error) { return builtInShedding(ctx, c) }
