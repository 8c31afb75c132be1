package simulate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// Embedded is a simulated cluster as a program meets a real one: its system topics are on an event log, it answers what
// admin REST answers (control.Cluster), and it is a clock (control.Clock). It starts no goroutine.
//
// There are two ways to let time pass. Either somebody calls Advance while others wait in Sleep, Unload and Split; or, with
// SelfDriven, a Sleep or a request that takes time moves the cluster's clock itself. Then a program that does one thing
// after another runs as fast as it can, and always the same.
type Embedded struct {
	mu      sync.Mutex
	c       *Cluster
	log     *topics.Memory
	options EmbeddedOptions
	clock   atomic.Int64 // Unix ms; what the log stamps with
	pubs    map[publisherKey]topics.Publisher
	ears    map[string]*topics.MemorySubscription // by topic
	closed  bool
	changed chan struct{} // closed and replaced whenever time has passed
}

type publisherKey struct{ topic, producer string }

// EmbeddedOptions say how a program meets the cluster.
type EmbeddedOptions struct {
	SelfDriven bool
	// Patience is how long, in the cluster's time, a self-driven request waits for an answer that does not come; 0 = one
	// minute.
	Patience time.Duration
}

// NewEmbedded puts a log and admin answers around a cluster, which belongs to the Embedded from then on.
func NewEmbedded(ctx context.Context, c *Cluster, o EmbeddedOptions) (*Embedded, error) {
	if o.Patience <= 0 {
		o.Patience = time.Minute
	}
	e := &Embedded{c: c, options: o, pubs: map[publisherKey]topics.Publisher{}, changed: make(chan struct{})}
	e.clock.Store(c.Now())
	e.log = topics.NewMemory(topics.MemoryOptions{Now: e.Now, Producer: c.cfg.Name})
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.listen(ctx)
	if err == nil {
		err = e.publish(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.log.Close())
	}
	return e, nil
}

// Log is the event log with the cluster's system topics on it.
func (e *Embedded) Log() *topics.Memory { return e.log }

// Now is the cluster's time.
func (e *Embedded) Now() time.Time { return time.UnixMilli(e.clock.Load()).UTC() }

// With lets f look at the cluster, or do something to it, while nothing else does. What f makes it publish is on the log
// when With returns.
func (e *Embedded) With(ctx context.Context, f func(*Cluster)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.hearAll(); err != nil {
		return err
	}
	f(e.c)
	return e.publish(ctx)
}

// Advance lets time pass.
func (e *Embedded) Advance(ctx context.Context, d time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.advance(ctx, e.c.now+d.Milliseconds())
}

func (e *Embedded) advance(ctx context.Context, to int64) error {
	if err := e.hearAll(); err != nil {
		return err
	}
	e.c.Advance(to)
	return e.publish(ctx)
}

// publish puts what the cluster published onto the log, each event at its own time, and wakes those who wait.
func (e *Embedded) publish(ctx context.Context) error {
	if e.closed {
		return topics.ErrClosed
	}
	for _, ev := range e.c.Take() {
		k := publisherKey{ev.Topic, ev.Producer}
		pub := e.pubs[k]
		if pub == nil {
			var err error
			if pub, err = e.log.Publisher(ctx, ev.Topic, topics.PublishOptions{}); err != nil {
				return fmt.Errorf("simulated broker %s: %w", ev.Producer, err)
			}
			e.pubs[k] = pub
		}
		e.clock.Store(ev.At)
		if _, err := pub.Publish(ctx, ev.Key, ev.Payload); err != nil {
			return fmt.Errorf("simulated broker %s: %w", ev.Producer, err)
		}
		if err := e.hear(ev.Topic, &ev); err != nil {
			return err
		}
	}
	e.clock.Store(e.c.now)
	e.log.Tick()
	close(e.changed)
	e.changed = make(chan struct{})
	return nil
}

// Sleep waits until d of the cluster's time has passed, or until ctx ends.
func (e *Embedded) Sleep(ctx context.Context, d time.Duration) error {
	until := e.clock.Load() + d.Milliseconds()
	_, err := e.waitFor(ctx, until, func() bool { return false })
	return err
}

// waitFor waits until over says so (true) or the time has come (false).
func (e *Embedded) waitFor(ctx context.Context, until int64, over func() bool) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		switch {
		case over():
			return true, nil
		case e.c.now >= until:
			return false, nil
		case ctx.Err() != nil:
			return false, ctx.Err()
		case e.closed:
			return false, topics.ErrClosed
		}
		if e.options.SelfDriven {
			if err := e.advance(ctx, min(until, e.c.nextTask(until))); err != nil {
				return false, err
			}
			continue
		}
		changed := e.changed
		e.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		e.mu.Lock()
	}
}

// nextTask is when the next thing happens, at most limit.
func (c *Cluster) nextTask(limit int64) int64 {
	if len(c.tasks) == 0 {
		return limit
	}
	return min(limit, max(c.tasks[0].at, c.now))
}

// Close ends the cluster: the log closes, and whoever waits gets topics.ErrClosed.
func (e *Embedded) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	close(e.changed)
	return e.log.Close()
}
