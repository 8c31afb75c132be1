package guard

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// world is the cluster and the guard of a dialogue. In text a broker is its host, and a bundle is tenant/ns/k, the k-th of 16
// ranges. Every limit is off until the world sets its key.
type world struct {
	snap      cluster.Snapshot
	own       *settings.Ballast
	isolation []policy.Isolation
	groups    map[string]string
	domains   []policy.Domain
	unread    map[string]string
	silent    map[string]bool
	state     State
}

func newWorld() *world {
	own := settings.DefaultBallast()
	for _, k := range settings.BallastKeys() {
		if k.Group == "Limits" {
			off := map[settings.Type]string{settings.TypeInt: "0", settings.TypeDouble: "0", settings.TypeString: "off", settings.TypeList: "", settings.TypeDuration: "0s"}[k.Type]
			if strings.HasSuffix(k.Name, "Timeout") {
				continue
			}
			_ = settings.SetBallast(own, k.Name, off) // what cannot be off is not a limit of the guard
		}
	}
	set := settings.Defaults()
	set.LoadManagerClassName = "extensible"
	set.LoadBalancerLoadSheddingStrategy = "TransferShedder"
	return &world{snap: cluster.Snapshot{Now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC).UnixMilli(), Settings: set}, own: own,
		groups: map[string]string{}, unread: map[string]string{}, silent: map[string]bool{}, state: NewState()}
}

// run answers a dialogue. Commands:
//
//	world        the cluster, anew; every broker was just heard
//	change       changes of it
//	check        what may run of the decisions: "transfer BUNDLE A -> B", "unload BUNDLE A", with "order" before it for an operator's
//	done         what came of decisions; "failed" or "took=30s" after it
//	later 5m     time passes; brokers that are not silent are heard again, and a cycle begins
//	harm         what clients see: "b1 latency=20 reconnects=1"
//	pause, resume, drain, undrain    orders of an operator
func (w *world) run(d *datadriven.TestData) (string, error) {
	lines := strings.Split(strings.TrimSpace(d.Input), "\n")
	if d.Input == "" {
		lines = nil
	}
	each := func(do func(string) error) (string, error) {
		for _, line := range lines {
			if err := do(line); err != nil {
				return "", fmt.Errorf("%s: %w", line, err)
			}
		}
		return "", nil
	}
	switch d.Cmd {
	case "world":
		*w = *newWorld()
		out, err := each(w.line)
		w.observe(nil)
		return out, err
	case "change":
		return each(w.line)
	case "check":
		return w.check(lines)
	case "done":
		return each(w.done)
	case "later":
		d, err := time.ParseDuration(d.CmdArgs[0].Key)
		w.snap.Now += d.Milliseconds()
		for i := range w.snap.Brokers {
			if b := &w.snap.Brokers[i]; !w.silent[b.ID] {
				b.LoadHeard = w.snap.Now
			}
		}
		w.observe(nil)
		return "", err
	case "harm":
		h := &Harm{At: w.snap.Now}
		_, err := each(func(line string) error {
			id, args := split(line)
			h.Brokers = append(h.Brokers, Clients{Broker: long(id), Latency: num(args["latency"]), Reconnects: num(args["reconnects"])})
			return nil
		})
		w.observe(h)
		return fmt.Sprintf("%d at once\n", w.state.Pace.AtOnce(w.limits())), err
	case "pause":
		_, args := split("x " + strings.Join(lines, " "))
		p := Pause{Reason: strings.ReplaceAll(args["reason"], "_", " "), By: args["by"], Since: w.snap.Now}
		if t, err := time.ParseDuration(args["for"]); err == nil {
			p.Until = p.Since + t.Milliseconds()
		}
		w.state = Stop(w.state, p)
		return "", nil
	case "resume":
		w.state = Resume(w.state)
		return "", nil
	case "drain":
		w.state = Drain(w.state, long(d.CmdArgs[0].Key), w.snap.Now)
		return "", nil
	case "undrain":
		w.state = Undrain(w.state, long(d.CmdArgs[0].Key))
		return "", nil
	}
	return "", fmt.Errorf("what is %q?", d.Cmd)
}

func (w *world) observe(h *Harm) { w.state = Observe(w.state, w.snap.Index(), h, w.limits()) }

func (w *world) limits() Limits {
	lim, err := FromSettings(w.own, w.snap.Settings, 2*time.Minute, time.LoadLocation)
	if err != nil {
		panic(err)
	}
	return lim
}

func (w *world) view() *policy.View {
	set := policy.New(w.isolation, w.groups, w.domains, w.unread)
	w.snap.Policies = set
	var brokers []policy.Broker
	for _, b := range w.snap.Brokers {
		brokers = append(brokers, policy.Broker{ID: b.ID, PersistentTopics: true, NonPersistentTopics: true})
	}
	return set.Over(brokers)
}

func (w *world) check(lines []string) (string, error) {
	var decisions []plan.Decision
	for _, line := range lines {
		d, _, err := w.decision(line)
		if err != nil {
			return "", err
		}
		decisions = append(decisions, d)
	}
	view := w.view()
	v := Check(w.snap.Index(), decisions, view, w.state, w.limits())
	var out strings.Builder
	for _, d := range decisions {
		verdict := "runs"
		if !slices.ContainsFunc(v.Run, func(r plan.Decision) bool { return r.Bundle == d.Bundle && r.Destination == d.Destination }) {
			i := slices.IndexFunc(v.Refused, func(r Refusal) bool { return r.Decision.Bundle == d.Bundle && r.Decision.Destination == d.Destination })
			verdict = v.Refused[i].Why.Code + ": " + v.Refused[i].Why.Text
		}
		to := ""
		if d.Destination != "" {
			to = " -> " + d.Destination
		}
		fmt.Fprintf(&out, "%s %s%s: %s\n", d.Bundle, d.Source, to, verdict)
	}
	for _, s := range v.Slowed {
		fmt.Fprintf(&out, "slowed: %s%s%s: %s\n", s.Bundle, s.Broker, map[bool]string{true: "everything"}[s.Bundle == "" && s.Broker == ""], s.Why.Code)
	}
	if v.AtOnce > 0 {
		fmt.Fprintf(&out, "%d at once\n", v.AtOnce)
	}
	return short(out.String()), nil
}

func (w *world) done(line string) error {
	d, rest, err := w.decision(line)
	if err != nil {
		return err
	}
	o := Outcome{Decision: d, Moved: true, At: w.snap.Now}
	for _, word := range rest {
		if took, ok := strings.CutPrefix(word, "took="); ok {
			t, err := time.ParseDuration(took)
			if err != nil {
				return err
			}
			o.Millis = t.Milliseconds()
		}
		o.Moved = o.Moved && word != "failed"
	}
	w.state = Learn(w.state, o, w.limits())
	if i := w.snap.Index().BundleIndex(d.Bundle); o.Moved && i >= 0 {
		w.snap.Bundles[i].Owner = d.Destination
	}
	return nil
}

func (w *world) decision(line string) (plan.Decision, []string, error) {
	words := strings.Fields(line)
	d := plan.Decision{}
	if words[0] == "order" {
		d.PulsarReason, words = "Admin", words[1:]
	}
	d.Action, d.Bundle, d.Source = plan.Action(words[0]), longBundle(words[1]), long(words[2])
	words = words[3:]
	if len(words) > 1 && words[0] == "->" {
		d.Destination, words = long(words[1]), words[2:]
	}
	if i := w.snap.Index().BundleIndex(d.Bundle); i >= 0 {
		s := w.snap.Bundles[i].Stats
		d.Throughput, d.MsgRate, d.Topics = s.MsgThroughputIn+s.MsgThroughputOut, s.MsgRateIn+s.MsgRateOut, s.Topics
	}
	return d, words, nil
}

// line adds or changes what a line says.
func (w *world) line(line string) error {
	words := strings.Fields(line)
	if first, last, many := strings.Cut(words[min(1, len(words)-1)], ".."); many {
		at := strings.LastIndexFunc(first, func(r rune) bool { return r < '0' || r > '9' }) + 1
		from, err := strconv.Atoi(first[at:])
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil {
			return fmt.Errorf("%q is not like b1..3", words[1])
		}
		for k := from; k <= to; k++ {
			words[1] = first[:at] + strconv.Itoa(k)
			if err := w.line(strings.Join(words, " ")); err != nil {
				return err
			}
		}
		return nil
	}
	name, args := split(strings.Join(words[1:], " "))
	switch words[0] {
	case "set":
		k, v, _ := strings.Cut(strings.TrimPrefix(line, "set "), "=")
		if k, ok := settings.Lookup(k); ok && k.Own() {
			return settings.SetBallast(w.own, k.Name, v)
		}
		return settings.Set(w.snap.Settings, k, v)
	case "broker":
		return w.brokerLine(long(name), args)
	case "bundle":
		return w.bundleLine(longBundle(name), args)
	case "gone":
		w.snap.Brokers = slices.DeleteFunc(w.snap.Brokers, func(b cluster.Broker) bool { return b.ID == long(name) })
	case "isolation":
		w.isolation = append(w.isolation, policy.Isolation{Name: name, Namespaces: []string{args["namespaces"]}, Primary: []string{args["primary"]},
			AutoFailover: policy.AutoFailover{MinLimit: 1}})
	case "group":
		for ns := range strings.SplitSeq(args["namespaces"], ",") {
			w.groups[ns] = name
		}
	case "domain":
		dom := policy.Domain{Name: name}
		for b := range strings.SplitSeq(args["brokers"], ",") {
			dom.Brokers = append(dom.Brokers, long(b))
		}
		w.domains = append(w.domains, dom)
	case "unread":
		w.unread[name] = "503"
	default:
		return fmt.Errorf("what is %q?", words[0])
	}
	return nil
}

func (w *world) brokerLine(id string, args map[string]string) error {
	i := w.snap.Index().BrokerIndex(id)
	if i < 0 {
		i = len(w.snap.Brokers)
		w.snap.Brokers = append(w.snap.Brokers, cluster.Broker{ID: id, PersistentTopics: true, Load: &event.BrokerLoadData{}, LoadHeard: w.snap.Now})
	}
	b := &w.snap.Brokers[i]
	for k, v := range args {
		age, _ := time.ParseDuration(v)
		switch k {
		case "usage":
			b.Load.WeightedMaxEMA = num(v) / 100
		case "throughput":
			b.Load.MsgThroughputIn = num(v)
		case "rate":
			b.Load.MsgRateIn = num(v)
		case "topics":
			b.Load.Topics = int64(num(v))
		case "started":
			b.StartedAt = w.snap.Now - age.Milliseconds()
		case "silent":
			w.silent[id], b.LoadHeard = true, w.snap.Now-age.Milliseconds()
		case "unheard": // below
		default:
			return fmt.Errorf("a broker has no %q", k)
		}
	}
	if _, ok := args["unheard"]; ok {
		b.Load = nil
	}
	return nil
}

func (w *world) bundleLine(name string, args map[string]string) error {
	i := w.snap.Index().BundleIndex(name)
	if i < 0 {
		i = len(w.snap.Bundles)
		w.snap.Bundles = append(w.snap.Bundles, cluster.Bundle{Name: name, Namespace: event.NamespaceOf(name), State: event.Owned})
	}
	b := &w.snap.Bundles[i]
	for k, v := range args {
		switch k {
		case "on":
			b.Owner = long(v)
		case "to":
			b.Heading = long(v)
		case "state":
			b.State = event.ServiceUnitState(v)
		case "throughput":
			b.Stats.MsgThroughputIn, b.Known = num(v), true
		case "rate":
			b.Stats.MsgRateIn, b.Known = num(v), true
		case "topics":
			b.Stats.Topics = int64(num(v))
		default:
			return fmt.Errorf("a bundle has no %q", k)
		}
	}
	return nil
}

func split(text string) (name string, args map[string]string) {
	args = map[string]string{}
	for i, word := range strings.Fields(text) {
		k, v, ok := strings.Cut(word, "=")
		switch {
		case ok:
			args[k] = v
		case i == 0:
			name = word
		default:
			args[word] = ""
		}
	}
	return name, args
}

// num reads 5, 2.5, 3k or 10M; -1 for what is not there.
func num(text string) float64 {
	for suffix, factor := range map[string]float64{"k": 1e3, "M": 1e6, "": 1} {
		if x, err := strconv.ParseFloat(strings.TrimSuffix(text, suffix), 64); err == nil && strings.HasSuffix(text, suffix) {
			return x * factor
		}
	}
	return -1
}

func long(broker string) string { return broker + ":8080" }

func longBundle(name string) string {
	at := strings.LastIndexByte(name, '/')
	k, err := strconv.Atoi(name[at+1:])
	if err != nil || k > 15 {
		return name
	}
	return fmt.Sprintf("%s/0x%08x_0x%08x", name[:at], uint64(k)<<28, min(uint64(k+1)<<28, 0xffffffff))
}

// short undoes long and longBundle in a text.
func short(text string) string {
	text = strings.ReplaceAll(text, ":8080", "")
	for k := range 16 {
		name := fmt.Sprintf("/%d", k)
		text = strings.ReplaceAll(text, longBundle(name), name)
	}
	return text
}

// TestDialogues runs the dialogues in testdata/dialogues.
func TestDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata/dialogues", func(t *testing.T, path string) {
		w := newWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out, err := w.run(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

const (
	page  = "../docs/guard.md"
	fence = "```datadriven\n"
)

// TestPage runs the examples of docs/guard.md, one dialogue; with -rewrite it writes them anew.
func TestPage(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	w, parts := newWorld(), strings.Split(string(raw), fence)
	for i := 1; i < len(parts); i++ {
		block, rest, closed := strings.Cut(parts[i], "\n```")
		if !closed {
			t.Fatal("an example does not end")
		}
		file := filepath.Join(t.TempDir(), "example")
		if err := os.WriteFile(file, []byte(block+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			out, err := w.run(d)
			if err != nil {
				d.Fatalf(t, "%s: %v", page, err)
			}
			return out
		})
		again, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts[i] = strings.TrimRight(string(again), "\n") + "\n```" + rest
	}
	if text := strings.Join(parts, fence); text != string(raw) {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPageIsComplete: the page has a row for every code of the package and no other; its keys exist, with these defaults; and every
// code occurs in an example.
func TestPageIsComplete(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes, listed []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`plan\.Code\{ID: "(\w+)"`).FindAllStringSubmatch(string(text), -1) {
			codes = append(codes, m[1])
		}
	}
	_, examples, _ := strings.Cut(string(raw), "\n## The picture is wrong")
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "| `GUARD_") {
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "|")
		code, key, def := strings.Trim(cells[1], " `"), strings.Trim(cells[2], " `"), strings.TrimSpace(cells[3])
		listed = append(listed, code)
		if !strings.Contains(examples, code) {
			t.Errorf("%s occurs in no example", code)
		}
		if anchor := regexp.MustCompile(`\(#([a-z-]+)\)`).FindStringSubmatch(cells[5]); anchor == nil ||
			!strings.Contains(strings.ToLower(string(raw)), "\n## "+strings.ReplaceAll(anchor[1], "-", " ")+"\n") {
			t.Errorf("%s links no example: %s", code, cells[5])
		}
		if key == "" {
			continue
		}
		k, ok := settings.Lookup(key)
		if want := "`" + k.Default + "`"; !ok || def != want && (def != "none" || k.Default != "") {
			t.Errorf("%s: default of %s is %s (known: %v), the page says %s", code, key, want, ok, def)
		}
	}
	slices.Sort(codes)
	slices.Sort(listed)
	if diff := cmp.Diff(codes, listed); diff != "" {
		t.Errorf("codes of the package and of the page (-code +page):\n%s", diff)
	}
}
