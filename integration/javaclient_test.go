//go:build integration

package integration

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	clientlog "github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/topics"
)

// brokerLoadClass is the class as which Pulsar's own brokers read the topic.
const brokerLoadClass = "org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData"

// TestJavaClientReadsLoad: what Ballast publishes for a Modular cluster is read by Pulsar's Java client, as a table view of the
// brokers' own class and by the registered schema, and by its Go client with that schema; all read the same.
func TestJavaClientReadsLoad(t *testing.T) {
	c := pool.Get(t, harness.Options{Manager: harness.Modular, Conf: keeperConf()})
	ns := c.CreateNamespace(t, 6)
	c.Place(t, ns, c.Brokers()...)
	flow := traffic.Start(t, c.ServiceURL(), traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 120, Seed: 4}), traffic.Options{})
	flow.AwaitFlow(t)
	running := start(t, c, "run", "--mode", "advise")
	harness.Eventually(t, 3*time.Minute, "the topic with its schema", func(ctx context.Context) error {
		return c.Get(ctx, "/admin/v2/schemas/"+strings.TrimPrefix(topics.BrokerLoadData, "non-persistent://")+"/schema", new(any))
	})

	read := typed(t, c, topics.BrokerLoadData, "BrokerLoadData")
	java := c.RunJava(t, "testdata/javaclient/ReadLoad.java", c.ServiceURL(), topics.BrokerLoadData, brokerLoadClass, fmt.Sprint(len(c.Brokers())), "240")
	harness.Eventually(t, 6*time.Minute, "the Java client", func(ctx context.Context) error {
		code, ended, err := java.Ended(ctx)
		switch {
		case err != nil:
			return err
		case !ended:
			return fmt.Errorf("it still reads:\n%s", java.Output(ctx))
		case code != 0:
			_, log := running.text()
			t.Fatalf("it ended with %d:\n%s\n%s", code, java.Output(ctx), log)
		}
		return nil
	})
	said := java.Output(t.Context())
	for _, with := range []string{"view", "consumer"} {
		lines := javaLines(t, said, with)
		if len(lines) != len(c.Brokers()) {
			t.Errorf("the %s heard of %d brokers:\n%s", with, len(lines), said)
		}
		for broker, documents := range lines {
			if c.Broker(broker) == nil {
				t.Errorf("the %s has the key %q, no broker", with, broker)
			}
			for _, d := range documents {
				harness.Eventually(t, 30*time.Second, "what the Java client read is what the Go client read", func(context.Context) error { return read.has(broker, d) })
			}
		}
		t.Logf("%s: %v", with, lines)
	}
	harness.Figure(t, "events that the Java client read", strings.Count(said, "\nview ")+strings.Count(said, "\nconsumer "))
	if code := running.stop(t); code != 0 {
		t.Errorf("the program ended with %d", code)
	}
	if err := flow.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}

// javaLines are the documents that the Java program printed, by key.
func javaLines(t *testing.T, said, with string) map[string][]event.BrokerLoadData {
	t.Helper()
	out := map[string][]event.BrokerLoadData{}
	for line := range strings.Lines(said) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), with+" ")
		if !found {
			continue
		}
		key, document, _ := strings.Cut(rest, " ")
		d, err := event.Decode[event.BrokerLoadData]([]byte(document))
		if err != nil {
			t.Errorf("line %q: %v", line, err)
			continue
		}
		out[key] = append(out[key], d)
	}
	return out
}

// typedReader collects what a consumer with a schema reads of a topic, by key.
type typedReader struct {
	mu   sync.Mutex
	read map[string][]event.BrokerLoadData
}

// typed reads a topic by the schema that its brokers would register.
func typed(t *testing.T, c *harness.Cluster, topic, class string) *typedReader {
	t.Helper()
	schema, known := event.SchemaOf(class, harness.Version())
	if !known {
		schema = event.SchemasOf(class)[0]
	}
	cl, err := client.NewClient(client.ClientOptions{URL: c.ServiceURL(), Logger: clientlog.NewLoggerWithSlog(slog.New(slog.DiscardHandler))})
	if err != nil {
		t.Fatal(err)
	}
	// It never acknowledges: every message of a non-persistent topic has the same id.
	consumer, err := cl.Subscribe(client.ConsumerOptions{Topic: topic, SubscriptionName: "go-consumer", SubscriptionMode: client.NonDurable,
		Schema: client.NewJSONSchema(schema.Definition, schema.Properties())})
	if err != nil {
		cl.Close()
		t.Fatal(err)
	}
	r := &typedReader{read: map[string][]event.BrokerLoadData{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			m, err := consumer.Receive(ctx)
			if err != nil {
				return
			}
			if len(m.Payload()) == 0 {
				continue
			}
			var d event.BrokerLoadData
			if err := m.GetSchemaValue(&d); err != nil {
				t.Errorf("the Go client read %q: %v", m.Payload(), err)
				continue
			}
			r.mu.Lock()
			r.read[m.Key()] = append(r.read[m.Key()], d)
			r.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		consumer.Close()
		cl.Close()
	})
	return r
}

// has says in what an event differs from the last one of its key that was read, unless it is one that was read.
func (r *typedReader) has(key string, d event.BrokerLoadData) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.read[key]
	for _, other := range all {
		if cmp.Equal(d, other) {
			return nil
		}
	}
	if len(all) == 0 {
		return fmt.Errorf("nothing of %s was read", key)
	}
	return fmt.Errorf("none of %d events of %s is it; the last one (-Java +Go):\n%s", len(all), key, cmp.Diff(d, all[len(all)-1]))
}
