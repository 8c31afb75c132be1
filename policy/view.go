package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// Role is what a broker is to a namespace.
type Role uint8

// The roles.
const (
	Neither   Role = iota // the namespace's isolation policy does not name it, or it is not shared
	Primary               // primary in the namespace's isolation policy
	Secondary             // secondary in it
	Shared                // the namespace has no isolation policy and the broker is primary in none
	Undecided             // it cannot be told
)

// String is the role as Pulsar names it.
func (r Role) String() string {
	return [...]string{"none", "primary", "secondary", "shared", "undecided"}[r]
}

// Verdict is which brokers may take the bundles of a namespace. Its slices are shared between verdicts and not to be changed.
type Verdict struct {
	Namespace string
	Policy    string // name of its isolation policy, "" if it has none
	Frozen    Reason // why nothing can be said; then no broker is allowed
	Primaries int    // registered primaries
	MinLimit  int    // min_limit of the policy
	Failover  bool   // there are fewer primaries than MinLimit, so secondaries serve, too
	Brokers   []BrokerVerdict
}

// BrokerVerdict is whether one broker may take the bundles of a namespace.
type BrokerVerdict struct {
	Broker  string // broker id
	Role    Role
	Allowed bool
	code    *Code // why not
	kind    string
}

// View evaluates a Set over the registered brokers. It remembers what it worked out, so make one a cycle and do not use
// it from several goroutines at once. Indexes are those of the brokers it was made over.
type View struct {
	set        *Set
	brokers    []Broker
	index      map[string]int
	checkKinds bool
	roles      [][]Role          // by policy, the last entry for namespaces without one; nil = not worked out
	verdicts   [][2]*Verdict     // like roles, for non-persistent and persistent topics; without the namespace
	names      map[string]lookup // namespaces looked up
}

type lookup struct {
	policy int
	frozen Reason
}

// ViewOption changes how a View evaluates.
type ViewOption func(*View)

// CheckTopicKinds also asks of a broker that an isolation policy names that it serves the bundle's kind of topics.
// Pulsar asks it only for namespaces without a policy.
func CheckTopicKinds(v *View) { v.checkKinds = true }

// Over makes a View over the registered brokers. Of several brokers with one id the first counts.
func (s *Set) Over(brokers []Broker, opts ...ViewOption) *View {
	if s == nil {
		s = New(nil, nil, nil, nil)
	}
	v := &View{set: s, brokers: brokers, index: make(map[string]int, len(brokers)), names: map[string]lookup{}}
	for _, o := range opts {
		o(v)
	}
	for i, b := range brokers {
		if _, ok := v.index[b.ID]; !ok {
			v.index[b.ID] = i
		}
	}
	v.roles = make([][]Role, len(s.isolation)+1)
	v.verdicts = make([][2]*Verdict, len(s.isolation)+1)
	return v
}

// Allowed is which of the brokers may take bundles of the namespace; persistent is the kind of the bundle's topics.
func (s *Set) Allowed(namespace string, brokers []Broker, persistent bool) Verdict {
	return s.Over(brokers).Allowed(namespace, persistent)
}

// Index is the place of a broker id, -1 if it is not registered.
func (v *View) Index(broker string) int {
	if i, ok := v.index[broker]; ok {
		return i
	}
	return -1
}

// Allowed is which brokers may take bundles of the namespace, one entry per broker in their order.
// Pulsar: LoadManagerShared.applyNamespacePolicies.
func (v *View) Allowed(namespace string, persistent bool) Verdict {
	l, ok := v.names[namespace]
	if !ok {
		l.policy, l.frozen = v.set.lookup(namespace)
		v.names[namespace] = l
	}
	out := *v.verdict(l.policy, persistent)
	out.Namespace = namespace
	switch {
	case !l.frozen.IsZero():
		out.Frozen = l.frozen
	case !out.Frozen.IsZero(): // nobody can tell which brokers are shared
		out.Frozen = frozen(namespace, out.Frozen.Text)
	}
	if !out.Frozen.IsZero() {
		out.Brokers = nobody(out.Brokers)
	}
	return out
}

// nobody is the brokers with none allowed.
func nobody(brokers []BrokerVerdict) []BrokerVerdict {
	out := make([]BrokerVerdict, len(brokers))
	for i, b := range brokers {
		out[i] = BrokerVerdict{Broker: b.Broker, Role: Undecided, code: &Frozen}
	}
	return out
}

// verdict is the verdict of all namespaces that have the policy, -1 for those that have none.
func (v *View) verdict(policy int, persistent bool) *Verdict {
	at, kind := policy, 0
	if policy < 0 {
		at = len(v.verdicts) - 1
	}
	if persistent {
		kind = 1
	}
	if v.verdicts[at][kind] == nil {
		v.verdicts[at][kind] = v.judge(policy, v.rolesOf(policy, at), persistent)
	}
	return v.verdicts[at][kind]
}

func (v *View) judge(policy int, roles []Role, persistent bool) *Verdict {
	out := &Verdict{Brokers: make([]BrokerVerdict, len(v.brokers))}
	if policy >= 0 {
		p := &v.set.isolation[policy]
		out.Policy, out.MinLimit = p.Name, p.AutoFailover.MinLimit
		for i := range roles {
			if roles[i] == Primary && v.index[v.brokers[i].ID] == i {
				out.Primaries++
			}
		}
		out.Failover = out.Primaries < out.MinLimit
	}
	for i := range v.brokers {
		b := BrokerVerdict{Broker: v.brokers[i].ID, Role: roles[i], kind: "persistent"}
		if !persistent {
			b.kind = "non-persistent"
		}
		switch {
		case noHost(b.Broker):
			b.code = &NoHost
		case (policy < 0 || v.checkKinds) && !v.brokers[i].serves(persistent):
			b.code = &KindNotServed
		case b.Role == Undecided:
			out.Frozen = Reason{Code: Frozen.ID, Text: v.undecided(policy, b.Broker)}
		case b.Role == Neither && policy >= 0:
			b.code = &NotListed
		case b.Role == Neither:
			b.code = &NotShared
		case b.Role == Secondary && !out.Failover:
			b.code = &SecondaryWaits
		default:
			b.Allowed = true
		}
		out.Brokers[i] = b
	}
	return out
}

func (b *Broker) serves(persistent bool) bool {
	if persistent {
		return b.PersistentTopics
	}
	return b.NonPersistentTopics
}

func (v *View) rolesOf(policy, at int) []Role {
	if v.roles[at] == nil {
		roles := make([]Role, len(v.brokers))
		for i := range v.brokers {
			if policy >= 0 {
				roles[i] = v.set.isolation[policy].role(v.brokers[i].ID, v.set.ports)
			} else {
				roles[i] = v.set.sharedRole(v.brokers[i].ID)
			}
		}
		v.roles[at] = roles
	}
	return v.roles[at]
}

func (p *isolation) role(id string, ports PortPatterns) Role {
	switch brokerMatches(p.primary, id, ports) {
	case yes:
		return Primary
	case unknown:
		return Undecided
	}
	switch brokerMatches(p.secondary, id, ports) {
	case yes:
		return Secondary
	case unknown:
		return Undecided
	}
	return Neither
}

// sharedRole is Shared for a broker that is primary in no policy.
func (s *Set) sharedRole(id string) Role {
	role := Shared
	for i := range s.isolation {
		switch brokerMatches(s.isolation[i].primary, id, s.ports) {
		case yes:
			return Neither
		case unknown:
			role = Undecided
		}
	}
	return role
}

// undecided is why it cannot be told what a broker is to the namespaces of a policy, or to those without one.
func (v *View) undecided(policy int, id string) string {
	for i := range v.set.isolation {
		if why := v.set.isolation[i].broken; why != "" && (policy < 0 || policy == i) {
			return why
		}
	}
	if !printable(id) {
		return fmt.Sprintf("broker id %q is not printable ASCII", id)
	}
	return "a pattern with a colon, which brokers of 4.x and 5.x evaluate differently, may match " + id
}

// host is the host of a broker id: what stands before its last colon.
func host(id string) string {
	i := strings.LastIndexByte(id, ':')
	if i < 0 {
		return ""
	}
	return id[:i]
}

// hostAndPort is a broker id as Pulsar 5 matches it: an IPv6 host stands in brackets, the port is a plain number; "" for
// an id that is neither. Pulsar 5: NamespaceIsolationPolicyImpl.
func hostAndPort(id string) string {
	h := host(id)
	if strings.HasPrefix(h, "[") && strings.HasSuffix(h, "]") {
		h = h[1 : len(h)-1]
	}
	port, err := strconv.ParseUint(id[strings.LastIndexByte(id, ':')+1:], 10, 16)
	if err != nil || h == "" || strings.Count(h, ":") == 1 {
		return ""
	}
	if strings.Contains(h, ":") {
		h = "[" + h + "]"
	}
	return h + ":" + strconv.FormatUint(port, 10)
}

func noHost(id string) bool { return strings.IndexByte(id, ':') < 0 }

// brokerMatches says whether one of the patterns matches the host of a broker, or its host:port where that counts.
func brokerMatches(patterns []pattern, id string, ports PortPatterns) answer {
	if noHost(id) {
		return no
	}
	result := anyMatches(patterns, host(id))
	withPort := hostAndPort(id)
	if result == yes || ports == HostOnly || withPort == "" {
		return result
	}
	for i := range patterns {
		if !strings.Contains(patterns[i].text, ":") {
			continue
		}
		switch patterns[i].matches(withPort) {
		case yes:
			if ports == HostAndPort {
				return yes
			}
			result = unknown
		case unknown:
			result = unknown
		}
	}
	return result
}
