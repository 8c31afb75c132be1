package diagnose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// What is found about brokers, versions and configuration.
var (
	Silent          = plan.Code{ID: "BROKER_SILENT", Template: "it is registered and does not answer: {error}"}
	NoLeader        = plan.Code{ID: "NO_BROKER", Template: "no broker is registered"}
	MixedVersions   = plan.Code{ID: "VERSIONS_MIXED", Template: "brokers run different versions: {versions}"}
	Untested        = plan.Code{ID: "VERSION_UNTESTED", Template: "Pulsar {version} was not tested; tested are {tested}"}
	MixedManagers   = plan.Code{ID: "LOAD_MANAGERS_MIXED", Template: "brokers run different load managers: {managers}"}
	BadSetting      = plan.Code{ID: "SETTING", Template: "{text}"}
	ConfigDiffers   = plan.Code{ID: "CONFIG_DIFFERS", Template: "brokers have different values: {values}"}
	NoSuchBroker    = plan.Code{ID: "BROKER_ADDRESS_UNKNOWN", Template: "ballastBrokerAddresses names {broker}, which is no registered broker: they are {registered}"}
	NoZooKeeper     = plan.Code{ID: "ZOOKEEPER_UNREADABLE", Template: "the registry of brokers cannot be read in the ZooKeeper that ballastZooKeeper names: {error}"}
	ManagerDynamic  = plan.Code{ID: "DYNAMIC_LOAD_MANAGER", Template: "loadManagerClassName is set dynamically to {value}: it changes the load manager of running brokers, and of every broker that starts"}
	UnknownShedder  = plan.Code{ID: "DYNAMIC_UNKNOWN_STRATEGY", Template: "loadBalancerLoadSheddingStrategy is set dynamically to {value}, which is no strategy that is known: brokers take a class that does not exist without a word"}
	NobodyBalances  = plan.Code{ID: "NOBODY_BALANCES", Template: "{key} is false and no Ballast acts: nobody balances the cluster"}
	SyncerOn        = plan.Code{ID: "TABLE_VIEW_SYNCER", Template: "loadBalancerServiceUnitTableViewSyncer is {value}: ownership is being copied between two stores"}
	SplittingOff    = plan.Code{ID: "SPLITTING_OFF", Template: "loadBalancerAutoBundleSplitEnabled was set to false dynamically: hot bundles are not split"}
	LeftTakeOver    = plan.Code{ID: "TAKE_OVER_LEFT", Template: "{instance} took over at {at}, set {keys}, and did not put them back; no Ballast acts"}
	ActingTakeOver  = plan.Code{ID: "TAKE_OVER_IN_FORCE", Template: "{instance} governs and has set {keys}; it puts them back when it leaves"}
	SeveralActing   = plan.Code{ID: "SEVERAL_LOCKS", Template: "{count} producers hold the lock on acting: it must be one"}
	ReplicatedSpace = plan.Code{ID: "SYSTEM_NAMESPACE_REPLICATED", Template: "pulsar/system is replicated to {clusters}: the load managers' topics of one cluster would be read by another"}
)

// Tested are the lines of Pulsar on which everything is tested.
var Tested = []string{"4.2", "5.0"}

func (c *checker) brokers() {
	if len(c.Brokers) == 0 {
		c.add(Brokers, Error, "", NoLeader.Because(), "look at the address, and at the brokers' metadata store")
		return
	}
	for _, id := range slices.Sorted(maps.Keys(c.Silent)) {
		c.add(Brokers, Error, id, Silent.Because(plan.S("error", c.Silent[id])), "it may have died and stays registered until its metadata session ends; nothing is planned meanwhile")
	}
	c.fine(Brokers, "{count} brokers are registered, and answer", plan.N("count", len(c.Brokers)))
}

// groups are the values that brokers give, with how many give each, ordered, as "a (2), b (1)".
func (c *checker) groups(of func(i int) string) (text string, distinct []string) {
	counts := map[string]int{}
	for i := range c.Brokers {
		if v := of(i); v != "" {
			counts[v]++
		}
	}
	distinct = slices.Sorted(maps.Keys(counts))
	var parts []string
	for _, v := range distinct {
		parts = append(parts, fmt.Sprintf("%s (%d)", v, counts[v]))
	}
	return strings.Join(parts, ", "), distinct
}

func (c *checker) versions() {
	text, versions := c.groups(func(i int) string { return c.Brokers[i].Version })
	if len(versions) > 1 {
		c.add(Versions, Warning, "", MixedVersions.Because(plan.S("versions", text)), "finish the upgrade; Ballast decides by the leader's version, and writes nothing to the ownership log meanwhile")
	}
	for _, v := range versions {
		if !slices.ContainsFunc(Tested, func(line string) bool { return strings.HasPrefix(v, line+".") || v == line }) {
			c.add(Versions, Warning, v, Untested.Because(plan.S("version", v), plan.S("tested", strings.Join(Tested, " and "))), "run in advise first, and compare with observe")
		}
	}
	if text, managers := c.groups(func(i int) string { return short(c.Brokers[i].LoadManager) }); len(managers) > 1 {
		c.add(Versions, Error, "", MixedManagers.Because(plan.S("managers", text)), "lookups fail while brokers run different load managers; bring all to one")
	}
	c.fine(Versions, "all brokers run Pulsar {version}", plan.S("version", strings.Join(versions, ", ")))
}

func short(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// ownValues may differ from broker to broker without harm.
var ownValues = map[string]bool{"loadBalancerOverrideBrokerNicSpeedGbps": true, "loadBalancerOverrideBrokerNics": true}

func (c *checker) configuration() {
	for _, p := range c.Problems {
		severity := Warning
		if p.Severity == settings.Error {
			severity = Error
		}
		why := BadSetting.Because(plan.S("text", p.Text))
		why.Code = p.Code
		c.add(Configuration, severity, strings.Join(p.Keys, ", "), why, "")
	}
	c.differences()
	c.leftovers()
	c.connections()
	c.fine(Configuration, "{count} settings make sense together, and brokers agree on them", plan.N("count", len(settings.Keys())))
}

// differences are keys that matter to load balancing and differ between brokers.
func (c *checker) differences() {
	for _, k := range settings.Keys() {
		if ownValues[k.Name] {
			continue
		}
		counts := map[string][]string{}
		for _, id := range slices.Sorted(maps.Keys(c.Configs)) {
			if v, ok := c.Configs[id][k.Name]; ok {
				counts[v] = append(counts[v], id)
			}
		}
		if len(counts) < 2 {
			continue
		}
		var parts []string
		for _, v := range slices.Sorted(maps.Keys(counts)) {
			parts = append(parts, v+" on "+strings.Join(counts[v], ", "))
		}
		c.add(Configuration, Warning, k.Name, ConfigDiffers.Because(plan.S("values", strings.Join(parts, "; "))), "the leader's value counts for what the leader decides, and the leader changes: make them equal")
	}
}

// connections are settings of Ballast's that name what is not there. They count only when they are needed, which may be late.
func (c *checker) connections() {
	var ids []string
	for i := range c.Brokers {
		ids = append(ids, c.Brokers[i].ID)
	}
	for _, id := range c.Addressed {
		if len(ids) > 0 && !slices.Contains(ids, id) {
			c.add(Configuration, Warning, "ballastBrokerAddresses", NoSuchBroker.Because(plan.S("broker", id), plan.S("registered", strings.Join(ids, ", "))),
				"name the broker by its id, host:webPort as it is registered; if it is only down, this is right again when it is back")
		}
	}
	if c.Keeper != "" {
		c.add(Configuration, Warning, "ballastZooKeeper", NoZooKeeper.Because(plan.S("error", c.Keeper)),
			"name the cluster's own ZooKeeper and the path below which its metadata is, or leave the key out: load reports that brokers do not give are missing meanwhile")
	}
}

// leftovers are dynamic settings that are dangerous, or were left behind.
func (c *checker) leftovers() {
	if v, ok := c.Dynamic["loadManagerClassName"]; ok {
		c.add(Configuration, Warning, "loadManagerClassName", ManagerDynamic.Because(plan.S("value", v)), "write it into broker.conf and delete it from the dynamic configuration; from Extensible to another manager lookups break at run time")
	}
	if v, ok := c.Dynamic["loadBalancerLoadSheddingStrategy"]; ok && len(c.Shedders) > 0 && !slices.Contains(c.Shedders, v) {
		c.add(Configuration, Warning, "loadBalancerLoadSheddingStrategy", UnknownShedder.Because(plan.S("value", v)), "name a class that the brokers have")
	}
	if c.Acting == 0 {
		for _, key := range []string{"loadBalancerSheddingEnabled", "loadBalancerEnabled"} {
			if c.effective(key) == "false" && c.Left == nil {
				c.add(Configuration, Warning, key, NobodyBalances.Because(plan.S("key", key)), "set it to true, or let Ballast govern")
			}
		}
	}
	if v := c.effective("loadBalancerServiceUnitTableViewSyncer"); v != "" && v != "None" && v != "null" {
		c.add(Configuration, Warning, "loadBalancerServiceUnitTableViewSyncer", SyncerOn.Because(plan.S("value", v)), "finish the migration of the ownership store and set it to None; Ballast writes no ownership records meanwhile")
	}
	if c.Dynamic["loadBalancerAutoBundleSplitEnabled"] == "false" {
		c.add(Configuration, Info, "loadBalancerAutoBundleSplitEnabled", SplittingOff.Because(), "delete the key from the dynamic configuration to have them split again")
	}
}

// effective is a value that brokers run with, of the first one that tells it.
func (c *checker) effective(key string) string {
	for _, id := range slices.Sorted(maps.Keys(c.Configs)) {
		if v, ok := c.Configs[id][key]; ok {
			return v
		}
	}
	return ""
}

func (c *checker) takeOver() {
	if c.Acting > 1 {
		c.add(TakeOver, Error, "", SeveralActing.Because(plan.N("count", c.Acting)), "stop all Ballast processes but one")
	}
	switch l := c.Left; {
	case l == nil:
		c.fine(TakeOver, "nothing is left of a take-over")
	case c.Acting == 0:
		c.add(TakeOver, Error, l.Instance, LeftTakeOver.Because(plan.S("instance", l.Instance), plan.S("at", time.UnixMilli(l.At).UTC().Format(time.RFC3339)), plan.S("keys", strings.Join(l.Keys, ", "))),
			"put the cluster's settings back with ballast release, or start ballast run --mode govern again")
	default:
		c.add(TakeOver, Info, l.Instance, ActingTakeOver.Because(plan.S("instance", l.Instance), plan.S("keys", strings.Join(l.Keys, ", "))), "")
		c.fine(TakeOver, "Ballast governs")
	}
}

func (c *checker) replication() {
	others := slices.DeleteFunc(slices.Clone(c.Replicated), func(name string) bool { return name == c.Cluster })
	if len(others) > 0 {
		c.add(Replication, Error, "pulsar/system", ReplicatedSpace.Because(plan.S("clusters", strings.Join(others, ", "))), "take the other clusters out of its replication clusters: load data and ownership are of one cluster only")
	}
	c.fine(Replication, "pulsar/system is not replicated")
}
