package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMarkdown(t *testing.T) {
	big, small := size{1000, 100_000}, size{10, 1000}
	r := report{
		method:  method{seed: 42, warm: 3 * time.Second, rounds: 30, round: 20 * time.Millisecond, heap: 512},
		machine: machine{"Some CPU", 2, "linux/amd64", "go1.26"},
		java:    "17.0.1", pulsar: "4.2.4", day: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC),
		rows: []row{
			{benchCase{&kinds[0], small}, timed{WallMedian: 1500, CPUMedian: 1400, WallMin: 1200}, timed{WallMedian: 500, CPUMedian: 500, WallMin: 480}},
			{benchCase{&kinds[1], big}, timed{WallMedian: 900_000, CPUMedian: 800_000, WallMin: 850_000}, timed{WallMedian: 9000, CPUMedian: 9000, WallMin: 8888, Allocs: 2}},
			{benchCase{&kinds[3], small}, timed{WallMedian: 900, CPUMedian: 800, WallMin: 999.4}, timed{WallMedian: 850, CPUMedian: 900, WallMin: 100}},
			{benchCase{&kinds[4], big}, timed{WallMedian: 2.5e9, CPUMedian: 2.4e9, WallMin: 2e9}, timed{WallMedian: 2e6, CPUMedian: 2.1e6, WallMin: 1.9e6, Allocs: 11}},
		},
	}
	want, err := os.ReadFile("testdata/table.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), r.markdown()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNotANumberIsMissed holds it for times of zero.
func TestNotANumberIsMissed(t *testing.T) {
	r := row{benchCase: benchCase{&kinds[0], size{1, 1}}}
	if r.missed() == "" {
		t.Error("0/0 times faster is not missed")
	}
}

func TestNumbers(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0.00 ns", 12.34: "12.3 ns", 999.4: "999 ns", 999.5: "1.00 µs", 1234: "1.23 µs", 9.996e6: "10.0 ms", 99.96e6: "100 ms", 1.5e9: "1.50 s", 7.2e12: "7200 s",
	} {
		if got := perCall(ns); got != want {
			t.Errorf("%v ns: %q, want %q", ns, got, want)
		}
	}
	for x, want := range map[float64]string{0.999: "1.00", 12.34: "12.3", 999.4: "999", 1000.5: "1,001", 1234567: "1,234,567"} {
		if got := times(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

func TestBetween(t *testing.T) {
	for _, tc := range []struct{ document, want, err string }{
		{"a\n" + begin + "\nold\n" + end + "\nz\n", "a\n" + begin + "\nnew\n" + end + "\nz\n", ""},
		{begin + end, begin + "\nnew\n" + end, ""},
		{"nothing", "", "is there 0 times"},
		{begin, "", end + `" is there 0 times`},
		{begin + begin + end, "", "is there 2 times"},
		{end + begin, "", "must come before"},
	} {
		got, err := between(tc.document, "new\n")
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: %q, %v; want %q, %q", tc.document, got, err, tc.want, tc.err)
		}
	}
}

func TestWriteBetween(t *testing.T) {
	path := filepath.Join(t.TempDir(), "README.md")
	if err := writeBetween(path, "x"); err == nil || !strings.Contains(err.Error(), "the document for the table") {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(path, []byte("text\n"+begin+"\n"+end+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := writeBetween(path, "table\n"); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != "text\n"+begin+"\ntable\n"+end+"\n" {
		t.Errorf("%q", got)
	}
}

func TestThisMachine(t *testing.T) {
	if m := thisMachine(); m.cpu == "" || m.cores < 1 || !strings.Contains(m.system, "/") || !strings.HasPrefix(m.goes, "go") {
		t.Errorf("%+v", m)
	}
}
