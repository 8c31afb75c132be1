package pulsar

import (
	"bytes"
	"compress/zlib"
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"math"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/backoff"
	cenkalti "github.com/cenkalti/backoff/v4"

	"github.com/ballast-lb/ballast/topics"
)

// pump reads from a reader or consumer of the library in a goroutine of its own, until closed. It notes when each message came: who
// receives may be busy for a long time meanwhile.
type pump struct {
	now    func() time.Time
	name   string
	out    chan record
	cancel context.CancelFunc
	done   chan struct{}
	taps   *taps
}

func (p *pump) messages() <-chan record { return p.out }
func (p *pump) subscription() string    { return p.name }

// newPump registers the tap of a subscription, before it is opened.
func newPump(taps *taps, t tap, now func() time.Time, waiting int) *pump {
	p := &pump{name: subscriptionName(), now: now, out: make(chan record, waiting), done: make(chan struct{}), taps: taps}
	taps.add(p.name, t)
	return p
}

// run starts to read. If the library ends by itself, the tap learns that it gave up.
func (p *pump) run(receive func(context.Context) (client.Message, error), t tap) {
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() {
		defer close(p.done)
		for {
			m, err := receive(ctx)
			if err != nil {
				if ctx.Err() == nil {
					t(signalGaveUp, 0, 0)
				}
				return
			}
			r := asRecord(m)
			r.received = p.now()
			select {
			case p.out <- r:
			case <-ctx.Done():
				return
			}
		}
	}()
}

// queues divides the messages that may wait in the client between the library and the pump, which takes them from there.
func (o Options) queues() (library, pumped int) {
	library = max(o.ReceiverQueue/2, 1)
	return library, o.ReceiverQueue - library
}

// stop ends the pump; shut closes what it reads from.
func (p *pump) stop(shut func()) {
	p.cancel()
	shut()
	<-p.done
	p.taps.remove(p.name)
}

func asRecord(m client.Message) record {
	id := m.ID()
	r := record{key: m.Key(), payload: m.Payload(), producer: m.ProducerName(), publish: m.PublishTime(),
		id: position{ledger: id.LedgerID(), entry: id.EntryID(), size: 1}}
	if id.BatchSize() > 1 {
		r.id.index, r.id.size = id.BatchIdx(), id.BatchSize()
	}
	if compressedNothing(r.payload) {
		r.payload = nil
	}
	return r
}

// compressedNothing recognizes an empty payload that a producer compressed. The library takes an uncompressed size of 0
// for "not compressed" and hands the compressed bytes out, so that a tombstone looks like a value. No event begins like this.
func compressedNothing(b []byte) bool {
	switch {
	case len(b) == 1: // LZ4 and Snappy
		return b[0] == 0
	case len(b) > 20:
		return false
	case bytes.HasPrefix(b, []byte{0x28, 0xb5, 0x2f, 0xfd}): // Zstandard's magic number
		return true
	}
	z, err := zlib.NewReader(bytes.NewReader(b))
	if err != nil {
		return false
	}
	n, err := io.Copy(io.Discard, z)
	return n == 0 && err == nil
}

// subscriptionName is a name that nobody else has: subscriptions here are never shared and never outlive their connection.
func subscriptionName() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return "ballast-" + hex.EncodeToString(b[:])
}

// libraryBackoff is how the library paces its own reconnecting.
type libraryBackoff struct{ *cenkalti.ExponentialBackOff }

func (b libraryBackoff) Next() time.Duration       { return b.NextBackOff() }
func (b libraryBackoff) IsMaxBackoffReached() bool { return b.GetElapsedTime() > b.MaxInterval }

func (l *Log) libraryBackoff() backoff.Policy {
	return libraryBackoff{newBackoff(l.options.MaxBackoff)}
}

// readerSource reads a persistent topic. A Reader is the only way of the library to begin after a given message.
type readerSource struct {
	*pump
	reader client.Reader
}

func (l *Log) openReader(n topics.Name, compacted bool, after position, t tap) (source, error) {
	queue, pumped := l.options.queues()
	p := newPump(l.taps, t, l.options.Now, pumped)
	r, err := l.client.CreateReader(client.ReaderOptions{
		Topic: n.String(), SubscriptionName: p.name, Name: p.name, StartMessageID: startID(after), ReadCompacted: compacted,
		ReceiverQueueSize: queue, BackoffPolicyFunc: l.libraryBackoff,
	})
	if err != nil {
		l.taps.remove(p.name)
		return nil, l.explain(err)
	}
	p.run(r.Next, t)
	return &readerSource{pump: p, reader: r}, nil
}

// startID is where a reader begins so that the first new message is the one after a position. A batch that is accounted
// for in part is read again as a whole.
func startID(after position) client.MessageID {
	if after.ledger < 0 {
		return client.EarliestMessageID()
	}
	if !after.complete() {
		after.entry--
	}
	return client.NewMessageID(after.ledger, after.entry, -1, 0)
}

func (s *readerSource) last() (position, error) {
	id, err := s.reader.GetLastMessageID()
	if err != nil {
		return position{}, err
	}
	return position{ledger: signed(id.LedgerID()), entry: signed(id.EntryID()), size: 1}, nil
}

// signed undoes the broker's way to say -1.
func signed(v int64) int64 {
	if v == math.MaxInt64 {
		return -1
	}
	return v
}

func (s *readerSource) close() {
	s.stop(s.reader.Close)
}

// consumerSource reads a non-persistent topic. It never acknowledges: with all ids 0:0, the library takes each message for
// a duplicate of one that was acknowledged and drops it, which is also why a Reader cannot be used.
type consumerSource struct {
	*pump
	consumer client.Consumer
}

// never is how often the library looks for new partitions of topics that have none.
const never = 24 * time.Hour

func (l *Log) openConsumer(n topics.Name, t tap) (source, error) {
	queue, pumped := l.options.queues()
	p := newPump(l.taps, t, l.options.Now, pumped)
	c, err := l.client.Subscribe(client.ConsumerOptions{
		Topic: n.String(), SubscriptionName: p.name, Name: p.name, Type: client.Exclusive, SubscriptionMode: client.NonDurable,
		SubscriptionInitialPosition: client.SubscriptionPositionLatest, ReceiverQueueSize: queue,
		AckGroupingOptions: &client.AckGroupingOptions{MaxSize: 1}, BackOffPolicyFunc: l.libraryBackoff, AutoDiscoveryPeriod: never,
	})
	if err != nil {
		l.taps.remove(p.name)
		return nil, l.explain(err)
	}
	p.run(c.Receive, t)
	return &consumerSource{pump: p, consumer: c}, nil
}

// last is never asked of a non-persistent topic.
func (s *consumerSource) last() (position, error) { return before, nil }

func (s *consumerSource) close() {
	s.stop(s.consumer.Close)
}
