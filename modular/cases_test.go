package modular_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
)

// TestCases runs the dialogues in testdata/cases: small clusters, what a strategy or the manager decides, and the whole
// decision log. Commands:
//
//	world            lines that add to or change the cluster
//	options          names of modular.Options to set
//	strategies       shed=NAME place=NAME
//	shed             what the shedding strategy selects
//	cycle            what the manager's shedding cycle decides; apply=true carries it out
//	place            bundle=NAME [n=COUNT]: what the manager places, and carries it out
//	split            what the manager splits
//	update           takes in the load reports
//	usage            the CPU usage of the brokers
//	later            minutes=N
//
// The argument log=false leaves out what was passed over.
func TestCases(t *testing.T) {
	datadriven.Walk(t, "testdata/cases", func(t *testing.T, path string) {
		d := newDialogue()
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string { return short(d.command(t, td)) })
	})
}

// dialogue is a cluster, a manager and what it remembers.
type dialogue struct {
	w       *world
	shed    string
	place   string
	options modular.Options
	state   plan.State
	rnd     *rand.Rand
}

func newDialogue() *dialogue {
	return &dialogue{
		w: newWorld(), shed: "ThresholdShedder", place: "LeastLongTermMessageRate", state: modular.NewState(),
		rnd: rand.New(rand.NewPCG(1, 2)),
	}
}

func (d *dialogue) manager() *modular.Manager {
	registry := plan.Registry{Shedders: modular.Shedders(d.options), Placers: modular.Placers(d.options)}
	s, err := registry.Shedder(d.shed, modular.Name)
	if err != nil {
		panic(err)
	}
	p, err := registry.Placer(d.place, modular.Name)
	if err != nil {
		panic(err)
	}
	m, err := modular.New(s.New(d.w.settings), p.New(d.w.settings), d.options)
	if err != nil {
		panic(err)
	}
	return m
}

func (d *dialogue) command(t *testing.T, td *datadriven.TestData) string {
	switch td.Cmd {
	case "world":
		for line := range strings.Lines(td.Input) {
			if err := d.w.line(strings.TrimSpace(line)); err != nil {
				td.Fatalf(t, "%v", err)
			}
		}
		return ""
	case "options":
		for _, a := range td.CmdArgs {
			if err := setOption(&d.options, a.Key); err != nil {
				td.Fatalf(t, "%v", err)
			}
		}
		return ""
	case "strategies":
		td.MaybeScanArgs(t, "shed", &d.shed)
		td.MaybeScanArgs(t, "place", &d.place)
		return ""
	case "shed":
		trace := logFor(td)
		p, next := d.manager().Shedder.Shed(d.w.snapshot(), d.state, trace)
		d.state = next
		return render(p, trace)
	case "cycle":
		return d.cycle(td)
	case "place":
		return d.places(t, td)
	case "split":
		trace := logFor(td)
		p, next := d.manager().Split(d.w.snapshot(), d.state, trace)
		d.state = next
		return render(p, trace)
	case "update":
		_, next, changes := d.manager().Update(d.w.snapshot(), d.state)
		d.state = next
		return fmt.Sprintf("bundles: %d new, %d gone; dead brokers: %v\n", len(changes.NewBundles), len(changes.GoneBundles), changes.DeadBrokers)
	case "usage":
		return d.usage()
	case "later":
		var n int64
		td.ScanArgs(t, "minutes", &n)
		d.w.now += n * 60000
		return ""
	}
	td.Fatalf(t, "what is %q?", td.Cmd)
	return ""
}

func (d *dialogue) cycle(td *datadriven.TestData) string {
	trace, m := logFor(td), d.manager()
	p, next := m.Shed(d.w.snapshot(), d.state, d.rnd, trace)
	d.state = next
	if td.HasArg("apply") {
		d.w.carryOut(p)
		for _, done := range p.Decisions {
			d.state = m.Record(d.state, done, d.w.now)
			delete(d.state.(*modular.State).Affinity, done.Bundle) // assigned at once
		}
	}
	if td.HasArg("brief") {
		moved := 0.0
		for _, x := range p.Decisions {
			moved += x.Throughput
		}
		return fmt.Sprintf("%d moved, %.4g bytes/s; %s\n%s", len(p.Decisions), moved, p.Outcome.Code, d.usage())
	}
	return render(p, trace)
}

func (d *dialogue) places(t *testing.T, td *datadriven.TestData) string {
	var name string
	n := 1
	td.ScanArgs(t, "bundle", &name)
	td.MaybeScanArgs(t, "n", &n)
	var out strings.Builder
	count := make(map[string]int)
	for k := range n {
		bundle := longBundle(name)
		if n > 1 {
			bundle = fmt.Sprintf("%s/0x%08x_0x%08x", name, k*0x10000, (k+1)*0x10000)
		}
		trace, snap := logFor(td), d.w.snapshot()
		decision, next := d.manager().Place(snap, bundle, d.state, d.rnd, trace)
		d.state = next
		if n > 1 {
			count[decision.Destination]++
			continue
		}
		to := decision.Destination
		if to == "" {
			to = "nobody"
		}
		fmt.Fprintf(&out, "place %s on %s: %s\n", bundle, to, decision.Why)
		renderTrace(&out, trace)
	}
	var brokers []string
	for b := range count {
		brokers = append(brokers, b)
	}
	slices.Sort(brokers)
	for _, b := range brokers {
		fmt.Fprintf(&out, "%s: %d\n", b, count[b])
	}
	return out.String()
}

func (d *dialogue) usage() string {
	var out strings.Builder
	snap := d.w.snapshot()
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		if b.Local == nil {
			fmt.Fprintf(&out, "%s silent ", b.ID)
			continue
		}
		fmt.Fprintf(&out, "%s %.4g%% (%d) ", b.ID, b.Local.CPU.PercentUsage(), len(b.Bundles))
	}
	return strings.TrimSpace(out.String()) + "\n"
}

func logFor(td *datadriven.TestData) *plan.Trace {
	for _, a := range td.CmdArgs {
		if a.Key == "log" || a.Key == "brief" {
			return nil
		}
	}
	return &plan.Trace{}
}

// render is a plan and its decision log as text.
func render(p plan.Plan, trace *plan.Trace) string {
	var out strings.Builder
	for _, d := range p.Decisions {
		fmt.Fprintf(&out, "%s %s from %s", d.Action, d.Bundle, d.Source)
		if d.Destination != "" {
			fmt.Fprintf(&out, " to %s", d.Destination)
		}
		if len(d.Boundaries) > 0 {
			fmt.Fprintf(&out, " at %s", strings.Join(d.Boundaries, " "))
		}
		if d.UnloadAfter {
			out.WriteString(" and unload")
		}
		fmt.Fprintf(&out, ": %s\n", d.Why)
	}
	fmt.Fprintf(&out, "outcome: %s: %s\n", p.Outcome.Code, p.Outcome)
	renderTrace(&out, trace)
	return out.String()
}

func renderTrace(out *strings.Builder, trace *plan.Trace) {
	if trace == nil {
		return
	}
	for _, e := range trace.Entries {
		var who []string
		for _, s := range []string{e.Bundle, e.Broker} {
			if s != "" {
				who = append(who, s)
			}
		}
		if e.Other != "" {
			who = append(who, "("+e.Other+")")
		}
		fmt.Fprintf(out, "  %s: %s: %s\n", strings.Join(who, " "), e.Why.Code, e.Why)
	}
}

func setOption(o *modular.Options, name string) error {
	f := optionField(o, name)
	if !f.IsValid() {
		return fmt.Errorf("there is no option %q", name)
	}
	f.SetBool(true)
	return nil
}
