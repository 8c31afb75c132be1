package pulsar

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// entries are the answers that the admin interface has about a persistent topic.
type entries interface {
	layout(ctx context.Context, n topics.Name) (layout, error)
	entry(ctx context.Context, n topics.Name, ledger, entry int64, limit int) ([]record, error)
}

// How long a subscription waits for the client library before it looks for itself. They bound how early a message is
// fetched that would have come anyway, never what is delivered.
const (
	graceSignal    = 50 * time.Millisecond  // after the library said that it discarded a message
	graceTail      = 500 * time.Millisecond // after the broker said that there is a further entry
	graceCompacted = 2 * time.Second        // within the compacted part of a topic, whose holes mean nothing
	graceSilent    = 30 * time.Second       // there, while nothing has come: the broker may still be opening what is compacted
	graceLast      = 100 * time.Millisecond // there, before the broker is asked for the last message
	chunk          = 64                     // entries that are fetched at a time
	fetchers       = 8                      // of them at once
)

// persistent is a subscription of a persistent topic. The client library delivers with holes: it discards a lone
// tombstone, and after a reconnect what waited inside it. So every message is placed by its id, and what is missing before
// it, or before the topic's last entry, is fetched over admin REST and delivered in order.
type persistent struct {
	*loop
	admin    entries
	compacts bool

	// Owned by the goroutine that calls Receive.
	tracker tracker
	ready   []delivery // accounted for, not yet handed out
	held    *record    // waits until the hole before it is filled
	hole    *hole
	target  position  // the last entry of the topic, as far as is known
	hinted  bool      // the library said that it discarded something up to target
	active  time.Time // when something last came, or was expected to begin
	came    bool      // something has come since the reader was opened
	tailDue time.Time // when the topic's last entry is asked for
	lastDue time.Time // when the broker may be asked again for the last message of a compacted read

	discarded position // the last message that the library discarded; guarded by loop.shared
}

type delivery struct {
	record
	recovered bool
}

var _ topics.Subscription = (*persistent)(nil)

// subscribe begins; it fails if the topic cannot be read now. open opens a reader after a position.
func (s *persistent) subscribe(ctx context.Context, o topics.SubscribeOptions, open func(position, tap) (source, error)) error {
	s.silence, s.compacts, s.discarded = o.Silence, o.Compacted, before
	s.opener = func() func(tap) (source, error) {
		after := s.tracker.pos
		return func(t tap) (source, error) { return open(after, t) }
	}
	s.opened = func(now time.Time) { s.active, s.tailDue, s.came = now, now, false } // ask at once what was missed
	s.signal = s.signalled

	l, err := s.admin.layout(ctx, s.name)
	missing := statusOf(err) == http.StatusNotFound
	switch {
	case missing && o.Existing:
		return fmt.Errorf("%w: %s", topics.ErrNoTopic, s.name)
	case missing:
		l = layout{horizon: before}
	case err != nil:
		return fmt.Errorf("ask for the ledgers of %s: %w", s.name, err)
	}
	s.tracker.begin(l, o)
	// What was compacted is there to be read also when the ledgers that it came from are deleted and nothing came since.
	s.target = later(l.last(), s.tracker.horizon)
	if err := s.first(ctx); err != nil {
		return fmt.Errorf("read %s: %w", s.name, err)
	}
	s.active, s.tailDue = s.heard, s.heard.Add(s.options.TailCheck)
	s.settle()
	return nil
}

// signalled is told that the library discarded a message. It runs in the library's goroutines.
func (s *persistent) signalled(_ signal, ledger, entry int64) {
	at := position{ledger: ledger, entry: entry, size: 1}
	s.shared.Lock()
	defer s.shared.Unlock()
	if s.discarded.less(at) {
		s.discarded = at
	}
}

// Receive waits for the next message.
func (s *persistent) Receive(ctx context.Context) (topics.Message, error) {
	for {
		if s.ctx.Err() != nil {
			return topics.Message{}, topics.ErrClosed
		}
		if m, ok := s.pop(); ok {
			return m, nil
		}
		s.absorb()
		select { // a waiting message comes before anything that depends on time
		case r := <-s.incoming():
			s.accept(r)
			continue
		default:
		}
		tasks := s.agenda()
		if s.perform(tasks) {
			continue
		}
		r, ok, err := s.wait(ctx, s.incoming(), tasks)
		if err != nil {
			return topics.Message{}, err
		}
		if ok {
			s.accept(r)
		}
		s.settle()
	}
}

// pop hands out the next message that is accounted for.
func (s *persistent) pop() (topics.Message, bool) {
	for len(s.ready) > 0 {
		d := s.ready[0]
		s.ready[0] = delivery{}
		if s.ready = s.ready[1:]; len(s.ready) == 0 {
			s.ready = nil
		}
		if s.tooLarge(d.record) {
			s.settle()
			continue
		}
		m := s.message(d.record, d.recovered)
		s.delivered(m)
		s.settle()
		return m, true
	}
	return topics.Message{}, false
}

// settle updates whether everything that the topic is known to hold has been handed out.
func (s *persistent) settle() {
	caught := len(s.ready) == 0 && s.held == nil && !s.behind()
	s.change(func(st *topics.Status) { st.CaughtUp = caught })
}

// absorb takes over what the library has signalled.
func (s *persistent) absorb() {
	s.shared.Lock()
	discarded := s.discarded
	s.shared.Unlock()
	if s.target.less(discarded) {
		s.target = discarded
		s.settle()
	}
	if s.tracker.pos.whole().less(discarded) && !s.hinted {
		s.hinted, s.active = true, time.Now()
	}
	if s.hasGivenUp() {
		s.resubscribe("the client library gave up: the topic is gone", time.Time{})
	}
}

// incoming is where messages come from now, nil while a message waits for a hole to be filled.
func (s *persistent) incoming() <-chan record {
	if s.src == nil || s.held != nil {
		return nil
	}
	return s.src.messages()
}

// accept places a message from the reader.
func (s *persistent) accept(r record) {
	s.heard = time.Now()
	s.active, s.came = s.heard, true
	switch s.tracker.place(r.id) {
	case follows:
		s.push(r, false)
	case gap:
		s.held = &r
		s.hole = s.newHole(r.id, false)
	case duplicate:
	}
	s.settle()
}

// push accounts for a message and lets it be handed out.
func (s *persistent) push(r record, recovered bool) {
	s.tracker.pos = r.id
	s.hinted = s.hinted && s.behind()
	// In a compacted read, a message without key and payload is the place of one that compaction took out of its batch.
	if r.hidden || (s.compacts && r.key == "" && len(r.payload) == 0) {
		return
	}
	if r.received.IsZero() { // it was fetched
		r.received = s.options.Now()
	}
	s.ready = append(s.ready, delivery{record: r, recovered: recovered})
}

// behind says whether the topic is known to hold more than was accounted for.
func (s *persistent) behind() bool { return s.tracker.pos.whole().less(s.target) }

// compactedPart says whether the reader is still within what was compacted when the subscription began. Ids have holes
// there that mean nothing, so nothing can be fetched before the reader is through.
func (s *persistent) compactedPart() bool { return s.tracker.pos.whole().less(s.tracker.horizon) }

// quiet is when the reader has been silent for so long that what is missing must be looked for.
func (s *persistent) quiet() time.Time {
	if s.hinted {
		return s.active.Add(graceSignal)
	}
	return s.active.Add(graceTail)
}

// agenda is what there is to do, the most urgent first.
func (s *persistent) agenda() []task {
	if s.hole != nil {
		return append([]task{{s.hole.retryDue, s.fill}}, s.upkeep()...)
	}
	tasks := s.upkeep()
	switch {
	case !s.behind():
		tasks = append(tasks, task{s.tailDue, s.askTail})
	case !s.compactedPart():
		tasks = append(tasks, task{s.quiet(), func() { s.hole = s.newHole(s.target, true) }})
	case s.src != nil:
		due := s.active.Add(graceLast)
		if s.lastDue.After(due) {
			due = s.lastDue
		}
		tasks = append(tasks, task{due, s.askLast})
	}
	return tasks
}

// askTail asks for the topic's last entry. This finds what no signal announced.
func (s *persistent) askTail() {
	s.start(func(ctx context.Context) (apply, dispose func()) {
		l, err := s.admin.layout(ctx, s.name)
		return func() {
			s.tailDue = time.Now().Add(s.options.TailCheck)
			if err != nil {
				s.trouble(err)
				return
			}
			s.tracker.learn(l)
			if s.target.less(l.last()) {
				s.target, s.active = l.last(), time.Now() // give the reader the time to bring it
			}
		}, nil
	})
}

// askLast asks the broker for the last message of a compacted read, to know whether the compacted part is through. An
// answer beyond that part proves nothing, as it may be a message that the library discards: then only time does, and that
// something came from the reader or was discarded by the library after that part.
func (s *persistent) askLast() {
	src := s.src
	s.start(func(context.Context) (apply, dispose func()) {
		last, err := src.last()
		return func() {
			if s.src != src || !s.compactedPart() { // it went on meanwhile
				return
			}
			now, horizon := time.Now(), s.tracker.horizon
			s.lastDue = now.Add(graceTail)
			s.shared.Lock()
			beyond := horizon.less(s.discarded)
			s.shared.Unlock()
			grace := graceSilent
			if s.came || beyond {
				grace = graceCompacted
			}
			switch nothing := last.entry < 0; {
			case err != nil:
				s.trouble(err)
			case !s.tracker.pos.whole().less(last), (nothing || horizon.less(last)) && !now.Before(s.active.Add(grace)):
				s.tracker.pos = horizon
			}
		}, nil
	})
}
