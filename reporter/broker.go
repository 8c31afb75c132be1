package reporter

import (
	"encoding/json"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// Event is what is to be published.
type Event struct {
	Topic string
	Key   string          // broker id
	Value json.Marshaler  // nil = a tombstone
	Need  load.ReportNeed // of load data: what made it due
}

// Broker is what is remembered of one broker between two readings of its report. It is pure: Hear and Fail take a reading
// and say what is to be published; Published says that it was.
type Broker struct {
	ID string

	load      event.BrokerLoadData     // with the averages, as of the last good report
	written   event.BrokerLoadData     // as last published
	onLoad    bool                     // load data of ours is on its topic
	served    []event.NamedBundleStats // of the last good report
	seen      []event.NamedBundleStats // what the next list of top bundles is made from
	stats     []event.NamedBundleStats // what the published one was made from
	topAt     int64                    // when that was published
	onTop     bool
	onReport  bool
	onBundles bool

	heard    int64        // Unix ms of the last good report; 0 = none
	failing  int64        // Unix ms of the first reading that failed since; 0 = none
	update   int64        // lastUpdate of the last report that was read
	newest   int64        // the greatest that counted
	advanced int64        // Unix ms when it last advanced
	doubt    *plan.Reason // why the reports do not count until their lastUpdate advances
	started  int64        // startTimestamp of a Modular broker
	stale    *plan.Reason
}

// NewBroker knows nothing of a broker yet.
func NewBroker(id string) *Broker { return &Broker{ID: id, load: event.NewBrokerLoadData()} }

// Stale is why the broker is stale; false when it is not.
func (b *Broker) Stale() (plan.Reason, bool) {
	if b.stale == nil {
		return plan.Reason{}, false
	}
	return *b.stale, true
}

// Heard is when the last good report was read, Unix ms; 0 if none was.
func (b *Broker) Heard() int64 { return b.heard }

// Load is the load data that follows from the reports so far; false before the first good one and while the broker is stale.
func (b *Broker) Load() (event.BrokerLoadData, bool) {
	return b.load, b.stale == nil && b.heard > 0
}

// Reading is one report and what is needed to judge it.
type Reading struct {
	Report     event.BrokerReport
	Now        int64                                // Unix ms by our clock
	Registered func(id string) bool                 // whether an id is another broker's; nil = not known
	HasPolicy  func(namespace string) (bool, error) // whether a namespace has a policy; nil = none has
}

// Hear takes a report in and returns what is to be published: the report itself always, load data when Pulsar's conditions
// say so (load.NeedsReport), top bundles after each pass of the broker's statistics. The averages begin anew when the broker
// gained or lost a bundle, as those of an Extensible broker do (Pulsar: BrokerLoadDataReporter), or when it is another
// process. A report that cannot be believed makes the broker stale at once. The error is HasPolicy's: there are no top bundles then.
func (b *Broker) Hear(in Reading, r *Rules) ([]Event, error) {
	if why, bad := b.judge(&in, r); bad {
		return b.retire(why), nil
	}
	if d := in.Report.Local; d != nil {
		if b.started != 0 && d.StartTimestamp > b.started {
			b.load = event.NewBrokerLoadData() // another process: its averages start anew
		}
		b.started = d.StartTimestamp
	}
	if served := in.Report.Stats(); b.heard > 0 && !sameBundles(b.served, served) {
		b.load = event.NewBrokerLoadData()
	}
	b.served = in.Report.Stats()
	b.heard, b.failing, b.stale = in.Now, 0, nil
	Derive(&b.load, in.Report, r.Weights, r.History, in.Now)
	out := []Event{{Topic: topics.LocalBrokerData, Key: b.ID, Value: in.Report}}
	if need := load.NeedsReport(&b.written, &b.load, in.Now, r.MaxMinutes, r.ThresholdPercent); need.Needed || !b.onLoad {
		out = append(out, Event{Topic: topics.BrokerLoadData, Key: b.ID, Value: b.load, Need: need})
	}
	top, err := b.topBundles(&in, r)
	if top != nil {
		out = append(out, *top)
	}
	return out, err
}

// sameBundles says whether two lists hold the same bundles, in any order.
func sameBundles(a, b []event.NamedBundleStats) bool {
	if len(a) != len(b) {
		return false
	}
	names := make(map[string]bool, len(a))
	for i := range a {
		names[a[i].Bundle] = true
	}
	for i := range b {
		if !names[b[i].Bundle] {
			return false
		}
	}
	return true
}

// topBundles is the list of top bundles if it is due: when the figures changed, which tells of a pass of the statistics, or
// as long after the last list as a pass takes.
func (b *Broker) topBundles(in *Reading, r *Rules) (*Event, error) {
	stats := in.Report.Stats()
	if b.onTop && in.Now-b.topAt < r.StatsInterval && slices.Equal(stats, b.stats) {
		return nil, nil
	}
	rules := r.Top
	rules.HasPolicy = in.HasPolicy
	top, err := load.TopK(stats, rules)
	if err != nil {
		return nil, err
	}
	data := event.NewTopBundlesLoadData()
	if top != nil {
		data.TopBundlesLoadData = top
	}
	b.seen = stats
	return &Event{Topic: topics.TopBundles, Key: b.ID, Value: data}, nil
}

// Fail takes in that no report could be read. The broker is stale when its last good report is older than the grace, or when
// there was none: until then what was published stands.
func (b *Broker) Fail(now int64, r *Rules, why func(seconds int64) plan.Reason) []Event {
	if b.failing == 0 {
		b.failing = now
	}
	if b.heard > 0 && b.stale == nil && now-b.heard <= r.Grace {
		return nil
	}
	since := b.heard
	if since == 0 {
		since = b.failing
	}
	return b.retire(why((now - since) / 1000))
}

// retire makes the broker stale. Its load data and top bundles are withdrawn, so that nobody takes it for a destination, and
// its averages start anew, as those of a broker that withdraws them do (Pulsar: BrokerLoadData.clear). Its whole report
// stays as it was read last: the bundles in it are not lost.
func (b *Broker) retire(why plan.Reason) []Event {
	b.stale = &why
	b.load = event.NewBrokerLoadData()
	return b.withdrawLoad()
}

func (b *Broker) withdrawLoad() (out []Event) {
	if b.onLoad {
		out = append(out, Event{Topic: topics.BrokerLoadData, Key: b.ID})
	}
	if b.onTop {
		out = append(out, Event{Topic: topics.TopBundles, Key: b.ID})
	}
	return out
}

// Withdraw is what takes back everything that was published of the broker.
func (b *Broker) Withdraw() (out []Event) {
	for _, topic := range b.reported() {
		out = append(out, Event{Topic: topic, Key: b.ID})
	}
	return out
}

// Published takes in that an event of this broker is on its topic since now (Unix ms).
func (b *Broker) Published(e Event, now int64) {
	on := b.there(e.Topic)
	if on == nil {
		return
	}
	*on = e.Value != nil
	switch {
	case e.Topic == topics.TopBundles:
		b.topAt, b.stats = now, b.seen
	case e.Topic == topics.BrokerLoadData && *on:
		b.load.ReportedAt = now
		b.written = b.load
	}
}

// reportTopics are where something of a broker may be.
var reportTopics = [...]string{topics.BrokerLoadData, topics.TopBundles, topics.LocalBrokerData, topics.BundleStats}

// there is what says whether something of the broker is on a topic; nil for a topic that nothing is reported on.
func (b *Broker) there(topic string) *bool {
	switch topic {
	case topics.BrokerLoadData:
		return &b.onLoad
	case topics.TopBundles:
		return &b.onTop
	case topics.LocalBrokerData:
		return &b.onReport
	case topics.BundleStats:
		return &b.onBundles
	}
	return nil
}

// inherit takes over what is on topics of this broker since before it was known: it is to be taken back like its own.
func (b *Broker) inherit(list []string) {
	for _, topic := range list {
		if on := b.there(topic); on != nil {
			*on = true
		}
	}
}

// reported is on which topics something of the broker is.
func (b *Broker) reported() (list []string) {
	for _, topic := range reportTopics {
		if *b.there(topic) {
			list = append(list, topic)
		}
	}
	return list
}

// Again makes everything due again: another process may have published meanwhile.
func (b *Broker) Again() { b.load.ReportedAt, b.topAt = 0, 0 }

// displace makes the broker stale because another one publishes itself, and takes everything back that was published.
func (b *Broker) displace(why plan.Reason) []Event {
	b.retire(why)
	return b.Withdraw()
}

// leave leaves the load data of a broker that publishes itself to that broker, and takes our own back.
func (b *Broker) leave() []Event {
	b.onLoad, b.onTop, b.stale = false, false, nil
	if !b.onReport {
		return nil
	}
	return []Event{{Topic: topics.LocalBrokerData, Key: b.ID}}
}
