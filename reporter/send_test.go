package reporter_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/topics"
)

// TestAFailedSendHurtsNobodyElse: while one event fails, others are on their way through the same publisher. They arrive, and
// the publisher is closed once the last is through; the next event goes through a new one.
func TestAFailedSendHurtsNobodyElse(t *testing.T) {
	var log *slowLog
	w := newWorld(t, newFake(a, b, c), func(o *reporter.Options) {
		o.Concurrent = 0
		log = &slowLog{Log: o.Log, failed: make(chan struct{})}
		o.Log = log
	})
	round, err := w.Poll(t.Context(), w.Now())
	if err == nil {
		t.Fatal("nothing failed")
	}
	w.onTopics(t, "abc", "abc", "ac", "")
	if len(round.Published) != 8 {
		t.Errorf("%d of 8 events were published: %v", len(round.Published), err)
	}
	if made, closed := log.counts(); made != 1 || closed != 1 {
		t.Errorf("%d publishers were made, %d closed", made, closed)
	}
	w.poll(t)
	w.onTopics(t, "abc", "abc", "abc", "")
	if made, _ := log.counts(); made != 2 {
		t.Errorf("%d publishers were made in the end", made)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if made, closed := log.counts(); made != 2 || closed != 2 {
		t.Errorf("%d publishers were made, %d closed in the end", made, closed)
	}
}

// slowLog fails the first report of b when those of a and c are on their way, and lets these go on after that.
type slowLog struct {
	topics.Log
	failed chan struct{}

	mu           sync.Mutex
	made, closed int
	waiting      int
}

func (l *slowLog) counts() (made, closed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made, l.closed
}

func (l *slowLog) Publisher(ctx context.Context, topic string, o topics.PublishOptions) (topics.Publisher, error) {
	pub, err := l.Log.Publisher(ctx, topic, o)
	if err != nil || topic != topics.LocalBrokerData {
		return pub, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.made++
	return &slowPublisher{Publisher: pub, log: l, ended: make(chan struct{})}, nil
}

type slowPublisher struct {
	topics.Publisher
	log   *slowLog
	ended chan struct{}
}

func (p *slowPublisher) Publish(ctx context.Context, key string, payload []byte) (topics.MessageID, error) {
	l := p.log
	select {
	case <-l.failed: // all that follows goes through
		return p.Publisher.Publish(ctx, key, payload)
	default:
	}
	if key == b {
		for {
			l.mu.Lock()
			all := l.waiting == 2
			l.mu.Unlock()
			if all {
				break
			}
			time.Sleep(time.Millisecond)
		}
		// The others are let go only when this error has been dealt with.
		time.AfterFunc(50*time.Millisecond, func() { close(l.failed) })
		return topics.MessageID{}, errDown
	}
	l.mu.Lock()
	l.waiting++
	l.mu.Unlock()
	select {
	case <-l.failed:
		return p.Publisher.Publish(ctx, key, payload)
	case <-p.ended:
		return topics.MessageID{}, topics.ErrClosed
	case <-ctx.Done():
		return topics.MessageID{}, ctx.Err()
	}
}

func (p *slowPublisher) Close() error {
	p.log.mu.Lock()
	if p.log.closed++; p.log.closed <= p.log.made {
		close(p.ended)
	}
	p.log.mu.Unlock()
	return p.Publisher.Close()
}
