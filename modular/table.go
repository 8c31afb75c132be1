package modular

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ballast-lb/ballast/internal/jsonfloat"
)

// Table keeps a value per broker id or bundle name, in the order in which they were added. Looked up with the place that a
// key has in a snapshot's slice it costs one comparison as long as both are in the same order. The zero value is empty.
type Table[V any] struct {
	entries []Entry[V]
	index   map[string]int // nil: to be built
}

// Entry is one key of a Table with its value.
type Entry[V any] struct {
	Key   string `json:"key"`
	Value V      `json:"value"`
}

// Len is the number of keys.
func (t *Table[V]) Len() int { return len(t.entries) }

// Entries are the keys with their values. They belong to the table.
func (t *Table[V]) Entries() []Entry[V] { return t.entries }

// Get is the value of a key, nil if there is none. hint is the place where the key probably is; any number will do.
func (t *Table[V]) Get(hint int, key string) *V {
	if uint(hint) < uint(len(t.entries)) && t.entries[hint].Key == key {
		return &t.entries[hint].Value
	}
	if len(t.entries) == 0 {
		return nil
	}
	if t.index == nil {
		t.build()
	}
	if i, ok := t.index[key]; ok {
		return &t.entries[i].Value
	}
	return nil
}

// Add is the value of a key, which is added with the zero value if it is not there, and whether it was there. A pointer
// from before an addition must not be written through afterwards.
func (t *Table[V]) Add(hint int, key string) (value *V, found bool) {
	if v := t.Get(hint, key); v != nil {
		return v, true
	}
	if t.index == nil {
		t.build()
	}
	t.index[key] = len(t.entries)
	t.entries = append(t.entries, Entry[V]{Key: key})
	return &t.entries[len(t.entries)-1].Value, false
}

// Retain drops the keys for which keep is false.
func (t *Table[V]) Retain(keep func(key string, value *V) bool) {
	n := 0
	for i := range t.entries {
		if e := &t.entries[i]; keep(e.Key, &e.Value) {
			if i != n {
				t.entries[n] = *e
			}
			n++
		}
	}
	if n < len(t.entries) {
		clear(t.entries[n:])
		t.entries, t.index = t.entries[:n], nil
	}
}

// Clone is a copy that shares nothing but what the values point to.
func (t *Table[V]) Clone() Table[V] { return Table[V]{entries: slices.Clone(t.entries)} }

// shared is a view of the table whose present values must not be written; additions to one are not seen by the other.
func (t *Table[V]) shared() Table[V] { return Table[V]{entries: slices.Clip(t.entries)} }

func (t *Table[V]) build() {
	t.index = make(map[string]int, len(t.entries))
	for i := range t.entries {
		t.index[t.entries[i].Key] = i
	}
}

// MarshalJSON writes the entries as a list, in order.
func (t Table[V]) MarshalJSON() ([]byte, error) {
	if t.entries == nil {
		return []byte("[]"), nil
	}
	return json.Marshal(t.entries)
}

// UnmarshalJSON reads what MarshalJSON writes. A key that comes twice is an error.
func (t *Table[V]) UnmarshalJSON(b []byte) error {
	var entries []Entry[V]
	if err := json.Unmarshal(b, &entries); err != nil {
		return err
	}
	fresh := Table[V]{entries: entries}
	fresh.build()
	if len(fresh.index) != len(entries) {
		return fmt.Errorf("modular: a table of %d entries has only %d keys; every key may come once", len(entries), len(fresh.index))
	}
	*t = fresh
	return nil
}

// Double is a float64 whose JSON form keeps NaN and the infinities, as the strings that Pulsar uses.
type Double = jsonfloat.Float
