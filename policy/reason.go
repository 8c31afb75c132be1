package policy

import (
	"strconv"
	"strings"
)

// Code is a stable reason code with the sentence it stands for, as in package plan, which policy may not import.
type Code struct {
	ID       string
	Template string
}

// Reason is why a broker may not take a bundle, or why nothing can be said. The zero value is none.
type Reason struct {
	Code    string
	Text    string
	Numbers []Number
}

// Number is one named value of a reason: a number, or a name in Text.
type Number struct {
	Name  string
	Value float64
	Text  string
}

// The reasons of policies.
var (
	Frozen           = Code{"POLICY_FROZEN", "the policies of {namespace} are not known: {why}"}
	BrokenPattern    = Code{"POLICY_PATTERN_NOT_TRANSLATED", "isolation policy {policy} cannot be evaluated: {why}"}
	NotListed        = Code{"POLICY_NOT_LISTED", "isolation policy {policy} names {broker} neither as primary nor as secondary"}
	SecondaryWaits   = Code{"POLICY_SECONDARY_WAITS", "{broker} is secondary in isolation policy {policy}, whose {primaries} primaries are not fewer than min_limit {limit}"}
	NotShared        = Code{"POLICY_NOT_SHARED", "{broker} is a primary of an isolation policy and {namespace} has none"}
	KindNotServed    = Code{"TOPIC_KIND_NOT_SERVED", "{broker} does not serve {kind} topics"}
	NoHost           = Code{"BROKER_WITHOUT_HOST", "broker id {broker} is not host:port"}
	NotRegistered    = Code{"BROKER_NOT_REGISTERED", "{broker} is not registered"}
	NoOtherBroker    = Code{"POLICY_NO_OTHER_BROKER", "no other broker than {broker} may take {namespace}"}
	DomainHasMore    = Code{"ANTI_AFFINITY_DOMAIN", "failure domain {domain} of {broker} has {count} of the group, the least is {least}"}
	BrokerHasMore    = Code{"ANTI_AFFINITY_BROKER", "{broker} has {count} of the group, the least is {least}"}
	SystemNamespace  = Code{"NAMESPACE_SYSTEM", "{namespace} is the system namespace"}
	BrokerNamespace  = Code{"NAMESPACE_OF_A_BROKER", "{namespace} is the heartbeat or SLA namespace of a broker and belongs to it"}
	ExcludedFromMove = Code{"NAMESPACE_EXCLUDED", "{namespace} is in loadBalancerSheddingExcludedNamespaces"}
)

// S is a name in a reason.
func S(name, text string) Number {
	if text == "" {
		text = `""`
	}
	return Number{Name: name, Text: text}
}

// N is a number in a reason.
func N(name string, value int) Number { return Number{Name: name, Value: float64(value)} }

// Because makes a reason of the code.
func (c Code) Because(numbers ...Number) Reason {
	text := c.Template
	for _, n := range numbers {
		text = strings.ReplaceAll(text, "{"+n.Name+"}", n.String())
	}
	return Reason{Code: c.ID, Text: text, Numbers: numbers}
}

// IsZero says whether there is no reason.
func (r Reason) IsZero() bool { return r.Code == "" }

// String is the sentence.
func (r Reason) String() string { return r.Text }

// String is the value as people read it.
func (n Number) String() string {
	if n.Text != "" {
		return n.Text
	}
	return strconv.FormatFloat(n.Value, 'f', -1, 64)
}

func frozen(namespace, why string) Reason {
	return Frozen.Because(S("namespace", namespace), S("why", why))
}
