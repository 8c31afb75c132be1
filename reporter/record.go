package reporter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// onTopics is what is kept of a broker on topics.Reported: the topics that may hold something of it.
type onTopics struct {
	Topics []string `json:"topics"` // ordered
}

// MarshalJSON implements json.Marshaler.
func (o onTopics) MarshalJSON() ([]byte, error) {
	type plain onTopics
	return json.Marshal(plain(o))
}

// record is what topics.Reported says. Most topics of the reporter keep nothing, so that whoever takes over from a process
// that crashed could not know otherwise what it left there of brokers that have gone meanwhile. It is written before a
// broker's first event goes out, and removed when all of them have been taken back: it may say too much, never too little.
type record struct {
	mu   sync.Mutex
	kept map[string][]string // topics by broker id, ordered
}

func (k *record) of(id string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.kept[id]
}

func (k *record) set(id string, list []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(list) == 0 {
		delete(k.kept, id)
		return
	}
	k.kept[id] = list
}

// recordLimit is how long reading the record may take.
const recordLimit = time.Minute

// read reads the record to its end.
func (k *record) read(ctx context.Context, o *Options) error {
	ctx, cancel := context.WithTimeout(ctx, recordLimit)
	defer cancel()
	if err := o.Cluster.CreateTopic(ctx, topics.Reported); err != nil {
		return fmt.Errorf("create %s: %w", topics.Reported, err)
	}
	sub, err := o.Log.Subscribe(ctx, topics.Reported, topics.SubscribeOptions{From: topics.Earliest, Compacted: true})
	if err != nil {
		return fmt.Errorf("read %s: %w", topics.Reported, err)
	}
	defer sub.Close()
	kept := map[string][]string{}
	err = topics.Drain(ctx, sub, func(m topics.Message) error {
		var v onTopics
		switch {
		case m.Tombstone():
			delete(kept, m.Key)
		case json.Unmarshal(m.Payload, &v) != nil: // to take back what is not there does no harm
			o.Logger.Warn("what was reported of a broker cannot be read, everything of it is taken for reported", "topic", topics.Reported, "broker", m.Key)
			kept[m.Key] = slices.Sorted(slices.Values(reportTopics[:]))
		default:
			kept[m.Key] = v.Topics
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", topics.Reported, err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kept = kept
	return nil
}

// takeOver reads what the process that reported before has left on the topics, once whenever it is our turn.
func (r *Reporter) takeOver(ctx context.Context) error {
	if r.tookOver {
		return nil
	}
	if err := r.record.read(ctx, &r.o); err != nil {
		return err
	}
	r.found = maps.Clone(r.record.kept)
	r.tookOver = true
	return nil
}

// inherit hands what was found to the brokers that are registered; what there is of others is taken back.
func (p *round) inherit() {
	r := p.r
	for _, id := range slices.Sorted(maps.Keys(r.found)) {
		if m := r.brokers[id]; m != nil {
			m.inherit(r.found[id])
			continue
		}
		if i := slices.IndexFunc(r.gone, func(d departed) bool { return d.ID == id }); i >= 0 {
			r.gone[i].inherit(r.found[id]) // it may have been back meanwhile, and reported by another process
			r.gone[i] = p.leaving(r.gone[i].Broker)
			continue
		}
		b := NewBroker(id)
		b.inherit(r.found[id])
		r.gone = append(r.gone, p.leaving(b))
		r.o.Logger.Info("what another process reported of a broker that has gone is taken back", "broker", id, "topics", r.found[id])
	}
	r.found = nil
}

// announce records that events of a broker are about to be published.
func (r *Reporter) announce(ctx context.Context, id string, events []Event) error {
	before := r.record.of(id)
	list := slices.Clone(before)
	for _, e := range events {
		if e.Value != nil && !slices.Contains(list, e.Topic) {
			list = append(list, e.Topic)
		}
	}
	if len(list) == len(before) {
		return nil
	}
	slices.Sort(list)
	if err := r.sinks.send(ctx, Event{Topic: topics.Reported, Key: id, Value: onTopics{list}}); err != nil {
		return err
	}
	r.record.set(id, list)
	return nil
}

// settle removes the record of a broker of which everything has been taken back.
func (r *Reporter) settle(ctx context.Context, id string) error {
	if len(r.record.of(id)) == 0 {
		return nil
	}
	if err := r.sinks.send(ctx, Event{Topic: topics.Reported, Key: id}); err != nil {
		return err
	}
	r.record.set(id, nil)
	return nil
}
