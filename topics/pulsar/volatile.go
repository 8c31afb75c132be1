package pulsar

import (
	"context"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// volatile is a subscription of a non-persistent topic. All its messages have the id 0:0, so nothing can be placed or
// fetched: what matters is to be connected, to know when one was not, and to take every message that the broker sends.
// The library drops a lone tombstone here too, for good; that is counted in Status.Discarded.
type volatile struct {
	*loop
	consumers func(ctx context.Context, n topics.Name, subscription string) (int, error)
	exists    func(ctx context.Context, n topics.Name) (bool, error)
	auditDue  time.Time
	sound     time.Time // when the subscription was last known to work, by the status clock
}

var _ topics.Subscription = (*volatile)(nil)

// named is a source that knows the name of its subscription.
type named interface{ subscription() string }

// subscribe begins; it fails if the topic cannot be read now.
func (s *volatile) subscribe(ctx context.Context, o topics.SubscribeOptions, open func(tap) (source, error)) error {
	if o.Compacted {
		return fmt.Errorf("subscribe to %s: only persistent topics can be read compacted", s.name)
	}
	s.silence = o.Silence
	s.opener = func() func(tap) (source, error) { return open }
	s.opened = func(now time.Time) {
		s.auditDue, s.sound = now.Add(s.options.Audit), s.options.Now()
	}
	s.signal = func(signal, int64, int64) {
		s.change(func(st *topics.Status) { st.Discarded++ })
	}
	if o.Existing {
		ok, err := s.exists(ctx, s.name)
		if err != nil {
			return fmt.Errorf("ask for %s: %w", s.name, err)
		}
		if !ok {
			return fmt.Errorf("%w: %s", topics.ErrNoTopic, s.name)
		}
	}
	if err := s.first(ctx); err != nil {
		return fmt.Errorf("read %s: %w", s.name, err)
	}
	s.opened(s.heard)
	s.change(func(st *topics.Status) { st.CaughtUp = true })
	return nil
}

// Receive waits for the next message.
func (s *volatile) Receive(ctx context.Context) (topics.Message, error) {
	for {
		if s.ctx.Err() != nil {
			return topics.Message{}, topics.ErrClosed
		}
		var incoming <-chan record
		if s.src != nil {
			incoming = s.src.messages()
		}
		select { // a waiting message comes before anything that depends on time
		case r := <-incoming:
			if m, ok := s.accept(r); ok {
				return m, nil
			}
			continue
		default:
		}
		if s.hasGivenUp() { // what came before that is handed out by now
			s.resubscribe("the client library gave up: the topic is gone", time.Time{})
			continue
		}
		tasks := s.upkeep()
		if s.src != nil {
			tasks = append(tasks, task{s.auditDue, s.audit})
		}
		if s.perform(tasks) {
			continue
		}
		r, ok, err := s.wait(ctx, incoming, tasks)
		if err != nil {
			return topics.Message{}, err
		}
		if ok {
			if m, ok := s.accept(r); ok {
				return m, nil
			}
		}
	}
}

func (s *volatile) accept(r record) (topics.Message, bool) {
	s.heard = time.Now()
	if s.tooLarge(r) {
		return topics.Message{}, false
	}
	m := s.message(r, false)
	s.sound = m.Received
	s.delivered(m)
	return m, true
}

// audit asks the broker whether the subscription still has its consumer. A library that believes to be connected while the
// broker knows nothing of it would otherwise look like a quiet topic.
func (s *volatile) audit() {
	src := s.src
	s.start(func(ctx context.Context) (apply, dispose func()) {
		asked := s.options.Now()
		n, err := s.consumers(ctx, s.name, src.(named).subscription())
		return func() {
			s.auditDue = time.Now().Add(s.options.Audit)
			switch {
			case err != nil:
				s.trouble(err) // the broker cannot be asked: that says nothing about the subscription
			case s.src != src || !s.Status().Connected: // it is being repaired
			case n == 0:
				s.resubscribe("the broker has no such subscription", s.sound)
			case s.sound.Before(asked):
				s.sound = asked
			}
		}, nil
	})
}
