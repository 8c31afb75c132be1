package simulate

import (
	"bytes"
	"context"
	"fmt"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/topics"
)

// Hear takes an event that somebody else wrote on one of the system topics: brokers obey records of ownership whoever wrote
// them, and the leader decides from load data whoever published it. What cannot be read has no effect.
func (c *Cluster) Hear(topic, key string, payload []byte) {
	switch topic {
	case topics.BrokerLoadData, topics.TopBundles:
		if c.faults.silence(c.now, topic) == 0 {
			c.views.take(c.now, topic, key, payload)
		}
	case topics.ServiceUnitState:
		if len(payload) == 0 {
			c.fold(key, nil)
			return
		}
		d, err := event.Decode[event.ServiceUnitStateData](payload)
		if err != nil || d.State == "" {
			return
		}
		c.cause(key, Asked)
		c.fold(key, &d)
	}
}

// listen subscribes to what the cluster must hear from others.
func (e *Embedded) listen(ctx context.Context) error {
	e.ears = map[string]*topics.MemorySubscription{}
	for _, topic := range systemTopics {
		sub, err := e.log.Subscribe(ctx, topic, topics.SubscribeOptions{From: topics.Earliest})
		if err != nil {
			return fmt.Errorf("simulated cluster: %w", err)
		}
		e.ears[topic] = sub.(*topics.MemorySubscription)
	}
	return nil
}

var systemTopics = [...]string{topics.ServiceUnitState, topics.BrokerLoadData, topics.TopBundles}

// hear lets the cluster have what others wrote on a topic. own is what the cluster has just written there itself.
func (e *Embedded) hear(topic string, own *Event) error {
	for {
		m, ok, err := e.ears[topic].TryReceive()
		switch {
		case err != nil:
			return fmt.Errorf("simulated cluster: hear %s: %w", topic, err)
		case !ok:
			return nil
		case own != nil && m.Key == own.Key && bytes.Equal(m.Payload, own.Payload):
			own = nil
		default:
			e.c.Hear(m.Topic, m.Key, m.Payload)
		}
	}
}

func (e *Embedded) hearAll() error {
	for _, topic := range systemTopics {
		if err := e.hear(topic, nil); err != nil {
			return err
		}
	}
	return nil
}
