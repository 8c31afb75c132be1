package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/jsonfloat"
	"github.com/ballast-lb/ballast/manager"
	"github.com/ballast-lb/ballast/monitor"
	"github.com/ballast-lb/ballast/topics"
)

// history is what Ballast keeps on the log of bundles and brokers; both are empty where nobody keeps it.
type history struct {
	bundles map[string]event.BundleData
	brokers map[string]event.TimeAverageBrokerData
}

// history reads the averages that are kept on topics.
func (s *session) history(ctx context.Context) (h history, err error) {
	if h.bundles, err = readKept[event.BundleData](ctx, s.log, topics.BundleData); err != nil {
		return h, err
	}
	h.brokers, err = readKept[event.TimeAverageBrokerData](ctx, s.log, topics.BrokerAverages)
	return h, err
}

// readKept reads a compacted topic to its end: the latest value of each key. A topic that does not exist holds nothing.
func readKept[T any, P interface {
	*T
	json.Unmarshaler
}](ctx context.Context, log topics.Log, topic string) (map[string]T, error) {
	sub, err := log.Subscribe(ctx, topic, topics.SubscribeOptions{From: topics.Earliest, Compacted: true, Existing: true})
	if errors.Is(err, topics.ErrNoTopic) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	defer sub.Close()
	out := map[string]T{}
	err = topics.Drain(ctx, sub, func(m topics.Message) error {
		if m.Tombstone() {
			delete(out, m.Key)
			return nil
		}
		v, err := event.Decode[T, P](m.Payload)
		if err != nil {
			return fmt.Errorf("message %v: %w", m.ID, err)
		}
		out[m.Key] = v
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topic, err)
	}
	return out, nil
}

// brokerRows are the brokers of a picture.
func brokerRows(p *picture, h history) []monitor.Broker {
	out := make([]monitor.Broker, 0, len(p.brokers))
	for i := range p.brokers {
		b := &p.brokers[i]
		row := b.row(p.at.UnixMilli())
		row.Leads = b.ID == p.leader
		if avg, ok := h.brokers[b.ID]; ok {
			row.Short, row.Long = monitor.AveragesOf(&avg)
		}
		out = append(out, row)
	}
	return out
}

// row is a broker with what its report or its load data say.
func (b *seen) row(now int64) monitor.Broker {
	row := monitor.Broker{ID: b.ID, Version: b.Version, Manager: b.Runs().String(), Error: b.Error}
	if b.statsRead {
		var topics, producers, consumers int64
		for i := range b.stats {
			topics += b.stats[i].Stats.Topics
			producers += int64(b.stats[i].Stats.ProducerCount)
			consumers += int64(b.stats[i].Stats.ConsumerCount)
		}
		bundles := int64(len(b.stats))
		row.Bundles, row.Topics, row.Producers, row.Consumers, row.Now = &bundles, &topics, &producers, &consumers, monitor.Sum(b.stats)
	}
	switch {
	case b.local != nil:
		d := b.local
		row.Usage, row.Age = monitor.UsageOf(d.CPU, d.Memory, d.DirectMemory, d.BandwidthIn, d.BandwidthOut), since(now, d.LastUpdate)
	case b.report != nil:
		if u := b.report.SystemResourceUsage; u != nil {
			row.Usage = monitor.UsageOf(u.CPU, u.Memory, u.DirectMemory, u.BandwidthIn, u.BandwidthOut)
		}
		row.Age = since(now, b.report.Timestamp)
	case b.load != nil:
		d := b.load.Load
		row.Usage, row.Age, row.Estimated = monitor.UsageOf(d.CPU, d.Memory, d.DirectMemory, d.BandwidthIn, d.BandwidthOut), since(now, b.load.LoadHeard), b.load.Estimated
		if !b.load.Estimated {
			load, throughput := jsonfloat.Float(d.WeightedMaxEMA), jsonfloat.Float(d.MsgThroughputEMA)
			row.LoadEMA, row.ThroughputEMA = &load, &throughput
		}
	}
	return row
}

// since is the age of what was said at a time, nil if that is not known. Clocks may differ: it is never negative.
func since(now, then int64) *int64 {
	if then <= 0 {
		return nil
	}
	age := max(0, now-then)
	return &age
}

// bundleRows are the bundles of a picture: those that brokers have statistics of, those that they own without topics in use,
// and on an Extensible cluster those that are on their way.
func bundleRows(p *picture, h history) []monitor.Bundle {
	rows := map[string]*monitor.Bundle{}
	var order []string
	row := func(name string) *monitor.Bundle {
		if r := rows[name]; r != nil {
			return r
		}
		r := &monitor.Bundle{Name: name, Namespace: event.NamespaceOf(name)}
		if d, ok := h.bundles[name]; ok {
			r.Short, r.Long = monitor.AverageOf(&d.ShortTermData), monitor.AverageOf(&d.LongTermData)
		}
		rows[name] = r
		order = append(order, name)
		return r
	}
	for i := range p.brokers {
		b := &p.brokers[i]
		for _, name := range b.owned {
			row(name).Owner = b.ID
		}
		for k := range b.stats {
			s := &b.stats[k]
			r := row(s.Bundle)
			if r.Now != nil && slices.Contains(b.owned, s.Bundle) == (r.Owner != b.ID) {
				continue // it has just moved: its owner's figures count
			}
			r.Topics, r.Producers, r.Consumers, r.Now = &s.Stats.Topics, &s.Stats.ProducerCount, &s.Stats.ConsumerCount, monitor.Of(&s.Stats)
			if r.Owner == "" {
				r.Owner = b.ID
			}
		}
	}
	for name, s := range p.states {
		if s.Owner == "" && (s.State == event.Init || s.State == event.Free || s.State == event.Deleted) {
			if r := rows[name]; r != nil {
				r.State = string(s.State)
			}
			continue
		}
		r := row(name)
		r.State, r.Owner = string(s.State), s.Owner
	}
	out := make([]monitor.Bundle, 0, len(order))
	for _, name := range order {
		out = append(out, *rows[name])
	}
	return out
}

// missingFrom says what a picture lacks, for people.
func missingFrom(p *picture, h history) (notes []string) {
	for i := range p.brokers {
		b := &p.brokers[i]
		if b.stored != "" {
			notes = append(notes, fmt.Sprintf("%s: the load report in ZooKeeper is shown, which may be older, as it does not give its own: %s", b.ID, b.stored))
		}
		switch {
		case b.Error != "" && b.Error == b.stored:
		case b.another:
			notes = append(notes, fmt.Sprintf("nothing is known of %s: %s", b.ID, b.Error))
		case b.Error != "":
			notes = append(notes, fmt.Sprintf("%s does not say everything: %s", b.ID, b.Error))
		case b.load != nil && b.load.Estimated:
			notes = append(notes, fmt.Sprintf("%s has not published its load yet: its usage is estimated from its metrics", b.ID))
		case b.Runs() == manager.Extensible && b.load == nil:
			notes = append(notes, fmt.Sprintf("%s has not published its load yet", b.ID))
		}
	}
	notes = append(notes, p.frozen...)
	if len(h.bundles) == 0 && len(h.brokers) == 0 {
		notes = append(notes, "there are no averages of this cluster on "+topics.BundleData+", where who governs writes them each minute: short and long term are blank")
	}
	return notes
}
