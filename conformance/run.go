package conformance

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

const (
	maxLine        = 64 << 20 // bytes; the longest recorded line has 31 KB
	maxDifferences = 5        // kept per kind
)

// Report says per kind how many lines matched.
type Report struct {
	Pulsar string       // version whose decisions were asked for
	Kinds  []KindReport // by name
}

// KindReport is the result of one kind.
type KindReport struct {
	Kind        string
	Matched     int
	Total       int
	Differences []Difference // the first ones
}

// Difference is a line on which Ballast decides otherwise than Pulsar.
type Difference struct {
	File     string // "" when read from a stream
	Line     int    // 1-based
	Seed     int64
	Case     int64
	Scenario string
	Diff     string // lines that begin with "-" are Pulsar's, with "+" Ballast's
}

// OK says whether every line matched.
func (r Report) OK() bool {
	for _, k := range r.Kinds {
		if k.Matched != k.Total {
			return false
		}
	}
	return true
}

// String is a table of the kinds, each followed by its first differences.
func (r Report) String() string {
	var b strings.Builder
	for _, k := range r.Kinds {
		fmt.Fprintf(&b, "%-32s %6d/%d\n", k.Kind, k.Matched, k.Total)
		for _, d := range k.Differences {
			fmt.Fprintf(&b, "  %s line %d (seed %d, case %d, %s):\n", d.File, d.Line, d.Seed, d.Case, d.Scenario)
			for line := range strings.Lines(strings.TrimRight(d.Diff, "\n") + "\n") {
				b.WriteString("    " + line)
			}
		}
	}
	return b.String()
}

// Run checks every line of one vector file, plain or gzip-compressed, against the given Pulsar version ("" = Pulsar4).
// Lines of a kind without a check are not counted and make an error that wraps ErrUnknownKind, next to the report of the
// others. A line that is not a vector ends the run with an error.
func Run(r io.Reader, pulsar string) (Report, error) {
	c, err := newCollector(pulsar)
	if err != nil {
		return Report{}, err
	}
	err = c.read(r, "")
	return c.report(), errors.Join(err, unknownKinds(c.unknown, c.checks))
}

// RunFiles is Run over several files. A file that cannot be read does not keep the others from being checked.
func RunFiles(files []string, pulsar string) (Report, error) {
	c, err := newCollector(pulsar)
	if err != nil {
		return Report{}, err
	}
	var errs []error
	for _, name := range files {
		if err := c.readFile(name); err != nil {
			errs = append(errs, err)
		}
	}
	return c.report(), errors.Join(append(errs, unknownKinds(c.unknown, c.checks))...)
}

// collector gathers results over files.
type collector struct {
	pulsar  string
	checks  map[string]Check
	kinds   map[string]*KindReport
	unknown map[string]int
}

func newCollector(pulsar string) (*collector, error) {
	pulsar, err := checkVersion(pulsar)
	if err != nil {
		return nil, err
	}
	return &collector{pulsar: pulsar, checks: Kinds(), kinds: make(map[string]*KindReport), unknown: make(map[string]int)}, nil
}

func (c *collector) readFile(name string) (err error) {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("conformance: %w", err)
	}
	defer f.Close() // opened for reading: nothing can be lost
	return c.read(f, name)
}

func (c *collector) read(r io.Reader, file string) error {
	in, err := decompress(r)
	if err != nil {
		return fmt.Errorf("conformance: %s: %w", file, err)
	}
	sc := bufio.NewScanner(in)
	sc.Buffer(make([]byte, 64<<10), maxLine)
	for n := 1; sc.Scan(); n++ {
		if len(bytes.TrimSpace(sc.Bytes())) == 0 {
			continue
		}
		var l Line
		if err := json.Unmarshal(sc.Bytes(), &l); err != nil {
			return fmt.Errorf("conformance: %s line %d is not a vector: %w", file, n, err)
		}
		if l.Kind == "" {
			return fmt.Errorf("conformance: %s line %d has no kind", file, n)
		}
		c.check(l, file, n)
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("conformance: %s: %w", file, err)
	}
	return nil
}

// decompress looks at the first two bytes, so that a file's name does not matter.
func decompress(r io.Reader) (io.Reader, error) {
	br := bufio.NewReader(r)
	magic, err := br.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		return gzip.NewReader(br)
	}
	return br, nil
}

func (c *collector) check(l Line, file string, n int) {
	check, ok := c.checks[l.Kind]
	if !ok {
		c.unknown[l.Kind]++
		return
	}
	k := c.kinds[l.Kind]
	if k == nil {
		k = &KindReport{Kind: l.Kind}
		c.kinds[l.Kind] = k
	}
	k.Total++
	diff := guarded(check, l, c.pulsar)
	if diff == "" {
		k.Matched++
		return
	}
	if len(k.Differences) < maxDifferences {
		k.Differences = append(k.Differences,
			Difference{File: file, Line: n, Seed: l.Seed, Case: l.Case, Scenario: l.Scenario, Diff: diff})
	}
}

// guarded turns a panic into a difference: a decision that panics is a wrong one, and the other lines still count.
func guarded(check Check, l Line, pulsar string) (diff string) {
	defer func() {
		if p := recover(); p != nil {
			diff = fmt.Sprintf("panic: %v", p)
		}
	}()
	return check(l, pulsar)
}

func (c *collector) report() Report {
	r := Report{Pulsar: c.pulsar}
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		r.Kinds = append(r.Kinds, *c.kinds[kind])
	}
	return r
}
