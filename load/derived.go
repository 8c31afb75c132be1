package load

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/jsonfloat"
)

// Capacity overrides the limits that a broker reports, in the units of the reports: bandwidth kbit/s, memory MiB, CPU
// percent of one core. 0 keeps what is reported.
type Capacity struct {
	CPU          float64 `json:"cpu,omitempty"`
	Memory       float64 `json:"memory,omitempty"`
	DirectMemory float64 `json:"directMemory,omitempty"`
	BandwidthIn  float64 `json:"bandwidthIn,omitempty"`
	BandwidthOut float64 `json:"bandwidthOut,omitempty"`
}

// AnyBroker is the key of the capacity of brokers that have none of their own.
const AnyBroker = "*"

// DeriveRules say how Ballast averages load itself.
type DeriveRules struct {
	Weights Weights
	// HalfLifeMillis is the time after which the past counts half. 0: History is used.
	HalfLifeMillis int64
	// History is the weight that the past keeps over IntervalMillis, from 0 (the latest value counts alone) to 1 (nothing
	// changes). Pulsar's loadBalancerHistoryResourcePercentage over its report interval.
	History        float64
	IntervalMillis int64
	// Capacities override reported limits, by broker id or AnyBroker.
	Capacities map[string]Capacity
}

// Validate says what is wrong with the rules.
func (r *DeriveRules) Validate() error {
	switch {
	case r.HalfLifeMillis < 0:
		return fmt.Errorf("derived load: half-life %d ms is negative; right is 0 (use the history weight) or more", r.HalfLifeMillis)
	case !(r.History >= 0 && r.History <= 1):
		return fmt.Errorf("derived load: history weight %v is not between 0 and 1", r.History)
	case r.HalfLifeMillis == 0 && r.IntervalMillis <= 0 && r.History > 0:
		return fmt.Errorf("derived load: history weight %v needs an interval above 0 ms, got %d", r.History, r.IntervalMillis)
	}
	for _, broker := range slices.Sorted(maps.Keys(r.Capacities)) {
		c := r.Capacities[broker]
		for res, limit := range c.limits() {
			if !(limit >= 0) || math.IsInf(limit, 1) {
				return fmt.Errorf("derived load: capacity %s of %s is %v; right is a number above 0, or 0 for what the broker reports", event.Resource(res), broker, limit)
			}
		}
	}
	return nil
}

func (c *Capacity) limits() [5]float64 {
	return [5]float64{event.CPU: c.CPU, event.Memory: c.Memory, event.DirectMemory: c.DirectMemory, event.BandwidthIn: c.BandwidthIn, event.BandwidthOut: c.BandwidthOut}
}

// keep is the weight that the past keeps over elapsed ms.
func (r *DeriveRules) keep(elapsed int64) float64 {
	if elapsed <= 0 {
		return 1
	}
	if r.HalfLifeMillis > 0 {
		return math.Exp2(-float64(elapsed) / float64(r.HalfLifeMillis))
	}
	if r.History <= 0 || r.IntervalMillis <= 0 {
		return 0
	}
	return math.Pow(r.History, float64(elapsed)/float64(r.IntervalMillis))
}

// Derived is Ballast's own average of the brokers' loads, folded from the raw usage in their reports. Reports come when
// something changed, or after minutes when nothing did: so a report counts from when it was heard until the next one, and
// the average moves towards it as time passes. All times are Unix ms by our own clock.
type Derived struct {
	rules   DeriveRules
	brokers map[string]*derivedBroker
}

// derivedBroker is what is remembered of one broker.
type derivedBroker struct {
	Heard      int64              `json:"heard"`      // when the last report was heard
	Usage      jsonfloat.Float    `json:"usage"`      // weighted maximum usage in the last report (fraction); NaN = unknown
	Average    jsonfloat.Float    `json:"average"`    // average of the usage at Heard
	Throughput jsonfloat.Float    `json:"throughput"` // bytes/s in the last report; NaN = unknown
	Mean       jsonfloat.Float    `json:"mean"`       // average of the throughput at Heard
	Limits     [5]jsonfloat.Float `json:"limits"`     // limits as reported, by event.Resource
}

// NewDerived starts with no history.
func NewDerived(r DeriveRules) (*Derived, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return &Derived{rules: r, brokers: make(map[string]*derivedBroker)}, nil
}

// NoteKind is what is remarkable about a report.
type NoteKind string

// The kinds of notes.
const (
	// UnknownResource: a resource with a weight cannot be judged, since its limit is not positive or its usage is negative
	// or either is not finite. It is left out; it does not count as idle.
	UnknownResource NoteKind = "unknownResource"
	// UnknownUsage: no resource with a weight can be judged, so the broker's load is unknown.
	UnknownUsage NoteKind = "unknownUsage"
	// UnknownThroughput: the throughput is negative or not finite.
	UnknownThroughput NoteKind = "unknownThroughput"
	// LimitChanged: the reported limit of a resource is at least twice, or at most half, of what it was.
	LimitChanged NoteKind = "limitChanged"
)

// Note is something remarkable about a report.
type Note struct {
	Kind     NoteKind
	Resource event.Resource // what UnknownResource and LimitChanged are about
	Usage    float64
	Limit    float64
	Before   float64 // LimitChanged: the limit before
}

// Hear takes in a report of a broker, heard at the given time. A report heard before the last one counts as heard with it.
func (d *Derived) Hear(broker string, data *event.BrokerLoadData, heard int64) []Note {
	usage, notes := d.usage(broker, data)
	throughput := data.MsgThroughputIn + data.MsgThroughputOut
	if !(throughput >= 0) || math.IsInf(throughput, 1) {
		notes = append(notes, Note{Kind: UnknownThroughput, Usage: throughput})
		throughput = math.NaN()
	}
	limits := reportedLimits(data)
	b := d.brokers[broker]
	if b == nil {
		d.brokers[broker] = &derivedBroker{
			Heard: heard, Usage: jsonfloat.Float(usage), Average: jsonfloat.Float(usage),
			Throughput: jsonfloat.Float(throughput), Mean: jsonfloat.Float(throughput), Limits: limits,
		}
		return notes
	}
	notes = append(notes, changedLimits(b.Limits, limits)...)
	b.Average, b.Mean = b.at(heard, &d.rules)
	if math.IsNaN(float64(b.Average)) { // nothing was known so far
		b.Average = jsonfloat.Float(usage)
	}
	if math.IsNaN(float64(b.Mean)) {
		b.Mean = jsonfloat.Float(throughput)
	}
	b.Heard, b.Usage, b.Throughput, b.Limits = max(b.Heard, heard), jsonfloat.Float(usage), jsonfloat.Float(throughput), limits
	return notes
}

// at is the averages of usage and throughput at a time not before the last report.
func (b *derivedBroker) at(now int64, r *DeriveRules) (usage, throughput jsonfloat.Float) {
	keep := r.keep(now - b.Heard)
	return blend(b.Average, b.Usage, keep), blend(b.Mean, b.Throughput, keep)
}

// blend is the average after a value held while the past kept its weight; an unknown value leaves the average as it was.
func blend(average, value jsonfloat.Float, keep float64) jsonfloat.Float {
	switch {
	case math.IsNaN(float64(value)) || keep == 1:
		return average
	case keep == 0:
		return value
	}
	return value + jsonfloat.Float(float64(average-value)*keep)
}

// usage is the largest weighted usage of the resources that can be judged, as a fraction; NaN if none can.
func (d *Derived) usage(broker string, data *event.BrokerLoadData) (float64, []Note) {
	var notes []Note
	most, weighted := math.NaN(), false
	resources, weights := d.resources(broker, data), d.rules.Weights.byResource()
	for res, u := range resources {
		if weights[res] == 0 {
			continue
		}
		weighted = true
		if unknown(u) || data.NullResources.Has(event.Resource(res)) && d.capacity(broker, res) == 0 {
			notes = append(notes, Note{Kind: UnknownResource, Resource: event.Resource(res), Usage: u.Usage, Limit: u.Limit})
			continue
		}
		if v := u.Usage / u.Limit * weights[res]; !(v <= most) {
			most = v
		}
	}
	switch {
	case !weighted:
		return 0, nil // nothing is looked at: all brokers are equally idle, as in Pulsar
	case math.IsNaN(most):
		notes = append(notes, Note{Kind: UnknownUsage})
	}
	return most, notes
}

func unknown(u event.ResourceUsage) bool {
	return !(u.Limit > 0) || !(u.Usage >= 0) || math.IsInf(u.Limit, 1) || math.IsInf(u.Usage, 1)
}

// resources are the reported resources with overridden limits, by event.Resource.
func (d *Derived) resources(broker string, data *event.BrokerLoadData) [5]event.ResourceUsage {
	all := [5]event.ResourceUsage{
		event.CPU: data.CPU, event.Memory: data.Memory, event.DirectMemory: data.DirectMemory,
		event.BandwidthIn: data.BandwidthIn, event.BandwidthOut: data.BandwidthOut,
	}
	for res := range all {
		if limit := d.capacity(broker, res); limit > 0 {
			all[res].Limit = limit
		}
	}
	return all
}

// capacity is the overridden limit of a broker's resource, 0 if it is not overridden.
func (d *Derived) capacity(broker string, res int) float64 {
	c, ok := d.rules.Capacities[broker]
	if !ok {
		c = d.rules.Capacities[AnyBroker]
	}
	return c.limits()[res]
}

func (w *Weights) byResource() [5]float64 {
	return [5]float64{event.CPU: w.CPU, event.Memory: w.Memory, event.DirectMemory: w.DirectMemory, event.BandwidthIn: w.BandwidthIn, event.BandwidthOut: w.BandwidthOut}
}

func reportedLimits(data *event.BrokerLoadData) [5]jsonfloat.Float {
	return [5]jsonfloat.Float{
		event.CPU: jsonfloat.Float(data.CPU.Limit), event.Memory: jsonfloat.Float(data.Memory.Limit), event.DirectMemory: jsonfloat.Float(data.DirectMemory.Limit),
		event.BandwidthIn: jsonfloat.Float(data.BandwidthIn.Limit), event.BandwidthOut: jsonfloat.Float(data.BandwidthOut.Limit),
	}
}

func changedLimits(before, now [5]jsonfloat.Float) []Note {
	var notes []Note
	for res := range now {
		b, n := float64(before[res]), float64(now[res])
		if b > 0 && n > 0 && (n >= 2*b || n <= b/2) {
			notes = append(notes, Note{Kind: LimitChanged, Resource: event.Resource(res), Limit: n, Before: b})
		}
	}
	return notes
}

// Forget drops what is known of a broker, so that its next report starts its averages anew.
func (d *Derived) Forget(broker string) { delete(d.brokers, broker) }

// At is the load data of a broker to decide on at the given time: the report with limits overridden and both averages
// replaced by Ballast's own. UpdatedAt is when the report was heard, so that its age does not hang on the broker's clock.
// ok is false when nothing was heard of the broker or its last report does not tell its load: then it has no load data.
func (d *Derived) At(broker string, report *event.BrokerLoadData, now int64) (data event.BrokerLoadData, ok bool) {
	b := d.brokers[broker]
	if b == nil {
		return event.BrokerLoadData{}, false
	}
	usage, throughput := b.at(now, &d.rules)
	if math.IsNaN(float64(b.Usage)) {
		return event.BrokerLoadData{}, false
	}
	if math.IsNaN(float64(throughput)) {
		throughput = 0
	}
	data = *report
	r := d.resources(broker, report)
	data.CPU, data.Memory, data.DirectMemory = r[event.CPU], r[event.Memory], r[event.DirectMemory]
	data.BandwidthIn, data.BandwidthOut = r[event.BandwidthIn], r[event.BandwidthOut]
	data.MaxResourceUsage = 0
	for res, u := range r {
		if res != int(event.Memory) && !unknown(u) {
			data.MaxResourceUsage = max(data.MaxResourceUsage, u.Usage/u.Limit)
		}
	}
	data.MsgThroughputIn, data.MsgThroughputOut = known(report.MsgThroughputIn), known(report.MsgThroughputOut)
	data.MsgRateIn, data.MsgRateOut = known(report.MsgRateIn), known(report.MsgRateOut)
	data.WeightedMaxEMA, data.MsgThroughputEMA = float64(usage), float64(throughput)
	data.UpdatedAt = b.Heard
	return data, true
}

// known is a rate that can be used: one that is negative or not finite counts as none.
func known(rate float64) float64 {
	if !(rate >= 0) || math.IsInf(rate, 1) {
		return 0
	}
	return rate
}

// derivedVersion is the version of the JSON form of Derived.
const derivedVersion = 1

type derivedJSON struct {
	Version int                       `json:"version"`
	Brokers map[string]*derivedBroker `json:"brokers"`
}

// MarshalJSON writes the history, so that a new leader goes on where the old one stopped; the rules are not part of it.
func (d *Derived) MarshalJSON() ([]byte, error) {
	return json.Marshal(derivedJSON{Version: derivedVersion, Brokers: d.brokers})
}

// UnmarshalJSON reads what MarshalJSON wrote into a Derived that has its rules.
func (d *Derived) UnmarshalJSON(b []byte) error {
	var in derivedJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("derived load: %w", err)
	}
	if in.Version != derivedVersion {
		return fmt.Errorf("derived load: version %d of its history is unknown; this is version %d", in.Version, derivedVersion)
	}
	d.brokers = make(map[string]*derivedBroker, len(in.Brokers))
	for id, b := range in.Brokers {
		if b != nil {
			d.brokers[id] = b
		}
	}
	return nil
}
