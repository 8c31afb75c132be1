package ownership

import (
	"iter"
	"slices"
)

// maxChunk is how many entries are copied at most when one of them changes after a snapshot.
const maxChunk = 128

// sorted is a map in the order of its keys of which copies can be taken at no cost: a copy shares the chunks, and the
// original copies those that it changes afterwards. Copies are read only. It needs a compare function.
type sorted[K, V any] struct {
	compare func(a, b K) int
	chunks  []*chunk[K, V] // none is empty
	size    int
	edit    uint64 // chunks of this number are not shared
	shared  bool   // the slice of chunks is shared
}

// chunk is a run of entries.
type chunk[K, V any] struct {
	edit    uint64
	entries []entry[K, V]
}

type entry[K, V any] struct {
	key   K
	value V
}

// copy is the map as it is now.
func (s *sorted[K, V]) copy() sorted[K, V] {
	s.edit++
	s.shared = true
	return *s
}

// place says in which chunk and where in it a key is, or would be.
func (s *sorted[K, V]) place(key K) (c, e int, found bool) {
	c, found = slices.BinarySearchFunc(s.chunks, key, func(c *chunk[K, V], key K) int { return s.compare(c.entries[0].key, key) })
	if found || len(s.chunks) == 0 {
		return c, 0, found
	}
	c = max(c-1, 0) // the chunk that begins before the key
	e, found = slices.BinarySearchFunc(s.chunks[c].entries, key, func(e entry[K, V], key K) int { return s.compare(e.key, key) })
	return c, e, found
}

func (s *sorted[K, V]) get(key K) (value V, ok bool) {
	c, e, found := s.place(key)
	if !found {
		return value, false
	}
	return s.chunks[c].entries[e].value, true
}

// own makes a chunk one that may be changed.
func (s *sorted[K, V]) own(c int) *chunk[K, V] {
	s.ownChunks()
	ch := s.chunks[c]
	if ch.edit != s.edit {
		ch = &chunk[K, V]{edit: s.edit, entries: append(make([]entry[K, V], 0, maxChunk), ch.entries...)}
		s.chunks[c] = ch
	}
	return ch
}

func (s *sorted[K, V]) ownChunks() {
	if s.shared {
		s.chunks = slices.Clone(s.chunks)
		s.shared = false
	}
}

func (s *sorted[K, V]) put(key K, value V) {
	if len(s.chunks) == 0 {
		s.chunks = []*chunk[K, V]{{edit: s.edit, entries: []entry[K, V]{{key, value}}}}
		s.size, s.shared = 1, false
		return
	}
	c, e, found := s.place(key)
	ch := s.own(c)
	if found {
		ch.entries[e].value = value
		return
	}
	ch.entries = slices.Insert(ch.entries, e, entry[K, V]{key, value})
	s.size++
	if len(ch.entries) == maxChunk {
		s.split(c)
	}
}

// split moves the upper half of a full chunk into one of its own.
func (s *sorted[K, V]) split(c int) {
	full := s.chunks[c]
	upper := append(make([]entry[K, V], 0, maxChunk), full.entries[maxChunk/2:]...)
	clear(full.entries[maxChunk/2:])
	full.entries = full.entries[:maxChunk/2]
	s.chunks = slices.Insert(s.chunks, c+1, &chunk[K, V]{edit: s.edit, entries: upper})
}

func (s *sorted[K, V]) remove(key K) {
	c, e, found := s.place(key)
	if !found {
		return
	}
	s.size--
	ch := s.own(c)
	ch.entries = slices.Delete(ch.entries, e, e+1)
	switch {
	case len(ch.entries) == 0:
		s.chunks = slices.Delete(s.chunks, c, c+1)
	case c+1 < len(s.chunks) && len(ch.entries)+len(s.chunks[c+1].entries) < maxChunk/2:
		ch.entries = append(ch.entries, s.chunks[c+1].entries...)
		s.chunks = slices.Delete(s.chunks, c+1, c+2)
	}
}

// from yields the entries in order, beginning with the first that is not below key.
func (s sorted[K, V]) from(key K) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		c, e, _ := s.place(key)
		for ; c < len(s.chunks); c, e = c+1, 0 {
			for _, entry := range s.chunks[c].entries[e:] {
				if !yield(entry.key, entry.value) {
					return
				}
			}
		}
	}
}

// all yields the entries in order.
func (s sorted[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, ch := range s.chunks {
			for _, entry := range ch.entries {
				if !yield(entry.key, entry.value) {
					return
				}
			}
		}
	}
}
