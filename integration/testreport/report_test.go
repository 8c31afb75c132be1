package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
)

// Each file in testdata is a dialogue: events as `go test -json` prints them, then what is shown, the counts and the
// document. "merge version=V commit=C date=D" takes events into the document, "tidy have=(pkg.Test...)" drops the tests that
// are not named.
func TestReport(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var r *results
		d := &verification{}
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "read":
				var out bytes.Buffer
				var err error
				if r, err = read(strings.NewReader(td.Input), &out); err != nil {
					t.Fatal(err)
				}
				return out.String()
			case "counts":
				return r.counts().String()
			case "merge":
				return mergeStep(t, d, td)
			case "tidy":
				var have []string
				td.ScanArgs(t, "have", &have)
				d.tidy(func(pkg, test string) bool {
					return strings.Contains(" "+strings.Join(have, " ")+" ", " "+pkg+"."+test+" ")
				})
				return body(d)
			case "document":
				return d.markdown()
			case "json":
				text, err := d.json()
				if err != nil {
					t.Fatal(err)
				}
				return string(text)
			}
			t.Fatalf("unknown command %s", td.Cmd)
			return ""
		})
	})
}

// mergeStep shows the tables of the document after a merge, or the error.
func mergeStep(t *testing.T, d *verification, td *datadriven.TestData) string {
	var version, date string
	run := run{machine: "go1.26 linux/amd64, 2 processors"}
	td.ScanArgs(t, "version", &version)
	td.MaybeScanArgs(t, "commit", &run.commit)
	td.ScanArgs(t, "date", &date)
	var err error
	if run.date, err = parseDate(date); err != nil {
		return "date " + err.Error()
	}
	r, err := read(strings.NewReader(td.Input), new(bytes.Buffer))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.merge(version, r, run); err != nil {
		return err.Error()
	}
	return body(d)
}

// body is the document without its head.
func body(d *verification) string {
	if _, tables, found := strings.Cut(d.markdown(), "\n## "); found {
		return "## " + tables
	}
	return "no version"
}

const (
	passed = `{"Time":"2026-11-30T02:40:31.5Z","Action":"pass","Package":"example.org/ballast/p","Test":"TestA","Elapsed":1}` + "\n"
	failed = `{"Time":"2026-12-01T02:40:31.5Z","Action":"fail","Package":"example.org/ballast/p","Test":"TestB","Elapsed":2}` + "\n"
)

func TestSaveAndSum(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one.json"), filepath.Join(dir, "two.json")
	var out bytes.Buffer
	if ok, err := (options{save: one}).do(strings.NewReader(passed), &out); !ok || err != nil {
		t.Fatalf("a run that passes: %v, %v", ok, err)
	}
	if ok, err := (options{save: two}).do(strings.NewReader(failed), &out); ok || err != nil {
		t.Fatalf("a run that fails: %v, %v", ok, err)
	}
	if saved, err := os.ReadFile(one); err != nil || string(saved) != passed {
		t.Errorf("saved %q, %v", saved, err)
	}
	out.Reset()
	if ok, err := (options{files: []string{one, one, two}}).do(nil, &out); ok || err != nil {
		t.Fatalf("the sum: %v, %v", ok, err)
	}
	if got := out.String(); got != "failed: example.org/ballast/p TestB\n2 passed, 1 failed\n" {
		t.Errorf("the sum is %q", got)
	}
	if _, err := (options{files: []string{filepath.Join(dir, "none.json")}}).do(nil, &out); err == nil {
		t.Error("a file that is not there is no error")
	}
}

// What failed runs again, and counts as it then ended; both are told.
func TestAgain(t *testing.T) {
	dir := t.TempDir()
	line := func(action, test, output string) string {
		return fmt.Sprintf("{\"Action\":%q,\"Package\":\"p\",\"Test\":%q,\"Output\":%q}\n", action, test, output)
	}
	put := func(name string, lines ...string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	does := func(want string, wantOK bool, o options) {
		t.Helper()
		var out bytes.Buffer
		if ok, err := o.do(nil, &out); ok != wantOK || err != nil || out.String() != want {
			t.Errorf("%v: %v, %v\n%s\nwant %v\n%s", o.files, ok, err, out.String(), wantOK, want)
		}
	}
	why := line("output", "TestB", "    b_test.go:7: got 1, want 2\n")
	run := put("run", line("pass", "TestA", ""), why, line("pass", "TestB/x", ""), line("fail", "TestB/y", ""), line("fail", "TestB", ""), line("fail", "TestC", ""), line("fail", "", ""))
	does("^(TestB|TestC)$\n", true, options{again: true, files: []string{run}})

	well := put("well", line("pass", "TestB/x", ""), line("pass", "TestB/y", ""), line("pass", "TestB", ""), line("pass", "TestC", ""), line("pass", "", ""))
	does("unsteady: p TestB failed, and passed when it ran again\n    b_test.go:7: got 1, want 2\n"+
		"unsteady: p TestB/y failed, and passed when it ran again\nunsteady: p TestC failed, and passed when it ran again\n5 passed, 0 failed\n", true, options{files: []string{run + "+" + well}})

	worse := put("worse", line("fail", "TestB/x", ""), line("pass", "TestB/y", ""), why, line("fail", "TestB", ""), line("pass", "TestC", ""), line("fail", "", ""))
	does("unsteady: p TestB/y failed, and passed when it ran again\nunsteady: p TestC failed, and passed when it ran again\n"+
		"failed: p TestB\n    b_test.go:7: got 1, want 2\nfailed: p TestB/x\n3 passed, 2 failed\n", false, options{files: []string{run + "+" + worse}})

	// The repetition that died leaves the failure; a run of which nothing is known in the end is not repeated.
	dead := put("dead", line("run", "TestB", ""), line("fail", "", ""))
	does("failed: p TestB\nfailed: p TestB/y\nfailed: p TestC\n2 passed, 3 failed\n", false, options{files: []string{run + "+" + dead}})
	does("", false, options{again: true, files: []string{dead}})
	does("", false, options{again: true, files: []string{well}})
	does("", false, options{again: true, files: []string{put("builds-not", line("fail", "", ""))}})
	many := put("many", line("fail", "TestA", ""), line("fail", "TestB", ""), line("fail", "TestC", ""), line("fail", "TestD", ""), line("fail", "TestE", ""))
	does("", false, options{again: true, files: []string{many}})
}

// TestMergeFiles: saved runs become the document; the time is that of the run, tests that the source lost are dropped.
func TestMergeFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	put("go.mod", "module example.org/ballast\n")
	source := put("p/p_test.go", "package p\n\nfunc TestA() {}\n\nfunc TestB() {}\n")
	one, two := put("one.json", passed), put("two.json", failed)
	o := options{root: dir, document: filepath.Join(dir, "v"), run: run{commit: "c1", machine: "m"}, merge: []string{"4.2.4=" + one, "5.0.1=" + two}}
	var out bytes.Buffer
	if ok, err := o.do(nil, &out); ok || err != nil || out.String() != "1 passed, 1 failed\n" {
		t.Fatalf("merging: %v, %v, %q", ok, err, out.String())
	}
	document := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "v.md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, want := range []string{
		"## Pulsar 4.2.4\n\n1 passed, 0 failed. Ran on m.", "| p: A | passed | 1.0 |  | 2026-11-30 02:40 | c1 |",
		"## Pulsar 5.0.1\n\n0 passed, 1 failed. Ran on m.", "| p: B | **failed** | 2.0 |  | 2026-12-01 02:40 | c1 |",
	} {
		if !strings.Contains(document(), want) {
			t.Errorf("the document has no %q:\n%s", want, document())
		}
	}
	if err := os.WriteFile(source, []byte("package p\n\nfunc TestA() {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if ok, err := (options{root: dir, document: o.document, render: true}).do(nil, &out); !ok || err != nil {
		t.Fatalf("rendering: %v, %v", ok, err)
	}
	if text := document(); strings.Contains(text, "5.0.1") || !strings.Contains(text, "p: A") {
		t.Errorf("with TestB gone:\n%s", text)
	}
	for _, bad := range []string{"4.2.4", "=" + one, "4.2.4=", "4 2=" + one, "4.2.4=" + filepath.Join(dir, "none.json")} {
		o.merge = []string{bad}
		if _, err := o.do(nil, &out); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(bad, "4.2.4=")) {
			t.Errorf("-merge %s: %v", bad, err)
		}
	}
}

// TestDocument holds docs/verification.md to docs/verification.json, and both to the tests that there are.
func TestDocument(t *testing.T) {
	const remedy = "; `go run ./integration/testreport -render` writes it anew"
	d, err := load("../../docs/verification.json")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/verification.md")
	if os.IsNotExist(err) && len(d.Versions) == 0 {
		t.Skip("nothing was verified yet")
	}
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != d.markdown() {
		t.Error("docs/verification.md is not what docs/verification.json says" + remedy)
	}
	source := newSource("../..")
	for _, v := range d.Versions {
		for _, r := range v.Tests {
			if !source.has(r.Package, r.top()) {
				t.Errorf("docs/verification.md has %s of %s on %s: the test is gone"+remedy, r.Test, r.Package, v.Version)
			}
		}
	}
}

func TestLongOutputIsCut(t *testing.T) {
	wordy := &test{output: []string{"    a_test.go:1: " + strings.Repeat("ü", 300)}}
	if got := wordy.reason(); got != strings.Repeat("ü", 200)+"..." {
		t.Errorf("reason of a test that said much: %q", got)
	}
	y := &test{}
	for range 1000 {
		y.output = append(y.output, "line\n")
	}
	if got := strings.Count(y.said(), "\n"); got != 201 || !strings.Contains(y.said(), "... 800 lines left out ...") {
		t.Errorf("%d lines of 1000 are shown", got)
	}
}

// TestMergeSubtests: a run of some subtests replaces these, and leaves the others of their test.
func TestMergeSubtests(t *testing.T) {
	line := func(at, what, test string) string {
		return fmt.Sprintf(`{"Time":"2026-11-30T%s:00Z","Action":%q,"Package":"p","Test":%q,"Elapsed":1}`+"\n", at, what, test)
	}
	var d verification
	take := func(at string, lines ...string) {
		t.Helper()
		r, err := read(strings.NewReader(strings.Join(lines, "")), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		date, err := parseDate("2026-11-30T" + at + "Z")
		if err != nil {
			t.Fatal(err)
		}
		if err := d.merge("4.2.4", r, run{commit: at, machine: "m", date: date}); err != nil {
			t.Fatal(err)
		}
	}
	take("01:00", line("01:00", "pass", "TestA/x"), line("01:00", "pass", "TestA/y"), line("01:00", "pass", "TestA"))
	take("02:00", line("02:00", "fail", "TestA/y"), line("02:00", "pass", "TestA/z"))
	got := map[string]string{}
	for _, r := range d.version("4.2.4").Tests {
		got[r.Test] += r.Result + " " + r.Commit
	}
	want := map[string]string{"TestA": "pass 01:00", "TestA/x": "pass 01:00", "TestA/y": "fail 02:00", "TestA/z": "pass 02:00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	take("03:00", line("03:00", "pass", "TestA/x"), line("03:00", "pass", "TestA"))
	if n := len(d.version("4.2.4").Tests); n != 2 {
		t.Errorf("after a run of the whole test there are %d rows, want 2", n)
	}
}
