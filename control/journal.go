package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ballast-lb/ballast/topics"
)

// TopicJournal writes records to a topic.
type TopicJournal struct {
	log topics.Log
	pub topics.Publisher
	seq int64
}

// NewTopicJournal makes a journal on topics.Decisions. The topic is opened at the first record.
func NewTopicJournal(log topics.Log) *TopicJournal { return &TopicJournal{log: log} }

// Append writes one record and waits until it is stored.
func (j *TopicJournal) Append(ctx context.Context, r Record) error {
	e, err := j.event(r)
	if err != nil {
		return err
	}
	return j.publish(ctx, e.Key, e.Payload)
}

// event is a record as it is stored; one without a number gets the next.
func (j *TopicJournal) event(r Record) (topics.Event, error) {
	if r.Seq == 0 {
		j.seq++
		r.Seq = j.seq
	}
	payload, err := json.Marshal(r)
	return topics.Event{Key: r.Key(), Payload: payload}, err
}

// AppendAll writes records in their order, many on their way at once, and waits until all are stored. After an error any of them
// may be missing.
func (j *TopicJournal) AppendAll(ctx context.Context, rs []Record) error {
	events := make([]topics.Event, len(rs))
	for i, r := range rs {
		var err error
		if events[i], err = j.event(r); err != nil {
			return err
		}
	}
	if err := j.open(ctx); err != nil {
		return err
	}
	if err := errors.Join(topics.PublishAll(ctx, j.pub, events)...); err != nil {
		return fmt.Errorf("write %d records to %s: %w", len(rs), topics.Decisions, err)
	}
	return nil
}

// Delete removes a record.
func (j *TopicJournal) Delete(ctx context.Context, key string) error { return j.publish(ctx, key, nil) }

func (j *TopicJournal) open(ctx context.Context) error {
	if j.pub != nil {
		return nil
	}
	pub, err := j.log.Publisher(ctx, topics.Decisions, topics.PublishOptions{})
	if err != nil {
		return fmt.Errorf("open %s: %w", topics.Decisions, err)
	}
	j.pub = pub
	return nil
}

func (j *TopicJournal) publish(ctx context.Context, key string, payload []byte) error {
	if err := j.open(ctx); err != nil {
		return err
	}
	if _, err := j.pub.Publish(ctx, key, payload); err != nil {
		return fmt.Errorf("write to %s: %w", topics.Decisions, err)
	}
	return nil
}

// Close ends the journal.
func (j *TopicJournal) Close() error {
	if j.pub == nil {
		return nil
	}
	return j.pub.Close()
}

// Key is unique: brokers compact the topics of pulsar/system, and of two records with one key only the newer one stays.
// A leader's keys are epoch and number; who does not lead has its name and the time in place of the epoch, as a name can
// come back after a restart.
func (r Record) Key() string {
	if r.Epoch > 0 {
		return fmt.Sprintf("%d/%d/%s", r.Epoch, r.Seq, r.Kind)
	}
	return fmt.Sprintf("%s/%d/%d/%s", r.Instance, r.At, r.Seq, r.Kind)
}
