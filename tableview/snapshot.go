package tableview

import (
	"fmt"
	"iter"
	"time"

	"github.com/tidwall/btree"

	"github.com/ballast-lb/ballast/topics"
)

// Entry is the latest value of one key, and where it came from.
type Entry[T any] struct {
	Key         string
	Value       T
	ID          topics.MessageID
	Producer    string
	PublishTime time.Time // by the producer's clock
	Received    time.Time // by ours; ages count from here
}

// Age is how long ago the value was received.
func (e Entry[T]) Age(now time.Time) time.Duration { return now.Sub(e.Received) }

// Stats counts what a view was given since it was made. Every message is counted in Applied and in one of the others.
type Stats struct {
	Applied    int64 // messages
	Put        int64 // of them, those that became a key's value
	Tombstones int64 // of them, tombstones that were obeyed, whether or not the key was there
	Rejected   int64 // of them, those that the conflict rule refused
	Garbage    int64 // of them, those that could not be used: no key, or a payload that cannot be decoded
	Expired    int64 // values that were dropped because they were too old
	Resyncs    int64 // times that everything was read again because messages had been lost
	Last       Skip  // the last garbage
}

// Skip is a message that could not be used.
type Skip struct {
	Key    string
	ID     topics.MessageID
	At     time.Time
	Reason string // "" if there was none
}

// Snapshot is a view at one moment. It never changes, costs nothing to take or keep, and may be used by any goroutine.
type Snapshot[T any] struct {
	At     time.Time // by the view's clock
	Source topics.Status
	Stats  Stats
	// CaughtUp: everything that the topic held has been folded in. Of a non-persistent topic, which holds nothing, it only
	// says that the subscription works: see Missing.
	CaughtUp bool
	// Sound: no message is known or suspected to be missing from the fold.
	Sound bool

	tree *btree.Map[string, *Entry[T]] // nil in the zero value: empty
}

// Len is the number of keys.
func (s Snapshot[T]) Len() int { return s.entries().Len() }

func (s Snapshot[T]) entries() *btree.Map[string, *Entry[T]] {
	if s.tree == nil {
		return new(btree.Map[string, *Entry[T]])
	}
	return s.tree
}

// Get is the entry of a key.
func (s Snapshot[T]) Get(key string) (Entry[T], bool) {
	if e, ok := s.entries().Get(key); ok {
		return *e, true
	}
	return Entry[T]{}, false
}

// All are the entries in the order of their keys.
func (s Snapshot[T]) All() iter.Seq[Entry[T]] {
	return func(yield func(Entry[T]) bool) {
		s.entries().Scan(func(_ string, e *Entry[T]) bool { return yield(*e) })
	}
}

// Keys are the keys in order.
func (s Snapshot[T]) Keys() []string {
	return s.entries().Keys()
}

// Missing are those of the expected keys that have no value, in the order given.
func (s Snapshot[T]) Missing(expected []string) []string {
	var missing []string
	for _, key := range expected {
		if _, ok := s.entries().Get(key); !ok {
			missing = append(missing, key)
		}
	}
	return missing
}

// Ready says whether the view can be relied on: caught up, sound, and every expected key has been heard.
func (s Snapshot[T]) Ready(expected []string) bool {
	return s.CaughtUp && s.Sound && len(s.Missing(expected)) == 0
}

// Kind says what a change is.
type Kind int

// The kinds of changes. The last two leave the state as it was.
const (
	Put      Kind = iota // a key has a new value
	Removed              // a key was removed by a tombstone, or found gone when everything was read again
	Expired              // a value was dropped because it was too old
	Rejected             // a message was refused by the conflict rule
	Garbage              // a message could not be used
)

func (k Kind) String() string {
	names := [...]string{"put", "removed", "expired", "rejected", "garbage"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return names[k]
}

// Change is what one message, or the passing of time, did to one key. Entries that it points to must not be changed.
type Change[T any] struct {
	Kind Kind
	Key  string
	Old  *Entry[T] // the value before; nil if there was none
	New  *Entry[T] // the value after a Put, the refused one of a Rejected (nil for a tombstone); else nil
	Err  error     // of Garbage
}
