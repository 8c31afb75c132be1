package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// Elector makes one of several processes the leader. While it does not lead it reads the decision log along, so that it can
// go on at once where another one ends. It is for one goroutine at a time.
type Elector struct {
	log    topics.Log
	lock   *Lock
	clock  Clock
	logger *slog.Logger

	past      *Past
	epoch     int64 // the highest that was confirmed on the lock's topic
	own       int64 // in which this process leads, as far as it knows; 0 = it does not
	leader    topics.Subscription
	decisions topics.Subscription
	commands  topics.Subscription
	inbox     []received
}

// received is a command and when it was heard, by our clock.
type received struct {
	Command
	at time.Time
}

// NewElector makes the elector of one process. Close ends its subscriptions.
func NewElector(log topics.Log, lock *Lock, clock Clock, logger *slog.Logger) *Elector {
	return &Elector{log: log, lock: lock, clock: clock, logger: logger, past: NewPast()}
}

// barrierLimit bounds the wait for what was just written to come back.
const barrierLimit = 5 * time.Second

// Elect takes the lock, finds the next epoch and has lead write a first record of it, whose key it returns. When that record
// has come back, everything that was written before it is in the history. ErrNotHolder: another process leads.
func (e *Elector) Elect(ctx context.Context, lead func(ctx context.Context, epoch int64) (key string, err error)) (*Past, error) {
	e.own = 0
	if err := e.Follow(ctx); err != nil {
		return nil, err
	}
	if err := e.lock.Acquire(ctx, false); err != nil {
		return nil, err
	}
	acquired := e.lock.sent()
	var last topics.MessageID
	err := e.await(ctx, e.leader, func(m topics.Message) { e.lead(m); last = m.ID }, func() bool {
		return last.Ledger > acquired.Ledger || last.Ledger == acquired.Ledger && last.Entry >= acquired.Entry
	})
	if err != nil {
		return nil, fmt.Errorf("%w: read back %s: %w", ErrStepDown, topics.Leader, err)
	}
	// A log that was lost and begun anew must not lead to an epoch that the decision log has already.
	epoch := max(e.epoch, e.past.Epoch) + 1
	if err := e.lock.begin(ctx, epoch); err != nil {
		return nil, err
	}
	key, err := lead(ctx, epoch)
	if err != nil {
		return nil, err
	}
	if err := e.await(ctx, e.decisions, e.decide, func() bool { return e.past.last == key }); err != nil {
		return nil, fmt.Errorf("%w: read back %s: %w", ErrStepDown, topics.Decisions, err)
	}
	e.own = epoch
	return e.past, e.deposed()
}

// deposed is an error when the decision log says that a later leader is there: one that was frozen after it took the lock may
// not take what its successor is doing for what a leader before it has left.
func (e *Elector) deposed() error {
	if e.own > 0 && e.past.Epoch > e.own {
		return fmt.Errorf("%w: this is epoch %d, and epoch %d leads by now", ErrNotHolder, e.own, e.past.Epoch)
	}
	return nil
}

// Follow takes in what has been written since the last call. The first one reads the topics from their beginning. ErrNotHolder:
// another process has come to lead.
func (e *Elector) Follow(ctx context.Context) error {
	err := e.follow(ctx)
	e.tidy()
	switch {
	case err == nil:
		return e.deposed()
	case ctx.Err() == nil:
		return errors.Join(err, e.Close()) // the next call begins anew
	}
	return err
}

// keptFor is how long a command is kept that nobody answers, beyond what its sender waits.
const keptFor = 10 * time.Minute

// tidy forgets the commands that were answered, or are too old for an answer.
func (e *Elector) tidy() {
	now := e.clock.Now()
	e.inbox = slices.DeleteFunc(e.inbox, func(r received) bool {
		_, answered := e.past.answered[r.ID]
		return answered || now.Sub(r.at) > time.Duration(r.Wait)*time.Millisecond+keptFor
	})
}

func (e *Elector) follow(ctx context.Context) error {
	for _, f := range []struct {
		topic string
		sub   *topics.Subscription
		from  topics.Position
		apply func(topics.Message)
		begin func()
	}{
		// A command from before this process began is too old, or the leader of then has answered it.
		{topics.Commands, &e.commands, topics.Latest, e.command, func() { e.inbox = nil }},
		{topics.Leader, &e.leader, topics.Earliest, e.lead, func() {}},
		{topics.Decisions, &e.decisions, topics.Earliest, e.decide, func() { e.past = NewPast() }},
	} {
		if *f.sub != nil && lossy((*f.sub).Status()) {
			// What is missing may matter. The topic still holds it.
			if err := (*f.sub).Close(); err != nil {
				return err
			}
			*f.sub = nil
		}
		if *f.sub == nil {
			sub, err := e.log.Subscribe(ctx, f.topic, topics.SubscribeOptions{From: f.from, Compacted: f.from == topics.Earliest})
			if err != nil {
				return fmt.Errorf("read %s: %w", f.topic, err)
			}
			*f.sub = sub
			f.begin()
			if err := drainAll(ctx, sub, f.apply); err != nil {
				return fmt.Errorf("read %s: %w", f.topic, err)
			}
			continue
		}
		if err := takeIn(ctx, *f.sub, f.apply); err != nil {
			return fmt.Errorf("read %s: %w", f.topic, err)
		}
	}
	return nil
}

func (e *Elector) lead(m topics.Message) {
	var r leaderRecord
	if err := json.Unmarshal(m.Payload, &r); err != nil {
		e.logger.Warn("record of the leader skipped", "id", m.ID.String(), "error", err)
		return
	}
	e.epoch = max(e.epoch, r.Epoch)
}

func (e *Elector) decide(m topics.Message) { e.past.Apply(m.Key, m.Payload) }

func (e *Elector) command(m topics.Message) {
	if m.Tombstone() {
		return
	}
	c, err := DecodeCommand(m.Payload)
	if err != nil {
		e.logger.Warn("command skipped", "id", m.ID.String(), "error", err)
		return
	}
	e.inbox = append(e.inbox, received{c, m.Received})
}

// next takes the next command that is wanted out of those that nobody has answered.
func (e *Elector) next(want func(Command) bool) (received, bool) {
	i := slices.IndexFunc(e.inbox, func(r received) bool { return want(r.Command) })
	if i < 0 {
		return received{}, false
	}
	r := e.inbox[i]
	e.inbox = slices.Delete(e.inbox, i, i+1)
	return r, true
}

// forget removes an answered command from its topic.
func (e *Elector) forget(ctx context.Context, id string) error {
	pub, err := e.log.Publisher(ctx, topics.Commands, topics.PublishOptions{})
	if err != nil {
		return err
	}
	_, err = pub.Publish(ctx, id, nil)
	return errors.Join(err, pub.Close())
}

// await takes in messages until done says so.
func (e *Elector) await(ctx context.Context, sub topics.Subscription, apply func(topics.Message), done func() bool) error {
	limit := e.clock.Now().Add(barrierLimit)
	for !done() {
		m, ok, err := tryReceive(ctx, sub)
		switch {
		case err != nil:
			return err
		case ok:
			apply(m)
		case !e.clock.Now().Before(limit):
			return fmt.Errorf("what was just written did not come back within %v", barrierLimit)
		default:
			if err := e.clock.Sleep(ctx, barrierPoll); err != nil {
				return err
			}
		}
	}
	return nil
}

const (
	barrierPoll = 5 * time.Millisecond
	quickWait   = 5 * time.Millisecond // for a message that may have come already
)

// Close ends the subscriptions. Follow begins them anew.
func (e *Elector) Close() error {
	var errs []error
	for _, sub := range []*topics.Subscription{&e.leader, &e.decisions, &e.commands} {
		if *sub != nil {
			errs = append(errs, (*sub).Close())
			*sub = nil
		}
	}
	return errors.Join(errs...)
}

type quickly interface {
	TryReceive() (topics.Message, bool, error)
}

// tryReceive is the next message if there is one. The log in memory answers at once, a real one within a moment.
func tryReceive(ctx context.Context, sub topics.Subscription) (topics.Message, bool, error) {
	if q, ok := sub.(quickly); ok {
		return q.TryReceive()
	}
	wait, cancel := context.WithTimeout(ctx, quickWait)
	defer cancel()
	m, err := sub.Receive(wait)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return topics.Message{}, false, nil
	}
	return m, err == nil, err
}

// takeIn applies what has come.
func takeIn(ctx context.Context, sub topics.Subscription, apply func(topics.Message)) error {
	for {
		m, ok, err := tryReceive(ctx, sub)
		if err != nil || !ok {
			return err
		}
		apply(m)
	}
}

// drainAll applies everything that the topic holds.
func drainAll(ctx context.Context, sub topics.Subscription, apply func(topics.Message)) error {
	if _, ok := sub.(quickly); ok {
		return takeIn(ctx, sub, apply)
	}
	return topics.Drain(ctx, sub, func(m topics.Message) error {
		apply(m)
		return nil
	})
}
