package tableview

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// lookAgain is how often a waiting Run looks at the clock and at the health of its subscription.
const lookAgain = time.Second

// Run folds a subscription in until ctx ends or the subscription is closed, and returns why. The caller owns the
// goroutine and the subscription. A view has one source at a time.
func (v *View[T]) Run(ctx context.Context, s topics.Subscription) error {
	v.attach(s)
	for {
		if err := v.step(ctx, s); err != nil {
			return err
		}
	}
}

// attach makes a subscription the view's source.
func (v *View[T]) attach(s interface{ Status() topics.Status }) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.source == s {
		return
	}
	v.source = s
	v.target().seen = s.Status().Messages // what it delivered before is somebody else's
}

// target is the fold that messages go to. The lock is held.
func (v *View[T]) target() *fold[T] {
	if v.shadow != nil {
		return v.shadow
	}
	return v.fold
}

// step folds in the next message, or lets time pass.
func (v *View[T]) step(ctx context.Context, s topics.Subscription) error {
	wait, cancel := context.WithTimeout(ctx, lookAgain)
	defer cancel()
	m, err := s.Receive(wait)
	switch {
	case err == nil:
		v.Apply(m)
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		v.Expire()
		return nil
	}
	return err
}

// Poller is a source that can be asked without waiting, such as *topics.MemorySubscription.
type Poller interface {
	TryReceive() (topics.Message, bool, error)
	Status() topics.Status
}

// Pump folds in what a source has now and returns how many messages that were. It is Run for callers that drive everything
// from one goroutine.
func (v *View[T]) Pump(p Poller) (int, error) {
	v.attach(p)
	for n := 0; ; n++ {
		m, ok, err := p.TryReceive()
		if err != nil || !ok {
			v.Expire()
			return n, err
		}
		v.Apply(m)
	}
}

// How Follow paces itself.
const (
	subscribeAgain = time.Second // after a failed attempt to read everything again
	resyncPause    = time.Minute // between two times that everything is read again
)

// Follow subscribes to a topic and folds it in until ctx ends, and returns why it ended. When a topic with a history is
// read from its beginning and messages are lost on the way, it reads everything again beside the present state, which goes
// on but is not Sound, and replaces it when the new one has caught up; listeners are told the differences.
func (v *View[T]) Follow(ctx context.Context, log topics.Log, topic string, o topics.SubscribeOptions) error {
	n, err := topics.ParseName(topic)
	if err != nil {
		return err
	}
	s, err := log.Subscribe(ctx, topic, o)
	if err != nil {
		return err
	}
	repairs := n.Persistent && o.From == topics.Earliest
	var last time.Time
	for {
		err := v.follow(ctx, s, repairs, last)
		if closing := s.Close(); closing != nil {
			v.logger.Warn("close a subscription", "topic", topic, "error", closing)
		}
		if !errors.Is(err, errLost) {
			return err
		}
		v.logger.Warn("messages were lost: reading everything again", "topic", topic)
		last = time.Now()
		v.resync()
		if s, err = v.subscribeAgain(ctx, log, topic, o); err != nil {
			return err
		}
	}
}

var errLost = errors.New("messages were lost")

// follow is Run that ends with errLost when everything has to be read again. last is when that was done last.
func (v *View[T]) follow(ctx context.Context, s topics.Subscription, repairs bool, last time.Time) error {
	v.attach(s)
	for {
		if err := v.step(ctx, s); err != nil {
			return err
		}
		v.swap()
		if st := s.Status(); repairs && st.Lost+st.Uncertain > 0 && time.Since(last) >= resyncPause {
			return errLost
		}
	}
}

func (v *View[T]) subscribeAgain(ctx context.Context, log topics.Log, topic string, o topics.SubscribeOptions) (topics.Subscription, error) {
	for {
		s, err := log.Subscribe(ctx, topic, o)
		if err == nil || errors.Is(err, topics.ErrClosed) {
			return s, err
		}
		v.logger.Warn("subscribe again", "topic", topic, "error", err)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("subscribe to %s again: %w", topic, ctx.Err())
		case <-time.After(subscribeAgain):
		}
	}
}

// resync begins to read everything again.
func (v *View[T]) resync() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shadow = newFold(v.options)
	v.sound = false
}

// swap replaces the state by the one that was read again, once that has caught up. If messages were lost this time too, it
// may be worse than what is there, and is dropped.
func (v *View[T]) swap() {
	v.mu.Lock()
	defer v.tell()
	defer v.mu.Unlock()
	if v.shadow == nil {
		return
	}
	st, next := v.source.Status(), v.shadow
	if !st.CaughtUp || st.Messages != next.seen {
		return
	}
	v.shadow = nil
	if st.Lost+st.Uncertain > 0 {
		v.fold.seen = next.seen
		return
	}
	next.stats = v.fold.stats
	next.stats.Resyncs++
	v.notify(differences(v.fold.tree, next.tree)...)
	v.fold, v.sound = next, true
}
