package reporter_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// next is a world whose reporter is another process on the same log. The one before has crashed: it does nothing any more.
func (w *world) next(change func(*reporter.Options)) *world {
	o := reporter.Options{Cluster: w.fake, Log: w.log, Settings: settings.Defaults(), Version: "4.2.4", Clock: w.fake, Logger: quiet,
		Concurrent: 1, BundleStatsInterval: time.Minute}
	if change != nil {
		change(&o)
	}
	after := *w
	after.Reporter = reporter.New(o)
	return &after
}

// recorded is of whom topics.Reported says that something is on the topics, by the first letters of the ids.
func (w *world) recorded(t *testing.T) (out string) {
	t.Helper()
	w.log.Compact(topics.Reported)
	sub, err := w.log.Subscribe(t.Context(), topics.Reported, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var ids []string
	if err := topics.Drain(t.Context(), sub, func(m topics.Message) error {
		if !m.Tombstone() {
			ids = append(ids, m.Key[:1])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	for _, id := range ids {
		out += id
	}
	return out
}

// TestTakingOverFromACrash: what a reporter that crashed has left on the topics is taken back by the next one where the broker
// is gone, cannot be read or publishes itself by then.
func TestTakingOverFromACrash(t *testing.T) {
	crashed := func(t *testing.T) *world {
		w := newWorld(t, newFake(a, b, c), nil)
		w.poll(t)
		w.onTopics(t, "abc", "abc", "abc", "")
		if got := w.recorded(t); got != "abc" {
			t.Fatalf("recorded are %q", got)
		}
		return w
	}
	t.Run("a broker has left", func(t *testing.T) {
		w := crashed(t)
		w.do(func() { w.ids = []string{a, c} })
		w = w.next(nil)
		round := w.poll(t)
		w.onTopics(t, "ac", "ac", "ac", "")
		if n := len(slices.DeleteFunc(round.Published, func(e reporter.Event) bool { return e.Key != b || e.Value != nil })); n != 3 {
			t.Errorf("%d tombstones of %s, want one on each of three topics", n, b)
		}
		// The next one crashes as well before the tombstones have been repeated for a minute.
		w = w.next(nil)
		w.poll(t)
		if got := w.recorded(t); got != "abc" {
			t.Errorf("recorded are %q although the tombstones are to be repeated", got)
		}
		for range 13 {
			w.poll(t)
		}
		if got := w.recorded(t); got != "ac" {
			t.Errorf("recorded are %q after all was taken back", got)
		}
	})
	t.Run("the registry cannot be read at first", func(t *testing.T) {
		w := crashed(t)
		w.do(func() { w.ids, w.broken = []string{a, c}, errDown })
		w = w.next(nil)
		if _, err := w.Poll(t.Context(), w.Now()); !errors.Is(err, errDown) {
			t.Errorf("%v", err)
		}
		w.onTopics(t, "abc", "abc", "abc", "")
		w.do(func() { w.broken = nil })
		w.poll(t)
		w.onTopics(t, "ac", "ac", "ac", "")
	})
	t.Run("a broker cannot be read", func(t *testing.T) {
		w := crashed(t)
		w.do(func() { w.fails[b] = errDown })
		w = w.next(nil)
		for range 3 {
			w.poll(t)
		}
		w.onTopics(t, "ac", "ac", "abc", "")
		if why := w.Stale()[b]; why.Code != reporter.NotRead.ID {
			t.Errorf("stale: %+v", w.Stale())
		}
	})
	t.Run("a broker publishes itself", func(t *testing.T) {
		w := crashed(t)
		w.do(func() { w.class[b] = extensibleClass })
		w = w.next(nil)
		w.poll(t)
		w.onTopics(t, "b", "b", "", "b") // b's own load data is b's
		if got := w.recorded(t); got != "b" {
			t.Errorf("recorded are %q", got)
		}
	})
	t.Run("nothing changed", func(t *testing.T) {
		w := crashed(t)
		w = w.next(nil)
		for _, e := range w.poll(t).Published {
			if e.Value == nil {
				t.Errorf("%s of %s was taken back", e.Topic, e.Key)
			}
		}
		w.onTopics(t, "abc", "abc", "abc", "")
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.onTopics(t, "", "", "", ""); w.recorded(t) != "" {
			t.Errorf("recorded are %q after all was taken back", w.recorded(t))
		}
	})
	t.Run("garbage in the record", func(t *testing.T) {
		w := crashed(t)
		pub, err := w.log.Publisher(t.Context(), topics.Reported, topics.PublishOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pub.Publish(t.Context(), b, []byte(`{"topics":`)); err != nil {
			t.Fatal(err)
		}
		w.do(func() { w.ids = []string{a, c} })
		w.next(nil).poll(t)
		w.onTopics(t, "ac", "ac", "ac", "")
	})
}

// TestNothingWithoutARecord: what cannot be recorded is not published, and nothing is until the record has been read.
func TestNothingWithoutARecord(t *testing.T) {
	w := newWorld(t, newFake(a, b), nil)
	w.log.SetFaults(topics.Faults{Publish: func(topic, key string, _ []byte) error {
		if topic == topics.Reported && key == b {
			return errDown
		}
		return nil
	}})
	if _, err := w.Poll(t.Context(), w.Now()); !errors.Is(err, errDown) {
		t.Errorf("%v", err)
	}
	w.onTopics(t, "a", "a", "a", "")
	w.log.SetFaults(topics.Faults{})
	w.poll(t)
	w.onTopics(t, "ab", "ab", "ab", "")

	blind := w.next(func(o *reporter.Options) { o.Log = noSubscriptions{w.log} })
	w.do(func() { w.ids, w.asked = []string{a}, nil })
	round, err := blind.Poll(t.Context(), w.Now())
	if !errors.Is(err, errDown) || len(round.Why) != 1 || round.Why[0].Code != reporter.NoRecord.ID || len(w.asked) > 0 {
		t.Errorf("%+v, %v, read %v", round, err, w.asked)
	}
	w.onTopics(t, "ab", "ab", "ab", "")
}

type noSubscriptions struct{ topics.Log }

func (noSubscriptions) Subscribe(context.Context, string, topics.SubscribeOptions) (topics.Subscription, error) {
	return nil, errDown
}

// TestTheLockComesBack: who reports again after another did takes back what that one left.
func TestTheLockComesBack(t *testing.T) {
	w := newWorld(t, newFake(a), nil)
	lock := &switched{}
	one := reporter.New(reporter.Options{Cluster: w.fake, Log: w.log, Settings: settings.Defaults(), Clock: w.fake, Logger: quiet, Lock: lock})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- one.Run(ctx) }()
	await := func(what string, loads string) {
		t.Helper()
		for range 5000 {
			if got, _, _, _ := w.keys(t); slices.Equal(got, letters(loads)) {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal(what)
	}
	await("one does not report", "a")
	lock.turn(false)
	for range 5000 { // until it stands by
		if lock.released() {
			break
		}
		time.Sleep(time.Millisecond)
	}
	w.do(func() { w.ids = []string{a, b} })
	other := w.next(nil)
	if _, err := other.Poll(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	await("the other does not report", "ab")
	w.do(func() { w.ids = []string{a} })
	lock.turn(true)
	await("what the other left is not taken back", "a")
	cancel()
	<-done
	await("not everything is taken back", "")
}

func letters(s string) (out []string) {
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

// switched is a lock that is had or not as the test says.
type switched struct {
	mu            sync.Mutex
	lost, standby bool
}

func (l *switched) turn(ours bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost, l.standby = !ours, false
}

func (l *switched) released() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.standby
}

func (l *switched) had() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost {
		return errDown
	}
	return nil
}

func (l *switched) Acquire(context.Context, bool) error   { return l.had() }
func (l *switched) Confirm(context.Context, string) error { return l.had() }
func (l *switched) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.standby = l.lost
	return nil
}
