package pulsar

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// fakeVolatile is a non-persistent topic: what it is given goes to the newest consumer.
type fakeVolatile struct {
	mu        sync.Mutex
	consumers []*fakeConsumer
	refuse    error // no consumer is made
	gone      bool  // the broker knows none of the consumers
	deaf      bool  // the broker cannot be asked
}

type fakeConsumer struct {
	tap    tap
	out    chan record
	closed atomic.Bool
}

func (c *fakeConsumer) messages() <-chan record { return c.out }
func (c *fakeConsumer) last() (position, error) { return before, nil }
func (c *fakeConsumer) close()                  { c.closed.Store(true) }
func (c *fakeConsumer) subscription() string    { return "fake" }

func (f *fakeVolatile) open(t tap) (source, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		return nil, f.refuse
	}
	c := &fakeConsumer{tap: t, out: make(chan record, 100)}
	f.consumers = append(f.consumers, c)
	f.gone = false
	return c, nil
}

func (f *fakeVolatile) consumer() *fakeConsumer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.consumers[len(f.consumers)-1]
}

func (f *fakeVolatile) change(edit func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	edit()
}

func (f *fakeVolatile) publish(key, payload string) {
	f.consumer().out <- record{key: key, payload: []byte(payload), producer: "fake", id: position{size: 1}}
}

func (f *fakeVolatile) subscribe(t *testing.T, work *group, o topics.SubscribeOptions) *volatile {
	t.Helper()
	options := Options{Logger: slog.New(slog.DiscardHandler), Audit: 25 * time.Second}.withDefaults()
	n := topics.Name{Tenant: "a", Namespace: "b", Local: "c"}
	s := &volatile{loop: newLoop(n, options, work), consumers: func(context.Context, topics.Name, string) (int, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case f.deaf:
			return 0, errors.New("the broker does not answer")
		case f.gone:
			return 0, nil
		}
		return 1, nil
	}}
	if err := s.subscribe(context.Background(), o, f.open); err != nil {
		t.Fatal(err)
	}
	return s
}

func volatileBubble(t *testing.T, o topics.SubscribeOptions, run func(t *testing.T, f *fakeVolatile, s *volatile)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var work group
		f := &fakeVolatile{}
		s := f.subscribe(t, &work, o)
		run(t, f, s)
		_ = s.Close()
		work.Wait()
		for i, c := range f.consumers {
			if !c.closed.Load() {
				t.Errorf("consumer %d was left open", i)
			}
		}
	})
}

func TestVolatileDelivers(t *testing.T) {
	volatileBubble(t, topics.SubscribeOptions{}, func(t *testing.T, f *fakeVolatile, s *volatile) {
		for _, key := range []string{"a", "b", "a"} {
			f.publish(key, "1") // all with the same id
		}
		f.consumer().tap(signalDiscarded, 0, 0)
		f.publish("b", "")
		wantEvents(t, allOf(t, s), "a=1", "b=1", "a=1", "b=")
		st := s.Status()
		if st.Messages != 4 || st.Tombstones != 1 || st.Discarded != 1 || st.Lost != 0 || !st.CaughtUp || st.Last != (topics.MessageID{}) || st.Resubscribe != 0 {
			t.Errorf("status %+v", st)
		}
	})
}

func TestVolatileBlindness(t *testing.T) {
	volatileBubble(t, topics.SubscribeOptions{}, func(t *testing.T, f *fakeVolatile, s *volatile) {
		f.consumer().tap(signalClosed, 0, 0)
		time.Sleep(2 * time.Second)
		if st := s.Status(); st.Connected || st.CaughtUp || st.Blind != 2*time.Second {
			t.Errorf("status %+v", st)
		}
		f.consumer().tap(signalReconnected, 0, 0)
		if st := s.Status(); !st.Connected || !st.CaughtUp || st.Blind != 2*time.Second || st.Resubscribe != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

// TestVolatileAudit: the broker knows nothing of the subscription although the library believes to be connected. That is
// noticed, the blindness counts from when it was last known to work, and a new subscription is made, as often as it takes.
func TestVolatileAudit(t *testing.T) {
	volatileBubble(t, topics.SubscribeOptions{}, func(t *testing.T, f *fakeVolatile, s *volatile) {
		wantEvents(t, allOf(t, s)) // two audits find nothing wrong
		if st := s.Status(); st.Resubscribe != 0 || st.Blind != 0 {
			t.Errorf("status %+v", st)
		}
		f.change(func() { f.gone, f.refuse = true, errors.New("no broker") })
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
		defer cancel()
		if _, err := s.Receive(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if st := s.Status(); st.Connected || st.Blind != time.Minute || st.LastError != "no broker" {
			t.Errorf("status %+v", st)
		}
		f.change(func() { f.refuse = nil })
		wantEvents(t, allOf(t, s))
		f.publish("a", "1")
		wantEvents(t, allOf(t, s), "a=1")
		if st := s.Status(); !st.Connected || st.Resubscribe != 1 || st.Blind < time.Minute || len(f.consumers) != 2 {
			t.Errorf("status %+v, %d consumers", st, len(f.consumers))
		}
		f.change(func() { f.deaf = true })
		wantEvents(t, allOf(t, s))
		if st := s.Status(); !st.Connected || st.Resubscribe != 1 || st.LastError != "the broker does not answer" {
			t.Errorf("a broker that cannot be asked: %+v", st)
		}
	})
}

func TestVolatileSilence(t *testing.T) {
	volatileBubble(t, topics.SubscribeOptions{Silence: 40 * time.Second}, func(t *testing.T, f *fakeVolatile, s *volatile) {
		wantEvents(t, allOf(t, s))
		if st := s.Status(); st.Resubscribe != 1 || len(f.consumers) != 2 {
			t.Errorf("status %+v, %d consumers", st, len(f.consumers))
		}
	})
}

func TestVolatileGivesUp(t *testing.T) {
	volatileBubble(t, topics.SubscribeOptions{}, func(t *testing.T, f *fakeVolatile, s *volatile) {
		f.consumer().tap(signalGaveUp, 0, 0)
		wantEvents(t, allOf(t, s))
		f.publish("a", "1")
		wantEvents(t, allOf(t, s), "a=1")
		if st := s.Status(); st.Resubscribe != 1 || len(f.consumers) != 2 {
			t.Errorf("status %+v, %d consumers", st, len(f.consumers))
		}
	})
}
