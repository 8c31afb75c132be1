// Package cluster is the picture of a cluster that decisions are made from: plain data in ordered slices, taken at one
// moment and never changed afterwards. The order of the slices is the order in which strategies see things.
package cluster

import (
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// Snapshot is everything a decision may depend on, besides the strategy's own state and randomness.
type Snapshot struct {
	Now      int64  // Unix ms
	Cluster  string // cluster name
	Version  string // Pulsar version of the cluster ("4.2.4"); from 5.0.0 on the 5.x behaviours are chosen
	Leader   string // broker id of the cluster's leader, "" if none
	Brokers  []Broker
	Load     []BrokerLoad // latest load data of every key, also of brokers that are not registered
	Bundles  []Bundle
	Policies *policy.Set // nil = the cluster has no policies
	Settings *settings.Settings

	brokers map[string]int
	bundles map[string]int
	load    map[string]int
}

// Broker is one registered broker.
type Broker struct {
	ID                  string // host:webPort
	Version             string // Pulsar version it reports, "" if none
	LoadManager         string // class name of its load manager, "" if none
	PersistentTopics    bool
	NonPersistentTopics bool
	StartedAt           int64 // Unix ms

	// Stale is why nothing is known of its load now although it is registered: its report is too old, missing or unusable. It
	// is no destination then, and what it serves is not lost. Load, Local and Report are nil. The zero value: it is known.
	Stale policy.Reason

	Load        *event.BrokerLoadData        // load data as decided on; nil if none was heard
	LoadHeard   int64                        // Unix ms by our clock when Load was heard
	Estimated   bool                         // Load was filled in from metrics
	Local       *event.LocalBrokerData       // Modular: its load report
	Report      *event.LoadReport            // Simple: its load report
	TimeAverage *event.TimeAverageBrokerData // Modular: sums of its bundles' averages
	Bundles     []int                        // indexes into Snapshot.Bundles of what it serves, in the order of its report
}

// BrokerLoad is one entry of the broker-load-data view.
type BrokerLoad struct {
	Broker     string
	Data       event.BrokerLoadData
	Heard      int64 // Unix ms by our clock
	Estimated  bool
	TopBundles []event.BundleLoad // its top bundles, lightest first; nil = none heard
	HasTop     bool               // a top-bundles entry (maybe empty) was heard
}

// Bundle is one bundle.
type Bundle struct {
	Name          string // tenant/namespace/0x........_0x........
	Namespace     string // tenant/namespace
	Owner         string // broker id; "" = unowned
	Heading       string // broker id that it is on its way to; "" = to nobody, or that is not known
	State         event.ServiceUnitState
	Stats         event.NamespaceBundleStats
	Known         bool              // Stats were reported
	NonPersistent bool              // non-persistent topics of it were looked up (Pulsar: NamespaceBundle.hasNonPersistentTopic)
	Data          *event.BundleData // history; nil if none
}

// Index builds the look-up tables. Call it once after filling the slices and before handing the snapshot on.
func (s *Snapshot) Index() *Snapshot {
	s.brokers = make(map[string]int, len(s.Brokers))
	for i := range s.Brokers {
		s.brokers[s.Brokers[i].ID] = i
	}
	s.bundles = make(map[string]int, len(s.Bundles))
	for i := range s.Bundles {
		s.bundles[s.Bundles[i].Name] = i
	}
	s.load = make(map[string]int, len(s.Load))
	for i := range s.Load {
		s.load[s.Load[i].Broker] = i
	}
	return s
}

// BrokerIndex is the place of a broker id in Brokers, -1 if it is not registered.
func (s *Snapshot) BrokerIndex(id string) int { return at(s.brokers, id) }

// BundleIndex is the place of a bundle in Bundles, -1 if it is unknown.
func (s *Snapshot) BundleIndex(name string) int { return at(s.bundles, name) }

// LoadIndex is the place of a broker id in Load, -1 if nothing was heard of it.
func (s *Snapshot) LoadIndex(id string) int { return at(s.load, id) }

func at(m map[string]int, key string) int {
	if i, ok := m[key]; ok {
		return i
	}
	return -1
}

// WithOwners is the snapshot with other owners of some bundles: bundle name -> broker id, "" for nobody. Bundles that it does not
// have are added behind the others. The snapshot itself stays as it is.
func (s *Snapshot) WithOwners(owners map[string]string) *Snapshot {
	out := *s
	out.Brokers, out.Bundles = slices.Clone(s.Brokers), slices.Clone(s.Bundles)
	for _, name := range slices.Sorted(maps.Keys(owners)) {
		i := s.BundleIndex(name)
		if i < 0 {
			i = len(out.Bundles)
			out.Bundles = append(out.Bundles, Bundle{Name: name, Namespace: event.NamespaceOf(name)})
		}
		b := &out.Bundles[i]
		if k := s.BrokerIndex(b.Owner); k >= 0 {
			out.Brokers[k].Bundles = slices.DeleteFunc(slices.Clone(out.Brokers[k].Bundles), func(at int) bool { return at == i })
		}
		b.Owner, b.Heading, b.State = owners[name], "", event.Init
		if b.Owner != "" {
			b.State = event.Owned
		}
		if k := s.BrokerIndex(b.Owner); k >= 0 {
			out.Brokers[k].Bundles = append(slices.Clip(out.Brokers[k].Bundles), i)
		}
	}
	return out.Index()
}
