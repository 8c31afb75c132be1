package docs

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/strategies"
)

// world is the cluster of an example. In text a broker is its host, and a bundle is tenant/ns/k, the k-th of 16 ranges.
// Whatever a load manager reads of it is there: load data and top bundles for the Extensible manager, load reports and
// averages for the Modular one, all as if the brokers had just reported them.
type world struct {
	now       int64
	version   string
	manager   string // short names of what is chosen
	shedder   string
	placer    string
	repairs   []string
	conf      *settings.Settings
	brokers   []*broker
	bundles   []*bundle
	isolation []policy.Isolation
	groups    map[string]string
	state     plan.State
	rnd       *rand.Rand
}

// broker is one broker; usage is in percent of limits of 100.
type broker struct {
	id       string
	usage    event.SystemResourceUsage
	capacity float64 // bytes/s that use 100 % of CPU; 0: CPU does not follow the bundles
	idle     float64 // CPU that the bundles do not use
	load     float64 // published average load, if it is not the usage of now; -1 otherwise
}

type bundle struct {
	name, owner string
	stats       event.NamespaceBundleStats
}

func newWorld() *world {
	return &world{now: 1_700_000_000_000, version: "4.2.4", conf: settings.Defaults(), rnd: rand.New(rand.NewPCG(1, 2)), groups: map[string]string{}}
}

// line adds what one line of an example says.
func (w *world) line(text string) error {
	words := strings.Fields(text)
	args := map[string]string{}
	for _, a := range words[1:] {
		if k, v, ok := strings.Cut(a, "="); ok {
			args[k] = v
		}
	}
	switch words[0] {
	case "cluster":
		if v, ok := args["version"]; ok {
			w.version, w.conf = v, settings.DefaultsOf(v)
		}
		w.manager, w.shedder, w.placer = cmp.Or(args["manager"], w.manager), cmp.Or(args["shed"], w.shedder), cmp.Or(args["place"], w.placer)
		w.repairs = list(cmp.Or(args["repairs"], strings.Join(w.repairs, ",")))
		w.conf.LoadManagerClassName = w.manager
	case "set":
		for _, a := range words[1:] {
			k, v, _ := strings.Cut(a, "=")
			if err := settings.Set(w.conf, k, v); err != nil {
				return err
			}
		}
	case "broker":
		return w.brokerLine(words[1], args)
	case "bundle":
		return w.bundleLine(words[1], args)
	case "isolation":
		w.isolation = append(w.isolation, policy.Isolation{Name: words[1], Namespaces: list(args["namespaces"]),
			Primary: list(args["primary"]), Secondary: list(args["secondary"])})
	case "group":
		for _, ns := range list(args["namespaces"]) {
			w.groups[ns] = words[1]
		}
	default:
		return fmt.Errorf("what is %q?", words[0])
	}
	return nil
}

// brokerLine adds or changes a broker, or several: b1..3.
func (w *world) brokerLine(name string, args map[string]string) error {
	if first, last, many := strings.Cut(name, ".."); many {
		at := strings.IndexAny(first, "0123456789")
		from, err := strconv.Atoi(first[at:])
		to, err2 := strconv.Atoi(last)
		if err != nil || err2 != nil {
			return fmt.Errorf("%q is not like b1..3", name)
		}
		for k := from; k <= to; k++ {
			if err := w.brokerLine(first[:at]+strconv.Itoa(k), args); err != nil {
				return err
			}
		}
		return nil
	}
	i := slices.IndexFunc(w.brokers, func(b *broker) bool { return b.id == longBroker(name) })
	if i < 0 {
		i = len(w.brokers)
		w.brokers = append(w.brokers, &broker{id: longBroker(name), load: -1})
	}
	b := w.brokers[i]
	for k, v := range args {
		x, err := number(v)
		if err != nil {
			return fmt.Errorf("broker %s: %w", name, err)
		}
		u := event.ResourceUsage{Usage: x, Limit: 100}
		switch k {
		case "cpu":
			b.usage.CPU, b.idle = u, x
		case "memory":
			b.usage.Memory = u
		case "direct":
			b.usage.DirectMemory = u
		case "in":
			b.usage.BandwidthIn = u
		case "out":
			b.usage.BandwidthOut = u
		case "capacity":
			b.capacity = x
		case "load":
			b.load = x / 100
		default:
			return fmt.Errorf("a broker has no %q", k)
		}
	}
	return nil
}

func (w *world) bundleLine(name string, args map[string]string) error {
	first, last, many := strings.Cut(name, "..")
	at := strings.LastIndexByte(first, '/') + 1
	from, err := strconv.Atoi(first[at:])
	to := from
	if many && err == nil {
		to, err = strconv.Atoi(last)
	}
	if err != nil {
		return fmt.Errorf("%q is not tenant/ns/k or tenant/ns/k..l", name)
	}
	for k := from; k <= to; k++ {
		b := w.bundle(longBundle(first[:at] + strconv.Itoa(k)))
		for k, v := range args {
			if k == "on" {
				b.owner = longBroker(v)
				continue
			}
			x, err := number(v)
			switch k {
			case "throughput":
				b.stats.MsgThroughputIn = x
			case "rate":
				b.stats.MsgRateIn = x
			case "topics":
				b.stats.Topics = int64(x)
			case "sessions":
				b.stats.ProducerCount = int32(x)
			default:
				err = fmt.Errorf("a bundle has no %q", k)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// bundle is the bundle of a name, made if need be.
func (w *world) bundle(name string) *bundle {
	for _, b := range w.bundles {
		if b.name == name {
			return b
		}
	}
	b := &bundle{name: name, stats: event.NamespaceBundleStats{Topics: 4}}
	w.bundles = append(w.bundles, b)
	return b
}

// snapshot is the cluster of now.
func (w *world) snapshot() (*cluster.Snapshot, error) {
	m, err := (&plan.Registry{Managers: w.registry().Managers}).Manager(w.manager)
	if err != nil {
		return nil, err
	}
	s := &cluster.Snapshot{Now: w.now, Cluster: "example", Version: w.version, Settings: w.conf, Policies: policy.New(w.isolation, w.groups, nil, nil)}
	for _, b := range w.bundles {
		data := load.NewBundleData(load.ShortSamples, load.LongSamples, event.NamespaceBundleStats{})
		load.UpdateBundleData(&data, &b.stats)
		x := cluster.Bundle{Name: b.name, Namespace: policy.NamespaceOf(b.name), Owner: b.owner, Stats: b.stats, Known: true, Data: &data}
		if b.owner != "" {
			x.State = event.Owned
		}
		s.Bundles = append(s.Bundles, x)
	}
	for _, b := range w.brokers {
		x, l, err := w.report(b, s)
		if err != nil {
			return nil, err
		}
		x.LoadManager, x.Version = m.Class, w.version
		x.Local.LoadManagerClassName, x.Local.BrokerVersionString = m.Class, w.version
		s.Brokers, s.Load = append(s.Brokers, x), append(s.Load, l)
	}
	for i := range s.Brokers {
		s.Brokers[i].Load = &s.Load[i].Data
	}
	return s.Index(), nil
}

// report is what a broker publishes.
func (w *world) report(b *broker, s *cluster.Snapshot) (cluster.Broker, cluster.BrokerLoad, error) {
	x := cluster.Broker{ID: b.id, PersistentTopics: true, NonPersistentTopics: true, LoadHeard: w.now}
	var stats []event.NamedBundleStats
	var sum event.TimeAverageBrokerData
	var totals load.Totals
	for i := range s.Bundles {
		if y := &s.Bundles[i]; y.Owner == b.id {
			x.Bundles = append(x.Bundles, i)
			stats = append(stats, event.NamedBundleStats{Bundle: y.Name, Stats: y.Stats})
			load.AddBundleData(&sum, y.Data, nil)
			totals.MsgThroughputIn += y.Stats.MsgThroughputIn
			totals.MsgRateIn += y.Stats.MsgRateIn
			totals.BundleCount++
			totals.Topics += y.Stats.Topics
		}
	}
	usage := b.usage
	if b.capacity > 0 {
		usage.CPU = event.ResourceUsage{Usage: b.idle + 100*totals.MsgThroughputIn/b.capacity, Limit: 100}
	}
	local := event.NewLocalBrokerData(w.now)
	load.UpdateLocal(&local, usage, stats)
	local.PersistentTopicsEnabled, local.NonPersistentTopicsEnabled, local.LastUpdate = true, true, w.now
	x.Local, x.TimeAverage = &local, &sum

	l := cluster.BrokerLoad{Broker: b.id, Data: event.NewBrokerLoadData(), Heard: w.now, HasTop: true}
	load.UpdateBrokerLoad(&l.Data, usage, totals, load.WeightsOf(w.conf), 0, w.now)
	if b.load >= 0 {
		l.Data.WeightedMaxEMA = b.load
	}
	top, err := load.TopK(stats, load.TopKRules{
		K: int(w.conf.LoadBalancerMaxNumberOfBundlesInBundleLoadReport), Excluded: w.conf.LoadBalancerSheddingExcludedNamespaces,
		WithPolicies: w.conf.LoadBalancerSheddingBundlesWithPoliciesEnabled,
		HasPolicy:    func(ns string) (bool, error) { return s.Policies.HasPolicy(ns), nil },
	})
	l.TopBundles = top
	return x, l, err
}

func (w *world) registry() *plan.Registry {
	r, err := strategies.Registry(w.repairs)
	if err != nil {
		panic(err)
	}
	return r
}

// carryOut moves and splits bundles as a plan says, and tells the manager.
func (w *world) carryOut(m plan.Manager, p plan.Plan) {
	for _, d := range p.Decisions {
		if d.Destination != "" {
			w.bundle(d.Bundle).owner = d.Destination
		}
		w.state = m.Record(w.state, d, w.now)
	}
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// number reads 5, 2.5, 3k, 10M (powers of 1000) or 10Mi (1048576).
func number(text string) (float64, error) {
	for suffix, factor := range map[string]float64{"k": 1e3, "M": 1e6, "Mi": 1 << 20} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			x, err := strconv.ParseFloat(rest, 64)
			return x * factor, err
		}
	}
	return strconv.ParseFloat(text, 64)
}

func longBroker(name string) string { return name + ":8080" }

func longBundle(name string) string {
	at := strings.LastIndexByte(name, '/')
	k, err := strconv.Atoi(name[at+1:])
	if err != nil || k < 0 || k > 15 {
		return name
	}
	upper := uint64(k+1) << 28
	return fmt.Sprintf("%s/0x%08x_0x%08x", name[:at], k<<28, min(upper, 0xffffffff))
}

// short undoes longBroker and longBundle in a text.
func short(text string) string {
	text = strings.ReplaceAll(text, ":8080", "")
	for k := range 16 {
		name := fmt.Sprintf("/%d", k)
		text = strings.ReplaceAll(text, longBundle(name), name)
	}
	return text
}
