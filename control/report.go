package control

import (
	"fmt"
	"math"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/policy"
)

// report is a load report as brokers without the Extensible load manager give it: one of the two.
type report struct {
	local  *event.LocalBrokerData // Modular
	simple *event.LoadReport      // Simple
}

func decodeReport(payload []byte) (report, error) {
	r, err := event.DecodeReport(payload)
	return report{local: r.Local, simple: r.Simple}, err
}

// stats are the bundles that the broker serves, in the order of its report.
func (r report) stats() []event.NamedBundleStats {
	if r.simple != nil {
		return r.simple.BundleStats
	}
	return r.local.LastStats
}

// usage is the usage of the broker's host; false when the report does not tell any.
func (r report) usage() (event.SystemResourceUsage, bool) {
	if r.simple != nil {
		if r.simple.SystemResourceUsage == nil {
			return event.SystemResourceUsage{}, false
		}
		return *r.simple.SystemResourceUsage, true
	}
	d := r.local
	return event.SystemResourceUsage{BandwidthIn: d.BandwidthIn, BandwidthOut: d.BandwidthOut, CPU: d.CPU, Memory: d.Memory,
		DirectMemory: d.DirectMemory, Null: d.NullResources}, true
}

// Why the load of a registered broker is not known. Such a broker is no destination, what it serves stays with it, and the
// others go on.
var (
	// StaleReport: it was heard too long ago.
	StaleReport = policy.Code{ID: "STALE_REPORT", Template: "the load report of {broker} was heard {age} ms ago, the limit is {limit} ms"}
	// StaleNotHeard: nothing was heard of it for as long as a report may take.
	StaleNotHeard = policy.Code{ID: "STALE_NOT_HEARD", Template: "no load report of {broker} was heard in the {age} ms that it was seen registered, the limit is {limit} ms"}
	// StaleNoAnswer: it does not answer admin requests; it may be dead.
	StaleNoAnswer = policy.Code{ID: "STALE_NO_ANSWER", Template: "{broker} is registered and does not answer, it may be dead"}
	// StaleUnusable: its report says nothing that can be decided on.
	StaleUnusable = policy.Code{ID: "STALE_UNUSABLE_REPORT", Template: "the load report of {broker} cannot be used: {what}"}
	// StaleOtherManager: it runs another load manager than the cluster; its report cannot be compared with the others'.
	StaleOtherManager = policy.Code{ID: "STALE_OTHER_MANAGER", Template: "{broker} runs {class}, the cluster {wanted}"}
)

// unusable says what in the report is nothing to decide on, "" if nothing is. What is not known is not 0.
func (r report) unusable() string {
	u, ok := r.usage()
	if !ok {
		return "it tells no resource usage"
	}
	known := false
	for _, x := range [...]struct {
		name string
		event.ResourceUsage
	}{{"cpu", u.CPU}, {"memory", u.Memory}, {"directMemory", u.DirectMemory}, {"bandwidthIn", u.BandwidthIn}, {"bandwidthOut", u.BandwidthOut}} {
		if notFinite(x.Usage) || notFinite(x.Limit) {
			return fmt.Sprintf("%s is %v of %v", x.name, x.Usage, x.Limit)
		}
		known = known || x.Limit > 0 && x.Usage >= 0
	}
	if !known {
		return "no resource has a limit"
	}
	for i := range r.stats() {
		s := &r.stats()[i]
		for _, x := range [...]struct {
			name  string
			value float64
		}{{"msgRateIn", s.Stats.MsgRateIn}, {"msgRateOut", s.Stats.MsgRateOut},
			{"msgThroughputIn", s.Stats.MsgThroughputIn}, {"msgThroughputOut", s.Stats.MsgThroughputOut}} {
			if notFinite(x.value) || x.value < 0 {
				return fmt.Sprintf("%s of %s is %v", x.name, s.Bundle, x.value)
			}
		}
	}
	return ""
}

func notFinite(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) }

// totals are the sums over the bundles. The sums at the top of a Simple report are not used: its throughput is its rate.
func (r report) totals() load.Totals {
	t := load.Totals{BundleCount: int64(len(r.stats()))}
	for i := range r.stats() {
		s := &r.stats()[i].Stats
		t.MsgRateIn += s.MsgRateIn
		t.MsgRateOut += s.MsgRateOut
		t.MsgThroughputIn += s.MsgThroughputIn
		t.MsgThroughputOut += s.MsgThroughputOut
		t.Topics += s.Topics
	}
	return t
}

// asLocal is the report as a Modular broker's, so that the strategies of that load manager can be asked about brokers of
// either kind. Its LastUpdate is when it was heard (Unix ms): brokers' clocks may be off.
func (r report) asLocal(b *cluster.Broker, heard int64) *event.LocalBrokerData {
	if r.local != nil {
		d := *r.local
		d.LastUpdate, d.LoadManagerClassName = heard, b.LoadManager
		return &d
	}
	s := r.simple
	d := event.NewLocalBrokerData(heard)
	d.BrokerID = b.ID
	d.WebServiceURL, d.WebServiceURLTLS = s.WebServiceURL, s.WebServiceURLTLS
	d.PulsarServiceURL, d.PulsarServiceURLTLS = s.PulsarServiceURL, s.PulsarServiceURLTLS
	d.PersistentTopicsEnabled, d.NonPersistentTopicsEnabled = s.PersistentTopicsEnabled, s.NonPersistentTopicsEnabled
	d.Protocols, d.AdvertisedListeners = s.Protocols, s.AdvertisedListeners
	d.BrokerVersionString, d.LoadManagerClassName, d.StartTimestamp = s.BrokerVersionString, b.LoadManager, s.StartTimestamp
	u, _ := r.usage()
	load.UpdateLocal(&d, u, s.BundleStats)
	d.NullResources = u.Null
	d.LastBundleGains, d.LastBundleLosses = s.BundleGains, s.BundleLosses
	return &d
}

// asSimple is the report as a Simple broker's, likewise.
func (r report) asSimple(b *cluster.Broker, heard int64) *event.LoadReport {
	if r.simple != nil {
		d := *r.simple
		d.Name, d.Timestamp = b.ID, heard
		return &d
	}
	l := r.local
	u, _ := r.usage()
	d := event.NewLoadReport()
	d.Name, d.BrokerVersionString, d.Timestamp, d.StartTimestamp = b.ID, l.BrokerVersionString, heard, l.StartTimestamp
	d.WebServiceURL, d.WebServiceURLTLS = l.WebServiceURL, l.WebServiceURLTLS
	d.PulsarServiceURL, d.PulsarServiceURLTLS = l.PulsarServiceURL, l.PulsarServiceURLTLS
	d.PersistentTopicsEnabled, d.NonPersistentTopicsEnabled = l.PersistentTopicsEnabled, l.NonPersistentTopicsEnabled
	d.Protocols, d.AdvertisedListeners, d.LoadManagerClassName = l.Protocols, l.AdvertisedListeners, b.LoadManager
	d.SystemResourceUsage, d.BundleStats = &u, l.LastStats
	d.BundleGains, d.BundleLosses = l.LastBundleGains, l.LastBundleLosses
	return &d
}
