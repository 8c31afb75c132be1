package simulate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// TestCluster holds dialogues with a cluster that has no load manager of its own. Bundles and brokers are named by number.
func TestCluster(t *testing.T) {
	datadriven.Walk(t, "testdata/cluster", func(t *testing.T, path string) {
		d := &dialogue{t: t}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			d.t, d.td = t, td
			return d.command()
		})
	})
}

type dialogue struct {
	t       *testing.T
	td      *datadriven.TestData
	c       *Cluster
	events  []Event
	results []string
}

func (d *dialogue) command() string {
	if d.td.Cmd == "cluster" {
		return d.cluster()
	}
	broker, bundle := d.broker("broker"), d.bundle()
	var err error
	switch d.td.Cmd {
	case "run":
		d.c.Run(d.duration("d"))
	case "unload":
		err = d.c.unload(bundle, d.broker("to"), Asked, d.done("unload"))
	case "split":
		var algorithm string
		d.td.MaybeScanArgs(d.t, "by", &algorithm)
		err = d.c.split(bundle, algorithm, nil, d.done("split"))
	case "kill":
		err = d.c.Kill(broker)
	case "restart":
		err = d.c.Restart(broker)
	case "add":
		err = d.c.AddBroker(Broker{ID: broker, Cores: 2, HeapMiB: 400, DirectMiB: 256, NICKbit: 1e6})
	case "stop":
		err = d.c.Stop(broker)
	case "freeze":
		err = d.c.Freeze(broker)
	case "thaw":
		err = d.c.Thaw(broker)
	case "mute":
		err = d.c.Mute(broker, !d.td.HasArg("off"))
	case "skew":
		err = d.c.Skew(broker, d.duration("d"))
	case "corrupt":
		err = d.c.Corrupt(broker, topics.BrokerLoadData, []byte(strings.TrimSpace(d.td.Input)))
	case "silence":
		d.c.Silence(topics.ServiceUnitState, d.duration("d"))
	case "hear":
		d.c.Hear(topics.ServiceUnitState, bundle, []byte(strings.TrimSpace(d.td.Input)))
	case "ownership":
		return d.ownership()
	case "load":
		return d.loadData()
	case "view":
		return d.view()
	case "owners":
		return d.owners()
	case "moves":
		return d.moves()
	default:
		d.td.Fatalf(d.t, "no such command")
	}
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	return ""
}

// cluster makes brokers with bundles, all alike.
func (d *dialogue) cluster() string {
	brokers, bundles, count, rate := 3, 4, 2, 100.0
	d.td.MaybeScanArgs(d.t, "brokers", &brokers)
	d.td.MaybeScanArgs(d.t, "bundles", &bundles)
	d.td.MaybeScanArgs(d.t, "topics", &count)
	ns := Namespace{Name: "public/sim"}
	for i := range bundles {
		ns.Bundles = append(ns.Bundles, Bundle{Traffic: Messages(rate, 1000), NumTopics: count, Owner: brokerID(i%brokers + 1)})
	}
	set := settings.Defaults()
	d.td.MaybeScanArgs(d.t, "reports", &set.LoadBalancerReportUpdateMaxIntervalMinutes)
	timing := DefaultTiming
	timing.Jitter = 0
	c, err := New(Config{Settings: set, Brokers: brokersOf(brokers, Broker{Cores: 2, HeapMiB: 400, DirectMiB: 256, NICKbit: 1e6}),
		Namespaces: []Namespace{ns}, System: -1, Timing: timing})
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	*d = dialogue{t: d.t, td: d.td, c: c}
	return ""
}

func (d *dialogue) broker(arg string) string {
	n := 0
	if d.td.MaybeScanArgs(d.t, arg, &n); n == 0 {
		return ""
	}
	return brokerID(n)
}

func (d *dialogue) bundle() string {
	n := 0
	if d.td.MaybeScanArgs(d.t, "bundle", &n); n == 0 {
		return ""
	}
	all := d.c.namespaceBundles("public/sim")
	if n > len(all) {
		return fmt.Sprintf("public/sim/0x%08x_0xffffffff", 0xfffffff0-n)
	}
	return all[n-1].name
}

func (d *dialogue) duration(arg string) time.Duration {
	var text string
	d.td.ScanArgs(d.t, arg, &text)
	v, err := time.ParseDuration(text)
	if err != nil {
		d.td.Fatalf(d.t, "%v", err)
	}
	return v
}

func (d *dialogue) done(what string) func(error) {
	start := d.c.now
	return func(err error) {
		text := fmt.Sprintf("%s ended after %d ms", what, d.c.now-start)
		if err != nil {
			text += ": " + err.Error()
		}
		d.results = append(d.results, text)
	}
}

func (d *dialogue) take() { d.events = append(d.events, d.c.Take()...) }

// ownership prints, and forgets, the ownership records so far and how operations ended.
func (d *dialogue) ownership() string {
	d.take()
	var b strings.Builder
	var rest []Event
	for _, e := range d.events {
		if e.Topic != topics.ServiceUnitState {
			rest = append(rest, e)
			continue
		}
		fmt.Fprintf(&b, "%6d by %s %s ", e.At-d.c.cfg.Start, short(e.Producer), strings.TrimPrefix(e.Key, "public/sim/"))
		if len(e.Payload) == 0 {
			b.WriteString("tombstone\n")
			continue
		}
		var r event.ServiceUnitStateData
		if err := json.Unmarshal(e.Payload, &r); err != nil {
			d.td.Fatalf(d.t, "%v", err)
		}
		fmt.Fprintf(&b, "%s v%d", r.State, r.VersionID)
		for _, p := range [...]struct{ name, id string }{{"dst", r.DstBroker}, {"src", r.SourceBroker}} {
			if p.id != "" {
				fmt.Fprintf(&b, " %s=%s", p.name, short(p.id))
			}
		}
		for _, s := range r.SplitServiceUnitToDestBroker {
			fmt.Fprintf(&b, " %s", s.Range)
		}
		if r.Force {
			b.WriteString(" force")
		}
		b.WriteByte('\n')
	}
	d.events = rest
	for _, r := range d.results {
		fmt.Fprintln(&b, r)
	}
	d.results = nil
	return b.String()
}

// loadData prints, and forgets, the load data so far.
func (d *dialogue) loadData() string {
	d.take()
	var b strings.Builder
	var rest []Event
	for _, e := range d.events {
		if e.Topic == topics.ServiceUnitState {
			rest = append(rest, e)
			continue
		}
		name, what := "load", "tombstone"
		if e.Topic == topics.TopBundles {
			name = "top "
		}
		if len(e.Payload) > 0 {
			what = describe(e)
		}
		fmt.Fprintf(&b, "%6d %s %s %s\n", e.At-d.c.cfg.Start, name, short(e.Key), what)
	}
	d.events = rest
	return b.String()
}

func describe(e Event) string {
	if e.Topic == topics.TopBundles {
		t, err := event.Decode[event.TopBundlesLoadData](e.Payload)
		if err != nil {
			return "unreadable"
		}
		var out []string
		for _, x := range t.TopBundlesLoadData {
			out = append(out, fmt.Sprintf("%s %.0f B/s", x.BundleName[len("public/sim/"):], x.Stats.MsgThroughputIn+x.Stats.MsgThroughputOut))
		}
		return fmt.Sprint(out)
	}
	l, err := event.Decode[event.BrokerLoadData](e.Payload)
	if err != nil {
		return "unreadable"
	}
	return fmt.Sprintf("max %.3f ema %.3f in %.0f B/s out %.0f B/s bundles %d topics %d updated %d reported %d",
		l.MaxResourceUsage, l.WeightedMaxEMA, l.MsgThroughputIn, l.MsgThroughputOut, l.BundleCount, l.Topics, l.UpdatedAt-e.At, l.ReportedAt-e.At)
}

func (d *dialogue) owners() string {
	var b strings.Builder
	for _, x := range d.c.namespaceBundles("public/sim") {
		server := "nobody"
		if x.served() {
			server = short(x.server.ID)
		}
		fmt.Fprintf(&b, "%s served by %s\n", x.keys, server)
	}
	var up []string
	for _, r := range d.c.registered() {
		up = append(up, short(r.ID))
	}
	leader := "none"
	if d.c.leader != nil {
		leader = short(d.c.leader.ID)
	}
	fmt.Fprintf(&b, "registered %v, leader %s, cut off %.3f bundle-s\n", up, leader, d.c.gaps.bundleSeconds)
	return b.String()
}

// view is what the leader decides from.
func (d *dialogue) view() string {
	var b strings.Builder
	for _, l := range d.c.Snapshot().Load {
		fmt.Fprintf(&b, "%s ema %v rate in %v, heard %v ago, by its clock %v ago, %d top bundles\n", short(l.Broker), l.Data.WeightedMaxEMA,
			l.Data.MsgRateIn, time.Duration(d.c.now-l.Heard)*time.Millisecond, time.Duration(d.c.now-l.Data.UpdatedAt)*time.Millisecond, len(l.TopBundles))
	}
	return b.String()
}

func (d *dialogue) moves() string {
	var b strings.Builder
	for _, m := range d.c.Moves() {
		fmt.Fprintf(&b, "%6d %s %s > %s %s, %d topics, %.0f B/s\n", m.At-d.c.cfg.Start, m.Bundle[len("public/sim/"):], short(m.From), short(m.To), m.Cause, m.Topics, m.Traffic.Throughput())
	}
	return b.String()
}
