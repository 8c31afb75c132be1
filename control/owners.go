package control

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/topics"
)

// OwnershipEvent is what one message of the ownership topic did.
type OwnershipEvent struct {
	ownership.Outcome
	Data     *event.ServiceUnitStateData // the record itself; nil is a tombstone, or what could not be read
	ID       ownership.ID
	At       time.Time // by our clock
	Producer string
}

// owners is the fold of the ownership topic, fed by one goroutine and read by many.
type owners struct {
	logger *slog.Logger

	mu       sync.Mutex
	fold     *ownership.Fold
	watchers []func(OwnershipEvent)
}

func newOwners(logger *slog.Logger) *owners {
	return &owners{logger: logger, fold: ownership.NewFold()}
}

func (o *owners) apply(m topics.Message) {
	in := ownership.Message{Bundle: m.Key, ID: ownership.ID(m.ID), At: m.Received.UnixMilli()}
	var fault error
	if !m.Tombstone() {
		data, err := event.Decode[event.ServiceUnitStateData](m.Payload)
		if err == nil {
			in.Data = &data
		}
		fault = err
	}
	o.mu.Lock()
	var out ownership.Outcome
	if fault != nil {
		out = o.fold.Skip(in, fault)
	} else {
		out = o.fold.Apply(in)
	}
	watchers := slices.Clone(o.watchers)
	o.mu.Unlock()
	if fault != nil {
		o.logger.Warn("ownership record skipped", "bundle", m.Key, "id", m.ID.String(), "producer", m.Producer, "error", fault)
	}
	for _, f := range watchers {
		f(OwnershipEvent{Outcome: out, Data: in.Data, ID: in.ID, At: m.Received, Producer: m.Producer})
	}
}

// unreadable is how many records could not be used.
func (o *owners) unreadable() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	rules := o.fold.Rules()
	return rules[ownership.Unreadable] + rules[ownership.NoKey]
}

func (o *owners) watch(f func(OwnershipEvent)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.watchers = append(o.watchers, f)
}

func (o *owners) snapshot() *ownership.Snapshot {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.fold.Snapshot()
}

// owner is who owns a bundle. A bundle whose newest record cannot be read is not known to be anybody's.
func (o *owners) owner(bundle string) (Ownership, error) {
	s := o.snapshot()
	if why, bad := s.IsUnreadable(bundle); bad {
		return Ownership{}, fmt.Errorf("the newest ownership record of %s cannot be read: %s", bundle, why)
	}
	record, _ := s.Get(bundle)
	return owned(bundle, record), nil
}

// all is the owner of every bundle. One whose newest record cannot be read is nobody's, so that nothing is decided about it.
func (o *owners) all() []Ownership {
	s := o.snapshot()
	out := make([]Ownership, 0, s.Len())
	for bundle, record := range s.All() {
		if _, bad := s.IsUnreadable(bundle); bad {
			record = nil
		}
		out = append(out, owned(bundle, record))
	}
	return out
}

// owned is the owner by a record. While a bundle is released its source still counts, as it may come back to it.
func owned(bundle string, record *ownership.Record) Ownership {
	o := Ownership{Bundle: bundle, State: record.State(), Owner: record.Owner()}
	if o.State == event.Releasing {
		o.Owner = record.Data.SourceBroker
	}
	if o.State == event.Releasing || o.State == event.Assigning {
		o.To = record.Assigned()
	}
	return o
}

// take goes on with the fold of another that read the topic anew. Who watches is told nothing of what it read.
func (o *owners) take(other *owners) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fold = other.fold
}
