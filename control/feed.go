package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// feed brings the messages of one topic into a view.
type feed struct {
	topic string
	apply func(topics.Message)

	mu  sync.Mutex
	sub topics.Subscription
}

func (f *feed) subscription() topics.Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sub
}

// replace puts another subscription in the place of the present one, which is returned.
func (f *feed) replace(sub topics.Subscription) (before topics.Subscription) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, f.sub = f.sub, sub
	return before
}

// run feeds until ctx ends, going over to the next subscription when one takes the place of another.
func (f *feed) run(ctx context.Context) error {
	for {
		sub := f.subscription()
		m, err := sub.Receive(ctx)
		switch {
		case err == nil:
			f.apply(m)
		case errors.Is(err, topics.ErrClosed) && f.subscription() != sub:
		default:
			return fmt.Errorf("%s: %w", f.topic, err)
		}
	}
}

// catchUp drains the feed. The in-memory log answers at once whether there is more; a real one is asked with patience.
func (f *feed) catchUp(ctx context.Context) error {
	sub := f.subscription()
	quick, ok := sub.(interface {
		TryReceive() (topics.Message, bool, error)
	})
	if !ok {
		return topics.Drain(ctx, sub, func(m topics.Message) error {
			f.apply(m)
			return nil
		})
	}
	for {
		m, more, err := quick.TryReceive()
		if err != nil || !more {
			return err
		}
		f.apply(m)
	}
}

// lossy says whether messages are missing from what a subscription delivered, or may be.
func lossy(s topics.Status) bool { return s.Lost+s.Uncertain+s.Skipped > 0 }

const rereadLimit = 30 * time.Second

// reread reads the ownership topic again from its start when messages of it were lost: what the topic still holds tells who
// owns what. Until it has caught up the old fold stays, and the loss keeps everything frozen.
func (v *Views) reread(ctx context.Context) error {
	f := v.feeds[len(v.feeds)-1]
	if !lossy(f.subscription().Status()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, rereadLimit)
	defer cancel()
	sub, err := v.subscribe(ctx, f.topic)
	if err != nil {
		return err
	}
	next := newOwners(v.o.Logger)
	err = topics.Drain(ctx, sub, func(m topics.Message) error {
		next.apply(m)
		return nil
	})
	if err != nil {
		return errors.Join(err, sub.Close())
	}
	v.owners.take(next)
	return f.replace(sub).Close()
}
