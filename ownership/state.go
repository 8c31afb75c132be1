// Package ownership is the service-unit-state machine of the Extensible load manager: the states of a bundle, which may
// follow which, the rule by which every reader of the ownership topic decides alike between two records, and the fold of
// the topic into who owns what now (Pulsar: ServiceUnitState, ServiceUnitStateDataConflictResolver, ServiceUnitStateChannelImpl).
package ownership

import (
	"fmt"

	"github.com/ballast-lb/ballast/event"
)

// Store is where a cluster keeps its ownership records. The rules differ a little.
type Store int

// The stores (Pulsar: ServiceUnitState.StorageType, setting loadManagerServiceUnitStateTableViewClassName).
const (
	SystemTopic   Store = iota // a compacted topic: readers decide, histories may have gaps
	MetadataStore              // the metadata store: writers decide by compare-and-set
)

// String is Pulsar's name of the store.
func (s Store) String() string {
	if s == MetadataStore {
		return "MetadataStore"
	}
	return "SystemTopic"
}

// ParseStore reads Pulsar's name of a store.
func ParseStore(name string) (Store, error) {
	for _, s := range [...]Store{SystemTopic, MetadataStore} {
		if name == s.String() {
			return s, nil
		}
	}
	return 0, fmt.Errorf("%q is not a store of ownership records: it must be SystemTopic or MetadataStore", name)
}

// States returns all states in Pulsar's order.
func States() []event.ServiceUnitState {
	return []event.ServiceUnitState{
		event.Init, event.Free, event.Owned, event.Assigning, event.Releasing, event.Splitting, event.Deleted,
	}
}

// InFlight says whether the bundle is on its way: Assigning, Releasing or Splitting.
func InFlight(s event.ServiceUnitState) bool {
	return s == event.Assigning || s == event.Releasing || s == event.Splitting
}

// Active says whether the bundle is owned or on its way.
func Active(s event.ServiceUnitState) bool { return s == event.Owned || InFlight(s) }

// ValidTransition says whether a record of state to may follow one of state from. Init is the absence of a record.
func ValidTransition(from, to event.ServiceUnitState, store Store) bool {
	switch from {
	case event.Init:
		if store == MetadataStore {
			return to == event.Assigning
		}
		return to == event.Free || Active(to) || to == event.Deleted // a compacted history may begin anywhere
	case event.Free:
		return to == event.Assigning || to == event.Init && store == SystemTopic
	case event.Owned:
		return to == event.Splitting || to == event.Releasing
	case event.Assigning:
		return to == event.Owned
	case event.Releasing:
		return to == event.Assigning || to == event.Free
	case event.Splitting:
		return to == event.Deleted
	case event.Deleted:
		return to == event.Init
	}
	return false
}
