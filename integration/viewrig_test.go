//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	clientlog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/integration/harness"
)

// follow runs Ballast's views of a cluster in this process.
func follow(t *testing.T, c *harness.Cluster) *control.Views {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	rest, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	views := control.NewViews(control.ViewOptions{Cluster: rest, Log: connect(t, c), Logger: quiet})
	if err := views.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- views.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("following the topics ended: %v", err)
		}
		if err := errors.Join(views.Close(), rest.Close()); err != nil {
			t.Error(err)
		}
	})
	return views
}

// published is an event as Pulsar's own client library delivered it.
type published struct {
	topic, key, payload string
	at                  time.Time
}

// listener is the independent count: consumers that never acknowledge, since the library drops what has the id of something
// acknowledged, and every message of a non-persistent topic has the same.
type listener struct {
	mu     sync.Mutex
	events []published
}

func listen(t *testing.T, c *harness.Cluster) *listener {
	t.Helper()
	cl, err := client.NewClient(client.ClientOptions{URL: c.ServiceURL(), Logger: clientlog.NewLoggerWithSlog(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &listener{}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		cl.Close()
	})
	for _, topic := range systemTopics {
		consumer, err := cl.Subscribe(client.ConsumerOptions{Topic: topic, SubscriptionName: "independent-count", Type: client.Exclusive,
			SubscriptionMode: client.NonDurable, SubscriptionInitialPosition: client.SubscriptionPositionEarliest})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer consumer.Close()
			for {
				m, err := consumer.Receive(ctx)
				if err != nil {
					return
				}
				l.mu.Lock()
				l.events = append(l.events, published{topic, m.Key(), string(m.Payload()), m.PublishTime()})
				l.mu.Unlock()
			}
		})
	}
	return l
}

func (l *listener) all() []published {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// latest are the newest payloads of a topic by key.
func (l *listener) latest(topic string) map[string]string {
	out := map[string]string{}
	for _, e := range l.all() {
		if e.topic == topic && e.payload != "" {
			out[e.key] = e.payload
		}
	}
	return out
}

// between counts what was published in a span of time, tombstones left out: the library drops them before anybody sees them.
func (l *listener) between(from, to time.Time) map[string]int {
	out := map[string]int{}
	for _, e := range l.all() {
		if e.payload != "" && e.at.After(from) && e.at.Before(to) {
			out[fmt.Sprintf("%s %s %s %s", e.topic, e.key, e.at.UTC().Format("15:04:05.000"), compact(e.payload))]++
		}
	}
	return out
}

func compact(payload string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(payload)); err != nil {
		return payload
	}
	return b.String()
}

// printedEvent is a line of `ballast tail`.
type printedEvent struct {
	Topic, Key, ID, Error string
	Published             time.Time
	Tombstone, Recovered  bool
	Value                 json.RawMessage
}

// events are the lines that tail has printed so far. The last one may not be whole yet.
func events(t *testing.T, p *program) []printedEvent {
	t.Helper()
	stdout, _ := p.text()
	var out []printedEvent
	for line := range strings.Lines(stdout) {
		if !strings.HasSuffix(line, "\n") {
			break
		}
		var e printedEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("tail printed %q: %v", line, err)
		}
		if e.Error != "" {
			t.Errorf("tail could not decode an event of %s on %s: %s", e.Key, e.Topic, e.Error)
		}
		out = append(out, e)
	}
	return out
}

func between(all []printedEvent, from, to time.Time) map[string]int {
	out := map[string]int{}
	for _, e := range all {
		if !e.Tombstone && e.Published.After(from) && e.Published.Before(to) {
			out[fmt.Sprintf("%s %s %s %s", e.Topic, e.Key, e.Published.UTC().Format("15:04:05.000"), compact(string(e.Value)))]++
		}
	}
	return out
}

// sameEvents compares what was heard with what was printed, and gives how many events of how many keys there were.
func sameEvents(t *testing.T, heard, printed map[string]int) (n int) {
	t.Helper()
	if diff := cmp.Diff(heard, printed); diff != "" {
		t.Errorf("events (-published +printed):\n%s", diff)
	}
	perTopic := map[string]int{}
	for what, times := range heard {
		n += times
		topic, _, _ := strings.Cut(what, " ")
		perTopic[topic] += times
	}
	for _, topic := range systemTopics {
		if perTopic[topic] == 0 {
			t.Errorf("no event of %s was heard: nothing was compared", topic)
		}
	}
	return n
}
