package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/event"
)

// TopicStats is the traffic of one topic.
type TopicStats struct {
	Topic            string // persistent://tenant/ns/name
	Bundle           string // tenant/ns/0x........_0x........
	MsgRateIn        float64
	MsgThroughputIn  float64
	MsgRateOut       float64
	MsgThroughputOut float64
	Producers        int32
	Consumers        int32
}

// TopicStats are the statistics of all topics that a broker serves, ordered by bundle and name. Brokers renew them once
// a minute by default.
func (c *Client) TopicStats(ctx context.Context, broker string) (topics []TopicStats, err error) {
	ctx = allowAnswer(ctx, 32*c.options.MaxAnswer)
	err = c.readAt(ctx, "topics of "+broker, broker, c.get("/admin/v2/broker-stats/topics", func(r io.Reader) error {
		topics, err = readTopicStats(r)
		return err
	}))
	slices.SortFunc(topics, func(a, b TopicStats) int {
		return or(strings.Compare(a.Bundle, b.Bundle), strings.Compare(a.Topic, b.Topic))
	})
	return topics, err
}

// readTopicStats reads namespace -> range -> domain -> topic -> statistics, one topic at a time.
func readTopicStats(r io.Reader) (out []TopicStats, err error) {
	d := json.NewDecoder(r)
	err = eachMember(d, func(namespace string) error {
		return eachMember(d, func(hashRange string) error {
			b, err := event.ParseBundle(namespace + "/" + hashRange)
			if err != nil {
				return answerError("%v", err)
			}
			return eachMember(d, func(string) error {
				return eachMember(d, func(topic string) error {
					var s topicAnswer
					if err := d.Decode(&s); err != nil {
						return fmt.Errorf("topic %s: %w", topic, err)
					}
					out = append(out, s.stats(topic, b.String()))
					return nil
				})
			})
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// eachMember calls f for the name of each member of the object that comes next; f reads its value.
func eachMember(d *json.Decoder, f func(name string) error) error {
	if err := delimiter(d, '{'); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		if err := f(fmt.Sprint(name)); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return delimiter(d, '}')
}

type topicAnswer struct {
	MsgRateIn        float64
	MsgThroughputIn  float64
	MsgRateOut       float64
	MsgThroughputOut float64
	ProducerCount    int32
	Subscriptions    map[string]struct {
		Consumers []struct{}
	}
}

func (s *topicAnswer) stats(topic, bundle string) TopicStats {
	out := TopicStats{
		Topic: topic, Bundle: bundle, MsgRateIn: s.MsgRateIn, MsgThroughputIn: s.MsgThroughputIn,
		MsgRateOut: s.MsgRateOut, MsgThroughputOut: s.MsgThroughputOut, Producers: s.ProducerCount,
	}
	for _, sub := range s.Subscriptions {
		out.Consumers += int32(len(sub.Consumers))
	}
	return out
}

// bundleStats sums topics, which are ordered by bundle, to bundles.
func bundleStats(topics []TopicStats) (out []event.NamedBundleStats) {
	for _, t := range topics {
		if len(out) == 0 || out[len(out)-1].Bundle != t.Bundle {
			out = append(out, event.NamedBundleStats{Bundle: t.Bundle})
		}
		s := &out[len(out)-1].Stats
		s.MsgRateIn += t.MsgRateIn
		s.MsgThroughputIn += t.MsgThroughputIn
		s.MsgRateOut += t.MsgRateOut
		s.MsgThroughputOut += t.MsgThroughputOut
		s.ProducerCount += t.Producers
		s.ConsumerCount += t.Consumers
		s.Topics++
	}
	return out
}

// BundleStats are the statistics of all bundles that a broker serves, ordered by name, summed over the topics' own. Brokers
// renew those once a minute by default, and make a long answer of them: ask seldom.
func (c *Client) BundleStats(ctx context.Context, broker string) ([]event.NamedBundleStats, error) {
	topics, err := c.TopicStats(ctx, broker)
	if err != nil {
		return nil, err
	}
	return bundleStats(topics), nil
}

// LoadReport is a broker's load report: one of the two, depending on its load manager.
type LoadReport = event.BrokerReport

// LoadReport makes a broker tell its load. An Extensible one cannot: errors.Is(err, Unsupported).
func (c *Client) LoadReport(ctx context.Context, broker string) (report LoadReport, err error) {
	ctx = allowAnswer(ctx, 2*c.options.MaxAnswer) // it names every bundle that the broker serves
	err = c.readAt(ctx, "load report of "+broker, broker, c.get("/admin/v2/broker-stats/load-report", func(r io.Reader) error {
		document, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		report, err = event.DecodeReport(document)
		return err
	}))
	if err != nil {
		return LoadReport{}, err
	}
	return report, nil
}

// LoadManagerOf is the class name of the load manager that a broker runs, as its runtime configuration says.
func (c *Client) LoadManagerOf(ctx context.Context, broker string) (string, error) {
	config, err := c.RuntimeConfigOf(ctx, broker)
	if err != nil {
		return "", err
	}
	class := config["loadManagerClassName"]
	if class == "" {
		return "", &Error{Op: "load manager of " + broker, Kind: BadAnswer, Reason: "the runtime configuration has no loadManagerClassName", RetrySafe: true}
	}
	return class, nil
}
