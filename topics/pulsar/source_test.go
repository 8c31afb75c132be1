package pulsar

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"

	"github.com/ballast-lb/ballast/topics"
)

// arrived is a message of the client library.
type arrived struct {
	client.Message
	key string
}

func (m arrived) Key() string            { return m.key }
func (m arrived) Payload() []byte        { return []byte("x") }
func (m arrived) ProducerName() string   { return "p" }
func (m arrived) PublishTime() time.Time { return time.UnixMilli(1) }
func (m arrived) ID() client.MessageID   { return client.NewMessageID(1, 1, -1, 0) }

// A message has the time when it came, however long it waited until somebody took it: the age of a command counts from then.
func TestMessagesHaveTheTimeWhenTheyCame(t *testing.T) {
	var clock atomic.Int64
	now := func() time.Time { return time.UnixMilli(clock.Load()) }
	for _, queue := range []int{1, 2, 7} {
		o := Options{ReceiverQueue: queue}
		library, pumped := o.queues()
		if library < 1 || library+pumped != queue {
			t.Errorf("of a queue of %d, %d wait in the library and %d here", queue, library, pumped)
		}
	}
	clock.Store(1000)
	p := newPump(newTaps(), func(signal, int64, int64) {}, now, 4)
	incoming, asked := make(chan string), make(chan bool, 10)
	p.run(func(ctx context.Context) (client.Message, error) {
		asked <- true
		select {
		case key := <-incoming:
			return arrived{key: key}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, func(signal, int64, int64) {})
	defer p.stop(func() {})
	keys := []string{"a", "b", "c"}
	<-asked
	for _, key := range keys {
		incoming <- key
		<-asked // it was taken
	}
	clock.Store(60_000)
	l := &loop{name: topics.Name{}, options: Options{Now: now}}
	for _, key := range keys {
		m := l.message(<-p.messages(), false)
		if m.Key != key || m.Received != time.UnixMilli(1000) {
			t.Errorf("%s was received at %d ms, want %s at 1000", m.Key, m.Received.UnixMilli(), key)
		}
	}
	if m := l.message(record{key: "fetched"}, true); m.Received != now() {
		t.Errorf("what was fetched was received at %v", m.Received)
	}
}
