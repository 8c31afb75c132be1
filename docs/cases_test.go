package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reported are the cases that the page must have.
var reported = []string{
	"A1", "A2", "A3", "A4", "A5", "A7", "A9", "A10", "A11", "A12", "A14", "A15", "A16", "A17", "A18", "A19", "A20", "A22", "A23", "A24", "A25",
	"B1", "B3", "B4", "B6", "B7", "B8", "B9", "B10", "B11", "B12",
	"C1", "C3", "C5", "C6", "C7",
	"D1", "D2", "D4", "D5",
	"E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8",
	"F1", "F2", "F3", "F4", "F5", "F6",
	"7", "122", "143", "169", "181", "192", "217", "220", "294", "307", "354", "358", "364", "378", "380", // PIPs
}

// TestCases: the page has every case once, each with tests, or why there are none; and every test and file that it names exists.
func TestCases(t *testing.T) {
	text := read(t, "cases.md")
	all := append(rows(text, "| case |"), rows(text, "| PIP |")...)
	var got []string
	anchor := regexp.MustCompile(`^<a id="([a-z0-9-]+)"></a>(\w+)$`)
	tests := make(map[string][]string)
	for _, row := range all {
		m := anchor.FindStringSubmatch(row[0])
		if m == nil || len(row) != 3 {
			t.Errorf("row %q is not an anchor with its case, what was seen, and what covers it", row)
			continue
		}
		id := m[2]
		got = append(got, id)
		if want := strings.ToLower(id); m[1] != want && m[1] != "pip-"+want {
			t.Errorf("the anchor of %s is %q", id, m[1])
		}
		if row[1] == "" {
			t.Errorf("%s does not say what was seen", id)
		}
		n := checkRefs(t, id, row[2], tests)
		if n == 0 && !strings.HasPrefix(row[2], "not covered yet: ") && !strings.HasPrefix(row[2], "does not apply: ") {
			t.Errorf("%s names no test: then it begins with \"not covered yet: \" or \"does not apply: \"", id)
		}
	}
	if diff := difference(reported, got); diff != "" {
		t.Error(diff)
	}
}

// difference is what is missing, twice, or too much.
func difference(want, got []string) string {
	var out []string
	for _, x := range want {
		if n := count(got, x); n != 1 {
			out = append(out, fmt.Sprintf("%s is there %d times", x, n))
		}
	}
	for _, x := range got {
		if !slices.Contains(want, x) {
			out = append(out, x+" is none of the reported cases")
		}
	}
	return strings.Join(out, "; ")
}

func count(list []string, x string) int {
	n := 0
	for _, y := range list {
		if y == x {
			n++
		}
	}
	return n
}

var (
	reference = regexp.MustCompile("`([^`]+)`")
	function  = regexp.MustCompile(`^([a-z0-9/]+)\.((?:Test|Fuzz)\w+)$`)
)

// checkRefs checks the tests and files that a cell names and returns how many there are.
func checkRefs(t *testing.T, id, cell string, tests map[string][]string) int {
	t.Helper()
	n := 0
	for _, m := range reference.FindAllStringSubmatch(cell, -1) {
		f := function.FindStringSubmatch(m[1])
		switch {
		case f != nil:
			if _, seen := tests[f[1]]; !seen {
				tests[f[1]] = testsOf(t, f[1])
			}
			if !slices.Contains(tests[f[1]], f[2]) {
				t.Errorf("%s: package %s has no test %s", id, f[1], f[2])
			}
			n++
		case strings.Contains(m[1], "/testdata/"):
			info, err := os.Stat(filepath.Join("..", m[1]))
			if err != nil || info.IsDir() || info.Size() == 0 {
				t.Errorf("%s: %s is no file with something in it: %v", id, m[1], err)
			}
			n++
		default:
			t.Errorf("%s: %q is neither package.Test nor a file in testdata", id, m[1])
		}
	}
	return n
}

// testsOf are the tests and fuzz targets of a package, by its folder.
func testsOf(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, file := range files {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(read(t, file), -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// TestDifference: a case that is missing, twice or unknown is noticed.
func TestDifference(t *testing.T) {
	got := difference([]string{"A1", "A2", "A3"}, []string{"A1", "A3", "A3", "X"})
	if want := "A2 is there 0 times; A3 is there 2 times; X is none of the reported cases"; got != want {
		t.Errorf("difference is %q, want %q", got, want)
	}
}
