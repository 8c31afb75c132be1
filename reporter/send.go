package reporter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/topics"
)

// sinks are the publishers, made as they are needed.
type sinks struct {
	o *Options

	mu   sync.Mutex
	open map[string]*sink
}

// sink is the publisher of one topic. After an error its publisher is made anew for the next event: a non-persistent topic is
// gone when the broker that had it is, and is then created again. Who is sending through the one before goes on with it.
type sink struct {
	mu  sync.Mutex
	now *shared // nil = to be made
}

// shared is a publisher that several send through at once. The last one closes it when it is used no more.
type shared struct {
	topics.Publisher
	users   int
	retired bool
}

// send publishes one event.
func (s *sinks) send(ctx context.Context, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	var payload []byte
	if e.Value != nil {
		var err error
		if payload, err = e.Value.MarshalJSON(); err != nil {
			return fmt.Errorf("report %s: %w", e.Key, err)
		}
	}
	to := s.to(e.Topic)
	pub, err := to.take(ctx, s.o, e.Topic)
	if err != nil {
		return err
	}
	_, err = pub.Publish(ctx, e.Key, payload)
	if err != nil {
		err = fmt.Errorf("report %s: %w", e.Key, err)
	} else {
		s.o.Metrics.sent(e)
	}
	return errors.Join(err, to.giveBack(pub, err != nil))
}

func (s *sinks) to(topic string) *sink {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[topic] == nil {
		s.open[topic] = &sink{}
	}
	return s.open[topic]
}

// take is the publisher of the topic; giveBack is due when the event is sent.
func (k *sink) take(ctx context.Context, o *Options, topic string) (*shared, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == nil {
		if err := o.Cluster.CreateTopic(ctx, topic); err != nil {
			return nil, fmt.Errorf("create %s: %w", topic, err)
		}
		pub, err := o.Log.Publisher(ctx, topic, declared(topic, o.Version))
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		k.now = &shared{Publisher: pub}
	}
	k.now.users++
	return k.now, nil
}

// giveBack ends a use of a publisher; failed: it is not used for what comes.
func (k *sink) giveBack(pub *shared, failed bool) error {
	k.mu.Lock()
	pub.users--
	if failed {
		k.retire(pub)
	}
	last := pub.retired && pub.users == 0
	k.mu.Unlock()
	if !last {
		return nil
	}
	return pub.Close()
}

// retire keeps a publisher from being taken again.
func (k *sink) retire(pub *shared) {
	pub.retired = true
	if k.now == pub {
		k.now = nil
	}
}

func (s *sinks) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, topic := range slices.Sorted(maps.Keys(s.open)) {
		k := s.open[topic]
		k.mu.Lock()
		if pub := k.now; pub != nil {
			if k.retire(pub); pub.users == 0 {
				errs = append(errs, pub.Close())
			}
		}
		k.mu.Unlock()
	}
	s.open = map[string]*sink{}
	return errors.Join(errs...)
}

// declared is the schema that brokers of the version register on a topic; any other that brokers register does as well. On
// topics of Ballast's own none is declared.
func declared(topic, version string) (o topics.PublishOptions) {
	class := map[string]string{topics.BrokerLoadData: "BrokerLoadData", topics.TopBundles: "TopBundlesLoadData"}[topic]
	if class == "" {
		return o
	}
	all := event.SchemasOf(class)
	wanted := all[0]
	if s, ok := event.SchemaOf(class, version); ok {
		wanted = s
	}
	for _, s := range all {
		if s.Definition != wanted.Definition {
			o.Alternatives = append(o.Alternatives, topics.Schema{Definition: s.Definition, Properties: s.Properties()})
		}
	}
	o.Schema = topics.Schema{Definition: wanted.Definition, Properties: wanted.Properties()}
	return o
}
