package manager

import (
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// What is found about a change of the load manager at run time.
var (
	NoBrokers        = plan.Code{ID: "NO_BROKERS", Template: "no broker is registered: there is nothing that could change"}
	UnknownName      = plan.Code{ID: "MANAGER_NAME_UNKNOWN", Template: "{name} is no load manager of Pulsar, it must be simple, modular, extensible or the class name of one; where it is set all the same, {effect}"}
	Restart          = plan.Code{ID: "EXTENSIBLE_NEEDS_RESTART", Template: "{from} to {to} at run time breaks lookups: the Extensible load manager is entered and left by restarting brokers only (ballast migrate plan)"}
	StaysSilent      = plan.Code{ID: "BROKER_NOT_VERIFIABLE", Template: "what the broker runs cannot be told, so neither can whether it follows: {error}"}
	NotSettable      = plan.Code{ID: "NOT_DYNAMIC", Template: "loadManagerClassName is not among the keys that these brokers take dynamically"}
	Stuck            = plan.Code{ID: "BROKER_STUCK", Template: "the broker is configured with {to} already and runs {runs}: setting the same value changes nothing there, start it again"}
	RanIt            = plan.Code{ID: "BROKER_RAN_IT_BEFORE", Template: "the process of this broker has run {to} before and cannot start it again: the broker would leave the registry and serve no look-ups. Restart it with a broker.conf that names what it runs now, then switch"}
	MayHaveRunIt     = plan.Code{ID: "BROKER_MAY_HAVE_RUN_IT", Template: "loadManagerClassName was changed at run time, and whether the process of this broker has run {to} before cannot be told ({error}): if it has, it would leave the registry. Restart it with a broker.conf that names what it runs now, then switch"}
	Governed         = plan.Code{ID: "BALLAST_GOVERNS", Template: "a Ballast process governs this cluster and planned for {from}: stop it first, start it again afterwards"}
	AvgPair          = plan.Code{ID: "AVG_SHEDDER_ONLY_PLACES", Template: "loadBalancerLoadPlacementStrategy is AvgShedder and loadBalancerLoadSheddingStrategy is {shedder}: brokers of Pulsar {version} cannot make a Modular load manager of that, and do not start with it; name AvgShedder in both or in none"}
	NoStrategy       = plan.Code{ID: "STRATEGY_UNKNOWN", Template: "{key}={class} is no strategy of the Modular load manager: brokers cannot make one with it, and do not start; it must be one of {names}"}
	OwnStrategy      = plan.Code{ID: "STRATEGY_OF_YOUR_OWN", Template: "{key}={class} is not one of Pulsar's: whether the brokers have it cannot be told"}
	Overwrites       = plan.Code{ID: "DYNAMIC_VALUE_OVERWRITTEN", Template: "loadManagerClassName={class} in the metadata store is overwritten"}
	OneWay           = plan.Code{ID: "SWITCH_IS_ONE_WAY", Template: "a broker's process cannot start a load manager again that it has stopped: to go back to {from}, write {to} into every broker.conf, restart the brokers one by one, then switch"}
	Stays            = plan.Code{ID: "DYNAMIC_VALUE_STAYS", Template: "loadManagerClassName={class} stays in the metadata store: write it into every broker.conf before any broker is started again. A broker whose broker.conf names another one does not get into the registry"}
	AlreadyRuns      = plan.Code{ID: "NOTHING_TO_SWITCH", Template: "every broker runs {to} already"}
	HistoryIsLost    = plan.Code{ID: "HISTORY_UNUSED", Template: "the histories of bundles stay where they are and are not used by Simple; Simple begins with its stored quotas"}
	DestinationsLost = plan.Code{ID: "DESTINATIONS_IGNORED", Template: "Simple ignores the destination of an unload: moves that are planned to a broker end anywhere"}
	Applies          = plan.Code{ID: "STRATEGIES", Template: "afterwards {key} counts: {strategies}"}
)

// Check is the result of looking at a change before it is made.
type Check struct {
	Name     string    `json:"name"`               // as it was asked for
	To       Kind      `json:"to"`                 // Unknown when the name is none
	From     []Kind    `json:"from"`               // what runs now
	Brokers  []Broker  `json:"brokers"`            //
	Findings []Finding `json:"findings"`           //
	Steps    []string  `json:"steps,omitempty"`    // what a switch does; none when it is refused or there is nothing to do
	Refused  bool      `json:"refused"`            //
	Done     bool      `json:"done"`               // nothing to do: every broker runs it already
	Previous *string   `json:"previous,omitempty"` // the dynamic value before, nil = absent
}

// CheckSwitch looks at a change of the whole cluster to the load manager of a name, at run time.
func CheckSwitch(c *Cluster, name string) Check {
	to, known := Parse(name)
	out := Check{Name: name, To: to, From: c.Kinds(), Brokers: c.Brokers}
	if class, ok := c.Dynamic[Key]; ok {
		out.Previous = &class
	}
	var l list
	switch {
	case !known:
		l.add(Refuse, "", UnknownName.Because(plan.S("name", name), plan.S("effect", unknownClass(c.Version))))
	case len(c.Brokers) == 0:
		l.add(Refuse, "", NoBrokers.Because())
	default:
		out.Done = c.all(to)
		l.change(c, to, out.Done)
	}
	l.merge(Show(c))
	out.Findings = l.findings
	out.Refused = Worst(l.findings, Refuse)
	if !out.Refused && !out.Done {
		out.Steps = c.steps(to)
	}
	return out
}

// merge appends findings, those of the same code and broker only once.
func (l *list) merge(more []Finding) {
	for _, f := range more {
		twice := false
		for _, g := range l.findings {
			twice = twice || g.Why.Code == f.Why.Code && g.Broker == f.Broker
		}
		if !twice {
			l.findings = append(l.findings, f)
		}
	}
}

// all says whether every broker runs the load manager, is configured with it, and nobody is silent.
func (c *Cluster) all(to Kind) bool {
	for _, b := range c.Brokers {
		if b.Runs() != to || OfClass(b.Configured) != to {
			return false
		}
	}
	return true
}

// change finds what stands against a change to a known load manager.
func (l *list) change(c *Cluster, to Kind, done bool) {
	if done {
		l.add(Note, "", AlreadyRuns.Because(plan.S("to", to.String())))
		return
	}
	l.restart(c, to)
	for _, b := range c.Brokers {
		switch runs := b.Runs(); {
		case runs == Unknown:
			l.add(Refuse, b.ID, StaysSilent.Because(plan.S("error", orNone(b.Error))))
		case runs != to && OfClass(b.Configured) == to:
			l.add(Refuse, b.ID, Stuck.Because(plan.S("to", to.String()), plan.S("runs", runs.String())))
		case slices.Contains(b.Ran, to):
			l.add(Refuse, b.ID, RanIt.Because(plan.S("to", to.String())))
		case runs != to && b.RanUnknown != "" && c.Dynamic[Key] != "":
			l.add(Refuse, b.ID, MayHaveRunIt.Because(plan.S("to", to.String()), plan.S("error", b.RanUnknown)))
		}
	}
	if !c.Settable {
		l.add(Refuse, "", NotSettable.Because())
	}
	if c.Governing {
		l.add(Refuse, "", Governed.Because(plan.S("from", names(c.Kinds()))))
	}
	l.strategies(c, to)
	if Worst(l.findings, Refuse) {
		return
	}
	if class, ok := c.Dynamic[Key]; ok {
		l.add(Note, "", Overwrites.Because(plan.S("class", class)))
	}
	l.add(Warn, "", OneWay.Because(plan.S("from", names(others(c.Kinds(), to))), plan.S("to", to.String())))
	l.add(Warn, "", Stays.Because(plan.S("class", to.Class())))
	if to == Simple {
		l.add(Warn, "", DestinationsLost.Because())
		l.add(Note, "", HistoryIsLost.Because())
	}
}

func others(kinds []Kind, not Kind) []Kind {
	return slices.DeleteFunc(kinds, func(k Kind) bool { return k == not })
}

// restart refuses every change into or out of the Extensible load manager.
func (l *list) restart(c *Cluster, to Kind) {
	for _, from := range c.Kinds() {
		if from != to && (from == Extensible || to == Extensible) {
			l.add(Refuse, "", Restart.Because(plan.S("from", from.String()), plan.S("to", to.String())))
			return
		}
	}
}

// steps are what a switch does.
func (c *Cluster) steps(to Kind) []string {
	return []string{
		"set " + Key + "=" + to.Class() + " in the dynamic configuration",
		"wait until every broker says that it is configured with it and answers with the load report of " + to.String(),
		"check that every broker is registered still, that one leads, and that topics are found where their bundles are",
	}
}

// strategies finds whether the strategies that the settings name exist in the load manager that is changed to, and says
// which ones will count.
func (l *list) strategies(c *Cluster, to Kind) {
	if c.Settings == nil {
		return
	}
	after := *c.Settings
	after.LoadManagerClassName = to.Class()
	version := c.Version
	switch to {
	case Modular:
		l.modular(&after, version)
	case Simple:
		l.add(Note, "", Applies.Because(plan.S("key", "loadBalancerPlacementStrategy"),
			plan.S("strategies", after.LoadBalancerPlacementStrategy+" places, overloaded brokers shed their first bundle above "+
				plan.N("", after.LoadBalancerBrokerOverloadedThresholdPercentage).String()+" %")))
	}
	for _, p := range settings.Check(&after, version) {
		if p.Code == AvgPair.ID && p.Severity == settings.Error {
			continue // refused above
		}
		l.add(Warn, "", plan.Reason{Code: p.Code, Text: p.Text})
	}
}

func (l *list) modular(after *settings.Settings, version string) {
	places, sheds := after.LoadBalancerLoadPlacementStrategy, after.LoadBalancerLoadSheddingStrategy
	ok := l.strategy("loadBalancerLoadPlacementStrategy", places, placers())
	ok = l.strategy("loadBalancerLoadSheddingStrategy", sheds, shedders()) && ok
	major, _, _ := parseVersion(version)
	if strings.HasSuffix(places, ".AvgShedder") && places != sheds && major < 5 {
		l.add(Refuse, "", AvgPair.Because(plan.S("shedder", sheds), plan.S("version", version)))
		ok = false
	}
	if ok {
		l.add(Note, "", Applies.Because(plan.S("key", "loadBalancerLoadPlacementStrategy with loadBalancerLoadSheddingStrategy"),
			plan.S("strategies", short(places)+" places, "+short(sheds)+" sheds")))
	}
}

// strategy refuses a class of Pulsar's that the Modular load manager cannot make (Pulsar: Reflections.createInstance).
func (l *list) strategy(key, class string, classes []string) bool {
	if slices.Contains(classes, class) {
		return true
	}
	if !strings.HasPrefix(class, "org.apache.pulsar.") && strings.Contains(class, ".") {
		l.add(Warn, "", OwnStrategy.Because(plan.S("key", key), plan.S("class", class)))
		return true
	}
	l.add(Refuse, "", NoStrategy.Because(plan.S("key", key), plan.S("class", class), plan.S("names", joined(classes))))
	return false
}

func short(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

func orNone(text string) string {
	if text == "" {
		return "it gives no load report"
	}
	return text
}
