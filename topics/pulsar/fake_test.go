package pulsar

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// fakeTopic is a persistent topic with its admin interface and a client library that loses what the real one loses.
type fakeTopic struct {
	mu       sync.Mutex
	name     topics.Name
	ids      []int64            // ledgers, oldest first
	ledgers  map[int64][]parcel // their entries
	deleted  map[int64]bool
	horizon  position
	fail     int   // how many admin requests fail next
	failWith error // with what
	fetched  int   // entries asked for
	readers  []*fakeReader
	silent   bool // the library says nothing of what it discards
	mute     bool // readers deliver nothing from the beginning
}

// parcel is one entry. The library discards it if it is alone and a tombstone.
type parcel struct {
	records []record
	alone   bool
}

func newFakeTopic() *fakeTopic {
	n, _ := topics.ParseName("persistent://public/default/fake")
	f := &fakeTopic{name: n, ledgers: map[int64][]parcel{}, deleted: map[int64]bool{}, horizon: before}
	f.roll()
	return f
}

// roll begins a new ledger; its readers lose their connection and what waits in them.
func (f *fakeTopic) roll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = append(f.ids, int64(10+5*len(f.ids)))
	f.ledgers[f.ids[len(f.ids)-1]] = nil
}

// publish adds an entry: one message alone, or a batch.
func (f *fakeTopic) publish(batch bool, events ...string) {
	f.mu.Lock()
	id := f.ids[len(f.ids)-1]
	p := parcel{alone: !batch}
	for i, e := range events {
		p.records = append(p.records, record{key: e[:1], payload: []byte(e[2:]), producer: "fake", publish: time.UnixMilli(1),
			id: position{ledger: id, entry: int64(len(f.ledgers[id])), index: int32(i), size: int32(len(events))}})
	}
	f.ledgers[id] = append(f.ledgers[id], p)
	readers := f.readers
	f.mu.Unlock()
	for _, r := range readers {
		r.poke()
	}
}

// remove deletes a ledger, as retention does.
func (f *fakeTopic) remove(ledger int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deleted[ledger] = true
}

// failNext makes the next n admin requests fail.
func (f *fakeTopic) failNext(n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail, f.failWith = n, err
}

// removeOldest deletes the oldest ledger that is not the present one.
func (f *fakeTopic) removeOldest() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range f.ids[:len(f.ids)-1] {
		if !f.deleted[id] {
			f.deleted[id] = true
			return
		}
	}
}

func (f *fakeTopic) failing() error {
	if f.fail > 0 {
		f.fail--
		return f.failWith
	}
	return nil
}

func (f *fakeTopic) layout(context.Context, topics.Name) (layout, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failing(); err != nil {
		return layout{}, err
	}
	l := layout{horizon: f.horizon}
	for _, id := range f.ids {
		if !f.deleted[id] {
			l.ledgers = append(l.ledgers, ledger{id, int64(len(f.ledgers[id]))})
		}
	}
	return l, nil
}

func (f *fakeTopic) entry(_ context.Context, _ topics.Name, ledger, entry int64, _ int) ([]record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fetched++
	if err := f.failing(); err != nil {
		return nil, err
	}
	if f.deleted[ledger] || entry >= int64(len(f.ledgers[ledger])) {
		return nil, &adminError{Status: http.StatusNotFound, Reason: "Message id not found"}
	}
	return f.ledgers[ledger][entry].records, nil
}

// next is the first entry after a position.
func (f *fakeTopic) next(after position) (parcel, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range f.ids {
		if f.deleted[id] || id < after.ledger {
			continue
		}
		first := int64(0)
		if id == after.ledger {
			first = after.entry + 1
		}
		if first < int64(len(f.ledgers[id])) {
			return f.ledgers[id][first], true
		}
	}
	return parcel{}, false
}

// fakeReader is a reader of the library.
type fakeReader struct {
	topic *fakeTopic
	tap   tap
	out   chan record
	stop  chan struct{}
	done  chan struct{}
	more  chan struct{}

	mu   sync.Mutex
	at   position      // what it has read; everything up to it is delivered or lost
	skip int           // messages that vanish in it, as what waits there does when it reconnects
	dead bool          // delivers nothing more
	back int           // entries that it delivers again
	end  *position     // what the broker says is the last message; nil = the last entry
	hold chan struct{} // the broker does not say so before this is closed; nil = at once
}

func (f *fakeTopic) open(after position, t tap) (source, error) {
	if !after.complete() {
		after.entry--
	}
	after.index, after.size = 0, 1
	r := &fakeReader{topic: f, tap: t, at: after, dead: f.mute, out: make(chan record), stop: make(chan struct{}), done: make(chan struct{}), more: make(chan struct{}, 1)}
	f.mu.Lock()
	f.readers = append(f.readers, r)
	f.mu.Unlock()
	go r.run()
	return r, nil
}

func (r *fakeReader) poke() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

func (r *fakeReader) run() {
	defer close(r.done)
	for {
		r.mu.Lock()
		if r.back > 0 {
			r.at.entry = max(r.at.entry-int64(r.back), -1)
			r.back = 0
		}
		p, ok := r.topic.next(r.at)
		ok = ok && !r.dead
		if ok {
			r.at = p.records[0].id.whole()
			r.at.index, r.at.size = 0, 1
		}
		r.mu.Unlock()
		if !ok {
			select {
			case <-r.more:
			case <-r.stop:
				return
			}
			continue
		}
		for _, rec := range p.records {
			if p.alone && len(rec.payload) == 0 {
				if !r.topic.silent {
					r.tap(signalDiscarded, rec.id.ledger, rec.id.entry)
				}
				continue
			}
			r.mu.Lock()
			vanishes := r.skip > 0
			if vanishes {
				r.skip--
			}
			r.mu.Unlock()
			if vanishes {
				continue
			}
			select {
			case r.out <- rec:
			case <-r.stop:
				return
			}
		}
	}
}

func (r *fakeReader) messages() <-chan record { return r.out }

func (r *fakeReader) last() (position, error) {
	r.mu.Lock()
	end, hold := r.end, r.hold
	r.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if end != nil {
		return *end, nil
	}
	l, err := r.topic.layout(context.Background(), r.topic.name)
	return l.last(), err
}

func (r *fakeReader) close() {
	close(r.stop)
	<-r.done
}

// reader is the newest reader.
func (f *fakeTopic) reader() *fakeReader {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readers[len(f.readers)-1]
}

// change edits the newest reader.
func (f *fakeTopic) change(edit func(*fakeReader)) {
	r := f.reader()
	r.mu.Lock()
	edit(r)
	r.mu.Unlock()
	r.poke()
}

// subscribe subscribes to the fake topic.
func (f *fakeTopic) subscribe(work *group, o topics.SubscribeOptions) (*persistent, error) {
	options := Options{Logger: slog.New(slog.DiscardHandler)}.withDefaults()
	s := &persistent{loop: newLoop(f.name, options, work), admin: f}
	return s, s.subscribe(context.Background(), o, f.open)
}

func eventOf(m topics.Message) string {
	e := fmt.Sprintf("%s=%s", m.Key, m.Payload)
	if m.Recovered {
		e += " *"
	}
	return e
}
