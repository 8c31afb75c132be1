package pulsar

import (
	"context"
	"errors"

	client "github.com/apache/pulsar-client-go/pulsar"

	"github.com/ballast-lb/ballast/topics"
)

var _ topics.Several = (*publisher)(nil)

// PublishAll sends events one behind the other without waiting in between; the library keeps their order. What it refuses
// because the producer was closed is sent again one by one, as Publish does.
func (p *publisher) PublishAll(ctx context.Context, events []topics.Event) []error {
	errs := make([]error, len(events))
	producer, err := p.ready()
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	type answer struct {
		i   int
		err error
	}
	answers := make(chan answer, len(events)) // an answer that comes too late has its place
	open := make(map[int]bool, len(events))
	for i, e := range events {
		open[i] = true
		msg := &client.ProducerMessage{Key: e.Key, Payload: e.Payload}
		if i == len(events)-1 { // Send alone lets a batch go at once, with those before it
			_, err := producer.Send(ctx, msg)
			answers <- answer{i, err}
			break
		}
		producer.SendAsync(ctx, msg, func(_ client.MessageID, _ *client.ProducerMessage, err error) { answers <- answer{i, err} })
	}
	for len(open) > 0 && ctx.Err() == nil {
		select {
		case a := <-answers:
			errs[a.i] = a.err
			delete(open, a.i)
		case <-ctx.Done():
		}
	}
	for i, e := range events {
		switch {
		case open[i]:
			errs[i] = ctx.Err()
		case errors.Is(errs[i], client.ErrProducerClosed) && p.own == nil:
			_, errs[i] = p.Publish(ctx, e.Key, e.Payload)
		case errs[i] != nil:
			errs[i] = p.failed(ctx, errs[i])
		}
	}
	return errs
}
