package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for the JVM.
func TestMain(m *testing.M) {
	if script := os.Getenv("BENCH_TEST_JVM"); script != "" {
		fmt.Print(script)
		if rc, err := strconv.Atoi(os.Getenv("BENCH_TEST_STATUS")); err == nil && rc != 0 {
			fmt.Fprintln(os.Stderr, "exception in thread main")
			os.Exit(rc)
		}
		if os.Getenv("BENCH_TEST_HANG") != "" {
			select {}
		}
		return
	}
	os.Exit(m.Run())
}

// standIn is a JVM that prints lines.
func standIn(t *testing.T, env []string, lines ...string) *pulsar {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &pulsar{start: func(ctx context.Context, args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(append(os.Environ(), "BENCH_TEST_JVM="+strings.Join(lines, "\n")), env...)
		return cmd
	}}
}

const (
	firstLine = `{"java":"17.0.1","pulsar":"4.2.4","state":"%s","check":{"decided":%d,"digest":"%s"}}`
	timesLine = `{"warmupCalls":9,"perRound":4,"wallMedian":1500.5,"wallMin":1400,"cpuMedian":1300,"cpuMin":1200,"check":{"decided":%d,"digest":"%s"}}`
)

func TestMeasureCase(t *testing.T) {
	c := benchCase{&kinds[3], size{10, 1000}}
	m := method{seed: 42, rounds: 3, round: time.Millisecond}
	s := newSide(c, m.seed)
	s.decide()
	check, err := s.last()
	if err != nil || check.Decided == 0 {
		t.Fatalf("%v, %v", check, err)
	}
	good := fmt.Sprintf(firstLine, s.state, check.Decided, check.Digest)
	times := fmt.Sprintf(timesLine, check.Decided, check.Digest)
	other := strings.Repeat("0", 16)
	for _, tc := range []struct {
		name  string
		lines []string
		env   []string
		err   string // "" = none
	}{
		{"both decide the same", []string{good, times}, nil, ""},
		{"another state", []string{fmt.Sprintf(firstLine, other, check.Decided, check.Digest), times}, nil, "the states differ: Pulsar's has digest " + other},
		{"another decision", []string{fmt.Sprintf(firstLine, s.state, check.Decided, other), times}, nil, "the decisions differ: Pulsar: 9 decided, digest " + other},
		{"another number of decisions", []string{fmt.Sprintf(firstLine, s.state, 1, check.Digest), times}, nil, "the decisions differ: Pulsar: 1 decided"},
		{"a JVM that would go on", []string{fmt.Sprintf(firstLine, s.state, 1, check.Digest), ""}, []string{"BENCH_TEST_HANG=1"}, "the decisions differ"},
		{"another decision at the end", []string{good, fmt.Sprintf(timesLine, check.Decided, other)}, nil, "after all rounds: the decisions differ"},
		{"no output", []string{" "}, nil, "its first line"},
		{"no JSON", []string{"Exception in thread"}, nil, "its first line"},
		{"ended early", []string{good}, []string{"BENCH_TEST_STATUS=3"}, "exception in thread main"},
		{"failed at the end", []string{good, times}, []string{"BENCH_TEST_STATUS=3"}, "exit status 3"},
		{"too much output", []string{good, times, times}, nil, "more output than expected"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, f, err := measureCase(t.Context(), c, m, standIn(t, tc.env, tc.lines...))
			switch {
			case tc.err != "":
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("error %v, want %q in it", err, tc.err)
				}
			case err != nil:
				t.Fatal(err)
			case f.Java != "17.0.1" || r.pulsar.WallMedian != 1500.5 || r.pulsar.CPUMin != 1200 || r.ballast.Check != check:
				t.Fatalf("%+v, %+v", f, r)
			}
		})
	}
}

// TestCheckFails holds that a difference ends a check, too, and what is written when there is none.
func TestCheckFails(t *testing.T) {
	o, err := parse([]string{"-only", "TransferShedder", "-sizes", "10/1000"}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	s := newSide(benchCase{&kinds[3], o.sizes[0]}, 42)
	s.decide()
	d, _ := s.last()
	var out strings.Builder
	if err := check(t.Context(), o, standIn(t, nil, fmt.Sprintf(firstLine, s.state, d.Decided, d.Digest)), &out); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"kind":"TransferShedder","hotEvery":10,"brokers":10,"bundles":1000,"seed":42,"pulsar":"4.2.4","state":"%s","check":{"decided":%d,"digest":"%s"}}`+"\n",
		s.state, d.Decided, d.Digest)
	if out.String() != want {
		t.Errorf("wrote %s, want %s", out.String(), want)
	}
	err = check(t.Context(), o, standIn(t, nil, fmt.Sprintf(firstLine, s.state, 0, d.Digest)), &out)
	if err == nil || !strings.Contains(err.Error(), "the decisions differ") {
		t.Errorf("error %v", err)
	}
}

var sink []byte

func TestMeasure(t *testing.T) {
	calls := 0
	m := method{warm: 2 * time.Millisecond, rounds: 5, round: time.Millisecond}
	r := measure(func() { calls++; sink = make([]byte, 64) }, m)
	if want := int(r.WarmupCalls) + 5*r.PerRound; calls != want {
		t.Errorf("%d calls, want %d", calls, want)
	}
	if r.Allocs != 1 {
		t.Errorf("%d allocations per call, want 1", r.Allocs)
	}
	if !(r.WallMin > 0 && r.WallMin <= r.WallMedian && r.CPUMin <= r.CPUMedian) {
		t.Errorf("%+v", r)
	}
	if r := measure(func() {}, method{rounds: 1, round: time.Millisecond}); r.Allocs != 0 || r.WarmupCalls != 1 || r.PerRound > 2 {
		t.Errorf("without warm-up: %+v", r)
	}
}

// TestHeap holds that garbage is not collected before the heap that was asked for is full.
func TestHeap(t *testing.T) {
	collections := func(mib uint64) uint32 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		measure(func() { sink = make([]byte, 1<<20) }, method{rounds: 32, round: time.Nanosecond, heap: mib})
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	if with, without := collections(64), collections(0); with > 2 || without <= 4 {
		t.Errorf("%d collections with a heap of 64 MiB, %d without; want at most the 2 of the start and more than 4", with, without)
	}
}

func TestArguments(t *testing.T) {
	for args, want := range map[string]string{
		"extra":              `unexpected argument "extra"`,
		"-rounds=0":          "-rounds=0: at least 1",
		"-round=1us":         "a round takes at least 1ms",
		"-heap=99999999":     "that many MiB are not to be had",
		"-warm=-1s":          "a warm-up is not negative",
		"-sizes=10":          `-sizes: "10" is not brokers/bundles`,
		"-sizes=10/5":        "with a bundle or more for each broker",
		"-sizes=0/5":         "is not brokers/bundles",
		"-sizes=a/b":         "is not brokers/bundles",
		"-sizes=1/99999999":  "is not brokers/bundles",
		"-nothing":           "flag provided but not defined",
		"-pulsar=/none/here": "the Java side is not there",
		"-readme=/none/here": "the document for the table",
	} {
		err := command(t.Context(), strings.Fields(args), t.Output(), t.Output())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q in it", args, err, want)
		}
	}
	o, err := parse([]string{"-only", "nothing"}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.cases(); err == nil || !strings.Contains(err.Error(), "LeastResourceUsageWithWeight, no hot brokers; ") {
		t.Errorf("error %v", err)
	}
}

// TestBuild lets scripts stand in for Maven.
func TestBuild(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("pom.xml", "<project/>")
	o := options{method: method{heap: 64}, project: dir, java: "java17", maven: write("broken", "#!/bin/sh\necho no route to the repository\nexit 1\n")}
	if _, err := build(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no route to the repository") {
		t.Fatalf("error %v", err)
	}
	write("target/classpath.txt", "a.jar:b.jar\n")
	o.maven = write("works", "#!/bin/sh\nexit 0\n")
	t.Setenv("JAVA_OPTS", "-Xmx1g -Xint")
	jvm, err := build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	sep := string(os.PathListSeparator)
	want := "java17 -Xms64m -Xmx1g -Xint -cp " + dir + "/target/classes" + sep + "a.jar:b.jar ballast.bench.PulsarBench x 1"
	if got := strings.Join(jvm.start(t.Context(), "x", "1").Args, " "); got != want {
		t.Errorf("starts %s, want %s", got, want)
	}
}
