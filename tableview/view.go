// Package tableview folds a topic into the latest value of each key. A View is fed one message at a time, by its Run loop
// or by whoever drives it, and hands out snapshots that never change: taking one costs the same at ten keys and at 100,000.
package tableview

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"github.com/ballast-lb/ballast/topics"
)

// Options are what a view is made of. Only Decode is required.
type Options[T any] struct {
	// Decode reads a payload. A payload that it refuses is skipped, counted and logged; the key keeps its value.
	Decode func(payload []byte) (T, error)
	// KeepOld is the conflict rule: true ignores the new value. old is nil for an absent key, next is nil for a tombstone.
	// nil = the new value always wins.
	KeepOld func(key string, old, next *T) bool
	// TTL removes values that were received longer ago, when Expire is called; 0 = never. The age counts from when we
	// received the message, not from its producer's clock.
	TTL time.Duration
	// MaxKeys bounds memory: messages that would add further keys are skipped and counted; 0 = no bound.
	MaxKeys int
	Logger  *slog.Logger // nil = slog.Default()
}

// Entry is the latest value of a key.
type Entry[T any] struct {
	Key       string
	Value     T
	Received  time.Time // by our clock
	Published time.Time // by the producer's clock
	ID        topics.MessageID
	Producer  string
}

// Result says what a message did to the view.
type Result int

// The results.
const (
	Put     Result = iota // the key has a new value
	Removed               // a tombstone removed the key
	Nothing               // a tombstone of an absent key
	Kept                  // the conflict rule kept the old value
	Skipped               // undecodable, without a key, or one key too many
	Expired               // the value was older than the TTL
)

func (r Result) String() string {
	return [...]string{"put", "removed", "nothing", "kept", "skipped", "expired"}[r]
}

// Change is what happened to one key. Old and New are nil when absent.
type Change[T any] struct {
	Key    string
	Result Result
	Old    *Entry[T]
	New    *Entry[T]
	Err    error // why a message was skipped
}

// Stats count what a view saw.
type Stats struct {
	Messages   int64
	Tombstones int64
	Kept       int64  // refused by the conflict rule
	Skipped    int64  // undecodable, without a key, or over MaxKeys
	Expired    int64  // removed by the TTL
	LastSkip   string // why the last one was skipped
}

// View is the latest value of each key of a topic. All methods may be called from any goroutine.
type View[T any] struct {
	o Options[T]

	apply     sync.Mutex // orders changes and their listeners; taken before mu
	listeners []*listener[T]

	mu    sync.Mutex // guards what follows; never held while a listener runs
	tree  *btree.Map[string, *Entry[T]]
	heard map[string]struct{} // keys that ever had a value
	stats Stats
}

type listener[T any] struct{ f func(Change[T]) }

// New makes an empty view.
func New[T any](o Options[T]) *View[T] {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &View[T]{o: o, tree: btree.NewMap[string, *Entry[T]](0), heard: map[string]struct{}{}}
}

// Apply folds one message in, then tells the listeners.
func (v *View[T]) Apply(m topics.Message) Change[T] {
	v.apply.Lock()
	defer v.apply.Unlock()
	change := v.fold(m)
	if change.Result == Skipped {
		v.o.Logger.Warn("event skipped", "topic", m.Topic, "key", m.Key, "id", m.ID.String(), "bytes", len(m.Payload), "error", change.Err)
	}
	v.tell(change)
	return change
}

func (v *View[T]) fold(m topics.Message) Change[T] {
	var next *Entry[T]
	var err error
	if m.Key == "" {
		err = fmt.Errorf("the message has no key")
	} else if !m.Tombstone() {
		// Decoding is the costly part and needs no lock.
		next = &Entry[T]{Key: m.Key, Received: m.Received, Published: m.PublishTime, ID: m.ID, Producer: m.Producer}
		next.Value, err = v.o.Decode(m.Payload)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.stats.Messages++
	old, present := v.tree.Get(m.Key)
	if err == nil && next != nil && !present && v.o.MaxKeys > 0 && v.tree.Len() >= v.o.MaxKeys {
		err = fmt.Errorf("the view holds %d keys already, the limit", v.o.MaxKeys)
	}
	c := Change[T]{Key: m.Key, Old: old, New: old, Err: err}
	switch {
	case err != nil:
		v.stats.Skipped++
		v.stats.LastSkip = err.Error()
		c.Result = Skipped
	case v.keepOld(m.Key, old, next):
		v.stats.Kept++
		c.Result = Kept
	case next != nil:
		v.tree.Set(m.Key, next)
		v.heard[m.Key] = struct{}{}
		c.Result, c.New = Put, next
	case present:
		v.stats.Tombstones++
		v.tree.Delete(m.Key)
		c.Result, c.New = Removed, nil
	default:
		v.stats.Tombstones++
		c.Result = Nothing
	}
	return c
}

func (v *View[T]) keepOld(key string, old, next *Entry[T]) bool {
	if v.o.KeepOld == nil {
		return false
	}
	var a, b *T
	if old != nil {
		a = &old.Value
	}
	if next != nil {
		b = &next.Value
	}
	return v.o.KeepOld(key, a, b)
}

// tell runs the listeners in the order in which they came. The caller holds apply, so that changes arrive in order.
func (v *View[T]) tell(c Change[T]) {
	v.mu.Lock()
	listeners := v.listeners
	v.mu.Unlock()
	for _, l := range listeners {
		l.f(c)
	}
}

// Listen calls f after every change, in order, one at a time. f may read the view but must not change it. stop ends it.
func (v *View[T]) Listen(f func(Change[T])) (stop func()) {
	l := &listener[T]{f: f}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.listeners = append(v.listeners[:len(v.listeners):len(v.listeners)], l)
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		var rest []*listener[T]
		for _, other := range v.listeners {
			if other != l {
				rest = append(rest, other)
			}
		}
		v.listeners = rest
	}
}

// Expire removes the values that were received more than TTL before now and tells the listeners. It returns how many.
func (v *View[T]) Expire(now time.Time) int {
	if v.o.TTL <= 0 {
		return 0
	}
	v.apply.Lock()
	defer v.apply.Unlock()
	var changes []Change[T]
	v.mu.Lock()
	v.tree.Scan(func(key string, e *Entry[T]) bool {
		if now.Sub(e.Received) > v.o.TTL {
			changes = append(changes, Change[T]{Key: key, Result: Expired, Old: e})
		}
		return true
	})
	for _, c := range changes {
		v.tree.Delete(c.Key)
	}
	v.stats.Expired += int64(len(changes))
	v.mu.Unlock()
	for _, c := range changes {
		v.tell(c)
	}
	return len(changes)
}

// Get is the latest value of a key.
func (v *View[T]) Get(key string) (Entry[T], bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	e, ok := v.tree.Get(key)
	if !ok {
		return Entry[T]{}, false
	}
	return *e, true
}

// Missing are those of the expected keys that have no value now, in their order. A view is ready when none is missing.
func (v *View[T]) Missing(expected []string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []string
	for _, key := range expected {
		if _, ok := v.tree.Get(key); !ok {
			out = append(out, key)
		}
	}
	return out
}

// Heard says whether a key ever had a value, also if a tombstone or the TTL has removed it since.
func (v *View[T]) Heard(key string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, ok := v.heard[key]
	return ok
}

// Stats are the counts so far.
func (v *View[T]) Stats() Stats {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.stats
}

// Snapshot is the view as it is now. It shares its memory with the view, which copies what it changes afterwards.
func (v *View[T]) Snapshot() Snapshot[T] {
	v.mu.Lock()
	defer v.mu.Unlock()
	return Snapshot[T]{tree: v.tree.Copy()}
}

// Run feeds the view from a subscription until ctx ends or the subscription is closed, and returns why it ended.
func (v *View[T]) Run(ctx context.Context, sub topics.Subscription) error {
	for {
		m, err := sub.Receive(ctx)
		if err != nil {
			return err
		}
		v.Apply(m)
	}
}

// Snapshot is a view at one moment. It never changes and may be read from any goroutine.
type Snapshot[T any] struct {
	tree *btree.Map[string, *Entry[T]]
}

// Len is the number of keys.
func (s Snapshot[T]) Len() int {
	if s.tree == nil {
		return 0
	}
	return s.tree.Len()
}

// Get is the value of a key.
func (s Snapshot[T]) Get(key string) (Entry[T], bool) {
	if s.tree != nil {
		if e, ok := s.tree.Get(key); ok {
			return *e, true
		}
	}
	return Entry[T]{}, false
}

// All are the entries in the order of their keys.
func (s Snapshot[T]) All() iter.Seq[Entry[T]] {
	return func(yield func(Entry[T]) bool) {
		if s.tree != nil {
			s.tree.Scan(func(_ string, e *Entry[T]) bool { return yield(*e) })
		}
	}
}
