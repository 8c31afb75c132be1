package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Set is the policies of one cluster. It is immutable after New and safe for concurrent use. A nil Set is a cluster
// without policies.
type Set struct {
	isolation []isolation
	groups    map[string]string // tenant/ns -> anti-affinity group as written
	domains   []Domain
	domainOf  map[string]string // broker id -> failure domain
	unread    map[string]string // tenant/ns -> why its policies could not be read
	all       string            // why nothing could be read
	ports     PortPatterns
}

// isolation is an Isolation with its patterns translated.
type isolation struct {
	Isolation
	namespaces, primary, secondary []pattern
	broken                         string // why it cannot be told which brokers it names
}

// PortPatterns says what a primary or secondary pattern is matched against besides a broker's host.
type PortPatterns int

const (
	// HostOnly: nothing else. Pulsar 4.
	HostOnly PortPatterns = iota
	// HostAndPort: patterns with a colon are also matched against host:port. Pulsar 5.
	HostAndPort
	// HostPortUnknown: the brokers are of both kinds; where the two differ nothing is said.
	HostPortUnknown
)

// Option changes how a Set evaluates its policies.
type Option func(*Set)

// WithPorts says whether patterns with a colon are also matched against host:port; without it they are not.
func WithPorts(p PortPatterns) Option { return func(s *Set) { s.ports = p } }

// New makes a Set. The order of isolation decides which policy a namespace has that several match: it is the order in
// which the cluster stores them. antiAffinity maps tenant/ns to its group; a blank group is none. unread maps tenant/ns
// (or "" for all) to why the policies could not be read: what cannot be read never means "no policy".
func New(isolation []Isolation, antiAffinity map[string]string, domains []Domain, unread map[string]string, opts ...Option) *Set {
	s := &Set{
		groups:   map[string]string{},
		domains:  slices.Clone(domains),
		domainOf: map[string]string{},
		unread:   maps.Clone(unread),
		all:      unread[""],
	}
	for _, o := range opts {
		o(s)
	}
	for _, p := range isolation {
		s.isolation = append(s.isolation, prepare(p))
	}
	for ns, group := range antiAffinity {
		if strings.TrimSpace(group) != "" {
			s.groups[ns] = group
		}
	}
	for _, d := range domains {
		for _, b := range d.Brokers {
			s.domainOf[b] = d.Name // of a broker in two domains the later one counts, as in Pulsar
		}
	}
	return s
}

func prepare(p Isolation) isolation {
	out := isolation{
		Isolation:  p,
		namespaces: compileAll(p.Namespaces),
		primary:    compileAll(p.Primary),
		secondary:  compileAll(p.Secondary),
	}
	for _, list := range [][]pattern{out.primary, out.secondary} {
		for _, q := range list {
			if q.err != nil && out.broken == "" {
				out.broken = fmt.Sprintf("isolation policy %s: %v", p.Name, q.err)
			}
		}
	}
	return out
}

func compileAll(java []string) []pattern {
	out := make([]pattern, len(java))
	for i, j := range java {
		out[i] = compile(j)
	}
	return out
}

// Isolation is the isolation policy of a namespace: the first one with a pattern that matches the whole of tenant/ns.
// frozen is set when that cannot be told, or when the policy names brokers by a pattern that Go cannot match as Java
// does. Pulsar: NamespaceIsolationPolicies.getPolicyByNamespace.
func (s *Set) Isolation(namespace string) (p Isolation, ok bool, frozen Reason) {
	if s == nil {
		return Isolation{}, false, Reason{}
	}
	i, frozen := s.lookup(namespace)
	if i < 0 {
		return Isolation{}, false, frozen
	}
	return s.isolation[i].Isolation, true, frozen
}

// lookup is the index of a namespace's isolation policy, -1 for none or when it cannot be told.
func (s *Set) lookup(namespace string) (int, Reason) {
	if why := s.cannotRead(namespace); why != "" {
		return -1, frozen(namespace, why)
	}
	for i := range s.isolation {
		p := &s.isolation[i]
		switch anyMatches(p.namespaces, namespace) {
		case yes:
			if p.broken != "" {
				return i, frozen(namespace, p.broken)
			}
			return i, Reason{}
		case unknown:
			return -1, frozen(namespace, p.doubt(namespace))
		}
	}
	return -1, Reason{}
}

// cannotRead is why nothing may be said about a namespace. A group's members are counted among all namespaces, so
// one that could not be read leaves every group in doubt.
func (s *Set) cannotRead(namespace string) string {
	if s.all != "" {
		return s.all
	}
	if why := s.unread[namespace]; why != "" {
		return why
	}
	if s.groups[namespace] != "" && len(s.unread) > 0 {
		first := slices.Sorted(maps.Keys(s.unread))[0]
		return fmt.Sprintf("anti-affinity of %s is unknown: %s", first, s.unread[first])
	}
	return ""
}

// doubt is why it cannot be told whether the policy is that of the namespace.
func (p *isolation) doubt(namespace string) string {
	for _, q := range p.namespaces {
		if q.err != nil {
			return fmt.Sprintf("isolation policy %s: %v", p.Name, q.err)
		}
	}
	return fmt.Sprintf("isolation policy %s: name %q is not printable ASCII", p.Name, namespace)
}

// HasIsolation says whether a namespace has an isolation policy, or may have one.
func (s *Set) HasIsolation(namespace string) bool {
	_, ok, frozen := s.Isolation(namespace)
	return ok || !frozen.IsZero()
}

// HasAntiAffinity says whether a namespace has an anti-affinity group, or may have one. Pulsar takes a group that
// cannot be read for none.
func (s *Set) HasAntiAffinity(namespace string) bool {
	return s != nil && (s.groups[namespace] != "" || s.cannotRead(namespace) != "")
}

// HasPolicy says whether a namespace has an isolation policy or an anti-affinity group, or may have one. Pulsar leaves
// the bundles of such namespaces where they are unless loadBalancerSheddingBundlesWithPoliciesEnabled.
func (s *Set) HasPolicy(namespace string) bool {
	return s.HasAntiAffinity(namespace) || s.HasIsolation(namespace)
}

// Group is the anti-affinity group of a namespace in a form that is equal for all spellings of one group, "" for none.
// Pulsar compares groups ignoring case.
func (s *Set) Group(namespace string) string {
	if s == nil {
		return ""
	}
	return foldCase(s.groups[namespace])
}

// foldCase makes texts equal that Java's equalsIgnoreCase calls equal.
func foldCase(text string) string {
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, text)
}

// Domain is the failure domain of a broker, "default" for one that is in none.
func (s *Set) Domain(broker string) string {
	if s != nil {
		if d, ok := s.domainOf[broker]; ok {
			return d
		}
	}
	return "default"
}

// Domains are the failure domains, as given to New.
func (s *Set) Domains() []Domain {
	if s == nil {
		return nil
	}
	return slices.Clone(s.domains)
}

// Policies are the isolation policies, as given to New.
func (s *Set) Policies() []Isolation {
	if s == nil {
		return nil
	}
	out := make([]Isolation, len(s.isolation))
	for i := range s.isolation {
		out[i] = s.isolation[i].Isolation
	}
	return out
}

// Frozen is everything in the set that could not be read or cannot be evaluated: each entry freezes the namespaces
// that it names or might apply to.
func (s *Set) Frozen() []Reason {
	if s == nil {
		return nil
	}
	var out []Reason
	for _, ns := range slices.Sorted(maps.Keys(s.unread)) {
		name := ns
		if ns == "" {
			name = "all namespaces"
		}
		out = append(out, frozen(name, s.unread[ns]))
	}
	for i := range s.isolation {
		p := &s.isolation[i]
		for _, list := range [][]pattern{p.namespaces, p.primary, p.secondary} {
			for _, q := range list {
				if q.err != nil {
					out = append(out, BrokenPattern.Because(S("policy", p.Name), S("why", q.err.Error())))
				}
			}
		}
	}
	return out
}
