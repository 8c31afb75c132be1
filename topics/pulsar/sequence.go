package pulsar

import (
	"fmt"

	"github.com/ballast-lb/ballast/topics"
)

// position is the place of one message of a persistent topic: message index of size in an entry of a ledger.
type position struct {
	ledger, entry int64
	index, size   int32
}

// before comes before every message.
var before = position{ledger: -1, entry: -1, size: 1}

func (p position) String() string { return fmt.Sprintf("%d:%d:%d", p.ledger, p.entry, p.index) }

// id is the position as the log shows it.
func (p position) id() topics.MessageID {
	if p.size <= 1 {
		return topics.MessageID{Ledger: p.ledger, Entry: p.entry, Batch: -1}
	}
	return topics.MessageID{Ledger: p.ledger, Entry: p.entry, Batch: p.index}
}

func (p position) less(q position) bool {
	if p.ledger != q.ledger {
		return p.ledger < q.ledger
	}
	if p.entry != q.entry {
		return p.entry < q.entry
	}
	return p.index < q.index
}

// whole is the end of the position's entry.
func (p position) whole() position {
	p.index = max(p.size, 1) - 1
	return p
}

func (p position) complete() bool { return p.index+1 >= p.size }

// ledger is a ledger and how many entries it has.
type ledger struct{ id, entries int64 }

// layout is what a persistent topic consists of: its ledgers, oldest first, and up to where it has been compacted.
type layout struct {
	ledgers []ledger
	horizon position
}

// last is the last entry of the topic.
func (l layout) last() position {
	for i := len(l.ledgers) - 1; i >= 0; i-- {
		if n := l.ledgers[i].entries; n > 0 {
			return position{ledger: l.ledgers[i].id, entry: n - 1, size: 1}
		}
	}
	return before
}

// span is a run of entries of one ledger, both ends included.
type span struct{ ledger, first, last int64 }

func (s span) count() int64 { return s.last - s.first + 1 }

// place says how a message relates to what has been accounted for.
type place int

const (
	duplicate place = iota // already accounted for
	follows                // the very next one
	gap                    // something lies between
)

// tracker accounts for every message of a persistent topic in order. It is plain state: no I/O, no clock.
type tracker struct {
	pos     position        // everything up to here is accounted for
	horizon position        // compacted when the subscription began: what is missing up to here was superseded, not lost
	sizes   map[int64]int64 // ledgers that were seen closed, and how many entries they had
}

// begin sets where a subscription starts.
func (t *tracker) begin(l layout, o topics.SubscribeOptions) {
	*t = tracker{pos: before, horizon: before, sizes: map[int64]int64{}}
	if o.Compacted {
		t.horizon = l.horizon
		t.sizes[l.horizon.ledger] = l.horizon.entry + 1 // if it is not listed any more, all of it was compacted
	}
	if o.From == topics.Latest {
		t.pos = l.last()
	}
	t.learn(l)
}

// learn remembers the sizes of closed ledgers, so that their ends are known after they have been deleted.
func (t *tracker) learn(l layout) {
	for i, s := range l.ledgers {
		delete(t.sizes, s.id)
		if i+1 < len(l.ledgers) {
			t.sizes[s.id] = s.entries
		}
	}
	for id := range t.sizes {
		if id < t.pos.ledger {
			delete(t.sizes, id)
		}
	}
}

func (t *tracker) place(id position) place {
	switch p := t.pos; {
	case !p.less(id):
		return duplicate
	case p.ledger == id.ledger && p.entry == id.entry && p.index+1 == id.index:
		return follows
	case p.ledger == id.ledger && p.entry+1 == id.entry && id.index == 0 && p.complete():
		return follows
	}
	return gap
}

// covers says whether every message of an entry is accounted for.
func (t *tracker) covers(entry position) bool {
	p := t.pos
	if p.ledger == entry.ledger && p.entry == entry.entry {
		return p.complete()
	}
	return entry.less(p)
}

// crosses says whether finding out what is missing before id needs the topic's layout.
func (t *tracker) crosses(id position) bool { return t.pos.ledger != id.ledger }

// absence is what lies between the accounted position and a later one.
type absence struct {
	spans     []span // entries to ask for
	lost      int64  // entries that existed and have been deleted
	uncertain bool   // a ledger was deleted before its end was known
}

// missing finds what lies between the accounted position and id. With inclusive, the entry of id itself is missing too.
func (t *tracker) missing(id position, inclusive bool, l layout) absence {
	var a absence
	last := id.entry - 1
	if inclusive || id.index > 0 {
		last = id.entry
	}
	first := t.pos.entry + 1
	if !t.pos.complete() {
		first--
	}
	if t.pos.ledger == id.ledger {
		a.add(t, span{id.ledger, first, last})
		return a
	}
	listed := map[int64]int64{}
	for _, s := range l.ledgers {
		listed[s.id] = s.entries
	}
	if t.pos.ledger >= 0 {
		if n, ok := listed[t.pos.ledger]; ok {
			a.add(t, span{t.pos.ledger, first, n - 1})
		} else if n, ok := t.sizes[t.pos.ledger]; ok {
			a.lose(t, span{t.pos.ledger, first, n - 1})
		} else {
			a.uncertain = t.pos.ledger >= t.horizon.ledger // what was compacted away is not missed
		}
		for id2, n := range t.sizes {
			if _, ok := listed[id2]; !ok && id2 > t.pos.ledger && id2 < id.ledger {
				a.lose(t, span{id2, 0, n - 1})
			}
		}
	}
	for _, s := range l.ledgers {
		if s.id > t.pos.ledger && s.id < id.ledger {
			a.add(t, span{s.id, 0, s.entries - 1})
		}
	}
	a.add(t, span{id.ledger, 0, last})
	return a
}

// clip leaves out what was compacted before the subscription began.
func (t *tracker) clip(s span) (span, bool) {
	if s.ledger < t.horizon.ledger {
		return s, false
	}
	if s.ledger == t.horizon.ledger {
		s.first = max(s.first, t.horizon.entry+1)
	}
	return s, s.first <= s.last
}

func (a *absence) add(t *tracker, s span) {
	if s, ok := t.clip(s); ok {
		a.spans = append(a.spans, s)
	}
}

func (a *absence) lose(t *tracker, s span) {
	if s, ok := t.clip(s); ok {
		a.lost += s.count()
	}
}

// take is the first n entries of the spans, and what remains of them.
func take(spans []span, n int64) (first, rest []span) {
	for i, s := range spans {
		if s.count() > n {
			if n > 0 {
				first = append(first, span{s.ledger, s.first, s.first + n - 1})
			}
			return first, append([]span{{s.ledger, s.first + n, s.last}}, spans[i+1:]...)
		}
		first = append(first, s)
		n -= s.count()
	}
	return first, nil
}

// count is how many entries the spans have.
func count(spans []span) (n int64) {
	for _, s := range spans {
		n += s.count()
	}
	return n
}
