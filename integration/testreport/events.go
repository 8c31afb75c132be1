package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is a line of `go test -json` (go doc test2json); build-output and build-fail have an ImportPath.
type event struct {
	Time       time.Time
	Action     string
	Package    string
	Test       string
	Elapsed    float64
	Output     string
	Key, Value string // of the action attr
	ImportPath string
}

// test is what is known of one test, or of a package where the name is empty.
type test struct {
	pkg, name string
	outcome   string // pass, fail, skip; "" while it runs
	unended   bool   // it counts as failed because its end was never told
	unsteady  bool   // it failed, and ended otherwise when it ran again
	before    string // what it said when it failed
	elapsed   float64
	output    []string
	figures   []figure
}

type figure struct{ name, value string }

// results are the tests of one run in the order in which they began.
type results struct {
	began time.Time // of the first event; zero if the events have no times
	tests []*test
	index map[[2]string]*test
}

func (r *results) get(pkg, name string) *test {
	key := [2]string{pkg, name}
	t := r.index[key]
	if t == nil {
		t = &test{pkg: pkg, name: name}
		r.index[key] = t
		r.tests = append(r.tests, t)
	}
	return t
}

// slow is the time in seconds from which on a test that passed is shown.
const slow = 5

// read takes events in and shows what is worth showing. Lines that are no events (of a tool that fails early) are shown.
func read(in io.Reader, out io.Writer) (*results, error) {
	r := &results{index: map[[2]string]*test{}}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Action == "" {
			fmt.Fprintln(out, lines.Text())
			continue
		}
		if e.ImportPath != "" { // the compiler's words; the package fails in an event of its own
			fmt.Fprint(out, e.Output)
			continue
		}
		if r.began.IsZero() {
			r.began = e.Time
		}
		r.take(e, out)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the events: %w", err)
	}
	for _, t := range r.tests {
		if t.outcome == "" {
			t.outcome, t.unended = "fail", true
			fmt.Fprintf(out, "FAIL %s %s: it did not come to its end\n%s", t.pkg, t.name, t.said())
		}
	}
	return r, nil
}

func (r *results) take(e event, out io.Writer) {
	t := r.get(e.Package, e.Test)
	switch e.Action {
	case "output":
		t.output = append(t.output, e.Output)
	case "attr":
		t.figures = append(t.figures, figure{strings.ReplaceAll(e.Key, "_", " "), e.Value})
	case "pass", "fail", "skip":
		t.outcome, t.elapsed = e.Action, e.Elapsed
		t.show(out)
	}
}

func (t *test) show(out io.Writer) {
	switch {
	case t.name == "" && t.outcome == "skip": // no test files
	case t.name == "" && t.outcome == "pass":
		fmt.Fprintf(out, "ok   %s (%.1fs)\n", t.pkg, t.elapsed)
	case t.outcome == "fail":
		fmt.Fprintf(out, "FAIL %s %s (%.1fs)\n%s", t.pkg, t.name, t.elapsed, t.said())
	case t.outcome == "skip":
		fmt.Fprintf(out, "skip %s %s: %s\n", t.pkg, t.name, t.reason())
	case t.elapsed >= slow:
		fmt.Fprintf(out, "     %s %s passed (%.1fs)\n", t.pkg, t.name, t.elapsed)
	}
	if t.outcome == "pass" {
		t.output = nil
	}
}

// said is the output of a test, without the middle if it is very long.
func (t *test) said() string {
	const most = 200
	lines := t.output
	if len(lines) > most {
		left := fmt.Sprintf("... %d lines left out ...\n", len(lines)-most)
		lines = slices.Concat(lines[:most/2], []string{left}, lines[len(lines)-most/2:])
	}
	return strings.Join(lines, "")
}

// reason is what a skipped test said, without the position in the source.
func (t *test) reason() string {
	var words []string
	for _, line := range t.output {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if position, rest, ok := strings.Cut(line, ": "); ok && strings.Contains(position, ".go:") {
			line = rest
		}
		words = append(words, line)
	}
	if len(words) == 0 {
		return "no reason given"
	}
	const most = 200 // a property test may log its whole input before it skips
	reason := []rune(strings.Join(words, " "))
	if len(reason) > most {
		return string(reason[:most]) + "..."
	}
	return string(reason)
}

// counts sum up outcomes.
type counts struct{ passed, failed, skipped int }

func (c *counts) add(d counts) {
	c.passed += d.passed
	c.failed += d.failed
	c.skipped += d.skipped
}

func (c counts) String() string {
	s := fmt.Sprintf("%d passed, %d failed", c.passed, c.failed)
	if c.skipped > 0 {
		s += fmt.Sprintf(", %d skipped", c.skipped)
	}
	return s
}

func (r *results) counts() counts {
	var c counts
	for _, t := range r.tests {
		switch {
		case t.name == "" && (t.outcome != "fail" || r.blamed(t.pkg)):
		case t.outcome == "pass":
			c.passed++
		case t.outcome == "skip":
			c.skipped++
		default:
			c.failed++
		}
	}
	return c
}

// blamed says whether a failed package has a failed test that explains it.
func (r *results) blamed(pkg string) bool {
	return slices.ContainsFunc(r.tests, func(t *test) bool { return t.pkg == pkg && t.name != "" && t.outcome == "fail" })
}
