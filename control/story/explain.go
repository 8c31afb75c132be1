package story

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/plan"
)

// ParseSubject says what BUNDLE|BROKER|CYCLE is about.
func ParseSubject(s string) (Filter, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil && n > 0 {
		return Filter{Cycle: n}, nil
	}
	switch {
	case strings.Count(s, "/") == 2 && strings.Contains(s, "/0x"):
		return Filter{Bundle: s}, nil
	case !strings.Contains(s, "/") && strings.Contains(s, ":"):
		return Filter{Broker: s}, nil
	}
	return Filter{}, fmt.Errorf("%q is none of a bundle (tenant/namespace/0x00000000_0x40000000), a broker (host:8080) and the number of a cycle", s)
}

// Explain tells the story of a bundle, a broker or a cycle from the records of the decision log, in their order. Each string
// is a line.
func Explain(records []control.Record, f Filter) []string {
	t := &teller{}
	switch {
	case f.Bundle != "":
		t.subject(records, f, f.Bundle)
	case f.Broker != "":
		t.subject(records, f, f.Broker)
		t.balance(records, f)
	default:
		t.cycle(records, f)
	}
	if len(t.lines) > 0 {
		return t.lines
	}
	if len(records) == 0 {
		return []string{"The decision log is empty: no Ballast has governed this cluster, or its records are older than what is kept."}
	}
	return []string{fmt.Sprintf("The decision log has nothing about it; it reaches back to %s with %s.", At(records[0].At), count(len(records), "record"))}
}

type teller struct {
	lines []string
	same  repeated
}

// repeated is something that is told once for all cycles in a row that repeat it.
type repeated struct {
	text        string
	code        string
	first, last int64 // cycles
	from, to    int64 // Unix ms
	n           int
}

func (t *teller) say(at int64, format string, args ...any) {
	t.flush()
	t.lines = append(t.lines, At(at)+"  "+fmt.Sprintf(format, args...))
}

// repeat tells something that may come again in the next cycle for the same reason, with other numbers.
func (t *teller) repeat(r control.Record, code, text string) {
	if t.same.n > 0 && t.same.code == code {
		t.same.last, t.same.to, t.same.text, t.same.n = r.Cycle, r.At, text, t.same.n+1
		return
	}
	t.flush()
	t.same = repeated{text: text, code: code, first: r.Cycle, last: r.Cycle, from: r.At, to: r.At, n: 1}
}

func (t *teller) flush() {
	s := t.same
	t.same = repeated{}
	switch {
	case s.n == 1:
		t.lines = append(t.lines, fmt.Sprintf("%s  Cycle %d: %s", At(s.from), s.first, s.text))
	case s.n > 1:
		t.lines = append(t.lines, fmt.Sprintf("%s  Cycles %d to %d (%d times, until %s): %s", At(s.from), s.first, s.last, s.n, At(s.to), s.text))
	}
}

// subject tells everything that concerns one bundle or broker.
func (t *teller) subject(records []control.Record, f Filter, name string) {
	answered, begun := map[string]bool{}, map[string]string{}
	for _, r := range records {
		switch {
		case r.Of != "":
			answered[r.Of] = true
		// Commands of earlier versions do not say which intent they answer: it is the last one about the bundle.
		case r.Epoch == 0 && r.Kind == control.KindIntent:
			begun[r.Instance+" "+r.Decision.Bundle] = r.Key()
		case r.Epoch == 0 && r.Kind == control.KindOutcome:
			answered[begun[r.Instance+" "+r.Outcome.Decision.Bundle]] = true
		}
	}
	for _, r := range records {
		if !f.Match(r) {
			continue
		}
		switch r.Kind {
		case control.KindPlan:
			t.inPlan(r, f)
		case control.KindIntent:
			if !answered[r.Key()] {
				t.say(r.At, "%s: %s was about to %s; what came of it is not on record yet.", origin(r, *r.Decision), writer(r), action(*r.Decision))
			}
		case control.KindOutcome:
			t.say(r.At, "%s: %s.", origin(r, r.Outcome.Decision), outcome(*r.Outcome))
		default:
			t.say(r.At, "%s.", Line(r))
		}
	}
	t.flush()
	if len(t.lines) > 0 {
		t.lines = append([]string{"The story of " + name + ":"}, t.lines...)
	}
}

// origin is the cycle of a leader that decided something or, without one, the command by which an operator did.
func origin(r control.Record, d plan.Decision) string {
	if r.Epoch > 0 || r.Cycle > 0 {
		return fmt.Sprintf("Cycle %d", r.Cycle)
	}
	command, why := string(d.Action), ""
	switch {
	case d.Why.Code == drain.Leaves.ID:
		command = "drain"
	case d.Action == plan.Transfer:
		command = "move"
	}
	for _, n := range d.Why.Numbers {
		if n.Name == "reason" {
			why = because(n.Text)
		}
	}
	return "By the command " + command + why
}

// writer is who wrote a record: leaders are known by their epoch.
func writer(r control.Record) string {
	if r.Epoch == 0 {
		return r.Instance
	}
	return fmt.Sprintf("epoch %d", r.Epoch)
}

// inPlan tells what a plan says about the subject.
func (t *teller) inPlan(r control.Record, f Filter) {
	if r.Plan == nil {
		return
	}
	alone := Filter{Bundle: f.Bundle, Broker: f.Broker}
	for _, d := range r.Plan.Decisions {
		if !alone.Match(control.Record{Decision: &d}) {
			continue
		}
		t.say(r.At, "Cycle %d: %s wants to %s%s.%s", r.Cycle, orElse(r.Plan.Strategy, "the strategy"), action(d), weight(d), reason(d.Why))
		if why, held := heldBack(r, d); held {
			t.say(r.At, "Cycle %d: held back: %s.", r.Cycle, why)
		} else if r.Review != nil {
			t.say(r.At, "Cycle %d: it waits for an operator (plan %s).", r.Cycle, r.Review.ID)
		}
	}
	for _, l := range r.LeftOut {
		if alone.Match(control.Record{LeftOut: []plan.LeftOut{l}}) {
			t.repeat(r, l.Why.Code+l.Bundle+l.Broker+l.Other, fmt.Sprintf("passed over%s: %s.", pair(l, f), l.Why))
		}
	}
	if f.Broker != "" && slices.Contains(r.Missing, f.Broker) {
		t.repeat(r, "missing", "it was registered but had not been heard, so nothing was decided.")
	}
}

// pair names what a left-out entry is about besides the subject.
func pair(l plan.LeftOut, f Filter) string {
	var names []string
	for _, name := range []string{l.Bundle, l.Broker, l.Other} {
		if name != "" && name != f.Bundle && name != f.Broker {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " with " + strings.Join(names, " and ")
}

func weight(d plan.Decision) string {
	return fmt.Sprintf(" (%.3f MB/s, %.0f msg/s, %s)", d.Throughput/1e6, d.MsgRate, count(int(d.Topics), "topic"))
}

func reason(why plan.Reason) string {
	if why.Code == "" {
		return ""
	}
	return " Why: " + why.String() + "."
}

func heldBack(r control.Record, d plan.Decision) (plan.Reason, bool) {
	if r.Verdict == nil {
		return plan.Reason{}, false
	}
	for _, x := range r.Verdict.Refused {
		if x.Decision.Bundle == d.Bundle && x.Decision.Action == d.Action {
			return x.Why, true
		}
	}
	return plan.Reason{}, false
}

// balance sums up what a broker gave and took.
func (t *teller) balance(records []control.Record, f Filter) {
	if len(t.lines) == 0 {
		return
	}
	var gave, took, failed int
	var out, in float64
	for _, r := range records {
		if r.Kind != control.KindOutcome || !f.Match(r) {
			continue
		}
		o := r.Outcome
		switch moved := o.Result == control.Done || o.Result == control.Elsewhere; {
		case moved && o.Decision.Source == f.Broker:
			gave, out = gave+1, out+o.Decision.Throughput
		case moved && o.Owner == f.Broker:
			took, in = took+1, in+o.Decision.Throughput
		case !moved && o.Result != control.Skipped && o.Result != control.Unknown:
			failed++
		}
	}
	t.lines = append(t.lines, fmt.Sprintf("In all it gave %s with %.3f MB/s and took %d with %.3f MB/s; %d did not succeed.", count(gave, "bundle"), out/1e6, took, in/1e6, failed))
}

// cycle tells everything about one cycle.
func (t *teller) cycle(records []control.Record, f Filter) {
	for _, r := range records {
		if !f.Match(r) {
			continue
		}
		switch r.Kind {
		case control.KindPlan:
			t.say(r.At, "Cycle %d of %s (epoch %d, %s): %s.", r.Cycle, r.Instance, r.Epoch, r.Mode, planned(r))
			t.decisions(r)
			t.leftOut(r)
		case control.KindIntent:
		case control.KindOutcome:
			t.say(r.At, "%s.", outcome(*r.Outcome))
		default:
			t.say(r.At, "%s.", Line(r))
		}
	}
}

func (t *teller) decisions(r control.Record) {
	if r.Plan == nil {
		return
	}
	for _, d := range r.Plan.Decisions {
		fate := "let through"
		if why, held := heldBack(r, d); held {
			fate = "held back: " + why.String()
		}
		t.lines = append(t.lines, fmt.Sprintf("    %s%s.%s %s.", action(d), weight(d), reason(d.Why), fate))
	}
	if r.DecisionsMore > 0 {
		t.lines = append(t.lines, fmt.Sprintf("    and %s that the record does not list.", count(r.DecisionsMore, "decision")))
	}
}

// leftOut counts what was passed over by its reason, each with its first example.
func (t *teller) leftOut(r control.Record) {
	var codes []string
	n, example := map[string]int{}, map[string]plan.LeftOut{}
	for _, l := range r.LeftOut {
		if n[l.Why.Code]++; n[l.Why.Code] == 1 {
			codes = append(codes, l.Why.Code)
			example[l.Why.Code] = l
		}
	}
	for _, code := range codes {
		l := example[code]
		t.lines = append(t.lines, fmt.Sprintf("    passed over %s%s: %s.", times(n[code]), first(n[code], l), l.Why))
	}
	if r.LeftOutMore > 0 {
		t.lines = append(t.lines, fmt.Sprintf("    and %d passed over that the record does not list.", r.LeftOutMore))
	}
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func first(n int, l plan.LeftOut) string {
	name := strings.TrimPrefix(pair(l, Filter{}), " with ")
	switch {
	case name == "":
		return ""
	case n == 1:
		return ", " + name
	}
	return ", first " + name
}
