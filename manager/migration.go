package manager

import (
	"strings"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// What is found about moving a cluster to the Extensible load manager.
var (
	TooOld          = plan.Code{ID: "VERSION_WITHOUT_EXTENSIBLE", Template: "Pulsar {version} has no Extensible load manager: the first one that has it is 3.0"}
	OldChannel      = plan.Code{ID: "VERSION_OLD_CHANNEL", Template: "Pulsar {version}: many faults of its ownership channel were mended in later versions, upgrade first if you can"}
	Already         = plan.Code{ID: "NOTHING_TO_MIGRATE", Template: "every broker runs the Extensible load manager already"}
	HalfWay         = plan.Code{ID: "MIGRATION_UNDER_WAY", Template: "some brokers are through, some are not: {brokers}; go on with those that are left"}
	DynamicManager  = plan.Code{ID: "DYNAMIC_MANAGER_LEFT", Template: "loadManagerClassName={class} is set in the metadata store and would count instead of broker.conf at the restart, and keep the broker out of the registry: delete the dynamic value. Brokers whose broker.conf named another one when they started change to that at once, and must be restarted"}
	DynamicShedder  = plan.Code{ID: "DYNAMIC_SHEDDER_LEFT", Template: "{key}={class} is set in the metadata store: the Extensible load manager takes {taken} whatever broker.conf says; delete the dynamic value"}
	DynamicSwitch   = plan.Code{ID: "DYNAMIC_SWITCH_LEFT", Template: "{key}={value} is set in the metadata store and counts after the change, too"}
	TakenOver       = plan.Code{ID: "BALLAST_TAKEOVER_LEFT", Template: "the built-in balancer is taken over by Ballast: stop the process that governs, or run ballast release, before brokers change"}
	NotAnswering    = plan.Code{ID: "BROKER_NOT_ANSWERING", Template: "the broker does not answer, so what it would do is not known: {error}"}
	MigrationKey    = plan.Code{ID: "MIGRATION_MODE_OFF", Template: "loadManagerMigrationEnabled is {value}: from Pulsar 5 on look-ups are not led to one load manager while two run, so that a bundle may get two owners; set it to true in every broker.conf and restart the brokers once before the change"}
	OneBroker       = plan.Code{ID: "ONE_BROKER", Template: "the cluster has one broker: nothing serves while it restarts"}
	Replicated      = plan.Code{ID: "SYSTEM_NAMESPACE_REPLICATED", Template: "pulsar/system is replicated to {clusters}: load data and ownership of this cluster would be mixed with theirs; let it stay in {cluster} alone"}
	NoSchema        = plan.Code{ID: "SYSTEM_SCHEMA_CLOSED", Template: "pulsar/system takes no new schemas (is_allow_auto_update_schema is false): brokers could not write onto its topics"}
	Expires         = plan.Code{ID: "SYSTEM_MESSAGES_EXPIRE", Template: "pulsar/system has a message TTL of {seconds} s: what the ownership topic holds must not expire, remove it"}
	Throttled       = plan.Code{ID: "SYSTEM_THROTTLED", Template: "pulsar/system has a publish rate limit of {rate} messages a second: ownership records of a restart come in bursts"}
	Unread          = plan.Code{ID: "NOT_READ", Template: "{what} cannot be read, so it was not checked: {error}"}
	Partitioned     = plan.Code{ID: "SYSTEM_TOPIC_PARTITIONED", Template: "{topic} has {partitions} partitions: the load manager needs it without, delete it"}
	OldRecords      = plan.Code{ID: "OWNERSHIP_RECORDS_LEFT", Template: "{topic} holds {entries} messages of an earlier time as an Extensible cluster: brokers of the same ids would take old owners for true; delete the topic before the first broker changes"}
	TopicStands     = plan.Code{ID: "SYSTEM_TOPIC_EXISTS", Template: "{topic} exists already and is used as it is"}
	TopicMissing    = plan.Code{ID: "SYSTEM_TOPIC_MISSING", Template: "{topic} does not exist: the first broker that changes makes it"}
	FewBundles      = plan.Code{ID: "FEW_BUNDLES", Template: "{namespace} has {bundles} bundles for {brokers} brokers and {mbps} MB/s: not every broker can get a part; split some first"}
	SystemBundles   = plan.Code{ID: "SYSTEM_BUNDLES", Template: "pulsar/system has {bundles} bundles: its topics, the ownership topic among them, are spread by them and are not moved by load"}
	ManyBundles     = plan.Code{ID: "MANY_BUNDLES", Template: "{bundles} bundles become as many ownership records; a broker reads them all before it serves"}
	NoClientAuth    = plan.Code{ID: "BROKER_CLIENT_AUTHENTICATION", Template: "authentication is on and brokerClientAuthenticationPlugin is {plugin}: brokers could not write onto the topics of each other"}
	NoTopicPolicies = plan.Code{ID: "TOPIC_POLICIES_OFF", Template: "topicLevelPoliciesEnabled or systemTopicEnabled is off: the ownership topic is not compacted as it should be"}
	IsolatedSystem  = plan.Code{ID: "SYSTEM_NAMESPACE_ISOLATED", Template: "the isolation policy {policy} holds for pulsar/system: the ownership topic lives on its brokers alone"}
	OwnPlacement    = plan.Code{ID: "PLACEMENT_NOT_READ", Template: "loadBalancerLoadPlacementStrategy={class} is not read by the Extensible load manager: it places with LeastResourceUsageWithWeight"}
)

// Namespace is what is known of a namespace and its policies.
type Namespace struct {
	Name          string   `json:"name"`
	Bundles       int      `json:"bundles"`
	Throughput    float64  `json:"throughput"` // bytes/s in + out
	Clusters      []string `json:"clusters,omitempty"`
	TTL           int64    `json:"ttl,omitempty"`         // seconds, 0 = none
	PublishRate   int64    `json:"publishRate,omitempty"` // messages/s, 0 = no limit
	SchemasClosed bool     `json:"schemasClosed,omitempty"`
	Missing       bool     `json:"missing,omitempty"` // it does not exist
	Error         string   `json:"error,omitempty"`   // why it could not be read
}

// Topic is what is known of a topic.
type Topic struct {
	Name       string `json:"name"`
	Exists     bool   `json:"exists"`
	Partitions int    `json:"partitions,omitempty"`
	Entries    int64  `json:"entries,omitempty"` // messages that it holds
	Error      string `json:"error,omitempty"`   // why it could not be read
}

// Facts are what was read for a migration.
type Facts struct {
	Cluster
	Config     map[string]string // runtime configuration of a broker
	System     Namespace         // pulsar/system
	Topics     []Topic           // those of the load manager
	Namespaces []Namespace       // those that have bundles in use, pulsar/system not among them
	Isolation  []string          // names of the isolation policies that hold for pulsar/system
	TakenOver  bool              // a take-over of Ballast is in force
	Unread     map[string]string // what could not be read, and why
}

// Migration is the plan of moving a cluster to the Extensible load manager.
type Migration struct {
	From     []Kind          `json:"from"`
	To       Kind            `json:"to"`
	Brokers  []Broker        `json:"brokers"`
	Findings []Finding       `json:"findings"`
	Steps    []MigrationStep `json:"steps,omitempty"`
	Ready    bool            `json:"ready"` // nothing is to be done first
	Done     bool            `json:"done"`  // nothing is left to do
}

// PlanMigration checks whether a cluster can be moved to the Extensible load manager, and gives the steps.
func PlanMigration(f *Facts) Migration {
	out := Migration{From: f.Kinds(), To: Extensible, Brokers: f.Brokers}
	var l list
	if len(f.Brokers) > 0 && f.all(Extensible) {
		l.add(Note, "", Already.Because())
		l.leftovers(f)
		out.Findings, out.Done = l.findings, true
		out.Ready = !Worst(l.findings, First)
		return out
	}
	l.brokers(f)
	l.leftovers(f)
	l.configuration(f)
	l.system(f)
	l.topicsOf(f)
	l.bundles(f)
	for _, what := range sortedKeys(f.Unread) {
		l.add(First, "", Unread.Because(plan.S("what", what), plan.S("error", f.Unread[what])))
	}
	out.Findings = l.findings
	out.Ready = !Worst(l.findings, First)
	out.Steps = f.steps(l.findings)
	return out
}

func (l *list) brokers(f *Facts) {
	switch len(f.Brokers) {
	case 0:
		l.add(First, "", NoBrokers.Because())
	case 1:
		l.add(Warn, f.Brokers[0].ID, OneBroker.Because())
	}
	for _, b := range f.Brokers {
		if b.Error != "" {
			l.add(First, b.ID, NotAnswering.Because(plan.S("error", b.Error)))
		}
		if b.Configured != "" && OfClass(b.Configured) == Unknown {
			l.add(First, b.ID, NoSuchClass.Because(plan.S("class", b.Configured), plan.S("effect", unknownClass(b.Version))))
		}
	}
	kinds := f.Kinds()
	for _, k := range kinds {
		if k == Extensible && len(kinds) > 1 {
			l.add(Warn, "", HalfWay.Because(plan.S("brokers", f.counted())))
		}
	}
	versions := f.versions()
	if len(versions) > 1 {
		l.add(First, "", VersionsDiffer.Because(plan.N("count", len(versions)), plan.S("versions", joined(versions))))
	}
	for _, v := range versions {
		switch major, _, ok := parseVersion(v); {
		case ok && major < 3:
			l.add(First, "", TooOld.Because(plan.S("version", v)))
		case ok && major < 4:
			l.add(Warn, "", OldChannel.Because(plan.S("version", v)))
		}
	}
	if f.Leader == "" && len(f.Brokers) > 0 {
		l.add(Warn, "", NoLeader.Because())
	}
}

// leftovers finds what is set in the metadata store and would count after the restart.
func (l *list) leftovers(f *Facts) {
	if f.TakenOver {
		l.add(First, "", TakenOver.Because())
	}
	for _, key := range sortedKeys(f.Dynamic) {
		value := f.Dynamic[key]
		switch {
		case key == Key && OfClass(value) != Extensible:
			l.add(First, "", DynamicManager.Because(plan.S("class", value)))
		case key == "loadBalancerLoadSheddingStrategy" && short(value) != "TransferShedder":
			l.add(First, "", DynamicShedder.Because(plan.S("key", key), plan.S("class", value), plan.S("taken", "TransferShedder")))
		case key == "loadBalancerSheddingEnabled" || key == "loadBalancerAutoBundleSplitEnabled" || key == "loadBalancerTransferEnabled":
			if !strings.EqualFold(value, "true") {
				l.add(Warn, "", DynamicSwitch.Because(plan.S("key", key), plan.S("value", value)))
			}
		}
	}
}

// configuration finds what the brokers' configuration must say before the restart.
func (l *list) configuration(f *Facts) {
	if f.Config["authenticationEnabled"] == "true" {
		if plugin := f.Config["brokerClientAuthenticationPlugin"]; plugin == "" || strings.HasSuffix(plugin, "AuthenticationDisabled") {
			l.add(First, "", NoClientAuth.Because(plan.S("plugin", orEmpty(plugin))))
		}
	}
	if f.Config["topicLevelPoliciesEnabled"] == "false" || f.Config["systemTopicEnabled"] == "false" {
		l.add(Warn, "", NoTopicPolicies.Because())
	}
	if value, ok := f.Config["loadManagerMigrationEnabled"]; ok && value != "true" {
		l.add(First, "", MigrationKey.Because(plan.S("value", value)))
	}
	if f.Settings == nil {
		return
	}
	after := *f.Settings
	after.LoadManagerClassName = Extensible.Class()
	if class := after.LoadBalancerLoadPlacementStrategy; !strings.Contains(class, ".extensions.") && short(class) != "LeastLongTermMessageRate" {
		l.add(Note, "", OwnPlacement.Because(plan.S("class", class)))
	}
	after.LoadBalancerLoadSheddingStrategy = transferShedder // the steps set it
	for _, p := range settings.Check(&after, f.Version) {
		severity := Warn
		if p.Severity == settings.Error {
			severity = First
		}
		l.add(severity, "", plan.Reason{Code: p.Code, Text: p.Text})
	}
}

// system finds what is wrong with the namespace that the load manager's topics live in.
func (l *list) system(f *Facts) {
	s := f.System
	if s.Error != "" {
		l.add(First, "", Unread.Because(plan.S("what", event.SystemNamespace), plan.S("error", s.Error)))
		return
	}
	if s.Missing {
		return // brokers make it when they start
	}
	for _, c := range s.Clusters {
		if c != f.Name {
			l.add(First, "", Replicated.Because(plan.S("clusters", joined(s.Clusters)), plan.S("cluster", f.Name)))
			break
		}
	}
	if s.SchemasClosed {
		l.add(First, "", NoSchema.Because())
	}
	if s.TTL > 0 {
		l.add(First, "", Expires.Because(plan.N("seconds", s.TTL)))
	}
	if s.PublishRate > 0 {
		l.add(Warn, "", Throttled.Because(plan.N("rate", s.PublishRate)))
	}
	for _, p := range f.Isolation {
		l.add(Note, "", IsolatedSystem.Because(plan.S("policy", p)))
	}
}

// topicsOf finds what stands where the load manager wants its topics.
func (l *list) topicsOf(f *Facts) {
	for _, t := range f.Topics {
		switch {
		case t.Error != "":
			l.add(First, "", Unread.Because(plan.S("what", t.Name), plan.S("error", t.Error)))
		case t.Partitions > 0:
			l.add(First, "", Partitioned.Because(plan.S("topic", t.Name), plan.N("partitions", t.Partitions)))
		case !t.Exists:
			l.add(Note, "", TopicMissing.Because(plan.S("topic", t.Name)))
		case t.Name == topics.ServiceUnitState && t.Entries > 0 && !f.runs(Extensible):
			l.add(First, "", OldRecords.Because(plan.S("topic", t.Name), plan.N("entries", t.Entries)))
		default:
			l.add(Note, "", TopicStands.Because(plan.S("topic", t.Name)))
		}
	}
}

func (f *Facts) runs(k Kind) bool {
	for _, b := range f.Brokers {
		if b.Runs() == k {
			return true
		}
	}
	return false
}

// Many bundles mean many records to read at a start.
const manyBundles = 10_000

func (l *list) bundles(f *Facts) {
	total := f.System.Bundles
	for _, ns := range f.Namespaces {
		total += ns.Bundles
		if ns.Bundles < len(f.Brokers) && ns.Throughput > 0 {
			l.add(Warn, "", FewBundles.Because(plan.S("namespace", ns.Name), plan.N("bundles", ns.Bundles), plan.N("brokers", len(f.Brokers)), plan.N("mbps", ns.Throughput/1e6)))
		}
	}
	if n := f.System.Bundles; n > 0 {
		l.add(Note, "", SystemBundles.Because(plan.N("bundles", n)))
	}
	if total > manyBundles {
		l.add(Warn, "", ManyBundles.Because(plan.N("bundles", total)))
	}
}

func orEmpty(text string) string {
	if text == "" {
		return "empty"
	}
	return text
}
