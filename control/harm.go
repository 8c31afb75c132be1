package control

import (
	"context"
	"math"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/guard"
)

// BrokerMetrics reads the metrics of a broker whose names have one of the prefixes. admin.Client is one.
type BrokerMetrics interface {
	Metrics(ctx context.Context, broker string, prefixes ...string) ([]admin.Sample, error)
}

// The metrics that say what clients see: a summary in ms over the last minutes, and a count of connections since the start.
const (
	publishLatency     = "pulsar_broker_publish_latency"
	connectionsCreated = "pulsar_connection_created_total_count"
)

// HarmReader reads what clients see of brokers. It remembers the counts of the last reading, for rates. It is for one goroutine at
// a time. Brokers of the Extensible load manager count a reading as a load update: read those that moves are about, once a cycle.
type HarmReader struct {
	metrics BrokerMetrics
	last    map[string]connections
}

type connections struct {
	at    time.Time
	count float64
}

// NewHarmReader makes a reader.
func NewHarmReader(m BrokerMetrics) *HarmReader {
	return &HarmReader{metrics: m, last: map[string]connections{}}
}

// Read asks the brokers. One that does not answer is left out: nothing is known of its clients. The first reading of a broker,
// and the first after its restart, have no rate.
func (r *HarmReader) Read(ctx context.Context, brokers []string, now time.Time) guard.Harm {
	h := guard.Harm{At: now.UnixMilli()}
	for _, id := range brokers {
		samples, err := r.metrics.Metrics(ctx, id, publishLatency, connectionsCreated)
		if err != nil {
			delete(r.last, id)
			continue
		}
		latency, count := clientsOf(samples)
		c := guard.Clients{Broker: id, Latency: latency, Reconnects: -1}
		before, ok := r.last[id]
		if seconds := now.Sub(before.at).Seconds(); ok && count >= before.count && seconds > 0 {
			c.Reconnects = (count - before.count) / seconds
		}
		if delete(r.last, id); count >= 0 {
			r.last[id] = connections{at: now, count: count}
		}
		h.Brokers = append(h.Brokers, c)
	}
	return h
}

// clientsOf is the 99th percentile of publish latency (ms) and how many connections were opened since the broker started; -1 for
// what the metrics do not tell. A broker to which nobody published says NaN.
func clientsOf(samples []admin.Sample) (latency, created float64) {
	latency, created = -1, -1
	for _, s := range samples {
		usable := s.Value >= 0 && !math.IsInf(s.Value, 1)
		switch {
		case s.Name == publishLatency && s.Labels["quantile"] == "0.99" && usable:
			latency = max(latency, s.Value)
		case s.Name == connectionsCreated && usable:
			created = max(created, 0) + s.Value
		}
	}
	return latency, created
}
