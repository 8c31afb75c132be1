// Package logtest is the behaviour that every event log has in common. Each implementation of topics.Log runs it.
package logtest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// Hooks are what a log can be made to do from outside. A test whose hook is nil is skipped.
type Hooks struct {
	// Namespace is where the test's topics live; "" = public/default.
	Namespace string
	// Compact compacts a persistent topic and returns when that is done.
	Compact func(t *testing.T, topic string)
	// Interrupt makes all subscriptions of a topic lose their connection once.
	Interrupt func(t *testing.T, topic string)
}

// limit bounds how long a test waits for what must come. It is no expectation: a test that reaches it fails.
const limit = 60 * time.Second

// Run runs every test against logs made by open. open must arrange for the log to be closed when the test ends.
func Run(t *testing.T, open func(t *testing.T) topics.Log, hooks ...Hooks) {
	var h Hooks
	if len(hooks) > 0 {
		h = hooks[0]
	}
	if h.Namespace == "" {
		h.Namespace = "public/default"
	}
	s := suite{open: open, hooks: h}
	for _, test := range []struct {
		name string
		run  func(*testing.T, suite)
	}{
		{"persistent/in order", inOrder},
		{"persistent/history", history},
		{"persistent/latest", latest},
		{"persistent/empty", empty},
		{"persistent/tombstones", tombstones},
		{"persistent/many publishers", manyPublishers},
		{"persistent/many at once", manyAtOnce},
		{"persistent/independent subscriptions", independent},
		{"persistent/compacted", compacted},
		{"persistent/compacted away", compactedAway},
		{"persistent/interrupted", interrupted},
		{"non-persistent/in order", volatileInOrder},
		{"non-persistent/no history", volatileNoHistory},
		{"non-persistent/interrupted", volatileInterrupted},
		{"non-persistent/compacted is refused", volatileCompacted},
		{"exclusive/one at a time", exclusive},
		{"exclusive/wait", exclusiveWait},
		{"exclusive/give up waiting", exclusiveGiveUp},
		{"exclusive/close while waiting", exclusiveClose},
		{"schema", schema},
		{"existing", existing},
		{"bad names", badNames},
		{"close/subscription", closeSubscription},
		{"close/publisher", closePublisher},
		{"close/log", closeLog},
		{"context", contexts},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

type suite struct {
	open  func(t *testing.T) topics.Log
	hooks Hooks
}

// begin opens a log and gives the test its time.
func (s suite) begin(t *testing.T) (context.Context, topics.Log) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx, s.open(t)
}

// topic is the name of a topic that no other test uses.
func (s suite) topic(domain string) string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return domain + "://" + s.hooks.Namespace + "/logtest-" + hex.EncodeToString(b[:])
}

func (s suite) persistent() string { return s.topic("persistent") }
func (s suite) volatile() string   { return s.topic("non-persistent") }

// event is what a test compares of a message.
type event struct{ Key, Payload string }

func publisher(t *testing.T, ctx context.Context, log topics.Log, topic string, o topics.PublishOptions) topics.Publisher {
	t.Helper()
	p, err := log.Publisher(ctx, topic, o)
	if err != nil {
		t.Fatalf("publisher of %s: %v", topic, err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func subscription(t *testing.T, ctx context.Context, log topics.Log, topic string, o topics.SubscribeOptions) topics.Subscription {
	t.Helper()
	s, err := log.Subscribe(ctx, topic, o)
	if err != nil {
		t.Fatalf("subscribe to %s: %v", topic, err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// publish sends events and returns their ids.
func publish(t *testing.T, ctx context.Context, p topics.Publisher, events ...event) []topics.MessageID {
	t.Helper()
	var ids []topics.MessageID
	for _, e := range events {
		id, err := p.Publish(ctx, e.Key, []byte(e.Payload))
		if err != nil {
			t.Fatalf("publish %q: %v", e.Key, err)
		}
		ids = append(ids, id)
	}
	return ids
}

// receive takes n messages.
func receive(t *testing.T, ctx context.Context, s topics.Subscription, n int) []topics.Message {
	t.Helper()
	var messages []topics.Message
	for len(messages) < n {
		m, err := s.Receive(ctx)
		if err != nil {
			t.Fatalf("receive message %d of %d: %v; status %+v", len(messages)+1, n, err, s.Status())
		}
		messages = append(messages, m)
	}
	return messages
}

// drain takes messages until the subscription has caught up.
func drain(t *testing.T, ctx context.Context, s topics.Subscription) []topics.Message {
	t.Helper()
	var messages []topics.Message
	err := topics.Drain(ctx, s, func(m topics.Message) error {
		messages = append(messages, m)
		return nil
	})
	if err != nil {
		t.Fatalf("drain after %d messages: %v; status %+v", len(messages), err, s.Status())
	}
	return messages
}

// nothing checks that no message waits. It waits only briefly, so it can miss one, but never fails by chance.
func nothing(t *testing.T, ctx context.Context, s topics.Subscription) {
	t.Helper()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	m, err := s.Receive(short)
	if err == nil {
		t.Fatalf("received %q %q, want nothing", m.Key, m.Payload)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("receive: %v, want the end of the context", err)
	}
}

func events(messages []topics.Message) []event {
	var es []event
	for _, m := range messages {
		es = append(es, event{m.Key, string(m.Payload)})
	}
	return es
}

// fold is the latest value of every key.
func fold(messages []topics.Message) map[string]string {
	latest := map[string]string{}
	for _, m := range messages {
		if m.Tombstone() {
			delete(latest, m.Key)
		} else {
			latest[m.Key] = string(m.Payload)
		}
	}
	return latest
}
