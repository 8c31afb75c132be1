package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// TakeOver is what was changed in a cluster's dynamic configuration, kept on the compacted topic topics.Takeover under the
// cluster's name from before the first change until after the last one is undone.
type TakeOver struct {
	Version  int                `json:"version"`
	Instance string             `json:"instance"`
	At       int64              `json:"at"`       // Unix ms
	Found    map[string]*string `json:"found"`    // values before; null = the key was absent
	Set      map[string]string  `json:"set"`      // values written
	Released bool               `json:"released"` // true once everything was put back
}

// takeOverSettings are the keys that are written while Ballast governs: the built-in shedder off, a report at least every
// minute. Built-in splitting stays as it is.
var takeOverSettings = map[string]string{
	"loadBalancerSheddingEnabled":                "false",
	"loadBalancerReportUpdateMaxIntervalMinutes": "1",
}

// TakeOvers reads and writes take-overs.
type TakeOvers struct {
	log      topics.Log
	cluster  Cluster
	instance string
	now      func() time.Time
}

// NewTakeOvers makes the keeper of take-overs of one instance.
func NewTakeOvers(log topics.Log, cluster Cluster, instance string, now func() time.Time) *TakeOvers {
	return &TakeOvers{log: log, cluster: cluster, instance: instance, now: now}
}

// takeOverLimit is how long reading the records of take-overs may take.
const takeOverLimit = time.Minute

// Current is the take-over that has not been undone, nil if there is none.
func (t *TakeOvers) Current(ctx context.Context) (*TakeOver, error) {
	name, err := t.cluster.Name(ctx)
	if err != nil {
		return nil, err
	}
	sub, err := t.log.Subscribe(ctx, topics.Takeover, topics.SubscribeOptions{From: topics.Earliest, Compacted: true, Existing: true})
	if errors.Is(err, topics.ErrNoTopic) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topics.Takeover, err)
	}
	defer sub.Close()
	ctx, cancel := context.WithTimeout(ctx, takeOverLimit)
	defer cancel()
	var found *TakeOver
	err = topics.Drain(ctx, sub, func(m topics.Message) error {
		if m.Key != name || m.Tombstone() {
			return nil
		}
		record := new(TakeOver)
		if err := json.Unmarshal(m.Payload, record); err != nil {
			return fmt.Errorf("message %v: %w", m.ID, err)
		}
		if found = record; record.Released {
			found = nil
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topics.Takeover, err)
	}
	return found, nil
}

// Begin writes what it finds, then switches the built-in shedder off. A take-over that was left behind by a process that
// died is undone first, so that what is kept is always the operator's own configuration.
func (t *TakeOvers) Begin(ctx context.Context) (*TakeOver, error) {
	if _, err := t.Release(ctx); err != nil {
		return nil, fmt.Errorf("undo an earlier take-over: %w", err)
	}
	dynamic, err := t.cluster.DynamicConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the dynamic configuration: %w", err)
	}
	record := &TakeOver{Version: RecordVersion, Instance: t.instance, At: t.now().UnixMilli(),
		Found: map[string]*string{}, Set: maps.Clone(takeOverSettings)}
	for key := range record.Set {
		record.Found[key] = nil
		if v, ok := dynamic[key]; ok {
			record.Found[key] = &v
		}
	}
	if err := t.publish(ctx, record); err != nil {
		return nil, err
	}
	for _, key := range slices.Sorted(maps.Keys(record.Set)) {
		if err := t.cluster.SetDynamicConfig(ctx, key, record.Set[key]); err != nil {
			return record, fmt.Errorf("set %s=%s: %w", key, record.Set[key], err)
		}
	}
	return record, nil
}

// Restored says what Release did with one key.
type Restored struct {
	Key   string  `json:"key"`
	Value *string `json:"value"`          // what stands there now; nil = absent
	Kept  bool    `json:"kept,omitempty"` // somebody else had changed it since: left alone
}

// Release puts back exactly what was there before the take-over: a value that was absent is deleted. A key that no longer
// holds what Ballast wrote was changed by somebody else and is left alone. No take-over: nothing to do.
func (t *TakeOvers) Release(ctx context.Context) ([]Restored, error) {
	record, err := t.Current(ctx)
	if err != nil || record == nil {
		return nil, err
	}
	dynamic, err := t.cluster.DynamicConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the dynamic configuration: %w", err)
	}
	var done []Restored
	for _, key := range slices.Sorted(maps.Keys(record.Set)) {
		found, now := record.Found[key], lookup(dynamic, key)
		switch {
		case equal(now, found): // never set, or already put back
		case !equal(now, ptr(record.Set[key])):
			done = append(done, Restored{Key: key, Value: now, Kept: true})
			continue
		case found == nil:
			err = t.cluster.DeleteDynamicConfig(ctx, key)
		default:
			err = t.cluster.SetDynamicConfig(ctx, key, *found)
		}
		if err != nil {
			return done, fmt.Errorf("put %s back: %w", key, err)
		}
		done = append(done, Restored{Key: key, Value: found})
	}
	record.Released = true
	return done, t.publish(ctx, record)
}

func (t *TakeOvers) publish(ctx context.Context, record *TakeOver) error {
	name, err := t.cluster.Name(ctx)
	if err != nil {
		return err
	}
	payload, err := json.Marshal(record)
	if err != nil {
		return err
	}
	pub, err := t.log.Publisher(ctx, topics.Takeover, topics.PublishOptions{})
	if err != nil {
		return fmt.Errorf("write %s: %w", topics.Takeover, err)
	}
	defer pub.Close()
	if _, err := pub.Publish(ctx, name, payload); err != nil {
		return fmt.Errorf("write %s: %w", topics.Takeover, err)
	}
	return nil
}

func lookup(m map[string]string, key string) *string {
	if v, ok := m[key]; ok {
		return &v
	}
	return nil
}

func ptr(s string) *string { return &s }

func equal(a, b *string) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
