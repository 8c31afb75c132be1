//go:build integration

package pulsar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"go.uber.org/goleak"

	"github.com/ballast-lb/ballast/topics"
)

// TestOwnershipTopic follows the cluster's own ownership topic through splits, which end with tombstones of the brokers,
// and through tombstones of our own, while the topic is unloaded. Every entry of the topic must have been delivered.
func TestOwnershipTopic(t *testing.T) {
	c := realCluster(t)
	if status, _ := c.call(t, http.MethodGet, adminPath(topics.ServiceUnitState)+"/stats", ""); status == http.StatusNotFound {
		t.Skip("the cluster has no ownership topic: it does not run the Extensible load manager")
	}
	l := c.open(t)
	s := subscribe(t, l, topics.ServiceUnitState, topics.SubscribeOptions{From: topics.Earliest})
	got := drain(t, s)

	namespace := fmt.Sprintf("public/split-%d", time.Now().UnixNano())
	c.must(t, http.MethodPut, "namespaces/"+namespace, `{"bundles":{"numBundles":2}}`)
	p := raw(t, c, client.ProducerOptions{Topic: "persistent://" + namespace + "/topic", DisableBatching: true})
	send(t, p, sent{"a", "1"})
	var bundles struct{ Boundaries []string }
	if err := json.Unmarshal([]byte(c.must(t, http.MethodGet, "namespaces/"+namespace+"/bundles", "")), &bundles); err != nil {
		t.Fatal(err)
	}
	own := raw(t, c, client.ProducerOptions{Topic: topics.ServiceUnitState, DisableBatching: true})
	var parents []string
	for i := range len(bundles.Boundaries) - 1 {
		bundle := bundles.Boundaries[i] + "_" + bundles.Boundaries[i+1]
		parents = append(parents, namespace+"/"+bundle)
		c.must(t, http.MethodPut, "namespaces/"+namespace+"/"+bundle+"/split?unload=false", "")
		send(t, own, sent{namespace + "/ours-" + fmt.Sprint(i), ""}, sent{namespace + "/ours-again", ""})
		c.unload(t, topics.ServiceUnitState)
	}
	send(t, own, sent{namespace + "/ours-last", ""})

	deleted, buried := map[string]bool{}, map[string]bool{}
	follow := func(ctx context.Context, done func() bool) error {
		for !done() {
			m, err := s.Receive(ctx)
			if err != nil {
				return err
			}
			got = append(got, m)
			if !strings.HasPrefix(m.Key, namespace) {
				continue
			}
			if m.Tombstone() {
				buried[m.Key] = true
			} else if strings.Contains(string(m.Payload), `"Deleted"`) {
				deleted[m.Key] = true
			}
		}
		return nil
	}
	ours := func() bool { return buried[namespace+"/ours-last"] }
	if err := follow(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	if !s.Status().CaughtUp {
		t.Errorf("not caught up with a tombstone as the last message: %+v", s.Status())
	}
	for _, key := range []string{"/ours-0", "/ours-1", "/ours-again"} {
		if !buried[namespace+key] {
			t.Errorf("the tombstone of %s is missing", key)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	err := follow(ctx, func() bool {
		for _, b := range parents {
			if !deleted[b] || !buried[b] {
				return false
			}
		}
		return true
	})
	if err != nil {
		t.Errorf("the split bundles %v: deleted %v, buried %v: %v", parents, deleted, buried, err)
	}
	c.compare(t, l, got)
	t.Logf("%d messages, status %+v", len(got), s.Status())
	if st := s.Status(); st.Lost != 0 || st.Uncertain != 0 || st.Recovered == 0 {
		t.Errorf("status %+v", st)
	}
}

// compare checks messages of the ownership topic against every entry that the admin interface has, one by one.
func (c cluster) compare(t *testing.T, l *Log, got []topics.Message) {
	t.Helper()
	n, err := topics.ParseName(topics.ServiceUnitState)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[topics.MessageID]topics.Message{}
	last := before.id()
	for _, m := range got {
		if _, twice := byID[m.ID]; twice {
			t.Errorf("message %v was delivered twice", m.ID)
		}
		if m.ID.Less(last) {
			t.Errorf("message %v after %v", m.ID, last)
		}
		byID[m.ID], last = m, m.ID
	}
	layout, err := l.admin.layout(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, lg := range layout.ledgers {
		for e := range lg.entries {
			records, err := l.admin.entry(t.Context(), n, lg.id, e, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range records {
				if last.Less(r.id.id()) {
					continue // newer than what was received
				}
				m, ok := byID[r.id.id()]
				if !ok || m.Key != r.key || string(m.Payload) != string(r.payload) || m.Producer != r.producer || !m.PublishTime.Equal(r.publish) {
					t.Errorf("entry %v is %+v, delivered %+v", r.id, r, m)
				}
				compared++
			}
		}
	}
	if compared == 0 {
		t.Error("the admin interface has no entries to compare with")
	}
	t.Logf("compared %d messages with the entries of the topic", compared)
}

// TestLoadTopics counts what the broker dispatched to a subscription of the load topics against what arrived.
func TestLoadTopics(t *testing.T) {
	c := realCluster(t)
	l := c.open(t)
	for _, topic := range []string{topics.BrokerLoadData, topics.TopBundles} {
		t.Run(topic, func(t *testing.T) {
			s, err := l.Subscribe(t.Context(), topic, topics.SubscribeOptions{Existing: true})
			if errors.Is(err, topics.ErrNoTopic) {
				t.Skip("the cluster does not run the Extensible load manager")
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			// Traffic of our own on top of the brokers': values of a broker that does not exist, and tombstones.
			p := raw(t, c, client.ProducerOptions{Topic: topic, DisableBatching: true})
			t.Cleanup(func() { _, _ = p.Send(context.Background(), &client.ProducerMessage{Key: "nobody:1"}) }) // or it haunts the balancer
			const values, stones = 500, 20
			for i := range values {
				send(t, p, sent{"nobody:1", fmt.Sprintf(`{"n":%d}`, i)})
				if i%(values/stones) == 0 {
					send(t, p, sent{"nobody:1", ""})
				}
			}
			name := s.(*owned).Subscription.(*volatile).src.(named).subscription()
			last, equal := -1, 0
			for equal < 5 { // the statistics lag behind, so they have to agree for a while
				more, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				m, err := s.Receive(more)
				cancel()
				if err == nil {
					equal = 0
					if m.Key == "nobody:1" {
						last = c.checkNext(t, m, last)
					}
					continue
				}
				if !errors.Is(err, context.DeadlineExceeded) || t.Context().Err() != nil {
					t.Fatalf("receive: %v", err)
				}
				st := s.Status()
				if sent := c.dispatched(t, topic, name); sent == st.Messages+st.Discarded && sent >= values {
					equal++
				}
			}
			st := s.Status()
			t.Logf("sent %d of our own, dispatched %d, status %+v", values+stones, c.dispatched(t, topic, name), st)
			// A broker may drop messages of a non-persistent topic before it dispatches them: those nobody can have.
			if last < values*9/10 || st.Discarded == 0 || st.Discarded > stones || st.Messages < values*9/10 {
				t.Errorf("the last value is %d of %d; status %+v", last, values, st)
			}
		})
	}
}

// checkNext checks that a value is the one after the last, or a later one, and returns it.
func (c cluster) checkNext(t *testing.T, m topics.Message, last int) int {
	t.Helper()
	var v struct{ N int }
	if err := json.Unmarshal(m.Payload, &v); err != nil {
		t.Fatalf("received %s: %v", m.Payload, err)
	}
	if v.N <= last || m.ID != (topics.MessageID{}) {
		t.Errorf("received %s with the id %v after %d", m.Payload, m.ID, last)
	}
	return v.N
}

// dispatched is how many messages the broker says that it sent to a subscription.
func (c cluster) dispatched(t *testing.T, topic, subscription string) int64 {
	t.Helper()
	var stats struct {
		Subscriptions map[string]struct{ MsgOutCounter float64 }
	}
	if err := json.Unmarshal([]byte(c.must(t, http.MethodGet, adminPath(topic)+"/stats", "")), &stats); err != nil {
		t.Fatal(err)
	}
	return int64(stats.Subscriptions[subscription].MsgOutCounter)
}

// TestSystemSchemas: publishing with the brokers' own definitions adds no version, and with another one is refused.
func TestSystemSchemas(t *testing.T) {
	c := realCluster(t)
	l := c.open(t)
	for _, topic := range []string{topics.BrokerLoadData, topics.TopBundles, topics.ServiceUnitState} {
		n, err := topics.ParseName(topic)
		if err != nil {
			t.Fatal(err)
		}
		before, err := l.admin.schema(t.Context(), n)
		if err != nil || before == nil {
			t.Skipf("no schema on %s (%v): the cluster does not run the Extensible load manager", topic, err)
		}
		p, err := l.Publisher(t.Context(), topic, topics.PublishOptions{Schema: topics.Schema{Definition: before.Data, Properties: before.Properties}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Publish(t.Context(), "nobody:1", nil); err != nil {
			t.Errorf("publish: %v", err)
		}
		wrong := strings.Replace(before.Data, `"name":"msgRateIn","type":"double"`, `"name":"msgRateIn","type":"long"`, 1)
		wrong = strings.Replace(wrong, `"name":"force","type":"boolean"`, `"name":"force","type":"int"`, 1)
		_, err = l.Publisher(t.Context(), topic, topics.PublishOptions{Schema: topics.Schema{Definition: wrong}})
		if !errors.Is(err, topics.ErrSchemaMismatch) || !strings.Contains(err.Error(), wrong) || !strings.Contains(err.Error(), before.Data) {
			t.Errorf("publisher with another schema: %v", err)
		}
		after, err := l.admin.schema(t.Context(), n)
		if err != nil || after.Version != before.Version {
			t.Errorf("the schema of %s has version %+v after version %d (%v)", topic, after, before.Version, err)
		}
	}
}

// TestUnreachable: what cannot be reached is one clear error.
func TestUnreachable(t *testing.T) {
	c := realCluster(t)
	for name, change := range map[string]func(*Options){
		"service": func(o *Options) { o.ServiceURL = "pulsar://127.0.0.1:1" },
		"admin":   func(o *Options) { o.AdminURL = "http://127.0.0.1:1" },
	} {
		t.Run(name, func(t *testing.T) {
			o := c.options(t)
			o.OperationTimeout = time.Second
			change(&o)
			l, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			topic := testTopic("persistent")
			if _, err := l.Subscribe(t.Context(), topic, topics.SubscribeOptions{}); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
				t.Errorf("subscribe: %v, want the address", err)
			} else {
				t.Log(err)
			}
			schema := topics.Schema{Definition: `"string"`}
			if _, err := l.Publisher(t.Context(), topic, topics.PublishOptions{Schema: schema}); err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") {
				t.Errorf("publisher: %v, want the address", err)
			} else {
				t.Log(err)
			}
		})
	}
}

// TestNoGoroutineLeft: nothing runs on when a log is closed.
func TestNoGoroutineLeft(t *testing.T) {
	c := realCluster(t)
	before := goleak.IgnoreCurrent()
	http.DefaultClient.CloseIdleConnections()
	o := c.options(t)
	o.SendTimeout = 200 * time.Millisecond // the library ends one of its goroutines only then
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, domain := range []string{"persistent", "non-persistent"} {
		topic := testTopic(domain)
		s := subscribe(t, l, topic, topics.SubscribeOptions{})
		p, err := l.Publisher(t.Context(), topic, topics.PublishOptions{Exclusive: domain == "persistent"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Publish(t.Context(), "a", []byte("1")); err != nil {
			t.Fatal(err)
		}
		receive(t, s, 1)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	goleak.VerifyNone(t, before)
}
