package manager

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/settings"
)

// TestDialogues runs the dialogues in testdata. Commands:
//
//	cluster               a cluster: one broker a line, then what is set in it (key=value lines)
//	show                  what is found about it
//	check NAME            what a switch would break
//	verify NAME           the given cluster against the one before, after a switch
//	migrate               the plan of a migration; lines are facts
func TestDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var c, before Cluster
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "cluster":
				before = c
				c = parseCluster(t, d.Input)
				return ""
			case "show":
				return printed(Show(&c))
			case "check":
				return checked(CheckSwitch(&c, strings.Join(argNames(d), " ")))
			case "verify":
				to, _ := Parse(argNames(d)[0])
				return printed(Verify(&before, &c, to, parseLookups(t, d.Input)))
			case "migrate":
				return migrated(PlanMigration(parseFacts(t, c, d.Input)))
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

func argNames(d *datadriven.TestData) []string {
	var out []string
	for _, a := range d.CmdArgs {
		out = append(out, a.Key)
	}
	return out
}

// parseCluster reads lines "broker ID VERSION CLASS REPORT [named=CLASS] [ran=KIND] [ran?=WHY] [error=TEXT]" and "KEY=VALUE".
func parseCluster(t *testing.T, input string) Cluster {
	t.Helper()
	c := Cluster{Name: "c", Settable: true, Dynamic: map[string]string{}, Settings: settings.Defaults()}
	for line := range strings.Lines(input) {
		fields := strings.Fields(line)
		if fields[0] != "broker" {
			key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
			if !ok {
				t.Fatalf("line %q", line)
			}
			setCluster(t, &c, key, value)
			continue
		}
		b := Broker{ID: fields[1]}
		line, b.Error, _ = strings.Cut(strings.TrimSpace(line), " error=")
		for i, f := range strings.Fields(line)[2:] {
			switch f = strings.ReplaceAll(f, "_", ""); {
			case strings.HasPrefix(f, "ran="):
				b.Ran = []Kind{Kind(f[len("ran="):])}
			case strings.HasPrefix(f, "ran?="):
				b.RanUnknown = f[len("ran?="):]
			case strings.HasPrefix(f, "named="):
				b.Named = class(f[len("named="):])
			case i == 0:
				b.Version = f
			case i == 1:
				b.Configured = class(f)
			case i == 2:
				b.Report = Report(f)
			}
		}
		c.Brokers = append(c.Brokers, b)
		if c.Version == "" {
			c.Version, c.Leader = b.Version, b.ID
		}
	}
	return c
}

// class is the class of a short name, anything else as it is.
func class(name string) string {
	if k := Kind(name); k.Class() != "" {
		return k.Class()
	}
	return name
}

func setCluster(t *testing.T, c *Cluster, key, value string) {
	t.Helper()
	switch key {
	case "leader":
		c.Leader = value
	case "settable":
		c.Settable = value == "true"
	case "governing":
		c.Governing = value == "true"
	case "dynamic":
		k, v, _ := strings.Cut(value, ":")
		c.Dynamic[k] = class(v)
	default:
		if err := settings.Set(c.Settings, key, value); err != nil {
			t.Fatal(err)
		}
	}
}

func parseLookups(t *testing.T, input string) (out []Lookup) {
	t.Helper()
	for line := range strings.Lines(input) {
		f := strings.Fields(line)
		x := Lookup{Topic: f[0], Bundle: f[1], Broker: f[2], Owns: f[3] == "owns"}
		if f[3] == "fails" {
			x.Error = "HTTP 500"
		}
		out = append(out, x)
	}
	return out
}

// parseFacts reads lines "system missing | [bundles=N] [clusters=A,B] [ttl=N] [rate=N] [closed]", "topic NAME [partitions=N] [entries=N]",
// "namespace NAME BUNDLES MBPS", "isolation NAME", "takenOver", "unread WHAT", "KEY=VALUE" of the runtime configuration.
func parseFacts(t *testing.T, c Cluster, input string) *Facts {
	t.Helper()
	f := &Facts{Cluster: c, Config: map[string]string{}, Unread: map[string]string{}}
	for line := range strings.Lines(input) {
		w := strings.Fields(line)
		switch w[0] {
		case "system":
			f.System = parseSystem(t, w[1:])
		case "topic":
			f.Topics = append(f.Topics, parseTopic(t, w[1:]))
		case "namespace":
			f.Namespaces = append(f.Namespaces, Namespace{Name: w[1], Bundles: number(t, w[2]), Throughput: 1e6 * float64(number(t, w[3]))})
		case "isolation":
			f.Isolation = append(f.Isolation, w[1])
		case "takenOver":
			f.TakenOver = true
		case "unread":
			f.Unread[w[1]] = "HTTP 500"
		default:
			key, value, _ := strings.Cut(w[0], "=")
			f.Config[key] = value
		}
	}
	return f
}

func parseSystem(t *testing.T, words []string) Namespace {
	t.Helper()
	if words[0] == "missing" {
		return Namespace{Missing: true}
	}
	ns := Namespace{Name: "pulsar/system"}
	for _, w := range words {
		switch key, value, _ := strings.Cut(w, "="); key {
		case "bundles":
			ns.Bundles = number(t, value)
		case "clusters":
			ns.Clusters = strings.Split(value, ",")
		case "ttl":
			ns.TTL = int64(number(t, value))
		case "rate":
			ns.PublishRate = int64(number(t, value))
		case "closed":
			ns.SchemasClosed = true
		case "error":
			ns.Error = value
		}
	}
	return ns
}

func parseTopic(t *testing.T, words []string) Topic {
	t.Helper()
	out := Topic{Name: words[0]}
	for _, w := range words[1:] {
		out.Exists = true
		switch key, value, _ := strings.Cut(w, "="); key {
		case "partitions":
			out.Partitions = number(t, value)
		case "entries":
			out.Entries = int64(number(t, value))
		case "error":
			out.Error = value
		}
	}
	return out
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func printed(findings []Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%s %s", f.Severity, f.Why.Code)
		if f.Broker != "" {
			fmt.Fprintf(&b, " %s", f.Broker)
		}
		fmt.Fprintf(&b, ": %s\n", f.Why)
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func checked(c Check) string {
	out := fmt.Sprintf("to %v from %v: refused %v, done %v\n", c.To, c.From, c.Refused, c.Done) + printed(c.Findings)
	for _, s := range c.Steps {
		out += "step " + s + "\n"
	}
	return out
}

func migrated(m Migration) string {
	out := fmt.Sprintf("from %v: ready %v, done %v\n", m.From, m.Ready, m.Done) + printed(m.Findings)
	for i, s := range m.Steps {
		out += fmt.Sprintf("%d. %s\n", i+1, s.Title)
		for _, d := range s.Do {
			out += "   do " + d + "\n"
		}
		for _, w := range s.Watch {
			out += "   watch " + w + "\n"
		}
		if s.Stop != "" {
			out += "   stop " + s.Stop + "\n"
		}
	}
	return out
}

// TestParse: short names, class names and their last parts in any case; nothing else.
func TestParse(t *testing.T) {
	for name, want := range map[string]Kind{
		"simple": Simple, "Modular": Modular, "EXTENSIBLE": Extensible, Modular.Class(): Modular, "ModularLoadManagerImpl": Modular,
		"extensibleloadmanagerimpl": Extensible, "": Unknown, "modul": Unknown, "org.example.ModularLoadManagerImpl": Unknown, "unknown": Unknown,
	} {
		if got, ok := Parse(name); got != want || ok != (want != Unknown) {
			t.Errorf("%q is %v, %v; want %v", name, got, ok, want)
		}
	}
	for class, want := range map[string]Kind{"": Simple, " ": Simple, Simple.Class(): Simple, Extensible.Class(): Extensible, "modular": Unknown,
		"org.apache.pulsar.broker.loadbalance.impl.modularloadmanagerimpl": Unknown} {
		if got := OfClass(class); got != want {
			t.Errorf("class %q is %v, want %v", class, got, want)
		}
	}
}

// TestRanBefore: a Simple broker whose process made a Modular load manager has run it; a Modular one that is much younger
// than its process has run Simple.
func TestRanBefore(t *testing.T) {
	const start = int64(1_700_000_000_000)
	for _, x := range []struct {
		runs           Kind
		process, begun int64
		made, dynamic  bool
		want           []Kind
	}{
		{Simple, start, 0, false, false, nil},
		{Simple, start, 0, true, false, []Kind{Modular}},
		{Modular, start, start + 40_000, true, false, nil},
		{Modular, start, start + 40_000, true, true, []Kind{Simple}},
		{Modular, start, start + 25_000, true, true, []Kind{Simple}}, // a switch 25 s after the brokers' start
		{Modular, start, start + dynamicSlack, true, true, nil},
		{Modular, start, start + startSlack, true, false, nil},
		{Modular, start, start + startSlack + 1, true, false, []Kind{Simple}},
		{Modular, 0, start, true, true, nil},
		{Extensible, start, 0, false, true, nil},
	} {
		if got := RanBefore(x.runs, x.process, x.begun, x.made, x.dynamic); !slices.Equal(got, x.want) {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// TestJSON: a check and a plan can be read back by their names.
func TestJSON(t *testing.T) {
	c := Cluster{Name: "c", Settings: settings.Defaults(), Brokers: []Broker{{ID: "a:8080", Version: "4.2.4", Configured: Modular.Class(), Report: LocalBrokerData}}}
	b, err := json.Marshal(CheckSwitch(&c, "extensible"))
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		To       string
		Refused  bool
		Findings []struct {
			Severity string
			Why      struct{ Code string }
		}
	}
	if err := json.Unmarshal(b, &back); err != nil || back.To != "extensible" || !back.Refused || back.Findings[0].Why.Code != Restart.ID {
		t.Errorf("%s: %+v, %v", b, back, err)
	}
}
