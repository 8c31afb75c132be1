package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verification is docs/verification.json: the latest result of every test on every version of Pulsar, each with the source
// and the time that it is of. Versions ascend; tests are in the order of their packages and names, subtests behind their test
// in the order in which they ran.
type verification struct {
	Versions []*verified `json:"versions"`
}

type verified struct {
	Version string `json:"version"`
	Tests   []row  `json:"tests"`
}

// row is the result of one test or subtest; of a package that failed as a whole where the test is "".
type row struct {
	Package string      `json:"package"`
	Test    string      `json:"test,omitempty"`
	Result  string      `json:"result"` // pass, fail, skip
	Seconds float64     `json:"seconds"`
	Figures []rowFigure `json:"figures,omitempty"`
	Reason  string      `json:"reason,omitempty"` // of a skip
	Commit  string      `json:"commit"`
	Date    string      `json:"date"` // RFC 3339, to the minute
	Machine string      `json:"machine,omitempty"`
}

type rowFigure struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// run is what the rows of one run have in common.
type run struct {
	commit, machine string
	date            time.Time
}

// top is the test that a subtest belongs to.
func (r row) top() string {
	name, _, _ := strings.Cut(r.Test, "/")
	return name
}

// precision is how finely the time of a run is kept.
const precision = "2006-01-02T15:04Z"

func parseDate(s string) (time.Time, error) {
	for _, layout := range []string{precision, time.RFC3339, "2006-01-02 15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, errors.New("it should look like 2026-11-30 or 2026-11-30T02:40Z")
}

var versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`)

// merge takes the results of a run on a version in. A test with all its subtests takes the place of its former result, unless
// that is of a later run; a package's failure is forgotten when the package runs again. Other rows stay.
func (d *verification) merge(version string, r *results, run run) error {
	if !versionForm.MatchString(version) {
		return fmt.Errorf("version %q: it should be like 4.2.4", version)
	}
	if run.commit == "" {
		return errors.New("the commit that was tested is not known; give -commit")
	}
	type key struct{ pkg, top string }
	of := func(r row) key { return key{r.Package, r.top()} }
	v, rows, date := d.version(version), r.rows(run), run.date.UTC().Format(precision)
	type exact struct{ pkg, test string }
	ran, again, packages, later := make(map[key]bool), make(map[exact]bool), make(map[string]bool), make(map[key]bool)
	for _, row := range rows {
		again[exact{row.Package, row.Test}] = true
		if row.Test == row.top() {
			ran[of(row)] = true // with only subtests in the run, the others stay as they were
		}
	}
	for _, t := range r.tests {
		packages[t.pkg] = true
	}
	for _, old := range v.Tests {
		if old.Date > date {
			later[of(old)] = true
			later[key{old.Package, ""}] = true // its package worked later
		}
	}
	v.Tests = slices.DeleteFunc(v.Tests, func(old row) bool {
		return !later[of(old)] && (ran[of(old)] || again[exact{old.Package, old.Test}] || old.Test == "" && packages[old.Package])
	})
	for _, row := range rows {
		if !later[of(row)] {
			v.Tests = append(v.Tests, row)
		}
	}
	slices.SortStableFunc(v.Tests, func(a, b row) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.top(), b.top()))
	})
	return nil
}

// version finds a version's results, or a place for them.
func (d *verification) version(version string) *verified {
	i, found := slices.BinarySearchFunc(d.Versions, version, func(v *verified, version string) int { return compareVersions(v.Version, version) })
	if !found {
		d.Versions = slices.Insert(d.Versions, i, &verified{Version: version})
	}
	return d.Versions[i]
}

// compareVersions orders 4.2.4 before 4.10.0: parts that are numbers are compared as such.
func compareVersions(a, b string) int {
	return cmp.Or(slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(a, b string) int {
		x, errX := strconv.Atoi(a)
		y, errY := strconv.Atoi(b)
		if errX == nil && errY == nil {
			return cmp.Compare(x, y)
		}
		return cmp.Compare(a, b)
	}), cmp.Compare(a, b))
}

// tidy drops what the source no longer has. Subtests are known by their test.
func (d *verification) tidy(has func(pkg, test string) bool) {
	for _, v := range d.Versions {
		v.Tests = slices.DeleteFunc(v.Tests, func(r row) bool { return !has(r.Package, r.top()) })
	}
	d.Versions = slices.DeleteFunc(d.Versions, func(v *verified) bool { return len(v.Tests) == 0 })
}

// rows are the results that a document shows: every test, and packages that failed without a test to blame.
func (r *results) rows(run run) []row {
	var rows []row
	for _, t := range r.tests {
		if t.name == "" && (t.outcome != "fail" || r.blamed(t.pkg)) {
			continue
		}
		row := row{Package: t.pkg, Test: t.name, Result: t.outcome, Seconds: t.elapsed,
			Commit: run.commit, Date: run.date.UTC().Format(precision), Machine: run.machine}
		for _, f := range t.figures {
			row.Figures = append(row.Figures, rowFigure{f.name, f.value})
		}
		if t.outcome == "skip" {
			row.Reason = t.reason()
		}
		rows = append(rows, row)
	}
	return rows
}

// load reads a document's results; of one that is not there yet there are none.
func load(path string) (*verification, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &verification{}, nil
	}
	if err != nil {
		return nil, err
	}
	d := &verification{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(d); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// write writes path.json and path.md.
func (d *verification) write(path string) error {
	text, err := d.json()
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path+".json", text, 0o644), os.WriteFile(path+".md", []byte(d.markdown()), 0o644))
}

// json is one line for each test, so that a change of one shows as such.
func (d *verification) json() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("{\"versions\": [")
	for i, v := range d.Versions {
		fmt.Fprintf(&b, "%s\n{\"version\": %q, \"tests\": [", separator(i), v.Version)
		for i, r := range v.Tests {
			line, err := json.Marshal(r)
			if err != nil {
				return nil, fmt.Errorf("the result of %s on %s: %w", r.Test, v.Version, err)
			}
			fmt.Fprintf(&b, "%s\n%s", separator(i), line)
		}
		b.WriteString("\n]}")
	}
	b.WriteString("\n]}\n")
	return b.Bytes(), nil
}

func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// checkedOut is the state of the source; the document itself does not count as a change. It is "" where git does not know.
func checkedOut(root string) string {
	hash, err := exec.Command("git", "-C", root, "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return ""
	}
	changes, err := exec.Command("git", "-C", root, "status", "--porcelain", "--", ".", ":!docs/verification.*").Output()
	if err != nil || len(changes) > 0 {
		return strings.TrimSpace(string(hash)) + " with changes"
	}
	return strings.TrimSpace(string(hash))
}
