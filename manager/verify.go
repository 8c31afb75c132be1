package manager

import (
	"slices"

	"github.com/ballast-lb/ballast/plan"
)

// What is found after a change that has not arrived everywhere.
var (
	NotConfigured = plan.Code{ID: "NOT_CONFIGURED", Template: "the broker says loadManagerClassName={configured}, not {class}"}
	NotRunning    = plan.Code{ID: "NOT_RUNNING", Template: "the broker runs {runs}, not {to}"}
	Gone          = plan.Code{ID: "BROKER_GONE", Template: "the broker was registered before the change and is not any more"}
	LookupFails   = plan.Code{ID: "LOOKUP_FAILS", Template: "the topic {topic} of {bundle} is not found: {error}"}
	NotServed     = plan.Code{ID: "TOPIC_NOT_SERVED", Template: "the topic {topic} of {bundle} is looked up at {broker}, which does not say that it owns the bundle"}
)

// Lookup is what came of looking a topic up after a change.
type Lookup struct {
	Topic  string
	Bundle string
	Broker string // broker id or address that it led to
	Owns   bool   // that broker says that it owns the bundle
	Error  string // "" = it was found
}

// Verify says what is not as it should be after a change to a load manager; nothing, when it has arrived everywhere.
func Verify(before, after *Cluster, to Kind, lookups []Lookup) []Finding {
	var l list
	for _, b := range before.Brokers {
		i := slices.IndexFunc(after.Brokers, func(x Broker) bool { return x.ID == b.ID })
		if i < 0 {
			l.add(Refuse, b.ID, Gone.Because())
		}
	}
	for _, b := range after.Brokers {
		switch runs := b.Runs(); {
		case b.Error != "" && runs == Unknown:
			l.add(Refuse, b.ID, Silent.Because(plan.S("error", b.Error)))
		case OfClass(b.Configured) != to:
			l.add(Refuse, b.ID, NotConfigured.Because(plan.S("configured", b.Configured), plan.S("class", to.Class())))
		case runs != to:
			l.add(Refuse, b.ID, NotRunning.Because(plan.S("runs", runs.String()), plan.S("to", to.String())))
		}
	}
	if after.Leader == "" {
		l.add(Refuse, "", NoLeader.Because())
	}
	for _, x := range lookups {
		switch {
		case x.Error != "":
			l.add(Refuse, "", LookupFails.Because(plan.S("topic", x.Topic), plan.S("bundle", x.Bundle), plan.S("error", x.Error)))
		case !x.Owns:
			l.add(Refuse, "", NotServed.Because(plan.S("topic", x.Topic), plan.S("bundle", x.Bundle), plan.S("broker", x.Broker)))
		}
	}
	return l.findings
}
