package ownership

import (
	"math"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/policy"
)

// tested are the Pulsar versions whose brokers are known to obey records written from outside as ours are meant.
var tested = []string{"4.2.4", "5.0.1"}

// Tested are the Pulsar versions with whose brokers writing onto the ownership topic is tested on real clusters.
func Tested() []string { return slices.Clone(tested) }

// lastVersion leaves room before the end of the numbers, around which versions begin anew.
const lastVersion = math.MaxInt64 - 1

// The classes that say how a cluster keeps ownership (loadManagerClassName, loadManagerServiceUnitStateTableViewClassName).
const (
	managerClass = "ExtensibleLoadManagerImpl"
	topicClass   = "ServiceUnitStateTableViewImpl"
)

// Facts are what must hold in the whole cluster before anything is written.
type Facts struct {
	TableView      string // loadManagerServiceUnitStateTableViewClassName
	Syncer         string // loadBalancerServiceUnitTableViewSyncer; "" or "None" = none
	TombstoneDelay int64  // ms: loadBalancerServiceUnitStateTombstoneDelayTimeInSeconds
	Brokers        []Member
}

// Member is one registered broker.
type Member struct {
	Broker      string // broker id
	Version     string // Pulsar version, "" if it did not say
	LoadManager string // class, "" if it did not say
}

// Why nothing at all may be written in a cluster.
var (
	NoBrokers     = policy.Code{ID: "CHANNEL_NO_BROKERS", Template: "no broker is registered"}
	InMetadata    = policy.Code{ID: "CHANNEL_METADATA_STORE", Template: "ownership is not kept on the system topic: loadManagerServiceUnitStateTableViewClassName is {class}"}
	SyncerActive  = policy.Code{ID: "CHANNEL_SYNCER_ACTIVE", Template: "loadBalancerServiceUnitTableViewSyncer is {syncer}: records are copied between stores, it must be None"}
	MixedManagers = policy.Code{ID: "CHANNEL_MIXED_MANAGERS", Template: "{broker} runs {manager}, not every broker the Extensible load manager"}
	SilentBroker  = policy.Code{ID: "CHANNEL_SILENT_BROKER", Template: "{broker} is registered and does not say which load manager and version it runs"}
	Untested      = policy.Code{ID: "CHANNEL_VERSION_UNTESTED", Template: "{broker} runs Pulsar {version}; tested with {tested}"}
)

// Check is why nothing may be written in the cluster; zero if the bundle alone decides.
func (f Facts) Check() Refusal {
	if !strings.HasSuffix(f.TableView, topicClass) {
		return refuse(InMetadata, policy.S("class", f.TableView))
	}
	if f.Syncer != "" && f.Syncer != "None" {
		return refuse(SyncerActive, policy.S("syncer", f.Syncer))
	}
	if len(f.Brokers) == 0 {
		return refuse(NoBrokers)
	}
	for _, b := range f.Brokers {
		switch id := policy.S("broker", b.Broker); {
		case b.LoadManager == "" || b.Version == "":
			return refuse(SilentBroker, id)
		case !strings.HasSuffix(b.LoadManager, managerClass):
			return refuse(MixedManagers, id, policy.S("manager", b.LoadManager))
		case !slices.Contains(tested, b.Version):
			return refuse(Untested, id, policy.S("version", b.Version), policy.S("tested", joined(tested)))
		}
	}
	return Refusal{}
}

func (f Facts) registered(broker string) bool {
	return broker != "" && slices.ContainsFunc(f.Brokers, func(b Member) bool { return b.Broker == broker })
}

// recordMargin (ms) is how long before its removal an unowned record is left alone: clocks differ, and a write takes its time.
const recordMargin = 300_000

// recordLife is how old (ms) an unowned record may be to be written after.
func (f Facts) recordLife() int64 { return f.TombstoneDelay - min(f.TombstoneDelay/2, recordMargin) }

func joined(list []string) string { return strings.Join(list, ", ") }

func orNobody(broker string) string {
	if broker == "" {
		return "nobody"
	}
	return broker
}
