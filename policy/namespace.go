package policy

import (
	"slices"
	"strings"
)

// Kind is what a namespace is for.
type Kind int

// The kinds.
const (
	Ordinary Kind = iota
	System        // pulsar/system: the load managers' own topics
	OfBroker      // the heartbeat or SLA namespace of a broker, which no other broker may own
)

// NamespaceOf is the tenant/namespace of a bundle name; a name without a range is returned as it is.
func NamespaceOf(bundle string) string {
	i := strings.LastIndexByte(bundle, '/')
	if i < 0 || !strings.HasPrefix(bundle[i+1:], "0x") || !strings.Contains(bundle[i+1:], "_0x") {
		return bundle
	}
	return bundle[:i]
}

// KindOf is the kind of a namespace: heartbeat namespaces are pulsar/host:port, SLA namespaces sla-monitor/host:port,
// and before Pulsar 4.1 there were pulsar/cluster/host:port and sla-monitor/cluster/host:port, too.
func KindOf(namespace string) Kind {
	tenant, name, _ := strings.Cut(namespace, "/")
	switch {
	case namespace == "pulsar/system":
		return System
	case (tenant == "pulsar" || tenant == "sla-monitor") && endsInPort(name):
		return OfBroker
	}
	return Ordinary
}

func endsInPort(name string) bool {
	i := strings.LastIndexByte(name, ':')
	if i < 1 || i == len(name)-1 {
		return false
	}
	return strings.Trim(name[i+1:], "0123456789") == ""
}

// Unmanaged is why the bundles of a namespace are never moved for balance; zero if they may be. excluded is
// loadBalancerSheddingExcludedNamespaces.
func Unmanaged(namespace string, excluded []string) Reason {
	switch KindOf(namespace) {
	case System:
		return SystemNamespace.Because(S("namespace", namespace))
	case OfBroker:
		return BrokerNamespace.Because(S("namespace", namespace))
	}
	if slices.Contains(excluded, namespace) {
		return ExcludedFromMove.Because(S("namespace", namespace))
	}
	return Reason{}
}
