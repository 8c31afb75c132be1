package watch_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
	"github.com/ballast-lb/ballast/watch"
)

// replay feeds a recorded log to a watcher that looks every 5 s, and gives every anomaly that it ever saw.
func replay(t *testing.T, file string, brokers []string, producers []string) []watch.Anomaly {
	t.Helper()
	text, err := os.ReadFile("../event/testdata/samples/" + file)
	if err != nil {
		t.Fatal(err)
	}
	topic := &watch.Topic{Hosts: map[string][]string{}}
	for i, b := range brokers {
		topic.Hosts[b] = []string{b}
		topic.Producers = append(topic.Producers, watch.Producer{Name: producers[i], Address: b})
	}
	fold, w := ownership.NewFold(), watch.New(watch.Limits{})
	var seen []watch.Anomaly
	looked, n := int64(0), int64(0)
	look := func(now int64) {
		seen = append(seen, w.Look(watch.Picture{Now: now, Brokers: brokers, Owners: fold.Snapshot(), Topic: topic,
			Channel: &watch.Channel{Connected: true, CaughtUp: true}})...)
		looked = now
	}
	for line := range bytes.Lines(text) {
		var m struct {
			Key, Producer string
			Payload       json.RawMessage
			PayloadLen    int
			PublishTime   int64
		}
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatal(err)
		}
		n++
		now := max(m.PublishTime, looked)
		if looked == 0 {
			look(now)
		}
		for now-looked >= 5000 && now-looked < 600_000 {
			look(looked + 5000)
		}
		in := ownership.Message{Bundle: m.Key, At: now, ID: ownership.ID{Ledger: 1, Entry: n, Batch: -1}}
		if m.PayloadLen > 0 {
			data, err := event.Decode[event.ServiceUnitStateData](m.Payload)
			if err != nil {
				t.Fatal(err)
			}
			in.Data = &data
		}
		w.Hear(watch.Event{Outcome: fold.Apply(in), Data: in.Data, ID: in.ID, At: now, Producer: m.Producer, Continuous: true})
	}
	look(looked + 5000)
	return seen
}

// The recorded logs hold nothing that should be told, but for what was written by hand: producers h2-2-42 to h2-2-50 sent
// good and bad records, one of them with a gap.
func TestRecordedLogs(t *testing.T) {
	brokers := []string{"127.0.0.1:18081", "127.0.0.1:18082", "127.0.0.1:18083"}
	for _, a := range replay(t, "extensible/steady-loadbalancer-service-unit-state.jsonl", brokers, []string{"h2-0-1", "h2-0-0", "h2-0-5"}) {
		t.Errorf("steady: %s %s: %s", a.Why.Code, a.Bundle, a.Why)
	}
	foreign, gaps := map[string]bool{}, map[string]bool{}
	for _, a := range replay(t, "extensible/moves-splits-service-unit-state.jsonl", brokers, []string{"h2-2-2", "h2-2-0", "h2-2-1"}) {
		switch a.Why.Code {
		case watch.ForeignRecord.ID:
			foreign[a.Producer] = true
		case watch.VersionGap.ID:
			gaps[a.Bundle] = true
			if len(a.Evidence) == 0 || !slices.ContainsFunc(a.Evidence, func(e watch.Evidence) bool {
				return e.Producer == "h2-2-44" || e.Producer == "h2-2-45" || e.Producer == "h2-2-46"
			}) {
				t.Errorf("the gap's evidence is %+v", a.Evidence)
			}
		default:
			t.Errorf("moves: %s %s: %s", a.Why.Code, a.Bundle, a.Why)
		}
	}
	for _, p := range []string{"h2-2-42", "h2-2-43", "h2-2-44", "h2-2-45", "h2-2-46", "h2-2-47", "h2-2-48", "h2-2-49", "h2-2-50"} {
		if !foreign[p] {
			t.Errorf("%s is not seen to be foreign", p)
		}
		delete(foreign, p)
	}
	if len(foreign) > 0 {
		t.Errorf("taken for foreign: %v", foreign)
	}
	if len(gaps) != 1 || !gaps["public/h2/0x30000000_0x40000000"] {
		t.Errorf("gaps of %v", gaps)
	}
}

// A simulated cluster moves, splits, loses and gains brokers: nothing of that is an anomaly.
func TestSimulatedClusterIsQuiet(t *testing.T) {
	for seed := range uint64(3) {
		config := simulate.DemoCluster(seed)
		config.Settings.LoadBalancerAutoBundleSplitEnabled = true
		config.Settings.LoadBalancerNamespaceBundleMaxTopics = 4
		config.Manager = extensible.New(nil, nil, extensible.Options{})
		c, err := simulate.New(config)
		if err != nil {
			t.Fatal(err)
		}
		w, fold, n, splits := watch.New(watch.Limits{}), ownership.NewFold(), int64(0), 0
		for i := range 240 { // 40 minutes
			switch i {
			case 60:
				err = c.Kill("pulsar-broker-2:8080")
			case 90:
				err = c.Restart("pulsar-broker-2:8080")
			case 120:
				err = c.Stop("pulsar-broker-4:8080")
			case 150:
				err = c.AddBroker(simulate.Broker{ID: "pulsar-broker-9:8080", Cores: 4, HeapMiB: 2048, DirectMiB: 4096, NICKbit: 1e6})
			}
			if err != nil {
				t.Fatal(err)
			}
			c.Run(10 * time.Second)
			for _, ev := range c.Take() {
				if ev.Topic != topics.ServiceUnitState {
					continue
				}
				n++
				m := ownership.Message{Bundle: ev.Key, At: ev.At, ID: ownership.ID{Ledger: 1, Entry: n, Batch: -1}}
				if len(ev.Payload) > 0 {
					data, err := event.Decode[event.ServiceUnitStateData](ev.Payload)
					if err != nil {
						t.Fatal(err)
					}
					m.Data = &data
					if data.State == event.Splitting {
						splits++
					}
				}
				w.Hear(watch.Event{Outcome: fold.Apply(m), Data: m.Data, ID: m.ID, At: ev.At, Producer: ev.Producer, Continuous: true})
			}
			p := watch.Picture{Now: c.Now(), Owners: fold.Snapshot(), Channel: &watch.Channel{Connected: true, CaughtUp: true, Last: ownership.ID{Ledger: 1, Entry: n}},
				Topic: &watch.Topic{Hosts: map[string][]string{}, Last: ownership.ID{Ledger: 1, Entry: n}}}
			snap := c.Snapshot()
			for _, b := range snap.Brokers {
				p.Brokers = append(p.Brokers, b.ID)
				p.Topic.Hosts[b.ID] = []string{b.ID}
				p.Topic.Producers = append(p.Topic.Producers, watch.Producer{Name: b.ID, Address: b.ID})
			}
			for _, l := range snap.Load {
				loaded := watch.Loaded{Broker: l.Broker, Heard: l.Heard}
				for _, top := range l.TopBundles {
					loaded.Bundles = append(loaded.Bundles, top.BundleName)
				}
				p.Loaded = append(p.Loaded, loaded)
			}
			for _, a := range w.Look(p) {
				t.Errorf("seed %d after %v: %s %s%s: %s", seed, c.Elapsed(), a.Why.Code, a.Bundle, a.Broker, a.Why)
			}
		}
		if moves := len(c.Moves()); moves < 20 || splits == 0 {
			t.Errorf("seed %d: %d moves and %d splits: too few to show anything", seed, moves, splits)
		}
	}
}

// Whatever is heard, memory and what is said stay bounded, and one look says the same twice.
func TestBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lim := watch.Limits{Events: 16, Shown: 2, Most: 5}
		w, fold := watch.New(lim), ownership.NewFold()
		now := int64(1)
		for i := range rapid.IntRange(0, 300).Draw(t, "events") {
			now += rapid.Int64Range(0, 20_000).Draw(t, "pause")
			m := ownership.Message{At: now, ID: ownership.ID{Ledger: 1, Entry: int64(i), Batch: -1},
				Bundle: rapid.SampledFrom([]string{"", "garbage", "t/n/0x00000000_0x80000000", "t/n/0x00000000_0x40000000", "t/n/0x80000000_0xffffffff"}).Draw(t, "bundle")}
			if rapid.Bool().Draw(t, "record") {
				m.Data = &event.ServiceUnitStateData{State: rapid.SampledFrom(ownership.States()).Draw(t, "state"), VersionID: rapid.Int64().Draw(t, "version"),
					DstBroker: rapid.SampledFrom([]string{"", "a", "b", "z"}).Draw(t, "dst"), SourceBroker: rapid.SampledFrom([]string{"", "a", "z"}).Draw(t, "src"),
					Force: rapid.Bool().Draw(t, "force"), Timestamp: rapid.Int64().Draw(t, "timestamp")}
			}
			w.Hear(watch.Event{Outcome: fold.Apply(m), Data: m.Data, ID: m.ID, At: now, Producer: rapid.StringN(0, 2, 8).Draw(t, "producer"), Continuous: rapid.Bool().Draw(t, "live")})
		}
		p := watch.Picture{Now: now + rapid.Int64Range(0, 1e10).Draw(t, "later"), Brokers: []string{"a", "b"}, Owners: fold.Snapshot(),
			Channel: &watch.Channel{Connected: rapid.Bool().Draw(t, "connected"), CaughtUp: true},
			Topic:   &watch.Topic{Producers: []watch.Producer{{Name: "pa", Address: "1"}, {Name: "pb", Address: "2"}, {Name: "x", Address: "3"}}, Hosts: map[string][]string{"a": {"1"}, "b": {"2"}}}}
		first, second := w.Look(p), w.Look(p)
		if len(first) > lim.Most+1 {
			t.Errorf("%d anomalies", len(first))
		}
		a, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range first {
			if len(one.Evidence) > lim.Shown && one.Bundle != "" && one.Why.Code != watch.Beside.ID {
				t.Errorf("%d events with %s", len(one.Evidence), one.Why.Code)
			}
		}
		if b, _ := json.Marshal(second); len(first) == len(second) && !bytes.Equal(a, b) && !slices.Equal(watch.Codes(first), watch.Codes(second)) {
			t.Errorf("a second look differs:\n%s\n%s", a, b)
		}
		watch.Cures(first, watch.CureState{}, p.Now, watch.DefaultCureLimits, nil)
	})
}
