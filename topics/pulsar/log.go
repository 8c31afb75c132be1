package pulsar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/auth"

	"github.com/ballast-lb/ballast/topics"
)

// Log is the event log on a Pulsar cluster. Every subscription and publisher that it made ends with it.
type Log struct {
	options  Options
	provider auth.Provider
	client   client.Client
	admin    *admin
	taps     *taps
	logger   *slog.Logger
	work     group
	hangUp   func()          // closes idle connections to the admin interface
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc

	mu      sync.Mutex
	closed  bool
	closers map[closer]struct{}
}

type closer interface{ Close() error }

var _ topics.Log = (*Log)(nil)

// Open makes a log. It does not connect yet: what cannot be reached is reported by Subscribe and Publisher.
func Open(o Options) (*Log, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("pulsar log: %w", err)
	}
	o = o.withDefaults()
	l := &Log{options: o, taps: newTaps(), logger: o.Logger, hangUp: func() {}, closers: map[closer]struct{}{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	var err error
	if l.provider, err = o.Auth.Provider(); err != nil {
		return nil, fmt.Errorf("pulsar log: %w", err)
	}
	web := o.AdminClient
	if web == nil {
		if web, l.hangUp, err = o.adminClient(l.provider); err != nil {
			return nil, fmt.Errorf("pulsar log: %w", err)
		}
	}
	l.admin = newAdmin(o.AdminURL, web, o.OperationTimeout)
	if l.client, err = l.newClient(); err != nil {
		return nil, fmt.Errorf("pulsar log: %w", err)
	}
	return l, nil
}

func (l *Log) newClient() (client.Client, error) {
	return client.NewClient(l.options.clientOptions(l.provider, newClientLogger(l.logger, l.taps)))
}

// clientError is an error of the library in one line, with the reason why it could not connect.
type clientError struct {
	err  error
	text string
}

func (e *clientError) Error() string { return e.text }
func (e *clientError) Unwrap() error { return e.err }

// explain makes an error of the library readable: it joins several with line ends, and says only in its log why it could
// not connect.
func (l *Log) explain(err error) error {
	e := &clientError{err: err, text: strings.ReplaceAll(err.Error(), "\n", ": ")}
	if reason := l.taps.takeReason(); reason != "" {
		e.text = fmt.Sprintf("%s: %s (%s)", l.options.ServiceURL, reason, e.text)
	}
	return e
}

// adopt remembers what has to be closed with the log; if the log is closed already, it closes it.
func (l *Log) adopt(c closer) error {
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.closers[c] = struct{}{}
	}
	l.mu.Unlock()
	if closed {
		return errors.Join(topics.ErrClosed, c.Close())
	}
	return nil
}

func (l *Log) release(c closer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.closers, c)
}

// within is ctx that also ends with the log. done releases it and turns an error into ErrClosed when that is why.
func (l *Log) within(ctx context.Context) (bound context.Context, done func(error) error) {
	bound, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, cancel)
	return bound, func(err error) error {
		stop()
		cancel()
		if err != nil && l.ctx.Err() != nil {
			return topics.ErrClosed
		}
		return err
	}
}

// owned is a subscription that its log forgets when it is closed.
type owned struct {
	topics.Subscription
	log *Log
}

func (o *owned) Close() error {
	o.log.release(o)
	return o.Subscription.Close()
}

// Subscribe starts to read a topic. It fails when the topic cannot be read now; from then on the subscription survives
// whatever happens to brokers, connections and bundles.
func (l *Log) Subscribe(ctx context.Context, topic string, o topics.SubscribeOptions) (topics.Subscription, error) {
	n, err := topics.ParseName(topic)
	if err != nil {
		return nil, err
	}
	ctx, done := l.within(ctx)
	s, err := l.subscribe(ctx, n, o)
	return s, done(err)
}

func (l *Log) subscribe(ctx context.Context, n topics.Name, o topics.SubscribeOptions) (topics.Subscription, error) {
	err := ctx.Err()
	if err != nil {
		return nil, err
	}
	common := newLoop(n, l.options, &l.work)
	var sub topics.Subscription
	if n.Persistent {
		s := &persistent{loop: common, admin: l.admin}
		sub, err = s, s.subscribe(ctx, o, func(after position, t tap) (source, error) {
			return l.openReader(n, o.Compacted, after, t)
		})
	} else {
		s := &volatile{loop: common, consumers: l.admin.consumers, exists: l.admin.exists}
		sub, err = s, s.subscribe(ctx, o, func(t tap) (source, error) { return l.openConsumer(n, t) })
	}
	if err != nil {
		return nil, errors.Join(err, sub.Close())
	}
	s := &owned{Subscription: sub, log: l}
	if err := l.adopt(s); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends all subscriptions and publishers and waits until their goroutines have ended.
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	closers := l.closers
	l.closers = map[closer]struct{}{}
	l.mu.Unlock()
	l.cancel()
	var errs []error
	for c := range closers {
		errs = append(errs, c.Close())
	}
	l.work.Wait()
	l.client.Close()
	l.hangUp()
	if l.provider != nil {
		errs = append(errs, l.provider.Close())
	}
	return errors.Join(errs...)
}
