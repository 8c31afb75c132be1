package simulate

import (
	"time"

	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// Config is everything that a simulated cluster depends on. The same Config gives the same cluster, byte for byte.
type Config struct {
	Name       string // cluster name; "" = "simulated"
	Version    string // Pulsar version; "" = "4.2.4"
	Kind       Kind
	Seed       uint64             // of latencies, jitter, placement and failures
	Start      int64              // Unix ms of the cluster's first moment; 0 = 2026-01-01T00:00:00Z
	Settings   *settings.Settings // broker.conf; nil = Pulsar's defaults
	Brokers    []Broker
	Namespaces []Namespace
	System     int // bundles of pulsar/system; 0 = 4, negative = none
	Cost       Cost
	Timing     Timing
	Policies   *policy.Set  // nil = none
	Manager    plan.Manager // the cluster's own load manager: places bundles, and sheds and splits as Settings say; nil = places only
}

// Broker is what a broker is made of.
type Broker struct {
	ID         string  // host:webPort
	Version    string  // "" = the cluster's
	Cores      float64 // CPU limit is 100 x Cores
	HeapMiB    float64
	DirectMiB  float64
	NICKbit    float64 // kbit/s, each direction; 0 or less = unknown and unlimited
	Background Background
}

// Background is load that no move takes away: other processes on the broker's host.
type Background struct {
	CPU     float64 // percent of one core
	InKbit  float64 // kbit/s
	OutKbit float64 // kbit/s
}

// Namespace is a namespace with its bundles.
type Namespace struct {
	Name    string   // tenant/namespace
	Bundles []Bundle // in range order
}

// Bundle is a bundle and its traffic.
type Bundle struct {
	Range     string  // "0xLLLLLLLL_0xUUUUUUUU"; "" = its even part of the namespace, which then all bundles must leave open
	Traffic   Traffic // base traffic
	Shape     Shape   // how it changes; nil = constant
	Topics    []Topic // nil = NumTopics of equal share, spread over the range
	NumTopics int     // 0 = 1
	Producers int     // of each topic; 0 = 1
	Consumers int     // of each topic; 0 = 1
	Owner     string  // broker that owns it at the start; "" = placed by the cluster
}

// Topic is one topic of a bundle. Splitting a bundle divides its topics by Hash and its traffic by Share.
type Topic struct {
	Name  string // may be ""
	Hash  uint32
	Share float64 // part of the bundle's traffic, relative to the shares of its other topics
}

// Traffic is messages/second and bytes/second.
type Traffic struct {
	MsgIn, MsgOut, BytesIn, BytesOut float64
}

// Throughput is bytes/second in and out.
func (t Traffic) Throughput() float64 { return t.BytesIn + t.BytesOut }

// Plus adds traffic.
func (t Traffic) Plus(o Traffic) Traffic {
	return Traffic{t.MsgIn + o.MsgIn, t.MsgOut + o.MsgOut, t.BytesIn + o.BytesIn, t.BytesOut + o.BytesOut}
}

// Times multiplies traffic.
func (t Traffic) Times(f float64) Traffic { // rounded at once: no fused multiply-add
	return Traffic{float64(t.MsgIn * f), float64(t.MsgOut * f), float64(t.BytesIn * f), float64(t.BytesOut * f)}
}

// Messages is the traffic of a message rate, in and out alike, with messages of a size in bytes.
func Messages(rate, size float64) Traffic {
	return Traffic{MsgIn: rate, MsgOut: rate, BytesIn: rate * size, BytesOut: rate * size}
}

// Cost is what traffic costs a broker. The zero value means DefaultCost.
type Cost struct {
	CPUPerMsg    float64 // percent of one core for each msg/s, in or out
	CPUPerMB     float64 // percent of one core for each MB/s, in or out
	Replicas     float64 // bytes written to bookies for each byte that comes in
	HeapPerMB    float64 // MiB of heap allocated for each MB handled
	HeapIdle     float64 // MiB of heap allocated each second without traffic
	HeapFloor    float64 // fraction of the heap in use after a collection
	HeapCeiling  float64 // fraction of the heap at which a collection runs
	DirectFloor  float64 // MiB of direct memory without traffic
	DirectPerMBs float64 // MiB of direct memory for each MB/s
}

// DefaultCost is a small broker's: a core handles about 10,000 messages/s of 1 kB.
var DefaultCost = Cost{CPUPerMsg: 0.008, CPUPerMB: 2, Replicas: 1, HeapPerMB: 1.5, HeapIdle: 1, HeapFloor: 0.2,
	HeapCeiling: 0.9, DirectFloor: 16, DirectPerMBs: 1}

// Timing is how long things take. The zero value means DefaultTiming.
type Timing struct {
	Channel    time.Duration // from an ownership event to the broker that acts on it
	Close      time.Duration // closing a bundle
	CloseTopic time.Duration // more, for each of its topics
	Load       time.Duration // until a new owner serves a bundle
	LoadTopic  time.Duration // more, for each of its topics
	Lookup     time.Duration // from losing the owner to the next lookup by a client
	Admin      time.Duration // an admin request before it has an effect
	Split      time.Duration // splitting a bundle
	Session    time.Duration // metadata session time-out: how long a dead broker stays registered
	Boot       time.Duration // from starting a broker to its registration
	Jitter     float64       // each of these varies by this fraction, up and down
}

// DefaultTiming follows what real clusters of three small brokers took.
var DefaultTiming = Timing{Channel: 12 * time.Millisecond, Close: 60 * time.Millisecond, CloseTopic: 2 * time.Millisecond,
	Load: 40 * time.Millisecond, LoadTopic: 5 * time.Millisecond, Lookup: 200 * time.Millisecond, Admin: 30 * time.Millisecond,
	Split: 200 * time.Millisecond, Session: 30 * time.Second, Boot: 12 * time.Second, Jitter: 0.5}

// firstMoment is the start of clusters whose Config names none: 2026-01-01T00:00:00Z.
const firstMoment = 1767225600000

func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name = "simulated"
	}
	if c.Version == "" {
		c.Version = "4.2.4"
	}
	if c.Start == 0 {
		c.Start = firstMoment
	}
	if c.Settings == nil {
		c.Settings = settings.Defaults()
	}
	if c.Cost == (Cost{}) {
		c.Cost = DefaultCost
	}
	if c.Timing == (Timing{}) {
		c.Timing = DefaultTiming
	}
	return c
}
