package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/tableview"
	"github.com/ballast-lb/ballast/topics"
)

// HistoryOptions say where the averages of bundles and brokers are kept.
type HistoryOptions struct {
	Log      topics.Log    // nil = they are kept nowhere
	Keep     bool          // write; without it what others wrote is read, if there is anything
	Interval time.Duration // between two writes; 0 = DefaultHistoryInterval
	Stepwise bool          // CatchUp reads the topics, nobody calls Run
	Logger   *slog.Logger
}

// DefaultHistoryInterval is what a leader that is killed loses of the averages at most. Pulsar writes every
// loadBalancerResourceQuotaUpdateIntervalMinutes, which spares ZooKeeper; a log takes it more often, and averages do not depend on
// when they are written.
const DefaultHistoryInterval = time.Minute

// History is the averages of bundles and brokers, kept on topics.BundleData and topics.BrokerAverages: whoever starts, or
// becomes the leader, goes on where the one before stopped. Only the process that acts writes. All values that changed are
// written, where Pulsar stores those of the heaviest bundles only, for a log takes them easily. What is gone gets a tombstone;
// nothing else ever ends a history, also not that nobody serves the bundle for a while (in Pulsar that does).
// Pulsar: ModularLoadManagerImpl.writeBundleDataOnZooKeeper.
type History struct {
	o        HistoryOptions
	bundles  *kept[event.BundleData]
	averages *kept[event.TimeAverageBrokerData]
	feeds    []*feed

	writing sync.Mutex // one write at a time
	mu      sync.Mutex // guards what follows; never held while writing, as a look asks
	written time.Time
}

// NewHistory makes it; Open subscribes.
func NewHistory(o HistoryOptions) *History {
	if o.Interval <= 0 {
		o.Interval = DefaultHistoryInterval
	}
	h := &History{o: o}
	h.bundles = newKept[event.BundleData](topics.BundleData, checkBundle, o.Logger)
	h.averages = newKept[event.TimeAverageBrokerData](topics.BrokerAverages, nil, o.Logger)
	h.feeds = []*feed{{topic: topics.BundleData, apply: h.bundles.view.Apply}, {topic: topics.BrokerAverages, apply: h.averages.view.Apply}}
	return h
}

func checkBundle(key string) error {
	_, err := event.ParseBundle(key)
	return err
}

// Open subscribes to what was kept. When nothing was, and this process keeps nothing, there is no history to read.
func (h *History) Open(ctx context.Context) error {
	if h.o.Log == nil {
		return nil // it begins and ends with this process
	}
	for _, f := range h.feeds {
		sub, err := h.o.Log.Subscribe(ctx, f.topic, topics.SubscribeOptions{From: topics.Earliest, Compacted: true, Existing: !h.o.Keep})
		if errors.Is(err, topics.ErrNoTopic) {
			continue
		}
		if err != nil {
			return errors.Join(fmt.Errorf("subscribe to %s: %w", f.topic, err), h.Close())
		}
		f.replace(sub)
	}
	return nil
}

// Close ends the subscriptions and publishers.
func (h *History) Close() error {
	var errs []error
	for _, f := range h.feeds {
		if sub := f.subscription(); sub != nil {
			errs = append(errs, sub.Close())
		}
	}
	return errors.Join(append(errs, h.bundles.close(), h.averages.close())...)
}

// run feeds it until ctx ends.
func (h *History) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, f := range h.feeds {
		if f.subscription() != nil {
			g.Go(func() error { return f.run(ctx) })
		}
	}
	return g.Wait()
}

// catchUp takes in what the topics hold now.
func (h *History) catchUp(ctx context.Context) error {
	for _, f := range h.feeds {
		if f.subscription() == nil {
			continue
		}
		if err := f.catchUp(ctx); err != nil {
			return fmt.Errorf("%s: %w", f.topic, err)
		}
	}
	return nil
}

// behind is the first topic that has not been read to its end; ok = false when all have.
func (h *History) behind() (topic string, ok bool) {
	for _, f := range h.feeds {
		if sub := f.subscription(); sub != nil && !sub.Status().CaughtUp {
			return f.topic, true
		}
	}
	return "", false
}

// Bundle is the averages of a bundle, nil if there are none.
func (h *History) Bundle(name string) *event.BundleData { return h.bundles.get(name) }

// Averages are the averages of a broker, nil if there are none.
func (h *History) Averages(broker string) *event.TimeAverageBrokerData { return h.averages.get(broker) }

// take keeps what a snapshot's histories are now.
func (h *History) take(snap *cluster.Snapshot) {
	for i := range snap.Bundles {
		if b := &snap.Bundles[i]; b.Data != nil && !load.IsBrokerNamespace(b.Namespace) {
			h.bundles.put(b.Name, *b.Data)
		}
	}
	for i := range snap.Brokers {
		if b := &snap.Brokers[i]; b.TimeAverage != nil {
			h.averages.put(b.ID, *b.TimeAverage)
		}
	}
}

// forget drops what is gone: bundles and brokers for which live says false.
func (h *History) forget(liveBundle, liveBroker func(string) bool) {
	h.bundles.forget(liveBundle)
	h.averages.forget(liveBroker)
}

// due says whether it is time to write.
func (h *History) due(now time.Time) bool {
	if !h.o.Keep {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.written.IsZero() {
		h.written = now // the first write is an interval after the start
		return false
	}
	return now.Sub(h.written) >= h.o.Interval
}

// Write writes what changed since it was last written, by anybody. What could not be written is tried again at the next
// time.
func (h *History) Write(ctx context.Context, now time.Time) error {
	if !h.o.Keep {
		return nil
	}
	h.writing.Lock()
	defer h.writing.Unlock()
	h.mu.Lock()
	h.written = now
	h.mu.Unlock()
	limit := 64
	if h.o.Stepwise {
		limit = 1 // one after the other, always the same
	}
	return errors.Join(h.bundles.write(ctx, h.o.Log, limit), h.averages.write(ctx, h.o.Log, limit))
}

// wire is what is kept: plain data that is compared and written as JSON.
type wire interface {
	event.BundleData | event.TimeAverageBrokerData
}

// kept is the values of one compacted topic: as the topic has them, and as they are now.
type kept[T wire] struct {
	topic string
	view  *tableview.View[T]

	mu     sync.Mutex
	now    map[string]T
	stored map[string]T // as the topic has it
	pub    topics.Publisher
}

func newKept[T wire](topic string, check func(string) error, logger *slog.Logger) *kept[T] {
	k := &kept[T]{topic: topic, now: map[string]T{}, stored: map[string]T{}}
	decode := func(b []byte) (T, error) {
		var v T
		err := json.Unmarshal(b, &v)
		return v, err
	}
	k.view = tableview.New(tableview.Options[T]{Decode: decode, CheckKey: check, Logger: logger})
	k.view.Listen(k.heard)
	return k
}

// heard takes over what the topic says. The echo of what this process wrote changes nothing; what another process wrote is
// newer than what is known here.
func (k *kept[T]) heard(c tableview.Change[T]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch c.Kind {
	case tableview.Put:
		if before, ok := k.stored[c.Key]; !ok || before != c.New.Value {
			k.stored[c.Key], k.now[c.Key] = c.New.Value, c.New.Value
		}
	case tableview.Removed:
		if _, ok := k.stored[c.Key]; ok {
			delete(k.stored, c.Key)
			delete(k.now, c.Key)
		}
	default:
	}
}

func (k *kept[T]) get(key string) *T {
	k.mu.Lock()
	defer k.mu.Unlock()
	if v, ok := k.now[key]; ok {
		return &v
	}
	return nil
}

func (k *kept[T]) put(key string, v T) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now[key] = v
}

func (k *kept[T]) forget(live func(string) bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.now, func(key string, _ T) bool { return !live(key) })
}

// write brings the topic to what is known now.
func (k *kept[T]) write(ctx context.Context, log topics.Log, limit int) error {
	changed, err := k.changed()
	if err != nil || len(changed) == 0 {
		return err
	}
	if k.pub == nil {
		if k.pub, err = log.Publisher(ctx, k.topic, topics.PublishOptions{}); err != nil {
			return fmt.Errorf("write %s: %w", k.topic, err)
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(limit)
	for _, c := range changed {
		g.Go(func() error { return k.publish(ctx, c) })
	}
	return g.Wait()
}

// change is a value to write; no payload is a tombstone.
type change[T wire] struct {
	key     string
	value   T
	payload []byte
}

func (k *kept[T]) changed() (out []change[T], err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, v := range k.now {
		if before, ok := k.stored[key]; ok && before == v {
			continue
		}
		payload, err := json.Marshal(&v)
		if err != nil {
			return nil, fmt.Errorf("write %s: %s: %w", k.topic, key, err)
		}
		out = append(out, change[T]{key, v, payload})
	}
	for key := range k.stored {
		if _, ok := k.now[key]; !ok {
			out = append(out, change[T]{key: key})
		}
	}
	slices.SortFunc(out, func(a, b change[T]) int { return strings.Compare(a.key, b.key) })
	return out, nil
}

// publish writes one value. It counts as stored from before it is sent, so that its echo is known as such.
func (k *kept[T]) publish(ctx context.Context, c change[T]) error {
	k.mu.Lock()
	before, had := k.stored[c.key]
	if c.payload == nil {
		delete(k.stored, c.key)
	} else {
		k.stored[c.key] = c.value
	}
	k.mu.Unlock()
	_, err := k.pub.Publish(ctx, c.key, c.payload)
	if err == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.stored, c.key); had {
		k.stored[c.key] = before
	}
	return fmt.Errorf("write %s: %s: %w", k.topic, c.key, err)
}

func (k *kept[T]) close() error {
	if k.pub == nil {
		return nil
	}
	err := k.pub.Close()
	k.pub = nil
	return err
}
