package pulsar

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/ballast-lb/ballast/topics"
)

// source is a reader or consumer of the client library.
type source interface {
	messages() <-chan record
	// last is the last message that the broker says there is; of a persistent topic only.
	last() (position, error)
	close()
}

// loop is what both kinds of subscription have in common: a source that is opened anew when it fails, and the machinery to
// do everything in the goroutine that calls Receive. At most one operation at a time (open a source, ask the admin
// interface) runs in a goroutine of its own, which ends with it or with Close.
type loop struct {
	health
	name    topics.Name
	options Options
	silence time.Duration
	logger  *slog.Logger
	work    *group // the log's: operations, and sources that are being closed

	opener func() func(tap) (source, error) // how to open a source that goes on where things stand
	opened func(time.Time)                  // called when one was opened again
	signal func(signal, int64, int64)       // further signals of the library, in its goroutines

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ops    chan func()
	kick   chan struct{}

	// Owned by the goroutine that calls Receive.
	busy    bool
	heard   time.Time // when something last came from the source, or it was opened
	openDue time.Time
	reopen  backoff.BackOff

	shared  sync.Mutex // guards what follows
	src     source
	sources int // how many were opened; only the newest one is listened to
	closed  bool
	gaveUp  bool
}

func newLoop(n topics.Name, o Options, work *group) *loop {
	l := &loop{name: n, options: o, logger: o.Logger.With("topic", n.String()), work: work,
		ops: make(chan func()), kick: make(chan struct{}, 1), reopen: newBackoff(o.MaxBackoff)}
	l.health.now = o.Now
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// newBackoff grows from 100 ms to longest and never gives up.
func newBackoff(longest time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(min(100*time.Millisecond, longest)),
		backoff.WithMaxInterval(longest), backoff.WithMaxElapsedTime(0))
}

// await runs a call of the client library, which knows no context. If ctx ends first, the late result is disposed of.
func await[T any](ctx context.Context, work *group, call func() (T, error), dispose func(T)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result)
	work.Go(func() {
		v, err := call()
		select {
		case done <- result{v, err}:
		case <-ctx.Done():
			if err == nil {
				dispose(v)
			}
		}
	})
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// first opens the first source.
func (l *loop) first(ctx context.Context) error {
	open, t := l.opener(), l.newTap()
	src, err := await(ctx, l.work, func() (source, error) { return open(t) }, source.close)
	if err != nil {
		return err
	}
	l.src = src
	l.heard = time.Now()
	l.connected(false)
	return nil
}

// newTap listens to a source until the next one is opened.
func (l *loop) newTap() tap {
	l.shared.Lock()
	defer l.shared.Unlock()
	l.sources++
	source := l.sources
	return func(sig signal, ledger, entry int64) {
		l.shared.Lock()
		newest := l.sources == source && !l.closed
		if newest && sig == signalGaveUp {
			l.gaveUp = true
		}
		l.shared.Unlock()
		if !newest {
			return
		}
		switch sig {
		case signalClosed:
			l.logger.Info("connection lost")
			l.disconnected("the connection was lost", time.Time{})
		case signalReconnected:
			l.connected(true)
			l.logger.Info("connected again", "blind", l.Status().Blind)
		case signalDiscarded:
			l.signal(sig, ledger, entry)
		}
		select {
		case l.kick <- struct{}{}:
		default:
		}
	}
}

// start runs an operation beside Receive. What do returns is run by Receive; dispose if that never happens.
func (l *loop) start(do func(ctx context.Context) (apply, dispose func())) {
	l.busy = true
	l.work.Go(func() {
		apply, dispose := do(l.ctx)
		select {
		case l.ops <- apply:
		case <-l.ctx.Done():
			if dispose != nil {
				dispose()
			}
		}
	})
}

// openSource opens a source again.
func (l *loop) openSource() {
	open, t := l.opener(), l.newTap()
	l.start(func(context.Context) (apply, dispose func()) {
		src, err := open(t)
		if err != nil {
			return func() {
				l.trouble(err)
				l.openDue = time.Now().Add(l.reopen.NextBackOff())
			}, nil
		}
		return func() { l.adopt(src) }, src.close
	})
}

func (l *loop) adopt(src source) {
	l.shared.Lock()
	if l.closed {
		l.shared.Unlock()
		l.work.Go(src.close)
		return
	}
	l.src = src
	l.shared.Unlock()
	l.reopen.Reset()
	l.heard = time.Now()
	l.connected(true)
	l.logger.Info("subscribed again", "blind", l.Status().Blind)
	l.opened(l.heard)
}

// resubscribe gives up the present source for a new one that goes on where things stand. since is when it stopped
// working, zero if that is now.
func (l *loop) resubscribe(why string, since time.Time) {
	l.shared.Lock()
	src := l.src
	l.src = nil
	l.shared.Unlock()
	if src == nil {
		return
	}
	l.logger.Info("subscribing again", "reason", why)
	l.disconnected(why, since)
	l.work.Go(src.close)
	l.openDue = time.Now()
}

// hasGivenUp says whether the library will never reconnect, once.
func (l *loop) hasGivenUp() bool {
	l.shared.Lock()
	defer l.shared.Unlock()
	gaveUp := l.gaveUp
	l.gaveUp = false
	return gaveUp
}

// task is something to do at a time.
type task struct {
	due time.Time
	run func()
}

// upkeep is what there is to do for the source, the most urgent first.
func (l *loop) upkeep() []task {
	switch {
	case l.src == nil:
		return []task{{l.openDue, l.openSource}}
	case l.silence > 0:
		return []task{{l.heard.Add(l.silence), func() { l.resubscribe("silence", time.Time{}) }}}
	}
	return nil
}

// perform does the most urgent thing that is due, if there is one. While an operation runs there is nothing to do but to
// wait for it.
func (l *loop) perform(tasks []task) bool {
	if l.busy {
		return false
	}
	now := time.Now()
	for _, t := range tasks {
		if !now.Before(t.due) {
			t.run()
			return true
		}
	}
	return false
}

// wait sleeps until a message comes, which it returns, or something is to be done.
func (l *loop) wait(ctx context.Context, incoming <-chan record, tasks []task) (record, bool, error) {
	due := time.Now().Add(time.Hour)
	for _, t := range tasks {
		if !l.busy && t.due.Before(due) {
			due = t.due
		}
	}
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case r := <-incoming:
		return r, true, nil
	case apply := <-l.ops:
		l.busy = false
		apply()
	case <-l.kick:
	case <-timer.C:
	case <-ctx.Done():
		return record{}, false, ctx.Err()
	case <-l.ctx.Done():
		return record{}, false, topics.ErrClosed
	}
	return record{}, false, nil
}

// message is a record as it is handed out.
func (l *loop) message(r record, recovered bool) topics.Message {
	m := topics.Message{Topic: l.name.String(), Key: r.key, Payload: r.payload, PublishTime: r.publish,
		Received: or(r.received, l.options.Now()), Producer: r.producer, Recovered: recovered}
	if l.name.Persistent {
		m.ID = r.id.id()
	}
	return m
}

// tooLarge says whether a message has to be left out, and counts it.
func (l *loop) tooLarge(r record) bool {
	if len(r.payload) <= l.options.MaxPayload {
		return false
	}
	l.logger.Warn("message left out: too large", "key", r.key, "bytes", len(r.payload), "limit", l.options.MaxPayload)
	l.change(func(st *topics.Status) { st.Skipped++ })
	return true
}

// Close ends the subscription. The source is closed in the background, since the broker may not answer.
func (l *loop) Close() error {
	l.cancel()
	l.shared.Lock()
	defer l.shared.Unlock()
	if !l.closed {
		l.closed = true
		if l.src != nil {
			l.work.Go(l.src.close)
		}
	}
	return nil
}
