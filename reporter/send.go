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
	open map[string]topics.Publisher
}

// send publishes one event. After an error the publisher is made anew at the next event: a non-persistent topic is gone when
// the broker that had it is, and is then created again.
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
	pub, err := s.publisher(ctx, e.Topic)
	if err != nil {
		return err
	}
	if _, err := pub.Publish(ctx, e.Key, payload); err != nil {
		s.mu.Lock()
		if s.open[e.Topic] == pub {
			delete(s.open, e.Topic)
		}
		s.mu.Unlock()
		return errors.Join(fmt.Errorf("report %s: %w", e.Key, err), pub.Close())
	}
	s.o.Metrics.sent(e)
	return nil
}

func (s *sinks) publisher(ctx context.Context, topic string) (topics.Publisher, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pub := s.open[topic]; pub != nil {
		return pub, nil
	}
	if err := s.o.Cluster.CreateTopic(ctx, topic); err != nil {
		return nil, fmt.Errorf("create %s: %w", topic, err)
	}
	pub, err := s.o.Log.Publisher(ctx, topic, declared(topic, s.o.Version))
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	s.open[topic] = pub
	return pub, nil
}

func (s *sinks) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, topic := range slices.Sorted(maps.Keys(s.open)) {
		errs = append(errs, s.open[topic].Close())
	}
	s.open = map[string]topics.Publisher{}
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
