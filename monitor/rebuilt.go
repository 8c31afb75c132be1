package monitor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/event"
)

// Sources are what the load report of an Extensible broker is rebuilt from. Such a broker answers a request for its report
// with an error.
type Sources struct {
	Broker    string // broker id
	Version   string // of Pulsar
	Class     string // of its load manager
	Config    map[string]string
	Load      *event.BrokerLoadData // as it published it; nil = nothing was heard
	Heard     int64                 // Unix ms: when; 0 = never
	Now       int64                 // Unix ms
	Estimated bool                  // Load was made from metrics
	Stats     []event.NamedBundleStats
	StatsFrom string             // where Stats come from; "" = they could not be read
	Top       []event.BundleLoad // its heaviest bundles as it published them
	Owned     []string           // the bundles that the ownership log gives it
}

// Rebuilt is a load report in the form of a Modular broker's, and what of it is not the broker's own word.
type Rebuilt struct {
	Report    event.LocalBrokerData
	From      []string // what it was made from
	Estimated []string // what stands in for the broker's own figures
	Missing   []string // members that could not be had; they hold nothing, or -1
	Idle      []string // bundles that the broker owns and that have no topic in use; they are in no report
}

// Rebuild makes a LocalBrokerData of what an Extensible broker publishes: usage from its load data, bundles from its topics'
// statistics, or where those are missing from its heaviest bundles.
func Rebuild(s Sources) Rebuilt {
	out := Rebuilt{Report: event.LocalBrokerData{BrokerVersionString: s.Version, LoadManagerClassName: s.Class,
		Bundles: []string{}, LastBundleGains: []string{}, LastBundleLosses: []string{}, LastStats: []event.NamedBundleStats{},
		Protocols: map[string]string{}, AdvertisedListeners: map[string]event.AdvertisedListener{}}}
	out.address(s)
	out.usage(s)
	out.bundles(s)
	out.Missing = append(out.Missing, "startTimestamp", "lastBundleGains", "lastBundleLosses")
	return out
}

// address fills in where the broker is reached, from its configuration.
func (r *Rebuilt) address(s Sources) {
	d := &r.Report
	d.PersistentTopicsEnabled = s.Config["enablePersistentTopics"] != "false"
	d.NonPersistentTopicsEnabled = s.Config["enableNonPersistentTopics"] != "false"
	host, _ := event.BrokerHost(s.Broker)
	for _, x := range []struct {
		key, scheme string
		to          *string
	}{
		{"webServicePort", "http", &d.WebServiceURL}, {"webServicePortTls", "https", &d.WebServiceURLTLS},
		{"brokerServicePort", "pulsar", &d.PulsarServiceURL}, {"brokerServicePortTls", "pulsar+ssl", &d.PulsarServiceURLTLS},
	} {
		if port := optional(s.Config[x.key]); port != "" && host != "" {
			*x.to = fmt.Sprintf("%s://%s:%s", x.scheme, host, port)
		}
	}
	if strings.HasPrefix(s.Version, "5.") {
		d.BrokerID = s.Broker
	}
	if len(s.Config) == 0 {
		r.Missing = append(r.Missing, "webServiceUrl", "pulsarServiceUrl")
	} else {
		r.From = append(r.From, "the runtime configuration")
	}
	if v := s.Config["advertisedListeners"]; v != "" && v != "null" {
		r.Missing = append(r.Missing, "advertisedListeners")
	}
	if v := s.Config["messagingProtocols"]; v != "" && v != "null" && v != "[]" {
		r.Missing = append(r.Missing, "protocols")
	}
}

// optional is the text of a Java Optional as a runtime configuration has it, "" for none.
func optional(text string) string {
	if x, ok := strings.CutPrefix(text, "Optional["); ok {
		return strings.TrimSuffix(x, "]")
	}
	if text == "Optional.empty" || text == "null" {
		return ""
	}
	return text
}

func (r *Rebuilt) usage(s Sources) {
	d := &r.Report
	usage := []string{"cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut", "maxResourceUsage"}
	unknown := event.ResourceUsage{Usage: -1, Limit: -1} // as Pulsar writes it
	if s.Load == nil {
		r.Missing = append(r.Missing, usage...)
		r.Missing = append(r.Missing, "lastUpdate")
		d.CPU, d.Memory, d.DirectMemory, d.BandwidthIn, d.BandwidthOut = unknown, unknown, unknown, unknown, unknown
		return
	}
	for _, x := range []struct {
		resource event.Resource
		name     string
		from, to *event.ResourceUsage
	}{{event.CPU, "cpu", &s.Load.CPU, &d.CPU}, {event.Memory, "memory", &s.Load.Memory, &d.Memory}, {event.DirectMemory, "directMemory", &s.Load.DirectMemory, &d.DirectMemory},
		{event.BandwidthIn, "bandwidthIn", &s.Load.BandwidthIn, &d.BandwidthIn}, {event.BandwidthOut, "bandwidthOut", &s.Load.BandwidthOut, &d.BandwidthOut}} {
		if *x.to = *x.from; s.Load.NullResources.Has(x.resource) { // a report cannot be without
			*x.to = unknown
			r.Missing = append(r.Missing, x.name)
		}
	}
	d.LastUpdate = s.Load.UpdatedAt
	if s.Estimated {
		r.From = append(r.From, "the broker's metrics")
		r.Estimated = append(r.Estimated, usage...)
		return
	}
	r.From = append(r.From, fmt.Sprintf("its load data, heard %d s ago", (s.Now-s.Heard)/1000))
}

// bundles fills in the bundles and what they sum up to (Pulsar: LocalBrokerData.update).
func (r *Rebuilt) bundles(s Sources) {
	d, stats := &r.Report, s.Stats
	switch {
	case s.StatsFrom != "":
		r.From = append(r.From, s.StatsFrom)
		r.Missing = append(r.Missing, "lastStats.cacheSize")
	case len(s.Top) > 0:
		for _, b := range s.Top {
			stats = append(stats, event.NamedBundleStats{Bundle: b.BundleName, Stats: b.Stats})
		}
		r.From = append(r.From, "its heaviest bundles")
		r.Estimated = append(r.Estimated, "lastStats", "bundles", "numTopics", "numBundles", "numConsumers", "numProducers")
	default:
		r.Missing = append(r.Missing, "lastStats", "bundles", "numConsumers", "numProducers")
	}
	d.LastStats = append(d.LastStats, stats...)
	for i := range stats {
		x := &stats[i].Stats
		d.Bundles = append(d.Bundles, stats[i].Bundle)
		d.MsgRateIn += x.MsgRateIn
		d.MsgRateOut += x.MsgRateOut
		d.MsgThroughputIn += x.MsgThroughputIn
		d.MsgThroughputOut += x.MsgThroughputOut
		d.NumTopics += x.Topics
		d.NumConsumers += x.ConsumerCount
		d.NumProducers += x.ProducerCount
	}
	d.NumBundles = int32(len(stats))
	if s.StatsFrom == "" && s.Load != nil { // the broker's own sums are better than those of a part of its bundles
		d.MsgRateIn, d.MsgRateOut = s.Load.MsgRateIn, s.Load.MsgRateOut
		d.MsgThroughputIn, d.MsgThroughputOut = s.Load.MsgThroughputIn, s.Load.MsgThroughputOut
		d.NumTopics, d.NumBundles = s.Load.Topics, int32(s.Load.BundleCount)
	}
	for _, b := range s.Owned {
		if !slices.Contains(d.Bundles, b) && !event.IsBrokerBound(b) {
			r.Idle = append(r.Idle, b)
		}
	}
}

// rebuiltJSON is the member that says what of a report is not the broker's own word.
type rebuiltJSON struct {
	From      []string `json:"from"`
	Estimated []string `json:"estimated,omitempty"`
	Missing   []string `json:"missing,omitempty"`
	Idle      []string `json:"idleBundles,omitempty"`
}

// MarshalJSON writes the report as a Modular broker does, with one more member "rebuilt", which readers of reports pass over.
func (r Rebuilt) MarshalJSON() ([]byte, error) {
	report, err := json.Marshal(r.Report)
	if err != nil {
		return nil, err
	}
	extra, err := json.Marshal(rebuiltJSON{From: r.From, Estimated: r.Estimated, Missing: r.Missing, Idle: r.Idle})
	if err != nil {
		return nil, err
	}
	return slices.Concat(report[:len(report)-1], []byte(`,"rebuilt":`), extra, []byte("}")), nil
}
