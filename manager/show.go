package manager

import (
	"github.com/ballast-lb/ballast/plan"
)

// What is found about the load managers that run.
var (
	Mixed           = plan.Code{ID: "MANAGER_MIXED", Template: "the brokers run different load managers: {brokers}"}
	Silent          = plan.Code{ID: "BROKER_SILENT", Template: "the broker does not answer: {error}"}
	NotFollowed     = plan.Code{ID: "CONFIGURED_NOT_RUNNING", Template: "loadManagerClassName is {configured}, but the broker runs {runs}: it could not change, and takes the configured one when it is started again"}
	NoSuchClass     = plan.Code{ID: "MANAGER_CLASS_UNKNOWN", Template: "loadManagerClassName is {class}, which is no load manager of Pulsar: {effect}"}
	DynamicValue    = plan.Code{ID: "DYNAMIC_VALUE", Template: "loadManagerClassName={class} is set in the metadata store and counts instead of broker.conf. Every broker.conf must name the same: a broker whose broker.conf names another one does not get into the registry when it starts"}
	VersionsDiffer  = plan.Code{ID: "VERSIONS_DIFFER", Template: "the brokers run different versions of Pulsar: {versions}"}
	NoLeader        = plan.Code{ID: "NO_LEADER", Template: "no broker leads: nothing is shed, and a Modular cluster assigns no bundle by load"}
	NotNamed        = plan.Code{ID: "REPORT_NAMES_OTHER", Template: "the load report names {named}, the broker runs {runs}: the broker registered before it changed"}
	NothingReported = plan.Code{ID: "NO_LOAD_REPORT", Template: "the broker's load report cannot be had, so that its configuration alone tells: {error}"}
)

// Show finds what an operator should know about the load managers that run.
func Show(c *Cluster) []Finding {
	var l list
	if kinds := c.Kinds(); len(kinds) > 1 {
		l.add(Warn, "", Mixed.Because(plan.N("managers", len(kinds)), plan.S("brokers", c.counted())))
	}
	for _, b := range c.Brokers {
		l.broker(c, b)
	}
	if class, ok := c.Dynamic[Key]; ok {
		l.add(Note, "", DynamicValue.Because(plan.S("class", class)))
	}
	l.versions(c)
	if c.Leader == "" {
		l.add(Warn, "", NoLeader.Because())
	}
	return l.findings
}

// broker finds where what a broker runs is not what it is configured with.
func (l *list) broker(c *Cluster, b Broker) {
	if b.Error != "" {
		code := Silent
		if b.Configured != "" {
			code = NothingReported
		}
		l.add(Warn, b.ID, code.Because(plan.S("error", b.Error)))
	}
	if b.Configured == "" {
		return
	}
	runs, configured := b.Runs(), OfClass(b.Configured)
	switch {
	case configured == Unknown:
		l.add(Warn, b.ID, NoSuchClass.Because(plan.S("class", b.Configured), plan.S("effect", unknownClass(b.Version))))
	case runs != Unknown && runs != configured:
		l.add(Warn, b.ID, NotFollowed.Because(plan.S("configured", b.Configured), plan.S("runs", runs.String())))
	case runs != Unknown && b.Named != "" && OfClass(b.Named) != runs:
		l.add(Note, b.ID, NotNamed.Because(plan.S("named", b.Named), plan.S("runs", runs.String())))
	}
}

// unknownClass is what brokers of a version do with a class that does not exist.
func unknownClass(version string) string {
	if major, minor, ok := parseVersion(version); ok && (major < 4 || major == 4 && minor < 2) {
		return "brokers take the Simple load manager instead, at their next start or at once"
	}
	return "brokers go on with what they run and do not start again"
}

func (l *list) versions(c *Cluster) {
	if v := c.versions(); len(v) > 1 {
		l.add(Warn, "", VersionsDiffer.Because(plan.N("count", len(v)), plan.S("versions", joined(v))))
	}
}
