package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/split"
)

// TestExamples runs the examples of the strategies' pages: blocks fenced as datadriven, one dialogue a page. Commands:
//
//	world                 the cluster, anew
//	change                changes of it
//	usage                 the CPU usage of the brokers, or their published load, and their bundles
//	shed [cycles=N]       what the shedding strategy plans, N times running
//	cycle [apply]         a whole shedding cycle of the load manager; apply carries it out
//	place BUNDLE [n=N]    where the placement strategy puts a bundle; with N > 1 how often it draws each broker
//	assign BUNDLE         where the load manager puts a bundle
//	split [cycles=N]      what the load manager splits
//	later minutes=N       time passes
//	cut ALGORITHM         where a split algorithm cuts
//
// log adds what was passed over.
func TestExamples(t *testing.T) {
	for _, path := range pages(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			text := read(t, path)
			w, parts := newWorld(), strings.Split(text, fence)
			for i := 1; i < len(parts); i++ {
				block, rest, closed := strings.Cut(parts[i], "\n```")
				if !closed {
					t.Fatalf("%s: an example does not end", path)
				}
				file := filepath.Join(t.TempDir(), "example")
				if err := os.WriteFile(file, []byte(block+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
					out, err := w.command(t, d)
					if err != nil {
						d.Fatalf(t, "%s: %v", path, err)
					}
					return short(out)
				})
				parts[i] = strings.TrimRight(read(t, file), "\n") + "\n```" + rest
			}
			if rewriting() {
				write(t, path, strings.Join(parts, fence))
			}
		})
	}
}

const fence = "```datadriven\n"

// pages are the pages of the strategies.
func pages(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("strategies/*.md")
	if err != nil || len(paths) < 10 {
		t.Fatalf("pages of the strategies: %v, %v", paths, err)
	}
	return paths
}

func rewriting() bool { return flag.Lookup("rewrite").Value.String() == "true" }

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// command runs one command of an example.
func (w *world) command(t *testing.T, d *datadriven.TestData) (string, error) {
	n := 1
	for _, key := range []string{"cycles", "n", "minutes"} {
		d.MaybeScanArgs(t, key, &n)
	}
	switch d.Cmd {
	case "world":
		*w = *newWorld()
		fallthrough
	case "change":
		for text := range strings.Lines(d.Input) {
			if err := w.line(strings.TrimSpace(text)); err != nil {
				return "", err
			}
		}
		return "", nil
	case "later":
		w.now += int64(n) * 60_000
		return "", nil
	case "usage":
		return w.usage()
	case "cut":
		return cut(d)
	}
	return w.decide(d, n)
}

// decide runs a command that asks a load manager or a strategy.
func (w *world) decide(d *datadriven.TestData, n int) (string, error) {
	m, parts, err := w.choose()
	if err != nil {
		return "", err
	}
	if w.state == nil {
		w.state = m.NewState()
	}
	snap, err := w.snapshot()
	if err != nil {
		return "", err
	}
	var tr *plan.Trace
	if d.HasArg("log") {
		tr = &plan.Trace{}
	}
	var out strings.Builder
	switch d.Cmd {
	case "shed", "cycle", "split":
		for i := range n {
			var p plan.Plan
			switch d.Cmd {
			case "shed":
				p, w.state = parts.Shedder.Shed(snap, w.state, traced(tr))
			case "cycle":
				p, w.state = m.Shed(snap, w.state, w.rnd, traced(tr))
			default:
				p, w.state = m.Split(snap, w.state, traced(tr))
			}
			if n > 1 {
				fmt.Fprintf(&out, "%d. ", i+1)
			}
			render(&out, p, tr)
			if d.HasArg("apply") {
				w.carryOut(m, p)
			}
			w.now += 60_000
		}
	case "place":
		return w.place(parts.Placer, longBundle(d.CmdArgs[0].Key), n, tr)
	case "assign":
		var placed plan.Decision
		placed, w.state = m.Place(snap, longBundle(d.CmdArgs[0].Key), w.state, w.rnd, traced(tr))
		fmt.Fprintf(&out, "%s -> %s: %s\n", placed.Bundle, placed.Destination, placed.Why)
		renderLog(&out, tr)
	default:
		return "", fmt.Errorf("what is %q?", d.Cmd)
	}
	return out.String(), nil
}

// traced is the trace to write a decision's reasons into; strategies say why only to those who listen.
func traced(tr *plan.Trace) *plan.Trace {
	if tr == nil {
		return &plan.Trace{}
	}
	return tr
}

// choose makes the load manager and its strategies, as they are registered.
func (w *world) choose() (plan.Manager, plan.Parts, error) {
	r := w.registry()
	parts := plan.Parts{Settings: w.conf}
	if names := r.ShedderNames(w.manager); len(names) > 0 {
		e, err := r.Shedder(orFirst(w.shedder, names), w.manager)
		if err != nil {
			return nil, parts, err
		}
		parts.Shedder = e.New(w.conf)
	}
	if names := r.PlacerNames(w.manager); len(names) > 0 {
		e, err := r.Placer(orFirst(w.placer, names), w.manager)
		if err != nil {
			return nil, parts, err
		}
		parts.Placer = e.New(w.conf)
	}
	e, err := r.Manager(w.manager)
	if err != nil {
		return nil, parts, err
	}
	m, err := e.New(parts)
	return m, parts, err
}

func orFirst(name string, names []string) string {
	if name == "" {
		return names[0]
	}
	return name
}

// place asks the placement strategy alone, with all brokers as candidates.
func (w *world) place(p plan.Placer, bundle string, n int, tr *plan.Trace) (string, error) {
	snap, err := w.snapshot()
	if err != nil {
		return "", err
	}
	all := make([]int, len(snap.Brokers))
	for i := range all {
		all[i] = i
	}
	var out strings.Builder
	drawn := make([]int, len(snap.Brokers))
	for range n {
		i, why := p.Place(snap, bundle, all, w.state, w.rnd, traced(tr))
		if n == 1 {
			fmt.Fprintf(&out, "%s -> %s: %s\n", bundle, snap.Brokers[i].ID, why)
		}
		drawn[i]++
	}
	renderLog(&out, tr)
	if n == 1 {
		return out.String(), nil
	}
	var counts []string
	for i, c := range drawn {
		counts = append(counts, fmt.Sprintf("%s %d", snap.Brokers[i].ID, c))
	}
	return out.String() + strings.Join(counts, ", ") + "\n", nil
}

func (w *world) usage() (string, error) {
	snap, err := w.snapshot()
	if err != nil {
		return "", err
	}
	var parts []string
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		usage := b.Load.WeightedMaxEMA
		if w.manager == modular.Name {
			weights := load.WeightsOf(w.conf)
			usage = load.LocalWeightedMaxUsage(b.Local, &weights)
		}
		parts = append(parts, fmt.Sprintf("%s %.4g %% (%d bundles)", b.ID, 100*usage, len(b.Bundles)))
	}
	return strings.Join(parts, ", ") + "\n", nil
}

func render(out *strings.Builder, p plan.Plan, tr *plan.Trace) {
	fmt.Fprintf(out, "%s: %s\n", p.Outcome.Code, p.Outcome)
	for _, d := range p.Decisions {
		to := ""
		if d.Destination != "" {
			to = " -> " + d.Destination
		}
		if d.Action == plan.Split {
			to = " cut at " + strings.Join(d.Boundaries, ", ")
		}
		fmt.Fprintf(out, "%s %s %s%s: %s\n", d.Action, d.Bundle, d.Source, to, d.Why)
	}
	for _, a := range p.Advice {
		fmt.Fprintf(out, "advice %s: %s\n", a.Bundle, a.Why)
	}
	renderLog(out, tr)
}

func renderLog(out *strings.Builder, tr *plan.Trace) {
	if tr == nil {
		return
	}
	for _, e := range tr.Entries {
		who := strings.TrimSpace(e.Bundle + " " + e.Broker)
		if e.Other != "" {
			who += " -> " + e.Other
		}
		fmt.Fprintf(out, "  %s: %s\n", who, e.Why)
	}
	tr.Entries = nil
}

// cut asks a split algorithm. Lines: range=LOW_UP, and topic hash=... rate=... throughput=... for each topic.
func cut(d *datadriven.TestData) (string, error) {
	conf := settings.Defaults()
	r := split.Request{
		MaxMsgRate:    float64(conf.LoadBalancerNamespaceBundleMaxMsgRate),
		MaxThroughput: float64(conf.LoadBalancerNamespaceBundleMaxBandwidthMbytes) * (1 << 20), DifferencePercent: float64(conf.FlowOrQpsDifferenceThresholdPercentage),
	}
	for text := range strings.Lines(d.Input) {
		var topic split.Topic
		for _, word := range strings.Fields(text) {
			k, v, _ := strings.Cut(word, "=")
			var err error
			switch k {
			case "range":
				r.Range, err = split.ParseRange(v)
			case "position", "hash":
				var x uint32
				if _, err = fmt.Sscanf(v, "0x%x", &x); k == "hash" {
					topic.Hash = x
				} else {
					r.Positions = append(r.Positions, x)
				}
			case "rate":
				topic.MsgRate, err = number(v)
				topic.Known = true
			case "throughput":
				topic.Throughput, err = number(v)
				topic.Known = true
			case "topic":
			default:
				err = fmt.Errorf("what is %q?", word)
			}
			if err != nil {
				return "", err
			}
		}
		if strings.HasPrefix(text, "topic") {
			r.Topics = append(r.Topics, topic)
		}
	}
	cuts, ok, err := split.Boundaries(split.Algorithm(d.CmdArgs[0].Key), r)
	switch {
	case err != nil:
		return "error: " + err.Error() + "\n", nil
	case !ok || len(cuts) == 0:
		return "no cut\n", nil
	}
	children, err := r.Range.Children(cuts)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, c := range children {
		in := slices.DeleteFunc(slices.Clone(r.Topics), func(x split.Topic) bool { return !c.Contains(x.Hash) })
		rate, throughput := 0.0, 0.0
		for _, x := range in {
			rate, throughput = rate+x.MsgRate, throughput+x.Throughput
		}
		fmt.Fprintf(&out, "%s: %d topics, %g msg/s, %g bytes/s\n", c, len(in), rate, throughput)
	}
	return out.String(), nil
}
