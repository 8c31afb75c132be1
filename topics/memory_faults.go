package topics

import "time"

// Delivery is what becomes of a message on its way to a subscription.
type Delivery int

// The ways of a message.
const (
	Deliver Delivery = iota
	Drop             // it vanishes and nobody knows
	Lose             // it vanishes and is counted in Status.Lost
	Recover          // it arrives with Recovered set, as if the client library had dropped it and it was fetched
)

// Faults make an in-memory log misbehave. A nil member does nothing. Delay is called with the log's lock held; none may
// call the log.
type Faults struct {
	// Publish is asked before an event is accepted; its error fails the publish.
	Publish func(topic, key string, payload []byte) error
	// Deliver decides about one message for one subscription.
	Deliver func(Message) Delivery
	// Delay is how long after its PublishTime a message is withheld, by the log's clock. Tick delivers what has come due.
	Delay func(Message) time.Duration
}

// SetFaults replaces the faults of the log.
func (m *Memory) SetFaults(f Faults) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = f
}

func (m *Memory) currentFaults() Faults {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.faults
}

// Disconnect cuts off the subscriptions of a topic, present and future ones, until Reconnect. They resume where they were
// on a persistent topic and have missed what was published meanwhile on a non-persistent one.
func (m *Memory) Disconnect(topic string) {
	m.with(topic, func(t *memoryTopic, now time.Time) {
		t.down = true
		for _, s := range t.subs {
			s.disconnect(now)
		}
	})
}

// Reconnect ends what Disconnect began.
func (m *Memory) Reconnect(topic string) {
	m.with(topic, func(t *memoryTopic, now time.Time) {
		t.down = false
		for _, s := range t.subs {
			s.reconnect(now)
		}
	})
}

// Mute makes the present subscriptions of a topic hear nothing although they look connected, until a silence longer than
// SubscribeOptions.Silence makes them subscribe again.
func (m *Memory) Mute(topic string) {
	m.with(topic, func(t *memoryTopic, _ time.Time) {
		for _, s := range t.subs {
			s.muted = true
		}
	})
}

// Fence takes a topic away from its exclusive publisher: it gets ErrFenced from now on, and the next in line has its turn.
func (m *Memory) Fence(topic string) {
	m.with(topic, func(t *memoryTopic, _ time.Time) {
		if t.holder != nil {
			t.holder.fenced = true
			t.holder = nil
		}
		t.next()
	})
}

// Compact compacts a persistent topic up to its present end: later compacted reads begin with the latest value of each
// key. The history stays for reads that are not compacted.
func (m *Memory) Compact(topic string) {
	m.with(topic, func(t *memoryTopic, _ time.Time) { t.compact(t.base + int64(len(t.log))) })
}

// Roll closes the present ledger of a persistent topic: the next message begins a new one.
func (m *Memory) Roll(topic string) {
	m.with(topic, func(t *memoryTopic, _ time.Time) { t.ledger, t.entry = t.ledger+1, 0 })
}

// Tick lets time pass: call it after the clock was moved. Delayed messages come due and silent subscriptions are made again.
func (m *Memory) Tick() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, t := range m.topics {
		for _, s := range t.subs {
			s.silent(now)
			s.wake()
		}
	}
}

// Dropped is how many messages of a non-persistent topic were dropped because a subscription was slow.
func (m *Memory) Dropped(topic string) (dropped int64) {
	m.with(topic, func(t *memoryTopic, _ time.Time) { dropped = t.dropped })
	return dropped
}

// with runs f on a topic under the lock, making the topic if need be; after Close it does nothing.
func (m *Memory) with(topic string, f func(*memoryTopic, time.Time)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, err := m.topic(topic, false); err == nil {
		f(t, m.now())
	}
}
