package tableview

import (
	"container/list"
	"errors"
	"time"

	"github.com/tidwall/btree"

	"github.com/ballast-lb/ballast/topics"
)

// fold is the pure core: messages in, latest values and changes out. No lock, no clock, no I/O.
type fold[T any] struct {
	decode   func(payload []byte) (T, error)
	checkKey func(key string) error
	keep     func(key string, old, new *Entry[T]) bool
	ttl      time.Duration
	maxKeys  int

	tree  *btree.Map[string, *Entry[T]]
	stats Stats
	seen  int64 // messages of the present subscription
	last  topics.MessageID

	// With a TTL or a limit of keys: keys in the order in which they were last received.
	ages *list.List
	age  map[string]*list.Element
}

func newFold[T any](o Options[T]) *fold[T] {
	f := &fold[T]{decode: o.Decode, checkKey: o.CheckKey, keep: o.Keep, ttl: o.TTL, maxKeys: o.MaxKeys, tree: new(btree.Map[string, *Entry[T]])}
	if f.ttl > 0 || f.maxKeys > 0 {
		f.ages, f.age = list.New(), map[string]*list.Element{}
	}
	return f
}

var errNoKey = errors.New("the message has no key")

// apply folds one message in.
func (f *fold[T]) apply(m topics.Message) Change[T] {
	f.seen++
	f.last = m.ID
	f.stats.Applied++
	old, _ := f.tree.Get(m.Key)
	c := Change[T]{Key: m.Key, Old: old}
	if err := f.validKey(m.Key); err != nil {
		return f.garbage(c, m, err)
	}
	if !m.Tombstone() {
		value, err := f.decode(m.Payload)
		if err != nil {
			return f.garbage(c, m, err)
		}
		c.New = &Entry[T]{Key: m.Key, Value: value, ID: m.ID, Producer: m.Producer, PublishTime: m.PublishTime, Received: m.Received}
	}
	switch {
	case f.keep != nil && f.keep(m.Key, c.Old, c.New):
		f.stats.Rejected++
		c.Kind = Rejected
	case c.New == nil:
		f.stats.Tombstones++
		c.Kind = Removed
		if c.Old != nil {
			f.remove(m.Key)
		}
	default:
		f.stats.Put++
		f.tree.Set(m.Key, c.New)
		f.touch(m.Key)
	}
	return c
}

func (f *fold[T]) validKey(key string) error {
	if key == "" {
		return errNoKey
	}
	if f.checkKey != nil {
		return f.checkKey(key)
	}
	return nil
}

func (f *fold[T]) garbage(c Change[T], m topics.Message, err error) Change[T] {
	f.stats.Garbage++
	f.stats.Last = Skip{Key: m.Key, ID: m.ID, At: m.Received, Reason: err.Error()}
	c.Kind, c.Err = Garbage, err
	return c
}

func (f *fold[T]) touch(key string) {
	if f.ages == nil {
		return
	}
	if e := f.age[key]; e != nil {
		f.ages.MoveToBack(e)
	} else {
		f.age[key] = f.ages.PushBack(key)
	}
}

func (f *fold[T]) remove(key string) {
	f.tree.Delete(key)
	if e := f.age[key]; e != nil {
		f.ages.Remove(e)
		delete(f.age, key)
	}
}

// expire drops the values that are too old, the oldest first.
func (f *fold[T]) expire(now time.Time) []Change[T] {
	if f.ttl <= 0 {
		return nil
	}
	return f.dropWhile(func(oldest *Entry[T]) bool { return oldest.Age(now) >= f.ttl })
}

// evict drops the oldest values of more keys than there may be.
func (f *fold[T]) evict() []Change[T] {
	if f.maxKeys <= 0 || f.tree.Len() <= f.maxKeys {
		return nil
	}
	return f.dropWhile(func(*Entry[T]) bool { return f.tree.Len() > f.maxKeys })
}

func (f *fold[T]) dropWhile(drop func(oldest *Entry[T]) bool) []Change[T] {
	var changes []Change[T]
	for e := f.ages.Front(); e != nil; e = f.ages.Front() {
		entry, _ := f.tree.Get(e.Value.(string))
		if !drop(entry) {
			break
		}
		f.remove(entry.Key)
		f.stats.Expired++
		changes = append(changes, Change[T]{Kind: Expired, Key: entry.Key, Old: entry})
	}
	return changes
}

// differences are the changes that lead from one state to another, in the order of the keys.
func differences[T any](from, to *btree.Map[string, *Entry[T]]) []Change[T] {
	var changes []Change[T]
	from.Scan(func(key string, old *Entry[T]) bool {
		if _, still := to.Get(key); !still {
			changes = append(changes, Change[T]{Kind: Removed, Key: key, Old: old})
		}
		return true
	})
	to.Scan(func(key string, e *Entry[T]) bool {
		if old, before := from.Get(key); !before || old.ID != e.ID {
			changes = append(changes, Change[T]{Kind: Put, Key: key, Old: old, New: e})
		}
		return true
	})
	return changes
}
