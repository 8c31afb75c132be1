package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestVerdicts are dialogues: policies and brokers are set up, then it is asked who may take what and why not.
func TestVerdicts(t *testing.T) {
	datadriven.Walk(t, "testdata/verdicts", func(t *testing.T, path string) {
		var d dialogue
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			return d.run(t, td)
		})
	})
}

type dialogue struct {
	set  *Set
	view *View
}

func (d *dialogue) run(t *testing.T, td *datadriven.TestData) string {
	switch td.Cmd {
	case "set":
		return d.setUp(td)
	case "allowed":
		var out strings.Builder
		for _, ns := range strings.Fields(td.Input) {
			verdict := d.view.Allowed(ns, !td.HasArg("non-persistent"))
			fmt.Fprintf(&out, "%s: policy=%q has=%v failover=%v\n", ns, verdict.Policy, d.set.HasPolicy(ns), verdict.Failover)
			if !verdict.Frozen.IsZero() {
				fmt.Fprintf(&out, "  frozen: %s\n", verdict.Frozen)
				continue
			}
			for i, b := range verdict.Brokers {
				if b.Allowed {
					fmt.Fprintf(&out, "  %s %s\n", b.Broker, b.Role)
				} else {
					fmt.Fprintf(&out, "  %s no, %s: %s\n", b.Broker, verdict.Why(i).Code, verdict.Why(i))
				}
			}
		}
		return out.String()
	case "must-move":
		var out strings.Builder
		for _, m := range d.view.MustMove(placements(td.Input)) {
			fmt.Fprintf(&out, "%s: %s\n", m.Bundle, m.Why)
			if !m.Stuck.IsZero() {
				fmt.Fprintf(&out, "  stuck: %s\n", m.Stuck)
			}
		}
		return out.String()
	case "move":
		var out strings.Builder
		for _, line := range strings.Split(td.Input, "\n") {
			f := strings.Fields(line)
			why := d.view.Move(Placed{Bundle: f[0], Broker: f[1]}, f[2])
			fmt.Fprintf(&out, "%s to %s: %s\n", f[0], f[2], orFine(why))
		}
		return out.String()
	case "frozen":
		var out strings.Builder
		for _, r := range d.set.Frozen() {
			fmt.Fprintf(&out, "%s: %s\n", r.Code, r)
		}
		return out.String()
	}
	td.Fatalf(t, "unknown command %s", td.Cmd)
	return ""
}

func orFine(r Reason) string {
	if r.IsZero() {
		return "fine"
	}
	return r.Code + ": " + r.String()
}

func placements(input string) (out []Placed) {
	for _, line := range strings.Split(input, "\n") {
		f := strings.Fields(line)
		out = append(out, Placed{Bundle: f[0], Broker: f[1]})
	}
	return out
}

// setUp reads lines: "policy name ns=a,b primary=c secondary=d min=1", "broker id [persistent-only]", "group ns name", "unread ns why".
func (d *dialogue) setUp(td *datadriven.TestData) string {
	var isolation []Isolation
	var brokers []Broker
	groups, unread := map[string]string{}, map[string]string{}
	for _, line := range strings.Split(td.Input, "\n") {
		f := strings.Fields(line)
		switch f[0] {
		case "policy":
			isolation = append(isolation, readPolicy(f[1:]))
		case "broker":
			brokers = append(brokers, Broker{f[1], true, len(f) == 2})
		case "group":
			groups[f[1]] = f[2]
		case "unread":
			unread[strings.TrimPrefix(f[1], "all")] = strings.Join(f[2:], " ")
		}
	}
	ports := map[bool]PortPatterns{td.HasArg("ports"): HostAndPort, td.HasArg("mixed"): HostPortUnknown}[true]
	d.set = New(isolation, groups, nil, unread, WithPorts(ports))
	var opts []ViewOption
	if td.HasArg("check-kinds") {
		opts = append(opts, CheckTopicKinds)
	}
	d.view = d.set.Over(brokers, opts...)
	return ""
}

func readPolicy(fields []string) Isolation {
	p := Isolation{Name: fields[0]}
	for _, f := range fields[1:] {
		key, value, _ := strings.Cut(f, "=")
		switch list := strings.Split(value, ","); key {
		case "ns":
			p.Namespaces = list
		case "primary":
			p.Primary = list
		case "secondary":
			p.Secondary = list
		case "min":
			fmt.Sscan(value, &p.AutoFailover.MinLimit)
		}
	}
	return p
}

func TestNilSet(t *testing.T) {
	var s *Set
	v := s.Allowed("t/ns", []Broker{{"b1:8080", true, true}}, true)
	if !v.Brokers[0].Allowed || v.Brokers[0].Role != Shared || s.HasPolicy("t/ns") || s.Group("t/ns") != "" || s.Frozen() != nil ||
		s.Domain("b1:8080") != "default" || s.Domains() != nil || s.Policies() != nil {
		t.Errorf("a nil set is not one without policies: %+v", v)
	}
}

func TestGroups(t *testing.T) {
	s := New(nil, map[string]string{"t/a": "Gold", "t/b": "gOLD", "t/c": "  ", "t/d": "gol", "t/e": "GROSS\u017f", "t/f": "grosss"}, nil, nil)
	got := []bool{s.Group("t/a") == s.Group("t/b"), s.HasAntiAffinity("t/c"), s.Group("t/a") == s.Group("t/d"), s.Group("t/e") == s.Group("t/f"), s.HasPolicy("t/a"), s.HasPolicy("t/x")}
	if diff := cmp.Diff([]bool{true, false, false, true, true, false}, got); diff != "" {
		t.Error(diff)
	}
}

func TestKinds(t *testing.T) {
	for name, want := range map[string]Kind{
		"pulsar/system": System, "pulsar/system2": Ordinary, "public/default": Ordinary, "pulsar/functions": Ordinary,
		"pulsar/b1:8080": OfBroker, "sla-monitor/10.0.0.1:8080": OfBroker, "pulsar/cluster/b1:8080": OfBroker, "sla-monitor/c/b1:8080": OfBroker,
		"pulsar/[::1]:8080": OfBroker, "pulsar/b1:": Ordinary, "pulsar/:8080": Ordinary, "pulsar/b1:80x": Ordinary, "my/b1:8080": Ordinary, "": Ordinary, "pulsar": Ordinary,
	} {
		if got := KindOf(name); got != want {
			t.Errorf("KindOf(%q) = %v, want %v", name, got, want)
		}
		if got := KindOf(NamespaceOf(name + "/0x00000000_0xffffffff")); got != want {
			t.Errorf("with a range: KindOf(%q) = %v, want %v", name, got, want)
		}
	}
	for bundle, want := range map[string]string{
		"t/ns/0x00000000_0x80000000": "t/ns", "t/c/ns/0x00000000_0x80000000": "t/c/ns", "t/ns": "t/ns", "x": "x", "": "", "t/0xns": "t/0xns",
	} {
		if got := NamespaceOf(bundle); got != want {
			t.Errorf("NamespaceOf(%q) = %q, want %q", bundle, got, want)
		}
	}
	excluded := []string{"t/ns", "t/other"}
	for ns, want := range map[string]Code{"pulsar/system": SystemNamespace, "pulsar/b:1": BrokerNamespace, "t/ns": ExcludedFromMove, "t/ns2": {}} {
		if got := Unmanaged(ns, excluded); got.Code != want.ID {
			t.Errorf("Unmanaged(%q) = %v, want %s", ns, got, want.ID)
		}
	}
}

// patterns that the properties draw from; the last ones are not translated.
var somePatterns = []string{"b1", "b.", "b[1-3]", "b4.*", ".*", "b5:808[01]", "(?:b6|b7)", "(?!b1).*", "[a-z&&[^b]]1"}

func drawSet(t *rapid.T, patterns []string) ([]Isolation, map[string]string) {
	list := rapid.SliceOfN(rapid.SampledFrom(patterns), 1, 3)
	names := append([]string{"t/.*", "t/a", "u/.*", "[tu]/b", ".*"}, patterns[7:]...)
	var isolation []Isolation
	for i := range rapid.IntRange(0, 3).Draw(t, "policies") {
		isolation = append(isolation, Isolation{
			Name:         fmt.Sprint("p", i),
			Namespaces:   rapid.SliceOfN(rapid.SampledFrom(names), 1, 2).Draw(t, "namespaces"),
			Primary:      list.Draw(t, "primary"),
			Secondary:    list.Draw(t, "secondary"),
			AutoFailover: AutoFailover{MinLimit: rapid.IntRange(-1, 4).Draw(t, "min")},
		})
	}
	unread := map[string]string{}
	if rapid.IntRange(0, 5).Draw(t, "unread") == 0 {
		unread[rapid.SampledFrom([]string{"", "t/a"}).Draw(t, "which")] = "timed out"
	}
	return isolation, unread
}

func drawBrokers(t *rapid.T) (out []Broker) {
	for range rapid.IntRange(0, 8).Draw(t, "brokers") {
		id := fmt.Sprintf("b%d:%d", rapid.IntRange(1, 8).Draw(t, "host"), rapid.IntRange(8080, 8081).Draw(t, "port"))
		out = append(out, Broker{id, rapid.Bool().Draw(t, "persistent"), rapid.Bool().Draw(t, "non-persistent")})
	}
	return out
}

// TestVerdictProperties: an allowed broker is one that the policy names, or one that no policy does; nothing is allowed
// where something is unknown; the order of questions does not matter.
func TestVerdictProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		isolation, unread := drawSet(t, somePatterns)
		brokers := drawBrokers(t)
		ports := PortPatterns(rapid.IntRange(0, 2).Draw(t, "ports"))
		s := New(isolation, map[string]string{"u/b": "g"}, nil, unread, WithPorts(ports))
		view := s.Over(brokers)
		for _, ns := range []string{"t/a", "t/b", "u/b", "v/x", "t/a"} {
			v := view.Allowed(ns, true)
			if diff := cmp.Diff(v, s.Allowed(ns, brokers, true), cmp.AllowUnexported(BrokerVerdict{})); diff != "" {
				t.Fatalf("%s: not the same when asked again:\n%s", ns, diff)
			}
			checkVerdict(t, s, &v, brokers)
		}
	})
}

func checkVerdict(t *rapid.T, s *Set, v *Verdict, brokers []Broker) {
	broken := false
	for _, r := range s.Frozen() {
		broken = broken || r.Code == BrokenPattern.ID
	}
	for i, b := range v.Brokers {
		if b.Broker != brokers[i].ID || b.Allowed != v.Why(i).IsZero() {
			t.Fatalf("%s: %+v, %s", v.Namespace, b, v.Why(i))
		}
		switch {
		case b.Allowed && !v.Frozen.IsZero():
			t.Fatalf("%s: frozen (%s) and %s allowed", v.Namespace, v.Frozen, b.Broker)
		case b.Allowed && v.Policy != "" && b.Role != Primary && (b.Role != Secondary || !v.Failover):
			t.Fatalf("%s: %s allowed as %s, failover %v", v.Namespace, b.Broker, b.Role, v.Failover)
		case b.Allowed && v.Policy == "" && (b.Role != Shared || !brokers[i].PersistentTopics):
			t.Fatalf("%s: %s allowed as %s without a policy", v.Namespace, b.Broker, b.Role)
		}
	}
	if !v.Frozen.IsZero() && !s.HasPolicy(v.Namespace) && v.Policy == "" && s.all == "" && !broken && s.ports != HostPortUnknown {
		t.Fatalf("%s: frozen without a cause: %s", v.Namespace, v.Frozen)
	}
}

// TestMoreBrokers: another shared broker removes no candidate, nor does another broker of any kind for namespaces
// without a policy; for the others it can only end the time of secondaries.
func TestMoreBrokers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		isolation, _ := drawSet(t, somePatterns[:7])
		brokers := drawBrokers(t)
		s := New(isolation, nil, nil, nil)
		more := append(brokers[:len(brokers):len(brokers)], Broker{"c1:8080", true, true})
		for _, ns := range []string{"t/a", "u/b", "v/x"} {
			before, after := s.Allowed(ns, brokers, true), s.Allowed(ns, more, true)
			newcomer := after.Brokers[len(brokers)]
			for i := range brokers {
				switch b := before.Brokers[i]; {
				case b.Allowed == after.Brokers[i].Allowed:
				case b.Allowed && b.Role == Secondary && newcomer.Role == Primary && before.Failover && !after.Failover:
				default:
					t.Fatalf("%s: %s %v before, %v after %+v joined", ns, b.Broker, b, after.Brokers[i], newcomer)
				}
			}
		}
	})
}

// TestUnknownNeverAllows: making a pattern unreadable never allows what was not allowed.
func TestUnknownNeverAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		isolation, _ := drawSet(t, somePatterns[:7])
		if len(isolation) == 0 {
			return
		}
		brokers := drawBrokers(t)
		s := New(isolation, nil, nil, nil)
		p := &isolation[rapid.IntRange(0, len(isolation)-1).Draw(t, "policy")]
		list := rapid.SampledFrom([]*[]string{&p.Namespaces, &p.Primary, &p.Secondary}).Draw(t, "list")
		*list = append([]string{}, *list...)
		(*list)[rapid.IntRange(0, len(*list)-1).Draw(t, "pattern")] = "(?!nobody).*"
		less := New(isolation, nil, nil, nil)
		for _, ns := range []string{"t/a", "t/b", "u/b", "v/x"} {
			before, after := s.Allowed(ns, brokers, true), less.Allowed(ns, brokers, true)
			for i := range brokers {
				if after.Brokers[i].Allowed && !before.Brokers[i].Allowed {
					t.Fatalf("%s: %s was not allowed (%s) and is", ns, brokers[i].ID, before.Why(i))
				}
			}
			if less.HasPolicy(ns) != s.HasPolicy(ns) && s.HasPolicy(ns) {
				t.Fatalf("%s: lost its policy", ns)
			}
		}
	})
}

// TestAntiAffinityProperties: something is always left, only among the candidates, and none with more than another.
func TestAntiAffinityProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers := drawBrokers(t)
		var candidates []int
		var domains []Domain
		counts := rapid.SliceOfN(rapid.IntRange(-1, 3), 0, len(brokers)).Draw(t, "counts")
		for i, b := range brokers {
			if rapid.Bool().Draw(t, "candidate") {
				candidates = append(candidates, i)
			}
			if rapid.Bool().Draw(t, "in a domain") {
				domains = append(domains, Domain{fmt.Sprint("d", rapid.IntRange(1, 2).Draw(t, "domain")), []string{b.ID}})
			}
		}
		view := New(nil, nil, domains, nil).Over(brokers)
		useDomains := rapid.Bool().Draw(t, "domains")
		kept := view.AntiAffinity(candidates, counts, useDomains, nil)
		if (len(kept) == 0) != (len(candidates) == 0) {
			t.Fatalf("of %v %v left", candidates, kept)
		}
		for _, b := range kept {
			if !slices.Contains(candidates, b) {
				t.Fatalf("%d was no candidate", b)
			}
			if of(counts, b) != of(counts, kept[0]) {
				t.Fatalf("%v kept with %d and %d of the group", kept, of(counts, b), of(counts, kept[0]))
			}
		}
		// Once more changes nothing, unless the sums of the domains are other ones by now.
		if again := view.AntiAffinity(kept, counts, false, nil); !cmp.Equal(kept, again) {
			t.Fatalf("%v, the second time %v", kept, again)
		}
	})
}

func of(counts []int, broker int) int {
	if broker < len(counts) {
		return counts[broker]
	}
	return 0
}
