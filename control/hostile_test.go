package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

// everyTopic is every topic that a leader reads.
var everyTopic = []string{topics.BrokerLoadData, topics.TopBundles, topics.ServiceUnitState, topics.Decisions, topics.Takeover, topics.Leader,
	topics.Reporter, topics.Commands, topics.LocalBrokerData, topics.BundleStats, topics.BundleData, topics.BrokerAverages}

// hostile publishes what makes no sense, or made sense once, on every topic but the lock's, which is exclusive.
type hostile struct {
	t   *testing.T
	log topics.Log
	rnd *rand.Rand
	old map[string][]topics.Message // what brokers and Ballast had published
	n   int
}

func newHostile(t *testing.T, e *simulate.Embedded, seed uint64) *hostile {
	t.Helper()
	h := &hostile{t: t, log: e.Log(), rnd: rand.New(rand.NewPCG(seed, 2)), old: map[string][]topics.Message{}}
	return h
}

// record keeps what a topic brings, to be sent again.
func (h *hostile) record(ctx context.Context, topic string) topics.Subscription {
	sub, err := h.log.Subscribe(ctx, topic, topics.SubscribeOptions{From: topics.Earliest})
	if err != nil {
		h.t.Fatal(err)
	}
	return sub
}

func (h *hostile) drain(sub topics.Subscription, topic string) {
	for {
		m, ok, err := sub.(*topics.MemorySubscription).TryReceive()
		if err != nil {
			h.t.Fatal(err)
		}
		if !ok {
			return
		}
		h.old[topic] = append(h.old[topic], m)
	}
}

// lastBundle is not moved in the test: an ownership record that cannot be read keeps Ballast from touching its bundle.
const lastBundle = ns + "/0xc0000000_0xffffffff"

// nonsense is a payload that no broker and no Ballast writes.
func (h *hostile) nonsense() []byte {
	return []byte([]string{"not JSON", "[1,2]", `{"cpu":`, "\x00\xff\xfe", `{"state":7,"kind":[],"cpu":"much"}`, "null", `"text"`, "{}",
		`{"kind":"no such kind"}`, strings.Repeat("[", 5000), `{"updatedAt":1e300}`}[h.rnd.IntN(11)])
}

// send publishes one message of each sort on a topic.
func (h *hostile) send(topic string) {
	pub, err := h.log.Publisher(h.t.Context(), topic, topics.PublishOptions{})
	if err != nil {
		return // the holder of a lock has it for itself
	}
	defer pub.Close()
	put := func(key string, payload []byte) {
		if _, err := pub.Publish(h.t.Context(), key, payload); err != nil {
			h.t.Fatal(err)
		}
		h.n++
	}
	keys := []string{a, b, c, "nobody:8080", "", "no key of anything", strings.Repeat("x", 10_000), lastBundle}
	put(keys[h.rnd.IntN(len(keys))], h.nonsense())
	put(fmt.Sprintf("10.0.%d.%d:8080", h.rnd.IntN(256), h.rnd.IntN(256)), h.nonsense())
	if list := h.old[topic]; len(list) > 0 && topic != topics.Commands {
		m := list[h.rnd.IntN(len(list))]
		put(m.Key, m.Payload) // again, in another order
	}
}

// TestHostileTopics: garbage, huge, repeated, reordered and future-dated events on every topic that Ballast reads change no plan.
// What is honest goes on, and the plans are those of the same cluster without them.
func TestHostileTopics(t *testing.T) {
	run := func(with bool) (moves []string, owners map[string]string, sent int) {
		e := small(t, map[string]string{"loadBalancerSheddingEnabled": "false"})
		bundle := func(w *world, i int) string { return w.bundles(t)[i] }
		w := process(t, e, "one", control.Govern, script{}, false)
		plans := [][]plan.Decision{{}, {}, {transfer(bundle(w, 0), a, b)}, {}, {transfer(bundle(w, 1), a, c)}, {}}
		w = process(t, e, "one", control.Govern, script{plans}, false)
		h := newHostile(t, e, 1)
		var subs []topics.Subscription
		for _, topic := range everyTopic {
			sub := h.record(t.Context(), topic)
			t.Cleanup(func() { sub.Close() })
			subs = append(subs, sub)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		cycles := 0
		w.service.Each = func(cy *control.Cycle) {
			if len(cy.Frozen) > 0 {
				t.Errorf("cycle %d with hostile events %v is frozen: %v", cy.N, with, cy.Frozen)
			}
			for _, o := range cy.Outcomes {
				moves = append(moves, fmt.Sprintf("%s>%s %s", o.Decision.Bundle, o.Decision.Destination, o.Result))
			}
			if cycles++; cycles == 8 {
				stop()
			}
			if !with {
				return
			}
			for i, topic := range everyTopic {
				h.drain(subs[i], topic)
				for range 20 {
					h.send(topic)
				}
			}
		}
		_ = w.service.Run(ctx)
		owners = map[string]string{}
		for _, id := range []string{a, b, c} {
			owned, err := e.Owned(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range owned {
				owners[name] = id
			}
		}
		return moves, owners, h.n
	}
	want, owners, _ := run(false)
	if len(want) != 2 {
		t.Fatalf("without hostile events %v", want)
	}
	got, after, sent := run(true)
	if sent < 1000 {
		t.Fatalf("only %d hostile events were sent", sent)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("moves (-without +with hostile events):\n%s", diff)
	}
	if diff := cmp.Diff(owners, after); diff != "" {
		t.Errorf("owners (-without +with hostile events):\n%s", diff)
	}
}

// TestReplayedLoad: what another producer sends again, or dates ahead, is refused and counted; a broker that restarted counts.
func TestReplayedLoad(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Advise, script{}, false)
	report := func(at time.Time, usage float64) []byte {
		d := event.NewBrokerLoadData()
		d.CPU, d.ReportedAt, d.UpdatedAt = event.ResourceUsage{Usage: usage, Limit: 100}, at.UnixMilli(), at.UnixMilli()
		payload, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		return payload
	}
	usage := func() float64 {
		l := look(t, w)
		return l.Snapshot.Load[l.Snapshot.LoadIndex(b)].Data.CPU.Usage
	}
	send := func(payload []byte) {
		pub, err := e.Log().Publisher(t.Context(), topics.BrokerLoadData, topics.PublishOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer pub.Close()
		if _, err := pub.Publish(t.Context(), b, payload); err != nil {
			t.Fatal(err)
		}
	}
	honest := usage()
	for name, at := range map[string]time.Time{"from yesterday": e.Now().Add(-24 * time.Hour), "from ten minutes ago": e.Now().Add(-10 * time.Minute),
		"dated ahead": e.Now().Add(time.Hour), "at the end of time": time.UnixMilli(1 << 62), "at the beginning": time.UnixMilli(0)} {
		if send(report(at, 77)); usage() != honest {
			t.Errorf("a report %s counts", name)
		}
	}
	if n := skipped(t, w)[topics.BrokerLoadData]; n != 5 {
		t.Errorf("%v reports are counted as skipped, want 5", n)
	}
	if send(report(e.Now(), 55)); usage() != 55 {
		t.Error("a report of the broker's next life does not count")
	}
}

// skipped is how many events of each topic the metrics say could not be used.
func skipped(t *testing.T, w *world) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(control.NewCollector(w.views, "test"))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "ballast_events_skipped_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "topic" {
					got[label.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return got
}

// TestManyKeysTakeBoundedMemory: keys that nobody registered do not fill the memory, and the brokers go on.
func TestManyKeysTakeBoundedMemory(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Advise, script{}, false)
	d := event.NewBrokerLoadData()
	d.ReportedAt = e.Now().UnixMilli()
	payload, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := e.Log().Publisher(t.Context(), topics.BrokerLoadData, topics.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer pub.Close()
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	flood := func(from, to int) {
		for i := from; i < to; i++ {
			key := fmt.Sprintf("10.%d.%d.%d:8080", i>>16, i>>8&255, i&255)
			for _, p := range [][]byte{payload, nil} { // and taken back, which is remembered too
				if _, err := pub.Publish(t.Context(), key, p); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := pub.Publish(t.Context(), key, payload); err != nil {
				t.Fatal(err)
			}
			if i%1000 == 0 {
				look(t, w)
			}
		}
		look(t, w)
	}
	flood(0, 12_000)
	before := heap()
	flood(12_000, 26_000)
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("14,000 more keys took %d KiB", grown>>10)
	}
	if err := e.Sleep(t.Context(), 2*time.Minute); err != nil { // the brokers report again
		t.Fatal(err)
	}
	if l := look(t, w); len(l.Missing) > 0 || len(l.Frozen) > 0 {
		t.Errorf("missing %v, frozen %v", l.Missing, l.Frozen)
	}
}
