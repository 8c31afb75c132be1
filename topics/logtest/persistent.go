package logtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/topics"
)

func numbered(n int) []event {
	var es []event
	for i := range n {
		es = append(es, event{fmt.Sprintf("key-%d", i%7), fmt.Sprintf(`{"n":%d}`, i)})
	}
	return es
}

// checkMessages checks that messages are the published events, in order, each with its id.
func checkMessages(t *testing.T, topic string, got []topics.Message, want []event, ids []topics.MessageID) {
	t.Helper()
	if diff := cmp.Diff(want, events(got)); diff != "" {
		t.Fatalf("events (-published +received):\n%s", diff)
	}
	for i, m := range got {
		if m.ID != ids[i] {
			t.Errorf("message %d has id %v, publishing it returned %v", i, m.ID, ids[i])
		}
		if i > 0 && !got[i-1].ID.Less(m.ID) {
			t.Errorf("message %d has id %v, after %v", i, m.ID, got[i-1].ID)
		}
		if m.Topic != topic || m.Producer == "" || m.PublishTime.IsZero() || m.Received.IsZero() {
			t.Errorf("message %d is incomplete: %+v", i, m)
		}
	}
}

func inOrder(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	want := numbered(50)
	ids := publish(t, ctx, pub, want...)
	got := receive(t, ctx, sub, len(want))
	checkMessages(t, topic, got, want, ids)
	st := sub.Status()
	if !st.Connected || st.Messages != 50 || st.Tombstones != 0 || st.Lost != 0 || st.Last != ids[49] || st.LastHeard.IsZero() || !st.BlindSince.IsZero() {
		t.Errorf("status %+v", st)
	}
}

func history(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	want := numbered(20)
	ids := publish(t, ctx, pub, want...)
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	if sub.Status().CaughtUp {
		t.Error("caught up before anything was received")
	}
	got := receive(t, ctx, sub, len(want))
	checkMessages(t, topic, got, want, ids)
	if st := sub.Status(); !st.CaughtUp {
		t.Errorf("not caught up after the last message: %+v", st)
	}
	nothing(t, ctx, sub)
}

func latest(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	publish(t, ctx, pub, event{"old", "1"}, event{"gone", ""})
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{})
	if !sub.Status().CaughtUp {
		t.Errorf("not caught up at the end of the topic: %+v", sub.Status())
	}
	ids := publish(t, ctx, pub, event{"new", "2"}, event{"new", ""}, event{"newer", "3"})
	checkMessages(t, topic, receive(t, ctx, sub, 3), []event{{"new", "2"}, {"new", ""}, {"newer", "3"}}, ids)
}

func empty(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	sub := subscription(t, ctx, log, s.persistent(), topics.SubscribeOptions{From: topics.Earliest})
	if got := drain(t, ctx, sub); len(got) != 0 {
		t.Errorf("received %v from an empty topic", events(got))
	}
	if st := sub.Status(); !st.Connected || !st.CaughtUp || st.Messages != 0 || !st.LastHeard.IsZero() {
		t.Errorf("status %+v", st)
	}
}

// tombstones come alone, in a row, first and last; none may be lost, and being caught up must not hang on the last one.
func tombstones(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	before := []event{{"a", ""}, {"b", ""}, {"a", "1"}, {"a", ""}, {"b", "2"}, {"b", ""}, {"c", ""}, {"d", ""}}
	ids := publish(t, ctx, pub, before...)
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	checkMessages(t, topic, drain(t, ctx, sub), before, ids)
	after := []event{{"e", ""}, {"e", "5"}, {"f", ""}, {"e", ""}}
	ids = publish(t, ctx, pub, after...)
	checkMessages(t, topic, receive(t, ctx, sub, len(after)), after, ids)
	if st := sub.Status(); !st.CaughtUp || st.Tombstones != 9 || st.Messages != 12 || st.Lost != 0 {
		t.Errorf("status %+v", st)
	}
	only := s.persistent()
	pub = publisher(t, ctx, log, only, topics.PublishOptions{})
	ids = publish(t, ctx, pub, event{"a", ""})
	sub = subscription(t, ctx, log, only, topics.SubscribeOptions{From: topics.Earliest})
	checkMessages(t, only, drain(t, ctx, sub), []event{{"a", ""}}, ids)
}

func manyPublishers(t *testing.T, s suite) {
	const publishers, each = 4, 25
	ctx, log := s.begin(t)
	topic := s.persistent()
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	var all sync.WaitGroup
	for p := range publishers {
		pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
		all.Go(func() {
			for i := range each {
				if _, err := pub.Publish(ctx, fmt.Sprint(p), fmt.Append(nil, i)); err != nil {
					t.Errorf("publish: %v", err)
				}
			}
		})
	}
	got := receive(t, ctx, sub, publishers*each)
	all.Wait()
	next, producers := map[string]int{}, map[string]string{}
	for i, m := range got {
		if want := fmt.Sprint(next[m.Key]); string(m.Payload) != want {
			t.Fatalf("publisher %s: got %s, want %s", m.Key, m.Payload, want)
		}
		next[m.Key]++
		if i > 0 && !got[i-1].ID.Less(m.ID) {
			t.Errorf("id %v after %v", m.ID, got[i-1].ID)
		}
		if p, ok := producers[m.Key]; ok && p != m.Producer {
			t.Errorf("publisher %s has the names %s and %s", m.Key, p, m.Producer)
		}
		producers[m.Key] = m.Producer
	}
}

func independent(t *testing.T, s suite) {
	ctx, log := s.begin(t)
	topic := s.persistent()
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	want := numbered(10)
	ids := publish(t, ctx, pub, want...)
	one := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	receive(t, ctx, one, 5)
	two := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	checkMessages(t, topic, receive(t, ctx, two, 10), want, ids)
	if err := two.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	checkMessages(t, topic, receive(t, ctx, one, 5), want[5:], ids[5:])
}

// compacted reads may leave out what was superseded, and must give the same latest values as the whole topic.
func compacted(t *testing.T, s suite) {
	if s.hooks.Compact == nil {
		t.Skip("this log cannot be made to compact")
	}
	ctx, log := s.begin(t)
	topic := s.persistent()
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	early := []event{{"a", "1"}, {"b", "1"}, {"a", "2"}, {"c", "1"}, {"d", "1"}, {"d", ""}, {"c", "2"}, {"e", "1"}, {"e", ""}}
	publish(t, ctx, pub, early...)
	s.hooks.Compact(t, topic)
	late := []event{{"b", ""}, {"f", "1"}, {"a", "3"}, {"g", "1"}, {"g", ""}}
	publish(t, ctx, pub, late...)

	whole := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	all := drain(t, ctx, whole)
	if diff := cmp.Diff(append(early, late...), events(all)); diff != "" {
		t.Errorf("the whole topic (-published +received):\n%s", diff)
	}
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	got := drain(t, ctx, sub)
	if diff := cmp.Diff(fold(all), fold(got)); diff != "" {
		t.Errorf("latest values (-whole +compacted):\n%s", diff)
	}
	if len(got) >= len(all) {
		t.Errorf("the compacted read gave %d messages of %d", len(got), len(all))
	}
	if diff := cmp.Diff(late, events(got[len(got)-len(late):])); diff != "" {
		t.Errorf("after the compacted part (-published +received):\n%s", diff)
	}
	if st := sub.Status(); !st.CaughtUp || st.Lost != 0 || st.Uncertain != 0 {
		t.Errorf("status %+v", st)
	}
	publish(t, ctx, pub, event{"a", ""})
	if diff := cmp.Diff([]event{{"a", ""}}, events(receive(t, ctx, sub, 1))); diff != "" {
		t.Errorf("afterwards (-published +received):\n%s", diff)
	}
}

// compactedAway has nothing but tombstones at its end when it is compacted: a reader never sees them, and is caught up.
func compactedAway(t *testing.T, s suite) {
	if s.hooks.Compact == nil {
		t.Skip("this log cannot be made to compact")
	}
	ctx, log := s.begin(t)
	topic := s.persistent()
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	publish(t, ctx, pub, event{"a", "1"}, event{"b", "1"}, event{"b", ""})
	s.hooks.Compact(t, topic)
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	if diff := cmp.Diff(map[string]string{"a": "1"}, fold(drain(t, ctx, sub))); diff != "" {
		t.Errorf("latest values (-want +got):\n%s", diff)
	}
	publish(t, ctx, pub, event{"a", ""})
	s.hooks.Compact(t, topic)
	sub = subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	if got := fold(drain(t, ctx, sub)); len(got) != 0 {
		t.Errorf("latest values %v, want none", got)
	}
	publish(t, ctx, pub, event{"c", "1"})
	if diff := cmp.Diff([]event{{"c", "1"}}, events(receive(t, ctx, sub, 1))); diff != "" {
		t.Errorf("afterwards (-published +received):\n%s", diff)
	}
}

// interrupted subscriptions go on where they were: nothing twice, nothing missing, tombstones included.
func interrupted(t *testing.T, s suite) {
	if s.hooks.Interrupt == nil {
		t.Skip("this log cannot be interrupted")
	}
	ctx, log := s.begin(t)
	topic := s.persistent()
	pub := publisher(t, ctx, log, topic, topics.PublishOptions{})
	sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
	var want []event
	var ids []topics.MessageID
	for round := range 3 {
		part := []event{{"a", fmt.Sprint(round)}, {"b", ""}, {"c", fmt.Sprint(round)}, {"a", ""}}
		ids = append(ids, persist(t, ctx, pub, part...)...)
		want = append(want, part...)
		s.hooks.Interrupt(t, topic)
	}
	last := []event{{"d", "1"}, {"d", ""}}
	ids = append(ids, persist(t, ctx, pub, last...)...)
	want = append(want, last...)
	checkMessages(t, topic, receive(t, ctx, sub, len(want)), want, ids)
	nothing(t, ctx, sub)
	if st := sub.Status(); !st.CaughtUp || !st.Connected || st.Resubscribe == 0 || st.Blind <= 0 || st.Lost != 0 {
		t.Errorf("status %+v", st)
	}
}

// persist publishes events one by one and repeats what fails, as an interruption may hit a publisher too. An event whose
// publishing failed may have been accepted; the tests that use this give every event only once, so they would notice.
func persist(t *testing.T, ctx context.Context, p topics.Publisher, es ...event) []topics.MessageID {
	t.Helper()
	var ids []topics.MessageID
	for _, e := range es {
		for {
			id, err := p.Publish(ctx, e.Key, []byte(e.Payload))
			if err == nil {
				ids = append(ids, id)
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("publish %q: %v", e.Key, err)
			}
			t.Logf("publish %q again: %v", e.Key, err)
		}
	}
	return ids
}

// manyAtOnce: events that are sent together arrive in their order, those of an exclusive publisher, too; after Close none is sent.
func manyAtOnce(t *testing.T, s suite) {
	for _, exclusive := range []bool{false, true} {
		ctx, log := s.begin(t)
		topic := s.persistent()
		sub := subscription(t, ctx, log, topic, topics.SubscribeOptions{From: topics.Earliest})
		pub := publisher(t, ctx, log, topic, topics.PublishOptions{Exclusive: exclusive})
		want := append(numbered(60), event{"k1", ""}, event{"k1", "after the tombstone"})
		events := make([]topics.Event, len(want))
		for i, e := range want {
			events[i] = topics.Event{Key: e.Key, Payload: []byte(e.Payload)}
		}
		for i, err := range topics.PublishAll(ctx, pub, events) {
			if err != nil {
				t.Fatalf("event %d: %v", i, err)
			}
		}
		for i, m := range receive(t, ctx, sub, len(want)) {
			if m.Key != want[i].Key || string(m.Payload) != want[i].Payload {
				t.Fatalf("message %d is %s=%q, want %v", i, m.Key, m.Payload, want[i])
			}
		}
		if err := pub.Close(); err != nil {
			t.Fatal(err)
		}
		for i, err := range topics.PublishAll(ctx, pub, events[:3]) {
			if !errors.Is(err, topics.ErrClosed) {
				t.Errorf("event %d after Close: %v, want ErrClosed", i, err)
			}
		}
	}
}
