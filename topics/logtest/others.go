package logtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/topics"
)

func volatileInOrder(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.volatile()
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{})
	st := sub.Status()
	if !st.Connected || !st.CaughtUp {
		t.Errorf("status %+v", st)
	}
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	heard(t, ctx, pub, sub)
	before := sub.Status().Messages
	want := append(numbered(300), event{"key-0", ""}, event{"key-1", "last"})
	ids := publish(t, ctx, pub, want...)
	got := receive(t, ctx, sub, len(want))
	if diff := cmp.Diff(want, events(got)); diff != "" {
		t.Fatalf("events (-published +received):\n%s", diff)
	}
	for i, m := range got {
		if m.ID != (topics.MessageID{}) || ids[i] != (topics.MessageID{}) {
			t.Errorf("message %d has the ids %v and %v, want none", i, m.ID, ids[i])
		}
		if m.Topic != topic || m.Producer == "" || m.PublishTime.IsZero() || m.Received.IsZero() {
			t.Errorf("message %d is incomplete: %+v", i, m)
		}
	}
	if st := sub.Status(); !st.CaughtUp || st.Messages != before+int64(len(want)) || st.Tombstones != 1 {
		t.Errorf("status %+v", st)
	}
}

// heard returns when a subscription hears its non-persistent topic, with nothing left to receive. Brokers drop what is
// published before they know that the subscriber is ready, and it tells them only after it has subscribed.
func heard(t *testing.T, ctx context.Context, pub topics.Publisher, sub topics.Subscription) {
	t.Helper()
	next := func(key string) bool {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		m, err := sub.Receive(short)
		if err == nil && m.Key != "hello" && m.Key != "begin" {
			t.Fatalf("received %q, which was published before the subscription", m.Key)
		}
		return err == nil && m.Key == key
	}
	for publish(t, ctx, pub, event{"hello", "1"}); !next("hello"); publish(t, ctx, pub, event{"hello", "1"}) {
		if ctx.Err() != nil {
			t.Fatalf("nothing is heard: %v; status %+v", ctx.Err(), sub.Status())
		}
	}
	publish(t, ctx, pub, event{"begin", "1"})
	for !next("begin") {
		if ctx.Err() != nil {
			t.Fatalf("the last one is not heard: %v; status %+v", ctx.Err(), sub.Status())
		}
	}
}

func volatileNoHistory(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.volatile()
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	publish(t, ctx, pub, event{"old", "1"})
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	heard(t, ctx, pub, sub)
	publish(t, ctx, pub, event{"new", "2"})
	if diff := cmp.Diff([]event{{"new", "2"}}, events(receive(t, ctx, sub, 1))); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// volatileInterrupted subscriptions hear what is published after they are back.
func volatileInterrupted(t *testing.T, s suite) {
	if s.hooks.Interrupt == nil {
		t.Skip("this log cannot be interrupted")
	}
	ctx, log := s.begin(t)
	topic := s.volatile()
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{})
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	heard(t, ctx, pub, sub)
	publish(t, ctx, pub, event{"before", "1"})
	receive(t, ctx, sub, 1)
	s.hooks.Interrupt(t, topic)
	for n := 0; ; n++ {
		persist(t, ctx, pub, event{"after", fmt.Sprint(n)})
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		m, err := sub.Receive(short)
		cancel()
		if err == nil && m.Key == "after" {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("nothing arrives after an interruption: %v; status %+v", err, sub.Status())
		}
	}
	if st := sub.Status(); !st.Connected || st.Resubscribe == 0 || st.Blind <= 0 || !st.BlindSince.IsZero() {
		t.Errorf("status %+v", st)
	}
}

func volatileCompacted(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	if _, err := log.Subscribe(ctx, s.volatile(), topics.SubscribeOptions{Compacted: true}); err == nil {
		t.Error("a non-persistent topic was read compacted")
	}
}

func exclusive(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	first := publisher(t, ctx, log, topic, topics.PublishOptions{Exclusive: true})
	publish(t, ctx, first, event{"a", "1"})
	for _, o := range []topics.PublishOptions{{Exclusive: true}, {}} {
		if _, err := log.Publisher(ctx, topic, o); !errors.Is(err, topics.ErrFenced) {
			t.Errorf("publisher %+v beside an exclusive one: %v, want ErrFenced", o, err)
		}
	}
	publish(t, ctx, first, event{"a", "2"})
	if err := first.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	second := publisher(t, ctx, log, topic, topics.PublishOptions{})
	publish(t, ctx, second, event{"a", "3"})
	if _, err := log.Publisher(ctx, topic, topics.PublishOptions{Exclusive: true}); !errors.Is(err, topics.ErrFenced) {
		t.Errorf("exclusive publisher beside another one: %v, want ErrFenced", err)
	}
}

func exclusiveWait(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	first := publisher(t, ctx, log, topic, topics.PublishOptions{Exclusive: true, Wait: true})
	publish(t, ctx, first, event{"a", "1"})
	type result struct {
		p   topics.Publisher
		err error
	}
	turn := make(chan result, 1)
	go func() {
		p, err := log.Publisher(ctx, topic, topics.PublishOptions{Exclusive: true, Wait: true})
		turn <- result{p, err}
	}()
	select {
	case r := <-turn:
		t.Fatalf("a second exclusive publisher beside the first: %v", r.err)
	case <-time.After(200 * time.Millisecond):
	}
	publish(t, ctx, first, event{"a", "2"})
	if err := first.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	r := <-turn
	if r.err != nil {
		t.Fatalf("after the first was closed: %v", r.err)
	}
	defer r.p.Close()
	publish(t, ctx, r.p, event{"a", "3"})
}

func exclusiveGiveUp(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	first := publisher(t, ctx, log, topic, topics.PublishOptions{Exclusive: true})
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if _, err := log.Publisher(short, topic, topics.PublishOptions{Exclusive: true, Wait: true}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("waiting for one's turn: %v, want the end of the context", err)
	}
	publish(t, ctx, first, event{"a", "1"})
	if err := first.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	// Who gave up is not in line any more. A broker may notice that a moment later.
	for {
		p, err := log.Publisher(ctx, topic, topics.PublishOptions{Exclusive: true})
		if err == nil {
			publish(t, ctx, p, event{"a", "2"})
			_ = p.Close()
			return
		}
		if !errors.Is(err, topics.ErrFenced) || ctx.Err() != nil {
			t.Fatalf("publisher: %v", err)
		}
	}
}

func exclusiveClose(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	publisher(t, ctx, log, topic, topics.PublishOptions{Exclusive: true})
	done := make(chan error, 1)
	go func() {
		_, err := log.Publisher(ctx, topic, topics.PublishOptions{Exclusive: true, Wait: true})
		done <- err
	}()
	time.Sleep(200 * time.Millisecond) // so that it is in line, most likely; the outcome is the same if it is not
	if err := log.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := <-done; !errors.Is(err, topics.ErrClosed) {
		t.Errorf("waiting for one's turn: %v, want ErrClosed", err)
	}
}

func schema(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	const definition = `{"type":"record","name":"Load","namespace":"test","fields":[{"name":"cpu","type":"double"},{"name":"note","type":["null","string"],"default":null}]}`
	one := topics.Schema{Definition: definition, Properties: map[string]string{"__alwaysAllowNull": "true"}}
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{Schema: one})
	publish(t, ctx, pub, event{"a", `{"cpu":1}`}, event{"a", ""})
	again := publisher(t, ctx, log, topic, topics.PublishOptions{Schema: one})
	publish(t, ctx, again, event{"b", `{"cpu":2}`})
	none := publisher(t, ctx, log, topic, topics.PublishOptions{})
	publish(t, ctx, none, event{"c", `{"cpu":3}`})
	spaced := topics.Schema{Definition: `{"type": "record", "name": "Load", "namespace": "test",
		"fields": [{"name": "cpu", "type": "double"}, {"name": "note", "type": ["null", "string"], "default": null}]}`}
	same := publisher(t, ctx, log, topic, topics.PublishOptions{Schema: spaced})
	publish(t, ctx, same, event{"d", `{"cpu":4}`})

	other := topics.Schema{Definition: `{"type":"record","name":"Load","namespace":"test","fields":[{"name":"cpu","type":"long"}]}`}
	_, err := log.Publisher(ctx, topic, topics.PublishOptions{Schema: other})
	if !errors.Is(err, topics.ErrSchemaMismatch) {
		t.Errorf("publisher with another schema: %v, want ErrSchemaMismatch", err)
	}
	either := publisher(t, ctx, log, topic, topics.PublishOptions{Schema: other, Alternatives: []topics.Schema{one}})
	publish(t, ctx, either, event{"e", `{"cpu":5}`})
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	want := []event{{"a", `{"cpu":1}`}, {"a", ""}, {"b", `{"cpu":2}`}, {"c", `{"cpu":3}`}, {"d", `{"cpu":4}`}, {"e", `{"cpu":5}`}}
	if diff := cmp.Diff(want, events(drain(t, ctx, sub))); diff != "" {
		t.Errorf("events (-published +received):\n%s", diff)
	}
}

func existing(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	for _, topic := range []string{s.persistent(), s.volatile()} {
		if _, err := log.Subscribe(ctx, topic, topics.SubscribeOptions{Existing: true}); !errors.Is(err, topics.ErrNoTopic) {
			t.Errorf("subscribe to %s: %v, want ErrNoTopic", topic, err)
		}
		publisher(t, ctx, log, topic, topics.PublishOptions{})
		subscription(t, ctx, log, topic, topics.SubscribeOptions{Existing: true})
	}
}

func badNames(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	for _, topic := range []string{"", "topic", "persistent://a/b", "persistent://a//c", "http://a/b/c"} {
		if _, err := log.Subscribe(ctx, topic, topics.SubscribeOptions{}); err == nil {
			t.Errorf("subscribed to %q", topic)
		}
		if _, err := log.Publisher(ctx, topic, topics.PublishOptions{}); err == nil {
			t.Errorf("publisher of %q", topic)
		}
	}
}

func closeSubscription(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	for _, topic := range []string{s.persistent(), s.volatile()} {
		sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{})
		done := make(chan error, 1)
		go func() {
			_, err := sub.Receive(ctx)
			done <- err
		}()
		if err := sub.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-done; !errors.Is(err, topics.ErrClosed) {
			t.Errorf("the waiting receive: %v, want ErrClosed", err)
		}
		if _, err := sub.Receive(ctx); !errors.Is(err, topics.ErrClosed) {
			t.Errorf("a receive after close: %v, want ErrClosed", err)
		}
		if err := sub.Close(); err != nil {
			t.Errorf("close again: %v", err)
		}
	}
}

func closePublisher(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	pub := publisher(t, ctx, log, s.persistent(), topics.PublishOptions{})
	for range 2 {
		if err := pub.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := pub.Publish(ctx, "a", []byte("1")); !errors.Is(err, topics.ErrClosed) {
		t.Errorf("publish after close: %v, want ErrClosed", err)
	}
}

func closeLog(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{})
	if err := log.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if _, err := sub.Receive(ctx); !errors.Is(err, topics.ErrClosed) {
		t.Errorf("receive: %v, want ErrClosed", err)
	}
	if _, err := pub.Publish(ctx, "a", nil); !errors.Is(err, topics.ErrClosed) {
		t.Errorf("publish: %v, want ErrClosed", err)
	}
	if _, err := log.Subscribe(ctx, topic, topics.SubscribeOptions{}); !errors.Is(err, topics.ErrClosed) {
		t.Errorf("subscribe: %v, want ErrClosed", err)
	}
	if _, err := log.Publisher(ctx, topic, topics.PublishOptions{}); !errors.Is(err, topics.ErrClosed) {
		t.Errorf("publisher: %v, want ErrClosed", err)
	}
	if err := log.Close(); err != nil {
		t.Errorf("close again: %v", err)
	}
}

func contexts(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := log.Subscribe(ended, topic, topics.SubscribeOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("subscribe: %v, want context.Canceled", err)
	}
	if _, err := log.Publisher(ended, topic, topics.PublishOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("publisher: %v, want context.Canceled", err)
	}
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{})
	if _, err := sub.Receive(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("receive: %v, want context.Canceled", err)
	}
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	if _, err := pub.Publish(ended, "a", []byte("1")); !errors.Is(err, context.Canceled) {
		t.Errorf("publish: %v, want context.Canceled", err)
	}
	// The subscription goes on after a receive that was given up.
	publish(t, ctx, pub, event{"b", "2"})
	for {
		if m := receive(t, ctx, sub, 1)[0]; m.Key == "b" {
			return
		}
	}
}
