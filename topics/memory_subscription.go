package topics

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// MemorySubscription is a subscription of an in-memory log. Besides the interface it offers TryReceive, for callers that
// drive everything from one goroutine.
type MemorySubscription struct {
	log       *Memory
	topic     *memoryTopic
	silence   time.Duration
	notify    chan struct{} // one token: something may have changed
	compacted []Message     // the compacted view, to be delivered first
	next      int64         // number of the next message of a persistent topic
	queue     []Message     // waiting messages of a non-persistent topic
	since     time.Time     // when the subscription was made, again or for the first time
	muted     bool
	closed    bool
	blind     time.Duration
	status    Status
}

var _ Subscription = (*MemorySubscription)(nil)

// Subscribe starts to read a topic. The dynamic type of what it returns is *MemorySubscription.
func (m *Memory) Subscribe(ctx context.Context, topic string, o SubscribeOptions) (Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.topic(topic, o.Existing)
	if err != nil {
		return nil, err
	}
	if o.Compacted && !t.name.Persistent {
		return nil, fmt.Errorf("subscribe to %s: only persistent topics can be read compacted", topic)
	}
	s := &MemorySubscription{log: m, topic: t, silence: o.Silence, notify: make(chan struct{}, 1), since: m.now()}
	s.status.Connected = true
	switch {
	case o.From == Latest:
		s.next = t.base + int64(len(t.log))
	case o.Compacted:
		s.compacted, s.next = t.compacted(), t.horizon
	default:
		s.next = t.base
	}
	if t.down {
		s.disconnect(s.since)
	}
	t.subs = append(t.subs, s)
	return s, nil
}

// wake lets a waiting Receive look again. It never blocks.
func (s *MemorySubscription) wake() {
	select {
	case s.notify <- struct{}{}:
	default:
	}
}

// offer queues a message of a non-persistent topic; who is not connected, or slow, never sees it.
func (s *MemorySubscription) offer(msg Message) {
	switch {
	case s.topic.down || s.muted:
	case len(s.queue) >= s.log.queue:
		s.topic.dropped++
	default:
		s.queue = append(s.queue, msg)
	}
}

// Receive waits for the next message.
func (s *MemorySubscription) Receive(ctx context.Context) (Message, error) {
	for {
		msg, ok, err := s.TryReceive()
		if ok || err != nil {
			return msg, err
		}
		select {
		case <-ctx.Done():
			return Message{}, ctx.Err()
		case <-s.notify:
		}
	}
}

// TryReceive is Receive without waiting: false means that there is no message now.
func (s *MemorySubscription) TryReceive() (Message, bool, error) {
	for {
		s.log.mu.Lock()
		msg, ok := s.peek()
		faults, closed := s.log.faults, s.closed
		s.log.mu.Unlock()
		if closed {
			return Message{}, false, ErrClosed
		}
		if !ok {
			return Message{}, false, nil
		}
		verdict := Deliver
		if faults.Deliver != nil {
			verdict = faults.Deliver(msg)
		}
		if msg, ok = s.take(msg, verdict); ok {
			return msg, true, nil
		}
	}
}

// peek is the next message that may be delivered now. The lock is held.
func (s *MemorySubscription) peek() (Message, bool) {
	if s.closed || s.topic.down || s.muted {
		return Message{}, false
	}
	if s.next < s.topic.base { // it fell behind what is retained
		s.status.Lost += s.topic.base - s.next
		s.next = s.topic.base
	}
	msg, ok := s.head()
	if !ok || s.withheld(msg) {
		return Message{}, false
	}
	return msg, true
}

// head is the next message, whether it may be delivered or not. The lock is held.
func (s *MemorySubscription) head() (Message, bool) {
	switch {
	case len(s.compacted) > 0:
		return s.compacted[0], true
	case len(s.queue) > 0:
		return s.queue[0], true
	case s.topic.name.Persistent && s.next < s.topic.base+int64(len(s.topic.log)):
		return s.topic.log[max(s.next-s.topic.base, 0)], true
	}
	return Message{}, false
}

func (s *MemorySubscription) withheld(msg Message) bool {
	delay := s.log.faults.Delay
	return delay != nil && s.log.now().Before(msg.PublishTime.Add(delay(msg)))
}

// take removes the head and applies the verdict on it.
func (s *MemorySubscription) take(msg Message, verdict Delivery) (Message, bool) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	switch {
	case len(s.compacted) > 0:
		s.compacted = s.compacted[1:]
	case len(s.queue) > 0:
		s.queue = s.queue[1:]
	default:
		s.next++
	}
	switch verdict {
	case Drop:
		return Message{}, false
	case Lose:
		s.status.Lost++
		return Message{}, false
	case Recover:
		msg.Recovered = true
		s.status.Recovered++
	}
	msg.Received = s.log.now()
	s.status.Messages++
	if msg.Tombstone() {
		s.status.Tombstones++
	}
	s.status.Last, s.status.LastHeard = msg.ID, msg.Received
	return msg, true
}

// disconnect begins a time of blindness. The lock is held.
func (s *MemorySubscription) disconnect(now time.Time) {
	if s.status.Connected {
		s.status.Connected, s.status.BlindSince, s.status.LastError = false, now, "disconnected"
	}
}

// reconnect ends it. The lock is held.
func (s *MemorySubscription) reconnect(now time.Time) {
	if !s.status.Connected {
		s.blind += now.Sub(s.status.BlindSince)
		s.status.Connected, s.status.BlindSince, s.since = true, time.Time{}, now
		s.status.Resubscribe++
	}
	s.wake()
}

// silent makes the subscription again when it has heard nothing for too long. The lock is held.
func (s *MemorySubscription) silent(now time.Time) {
	last := s.since
	if s.status.LastHeard.After(last) {
		last = s.status.LastHeard
	}
	if s.silence > 0 && s.status.Connected && now.Sub(last) >= s.silence {
		s.muted, s.since = false, now
		s.status.Resubscribe++
		s.wake()
	}
}

// Status is the health of the subscription. Blind includes the present blindness.
func (s *MemorySubscription) Status() Status {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	status := s.status
	status.Blind = s.blind
	if !status.Connected {
		status.Blind += s.log.now().Sub(status.BlindSince)
	}
	status.CaughtUp = status.Connected
	if s.topic.name.Persistent {
		_, more := s.head()
		status.CaughtUp = status.Connected && !more
	}
	return status
}

// Close ends the subscription; a waiting Receive returns ErrClosed.
func (s *MemorySubscription) Close() error {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.closed = true
	s.topic.subs = slices.DeleteFunc(s.topic.subs, func(o *MemorySubscription) bool { return o == s })
	s.wake()
	return nil
}
