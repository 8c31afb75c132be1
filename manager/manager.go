// Package manager says which load manager runs on a cluster's brokers and how that is told, what a change to another one
// would break, and which steps move a cluster to the Extensible load manager. It is pure: what was read from the cluster
// comes in, findings with stable codes and numbers go out.
package manager

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
)

// Key is the broker.conf key that names the load manager.
const Key = "loadManagerClassName"

// Kind is a load manager of Pulsar by its short name; Unknown is none of them.
type Kind string

// The kinds.
const (
	Unknown    Kind = ""
	Simple     Kind = simple.Name
	Modular    Kind = modular.Name
	Extensible Kind = extensible.Name
)

var classes = map[Kind]string{Simple: simple.Class, Modular: modular.Class, Extensible: extensible.Class}

// Class is Pulsar's class of the load manager, "" for Unknown.
func (k Kind) Class() string { return classes[k] }

// String is the short name, "unknown" for Unknown.
func (k Kind) String() string {
	if k == Unknown {
		return "unknown"
	}
	return string(k)
}

// OfClass is the kind of a class name as brokers take it: exactly the class, or nothing for the Simple load manager (Pulsar:
// LoadManager.create). It is Unknown for any other text.
func OfClass(class string) Kind {
	if strings.TrimSpace(class) == "" {
		return Simple
	}
	for k, c := range classes {
		if c == class {
			return k
		}
	}
	return Unknown
}

// Parse is the kind that an operator names: a short name, the last part of a class name or the whole, in any case.
func Parse(name string) (Kind, bool) {
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, k := range []Kind{Simple, Modular, Extensible} {
		class := k.Class()
		short := class[strings.LastIndexByte(class, '.')+1:]
		if strings.EqualFold(name, string(k)) || strings.EqualFold(name, class) || name == last && strings.EqualFold(last, short) {
			return k, true
		}
	}
	return Unknown, false
}

// Report says in which form a broker answers for its load, which tells what really runs there.
type Report string

// The forms. An Extensible broker refuses (Pulsar: ExtensibleLoadManagerWrapper.generateLoadReport).
const (
	NoReport          Report = ""
	LocalBrokerData   Report = "LocalBrokerData"
	LoadReport        Report = "LoadReport"
	UnsupportedReport Report = "unsupported"
)

// Broker is what one registered broker says about its load manager.
type Broker struct {
	ID         string `json:"id"`                   // host:webPort
	Version    string `json:"version,omitempty"`    // of Pulsar
	Configured string `json:"configured,omitempty"` // loadManagerClassName of its runtime configuration
	Report     Report `json:"report,omitempty"`     // form of its load report
	Named      string `json:"named,omitempty"`      // loadManagerClassName inside its load report
	Ran        []Kind `json:"ran,omitempty"`        // what its process has run before and stopped
	RanUnknown string `json:"ranUnknown,omitempty"` // why that cannot be told, "" = it can
	Error      string `json:"error,omitempty"`      // why it did not answer, "" = it did
}

// Runs is the load manager that the broker really runs: told by the form of its report, since the configuration shows a
// value also when the broker could not follow it. Without a report it is Unknown.
func (b Broker) Runs() Kind {
	switch b.Report {
	case LocalBrokerData:
		return Modular
	case LoadReport:
		return Simple
	case UnsupportedReport:
		return Extensible
	}
	return Unknown
}

// Cluster is what was read of a cluster.
type Cluster struct {
	Name      string
	Version   string // of Pulsar, the leader's
	Leader    string // broker id, "" if none
	Brokers   []Broker
	Dynamic   map[string]string // the dynamic configuration: what is set in the metadata store
	Settable  bool              // loadManagerClassName is among the keys that can be set dynamically
	Settings  *settings.Settings
	Governing bool // a Ballast process governs: it holds the lock
}

// Kinds are the load managers that run, each once, in the order of the brokers; Unknown is left out.
func (c *Cluster) Kinds() []Kind {
	var out []Kind
	for _, b := range c.Brokers {
		if k := b.Runs(); k != Unknown && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	return out
}

// Severity says what a finding means for a change.
type Severity string

// The severities.
const (
	Refuse Severity = "refuse" // the change would break something: it is not made
	First  Severity = "first"  // to be done before the change
	Warn   Severity = "warn"   // the change works, but perhaps not as meant
	Note   Severity = "note"   // to be known
)

// Finding is one thing that a check found, with its numbers.
type Finding struct {
	Severity Severity    `json:"severity"`
	Broker   string      `json:"broker,omitempty"` // the broker it is about, "" = the cluster
	Why      plan.Reason `json:"why"`
}

// Worst says whether any finding has the severity.
func Worst(findings []Finding, s Severity) bool {
	return slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == s })
}

// list is the findings of one check.
type list struct{ findings []Finding }

func (l *list) add(s Severity, broker string, why plan.Reason) {
	l.findings = append(l.findings, Finding{Severity: s, Broker: broker, Why: why})
}

// names are the kinds' short names as a sentence has them.
func names(kinds []Kind) string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.String())
	}
	return strings.Join(out, ", ")
}

// counted is "modular on 2 brokers (a:8080, b:8080)" for every kind that runs.
func (c *Cluster) counted() string {
	var parts []string
	for _, k := range c.Kinds() {
		var ids []string
		for _, b := range c.Brokers {
			if b.Runs() == k {
				ids = append(ids, b.ID)
			}
		}
		parts = append(parts, fmt.Sprintf("%s on %s", k, strings.Join(ids, " ")))
	}
	return strings.Join(parts, ", ")
}
