package ownership

import (
	"cmp"
	"maps"
	"math"

	"github.com/tidwall/btree"

	"github.com/ballast-lb/ballast/event"
)

// Rules of the fold, besides the rules of conflict.
const (
	NoKey      Rule = "no-key"            // a message without a key says nothing about any bundle
	Repeated   Rule = "repeated-message"  // its id is not after that of the present record: it was read before
	Unreadable Rule = "unreadable-record" // brokers cannot read it either
)

// ID places a message in the ownership topic. The zero value is unknown.
type ID struct {
	Ledger int64
	Entry  int64
	Batch  int32
}

// Compare orders ids of one topic.
func (a ID) Compare(b ID) int {
	return cmp.Or(cmp.Compare(a.Ledger, b.Ledger), cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Batch, b.Batch))
}

// Message is one message of the ownership topic.
type Message struct {
	Bundle string                      // its key
	Data   *event.ServiceUnitStateData // nil is a tombstone; it is not changed afterwards
	ID     ID
	At     int64 // Unix ms by our clock when we received it
}

// Record is the present record of a bundle. It never changes; the next one takes its place.
type Record struct {
	Data          event.ServiceUnitStateData
	ID            ID
	Since         int64 // Unix ms by our clock: when the record came
	OwnerSince    int64 // likewise: since when the owner is the same; 0 without an owner
	InFlightSince int64 // likewise: since when the bundle is on its way without a stop; 0 if it is not
}

// Owner is the broker that serves the bundle: dst when Owned, source when Splitting, "" in every other state and without a record.
func (r *Record) Owner() string {
	switch r.State() {
	case event.Owned:
		return r.Data.DstBroker
	case event.Splitting:
		return r.Data.SourceBroker
	}
	return ""
}

// Assigned is the broker to which clients are sent: the owner, or dst while the bundle is Assigning or Releasing, which may be
// "" (Pulsar: ServiceUnitStateChannel.getAssigned).
func (r *Record) Assigned() string {
	switch r.State() {
	case event.Owned, event.Assigning, event.Releasing:
		return r.Data.DstBroker
	case event.Splitting:
		return r.Data.SourceBroker
	}
	return ""
}

// State is the state of the bundle; without a record it is Init.
func (r *Record) State() event.ServiceUnitState {
	if r == nil {
		return event.Init
	}
	return r.Data.State
}

// Age is for how long the record has been the present one, in ms by our clock. It is never negative; without a record it is 0.
func (r *Record) Age(now int64) int64 {
	if r == nil {
		return 0
	}
	return since(r.Since, now)
}

// InFlightAge is for how long the bundle has been on its way without a stop, in ms by our clock; 0 if it is not.
func (r *Record) InFlightAge(now int64) int64 {
	if !InFlight(r.State()) {
		return 0
	}
	return since(r.InFlightSince, now)
}

// since is the time from then to now, within 0 and the largest number.
func since(then, now int64) int64 {
	switch d := now - then; {
	case now <= then:
		return 0
	case d < 0:
		return math.MaxInt64
	default:
		return d
	}
}

// Outcome is what a message did.
type Outcome struct {
	Bundle string
	Verdict
	Before *Record // nil if there was none
	After  *Record // nil if there is none now; Before if the message was ignored
}

// OwnerChanged says whether the bundle is served by another broker than before, or by none any more.
func (o Outcome) OwnerChanged() bool { return o.Before.Owner() != o.After.Owner() }

// Fold turns the ownership topic into who owns what. Its messages are applied in the order of the topic; after reading the
// topic from its start again, begin with a new fold. It is used by one goroutine; snapshots may be read by many.
type Fold struct {
	state Snapshot
	rules map[Rule]int64
}

// NewFold returns a fold that knows nothing yet.
func NewFold() *Fold {
	return &Fold{
		state: Snapshot{
			records: new(btree.Map[string, *Record]), inFlight: new(btree.Map[string, *Record]), owned: new(btree.Map[string, string]),
			owners: new(btree.Map[string, int]), unreadable: new(btree.Map[string, string]), suspect: new(btree.Map[string, Suspicion]),
		},
		rules: make(map[Rule]int64),
	}
}

// Apply applies the next message of the topic and says what came of it. Whether it is accepted follows the rules by which every
// broker's view of the system topic decides.
func (f *Fold) Apply(m Message) Outcome {
	before, _ := f.state.records.Get(m.Bundle)
	o := Outcome{Bundle: m.Bundle, Verdict: decide(before, m), Before: before, After: before}
	f.rules[o.Rule]++
	f.state.Applied++
	f.state.Last = m.ID
	switch {
	case o.Rule == Unreadable:
		f.state.unreadable.Set(m.Bundle, m.Data.Validate().Error())
	case !o.Keep:
		f.state.unreadable.Delete(m.Bundle)
		o.After = next(before, m)
		f.replace(m.Bundle, before, o.After)
	}
	f.doubt(o, m)
	return o
}

// Skip notes a message that could not be decoded: brokers cannot read it either and keep what they have. Until a record of
// the bundle is accepted, snapshots say that it is unreadable.
func (f *Fold) Skip(m Message, why error) Outcome {
	before, _ := f.state.records.Get(m.Bundle)
	f.rules[Unreadable]++
	f.state.Applied++
	f.state.Last = m.ID
	f.state.unreadable.Set(m.Bundle, why.Error())
	return Outcome{Bundle: m.Bundle, Verdict: Verdict{Keep: true, Rule: Unreadable}, Before: before, After: before}
}

// decide adds to the rules of conflict what can only be known of a message.
func decide(before *Record, m Message) Verdict {
	var present *event.ServiceUnitStateData
	if before != nil {
		present = &before.Data
	}
	switch {
	case m.Bundle == "":
		return Verdict{Keep: true, Rule: NoKey}
	case before != nil && m.ID != (ID{}) && m.ID.Compare(before.ID) <= 0:
		return Verdict{Keep: true, Rule: Repeated}
	case m.Data != nil && m.Data.Validate() != nil:
		return Verdict{Keep: true, Rule: Unreadable}
	}
	return Resolver{Store: SystemTopic}.Decide(present, m.Data)
}

// next is the record that a message makes, nil for a tombstone.
func next(before *Record, m Message) *Record {
	if m.Data == nil {
		return nil
	}
	r := &Record{Data: *m.Data, ID: m.ID, Since: m.At}
	if owner := r.Owner(); owner != "" {
		r.OwnerSince = m.At
		if before.Owner() == owner {
			r.OwnerSince = before.OwnerSince
		}
	}
	if InFlight(r.State()) {
		r.InFlightSince = m.At
		if InFlight(before.State()) {
			r.InFlightSince = before.InFlightSince
		}
	}
	return r
}

// replace puts a record in the place of another; either may be nil.
func (f *Fold) replace(bundle string, before, after *Record) {
	s := &f.state
	if after == nil {
		s.records.Delete(bundle)
	} else {
		s.records.Set(bundle, after)
	}
	if InFlight(after.State()) {
		s.inFlight.Set(bundle, after)
	} else if InFlight(before.State()) {
		s.inFlight.Delete(bundle)
	}
	if was, is := before.Owner(), after.Owner(); was != is {
		s.own(bundle, was, -1)
		s.own(bundle, is, 1)
	}
}

// own adds a bundle to those of a broker (1) or takes it from them (-1).
func (s *Snapshot) own(bundle, broker string, by int) {
	if broker == "" {
		return
	}
	if by > 0 {
		s.owned.Set(ownedKey(broker, bundle), bundle)
	} else {
		s.owned.Delete(ownedKey(broker, bundle))
	}
	count, _ := s.owners.Get(broker)
	if count += by; count == 0 {
		s.owners.Delete(broker)
	} else {
		s.owners.Set(broker, count)
	}
}

// Rules says how many messages each rule decided.
func (f *Fold) Rules() map[Rule]int64 { return maps.Clone(f.rules) }

// Get returns the present record of a bundle.
func (f *Fold) Get(bundle string) (*Record, bool) { return f.state.Get(bundle) }

// Snapshot returns who owns what now. It costs next to nothing, and what is applied later does not change it.
func (f *Fold) Snapshot() *Snapshot {
	s := &f.state
	return &Snapshot{
		records: s.records.Copy(), inFlight: s.inFlight.Copy(), owned: s.owned.Copy(), owners: s.owners.Copy(),
		unreadable: s.unreadable.Copy(), suspect: s.suspect.Copy(), Applied: s.Applied, Last: s.Last,
	}
}
