package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// DefaultLease is for how long after a confirmation of the lock a request may run. A holder that is cut off or frozen loses
// the exclusive producer when the broker's keep-alive has run out, after 30 s at the earliest (keepAliveIntervalSeconds):
// its requests have ended by then. A topic that moves, or a holder that is killed, frees the lock at once: then one request
// may be on its way, and the log names it.
const DefaultLease = 15 * time.Second

// Lock lets one process act: whoever holds the exclusive producer on a topic. Every Confirm is a message sent through it, so
// a holder that was cut off finds out before it acts. Pulsar never tells an old holder that it was fenced out; a send that
// fails or does not finish in time therefore loses the lock for good.
type Lock struct {
	// Lease is for how long after a confirmation a request may run; 0 = DefaultLease.
	Lease time.Duration
	// Deadline ends a context at a time of the lock's clock; nil = by the machine's clock.
	Deadline func(ctx context.Context, at time.Time) (context.Context, context.CancelFunc)

	log      topics.Log
	topic    string
	instance string
	timeout  time.Duration
	now      func() time.Time

	mu    sync.Mutex
	pub   topics.Publisher
	lost  error
	epoch int64
	last  topics.MessageID // of the newest record that was sent
	until time.Time        // end of the lease
}

// ErrNotHolder is returned when this process does not hold the lock, or has just lost it.
var ErrNotHolder = errors.New("another process acts: the lock is not held")

// NewLock makes the lock of one instance on topics.Leader. timeout bounds one send; after it the lock counts as lost.
func NewLock(log topics.Log, instance string, timeout time.Duration, now func() time.Time) *Lock {
	return NewLockOn(log, topics.Leader, instance, timeout, now)
}

// NewLockOn makes a lock on another topic.
func NewLockOn(log topics.Log, topic, instance string, timeout time.Duration, now func() time.Time) *Lock {
	return &Lock{log: log, topic: topic, instance: instance, timeout: timeout, now: now}
}

// Acquire takes the lock. With wait it stands in line until ctx ends; without, it returns ErrNotHolder when it is taken. After
// an error nothing is held, so that this process does not stand in its own way at the next try.
func (l *Lock) Acquire(ctx context.Context, wait bool) error {
	pub, err := l.log.Publisher(ctx, l.topic, topics.PublishOptions{Exclusive: true, Wait: wait, SendTimeout: l.timeout})
	if errors.Is(err, topics.ErrFenced) {
		return fmt.Errorf("%w: %w", ErrNotHolder, err)
	}
	if err != nil {
		return fmt.Errorf("take the lock on %s: %w", l.topic, err)
	}
	l.mu.Lock()
	l.pub, l.lost, l.epoch = pub, nil, 0
	l.mu.Unlock()
	if err := l.Confirm(ctx, "acquired"); err != nil {
		return errors.Join(err, l.Release())
	}
	return nil
}

// leaderRecord is one message of the lock's topic. Those with an epoch have a key of their own: compaction keeps the newest
// of them whatever follows.
type leaderRecord struct {
	Instance string `json:"instance"`
	At       int64  `json:"at"`
	Epoch    int64  `json:"epoch,omitempty"`
	What     string `json:"what"`
}

func (r leaderRecord) key() string {
	if r.Epoch > 0 {
		return "epoch"
	}
	return "acquired"
}

// Confirm proves that the lock is still held by sending a record through it. It must succeed before every action. When ctx
// has ended it returns ctx.Err() and sends nothing; a send that was begun is finished, as one that is broken off would lose
// the lock, and with it the right to put back what was taken over.
func (l *Lock) Confirm(ctx context.Context, what string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.confirm(ctx, what)
}

func (l *Lock) confirm(ctx context.Context, what string) error {
	if err := l.held(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	begun := l.now()
	record := leaderRecord{Instance: l.instance, At: begun.UnixMilli(), Epoch: l.epoch, What: what}
	payload, err := json.Marshal(record)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
	defer cancel()
	if l.last, err = l.pub.Publish(ctx, record.key(), payload); err != nil {
		l.lost = err
		return fmt.Errorf("%w: %w", ErrNotHolder, err)
	}
	l.until = begun.Add(l.lease())
	return nil
}

// Held is nil while the lock is held as far as is known, else ErrNotHolder with why. It sends nothing.
func (l *Lock) Held() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held()
}

func (l *Lock) held() error {
	if l.pub == nil {
		return ErrNotHolder
	}
	if l.lost != nil {
		return fmt.Errorf("%w: %w", ErrNotHolder, l.lost)
	}
	return nil
}

var errLeaseOver = errors.New("the lease was over before the request could be sent")

// Act confirms the lock and does something within the lease: what it does gets a context that ends with the lease. It is not
// begun when the lease is over already, because the process was frozen meanwhile; the lock is lost then.
func (l *Lock) Act(ctx context.Context, what string, do func(context.Context) error) error {
	if err := l.Confirm(ctx, what); err != nil {
		return err
	}
	l.mu.Lock()
	until := l.until
	if !l.now().Before(until) {
		l.lost = errLeaseOver
	}
	err := l.held()
	l.mu.Unlock()
	if err != nil {
		return err
	}
	var cancel context.CancelFunc
	if l.Deadline != nil {
		ctx, cancel = l.Deadline(ctx, until)
	} else {
		ctx, cancel = context.WithTimeout(ctx, until.Sub(l.now()))
	}
	defer cancel()
	return do(ctx)
}

// lease is how long a request may run.
func (l *Lock) lease() time.Duration {
	if l.Lease > 0 {
		return l.Lease
	}
	return DefaultLease
}

// begin makes this holder that of an epoch, and confirms it.
func (l *Lock) begin(ctx context.Context, epoch int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epoch = epoch
	return l.confirm(ctx, "leads")
}

// sent is where the newest record stands on the topic.
func (l *Lock) sent() topics.MessageID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Release gives the lock up.
func (l *Lock) Release() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pub == nil {
		return nil
	}
	err := l.pub.Close()
	l.pub = nil
	return err
}

// Locked is a cluster that is changed by the holder of the lock alone: every change is preceded by a Confirm, and fails with
// its error. What is read is read without the lock.
func Locked(c Cluster, l *Lock) Cluster { return &locked{Cluster: c, lock: l} }

type locked struct {
	Cluster
	lock *Lock
}

// SetDynamicConfig confirms the lock, then sets.
func (c *locked) SetDynamicConfig(ctx context.Context, key, value string) error {
	return c.lock.Act(ctx, "set "+key, func(ctx context.Context) error { return c.Cluster.SetDynamicConfig(ctx, key, value) })
}

// DeleteDynamicConfig confirms the lock, then deletes.
func (c *locked) DeleteDynamicConfig(ctx context.Context, key string) error {
	return c.lock.Act(ctx, "delete "+key, func(ctx context.Context) error { return c.Cluster.DeleteDynamicConfig(ctx, key) })
}

// Unload confirms the lock, then unloads.
func (c *locked) Unload(ctx context.Context, bundle, destination string) error {
	what := "unload " + bundle
	if destination != "" {
		what += " to " + destination
	}
	return c.lock.Act(ctx, what, func(ctx context.Context) error { return c.Cluster.Unload(ctx, bundle, destination) })
}

// Split confirms the lock, then splits.
func (c *locked) Split(ctx context.Context, bundle, algorithm string, boundaries []string, unload bool) error {
	return c.lock.Act(ctx, "split "+bundle, func(ctx context.Context) error {
		return c.Cluster.Split(ctx, bundle, algorithm, boundaries, unload)
	})
}
