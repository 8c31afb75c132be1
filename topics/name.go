package topics

import (
	"fmt"
	"strings"
)

// Name is a topic name taken apart (Pulsar: TopicName).
type Name struct {
	Persistent bool
	Tenant     string
	Namespace  string
	Local      string
}

// ParseName takes a full topic name apart: {persistent|non-persistent}://tenant/namespace/topic.
func ParseName(topic string) (Name, error) {
	domain, rest, ok := strings.Cut(topic, "://")
	if !ok || (domain != "persistent" && domain != "non-persistent") {
		return Name{}, fmt.Errorf("topic %q: want persistent://tenant/namespace/topic or non-persistent://tenant/namespace/topic", topic)
	}
	parts := strings.SplitN(rest, "/", 3)
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return Name{}, fmt.Errorf("topic %q: want %s://tenant/namespace/topic", topic, domain)
	}
	return Name{Persistent: domain == "persistent", Tenant: parts[0], Namespace: parts[1], Local: parts[2]}, nil
}

// Domain is "persistent" or "non-persistent".
func (n Name) Domain() string {
	if n.Persistent {
		return "persistent"
	}
	return "non-persistent"
}

// String is the full name.
func (n Name) String() string {
	return n.Domain() + "://" + n.Tenant + "/" + n.Namespace + "/" + n.Local
}
