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

// Lock lets one process act: whoever holds the exclusive producer on topics.Leader. Every Confirm is a message sent through
// it, so a holder that was cut off finds out before it acts. Pulsar never tells an old holder that it was fenced out; a
// send that fails or does not finish in time therefore loses the lock for good.
type Lock struct {
	log      topics.Log
	instance string
	timeout  time.Duration
	now      func() time.Time

	mu   sync.Mutex
	pub  topics.Publisher
	lost error
}

// ErrNotHolder is returned when this process does not hold the lock, or has just lost it.
var ErrNotHolder = errors.New("another process acts: the lock is not held")

// NewLock makes the lock of one instance. timeout bounds one send; after it the lock counts as lost.
func NewLock(log topics.Log, instance string, timeout time.Duration, now func() time.Time) *Lock {
	return &Lock{log: log, instance: instance, timeout: timeout, now: now}
}

// Acquire takes the lock. With wait it stands in line until ctx ends; without, it returns ErrNotHolder when it is taken.
func (l *Lock) Acquire(ctx context.Context, wait bool) error {
	pub, err := l.log.Publisher(ctx, topics.Leader, topics.PublishOptions{Exclusive: true, Wait: wait})
	if errors.Is(err, topics.ErrFenced) {
		return fmt.Errorf("%w (topic %s)", ErrNotHolder, topics.Leader)
	}
	if err != nil {
		return fmt.Errorf("take the lock on %s: %w", topics.Leader, err)
	}
	l.mu.Lock()
	l.pub, l.lost = pub, nil
	l.mu.Unlock()
	return l.Confirm(ctx, "acquired")
}

// Held says whether the lock was held when last confirmed.
func (l *Lock) Held() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pub != nil && l.lost == nil
}

type leaderRecord struct {
	Instance string `json:"instance"`
	At       int64  `json:"at"`
	What     string `json:"what"`
}

// Confirm proves that the lock is still held by sending a record through it. It must succeed before every action.
func (l *Lock) Confirm(ctx context.Context, what string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pub == nil {
		return ErrNotHolder
	}
	if l.lost != nil {
		return fmt.Errorf("%w: %w", ErrNotHolder, l.lost)
	}
	payload, err := json.Marshal(leaderRecord{Instance: l.instance, At: l.now().UnixMilli(), What: what})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.timeout)
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
