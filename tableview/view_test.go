package tableview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const topic = "persistent://public/default/t"

func decode(payload []byte) (int, error) { return strconv.Atoi(string(payload)) }

// clock is a clock that is moved by hand.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClock() *clock { return &clock{time.UnixMilli(1_700_000_000_000)} }

// message makes "key=value" a message; "key=" is a tombstone.
func (c *clock) message(e string) topics.Message {
	key, value, _ := strings.Cut(e, "=")
	return topics.Message{Topic: topic, Key: key, Payload: []byte(value), Received: c.now, PublishTime: c.now.Add(-time.Hour)}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// state is a snapshot as "key=value ...".
func state(s Snapshot[int]) string {
	var all []string
	for e := range s.All() {
		all = append(all, fmt.Sprintf("%s=%d", e.Key, e.Value))
	}
	return strings.Join(all, " ")
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLatestValue(t *testing.T) {
	c := newClock()
	v := New(Options[int]{Decode: decode, Now: c.Now, Logger: quiet()})
	for _, e := range []string{"b=1", "a=1", "b=2", "c=3", "a=", "d="} {
		v.Apply(c.message(e))
	}
	s := v.Snapshot()
	want(t, state(s), "b=2 c=3")
	if diff := cmp.Diff([]string{"b", "c"}, s.Keys()); diff != "" {
		t.Error(diff)
	}
	if e, ok := s.Get("b"); !ok || e.Value != 2 || e.Key != "b" || !e.Received.Equal(c.now) || e.Age(c.now.Add(time.Second)) != time.Second {
		t.Errorf("entry %+v, %v", e, ok)
	}
	if e, ok := s.Get("a"); ok {
		t.Errorf("entry %+v of a removed key", e)
	}
	if diff := cmp.Diff(Stats{Applied: 6, Put: 4, Tombstones: 2}, s.Stats); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if s.CaughtUp || s.Ready(nil) {
		t.Error("caught up without a source")
	}
	if diff := cmp.Diff([]string{"z", "a"}, s.Missing([]string{"z", "b", "a"})); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}

// TestGarbage: what cannot be used is counted, shown and logged without filling the log, and the old value stays.
func TestGarbage(t *testing.T) {
	c := newClock()
	var lines strings.Builder
	v := New(Options[int]{Decode: decode, Now: c.Now, Logger: slog.New(slog.NewTextHandler(&lines, nil)), CheckKey: func(key string) error {
		if key == "bad" {
			return errors.New("not a broker")
		}
		return nil
	}})
	v.Apply(c.message("a=1"))
	for range 1000 {
		v.Apply(c.message("a=garbage"))
	}
	v.Apply(c.message("=5"))
	v.Apply(c.message("bad=5"))
	v.Apply(c.message("bad="))
	s := v.Snapshot()
	want(t, state(s), "a=1")
	last := Skip{Key: "bad", At: c.now, Reason: "not a broker"}
	if diff := cmp.Diff(Stats{Applied: 1004, Put: 1, Garbage: 1003, Last: last}, s.Stats); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if n := strings.Count(lines.String(), "\n"); n != 10 {
		t.Errorf("%d lines were logged for 1003 garbage messages:\n%s", n, lines.String())
	}
	if !strings.Contains(lines.String(), `"garbage\": invalid syntax`) || !strings.Contains(lines.String(), "key=a") {
		t.Errorf("the log does not tell what is wrong:\n%s", lines.String())
	}
}

// TestConflictRule: a message that the rule refuses changes nothing; tombstones are asked about too.
func TestConflictRule(t *testing.T) {
	c := newClock()
	v := New(Options[int]{Decode: decode, Now: c.Now, Keep: func(key string, old, new *Entry[int]) bool {
		if new == nil {
			return key == "kept"
		}
		return old != nil && new.Value <= old.Value
	}})
	for _, e := range []string{"a=2", "a=1", "a=2", "a=3", "kept=1", "kept=", "b=1", "b="} {
		v.Apply(c.message(e))
	}
	s := v.Snapshot()
	want(t, state(s), "a=3 kept=1")
	if diff := cmp.Diff(Stats{Applied: 8, Put: 4, Tombstones: 1, Rejected: 3}, s.Stats); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// TestTTL: a value lives for the TTL from when we received it last, whatever its sender's clock says.
func TestTTL(t *testing.T) {
	c := newClock()
	v := New(Options[int]{Decode: decode, Now: c.Now, TTL: time.Minute})
	v.Apply(c.message("a=1"))
	v.Apply(c.message("b=1"))
	c.now = c.now.Add(59 * time.Second)
	v.Apply(c.message("a=2"))
	v.Apply(c.message("c=1"))
	v.Apply(c.message("c="))
	want(t, state(v.Snapshot()), "a=2 b=1")
	c.now = c.now.Add(time.Second)
	want(t, state(v.Snapshot()), "a=2")
	c.now = c.now.Add(59 * time.Second)
	v.Expire()
	s := v.Snapshot()
	want(t, state(s), "")
	if s.Stats.Expired != 2 {
		t.Errorf("%d expired, want 2", s.Stats.Expired)
	}
	v.Apply(c.message("b=3"))
	want(t, state(v.Snapshot()), "b=3")
}

func TestListeners(t *testing.T) {
	c := newClock()
	v := New(Options[int]{Decode: decode, Now: c.Now, TTL: time.Minute, Logger: quiet(), Keep: func(_ string, old, new *Entry[int]) bool {
		return old != nil && new != nil && new.Value < old.Value
	}})
	v.Apply(c.message("a=1"))
	value := func(e *Entry[int]) string {
		if e == nil {
			return "-"
		}
		return strconv.Itoa(e.Value)
	}
	var told, other []string
	before, stop := v.Listen(func(ch Change[int]) {
		told = append(told, fmt.Sprintf("%v %s %s>%s", ch.Kind, ch.Key, value(ch.Old), value(ch.New)))
		if ch.Key == "nested" {
			return
		}
		_ = v.Snapshot() // no lock is held
		if ch.Kind == Garbage {
			v.Apply(c.message("nested=1")) // told after the others have heard this
		}
	})
	_, stopOther := v.Listen(func(ch Change[int]) { other = append(other, fmt.Sprint(ch.Kind, " ", ch.Key)) })
	want(t, state(before), "a=1")
	for _, e := range []string{"a=2", "b=5", "b=4", "b=", "nothing=", "b=x"} {
		v.Apply(c.message(e))
	}
	c.now = c.now.Add(time.Minute)
	v.Expire()
	stopOther()
	v.Apply(c.message("c=1"))
	stop()
	v.Apply(c.message("d=1"))
	if diff := cmp.Diff([]string{"put a 1>2", "put b ->5", "rejected b 5>4", "removed b 5>-", "removed nothing ->-", "garbage b ->-",
		"put nested ->1", "expired a 2>-", "expired nested 1>-", "put c ->1"}, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"put a", "put b", "rejected b", "removed b", "removed nothing", "garbage b", "put nested", "expired a",
		"expired nested"}, other); diff != "" {
		t.Errorf("told the other (-want +got):\n%s", diff)
	}
}

// TestListenerPanics: a listener that panics takes its caller down, but leaves no lock behind.
func TestListenerPanics(t *testing.T) {
	c := newClock()
	v := New(Options[int]{Decode: decode, Now: c.Now})
	_, stop := v.Listen(func(Change[int]) { panic("listener") })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		v.Apply(c.message("a=1"))
	}()
	stop()
	v.Apply(c.message("b=1"))
	want(t, state(v.Snapshot()), "a=1 b=1")
}

// TestAgainstModel drives a view with random messages and time, and compares it with a plain map; snapshots that were taken
// on the way must still say what they said.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		const ttl = 10 * time.Second
		o := Options[int]{Decode: decode, Now: c.Now, Logger: quiet()}
		if rapid.Bool().Draw(t, "ttl") {
			o.TTL = ttl
		}
		if rapid.Bool().Draw(t, "rule") {
			o.Keep = func(_ string, old, new *Entry[int]) bool { return old != nil && new != nil && new.Value < old.Value }
		}
		v := New(o)
		type value struct {
			n  int
			at time.Time
		}
		model := map[string]value{}
		type kept struct {
			s    Snapshot[int]
			said string
		}
		var snapshots []kept
		told := map[string]int{}
		_, stop := v.Listen(func(ch Change[int]) {
			switch ch.Kind {
			case Put:
				told[ch.Key] = ch.New.Value
			case Removed, Expired:
				delete(told, ch.Key)
			}
		})
		defer stop()
		expire := func() {
			if o.TTL > 0 {
				maps.DeleteFunc(model, func(_ string, m value) bool { return c.now.Sub(m.at) >= ttl })
			}
		}
		said := func() string {
			expire()
			var all []string
			for _, k := range slices.Sorted(maps.Keys(model)) {
				all = append(all, fmt.Sprintf("%s=%d", k, model[k].n))
			}
			return strings.Join(all, " ")
		}
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			key := fmt.Sprintf("k%02d", rapid.IntRange(0, 40).Draw(t, "key"))
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0:
				v.Apply(c.message(key + "=garbage"))
			case 1, 2:
				v.Apply(c.message(key + "="))
				delete(model, key)
			case 3:
				c.now = c.now.Add(time.Duration(rapid.IntRange(1, 5).Draw(t, "seconds")) * time.Second)
				v.Expire()
				expire()
			case 4:
				snapshots = append(snapshots, kept{v.Snapshot(), said()})
			default:
				n := rapid.IntRange(0, 100).Draw(t, "value")
				v.Apply(c.message(fmt.Sprintf("%s=%d", key, n)))
				if old, ok := model[key]; !ok || o.Keep == nil || n >= old.n {
					model[key] = value{n, c.now}
				}
			}
		}
		snapshots = append(snapshots, kept{v.Snapshot(), said()})
		for i, k := range snapshots {
			if got := state(k.s); got != k.said || k.s.Len() != len(k.s.Keys()) || !slices.IsSorted(k.s.Keys()) {
				t.Fatalf("snapshot %d of %d says %q (%d keys), said %q", i, len(snapshots), got, k.s.Len(), k.said)
			}
		}
		final := snapshots[len(snapshots)-1].s
		for e := range final.All() {
			if told[e.Key] != e.Value {
				t.Fatalf("listeners were told %s=%d, it is %d", e.Key, told[e.Key], e.Value)
			}
		}
		if len(told) != final.Len() {
			t.Fatalf("listeners know %d keys, there are %d", len(told), final.Len())
		}
		if st := final.Stats; st.Applied != st.Put+st.Tombstones+st.Rejected+st.Garbage {
			t.Fatalf("stats do not add up: %+v", st)
		}
	})
}

// TestConcurrent runs everything at once, for the race detector; snapshots must be consistent: every key has the value that
// the number of applied messages says.
func TestConcurrent(t *testing.T) {
	v := New(Options[int]{Decode: decode, TTL: time.Hour})
	const keys, rounds = 50, 40
	var listened int
	_, stop := v.Listen(func(Change[int]) { listened++ }) // one at a time: no lock needed
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				s := v.Snapshot()
				sum := 0
				for e := range s.All() {
					sum += e.Value + 1
				}
				if int64(sum) != s.Stats.Put {
					t.Errorf("the values are of %d messages, %d were put", sum, s.Stats.Put)
				}
				_, stop := v.Listen(func(Change[int]) {})
				stop()
				v.Expire()
			}
		})
	}
	for round := range rounds {
		for k := range keys {
			v.Apply(topics.Message{Key: fmt.Sprint(k), Payload: fmt.Append(nil, round), Received: time.Now()})
		}
	}
	close(done)
	readers.Wait()
	stop()
	if listened != keys*rounds {
		t.Errorf("%d changes were told, want %d", listened, keys*rounds)
	}
}

// memory is an in-memory log with a publisher.
func memory(t *testing.T, name string) (*topics.Memory, func(events ...string)) {
	t.Helper()
	log := topics.NewMemory(topics.MemoryOptions{})
	p, err := log.Publisher(context.Background(), name, topics.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return log, func(events ...string) {
		t.Helper()
		for _, e := range events {
			key, value, _ := strings.Cut(e, "=")
			if _, err := p.Publish(context.Background(), key, []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestPump(t *testing.T) {
	log, publish := memory(t, topic)
	defer log.Close()
	publish("a=1", "b=1", "b=")
	s, err := log.Subscribe(t.Context(), topic, topics.SubscribeOptions{From: topics.Earliest})
	if err != nil {
		t.Fatal(err)
	}
	v := New(Options[int]{Decode: decode})
	if n, err := v.Pump(s.(Poller)); n != 3 || err != nil {
		t.Errorf("pumped %d, %v", n, err)
	}
	now := v.Snapshot()
	want(t, state(now), "a=1")
	if !now.Ready([]string{"a"}) || now.Ready([]string{"a", "b"}) || !now.Source.Connected {
		t.Errorf("snapshot %+v", now)
	}
	publish("c=1")
	if v.Snapshot().CaughtUp {
		t.Error("caught up although a message waits")
	}
	log.Disconnect(topic)
	if s := v.Snapshot(); s.CaughtUp || s.Source.Connected {
		t.Errorf("snapshot of a disconnected view %+v", s)
	}
	log.Reconnect(topic)
	if n, err := v.Pump(s.(Poller)); n != 1 || err != nil || !v.Snapshot().CaughtUp {
		t.Errorf("pumped %d, %v; %+v", n, err, v.Snapshot())
	}
	_ = log.Close()
	if _, err := v.Pump(s.(Poller)); !errors.Is(err, topics.ErrClosed) {
		t.Errorf("pump: %v, want ErrClosed", err)
	}
}

// TestReceivedIsNotApplied: a message that the subscription has handed out but that is not folded in yet is not counted as
// caught up.
func TestReceivedIsNotApplied(t *testing.T) {
	log, publish := memory(t, topic)
	defer log.Close()
	publish("a=1")
	s, err := log.Subscribe(t.Context(), topic, topics.SubscribeOptions{From: topics.Earliest})
	if err != nil {
		t.Fatal(err)
	}
	v := New(Options[int]{Decode: decode})
	v.attach(s)
	m, err := s.Receive(t.Context())
	if err != nil || !s.Status().CaughtUp {
		t.Fatalf("%v, %+v", err, s.Status())
	}
	if v.Snapshot().CaughtUp {
		t.Error("caught up before the message was applied")
	}
	v.Apply(m)
	if !v.Snapshot().CaughtUp {
		t.Error("not caught up after it was applied")
	}
}

// running runs f beside the test in a bubble, and stops it at the end.
func running(t *testing.T, f func(ctx context.Context) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f(ctx) }()
	return func() error {
		cancel()
		return <-done
	}
}

func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, publish := memory(t, topic)
		defer log.Close()
		publish("a=1")
		s, err := log.Subscribe(context.Background(), topic, topics.SubscribeOptions{From: topics.Earliest})
		if err != nil {
			t.Fatal(err)
		}
		v := New(Options[int]{Decode: decode, TTL: time.Minute})
		expired := make(chan string, 10)
		_, unlisten := v.Listen(func(c Change[int]) {
			if c.Kind == Expired {
				expired <- c.Key
			}
		})
		defer unlisten()
		stop := running(t, func(ctx context.Context) error { return v.Run(ctx, s) })
		synctest.Wait()
		want(t, state(v.Snapshot()), "a=1")
		if !v.Snapshot().Ready([]string{"a"}) {
			t.Errorf("not ready: %+v", v.Snapshot())
		}
		publish("b=2")
		if key := <-expired; key != "a" { // by itself, without any message
			t.Errorf("%s expired first", key)
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v, want context.Canceled", err)
		}
		stop = running(t, func(ctx context.Context) error { return v.Run(ctx, s) })
		synctest.Wait()
		_ = s.Close()
		synctest.Wait()
		if err := stop(); !errors.Is(err, topics.ErrClosed) {
			t.Errorf("run: %v, want ErrClosed", err)
		}
	})
}

// losing makes a log lose the next n deliveries.
func losing(log *topics.Memory) (next *atomic.Int64) {
	next = new(atomic.Int64)
	log.SetFaults(topics.Faults{Deliver: func(topics.Message) topics.Delivery {
		if next.Add(-1) >= 0 {
			return topics.Lose
		}
		return topics.Deliver
	}})
	return next
}

// TestFollowRepairs: after a loss everything is read again; what was missed, also a tombstone and a key that began anew with
// a lower version, is right afterwards, and listeners are told the differences.
func TestFollowRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, publish := memory(t, topic)
		defer log.Close()
		publish("a=1", "b=1", "c=5", "same=1")
		lose := losing(log)
		v := New(Options[int]{Decode: decode, Logger: quiet(), Keep: func(_ string, old, new *Entry[int]) bool {
			return old != nil && new != nil && new.Value <= old.Value
		}})
		stop := running(t, func(ctx context.Context) error {
			return v.Follow(ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
		})
		time.Sleep(time.Second)
		want(t, state(v.Snapshot()), "a=1 b=1 c=5 same=1")
		var told []string
		_, unlisten := v.Listen(func(c Change[int]) { told = append(told, fmt.Sprint(c.Kind, " ", c.Key)) })
		defer unlisten()

		lose.Store(4)
		publish("b=", "c=", "c=1", "d=1") // lost
		time.Sleep(10 * time.Second)
		s := v.Snapshot()
		want(t, state(s), "a=1 c=1 d=1 same=1")
		if !s.Ready(nil) || s.Stats.Resyncs != 1 {
			t.Errorf("after reading again: %+v", s)
		}
		if diff := cmp.Diff([]string{"removed b", "removed c", "put c", "put d"}, told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}

		// A topic that loses again and again is not read again and again.
		lose.Store(1)
		publish("a=")
		time.Sleep(30 * time.Second)
		publish("e=1")
		synctest.Wait()
		s = v.Snapshot()
		want(t, state(s), "a=1 c=1 d=1 e=1 same=1")
		if s.Stats.Resyncs != 1 || s.Sound || s.Ready(nil) {
			t.Errorf("half a minute later: %+v", s)
		}
		time.Sleep(time.Minute)
		want(t, state(v.Snapshot()), "c=1 d=1 e=1 same=1")
		if diff := cmp.Diff([]string{"put e", "removed a"}, told[4:]); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("follow: %v, want context.Canceled", err)
		}
	})
}

// TestFollowLosesAgain: when messages are lost again while everything is read again, the old state stays, goes on, and is
// not sound; a later attempt repairs it.
func TestFollowLosesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, publish := memory(t, topic)
		defer log.Close()
		publish("a=1", "b=1")
		lose := losing(log)
		v := New(Options[int]{Decode: decode, Logger: quiet()})
		stop := running(t, func(ctx context.Context) error {
			return v.Follow(ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
		})
		time.Sleep(time.Second)
		lose.Store(4) // the tombstone, and then everything again
		publish("a=")
		time.Sleep(10 * time.Second)
		publish("c=1")
		time.Sleep(10 * time.Second)
		s := v.Snapshot()
		want(t, state(s), "a=1 b=1 c=1")
		if s.Sound || !s.CaughtUp || s.Stats.Resyncs != 0 {
			t.Errorf("after losing again: %+v", s)
		}
		time.Sleep(2 * time.Minute)
		s = v.Snapshot()
		want(t, state(s), "b=1 c=1")
		if !s.Ready(nil) || s.Stats.Resyncs != 1 {
			t.Errorf("in the end: %+v", s)
		}
		_ = stop()
	})
}

// TestFollowGoesOn: the log does not answer when everything is to be read again; the old state stays until it does.
func TestFollowGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem, publish := memory(t, topic)
		defer mem.Close()
		publish("a=1")
		log := &stubborn{Log: mem}
		lose := losing(mem)
		v := New(Options[int]{Decode: decode, Logger: quiet()})
		stop := running(t, func(ctx context.Context) error {
			return v.Follow(ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
		})
		synctest.Wait()
		log.refuse.Store(3)
		lose.Store(1)
		publish("a=")
		time.Sleep(2 * time.Second)
		s := v.Snapshot()
		want(t, state(s), "a=1")
		if s.CaughtUp || s.Sound {
			t.Errorf("while everything is read again: %+v", s)
		}
		time.Sleep(10 * time.Second)
		want(t, state(v.Snapshot()), "")
		if !v.Snapshot().Ready(nil) {
			t.Errorf("not ready: %+v", v.Snapshot())
		}
		log.refuse.Store(1 << 30)
		lose.Store(1)
		publish("b=1")
		time.Sleep(2 * time.Minute)
		if err := stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("follow: %v, want context.Canceled", err)
		}
	})
}

// stubborn refuses subscriptions for a while.
type stubborn struct {
	topics.Log
	refuse atomic.Int64
}

func (s *stubborn) Subscribe(ctx context.Context, name string, o topics.SubscribeOptions) (topics.Subscription, error) {
	if s.refuse.Add(-1) >= 0 {
		return nil, io.ErrUnexpectedEOF
	}
	return s.Log.Subscribe(ctx, name, o)
}

func TestFollowFails(t *testing.T) {
	log := topics.NewMemory(topics.MemoryOptions{})
	defer log.Close()
	v := New(Options[int]{Decode: decode})
	if err := v.Follow(t.Context(), log, "nonsense", topics.SubscribeOptions{}); err == nil {
		t.Error("followed a topic without a name")
	}
	err := v.Follow(t.Context(), log, topic, topics.SubscribeOptions{Existing: true})
	if !errors.Is(err, topics.ErrNoTopic) {
		t.Errorf("follow: %v, want ErrNoTopic", err)
	}
}
