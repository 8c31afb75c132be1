// Package topics is the event log: topic names, the Log interface and its in-memory implementation.
// topics/pulsar is the same log on a real cluster.
package topics

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The system topics of the Extensible load manager (Pulsar: ExtensibleLoadManagerImpl, ServiceUnitStateTableViewImpl).
const (
	BrokerLoadData   = "non-persistent://pulsar/system/loadbalancer-broker-load-data"
	TopBundles       = "non-persistent://pulsar/system/loadbalancer-top-bundles-load-data"
	ServiceUnitState = "persistent://pulsar/system/loadbalancer-service-unit-state"
)

// Ballast's own topics. They live in Pulsar's system namespace, whose bundles are never managed. Brokers compact every
// topic there within a minute, whatever the policies say, and then delete its history: what must be found again needs a
// key of its own, and is found by a Compacted subscription only.
const (
	Decisions = "persistent://pulsar/system/ballast-decisions" // what was planned, done and what came of it
	Takeover  = "persistent://pulsar/system/ballast-takeover"  // compacted: the settings found before a take-over
	Leader    = "persistent://pulsar/system/ballast-leader"    // the exclusive producer on it is the lock
	Reporter  = "persistent://pulsar/system/ballast-reporter"  // the exclusive producer on it is the reporter's lock
	Reported  = "persistent://pulsar/system/ballast-reported"  // compacted: on which topics the reporter has something, by broker id
	Commands  = "persistent://pulsar/system/ballast-commands"  // what operators ask of the leader

	LocalBrokerData = "non-persistent://pulsar/system/ballast-local-broker-data" // whole load reports of Modular and Simple brokers, by broker id
	BundleStats     = "non-persistent://pulsar/system/ballast-bundle-stats"      // every bundle that a broker serves, by broker id
	BundleData      = "persistent://pulsar/system/ballast-bundle-data"           // compacted: the history of each bundle, by bundle
	BrokerAverages  = "persistent://pulsar/system/ballast-broker-averages"       // compacted: time averages of each broker, by broker id
)

// MessageID places a message in a persistent topic. It is the zero value for non-persistent topics. Batch is -1 outside batches.
type MessageID struct {
	Ledger int64
	Entry  int64
	Batch  int32
}

// Less orders ids of one topic.
func (a MessageID) Less(b MessageID) bool {
	if a.Ledger != b.Ledger {
		return a.Ledger < b.Ledger
	}
	if a.Entry != b.Entry {
		return a.Entry < b.Entry
	}
	return a.Batch < b.Batch
}

func (a MessageID) String() string { return fmt.Sprintf("%d:%d:%d", a.Ledger, a.Entry, a.Batch) }

// Message is one event. An empty Payload is a tombstone: the key has no value any more.
type Message struct {
	Topic       string
	Key         string
	Payload     []byte
	ID          MessageID
	PublishTime time.Time // by the producer's clock
	Received    time.Time // by our clock: when it came to this process, however long it waited there; ages are counted from here
	Producer    string
	Recovered   bool // fetched over admin REST because the client library dropped it
}

// Tombstone says whether the message removes its key.
func (m Message) Tombstone() bool { return len(m.Payload) == 0 }

// Position is where a subscription starts.
type Position int

// The starting positions. A non-persistent topic has no history: there both are the same.
const (
	Latest Position = iota
	Earliest
)

// Schema is the schema a producer declares. The zero value declares none.
type Schema struct {
	Name       string            // "" as the brokers declare it
	Definition string            // Avro definition, exactly the brokers' text
	Properties map[string]string // __alwaysAllowNull, __jsr310ConversionEnabled
}

// SubscribeOptions say where and how to read a topic.
type SubscribeOptions struct {
	From      Position
	Compacted bool          // read the compacted view; persistent topics only
	Silence   time.Duration // resubscribe after hearing nothing for this long; 0 = never
	Existing  bool          // ErrNoTopic when the topic does not exist, instead of creating it
}

// Status is the health of a subscription: what it heard and how long it was blind.
type Status struct {
	Connected   bool
	CaughtUp    bool          // everything that the topic held when asked has been delivered; always true for non-persistent topics once connected
	Last        MessageID     // id of the last message delivered
	LastHeard   time.Time     // by our clock; zero before the first message
	Messages    int64         // delivered, tombstones included
	Tombstones  int64         // delivered tombstones
	Recovered   int64         // messages fetched over admin REST because the client library dropped them
	Lost        int64         // messages known to be missing and not recovered
	Uncertain   int64         // times something may be missing: what followed the last message was deleted before it could be asked for
	Discarded   int64         // messages of a non-persistent topic that the client library threw away unread (lone tombstones)
	Skipped     int64         // messages left out because they were larger than what is accepted
	Resubscribe int64         // how often the subscription was made again
	Blind       time.Duration // total time without a working subscription since the first one
	BlindSince  time.Time     // start of the present blindness; zero when connected
	LastError   string        // the newest trouble, "" if none
}

// Subscription delivers the messages of one topic in order. It survives restarts of brokers and unloading of the topic.
// One goroutine at a time may call Receive; Status and Close may be called from any.
type Subscription interface {
	// Receive waits for the next message. It returns ctx.Err() when ctx ends and ErrClosed after Close.
	Receive(ctx context.Context) (Message, error)
	Status() Status
	Close() error
}

// Publisher writes to one topic.
type Publisher interface {
	// Publish sends one event and waits until it is accepted. An empty payload is a tombstone.
	Publish(ctx context.Context, key string, payload []byte) (MessageID, error)
	Close() error
}

// PublishOptions say how a publisher is made.
type PublishOptions struct {
	Schema       Schema
	Alternatives []Schema // other definitions that would do as well: the registered one is declared
	Exclusive    bool     // only one publisher at a time; ErrFenced for the others
	Wait         bool     // with Exclusive: wait for one's turn instead of failing

	// SendTimeout is when an event that was not acknowledged fails; 0 = the log's own. The log in memory answers at once.
	SendTimeout time.Duration
}

// Log is an event log. Implementations are held to the behaviour test in topics/logtest.
type Log interface {
	Subscribe(ctx context.Context, topic string, o SubscribeOptions) (Subscription, error)
	Publisher(ctx context.Context, topic string, o PublishOptions) (Publisher, error)
	Close() error
}

var (
	// ErrClosed is returned by what was closed.
	ErrClosed = errors.New("closed")
	// ErrFenced is returned when another exclusive publisher holds the topic, or took it over.
	ErrFenced = errors.New("another exclusive publisher holds the topic")
	// ErrNoTopic is returned by Subscribe with Existing when there is no such topic.
	ErrNoTopic = errors.New("no such topic")
	// ErrSchemaMismatch is returned when a topic's registered schema is not the one that would be published with.
	ErrSchemaMismatch = errors.New("the topic's registered schema differs")
)
