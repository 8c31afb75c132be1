package simple

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// TestCases are dialogues with the load manager about cases that users reported; each file is headed by what it shows.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		d := newDialogue()
		datadriven.RunTest(t, path, func(t *testing.T, c *datadriven.TestData) string { return d.answer(t, c) })
	})
}

// dialogue is a little cluster that is told what happens.
type dialogue struct {
	m         *Manager
	st        plan.State
	set       *settings.Settings
	now       int64
	reports   []event.LoadReport
	dead      []string
	isolation []policy.Isolation
	extra     []string // bundles of namespaces that nobody reports
}

func newDialogue() *dialogue {
	d := &dialogue{m: &Manager{}, set: settings.Defaults(), now: 1_700_000_000_000}
	d.set.LoadManagerClassName = Class
	d.st = d.m.NewState()
	return d
}

func (d *dialogue) snapshot() *cluster.Snapshot {
	snap := &cluster.Snapshot{Now: d.now, Settings: d.set, Policies: policy.New(d.isolation, nil, nil, nil)}
	for i := range d.reports {
		r := &d.reports[i]
		if slices.Contains(d.dead, r.Name) {
			continue
		}
		snap.Brokers = append(snap.Brokers, cluster.Broker{ID: r.Name, Report: r})
		for j := range r.BundleStats {
			b := r.BundleStats[j]
			snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: b.Bundle, Namespace: namespaceOf(b.Bundle), Owner: r.Name, Stats: b.Stats, Known: true})
		}
	}
	for _, b := range d.extra {
		snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: b, Namespace: namespaceOf(b)})
	}
	return snap.Index()
}

func (d *dialogue) answer(t *testing.T, c *datadriven.TestData) string {
	t.Helper()
	var out strings.Builder
	trace := new(plan.Trace)
	switch c.Cmd {
	case "set":
		for _, a := range c.CmdArgs {
			if err := settings.Set(d.set, a.Key, strings.Join(a.Vals, ",")); err != nil {
				t.Fatal(err)
			}
		}
		return "ok"
	case "repair":
		for _, a := range c.CmdArgs {
			reflect.ValueOf(&d.m.Options).Elem().FieldByName(a.Key).SetBool(true)
		}
		return "ok"
	case "isolate":
		p := policy.Isolation{Name: "policy"}
		for _, a := range c.CmdArgs {
			switch a.Key {
			case "namespace":
				p.Namespaces = a.Vals
			case "primary":
				p.Primary = a.Vals
			case "secondary":
				p.Secondary = a.Vals
			}
		}
		p.AutoFailover.MinLimit = 1
		d.isolation = append(d.isolation, p)
		return "ok"
	case "report":
		d.report(t, c)
		return "ok"
	case "noquota": // somebody stored a default quota of nothing
		none := event.NewResourceQuota()
		d.st.(*State).Quotas.Stored.Default = &none
		return "ok"
	case "leave":
		d.dead = append(d.dead, c.CmdArgs[0].Key)
		return "ok"
	case "namespace":
		n, err := strconv.Atoi(c.CmdArgs[1].Vals[0])
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			d.extra = append(d.extra, fmt.Sprintf("%s/other-%d", c.CmdArgs[0].Key, i))
		}
		return "ok"
	case "advance":
		ms, err := strconv.ParseInt(c.CmdArgs[0].Key, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		d.now += ms
		return "ok"
	case "rank":
		d.st = d.m.Update(d.snapshot(), d.st)
		for i := range d.st.(*State).Rankings {
			r := &d.st.(*State).Rankings[i]
			r.reckon(float64(d.st.(*State).Factor))
			fmt.Fprintf(&out, "%s rank %d load %.2f %% rate %.2f loaded %d promised %d\n", r.Broker, r.Rank, r.estimate.Load, r.estimate.MsgRate, len(r.Loaded), len(r.Preallocated))
		}
	case "place":
		for _, a := range c.CmdArgs {
			var p plan.Decision
			p, d.st = d.m.Place(d.snapshot(), a.Key, d.st, nil, trace)
			fmt.Fprintf(&out, "%s -> %s: %s\n", a.Key, orNone(p.Destination), p.Why)
		}
	case "shed":
		var p plan.Plan
		p, d.st = d.m.Shed(d.snapshot(), d.st, nil, trace)
		for _, x := range p.Decisions {
			d.st = d.m.Record(d.st, x, d.now)
		}
		d.plan(&out, p)
	case "split":
		var p plan.Plan
		p, d.st = d.m.Split(d.snapshot(), d.st, trace)
		d.plan(&out, p)
	default:
		t.Fatalf("unknown command %s", c.Cmd)
	}
	for _, e := range trace.Entries {
		fmt.Fprintf(&out, "  left out %s %s: %s\n", strings.TrimSpace(e.Bundle+" "+e.Broker), e.Other, e.Why)
	}
	return out.String()
}

func (d *dialogue) plan(out *strings.Builder, p plan.Plan) {
	fmt.Fprintf(out, "%s: %s\n", p.Outcome.Code, p.Outcome)
	for _, x := range p.Decisions {
		fmt.Fprintf(out, "%s %s from %s: %s\n", x.Action, x.Bundle, x.Source, x.Why)
		if len(x.Boundaries) > 0 {
			fmt.Fprintf(out, "  at %s, children unloaded: %t\n", x.Boundaries, x.UnloadAfter)
		}
	}
	for _, a := range p.Advice {
		fmt.Fprintf(out, "advice %s: %s\n", a.Bundle, a.Why)
	}
}

func orNone(broker string) string {
	if broker == "" {
		return "none"
	}
	return broker
}

// report reads "report broker cpu=used/limit ..." and a bundle a line: "name rate=in/out bytes=in/out topics=n sessions=n".
// What is not named is 10 % of a usual limit.
func (d *dialogue) report(t *testing.T, c *datadriven.TestData) {
	t.Helper()
	r := event.NewLoadReport()
	r.Name, r.Timestamp = c.CmdArgs[0].Key, d.now
	u := event.SystemResourceUsage{CPU: pair(t, "40/400"), Memory: pair(t, "819.2/8192"), DirectMemory: pair(t, "409.6/4096"),
		BandwidthIn: pair(t, "100000/1000000"), BandwidthOut: pair(t, "100000/1000000")}
	for _, a := range c.CmdArgs[1:] {
		switch v := a.Vals[0]; a.Key {
		case "cpu":
			u.CPU = pair(t, v)
		case "memory":
			u.Memory = pair(t, v)
		case "direct":
			u.DirectMemory = pair(t, v)
		case "in":
			u.BandwidthIn = pair(t, v)
		case "out":
			u.BandwidthOut = pair(t, v)
		default:
			t.Fatalf("unknown resource %s", a.Key)
		}
	}
	r.SystemResourceUsage = &u
	r.BundleStats = []event.NamedBundleStats{}
	for line := range strings.Lines(c.Input) {
		fields := strings.Fields(line)
		b := event.NamedBundleStats{Bundle: fields[0], Stats: event.NamespaceBundleStats{Topics: 2}}
		for _, f := range fields[1:] {
			key, v, _ := strings.Cut(f, "=")
			switch key {
			case "rate":
				p := pair(t, v)
				b.Stats.MsgRateIn, b.Stats.MsgRateOut = p.Usage, p.Limit
			case "bytes":
				p := pair(t, v)
				b.Stats.MsgThroughputIn, b.Stats.MsgThroughputOut = p.Usage, p.Limit
			case "topics":
				b.Stats.Topics = int64(number(t, v))
			case "sessions":
				b.Stats.ProducerCount = int32(number(t, v))
			default:
				t.Fatalf("unknown statistic %s", key)
			}
		}
		r.BundleStats = append(r.BundleStats, b)
	}
	at := slices.IndexFunc(d.reports, func(x event.LoadReport) bool { return x.Name == r.Name })
	if at < 0 {
		d.reports = append(d.reports, r)
	} else {
		d.reports[at] = r
	}
}

func pair(t *testing.T, text string) event.ResourceUsage {
	t.Helper()
	a, b, _ := strings.Cut(text, "/")
	return event.ResourceUsage{Usage: number(t, a), Limit: number(t, b)}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
