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

// last is the last entry of the topic that its ledgers have.
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
	pos     position // everything up to here is accounted for
	horizon position // compacted when the subscription began: what is missing up to here was superseded, not lost
	// closed are the ledgers that were seen with another one after them. What is known of them stays true, also when they
	// are deleted.
	closed map[int64]closedLedger
}

type closedLedger struct{ entries, next int64 }

// begin sets where a subscription starts.
func (t *tracker) begin(l layout, o topics.SubscribeOptions) {
	*t = tracker{pos: before, horizon: before, closed: map[int64]closedLedger{}}
	if o.Compacted {
		t.horizon = l.horizon
	}
	if h := t.horizon; h.ledger >= 0 && len(l.ledgers) > 0 && h.ledger < l.ledgers[0].id { // deleted, so all of it was compacted
		t.closed[h.ledger] = closedLedger{h.entry + 1, l.ledgers[0].id}
	}
	if o.From == topics.Latest {
		t.pos = later(l.last(), t.horizon)
	}
	t.learn(l)
}

// later is the later one of two positions.
func later(p, q position) position {
	if p.less(q) {
		return q
	}
	return p
}

// learn remembers the ledgers of a topic.
func (t *tracker) learn(l layout) {
	if t.pos == before && t.horizon == before && len(l.ledgers) > 0 { // what is compacted may begin in a deleted ledger
		t.skip(position{ledger: l.ledgers[0].id})
	}
	for i, s := range l.ledgers {
		if i+1 < len(l.ledgers) {
			t.closed[s.id] = closedLedger{s.entries, l.ledgers[i+1].id}
		}
	}
	for id := range t.closed {
		if id < t.pos.ledger {
			delete(t.closed, id)
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
// What has been deleted is accounted for by this call, so that it is reported once.
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
	oldest, listed := id.ledger, false
	for _, s := range l.ledgers {
		if s.id >= t.pos.ledger {
			oldest = min(oldest, s.id)
		}
		listed = listed || s.id == t.pos.ledger
	}
	if !listed {
		t.deleted(&a, first, oldest)
		first = 0
	}
	for _, s := range l.ledgers {
		if s.id >= t.pos.ledger && s.id < id.ledger {
			a.add(t, span{s.id, first, s.entries - 1})
			first = 0
		}
	}
	a.add(t, span{id.ledger, 0, last})
	return a
}

// skip gives up what lies before the ledger of id.
func (t *tracker) skip(id position) { t.pos = position{ledger: id.ledger, entry: -1, size: 1} }

// deleted accounts for everything before the oldest ledger that is left: it follows the ledgers as they were seen, and is
// uncertain where it does not know which one came next.
func (t *tracker) deleted(a *absence, first, oldest int64) {
	at := t.pos.ledger
	if _, known := t.closed[at]; !known && at < t.horizon.ledger {
		at, first = t.horizon.ledger, 0 // what was compacted away is not missed
	}
	for at >= 0 && at < oldest {
		c, known := t.closed[at]
		if !known {
			a.uncertain = true
			break
		}
		a.lose(t, span{at, first, c.entries - 1})
		at, first = c.next, 0
	}
	t.skip(position{ledger: oldest})
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
