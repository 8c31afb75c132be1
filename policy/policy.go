// Package policy evaluates what may be placed where: namespace isolation, anti-affinity groups, failure domains and
// excluded namespaces, as Pulsar's SimpleResourceAllocationPolicies and LoadManagerShared evaluate them. It is pure.
package policy

// Broker is what policies ask of a broker.
type Broker struct {
	ID                  string // host:webPort
	PersistentTopics    bool   // serves persistent topics
	NonPersistentTopics bool   // serves non-persistent topics
}

// AutoFailover says when secondary brokers may serve. Pulsar: AutoFailoverPolicyData, type min_available.
type AutoFailover struct {
	MinLimit       int // secondaries serve while fewer primaries than this are there
	UsageThreshold int // kept for the record; Pulsar's load managers do not read it
}

// Isolation is one namespace isolation policy. Namespaces, Primary and Secondary are Java regular expressions.
type Isolation struct {
	Name         string
	Namespaces   []string
	Primary      []string
	Secondary    []string
	AutoFailover AutoFailover
}

// Domain is a failure domain: a set of broker ids.
type Domain struct {
	Name    string
	Brokers []string
}
