package topics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/topics"
	"github.com/ballast-lb/ballast/topics/logtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMemory holds the in-memory log to the behaviour that all logs share.
func TestMemory(t *testing.T) {
	var log *topics.Memory
	open := func(t *testing.T) topics.Log {
		log = topics.NewMemory(topics.MemoryOptions{})
		t.Cleanup(func() { _ = log.Close() })
		return log
	}
	logtest.Run(t, open, logtest.Hooks{
		Compact: func(_ *testing.T, topic string) { log.Compact(topic) },
		Interrupt: func(_ *testing.T, topic string) {
			log.Disconnect(topic)
			log.Reconnect(topic)
		},
	})
}

const persistentTopic, volatileTopic = "persistent://public/default/p", "non-persistent://public/default/v"

// clock is a clock that is moved by hand.
type clock struct{ now time.Time }

func newClock() *clock                   { return &clock{time.UnixMilli(1_700_000_000_000)} }
func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

func open(t *testing.T, o topics.MemoryOptions) *topics.Memory {
	t.Helper()
	log := topics.NewMemory(o)
	t.Cleanup(func() { _ = log.Close() })
	return log
}

func subscribe(t *testing.T, log *topics.Memory, topic string, o topics.SubscribeOptions) *topics.MemorySubscription {
	t.Helper()
	s, err := log.Subscribe(t.Context(), topic, o)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*topics.MemorySubscription)
}

// publish sends events "key=value"; "key=" is a tombstone.
func publish(t *testing.T, log *topics.Memory, topic string, events ...string) {
	t.Helper()
	p, err := log.Publisher(t.Context(), topic, topics.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, e := range events {
		if _, err := p.Publish(t.Context(), e[:1], []byte(e[2:])); err != nil {
			t.Fatal(err)
		}
	}
}

// waiting takes what can be received without waiting.
func waiting(t *testing.T, s *topics.MemorySubscription) []string {
	t.Helper()
	var got []string
	for {
		m, ok, err := s.TryReceive()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return got
		}
		e := m.Key + "=" + string(m.Payload)
		if m.Recovered {
			e += " recovered"
		}
		got = append(got, e)
	}
}

func check(t *testing.T, what string, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestDeliveryFaults(t *testing.T) {
	log := open(t, topics.MemoryOptions{})
	log.SetFaults(topics.Faults{Deliver: func(m topics.Message) topics.Delivery {
		return map[string]topics.Delivery{"d": topics.Drop, "l": topics.Lose, "r": topics.Recover}[m.Key]
	}})
	for _, topic := range []string{persistentTopic, volatileTopic} {
		s := subscribe(t, log, topic, topics.SubscribeOptions{})
		publish(t, log, topic, "a=1", "d=1", "l=1", "r=1", "a=2")
		check(t, topic, waiting(t, s), []string{"a=1", "r=1 recovered", "a=2"})
		if st := s.Status(); st.Lost != 1 || st.Recovered != 1 || st.Messages != 3 || !st.CaughtUp {
			t.Errorf("%s: status %+v", topic, st)
		}
	}
}

func TestPublishFault(t *testing.T) {
	log := open(t, topics.MemoryOptions{})
	broken := errors.New("broken")
	log.SetFaults(topics.Faults{Publish: func(topic, key string, _ []byte) error {
		if key == "x" {
			return fmt.Errorf("%s: %w", topic, broken)
		}
		return nil
	}})
	p, err := log.Publisher(t.Context(), persistentTopic, topics.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(t.Context(), "x", nil); !errors.Is(err, broken) {
		t.Errorf("publish: %v, want the fault", err)
	}
	if _, err := p.Publish(t.Context(), "y", nil); err != nil {
		t.Errorf("publish: %v", err)
	}
	check(t, "topic", waiting(t, subscribe(t, log, persistentTopic, topics.SubscribeOptions{From: topics.Earliest})), []string{"y="})
}

func TestDelay(t *testing.T) {
	c := newClock()
	log := open(t, topics.MemoryOptions{Now: c.Now})
	log.SetFaults(topics.Faults{Delay: func(m topics.Message) time.Duration { return time.Duration(len(m.Payload)) * time.Second }})
	s := subscribe(t, log, persistentTopic, topics.SubscribeOptions{})
	publish(t, log, persistentTopic, "a=", "b=12", "c=1")
	check(t, "at once", waiting(t, s), []string{"a="})
	if s.Status().CaughtUp {
		t.Error("caught up while messages are withheld")
	}
	c.advance(time.Second)
	check(t, "order is kept", waiting(t, s), nil)
	c.advance(time.Second)
	check(t, "later", waiting(t, s), []string{"b=12", "c=1"})
}

// TestDelayWakes checks that a waiting Receive gets a delayed message when time passes.
func TestDelayWakes(t *testing.T) {
	c := newClock()
	log := open(t, topics.MemoryOptions{Now: c.Now})
	log.SetFaults(topics.Faults{Delay: func(topics.Message) time.Duration { return time.Second }})
	s := subscribe(t, log, volatileTopic, topics.SubscribeOptions{})
	publish(t, log, volatileTopic, "a=1")
	check(t, "at once", waiting(t, s), nil)
	c.advance(time.Second)
	log.Tick()
	if m, err := s.Receive(t.Context()); err != nil || m.Key != "a" {
		t.Errorf("received %v, %v", m, err)
	}
}

func TestBlindness(t *testing.T) {
	c := newClock()
	log := open(t, topics.MemoryOptions{Now: c.Now})
	kept := subscribe(t, log, persistentTopic, topics.SubscribeOptions{})
	missed := subscribe(t, log, volatileTopic, topics.SubscribeOptions{})
	for _, topic := range []string{persistentTopic, volatileTopic} {
		publish(t, log, topic, "a=1")
		log.Disconnect(topic)
		publish(t, log, topic, "b=2")
	}
	c.advance(3 * time.Second)
	for _, s := range []*topics.MemorySubscription{kept, missed} {
		if st := s.Status(); st.Connected || st.CaughtUp || st.Blind != 3*time.Second || st.BlindSince.IsZero() || st.LastError == "" {
			t.Errorf("while disconnected: %+v", st)
		}
	}
	late := subscribe(t, log, persistentTopic, topics.SubscribeOptions{})
	if late.Status().Connected {
		t.Error("a subscription that begins during a disconnection is connected")
	}
	check(t, "while disconnected", waiting(t, kept), nil)
	for _, topic := range []string{persistentTopic, volatileTopic} {
		log.Reconnect(topic)
		c.advance(time.Second)
		publish(t, log, topic, "c=3")
	}
	check(t, "persistent", waiting(t, kept), []string{"a=1", "b=2", "c=3"})
	check(t, "non-persistent", waiting(t, missed), []string{"a=1", "c=3"})
	for _, s := range []*topics.MemorySubscription{kept, missed, late} {
		if st := s.Status(); !st.Connected || st.Blind > 4*time.Second || st.Resubscribe != 1 || !st.BlindSince.IsZero() {
			t.Errorf("afterwards: %+v", st)
		}
	}
}

func TestSilence(t *testing.T) {
	c := newClock()
	log := open(t, topics.MemoryOptions{Now: c.Now})
	s := subscribe(t, log, volatileTopic, topics.SubscribeOptions{Silence: time.Minute})
	deaf := subscribe(t, log, volatileTopic, topics.SubscribeOptions{})
	log.Mute(volatileTopic)
	step := func(d time.Duration, event string) {
		publish(t, log, volatileTopic, event)
		c.advance(d)
		log.Tick()
	}
	step(59*time.Second, "a=1")
	step(time.Second, "b=2")
	step(0, "c=3")
	check(t, "after the silence", waiting(t, s), []string{"c=3"})
	check(t, "without a limit to silence", waiting(t, deaf), nil)
	if st := s.Status(); st.Resubscribe != 1 || !st.Connected {
		t.Errorf("status %+v", st)
	}
	c.advance(59 * time.Second)
	log.Tick()
	if st := s.Status(); st.Resubscribe != 1 {
		t.Errorf("subscribed again %d times although a message came", st.Resubscribe)
	}
}

func TestRetain(t *testing.T) {
	log := open(t, topics.MemoryOptions{Retain: 4})
	slow := subscribe(t, log, persistentTopic, topics.SubscribeOptions{From: topics.Earliest})
	publish(t, log, persistentTopic, "a=1", "b=1", "c=1", "a=2", "d=1", "b=")
	check(t, "history", waiting(t, subscribe(t, log, persistentTopic, topics.SubscribeOptions{From: topics.Earliest})),
		[]string{"c=1", "a=2", "d=1", "b="})
	check(t, "compacted", waiting(t, subscribe(t, log, persistentTopic, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})),
		[]string{"a=1", "b=1", "c=1", "a=2", "d=1", "b="})
	check(t, "slow reader", waiting(t, slow), []string{"c=1", "a=2", "d=1", "b="})
	if st := slow.Status(); st.Lost != 2 {
		t.Errorf("the slow reader lost %d messages, want 2", st.Lost)
	}
}

func TestQueueIsBounded(t *testing.T) {
	log := open(t, topics.MemoryOptions{Queue: 2})
	s := subscribe(t, log, volatileTopic, topics.SubscribeOptions{})
	publish(t, log, volatileTopic, "a=1", "b=1", "c=1")
	check(t, "queue", waiting(t, s), []string{"a=1", "b=1"})
	if n := log.Dropped(volatileTopic); n != 1 {
		t.Errorf("dropped %d, want 1", n)
	}
}

func TestRoll(t *testing.T) {
	log := open(t, topics.MemoryOptions{})
	s := subscribe(t, log, persistentTopic, topics.SubscribeOptions{})
	publish(t, log, persistentTopic, "a=1", "b=1")
	log.Roll(persistentTopic)
	publish(t, log, persistentTopic, "c=1")
	var ids []string
	for m, ok, _ := s.TryReceive(); ok; m, ok, _ = s.TryReceive() {
		ids = append(ids, m.ID.String())
	}
	check(t, "ids", ids, []string{"0:0:-1", "0:1:-1", "1:0:-1"})
}

func TestFence(t *testing.T) {
	log := open(t, topics.MemoryOptions{})
	old, err := log.Publisher(t.Context(), persistentTopic, topics.PublishOptions{Exclusive: true})
	if err != nil {
		t.Fatal(err)
	}
	log.Fence(persistentTopic)
	next, err := log.Publisher(t.Context(), persistentTopic, topics.PublishOptions{Exclusive: true})
	if err != nil {
		t.Fatalf("after the fence: %v", err)
	}
	if _, err := old.Publish(t.Context(), "a", nil); !errors.Is(err, topics.ErrFenced) {
		t.Errorf("the fenced publisher: %v, want ErrFenced", err)
	}
	if err := old.Close(); err != nil {
		t.Error(err)
	}
	if _, err := next.Publish(t.Context(), "a", nil); err != nil {
		t.Errorf("its successor, after it was closed: %v", err)
	}
}

// TestDrain checks that Drain ends with the topic, with an error of its callback, and with its context.
func TestDrain(t *testing.T) {
	log := open(t, topics.MemoryOptions{})
	publish(t, log, persistentTopic, "a=1", "b=2", "c=3")
	s := subscribe(t, log, persistentTopic, topics.SubscribeOptions{From: topics.Earliest})
	var got []string
	stop := errors.New("stop")
	each := func(m topics.Message) error {
		if got = append(got, m.Key); m.Key == "b" {
			return stop
		}
		return nil
	}
	if err := topics.Drain(t.Context(), s, each); err != stop {
		t.Errorf("drain: %v, want the callback's error", err)
	}
	if err := topics.Drain(t.Context(), s, each); err != nil {
		t.Errorf("drain: %v", err)
	}
	check(t, "drained", got, []string{"a", "b", "c"})
	log.Disconnect(persistentTopic)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := topics.Drain(ctx, s, each); !errors.Is(err, context.Canceled) {
		t.Errorf("drain: %v, want the context's end", err)
	}
	_ = s.Close()
	if err := topics.Drain(t.Context(), s, each); !errors.Is(err, topics.ErrClosed) {
		t.Errorf("drain: %v, want ErrClosed", err)
	}
}

// TestCompactionAgrees checks on random histories that a compacted read and a read of everything give the same latest
// values, whenever the compaction and the retention happened.
func TestCompactionAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := topics.NewMemory(topics.MemoryOptions{Retain: rapid.SampledFrom([]int{0, 3, 8}).Draw(t, "retain")})
		defer log.Close()
		p, err := log.Publisher(context.Background(), persistentTopic, topics.PublishOptions{})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		for i := range rapid.IntRange(0, 40).Draw(t, "events") {
			key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
			if rapid.Bool().Draw(t, "tombstone") {
				delete(want, key)
				_, err = p.Publish(context.Background(), key, nil)
			} else {
				want[key] = fmt.Sprint(i)
				_, err = p.Publish(context.Background(), key, []byte(want[key]))
			}
			if err != nil {
				t.Fatal(err)
			}
			if rapid.IntRange(0, 9).Draw(t, "compact") == 0 {
				log.Compact(persistentTopic)
			}
		}
		s, err := log.Subscribe(context.Background(), persistentTopic, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		var last topics.MessageID
		for n := 0; ; n++ {
			m, ok, err := s.(*topics.MemorySubscription).TryReceive()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if n > 0 && !last.Less(m.ID) {
				t.Fatalf("id %v after %v", m.ID, last)
			}
			if last = m.ID; m.Tombstone() {
				delete(got, m.Key)
			} else {
				got[m.Key] = string(m.Payload)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("latest values (-want +got):\n%s", diff)
		}
	})
}
