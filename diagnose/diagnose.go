// Package diagnose judges what was found out about a cluster: its configuration, the permissions of the credentials, the
// brokers' versions, replication of the system namespace, what a take-over left behind, schemas, clocks, and what is wrong in
// the ownership log. It is pure: facts go in, findings come out.
package diagnose

import (
	"cmp"
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/watch"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	OK      Severity = "ok"
	Info    Severity = "info"    // worth knowing; nothing is wrong
	Warning Severity = "warning" // something should be done about it
	Error   Severity = "error"   // something is broken, or could not be checked
)

// The areas that are checked, in the order in which they are shown.
const (
	Brokers       = "brokers"
	Versions      = "versions"
	Configuration = "configuration"
	Permissions   = "permissions"
	Replication   = "replication"
	TakeOver      = "take-over"
	Schemas       = "schemas"
	Clocks        = "clocks"
	Ownership     = "ownership"
)

// Areas are the areas in their order.
var Areas = []string{Brokers, Versions, Configuration, Permissions, Replication, TakeOver, Schemas, Clocks, Ownership}

// Finding is one thing that was found, or that an area is fine.
type Finding struct {
	Area     string         `json:"area"`
	Severity Severity       `json:"severity"`
	About    string         `json:"about,omitempty"` // a broker, bundle, topic, key or permission
	Why      plan.Reason    `json:"why"`
	Advice   string         `json:"advice,omitempty"`
	Anomaly  *watch.Anomaly `json:"anomaly,omitempty"` // of the ownership log, with its evidence
}

// NotChecked is what could not be found out; it is an error whatever the area.
var NotChecked = plan.Code{ID: "NOT_CHECKED", Template: "this could not be checked: {error}"}

// Fine is said of an area without a finding.
var Fine = plan.Code{ID: "OK", Template: "{what}"}

// Facts is what was found out. What is nil or empty was not asked for; what could not be found out is in Unchecked.
type Facts struct {
	Brokers    []cluster.Broker             // the registry, ordered by id
	Silent     map[string]string            // registered brokers that did not answer -> why
	Version    string                       // of the leader, or of another broker if it did not answer
	Problems   []settings.Problem           // of the settings, one by one and in pairs
	Addressed  []string                     // broker ids that ballastBrokerAddresses names
	Keeper     string                       // why ballastZooKeeper cannot be read; "" = it can, or is not set
	Configs    map[string]map[string]string // broker id -> its runtime configuration
	Dynamic    map[string]string            // what was set dynamically
	Shedders   []string                     // class names of shedding strategies that are known
	Probes     []Probe
	Replicated []string // clusters that pulsar/system is replicated to
	Cluster    string   // its own name
	Left       *Left    // a take-over that was not undone
	Acting     int      // Ballast processes that hold the lock on acting
	Schemas    []Schema
	Clocks     []Clock
	Anomalies  []watch.Anomaly
	Watched    int64  // ms that the ownership log was watched
	Bundles    int    // that it has records of
	NoLog      string // the load manager that keeps no ownership log; "" = there is one
	Mode       string
	Unchecked  []Unchecked
}

// Unchecked is something that could not be found out.
type Unchecked struct{ Area, About, Error string }

// Probe is a permission and whether the credentials have it.
type Probe struct {
	What   string // "unload bundles"
	Needed string // the least mode that needs it: observe, advise, govern
	Denied string // the cluster's words; "" = it is granted
}

// Left is a take-over that is in force.
type Left struct {
	Instance string
	At       int64 // Unix ms
	Keys     []string
}

// Schema is the schema of a load topic.
type Schema struct {
	Topic    string
	Class    string
	Versions []SchemaVersion // oldest first
}

// SchemaVersion is one version of a schema.
type SchemaVersion struct {
	Version    int64
	Type       string
	Definition string
}

// Clock is how far a broker's clock is ahead of ours, and how uncertain that is, in ms.
type Clock struct {
	Broker           string
	Ahead, Uncertain int64
}

// Check judges the facts: the findings of each area, the worst first, or that it is fine.
func Check(f Facts) []Finding {
	c := &checker{Facts: f}
	for _, area := range []func(){c.brokers, c.versions, c.configuration, c.permissions, c.replication, c.takeOver, c.schemas, c.clocks, c.ownership} {
		area()
	}
	for _, u := range f.Unchecked {
		c.add(u.Area, Error, u.About, NotChecked.Because(plan.S("error", u.Error)), "see that it can be reached and read; nothing is known about it meanwhile")
	}
	rank := map[Severity]int{Error: 0, Warning: 1, Info: 2, OK: 3}
	slices.SortStableFunc(c.out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(Areas, a.Area), slices.Index(Areas, b.Area)), cmp.Compare(rank[a.Severity], rank[b.Severity]),
			cmp.Compare(a.Why.Code, b.Why.Code), cmp.Compare(a.About, b.About))
	})
	return c.out
}

// Worst is the worst severity among findings.
func Worst(list []Finding) Severity {
	worst := OK
	for _, f := range list {
		switch {
		case f.Severity == Error:
			return Error
		case f.Severity == Warning, f.Severity == Info && worst == OK:
			worst = f.Severity
		}
	}
	return worst
}

type checker struct {
	Facts
	out []Finding
}

func (c *checker) add(area string, s Severity, about string, why plan.Reason, advice string) {
	c.out = append(c.out, Finding{Area: area, Severity: s, About: about, Why: why, Advice: advice})
}

// fine says that an area is, unless something was found in it or could not be found out.
func (c *checker) fine(area, format string, numbers ...plan.Number) {
	bad := func(f Finding) bool { return f.Area == area && f.Severity != Info }
	if slices.ContainsFunc(c.out, bad) || slices.ContainsFunc(c.Unchecked, func(u Unchecked) bool { return u.Area == area }) {
		return
	}
	code := plan.Code{ID: Fine.ID, Template: format}
	c.add(area, OK, "", code.Because(numbers...), "")
}
