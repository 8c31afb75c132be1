package extensible

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// world is a cluster in a few lines of text. Brokers are named b1 for b1:8080, bundles t/n/3 for the fourth of 256 ranges.
// The load of a broker is its base and its throughput as a fraction of its capacity, so that it follows the bundles.
type world struct {
	t        *testing.T
	now      int64
	conf     *settings.Settings
	options  Options
	brokers  []*wBroker
	bundles  []*wBundle
	isolated []policy.Isolation
	groups   map[string]string
	domains  []policy.Domain
	unread   map[string]string
	st       *State
	rnd      *rand.Rand
}

type wBroker struct {
	id                         string
	base, capacity             float64
	age                        time.Duration // of its load data
	version, manager           string
	unregistered, silent, mute bool // silent: no load data; mute: no top bundles
	topics                     int64
}

type wBundle struct {
	name, owner string
	stats       event.NamespaceBundleStats
	state       event.ServiceUnitState
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: 1_700_000_000_000, conf: settings.Defaults(), st: NewState(), rnd: rand.New(rand.NewPCG(1, 2))}
	w.conf.LoadManagerClassName = Class
	return w
}

// fields are the key=value pairs of a line after its first words.
type fields map[string]string

func parseFields(words []string) fields {
	f := make(fields)
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		f[key] = value
	}
	return f
}

// num is a number with an optional k, M or %.
func (w *world) num(f fields, key string, otherwise float64) float64 {
	text, ok := f[key]
	if !ok {
		return otherwise
	}
	factor := 1.0
	switch {
	case strings.HasSuffix(text, "k"):
		factor = 1e3
	case strings.HasSuffix(text, "M"):
		factor = 1e6
	case strings.HasSuffix(text, "%"):
		factor = 0.01
	}
	x, err := strconv.ParseFloat(strings.TrimRight(text, "kM%"), 64)
	if err != nil {
		w.t.Fatalf("%s=%s: %v", key, text, err)
	}
	return x * factor
}

func (w *world) duration(f fields, key string) time.Duration {
	if f[key] == "" {
		return 0
	}
	d, err := time.ParseDuration(f[key])
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

func longID(short string) string {
	if short == "" || strings.Contains(short, ":") {
		return short
	}
	return short + ":8080"
}

// longBundle makes t/n/0x03000000_0x04000000 of t/n/3.
func longBundle(short string) string {
	i := strings.LastIndexByte(short, '/')
	n, err := strconv.Atoi(short[i+1:])
	if err != nil {
		return short
	}
	upper := uint32(n+1) << 24
	if n == 255 {
		upper = math.MaxUint32
	}
	return fmt.Sprintf("%s/0x%08x_0x%08x", short[:i], uint32(n)<<24, upper)
}

// shorten undoes longID and longBundle in a text.
func shorten(text string) string {
	text = strings.ReplaceAll(text, ":8080", "")
	for {
		i := strings.Index(text, "/0x")
		if i < 0 || i+22 > len(text) {
			return text
		}
		n, err := strconv.ParseUint(text[i+3:i+11], 16, 32)
		if err != nil || n&0xffffff != 0 {
			return text
		}
		text = text[:i+1] + strconv.Itoa(int(n>>24)) + text[i+22:]
	}
}

// line takes one line of a world.
func (w *world) line(text string) {
	words := strings.Fields(text)
	f := parseFields(words[1:])
	switch words[0] {
	case "set":
		for key, value := range f {
			w.set(key, value)
		}
	case "options":
		for _, name := range words[1:] {
			reflect.ValueOf(&w.options).Elem().FieldByName(name).SetBool(true)
		}
	case "broker":
		_, unregistered := f["unregistered"]
		_, silent := f["silent"]
		_, mute := f["mute"]
		b := &wBroker{
			id: longID(words[1]), base: w.num(f, "base", 0), capacity: w.num(f, "capacity", 100e6), age: w.duration(f, "age"),
			version: f["version"], manager: Class, unregistered: unregistered, silent: silent, mute: mute, topics: int64(w.num(f, "topics", 0)),
		}
		if m, ok := f["manager"]; ok {
			b.manager = m
		}
		w.brokers = append(w.brokers, b)
	case "bundle":
		w.bundle(words[1], f)
	case "isolation":
		w.isolated = append(w.isolated, policy.Isolation{
			Name: words[1], Namespaces: list(f["namespaces"]), Primary: list(f["primary"]), Secondary: list(f["secondary"]),
			AutoFailover: policy.AutoFailover{MinLimit: int(w.num(f, "min", 1))},
		})
	case "group":
		if w.groups == nil {
			w.groups = make(map[string]string)
		}
		for _, ns := range list(f["namespaces"]) {
			w.groups[ns] = words[1]
		}
	case "domain":
		d := policy.Domain{Name: words[1]}
		for _, b := range list(f["brokers"]) {
			d.Brokers = append(d.Brokers, longID(b))
		}
		w.domains = append(w.domains, d)
	case "unread":
		w.unread = map[string]string{words[1]: "metadata store timed out"}
	case "unloaded":
		for key, value := range f {
			d, err := time.ParseDuration(value)
			if err != nil {
				w.t.Fatal(err)
			}
			if strings.Contains(key, "/") {
				w.st.UnloadedBundles = with(w.st.UnloadedBundles, longBundle(key), w.now-d.Milliseconds())
			} else {
				w.st.UnloadedBrokers = with(w.st.UnloadedBrokers, longID(key), w.now-d.Milliseconds())
			}
		}
	default:
		w.t.Fatalf("unknown line %q", text)
	}
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// bundle adds bundles t/n/0..3 (or one), or changes them.
func (w *world) bundle(name string, f fields) {
	i := strings.LastIndexByte(name, '/')
	from, to, many := strings.Cut(name[i+1:], "..")
	if !many {
		to = from
	}
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	if errA != nil || errB != nil {
		a, b = 0, 0
	}
	state := event.ServiceUnitState(f["state"])
	if state == "" {
		state = event.Owned
	}
	for n := a; n <= b; n++ {
		full := name
		if errA == nil && errB == nil {
			full = longBundle(fmt.Sprintf("%s/%d", name[:i], n))
		}
		w.bundles = slices.DeleteFunc(w.bundles, func(b *wBundle) bool { return b.name == full })
		w.bundles = append(w.bundles, &wBundle{name: full, owner: longID(f["on"]), state: state, stats: event.NamespaceBundleStats{
			MsgThroughputIn: w.num(f, "throughput", 0), MsgRateIn: w.num(f, "rate", 0), Topics: int64(w.num(f, "topics", 10)),
			ProducerCount: int32(w.num(f, "sessions", 0)),
		}})
	}
}

func (w *world) set(key, value string) {
	v := reflect.ValueOf(w.conf).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("key") != key {
			continue
		}
		switch f := v.Field(i); f.Kind() {
		case reflect.Bool:
			f.SetBool(value == "true")
		case reflect.Int64:
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				w.t.Fatal(err)
			}
			f.SetInt(n)
		case reflect.Float64:
			f.SetFloat(w.num(fields{"x": value}, "x", 0))
		case reflect.Slice:
			f.Set(reflect.ValueOf(list(value)))
		default:
			f.SetString(value)
		}
		return
	}
	w.t.Fatalf("unknown setting %s", key)
}

// snapshot is the cluster as it is now.
func (w *world) snapshot() *cluster.Snapshot {
	snap := &cluster.Snapshot{
		Now: w.now, Version: "4.2.4", Settings: w.conf, Policies: policy.New(w.isolated, w.groups, w.domains, w.unread),
	}
	for _, b := range w.bundles {
		snap.Bundles = append(snap.Bundles, cluster.Bundle{
			Name: b.name, Namespace: policy.NamespaceOf(b.name), Owner: b.owner, State: b.state, Stats: b.stats, Known: true,
		})
	}
	for _, b := range w.brokers {
		if !b.silent {
			snap.Load = append(snap.Load, w.loadOf(b, snap))
		}
	}
	snap.Index()
	for _, b := range w.brokers {
		if b.unregistered {
			continue
		}
		x := cluster.Broker{ID: b.id, Version: b.version, LoadManager: b.manager, PersistentTopics: true, NonPersistentTopics: true}
		if i := snap.LoadIndex(b.id); i >= 0 {
			x.Load, x.LoadHeard = &snap.Load[i].Data, w.now
		}
		for i := range snap.Bundles {
			if snap.Bundles[i].Owner == b.id {
				x.Bundles = append(x.Bundles, i)
			}
		}
		snap.Brokers = append(snap.Brokers, x)
	}
	return snap.Index()
}

func (w *world) loadOf(b *wBroker, snap *cluster.Snapshot) cluster.BrokerLoad {
	var stats []event.NamedBundleStats
	d := event.BrokerLoadData{UpdatedAt: w.now - b.age.Milliseconds(), Topics: b.topics}
	for _, x := range w.bundles {
		if x.owner == b.id {
			stats = append(stats, event.NamedBundleStats{Bundle: x.name, Stats: x.stats})
			d.MsgThroughputIn += x.stats.MsgThroughputIn
			d.Topics += x.stats.Topics
			d.BundleCount++
		}
	}
	d.MsgThroughputEMA = d.MsgThroughputIn
	d.WeightedMaxEMA = b.base + d.MsgThroughputIn/b.capacity
	out := cluster.BrokerLoad{Broker: b.id, Data: d, Heard: w.now, HasTop: !b.mute}
	if !b.mute {
		top, err := load.TopK(stats, load.TopKRules{
			K: int(w.conf.LoadBalancerMaxNumberOfBundlesInBundleLoadReport), Excluded: w.conf.LoadBalancerSheddingExcludedNamespaces,
			WithPolicies: w.conf.LoadBalancerSheddingBundlesWithPoliciesEnabled,
			HasPolicy:    func(ns string) (bool, error) { return snap.Policies.HasPolicy(ns), nil },
		})
		if err != nil {
			w.t.Fatal(err)
		}
		out.TopBundles = top
	}
	return out
}

// usage is the loads and bundles of the brokers.
func (w *world) usage() string {
	snap := w.snapshot()
	var parts []string
	for _, b := range w.brokers {
		n := 0
		for _, x := range w.bundles {
			if x.owner == b.id {
				n++
			}
		}
		text := "unknown"
		if i := snap.LoadIndex(b.id); i >= 0 {
			text = strconv.FormatFloat(100*snap.Load[i].Data.WeightedMaxEMA, 'g', 4, 64) + "%"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%d)", b.id, text, n))
	}
	return strings.Join(parts, " ") + "\n"
}

// apply carries out decisions.
func (w *world) apply(m *Manager, p *plan.Plan) {
	for _, d := range p.Decisions {
		i := slices.IndexFunc(w.bundles, func(b *wBundle) bool { return b.name == d.Bundle })
		if d.Action == plan.Split {
			w.split(i, d)
		} else {
			w.bundles[i].owner = d.Destination
			if d.Destination == "" {
				placed, st := m.Place(w.snapshot(), d.Bundle, w.st, w.rnd, nil)
				w.st = st.(*State)
				w.bundles[i].owner = placed.Destination
			}
		}
		w.st = m.Record(w.st, d, w.now).(*State)
	}
}

// split cuts a bundle in two halves of equal load.
func (w *world) split(i int, d plan.Decision) {
	parent := w.bundles[i]
	ns := parent.name[:strings.LastIndexByte(parent.name, '/')]
	bounds := strings.Split(parent.name[len(ns)+1:], "_")
	for _, r := range []string{bounds[0] + "_" + d.Boundaries[0], d.Boundaries[0] + "_" + bounds[1]} {
		half := *parent
		half.name = ns + "/" + r
		half.stats.MsgRateIn /= 2
		half.stats.MsgThroughputIn /= 2
		half.stats.Topics /= 2
		half.stats.ProducerCount /= 2
		w.bundles = append(w.bundles, &half)
	}
	w.bundles = slices.Delete(w.bundles, i, i+1)
}

// log is a plan as text. only restricts what was left out to one code; brief leaves it out.
func (w *world) log(p *plan.Plan, tr *plan.Trace, brief bool, only string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "outcome %s: %s\n", p.Outcome.Code, p.Outcome)
	for _, c := range p.Counts {
		fmt.Fprintf(&b, "count %s/%s %d\n", c.Label, c.Reason, c.N)
	}
	for _, a := range p.Advice {
		fmt.Fprintf(&b, "advice %s: %s\n", a.Bundle, a.Why)
	}
	for _, d := range p.Decisions {
		to := d.Destination
		if d.Action == plan.Split {
			to = "at " + d.Boundaries[0]
		}
		fmt.Fprintf(&b, "%s %s %s -> %s %s/%s: %s %s\n", d.Action, d.Bundle, d.Source, to, d.Label, d.PulsarReason, d.Why.Code, d.Why)
	}
	if !brief {
		for _, e := range tr.Entries {
			if only != "" && e.Why.Code != only {
				continue
			}
			what := strings.TrimSpace(e.Bundle + " " + e.Broker)
			if e.Other != "" {
				what += " -> " + e.Other
			}
			fmt.Fprintf(&b, "left out %s: %s %s\n", what, e.Why.Code, e.Why)
		}
	}
	return b.String()
}

// run is one command of a dialogue.
func (w *world) run(d *datadriven.TestData) string {
	m := New(nil, nil, w.options)
	has := func(flag string) bool { return d.HasArg(flag) }
	only := ""
	d.MaybeScanArgs(w.t, "only", &only)
	var out strings.Builder
	switch d.Cmd {
	case "world":
		*w = *newWorld(w.t)
		fallthrough
	case "change":
		for text := range strings.Lines(d.Input) {
			w.line(strings.TrimSpace(text))
		}
	case "usage":
		out.WriteString(w.usage())
	case "advance":
		dur, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(w.t, "%v", err)
		}
		w.now += dur.Milliseconds()
	case "shed":
		n := 1
		d.MaybeScanArgs(w.t, "cycles", &n)
		for range n {
			tr := &plan.Trace{}
			p, st := m.Shed(w.snapshot(), w.st, w.rnd, tr)
			w.st = st.(*State)
			out.WriteString(w.log(&p, tr, has("brief"), only))
			if has("apply") {
				w.apply(m, &p)
				out.WriteString(w.usage())
			}
			w.now += 60_000
		}
	case "split":
		tr := &plan.Trace{}
		p, st := m.Split(w.snapshot(), w.st, tr)
		w.st = st.(*State)
		out.WriteString(w.log(&p, tr, has("brief"), only))
		if has("apply") {
			w.apply(m, &p)
		}
		w.now += 60_000
	case "place":
		w.place(d, m, &out)
	default:
		d.Fatalf(w.t, "unknown command %s", d.Cmd)
	}
	return shorten(out.String())
}

// place assigns an unowned bundle n times, or n bundles one after another if burst is set.
func (w *world) place(d *datadriven.TestData, m *Manager, out *strings.Builder) {
	n, bundle := 1, longBundle(d.CmdArgs[0].Key)
	d.MaybeScanArgs(w.t, "times", &n)
	counts, codes := make(map[string]int), make(map[string]int)
	snap := w.snapshot()
	for i := range n {
		var tr *plan.Trace
		if n == 1 || i == 0 {
			tr = &plan.Trace{}
		}
		placed, st := m.Place(snap, bundle, w.st, w.rnd, tr)
		w.st = st.(*State)
		counts[placed.Destination]++
		codes[placed.Why.Code]++
		if tr != nil {
			fmt.Fprintf(out, "%s -> %s: %s\n", placed.Bundle, placed.Destination, placed.Why)
			for _, e := range tr.Entries {
				fmt.Fprintf(out, "left out %s: %s %s\n", e.Broker, e.Why.Code, e.Why)
			}
		}
	}
	if n > 1 {
		for _, b := range w.brokers {
			fmt.Fprintf(out, "%s %d\n", b.id, counts[b.id])
		}
		if counts[""] > 0 {
			fmt.Fprintf(out, "nowhere %d\n", counts[""])
		}
	}
}

// TestDialogues runs the worlds in testdata: each file is headed by what it shows, the whole decision log is its result.
func TestDialogues(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t = t
			return w.run(d)
		})
	})
}
