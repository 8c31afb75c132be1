package traffic

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/cenkalti/backoff/v4"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// Options of a run. The zero value will do.
type Options struct {
	Size  int           // bytes of a message's payload; 0 = 512
	Drain time.Duration // how long Stop waits for messages that are still missing; 0 = 1 minute
	Log   *slog.Logger  // the client library's log; nil = none
}

// headerSize is the sequence number at the beginning of a payload.
const headerSize = 8

// Run is a load that is on.
type Run struct {
	options   Options
	producing pulsar.Client
	consuming pulsar.Client
	flows     []*flow
	begun     time.Time
	factor    atomic.Uint64 // per mille of the layout's rates

	stopProducing context.CancelFunc
	producers     sync.WaitGroup
	stopConsuming context.CancelFunc
	consumers     sync.WaitGroup
}

// flow is one topic's traffic.
type flow struct {
	topic    Topic
	producer pulsar.Producer
	consumer pulsar.Consumer
	first    time.Time // when the first message is due

	mu    sync.Mutex
	tally *tally
}

// Start puts the layout's load on the cluster at the URL. It returns when all consumers have subscribed and all producers
// are there. Stop has to be called; it is, without a report, when the test ends otherwise.
func Start(t testing.TB, url string, layout Layout, options Options) *Run {
	t.Helper()
	r, err := start(url, layout, options)
	if err != nil {
		t.Fatalf("starting traffic: %v", err)
	}
	t.Cleanup(r.close)
	return r
}

func start(url string, layout Layout, options Options) (_ *Run, err error) {
	if options.Size == 0 {
		options.Size = 512
	}
	options.Size = max(options.Size, headerSize)
	if options.Drain == 0 {
		options.Drain = time.Minute
	}
	r := &Run{options: options, stopProducing: func() {}, stopConsuming: func() {}}
	r.factor.Store(1000)
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	// Producers and consumers do not share connections, so that one cannot hold the other up.
	if r.producing, err = newClient(url, options.Log); err != nil {
		return nil, err
	}
	if r.consuming, err = newClient(url, options.Log); err != nil {
		return nil, err
	}
	for _, topic := range layout {
		r.flows = append(r.flows, &flow{topic: topic})
	}
	var group errgroup.Group
	group.SetLimit(8)
	for _, f := range r.flows {
		group.Go(func() error { return f.open(r) })
	}
	if err = group.Wait(); err != nil {
		return nil, err
	}
	// Independent of the test's context, which ends before its clean-up does.
	produceCtx, stopProducing := context.WithCancel(context.Background())
	consumeCtx, stopConsuming := context.WithCancel(context.Background())
	r.stopProducing, r.stopConsuming = stopProducing, stopConsuming
	r.begun = time.Now()
	for i, f := range r.flows {
		f.first = r.begun
		if f.topic.Rate > 0 { // not all at once
			f.first = r.begun.Add(time.Duration(float64(i) / float64(len(r.flows)) * float64(time.Second) / f.topic.Rate))
		}
		f.tally = newTally(f.topic, f.first)
		r.consumers.Go(func() { f.consume(consumeCtx) })
		r.producers.Go(func() { r.produce(produceCtx, f) })
	}
	return r, nil
}

func newClient(url string, logger *slog.Logger) (pulsar.Client, error) {
	options := pulsar.ClientOptions{
		URL:               url,
		ConnectionTimeout: 5 * time.Second,
		OperationTimeout:  30 * time.Second,
		KeepAliveInterval: 5 * time.Second, // a broker that is frozen or cut off is noticed in 10 s
		Logger:            log.DefaultNopLogger(),
		MetricsRegisterer: prometheus.NewRegistry(),
	}
	if logger != nil {
		options.Logger = log.NewLoggerWithSlog(logger)
	}
	client, err := pulsar.NewClient(options)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", url, err)
	}
	return client, nil
}

// open subscribes and makes the producer. A topic that is being loaded, or whose bundle is on its way, is tried again for a while.
func (f *flow) open(r *Run) error {
	topic := f.topic.Name
	patience := func() backoff.BackOff {
		return backoff.NewExponentialBackOff(backoff.WithInitialInterval(200*time.Millisecond), backoff.WithMaxInterval(2*time.Second), backoff.WithMaxElapsedTime(time.Minute))
	}
	err := backoff.Retry(func() (err error) {
		f.consumer, err = r.consuming.Subscribe(pulsar.ConsumerOptions{
			Topic: topic, SubscriptionName: "traffic", Type: pulsar.Exclusive,
			SubscriptionInitialPosition: pulsar.SubscriptionPositionEarliest,
		})
		return err
	}, patience())
	if err != nil {
		return fmt.Errorf("subscribing to %s: %w", topic, err)
	}
	err = backoff.Retry(func() (err error) {
		f.producer, err = r.producing.CreateProducer(pulsar.ProducerOptions{Topic: topic, SendTimeout: -1, DisableBatching: true})
		return err
	}, patience())
	if err != nil {
		return fmt.Errorf("creating a producer on %s: %w", topic, err)
	}
	return nil
}

// produce sends at the topic's rate. What could not be sent in time is not made up for later.
func (r *Run) produce(ctx context.Context, f *flow) {
	if f.topic.Rate <= 0 {
		return
	}
	next := f.first
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for seq := int64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		factor := float64(r.factor.Load()) / 1000
		if factor > 0 {
			f.send(ctx, seq, r.options.Size)
			seq++
		}
		interval := time.Second
		if factor > 0 {
			interval = time.Duration(float64(time.Second) / (f.topic.Rate * factor))
		}
		if next = next.Add(interval); next.Before(time.Now()) {
			next = time.Now()
		}
		timer.Reset(time.Until(next))
	}
}

// send hands a message to the client, which keeps trying until the broker has it.
func (f *flow) send(ctx context.Context, seq int64, size int) {
	payload := make([]byte, size)
	binary.BigEndian.PutUint64(payload, uint64(seq))
	f.mu.Lock()
	f.tally.sent = seq + 1
	f.mu.Unlock()
	begun := time.Now()
	f.producer.SendAsync(ctx, &pulsar.ProducerMessage{Payload: payload}, func(_ pulsar.MessageID, _ *pulsar.ProducerMessage, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if errors.Is(err, context.Canceled) {
			// Stopped while the queue was full: the message never went to the client.
			f.tally.sent--
			return
		}
		f.tally.ack(seq, time.Since(begun), err)
	})
}

func (f *flow) consume(ctx context.Context) {
	for {
		m, err := f.consumer.Receive(ctx)
		if err != nil {
			return // stopped
		}
		if len(m.Payload()) >= headerSize {
			f.mu.Lock()
			f.tally.receive(int64(binary.BigEndian.Uint64(m.Payload())), time.Now())
			f.mu.Unlock()
		}
		f.consumer.Ack(m) //nolint:errcheck // a message that stays unacknowledged comes again and counts as a duplicate
	}
}

// AwaitFlow waits until a message has arrived on every topic that has a rate.
func (r *Run) AwaitFlow(t testing.TB) {
	t.Helper()
	limit := time.After(2 * time.Minute)
	for {
		var still []string
		for _, topic := range r.Report().Topics {
			if topic.Received == 0 && topic.Topic.Rate > 0 {
				still = append(still, topic.Topic.Name)
			}
		}
		if len(still) == 0 {
			return
		}
		select {
		case <-limit:
			t.Fatalf("after 2 minutes no message has arrived on %v", still)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// SetLoad makes all topics send at a multiple of the layout's rates from now on; 0 stops them.
func (r *Run) SetLoad(factor float64) { r.factor.Store(uint64(factor * 1000)) }

// Report is how things stand. What is on its way counts as missing.
func (r *Run) Report() Report {
	report := Report{Duration: time.Since(r.begun)}
	for _, f := range r.flows {
		f.mu.Lock()
		report.Topics = append(report.Topics, f.tally.report())
		f.mu.Unlock()
	}
	return report
}

// Stop ends the load, waits until everything that was acknowledged has arrived or the drain time is over, and reports.
func (r *Run) Stop(t testing.TB) Report {
	t.Helper()
	r.stopProducing()
	r.producers.Wait()
	duration := time.Since(r.begun)
	ctx, cancel := context.WithTimeout(t.Context(), r.options.Drain)
	defer cancel()
	var flushes sync.WaitGroup
	for _, f := range r.flows {
		flushes.Go(func() {
			if err := f.producer.FlushWithCtx(ctx); err != nil {
				f.mu.Lock()
				f.tally.fail(fmt.Errorf("flushing: %w", err))
				f.mu.Unlock()
			}
		})
	}
	flushes.Wait()
	for ctx.Err() == nil && !r.complete() {
		time.Sleep(20 * time.Millisecond)
	}
	report := r.Report()
	report.Duration = duration
	r.close()
	return report
}

func (r *Run) complete() bool {
	for _, f := range r.flows {
		f.mu.Lock()
		missing := f.tally.missing()
		f.mu.Unlock()
		if len(missing) > 0 {
			return false
		}
	}
	return true
}

// close ends everything; it may be called again.
func (r *Run) close() {
	r.stopProducing()
	r.producers.Wait()
	r.stopConsuming()
	r.consumers.Wait()
	for _, client := range []pulsar.Client{r.producing, r.consuming} {
		if client != nil {
			client.Close()
		}
	}
	r.producing, r.consuming = nil, nil
}
