// Package event defines what travels on the wire: the load data, load reports and ownership records that Pulsar's
// brokers write to system topics and to the metadata store, in exactly the form Pulsar writes them.
//
// Units: rates are messages/second, throughput is bytes/second, bandwidth usage and limit are kbit/s, memory is MiB,
// CPU is percent of one core (limit = 100 x cores), times are Unix milliseconds.
//
// Every type decodes from and encodes to the JSON that Pulsar's shared Jackson mapper reads and writes: null members are
// left out, NaN and the infinities are quoted strings, unknown members are ignored, a null number or flag is zero, and an
// absent member keeps the value that Pulsar's constructor gives it. Decoders are stricter than Jackson in one thing: a
// member of the wrong JSON type is an error (see Error), where Jackson would bend "12" into 12 or 5 into "5".
// A string that may be null is "" when it is; what is "" on the wire is then written as null.
package event

import "strings"

// Resource is one of the resources that a broker reports.
type Resource uint8

// The resources, in the order of Pulsar's documents.
const (
	CPU Resource = iota
	Memory
	DirectMemory
	BandwidthIn
	BandwidthOut
)

// String is the name of the resource as it stands on the wire.
func (r Resource) String() string {
	if int(r) < len(resourceNames) {
		return resourceNames[r]
	}
	return "unknown"
}

var resourceNames = [...]string{"cpu", "memory", "directMemory", "bandwidthIn", "bandwidthOut"}

// ResourceSet is a set of resources. The zero value is empty.
type ResourceSet uint8

// Has says whether the set contains r.
func (s ResourceSet) Has(r Resource) bool { return s>>r&1 == 1 }

// With is the set and r.
func (s ResourceSet) With(r Resource) ResourceSet { return s | 1<<r }

// Without is the set but not r.
func (s ResourceSet) Without(r Resource) ResourceSet { return s &^ (1 << r) }

// String lists the members.
func (s ResourceSet) String() string {
	var names []string
	for r := CPU; r <= BandwidthOut; r++ {
		if s.Has(r) {
			names = append(names, r.String())
		}
	}
	return strings.Join(names, ", ")
}

// ResourceUsage is how much of one resource is used and how much there is.
// Pulsar: ResourceUsage. A limit of 0 or below, or a negative usage, means that the resource is unknown.
type ResourceUsage struct {
	Usage float64
	Limit float64
}

// SystemResourceUsage is the usage of a broker's host. Pulsar: SystemResourceUsage; every member is (-1, -1) when absent.
type SystemResourceUsage struct {
	BandwidthIn  ResourceUsage
	BandwidthOut ResourceUsage
	CPU          ResourceUsage
	Memory       ResourceUsage
	DirectMemory ResourceUsage
	Null         ResourceSet // members that are null on the wire; their usage and limit are 0
}

// NamespaceBundleStats is the traffic of one bundle. Pulsar: NamespaceBundleStats.
type NamespaceBundleStats struct {
	MsgRateIn        float64
	MsgThroughputIn  float64
	MsgRateOut       float64
	MsgThroughputOut float64
	ConsumerCount    int32
	ProducerCount    int32
	Topics           int64
	CacheSize        int64
}

// BrokerLoadData is what an Extensible broker publishes about itself on the broker-load-data topic, keyed by its broker id.
// Pulsar: BrokerLoadData. MaxResourceUsage and WeightedMaxEMA are fractions (1 = 100 %).
type BrokerLoadData struct {
	CPU              ResourceUsage
	Memory           ResourceUsage
	DirectMemory     ResourceUsage
	BandwidthIn      ResourceUsage
	BandwidthOut     ResourceUsage
	MsgThroughputIn  float64
	MsgThroughputOut float64
	MsgRateIn        float64
	MsgRateOut       float64
	BundleCount      int64
	Topics           int64
	MaxResourceUsage float64
	WeightedMaxEMA   float64
	MsgThroughputEMA float64
	UpdatedAt        int64
	ReportedAt       int64
	NullResources    ResourceSet // resources that are null on the wire; their usage and limit are 0
}

// BundleLoad is one entry of TopBundlesLoadData.
type BundleLoad struct {
	BundleName string
	Stats      NamespaceBundleStats
	NullStats  bool // Stats is null on the wire
}

// TopBundlesLoadData is the heaviest bundles of one broker, lightest first, keyed by its broker id. A nil list is null on
// the wire. Pulsar: TopBundlesLoadData.
type TopBundlesLoadData struct {
	TopBundlesLoadData []BundleLoad
}

// ServiceUnitState is the state of a bundle on the ownership topic. Pulsar: ServiceUnitState.
type ServiceUnitState string

// The states of a service unit. Init is the absence of a record.
const (
	Init      ServiceUnitState = "Init"
	Free      ServiceUnitState = "Free"
	Owned     ServiceUnitState = "Owned"
	Assigning ServiceUnitState = "Assigning"
	Releasing ServiceUnitState = "Releasing"
	Splitting ServiceUnitState = "Splitting"
	Deleted   ServiceUnitState = "Deleted"
)

// SplitDestination is one child of a splitting bundle: its range "0xLLLLLLLL_0xUUUUUUUU" (the key as it is on the wire)
// and the broker it goes to ("" = not chosen, null on the wire).
type SplitDestination struct {
	Range  string
	Broker string
}

// ServiceUnitStateData is one record of the ownership topic, keyed by bundle name. Pulsar: ServiceUnitStateData.
// DstBroker and SourceBroker are "" when null. SplitServiceUnitToDestBroker is nil when null and keeps the wire's order.
// A record whose state is missing or unknown, or that is not Free and names no broker, is refused as Pulsar refuses it.
type ServiceUnitStateData struct {
	State                        ServiceUnitState
	DstBroker                    string
	SourceBroker                 string
	SplitServiceUnitToDestBroker []SplitDestination
	Force                        bool
	Timestamp                    int64
	VersionID                    int64
	EmptyDst                     bool // DstBroker is "" on the wire instead of null; the conflict rule tells them apart
	EmptySource                  bool // likewise for SourceBroker
}

// AdvertisedListener is one named listener of a broker. Absent addresses are "". Pulsar: AdvertisedListener.
type AdvertisedListener struct {
	BrokerServiceURL    string
	BrokerServiceURLTLS string
	BrokerHTTPURL       string
	BrokerHTTPSURL      string
}

// BrokerLookupData is what an Extensible broker registers about itself. Pulsar: BrokerLookupData.
// BrokerID is new in Pulsar 5 and "" before.
type BrokerLookupData struct {
	BrokerID                   string
	WebServiceURL              string
	WebServiceURLTLS           string
	PulsarServiceURL           string
	PulsarServiceURLTLS        string
	AdvertisedListeners        map[string]AdvertisedListener
	Protocols                  map[string]string
	PersistentTopicsEnabled    bool
	NonPersistentTopicsEnabled bool
	LoadManagerClassName       string
	StartTimestamp             int64
	BrokerVersion              string
	Properties                 map[string]string
}

// NamedBundleStats is one entry of a bundle-to-stats map, in the order in which it was read.
type NamedBundleStats struct {
	Bundle string
	Stats  NamespaceBundleStats
}

// LocalBrokerData is the load report of a Modular broker. Pulsar: LocalBrokerData.
// LastStats keeps the order of the wire; Bundles, LastBundleGains and LastBundleLosses are sets. A nil slice or map is null
// on the wire. LastUpdate and StartTimestamp are 0 when absent, where Pulsar takes the time of decoding.
type LocalBrokerData struct {
	BrokerID                   string
	WebServiceURL              string
	WebServiceURLTLS           string
	PulsarServiceURL           string
	PulsarServiceURLTLS        string
	PersistentTopicsEnabled    bool
	NonPersistentTopicsEnabled bool
	CPU                        ResourceUsage
	Memory                     ResourceUsage
	DirectMemory               ResourceUsage
	BandwidthIn                ResourceUsage
	BandwidthOut               ResourceUsage
	MsgThroughputIn            float64
	MsgThroughputOut           float64
	MsgRateIn                  float64
	MsgRateOut                 float64
	LastUpdate                 int64
	LastStats                  []NamedBundleStats
	NumTopics                  int64
	NumBundles                 int32
	NumConsumers               int32
	NumProducers               int32
	Bundles                    []string
	LastBundleGains            []string
	LastBundleLosses           []string
	BrokerVersionString        string
	Protocols                  map[string]string
	AdvertisedListeners        map[string]AdvertisedListener
	LoadManagerClassName       string
	StartTimestamp             int64
	NullResources              ResourceSet // resources that are null on the wire; their usage and limit are 0
}

// TimeAverageMessageData is an average over a number of samples. Pulsar: TimeAverageMessageData.
type TimeAverageMessageData struct {
	MaxSamples       int32
	NumSamples       int32
	MsgThroughputIn  float64
	MsgThroughputOut float64
	MsgRateIn        float64
	MsgRateOut       float64
}

// BundleData is the history of one bundle: a short-term and a long-term average. Pulsar: BundleData.
type BundleData struct {
	ShortTermData TimeAverageMessageData
	LongTermData  TimeAverageMessageData
	Topics        int32
	NullShortTerm bool // ShortTermData is null or absent on the wire
	NullLongTerm  bool // likewise for LongTermData
}

// TimeAverageBrokerData is the sum of the averages of a broker's bundles. Pulsar: TimeAverageBrokerData.
type TimeAverageBrokerData struct {
	ShortTermMsgThroughputIn  float64
	ShortTermMsgThroughputOut float64
	ShortTermMsgRateIn        float64
	ShortTermMsgRateOut       float64
	LongTermMsgThroughputIn   float64
	LongTermMsgThroughputOut  float64
	LongTermMsgRateIn         float64
	LongTermMsgRateOut        float64
}

// ResourceQuota is what a bundle is expected to need. Pulsar: ResourceQuota. Bandwidth is bytes/s, memory MiB.
type ResourceQuota struct {
	MsgRateIn    float64
	MsgRateOut   float64
	BandwidthIn  float64
	BandwidthOut float64
	Memory       float64
	Dynamic      bool
}

// LoadReport is the load report of a Simple broker. Pulsar: LoadReport. SystemResourceUsage and BundleStats are nil until
// set. What Pulsar derives from them is in the methods; AdvertisedListeners is never on the wire.
type LoadReport struct {
	Name                       string // broker id
	BrokerVersionString        string
	WebServiceURL              string
	WebServiceURLTLS           string
	PulsarServiceURL           string
	PulsarServiceURLTLS        string
	PersistentTopicsEnabled    bool
	NonPersistentTopicsEnabled bool
	UnderLoaded                bool
	OverLoaded                 bool
	Timestamp                  int64
	Protocols                  map[string]string
	AdvertisedListeners        map[string]AdvertisedListener
	LoadManagerClassName       string
	StartTimestamp             int64
	SystemResourceUsage        *SystemResourceUsage
	BundleStats                []NamedBundleStats
	BundleGains                []string
	BundleLosses               []string
	AllocatedCPU               float64
	AllocatedMemory            float64
	AllocatedBandwidthIn       float64
	AllocatedBandwidthOut      float64
	AllocatedMsgRateIn         float64
	AllocatedMsgRateOut        float64
	PreAllocatedCPU            float64
	PreAllocatedMemory         float64
	PreAllocatedBandwidthIn    float64
	PreAllocatedBandwidthOut   float64
	PreAllocatedMsgRateIn      float64
	PreAllocatedMsgRateOut     float64
}
