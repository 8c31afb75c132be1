package topics

import "context"

// Event is one event to publish. An empty payload is a tombstone.
type Event struct {
	Key     string
	Payload []byte
}

// Several is a Publisher that can have many events on their way at once.
type Several interface {
	Publisher
	// PublishAll sends events in their order and waits until each is accepted or has failed. It returns an error, or nil, for
	// each event; after an error the event may have been accepted nevertheless, and so may those behind it.
	PublishAll(ctx context.Context, events []Event) []error
}

// PublishAll sends events by a publisher: together where it can, else one by one. See Several.
func PublishAll(ctx context.Context, p Publisher, events []Event) []error {
	if s, ok := p.(Several); ok && len(events) > 1 {
		return s.PublishAll(ctx, events)
	}
	errs := make([]error, len(events))
	for i, e := range events {
		_, errs[i] = p.Publish(ctx, e.Key, e.Payload)
	}
	return errs
}
