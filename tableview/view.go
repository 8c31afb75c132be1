// Package tableview folds an event log into the latest value of every key (Pulsar: TableView). Unlike Pulsar's it drops
// values that are too old, tells what is missing, survives garbage, and hands out snapshots that never change.
package tableview

import (
	"log/slog"
	"math/bits"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// Options configure a view. Decode is required.
type Options[T any] struct {
	// Decode reads a payload that is not empty, such as event.Decode[event.BrokerLoadData]. An error makes the message
	// garbage: counted, logged, skipped; the old value stays.
	Decode func(payload []byte) (T, error)
	// CheckKey refuses keys that cannot be right: an error makes the message garbage. nil = any key but "".
	CheckKey func(key string) error
	// Keep is the conflict rule: true keeps what is there. old is nil if there is nothing, new is nil for a tombstone. It
	// is called with the view's lock held and must not change what it is given. nil = the newest always wins.
	Keep func(key string, old, new *Entry[T]) bool
	// TTL drops a value that was received this long ago; 0 = never. It counts by our clock, never by the sender's.
	TTL time.Duration
	// MaxKeys bounds the memory of a view whose topic anybody may write to: of more keys the values that were received first are
	// dropped, as if they had expired; 0 = no limit.
	MaxKeys int
	// Now is the clock; nil = time.Now. It should not run backwards: values expire in the order in which they came.
	Now    func() time.Time
	Logger *slog.Logger // nil = slog.Default()
}

// View is the latest value of every key of a topic. It can be driven in two ways: Run and Follow read a subscription until
// they are told to stop; Apply, Pump and Expire do one step at a time. All methods may be called by any goroutine; no
// goroutine is ever started.
type View[T any] struct {
	options Options[T]
	logger  *slog.Logger
	now     func() time.Time

	mu        sync.Mutex
	fold      *fold[T]
	shadow    *fold[T] // while everything is read again; becomes fold when it has caught up
	source    interface{ Status() topics.Status }
	sound     bool // of what was read before the present subscription
	listeners []*listener[T]
	queue     []notice[T] // changes that listeners have not been told yet
	telling   bool        // somebody is telling them
}

type listener[T any] struct{ f func(Change[T]) }

// notice is a change and who was listening when it happened.
type notice[T any] struct {
	change Change[T]
	to     []*listener[T]
}

// New makes an empty view. It panics if there is no Decode.
func New[T any](o Options[T]) *View[T] {
	if o.Decode == nil {
		panic("tableview: Options.Decode is nil")
	}
	v := &View[T]{options: o, logger: o.Logger, now: o.Now, fold: newFold(o), sound: true}
	if v.logger == nil {
		v.logger = slog.Default()
	}
	if v.now == nil {
		v.now = time.Now
	}
	return v
}

// Apply folds one message in and tells the listeners.
func (v *View[T]) Apply(m topics.Message) {
	v.mu.Lock()
	if v.shadow != nil {
		v.shadow.apply(m) // nobody sees this before it has caught up
		v.shadow.evict()
		if !v.fold.last.Less(m.ID) {
			v.mu.Unlock()
			return
		}
	}
	c := v.fold.apply(m)
	v.notify(c)
	v.notify(v.fold.evict()...)
	garbage := v.fold.stats.Garbage
	v.mu.Unlock()
	// A topic full of garbage must not fill the log: the 1st, 2nd, 4th, 8th, ... are logged.
	if c.Kind == Garbage && bits.OnesCount64(uint64(garbage)) == 1 {
		v.logger.Warn("message skipped", "topic", m.Topic, "key", m.Key, "id", m.ID, "error", c.Err, "skipped", garbage)
	}
	v.tell()
}

// Expire drops the values that are too old now.
func (v *View[T]) Expire() {
	v.mu.Lock()
	v.notify(v.fold.expire(v.now())...)
	v.mu.Unlock()
	v.tell()
}

// Snapshot is the view as it is now. Values that are too old are dropped first.
func (v *View[T]) Snapshot() Snapshot[T] {
	v.mu.Lock()
	v.notify(v.fold.expire(v.now())...)
	s := v.snapshot()
	v.mu.Unlock()
	v.tell()
	return s
}

// snapshot is called with the lock held.
func (v *View[T]) snapshot() Snapshot[T] {
	s := Snapshot[T]{At: v.now(), Stats: v.fold.stats, Sound: v.sound, tree: v.fold.tree.Copy()}
	if v.source != nil {
		s.Source = v.source.Status()
		// A message that was received but not yet applied is not in here.
		s.CaughtUp = v.shadow == nil && s.Source.CaughtUp && s.Source.Messages == v.fold.seen
		s.Sound = s.Sound && !lossy(s.Source)
	}
	return s
}

// lossy says whether a subscription knows or suspects that it did not deliver everything.
func lossy(s topics.Status) bool { return s.Lost+s.Uncertain+s.Skipped > 0 }

// Listen calls f for every change after the snapshot that it returns, in order, one at a time, and never with a lock held:
// f may use the view. A change is told by whichever call finds it first in line, so Apply may return before its listeners
// have run. stop ends it; f may still be running then.
func (v *View[T]) Listen(f func(Change[T])) (now Snapshot[T], stop func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	l := &listener[T]{f}
	v.listeners = append(v.listeners[:len(v.listeners):len(v.listeners)], l)
	return v.snapshot(), func() { v.forget(l) }
}

func (v *View[T]) forget(l *listener[T]) {
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

// notify queues changes for the listeners. The lock is held.
func (v *View[T]) notify(changes ...Change[T]) {
	if len(v.listeners) == 0 {
		return
	}
	for _, c := range changes {
		v.queue = append(v.queue, notice[T]{c, v.listeners})
	}
}

// tell empties the queue, unless somebody is doing that.
func (v *View[T]) tell() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.telling {
		return
	}
	v.telling = true
	defer func() { v.telling = false }()
	for len(v.queue) > 0 {
		n := v.queue[0]
		v.queue = v.queue[1:]
		v.call(n)
	}
	v.queue = nil
}

// call tells one change with the lock released, also when a listener panics.
func (v *View[T]) call(n notice[T]) {
	v.mu.Unlock()
	defer v.mu.Lock()
	for _, l := range n.to {
		l.f(n.change)
	}
}
