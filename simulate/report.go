package simulate

import (
	"encoding/json"
	"fmt"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/simple"
	"github.com/ballast-lb/ballast/topics"
)

// tombstonePause is how long a broker that withdrew its load data does not withdraw it again.
const tombstonePause = 10_000 // ms

// reporter is what a broker remembers about its reports on the two load topics.
type reporter struct {
	current event.BrokerLoadData // with the averages
	last    event.BrokerLoadData // as it was when last published
	top     []event.BundleLoad   // lightest first
	built   int64                // the statistics pass that top was made from
	forced  bool
	cleared int64 // when the load data was last withdrawn

	local, written event.LocalBrokerData // of a Modular broker: as of now, and as last written
	simple         simple.ReportState    // of a Simple broker
}

func (b *broker) newReporter() reporter {
	local := b.newLocal()
	return reporter{current: event.NewBrokerLoadData(), last: event.NewBrokerLoadData(), local: local, written: local}
}

// force makes the broker publish both reports at once, as brokers do for a new leader.
func (b *broker) force() {
	b.reporter.forced = true
	life := b.life
	b.c.after(b.c.latency(), func() {
		if b.life == life && b.alive() && b.reporter.forced {
			b.report()
		}
	})
}

// report is the periodic task of the broker's reporters.
func (b *broker) report() {
	switch b.c.cfg.Kind {
	case Modular:
		b.reportLocal()
		return
	case Simple:
		b.reportSimple()
		return
	}
	c, r, set := b.c, &b.reporter, b.c.settings
	now := b.clock()
	load.UpdateBrokerLoad(&r.current, b.systemUsage(), b.totals, load.WeightsOf(set), set.LoadBalancerHistoryResourcePercentage, now)
	need := load.NeedsReport(&r.last, &r.current, now, set.LoadBalancerReportUpdateMaxIntervalMinutes, set.LoadBalancerReportUpdateThresholdPercentage)
	if r.forced || need.Needed {
		c.emitLoad(topics.BrokerLoadData, b.ID, encode(&r.current), b)
		r.current.ReportedAt = now
		r.last = r.current
	}
	if b.statsAt > r.built {
		r.top, _ = load.TopK(b.stats, c.topKRules())
		r.built = b.statsAt
		c.emitLoad(topics.TopBundles, b.ID, topPayload(r.top), b)
	} else if r.forced {
		c.emitLoad(topics.TopBundles, b.ID, topPayload(r.top), b)
	}
	r.forced = false
}

// reset withdraws the broker's load data after a change of what it owns: averages start anew with the next measurement.
func (r *reporter) reset(b *broker) {
	if b.c.stored() {
		return
	}
	if now := b.c.now; now-r.cleared >= tombstonePause {
		r.cleared = now
		r.current = event.NewBrokerLoadData()
		b.c.emitLoad(topics.BrokerLoadData, b.ID, nil, b)
		b.c.emitLoad(topics.TopBundles, b.ID, nil, b)
	}
}

func (c *Cluster) topKRules() load.TopKRules {
	r := load.TopKRules{
		K:            int(c.settings.LoadBalancerMaxNumberOfBundlesInBundleLoadReport),
		Excluded:     c.settings.LoadBalancerSheddingExcludedNamespaces,
		WithPolicies: c.settings.LoadBalancerSheddingBundlesWithPoliciesEnabled,
	}
	if c.cfg.Policies != nil {
		r.HasPolicy = func(namespace string) (bool, error) { return c.cfg.Policies.HasPolicy(namespace), nil }
	}
	return r
}

func topPayload(top []event.BundleLoad) []byte {
	data := event.NewTopBundlesLoadData()
	if top != nil {
		data.TopBundlesLoadData = top
	}
	return encode(&data)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("simulate: a report that this package made cannot be written: %v", err))
	}
	return b
}

// emitLoad publishes load data: onto the log, and into the view that the leader decides from.
func (c *Cluster) emitLoad(topic, key string, payload []byte, by *broker) {
	if c.cfg.Kind != Extensible || by.mute || c.faults.silence(c.now, topic) > 0 {
		return
	}
	if bad := c.faults.garbage[garbageKey{by.ID, topic}]; bad != nil && payload != nil {
		payload = bad
	}
	c.events = append(c.events, Event{At: c.now, Topic: topic, Key: key, Payload: payload, Producer: by.ID})
	c.views.take(c.now, topic, key, payload)
}

// emit publishes on the ownership log.
func (c *Cluster) emit(topic, key string, payload []byte, producer string) {
	if c.cfg.Kind != Extensible {
		return
	}
	e := Event{At: c.now, Topic: topic, Key: key, Payload: payload, Producer: producer}
	if c.faults.holds(c.now, topic) {
		c.faults.held = append(c.faults.held, e)
		return
	}
	c.events = append(c.events, e)
}
