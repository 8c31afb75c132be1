package ownership

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tidwall/btree"

	"github.com/ballast-lb/ballast/event"
)

// ErrDeleted is wrapped by lookups of a bundle that was split: brokers fail them, too.
var ErrDeleted = errors.New("the bundle is deleted")

// Snapshot is who owned what at one moment. It never changes and may be read by many goroutines.
// All sequences are in the order of names.
type Snapshot struct {
	Applied int64 // messages that were applied until then, ignored ones included
	Last    ID    // id of the last of them

	records    *btree.Map[string, *Record]
	inFlight   *btree.Map[string, *Record]
	owned      *btree.Map[string, string] // owned key to bundle
	owners     *btree.Map[string, int]
	unreadable *btree.Map[string, string]
	suspect    *btree.Map[string, Suspicion]
}

// ownedKey is the key of a bundle among those of its owner; no broker id has a zero byte.
func ownedKey(broker, bundle string) string { return broker + "\x00" + bundle }

// Len is the number of bundles that have a record.
func (s *Snapshot) Len() int { return s.records.Len() }

// Get returns the record of a bundle. It is shared and must not be changed.
func (s *Snapshot) Get(bundle string) (*Record, bool) { return s.records.Get(bundle) }

// All are all bundles with their records.
func (s *Snapshot) All() iter.Seq2[string, *Record] { return s.records.Scan }

// Namespace are the bundles of one namespace with their records.
func (s *Snapshot) Namespace(namespace string) iter.Seq2[string, *Record] {
	prefix := namespace + "/"
	return func(yield func(string, *Record) bool) {
		s.records.Ascend(prefix, func(bundle string, record *Record) bool {
			return strings.HasPrefix(bundle, prefix) && yield(bundle, record)
		})
	}
}

// InFlight are the bundles that are Assigning, Releasing or Splitting, with their records.
func (s *Snapshot) InFlight() iter.Seq2[string, *Record] { return s.inFlight.Scan }

// InFlightCount is how many bundles are on their way.
func (s *Snapshot) InFlightCount() int { return s.inFlight.Len() }

// Owned are the bundles that a broker serves: those that it owns, and those that it is splitting.
func (s *Snapshot) Owned(broker string) iter.Seq[string] {
	prefix := ownedKey(broker, "")
	return func(yield func(string) bool) {
		s.owned.Ascend(prefix, func(key, bundle string) bool {
			return strings.HasPrefix(key, prefix) && yield(bundle)
		})
	}
}

// OwnedCount is how many bundles a broker serves.
func (s *Snapshot) OwnedCount(broker string) int {
	count, _ := s.owners.Get(broker)
	return count
}

// Owners are the brokers that serve bundles, with how many.
func (s *Snapshot) Owners() iter.Seq2[string, int] { return s.owners.Scan }

// Unreadable are the bundles whose newest message could not be read, and why. Nothing may be decided about them.
func (s *Snapshot) Unreadable() iter.Seq2[string, string] { return s.unreadable.Scan }

// IsUnreadable says why the newest message of a bundle could not be read; false if it could.
func (s *Snapshot) IsUnreadable(bundle string) (why string, yes bool) {
	return s.unreadable.Get(bundle)
}

// Answer is what is known of a bundle.
type Answer struct {
	State    event.ServiceUnitState // Init without a record
	Owner    string                 // the broker that serves it, "" if none does
	Assigned string                 // the broker to which clients are sent, "" if there is none yet
	InFlight bool                   // it is on its way to Assigned or, if that is "", to nobody yet
}

// Lookup answers as a broker does that has no part in the matter: with Assigned, or with ErrDeleted when the bundle was split.
// Pulsar: ServiceUnitStateChannel.getOwnerAsync.
func (s *Snapshot) Lookup(bundle string) (Answer, error) {
	record, _ := s.records.Get(bundle)
	state := record.State()
	answer := Answer{State: state, Owner: record.Owner(), Assigned: record.Assigned(), InFlight: InFlight(state)}
	if state == event.Deleted {
		return answer, fmt.Errorf("bundle %s: %w", bundle, ErrDeleted)
	}
	return answer, nil
}

// Child is one of the bundles that a bundle is split into.
type Child struct {
	Bundle string
	Broker string  // the broker that was chosen for it, "" if none was
	Record *Record // nil until it has one
}

// Children are the bundles that a bundle is being split into, as its record names them, or that it was split into: the bundles in its
// range, in the order of their names. A bundle that is neither Splitting nor Deleted has none.
func (s *Snapshot) Children(bundle string) []Child {
	record, _ := s.records.Get(bundle)
	switch record.State() {
	case event.Splitting:
		return s.named(bundle, record)
	case event.Deleted:
		return s.within(bundle)
	}
	return nil
}

// named are the children that a record names, by range or in full.
func (s *Snapshot) named(bundle string, record *Record) []Child {
	var children []Child
	for _, d := range record.Data.SplitServiceUnitToDestBroker {
		name := d.Range
		if !strings.Contains(name, "/") {
			name = event.NamespaceOf(bundle) + "/" + name
		}
		child, _ := s.records.Get(name)
		children = append(children, Child{name, d.Broker, child})
	}
	slices.SortFunc(children, func(a, b Child) int { return strings.Compare(a.Bundle, b.Bundle) })
	return children
}

// within are the bundles whose range is part of a bundle's.
func (s *Snapshot) within(bundle string) []Child {
	parent, err := event.ParseBundle(bundle)
	if err != nil {
		return nil
	}
	var children []Child
	for name, record := range s.Namespace(parent.Namespace) {
		b, err := event.ParseBundle(name)
		if err == nil && b != parent && parent.Range.Lower <= b.Range.Lower && b.Range.Upper <= parent.Range.Upper &&
			record.State() != event.Deleted {
			children = append(children, Child{Bundle: name, Record: record})
		}
	}
	return children
}
