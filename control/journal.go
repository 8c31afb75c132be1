package control

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ballast-lb/ballast/topics"
)

// TopicJournal writes records to a topic.
type TopicJournal struct {
	log topics.Log
	pub topics.Publisher
}

// NewTopicJournal makes a journal on topics.Decisions. The topic is opened at the first record.
func NewTopicJournal(log topics.Log) *TopicJournal { return &TopicJournal{log: log} }

// Append writes one record and waits until it is stored.
func (j *TopicJournal) Append(ctx context.Context, r Record) error {
	if j.pub == nil {
		pub, err := j.log.Publisher(ctx, topics.Decisions, topics.PublishOptions{})
		if err != nil {
			return fmt.Errorf("open %s: %w", topics.Decisions, err)
		}
		j.pub = pub
	}
	payload, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = j.pub.Publish(ctx, r.key(), payload)
	return err
}

// Close ends the journal.
func (j *TopicJournal) Close() error {
	if j.pub == nil {
		return nil
	}
	return j.pub.Close()
}

// key is unique: brokers compact the topics of pulsar/system, and of two records with one key only the newer one stays.
func (r Record) key() string {
	subject := ""
	switch {
	case r.Decision != nil:
		subject = "/" + r.Decision.Bundle
	case r.Outcome != nil:
		subject = "/" + r.Outcome.Decision.Bundle
	}
	return fmt.Sprintf("%s/%d/%s%s", r.Instance, r.Cycle, r.Kind, subject)
}
