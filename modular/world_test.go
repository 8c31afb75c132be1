package modular_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// world is a small cluster that tests change and take snapshots of. In text a bundle is tenant/ns/k, its range being
// [k*0x10000000, (k+1)*0x10000000), and a broker a host without its port.
type world struct {
	now       int64
	version   string
	leader    string
	settings  *settings.Settings
	brokers   []*broker
	bundles   []*bundle
	isolation []policy.Isolation
	groups    map[string]string
	domains   []policy.Domain
	unread    map[string]string
}

type broker struct {
	id       string
	usage    event.SystemResourceUsage
	capacity float64 // bytes/s that are 100 % of CPU; 0: usage does not follow throughput
	rate     float64 // totals that are not those of the bundles, -1: the bundles'
	thr      float64
	topics   int64
	version  string
	class    string
	silent   bool // no load report
	kinds    string
}

type bundle struct {
	name   string
	owner  *broker
	stats  event.NamespaceBundleStats
	stored bool // the snapshot has averages that are the stats of now
}

func newWorld() *world {
	return &world{now: 1_700_000_000_000, version: "4.2.4", settings: settings.Defaults(), groups: map[string]string{}, unread: map[string]string{}}
}

// snapshot is the picture of the world, averages of bundles and brokers being what is reported now.
func (w *world) snapshot() *cluster.Snapshot {
	s := &cluster.Snapshot{Now: w.now, Cluster: "test", Version: w.version, Leader: w.leader, Settings: w.settings}
	s.Policies = policy.New(w.isolation, w.groups, w.domains, w.unread)
	for _, b := range w.bundles {
		out := cluster.Bundle{Name: b.name, Namespace: policy.NamespaceOf(b.name), Stats: b.stats}
		if b.stored {
			out.Data = new(event.BundleData)
			*out.Data = load.NewBundleData(load.ShortSamples, load.LongSamples, event.NamespaceBundleStats{})
			load.UpdateBundleData(out.Data, &b.stats)
		}
		if b.owner != nil {
			out.Owner, out.State, out.Known = b.owner.id, event.Owned, true
		}
		s.Bundles = append(s.Bundles, out)
	}
	for _, b := range w.brokers {
		s.Brokers = append(s.Brokers, w.report(b, s))
	}
	return s.Index()
}

// report is a broker with its load report.
func (w *world) report(b *broker, s *cluster.Snapshot) cluster.Broker {
	out := cluster.Broker{ID: b.id, Version: b.version, LoadManager: b.class}
	var stats []event.NamedBundleStats
	var sum event.TimeAverageBrokerData
	for i, x := range w.bundles {
		if x.owner == b {
			out.Bundles = append(out.Bundles, i)
			stats = append(stats, event.NamedBundleStats{Bundle: x.name, Stats: x.stats})
			if s.Bundles[i].Data != nil {
				load.AddBundleData(&sum, s.Bundles[i].Data, nil)
			}
		}
	}
	if b.silent {
		return out
	}
	d := event.NewLocalBrokerData(w.now)
	usage := b.usage
	load.UpdateLocal(&d, usage, stats)
	if b.capacity > 0 {
		d.CPU = event.ResourceUsage{Usage: 100 * (d.MsgThroughputIn + d.MsgThroughputOut) / b.capacity, Limit: 100}
	}
	if b.thr >= 0 {
		d.MsgThroughputIn, d.MsgThroughputOut = b.thr, 0
	}
	if b.rate >= 0 {
		d.MsgRateIn, d.MsgRateOut = b.rate, 0
	}
	if b.topics >= 0 {
		d.NumTopics = b.topics
	}
	d.BrokerVersionString, d.LoadManagerClassName = b.version, b.class
	d.PersistentTopicsEnabled, d.NonPersistentTopicsEnabled = !strings.Contains(b.kinds, "non-persistent-only"), !strings.Contains(b.kinds, "no-non-persistent")
	out.Local, out.TimeAverage = &d, &sum
	return out
}

func (w *world) broker(id string) *broker {
	for _, b := range w.brokers {
		if b.id == longBroker(id) {
			return b
		}
	}
	return nil
}

func (w *world) bundle(name string) *bundle {
	for _, b := range w.bundles {
		if b.name == longBundle(name) {
			return b
		}
	}
	return nil
}

// carryOut moves bundles as a plan says.
func (w *world) carryOut(p plan.Plan) {
	for _, d := range p.Decisions {
		if b := w.bundle(d.Bundle); b != nil && (d.Action == plan.Transfer || d.Action == plan.Place) {
			b.owner = w.broker(d.Destination)
		}
	}
}

// line reads one line of a description.
func (w *world) line(text string) error {
	words := strings.Fields(text)
	if len(words) == 0 || strings.HasPrefix(text, "#") {
		return nil
	}
	args, err := arguments(words[1:])
	if err != nil {
		return err
	}
	switch words[0] {
	case "set":
		for _, a := range words[1:] {
			k, v, _ := strings.Cut(a, "=")
			if err := set(w.settings, k, v); err != nil {
				return err
			}
		}
	case "broker":
		return w.brokerLine(words[1], args)
	case "bundle":
		return w.bundleLine(words[1], args)
	case "isolation":
		limit, _ := strconv.Atoi(args["min"])
		w.isolation = append(w.isolation, policy.Isolation{
			Name: words[1], Namespaces: list(args["namespaces"]), Primary: list(args["primary"]), Secondary: list(args["secondary"]),
			AutoFailover: policy.AutoFailover{MinLimit: limit},
		})
	case "group":
		w.groups[words[1]] = args["name"]
	case "domain":
		d := policy.Domain{Name: words[1]}
		for _, b := range list(args["brokers"]) {
			d.Brokers = append(d.Brokers, longBroker(b))
		}
		w.domains = append(w.domains, d)
	case "unread":
		w.unread[words[1]] = args["why"]
	case "cluster":
		if v := args["version"]; v != "" {
			w.version = v
		}
		if v := args["leader"]; v != "" {
			w.leader = longBroker(v)
		}
	default:
		return fmt.Errorf("what is %q?", words[0])
	}
	return nil
}

func (w *world) brokerLine(id string, args map[string]string) error {
	b := w.broker(id)
	if b == nil {
		b = &broker{id: longBroker(id), rate: -1, thr: -1, topics: -1, version: w.version, class: modular.Class}
		w.brokers = append(w.brokers, b)
	}
	for k, v := range args {
		x, err := number(v)
		switch k {
		case "cpu":
			b.usage.CPU = event.ResourceUsage{Usage: x, Limit: 100}
		case "memory":
			b.usage.Memory = event.ResourceUsage{Usage: x, Limit: 100}
		case "direct":
			b.usage.DirectMemory = event.ResourceUsage{Usage: x, Limit: 100}
		case "in":
			b.usage.BandwidthIn = event.ResourceUsage{Usage: x, Limit: 100}
		case "out":
			b.usage.BandwidthOut = event.ResourceUsage{Usage: x, Limit: 100}
		case "capacity":
			b.capacity = x
		case "rate":
			b.rate = x
		case "throughput":
			b.thr = x
		case "topics":
			b.topics = int64(x)
		case "version":
			b.version, err = v, nil
		case "class":
			b.class, err = v, nil
		case "kinds":
			b.kinds, err = v, nil
		case "silent":
			b.silent, err = v == "true", nil
		default:
			return fmt.Errorf("a broker has no %q", k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *world) bundleLine(name string, args map[string]string) error {
	names := []string{name}
	if first, last, many := strings.Cut(name, ".."); many { // t/n/2..5
		i := strings.LastIndexByte(first, '/')
		from, err1 := strconv.Atoi(first[i+1:])
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil {
			return fmt.Errorf("%q is not ns/from..to", name)
		}
		names = nil
		for k := from; k <= to; k++ {
			names = append(names, first[:i+1]+strconv.Itoa(k))
		}
	}
	for _, n := range names {
		b := w.bundle(n)
		if b == nil {
			b = &bundle{name: longBundle(n), stored: true, stats: event.NamespaceBundleStats{Topics: 1}}
			w.bundles = append(w.bundles, b)
		}
		for k, v := range args {
			x, err := number(v)
			switch k {
			case "on":
				if b.owner, err = w.broker(v), nil; b.owner == nil {
					return fmt.Errorf("there is no broker %s yet", v)
				}
			case "throughput":
				b.stats.MsgThroughputIn = x
			case "rate":
				b.stats.MsgRateIn = x
			case "topics":
				b.stats.Topics = int64(x)
			case "sessions":
				b.stats.ConsumerCount = int32(x)
			case "stored":
				b.stored, err = v == "true", nil
			default:
				return fmt.Errorf("a bundle has no %q", k)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func arguments(words []string) (map[string]string, error) {
	args := make(map[string]string)
	for _, a := range words {
		if k, v, ok := strings.Cut(a, "="); ok {
			args[k] = v
		}
	}
	return args, nil
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// number reads 5, 2.5, 3k, 10M (powers of 1000) or 10Mi (1048576).
func number(text string) (float64, error) {
	factor := 1.0
	for suffix, f := range map[string]float64{"k": 1e3, "M": 1e6, "Mi": 1048576} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			text, factor = rest, f
		}
	}
	x, err := strconv.ParseFloat(text, 64)
	return x * factor, err
}

// set sets a settings key.
func set(s *settings.Settings, key, value string) error {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("key") != key {
			continue
		}
		f := v.Field(i)
		var err error
		switch f.Kind() {
		case reflect.String:
			f.SetString(value)
		case reflect.Bool:
			f.SetBool(value == "true")
		case reflect.Int64:
			var n int64
			n, err = strconv.ParseInt(value, 10, 64)
			f.SetInt(n)
		case reflect.Float64:
			var x float64
			x, err = strconv.ParseFloat(value, 64)
			f.SetFloat(x)
		case reflect.Slice:
			f.Set(reflect.ValueOf(list(value)))
		}
		return err
	}
	return fmt.Errorf("there is no setting %q", key)
}

func longBroker(id string) string {
	if id == "" || strings.Contains(id, ":") {
		return id
	}
	return id + ":8080"
}

func longBundle(name string) string {
	i := strings.LastIndexByte(name, '/')
	k, err := strconv.ParseUint(name[i+1:], 10, 8)
	if err != nil || k > 15 {
		return name
	}
	upper := (k+1)<<28 - k>>3*(k>>2&1)*(k>>1&1)*(k&1) // the last one ends at 0xffffffff
	return fmt.Sprintf("%s/0x%08x_0x%08x", name[:i], k<<28, upper)
}

// short undoes longBroker and longBundle in a text.
func short(text string) string {
	text = strings.ReplaceAll(text, ":8080", "")
	for k := range 16 {
		suffix := longBundle(fmt.Sprintf("/%d", k))
		text = strings.ReplaceAll(text, suffix, fmt.Sprintf("/%d", k))
	}
	return text
}

func optionField(o *modular.Options, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

func optionNames() []string {
	var names []string
	t := reflect.TypeFor[modular.Options]()
	for i := range t.NumField() {
		names = append(names, t.Field(i).Name)
	}
	return names
}
