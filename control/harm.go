package control

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"slices"
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

// Harmed reads what clients see of brokers. HarmReader does.
type Harmed interface {
	// Read asks the brokers. It takes what the reading before left, and returns what the next one needs.
	Read(ctx context.Context, brokers []string, now time.Time, before HarmState) (guard.Harm, HarmState)
}

// HarmState is how many connections brokers had opened at the last reading, for rates. It is versioned, plain data; the zero value
// is before the first reading. It is in the decision log's memory, so that a new leader reads what the one before would have.
type HarmState struct {
	Version int                    `json:"version"`
	Brokers map[string]Connections `json:"brokers,omitempty"` // by broker id
}

// Connections is a count since the broker started, and when it was read.
type Connections struct {
	At    int64   `json:"at"` // Unix ms
	Count float64 `json:"count"`
}

// HarmReader reads what clients see of brokers from their metrics. It is for one goroutine at a time. Brokers of the Extensible load
// manager count a reading as a load update: read those that moves are about, once a cycle.
type HarmReader struct {
	metrics BrokerMetrics
	limit   time.Duration
	logger  *slog.Logger
	failed  map[string]bool // brokers that did not answer, which was said
}

// NewHarmReader makes a reader. limit is how long all brokers of a reading together may take; those that had no turn by then are left out.
func NewHarmReader(m BrokerMetrics, limit time.Duration, logger *slog.Logger) *HarmReader {
	return &HarmReader{metrics: m, limit: limit, logger: logger, failed: map[string]bool{}}
}

// Read implements Harmed. A broker that does not answer is left out: nothing is known of its clients. That is logged once, until it
// answers again. The first reading of a broker, and the first after its restart, have no rate; brokers that are not asked are
// forgotten.
func (r *HarmReader) Read(ctx context.Context, brokers []string, now time.Time, before HarmState) (guard.Harm, HarmState) {
	ctx, cancel := context.WithTimeout(ctx, r.limit)
	defer cancel()
	h, next := guard.Harm{At: now.UnixMilli()}, HarmState{Version: 1, Brokers: map[string]Connections{}}
	for _, id := range brokers {
		samples, err := r.metrics.Metrics(ctx, id, publishLatency, connectionsCreated)
		if err != nil {
			if !r.failed[id] {
				r.logger.Warn("what clients see is not known: the metrics cannot be read", "broker", id, "error", err)
			}
			r.failed[id] = true
			continue
		}
		delete(r.failed, id)
		latency, count := clientsOf(samples)
		c := guard.Clients{Broker: id, Latency: latency, Reconnects: -1}
		last, ok := before.Brokers[id]
		if seconds := float64(h.At-last.At) / 1000; ok && count >= last.Count && seconds > 0 {
			c.Reconnects = (count - last.Count) / seconds
		}
		if count >= 0 {
			next.Brokers[id] = Connections{At: h.At, Count: count}
		}
		h.Brokers = append(h.Brokers, c)
	}
	return h, next
}

// harm reads what the clients see of the brokers that moves are about: those of the decisions of this cycle, for what is usual,
// and those of the last minutes' moves. nil: nothing is watched, or there are no such brokers.
func (c *Controller) harm(ctx context.Context, cy *Cycle, now time.Time) *guard.Harm {
	if c.o.Harm == nil || c.o.Mode != Govern || !c.o.Limits.WatchesHarm() {
		return nil
	}
	ids := map[string]bool{}
	for _, id := range guard.Suspects(c.guard, now.UnixMilli()) {
		ids[id] = true
	}
	for _, d := range cy.Plan.Decisions {
		ids[d.Source], ids[d.Destination] = true, true
	}
	for id := range ids {
		if cy.Snapshot.BrokerIndex(id) < 0 {
			delete(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	h, next := c.o.Harm.Read(ctx, slices.Sorted(maps.Keys(ids)), now, c.clients)
	c.clients = next
	return &h
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
