package pulsar

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"

	"github.com/ballast-lb/ballast/topics"
)

// publisher writes to one topic. Every event goes out at once as a batch of one: unlike a message outside a batch, a
// tombstone in a batch is not discarded by readers that use the same client library.
type publisher struct {
	log     *Log
	name    topics.Name
	options client.ProducerOptions
	own     client.Client // an exclusive publisher's connection; nil = the log's

	mu       sync.Mutex
	producer client.Producer
	fenced   bool
	closed   bool
}

// Publisher makes a publisher. The topic's schema is compared first: see topics.ErrSchemaMismatch.
func (l *Log) Publisher(ctx context.Context, topic string, o topics.PublishOptions) (topics.Publisher, error) {
	n, err := topics.ParseName(topic)
	if err != nil {
		return nil, err
	}
	ctx, done := l.within(ctx)
	p, err := l.publisher(ctx, n, o)
	return p, done(err)
}

func (l *Log) publisher(ctx context.Context, n topics.Name, o topics.PublishOptions) (topics.Publisher, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	schema, err := declare(ctx, n, o, l.admin.schema)
	if err != nil {
		return nil, err
	}
	p := &publisher{log: l, name: n, options: client.ProducerOptions{
		Topic: n.String(), SendTimeout: or(o.SendTimeout, l.options.SendTimeout), Schema: schema, DisableMultiSchema: true,
		BatchingMaxMessages: 1, BatchingMaxPublishDelay: never, BackOffPolicyFunc: l.libraryBackoff, PartitionsAutoDiscoveryInterval: never,
		Properties: map[string]string{"application": "ballast"}, // the topic's statistics tell them: our own writers are known by it
	}}
	if o.Exclusive {
		// A connection of its own: closing it is the only way out of waiting for one's turn, and it gives the topic up at
		// once when the broker does not answer.
		if p.own, err = l.newClient(); err != nil {
			return nil, err
		}
		p.options.ProducerAccessMode = client.ProducerAccessModeExclusive
		if o.Wait {
			p.options.ProducerAccessMode = client.ProducerAccessModeWaitForExclusive
		}
	}
	if p.producer, err = p.create(ctx); err != nil {
		p.hangUp()
		return nil, p.explain(err)
	}
	if err := l.adopt(p); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *publisher) client() client.Client {
	if p.own != nil {
		return p.own
	}
	return p.log.client
}

func (p *publisher) create(ctx context.Context) (client.Producer, error) {
	return await(ctx, &p.log.work, func() (client.Producer, error) {
		return p.client().CreateProducer(p.options)
	}, client.Producer.Close)
}

// hangUp closes an exclusive publisher's connection.
func (p *publisher) hangUp() {
	if p.own != nil {
		p.log.work.Go(p.own.Close)
	}
}

// fencedWords are how the broker says that an exclusive publisher is in the way; the library passes them on as text.
var fencedWords = []string{"ProducerFenced", "ProducerBusy"}

// explain turns the library's errors into those of the log.
func (p *publisher) explain(err error) error {
	if errors.Is(err, client.ErrProducerFenced) {
		return fmt.Errorf("publish to %s: %w: %w", p.name, topics.ErrFenced, err)
	}
	for _, word := range fencedWords {
		if strings.Contains(err.Error(), word) {
			return fmt.Errorf("publish to %s: %w: %w", p.name, topics.ErrFenced, err)
		}
	}
	return fmt.Errorf("publish to %s: %w", p.name, p.log.explain(err))
}

// Publish sends one event and waits until it is accepted. After an error, also after ctx.Err(), the event may have been
// accepted nevertheless. A broker that took the topic away from an exclusive publisher does not say so: the first error of
// any kind means that the exclusiveness can no longer be relied on.
func (p *publisher) Publish(ctx context.Context, key string, payload []byte) (topics.MessageID, error) {
	producer, err := p.ready()
	if err != nil {
		return topics.MessageID{}, err
	}
	msg := client.ProducerMessage{Key: key, Payload: payload}
	id, err := producer.Send(ctx, &msg)
	if errors.Is(err, client.ErrProducerClosed) && p.own == nil {
		// The library closes a producer whose topic was deleted. An exclusive one is not made again: that is a new turn.
		if producer, err = p.replace(ctx, producer); err == nil {
			id, err = producer.Send(ctx, &msg)
		}
	}
	if err != nil {
		return topics.MessageID{}, p.failed(ctx, err)
	}
	return p.id(id), nil
}

// failed is the error of a send that failed with one of the library's. A publisher that was fenced stays so.
func (p *publisher) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if _, closed := p.ready(); closed != nil {
		return closed
	}
	err = p.explain(err)
	if errors.Is(err, topics.ErrFenced) {
		p.mu.Lock()
		p.fenced = true
		p.mu.Unlock()
	}
	return err
}

// ready is the producer, unless the publisher is closed or fenced.
func (p *publisher) ready() (client.Producer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return nil, topics.ErrClosed
	case p.fenced:
		return nil, fmt.Errorf("publish to %s: %w", p.name, topics.ErrFenced)
	}
	return p.producer, nil
}

// replace makes a producer instead of one that the library closed.
func (p *publisher) replace(ctx context.Context, old client.Producer) (client.Producer, error) {
	if now, err := p.ready(); err != nil || now != old {
		return now, err
	}
	producer, err := p.create(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	if p.closed || p.producer != old {
		p.mu.Unlock()
		producer.Close()
		return p.ready()
	}
	p.producer = producer
	p.mu.Unlock()
	return producer, nil
}

func (p *publisher) id(id client.MessageID) topics.MessageID {
	if !p.name.Persistent {
		return topics.MessageID{}
	}
	return position{ledger: id.LedgerID(), entry: id.EntryID(), size: 1}.id()
}

// closeWait bounds how long Close waits for a broker to confirm; after it, closing goes on in the background.
const closeWait = 2 * time.Second

// Close gives the topic up.
func (p *publisher) Close() error {
	p.mu.Lock()
	producer, closed := p.producer, p.closed
	p.closed = true
	p.mu.Unlock()
	if closed {
		return nil
	}
	p.log.release(p)
	done := make(chan struct{})
	p.log.work.Go(func() {
		producer.Close()
		close(done)
		p.linger()
	})
	timer := time.NewTimer(closeWait)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	return nil
}

// linger ends the connections of an exclusive publisher that was closed, when nothing can be under way on them any more. A producer
// that is closed while the library connects it again comes up all the same (pulsar-client-go v0.19.0: grabCnx in
// reconnectToBroker), on a connection that is new: ended too early, that one would live on and hold the topic against
// everybody, this process included. Who was connected has given the topic up by now.
func (p *publisher) linger() {
	if p.own == nil {
		return
	}
	o := p.log.options
	timer := time.NewTimer(2*o.OperationTimeout + o.ConnectTimeout) // a look-up, a connection, the creation
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.log.ctx.Done():
	}
	p.own.Close()
}
