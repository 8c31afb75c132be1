package topics

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"
)

// MemoryOptions configure an in-memory log.
type MemoryOptions struct {
	// Now is the clock that stamps messages and measures blindness; nil = time.Now. It is called with the log's lock held.
	Now func() time.Time
	// Producer begins the names of producers ("<Producer>-0", "-1", ...); "" = "memory".
	Producer string
	// Retain bounds the history of each persistent topic, in messages; 0 = all of it. What falls out is compacted first,
	// so a compacted read still finds the latest value of every key.
	Retain int
	// Queue bounds what waits for one subscription of a non-persistent topic, in messages; what does not fit is dropped,
	// as a broker does when a consumer is slow. 0 = 1000.
	Queue int
}

// Memory is an event log that lives in the process: persistent topics keep their messages, non-persistent ones hand them
// to whoever is subscribed. It starts no goroutine and no timer: what depends on time happens in calls and in Tick.
type Memory struct {
	now      func() time.Time
	producer string
	retain   int
	queue    int

	mu        sync.Mutex
	closed    bool
	topics    map[string]*memoryTopic
	producers int
	faults    Faults
}

var _ Log = (*Memory)(nil)

// memoryTopic is guarded by Memory.mu. Messages of a persistent topic are counted from 0; log[0] is number base, and latest
// holds what compaction kept of the messages before number horizon.
type memoryTopic struct {
	name    Name
	ledger  int64
	entry   int64
	log     []Message
	base    int64
	latest  map[string]Message
	horizon int64
	subs    []*MemorySubscription
	schema  *Schema
	down    bool

	holder  *memoryPublisher   // the exclusive publisher
	shared  int                // publishers that are not exclusive
	waiting []*memoryPublisher // exclusive publishers in line
	dropped int64              // messages that found a full queue
}

// NewMemory makes an empty log.
func NewMemory(o MemoryOptions) *Memory {
	m := &Memory{now: o.Now, producer: o.Producer, retain: o.Retain, queue: o.Queue, topics: map[string]*memoryTopic{}}
	if m.now == nil {
		m.now = time.Now
	}
	if m.producer == "" {
		m.producer = "memory"
	}
	if m.queue <= 0 {
		m.queue = 1000
	}
	return m
}

// Close ends all subscriptions and publishers.
func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, t := range m.topics {
		for _, s := range t.subs {
			s.closed = true
			s.wake()
		}
		t.subs = nil
		for _, p := range t.waiting {
			close(p.turn)
		}
		t.waiting = nil
	}
	return nil
}

// topic finds or makes a topic. The lock is held.
func (m *Memory) topic(name string, existing bool) (*memoryTopic, error) {
	if m.closed {
		return nil, ErrClosed
	}
	t := m.topics[name]
	if t != nil {
		return t, nil
	}
	parsed, err := ParseName(name)
	if err != nil {
		return nil, err
	}
	if existing {
		return nil, fmt.Errorf("%w: %s", ErrNoTopic, name)
	}
	t = &memoryTopic{name: parsed, latest: map[string]Message{}}
	m.topics[name] = t
	return t, nil
}

// append adds one message to a topic and hands it out. The lock is held.
func (m *Memory) append(t *memoryTopic, producer, key string, payload []byte) MessageID {
	now := m.now()
	msg := Message{Topic: t.name.String(), Key: key, Payload: slices.Clone(payload), PublishTime: now, Producer: producer}
	if t.name.Persistent {
		msg.ID = MessageID{Ledger: t.ledger, Entry: t.entry, Batch: -1}
		t.entry++
		t.log = append(t.log, msg)
		if m.retain > 0 && len(t.log) > m.retain+m.retain/4 {
			t.trim(t.base + int64(len(t.log)-m.retain))
		}
	}
	for _, s := range t.subs {
		if !t.name.Persistent {
			s.offer(msg)
		}
		s.wake()
	}
	return msg.ID
}

// compact folds the messages before number end into the compacted view.
func (t *memoryTopic) compact(end int64) {
	for ; t.horizon < end; t.horizon++ {
		msg := t.log[t.horizon-t.base]
		switch {
		case msg.Key == "": // compaction drops what has no key
		case msg.Tombstone():
			delete(t.latest, msg.Key)
		default:
			t.latest[msg.Key] = msg
		}
	}
}

// trim forgets the messages before number first.
func (t *memoryTopic) trim(first int64) {
	t.compact(max(first, t.horizon))
	t.log = slices.Clone(t.log[first-t.base:])
	t.base = first
}

// compacted is the compacted view in the order of the log.
func (t *memoryTopic) compacted() []Message {
	view := make([]Message, 0, len(t.latest))
	for _, msg := range t.latest {
		view = append(view, msg)
	}
	slices.SortFunc(view, func(a, b Message) int {
		if a.ID.Less(b.ID) {
			return -1
		}
		return 1
	})
	return view
}

// Publisher makes a publisher. Names of producers count up in the order of the calls.
func (m *Memory) Publisher(ctx context.Context, topic string, o PublishOptions) (Publisher, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.topic(topic, false)
	if err != nil {
		return nil, err
	}
	if err := t.checkSchema(o); err != nil {
		return nil, err
	}
	p := &memoryPublisher{log: m, topic: t, exclusive: o.Exclusive, name: m.producer + "-" + strconv.Itoa(m.producers)}
	m.producers++
	busy := t.holder != nil || len(t.waiting) > 0
	switch {
	case !o.Exclusive && busy:
		return nil, fmt.Errorf("publish to %s: %w", topic, ErrFenced)
	case !o.Exclusive:
		t.shared++
	case !busy && t.shared == 0:
		t.holder = p
	case !o.Wait:
		return nil, fmt.Errorf("publish to %s: %w", topic, ErrFenced)
	default:
		if err := m.await(ctx, t, p); err != nil {
			return nil, fmt.Errorf("wait for one's turn on %s: %w", topic, err)
		}
	}
	return p, nil
}

// await stands in line for a topic. The lock is held on entry and on return.
func (m *Memory) await(ctx context.Context, t *memoryTopic, p *memoryPublisher) error {
	p.turn = make(chan struct{})
	t.waiting = append(t.waiting, p)
	m.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-p.turn:
	}
	m.mu.Lock()
	switch {
	case m.closed:
		return ErrClosed
	case t.holder == p:
		return nil
	default:
		t.waiting = slices.DeleteFunc(t.waiting, func(q *memoryPublisher) bool { return q == p })
		return ctx.Err()
	}
}

// next lets the first in line have the topic. The lock is held.
func (t *memoryTopic) next() {
	if t.holder == nil && t.shared == 0 && len(t.waiting) > 0 {
		t.holder, t.waiting = t.waiting[0], t.waiting[1:]
		close(t.holder.turn)
	}
}

// checkSchema registers the first schema of a topic and refuses another one.
func (t *memoryTopic) checkSchema(o PublishOptions) error {
	if o.Schema.Definition == "" {
		return nil
	}
	if t.schema == nil {
		t.schema = &o.Schema
		return nil
	}
	for _, s := range append([]Schema{o.Schema}, o.Alternatives...) {
		if sameJSON(t.schema.Definition, s.Definition) {
			return nil
		}
	}
	return fmt.Errorf("publish to %s: %w: registered %s, would publish with %s", t.name, ErrSchemaMismatch, t.schema.Definition, o.Schema.Definition)
}

func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

type memoryPublisher struct {
	log       *Memory
	topic     *memoryTopic
	name      string
	exclusive bool
	fenced    bool
	closed    bool
	turn      chan struct{} // closed when the turn comes, or when the log closes
}

func (p *memoryPublisher) Publish(ctx context.Context, key string, payload []byte) (MessageID, error) {
	if err := ctx.Err(); err != nil {
		return MessageID{}, err
	}
	topic := p.topic.name.String()
	if fail := p.log.currentFaults().Publish; fail != nil {
		if err := fail(topic, key, payload); err != nil {
			return MessageID{}, fmt.Errorf("publish to %s: %w", topic, err)
		}
	}
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	switch {
	case p.closed || p.log.closed:
		return MessageID{}, ErrClosed
	case p.fenced:
		return MessageID{}, fmt.Errorf("publish to %s: %w", topic, ErrFenced)
	}
	return p.log.append(p.topic, p.name, key, payload), nil
}

func (p *memoryPublisher) Close() error {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	if p.topic.holder == p {
		p.topic.holder = nil
	} else if !p.exclusive {
		p.topic.shared--
	}
	p.topic.next()
	return nil
}
