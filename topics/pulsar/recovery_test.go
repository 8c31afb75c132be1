//go:build integration

package pulsar

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/apache/pulsar-client-go/pulsar"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/topics"
)

// raw is a producer of the client library itself, to write what Ballast's publishers do not: messages outside batches,
// batches of several, compressed ones.
func raw(t *testing.T, c cluster, o client.ProducerOptions) client.Producer {
	t.Helper()
	quiet := newClientLogger(c.options(t).Logger, newTaps())
	cl, err := client.NewClient(client.ClientOptions{URL: c.service, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	p, err := cl.CreateProducer(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

type sent struct{ Key, Payload string }

// send publishes events; in batches if the producer makes them.
func send(t *testing.T, p client.Producer, events ...sent) {
	t.Helper()
	var all sync.WaitGroup
	for _, e := range events {
		all.Add(1)
		p.SendAsync(t.Context(), &client.ProducerMessage{Key: e.Key, Payload: []byte(e.Payload)}, func(_ client.MessageID, _ *client.ProducerMessage, err error) {
			if err != nil {
				t.Errorf("send %v: %v", e, err)
			}
			all.Done()
		})
	}
	if err := p.FlushWithCtx(t.Context()); err != nil {
		t.Fatal(err)
	}
	all.Wait()
}

func subscribe(t *testing.T, l *Log, topic string, o topics.SubscribeOptions) topics.Subscription {
	t.Helper()
	s, err := l.Subscribe(t.Context(), topic, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func receive(t *testing.T, s topics.Subscription, n int) []topics.Message {
	t.Helper()
	var messages []topics.Message
	for len(messages) < n {
		m, err := s.Receive(t.Context())
		if err != nil {
			t.Fatalf("after %d of %d messages: %v; status %+v", len(messages), n, err, s.Status())
		}
		messages = append(messages, m)
	}
	return messages
}

func drain(t *testing.T, s topics.Subscription) []topics.Message {
	t.Helper()
	var messages []topics.Message
	err := topics.Drain(t.Context(), s, func(m topics.Message) error {
		messages = append(messages, m)
		return nil
	})
	if err != nil {
		t.Fatalf("after %d messages: %v; status %+v", len(messages), err, s.Status())
	}
	return messages
}

// check checks that the messages are the events, in the order of their ids.
func check(t *testing.T, got []topics.Message, want []sent) {
	t.Helper()
	var events []sent
	for i, m := range got {
		events = append(events, sent{m.Key, string(m.Payload)})
		if i > 0 && !got[i-1].ID.Less(m.ID) {
			t.Errorf("id %v after %v", m.ID, got[i-1].ID)
		}
		if m.Producer == "" || m.PublishTime.IsZero() {
			t.Errorf("incomplete: %+v", m)
		}
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events (-sent +received):\n%s", diff)
	}
}

func testTopic(domain string) string {
	return domain + "://public/default/recovery-" + subscriptionName()
}

// script is a history with tombstones first, alone, in long rows, and last.
func script() []sent {
	es := []sent{{"first", ""}, {"a", "1"}, {"a", ""}, {"b", "2"}, {"b", ""}, {"c", ""}}
	for i := range 150 { // more than is fetched at a time
		es = append(es, sent{fmt.Sprint("row-", i), ""})
	}
	return append(es, sent{"d", "4"}, sent{"e", `{"x":"` + strings.Repeat("y", 3000) + `"}`}, sent{"d", ""}, sent{"last", ""})
}

// TestTombstones: none is lost, however it was written, and being caught up does not hang on one.
func TestTombstones(t *testing.T) {
	c := realCluster(t)
	producers := map[string]client.ProducerOptions{
		"alone":                 {DisableBatching: true},
		"alone, compressed":     {DisableBatching: true, CompressionType: client.ZSTD},
		"in batches":            {BatchingMaxMessages: 7, BatchingMaxPublishDelay: time.Hour},
		"in compressed batches": {BatchingMaxMessages: 7, BatchingMaxPublishDelay: time.Hour, CompressionType: client.ZSTD},
		"in batches of one":     {BatchingMaxMessages: 1, BatchingMaxPublishDelay: time.Hour},
	}
	for name, o := range producers {
		for _, deaf := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, deaf %v", name, deaf), func(t *testing.T) {
				o.Topic = testTopic("persistent")
				options := c.options(t)
				options.TailCheck = 300 * time.Millisecond
				l, err := Open(options)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				l.taps.deaf = deaf
				p := raw(t, c, o)
				send(t, p, script()...)
				s := subscribe(t, l, o.Topic, topics.SubscribeOptions{From: topics.Earliest})
				check(t, drain(t, s), script())
				c.unload(t, o.Topic) // a new ledger
				live := []sent{{"x", ""}, {"x", "1"}, {"y", ""}, {"x", ""}}
				for round := range 5 {
					send(t, p, live...)
					check(t, receive(t, s, len(live)), live)
					if round == 2 {
						c.unload(t, o.Topic)
					}
				}
				st := s.Status()
				t.Logf("status %+v", st)
				if !st.CaughtUp || st.Lost != 0 || st.Uncertain != 0 {
					t.Errorf("status %+v", st)
				}
				if alone := o.DisableBatching && o.CompressionType == client.NoCompression; alone != (st.Recovered >= 100) {
					t.Errorf("recovered %d messages", st.Recovered)
				}
			})
		}
	}
}

// TestSlowReader: what waits inside the library when a connection ends is not lost, nor delivered twice.
func TestSlowReader(t *testing.T) {
	c := realCluster(t)
	options := c.options(t)
	options.ReceiverQueue = 50
	l, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	topic := testTopic("persistent")
	p := raw(t, c, client.ProducerOptions{Topic: topic, BatchingMaxMessages: 10, BatchingMaxPublishDelay: time.Hour, CompressionType: client.LZ4})
	s := subscribe(t, l, topic, topics.SubscribeOptions{})
	var want []sent
	for i := range 2000 {
		e := sent{fmt.Sprint(i % 50), fmt.Sprint(i)}
		if i%13 == 0 {
			e.Payload = ""
		}
		want = append(want, e)
	}
	var got []topics.Message
	for i := 0; i < len(want); i += 200 {
		send(t, p, want[i:i+200]...)
		got = append(got, receive(t, s, 73)...)
		c.unload(t, topic)
	}
	got = append(got, receive(t, s, len(want)-len(got))...)
	check(t, got, want)
	if st := s.Status(); !st.CaughtUp || st.Lost != 0 || st.Uncertain != 0 {
		t.Errorf("status %+v", st)
	} else {
		t.Logf("status %+v", st)
	}
}

// TestDeletedHistory: entries that were compacted away and whose ledger was deleted while nobody read are reported, and
// what follows is delivered.
func TestDeletedHistory(t *testing.T) {
	c := realCluster(t)
	options := c.options(t)
	options.ReceiverQueue = 2
	l, err := Open(options)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	topic := testTopic("persistent")
	p := raw(t, c, client.ProducerOptions{Topic: topic, DisableBatching: true})
	var early []sent
	for i := range 20 {
		early = append(early, sent{fmt.Sprint("early-", i), "1"})
	}
	send(t, p, early...)
	s := subscribe(t, l, topic, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	seen := drain(t, s)
	check(t, seen, early)
	for i := range early { // all gone again, while nobody receives
		send(t, p, sent{early[i].Key, "2"}, sent{early[i].Key, ""})
	}
	c.compact(t, topic)
	c.unload(t, topic)
	send(t, p, sent{"late", "1"})
	c.compact(t, topic)
	c.must(t, http.MethodPost, adminPath(topic)+"/trim", "")
	for first := seen[0].ID.Ledger; c.hasLedger(t, topic, first); { // trimming happens in the background
		time.Sleep(100 * time.Millisecond)
	}
	send(t, p, sent{"late", ""}, sent{"later", "1"})
	got := receive(t, s, 1)
	for got[len(got)-1].Key != "later" {
		got = append(got, receive(t, s, 1)...)
	}
	st := s.Status()
	t.Logf("received %d, status %+v", len(got), st)
	if len(got) >= 2*len(early) || st.Lost+st.Uncertain == 0 || !st.CaughtUp {
		t.Errorf("received %d messages; status %+v", len(got), st)
	}
	fresh := subscribe(t, l, topic, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	all := drain(t, fresh)
	latest := map[string]string{}
	for _, m := range all {
		if latest[m.Key] = string(m.Payload); m.Tombstone() {
			delete(latest, m.Key)
		}
	}
	if diff := cmp.Diff(map[string]string{"later": "1"}, latest); diff != "" {
		t.Errorf("latest values of a fresh subscription (-want +got):\n%s", diff)
	}
	if st := fresh.Status(); st.Lost != 0 || st.Uncertain != 0 {
		t.Errorf("fresh subscription: %+v", st)
	}
}

func (c cluster) hasLedger(t *testing.T, topic string, id int64) bool {
	t.Helper()
	n, err := topics.ParseName(topic)
	if err != nil {
		t.Fatal(err)
	}
	l, err := newAdmin(c.admin, http.DefaultClient, time.Minute).layout(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(l.ledgers, func(s ledger) bool { return s.id == id })
}

// TestBrokerRestart kills the broker that serves a topic and starts it again. BALLAST_TEST_BROKER names a command that is
// run as "command kill|start N", with the web address of broker N being the N-th of BALLAST_TEST_ADMIN_URL.
func TestBrokerRestart(t *testing.T) {
	c := realCluster(t)
	command := os.Getenv("BALLAST_TEST_BROKER")
	if command == "" {
		t.Skip("BALLAST_TEST_BROKER names no command that kills and starts brokers")
	}
	control := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(command, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v: %s", command, args, err, out)
		}
	}
	l := c.open(t)
	persistent, volatile := testTopic("persistent"), testTopic("non-persistent")
	kept := subscribe(t, l, persistent, topics.SubscribeOptions{})
	heard := subscribe(t, l, volatile, topics.SubscribeOptions{Silence: time.Minute})
	p := raw(t, c, client.ProducerOptions{Topic: persistent, DisableBatching: true, SendTimeout: -1})
	v := raw(t, c, client.ProducerOptions{Topic: volatile, DisableBatching: true, SendTimeout: -1})
	stop, done := make(chan struct{}), make(chan []sent)
	go func() {
		var all []sent
		defer func() { done <- all }()
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Millisecond):
			}
			e := sent{fmt.Sprint("key-", i), strconv.Itoa(i)}
			if i%3 == 0 {
				e.Payload = ""
			}
			if _, err := p.Send(t.Context(), &client.ProducerMessage{Key: e.Key, Payload: []byte(e.Payload)}); err != nil {
				t.Errorf("send: %v", err)
				return
			}
			all = append(all, e)
			v.SendAsync(t.Context(), &client.ProducerMessage{Key: e.Key, Payload: []byte("v")}, func(client.MessageID, *client.ProducerMessage, error) {})
		}
	}()
	got := receive(t, kept, 20)
	for _, topic := range []string{persistent, volatile} {
		n := c.owner(t, topic)
		t.Logf("killing broker %d, which serves %s", n, topic)
		control("kill", strconv.Itoa(n))
		if topic == persistent {
			got = append(got, receive(t, kept, 100)...) // the cluster has recovered when these arrive
		}
		for blind := time.Duration(0); topic == volatile && blind == 0; blind = heard.Status().Blind {
			receive(t, heard, 1)
		}
		control("start", strconv.Itoa(n))
		for !c.ready(t, n) {
			time.Sleep(500 * time.Millisecond)
		}
		receive(t, heard, 5)
	}
	close(stop)
	all := <-done
	for got[len(got)-1].Key != all[len(all)-1].Key {
		got = append(got, receive(t, kept, 1)...)
	}
	// A producer that lost its broker sends again what was stored and not yet acknowledged: the topic has that event twice.
	got = slices.CompactFunc(got, func(a, b topics.Message) bool { return a.Key == b.Key })
	check(t, got, all)
	t.Logf("persistent: %+v", kept.Status())
	t.Logf("non-persistent: %+v", heard.Status())
	if st := kept.Status(); st.Lost != 0 || st.Uncertain != 0 || st.Blind == 0 || !st.Connected {
		t.Errorf("status %+v", st)
	}
	if st := heard.Status(); st.Blind == 0 || !st.Connected {
		t.Errorf("status %+v", st)
	}
}

func (c cluster) ready(t *testing.T, n int) bool {
	t.Helper()
	host := strings.Split(strings.TrimPrefix(c.admin, "http://"), ",")[n-1]
	resp, err := http.Get("http://" + host + "/admin/v2/brokers/ready")
	if err != nil {
		return false
	}
	resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// owner is the number of the broker that serves a topic.
func (c cluster) owner(t *testing.T, topic string) int {
	t.Helper()
	base, _, _ := strings.Cut(c.admin, ",")
	resp, err := http.Get(base + "/lookup/v2/topic/" + adminPath(topic))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	buf := make([]byte, 4096)
	n, _ := resp.Body.Read(buf)
	for i, host := range strings.Split(strings.TrimPrefix(c.admin, "http://"), ",") {
		if strings.Contains(string(buf[:n]), host) {
			return i + 1
		}
	}
	t.Fatalf("no address of %s in %s", c.admin, buf[:n])
	return 0
}
