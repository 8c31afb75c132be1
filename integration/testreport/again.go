package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// mostAgain is how many failed tests may run again. More of them are no accident of a busy machine.
const mostAgain = 4

// again names the tests that failed as a pattern for `go test -run`. There is none if a package failed without one of its tests,
// a test did not come to its end, or too many failed: then something else is wrong than one test.
func (r *results) again() (pattern string, ok bool) {
	var names []string
	for _, t := range r.tests {
		switch {
		case t.outcome != "fail":
		case t.unended || t.name == "" && !r.blamed(t.pkg):
			return "", false
		case t.name != "" && !strings.Contains(t.name, "/"):
			names = append(names, regexp.QuoteMeta(t.name))
		}
	}
	if len(names) == 0 || len(names) > mostAgain {
		return "", false
	}
	slices.Sort(names)
	return "^(" + strings.Join(slices.Compact(names), "|") + ")$", true
}

// repeat takes in a run of what had failed: the later outcome counts.
func (r *results) repeat(later *results) {
	for _, t := range later.tests {
		key := [2]string{t.pkg, t.name}
		known := r.index[key]
		switch {
		case known == nil:
			r.index[key] = t
			r.tests = append(r.tests, t)
		case t.outcome == "fail" || known.outcome == "fail":
			known.unsteady = known.outcome != t.outcome // only told of what passed in the end
			known.before, known.output = known.own(), t.output
			known.outcome, known.unended, known.elapsed = t.outcome, t.unended, t.elapsed
		}
	}
}

// tell lists the tests that failed, and those that only did so at first.
func (r *results) tell(unsteady, failed io.Writer) {
	for _, t := range r.tests {
		switch {
		case t.name == "":
		case t.outcome == "fail":
			fmt.Fprintf(failed, "failed: %s %s\n%s", t.pkg, t.name, t.own())
		case t.unsteady:
			fmt.Fprintf(unsteady, "unsteady: %s %s failed, and passed when it ran again\n%s", t.pkg, t.name, t.before)
		}
	}
}

var position = regexp.MustCompile(`^\s+\w+_test\.go:\d+: `)

// own are the first lines that a test itself said.
func (t *test) own() string {
	const most, width = 8, 300
	var b strings.Builder
	n := 0
	for _, line := range t.output {
		if n < most && position.MatchString(line) {
			if runes := []rune(strings.TrimRight(line, "\n")); len(runes) > width {
				line = string(runes[:width]) + "..."
			}
			b.WriteString(strings.TrimRight(line, "\n") + "\n")
			n++
		}
	}
	return b.String()
}
