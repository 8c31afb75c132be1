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

// Lock lets one process act: whoever holds the exclusive producer on its topic, which is topics.Leader for who acts on the
// cluster and topics.Reporter for who reports. Every Confirm is a message sent through
// it, so a holder that was cut off finds out before it acts. Pulsar never tells an old holder that it was fenced out; a
// send that fails or does not finish in time therefore loses the lock for good.
type Lock struct {
	log      topics.Log
	topic    string
	instance string
	timeout  time.Duration
	now      func() time.Time

	mu   sync.Mutex
	pub  topics.Publisher
	lost error
}

// ErrNotHolder is returned when this process does not hold the lock, or has just lost it.
var ErrNotHolder = errors.New("another process acts: the lock is not held")

// NewLock makes the lock of one instance on topics.Leader. timeout bounds one send; after it the lock counts as lost.
func NewLock(log topics.Log, instance string, timeout time.Duration, now func() time.Time) *Lock {
	return NewLockOn(log, topics.Leader, instance, timeout, now)
}

// NewLockOn is NewLock on another persistent topic.
func NewLockOn(log topics.Log, topic, instance string, timeout time.Duration, now func() time.Time) *Lock {
	return &Lock{log: log, topic: topic, instance: instance, timeout: timeout, now: now}
}

// Acquire takes the lock. With wait it stands in line until ctx ends; without, it returns ErrNotHolder when it is taken. After
// an error nothing is held, so that this process does not stand in its own way at the next try.
func (l *Lock) Acquire(ctx context.Context, wait bool) error {
	pub, err := l.log.Publisher(ctx, l.topic, topics.PublishOptions{Exclusive: true, Wait: wait})
	if errors.Is(err, topics.ErrFenced) {
		return fmt.Errorf("%w: %w", ErrNotHolder, err)
	}
	if err != nil {
		return fmt.Errorf("take the lock on %s: %w", l.topic, err)
	}
	l.mu.Lock()
	l.pub, l.lost = pub, nil
	l.mu.Unlock()
	if err := l.Confirm(ctx, "acquired"); err != nil {
		return errors.Join(err, l.Release())
	}
	return nil
}

type leaderRecord struct {
	Instance string `json:"instance"`
	At       int64  `json:"at"`
	What     string `json:"what"`
}

// Confirm proves that the lock is still held by sending a record through it. It must succeed before every action. When ctx
// has ended it returns ctx.Err() and sends nothing; a send that was begun is finished, as one that is broken off would lose
// the lock, and with it the right to put back what was taken over.
func (l *Lock) Confirm(ctx context.Context, what string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pub == nil {
		return ErrNotHolder
	}
	if l.lost != nil {
		return fmt.Errorf("%w: %w", ErrNotHolder, l.lost)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	payload, err := json.Marshal(leaderRecord{Instance: l.instance, At: l.now().UnixMilli(), What: what})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.timeout)
	defer cancel()
	if _, err := l.pub.Publish(ctx, l.instance, payload); err != nil {
		l.lost = err
		return fmt.Errorf("%w: %w", ErrNotHolder, err)
	}
	return nil
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
	if err := c.lock.Confirm(ctx, "set "+key); err != nil {
		return err
	}
	return c.Cluster.SetDynamicConfig(ctx, key, value)
}

// DeleteDynamicConfig confirms the lock, then deletes.
func (c *locked) DeleteDynamicConfig(ctx context.Context, key string) error {
	if err := c.lock.Confirm(ctx, "delete "+key); err != nil {
		return err
	}
	return c.Cluster.DeleteDynamicConfig(ctx, key)
}

// Unload confirms the lock, then unloads.
func (c *locked) Unload(ctx context.Context, bundle, destination string) error {
	if err := c.lock.Confirm(ctx, "unload "+bundle); err != nil {
		return err
	}
	return c.Cluster.Unload(ctx, bundle, destination)
}

// Split confirms the lock, then splits.
func (c *locked) Split(ctx context.Context, bundle, algorithm string, boundaries []string, unload bool) error {
	if err := c.lock.Confirm(ctx, "split "+bundle); err != nil {
		return err
	}
	return c.Cluster.Split(ctx, bundle, algorithm, boundaries, unload)
}
