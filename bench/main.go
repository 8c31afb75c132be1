// Command bench times decisions of Ballast beside Pulsar's own classes: the same synthetic cluster on both sides
// (internal/benchstate), one decision at a time, first in a fresh JVM, then here. Before anything is timed both must have
// decided the same, and again after it; a difference ends the run with status 1. It prints a Markdown table.
//
// It needs a JDK 17 and Maven, which fetches the pulsar-broker artifact; the Java side is in bench/pulsar.
//
// Both sides are measured alike: a warm-up, then rounds of as many calls as fill the time of a round; median and least of
// the rounds. Both begin with a heap of the same size (a Go program would start with 4 MiB and collect garbage all the
// time). The CPU time of the JVM is that of the deciding thread alone, without compiler and garbage collector; that of
// Ballast is of the whole process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options say what is run and how.
type options struct {
	method  method
	sizes   []size
	only    string
	check   bool
	readme  string
	project string
	java    string
	maven   string
}

// method is how both sides are measured.
type method struct {
	seed   uint64
	warm   time.Duration // CPU time before the first round
	rounds int           // 0: decide once, time nothing
	round  time.Duration // CPU time that the calls of a round should take
	heap   uint64        // MiB to begin with; 0: as the runtimes like it
}

type size struct{ brokers, bundles int }

func (s size) String() string { return fmt.Sprintf("%d/%d", s.brokers, s.bundles) }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out, progress io.Writer) error {
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	if o.readme != "" { // before minutes are spent
		if _, err := withTable(o.readme, ""); err != nil {
			return err
		}
	}
	jvm, err := build(ctx, o)
	if err != nil {
		return err
	}
	if o.check {
		return check(ctx, o, jvm, out)
	}
	r, err := measureAll(ctx, o, jvm, progress)
	if err != nil {
		return err
	}
	table := r.markdown()
	if _, err := io.WriteString(out, table); err != nil {
		return err
	}
	if o.readme == "" {
		return nil
	}
	return writeBetween(o.readme, table)
}

func parse(args []string, usage io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(usage)
	sizes := flags.String("sizes", "10/1000,100/10000,1000/100000", "brokers/bundles of the clusters")
	flags.StringVar(&o.only, "only", "", "only decisions whose name contains this")
	flags.BoolVar(&o.check, "check", false, "compare the decisions, one JSON line each, and time nothing")
	flags.StringVar(&o.readme, "readme", "", "write the table into this file, too, between its two marker comments")
	flags.StringVar(&o.project, "pulsar", "bench/pulsar", "folder of the Java side")
	flags.StringVar(&o.java, "java", "java", "the JVM; JAVA_OPTS is passed on")
	flags.StringVar(&o.maven, "mvn", "mvn", "Maven")
	flags.Uint64Var(&o.method.seed, "seed", 42, "seed of the clusters")
	flags.DurationVar(&o.method.warm, "warm", 3*time.Second, "warm-up, in CPU time")
	flags.IntVar(&o.method.rounds, "rounds", 30, "rounds")
	flags.DurationVar(&o.method.round, "round", 20*time.Millisecond, "what the calls of a round should take")
	flags.Uint64Var(&o.method.heap, "heap", 512, "heap of both sides to begin with, in MiB; 0: the defaults of the runtimes")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q: everything is set by flags", flags.Arg(0))
	}
	if o.method.rounds < 1 {
		return o, fmt.Errorf("-rounds=%d: at least 1 is needed", o.method.rounds)
	}
	if o.method.heap > 1<<16 {
		return o, fmt.Errorf("-heap=%d: that many MiB are not to be had", o.method.heap)
	}
	if o.method.round < time.Millisecond || o.method.warm < 0 {
		return o, fmt.Errorf("-round=%v -warm=%v: a round takes at least 1ms, a warm-up is not negative", o.method.round, o.method.warm)
	}
	var err error
	o.sizes, err = parseSizes(*sizes)
	return o, err
}

func parseSizes(s string) ([]size, error) {
	var sizes []size
	for one := range strings.SplitSeq(s, ",") {
		brokers, bundles, _ := strings.Cut(one, "/")
		b, err := strconv.Atoi(brokers)
		n, err2 := strconv.Atoi(bundles)
		if err != nil || err2 != nil || b < 1 || n < b || n > 10_000_000 {
			return nil, fmt.Errorf("-sizes: %q is not brokers/bundles, as 10/1000, with a bundle or more for each broker", one)
		}
		sizes = append(sizes, size{b, n})
	}
	return sizes, nil
}

// cases are the decisions that are wanted, in the order of the table.
func (o *options) cases() ([]benchCase, error) {
	var out []benchCase
	for i := range kinds {
		if !strings.Contains(kinds[i].label(), o.only) {
			continue
		}
		for _, s := range o.sizes {
			out = append(out, benchCase{&kinds[i], s})
		}
	}
	if len(out) == 0 {
		var names []string
		for i := range kinds {
			names = append(names, kinds[i].label())
		}
		return nil, fmt.Errorf("-only=%q matches none of: %s", o.only, strings.Join(names, "; "))
	}
	return out, nil
}

// build compiles the Java side and returns how to start it.
func build(ctx context.Context, o options) (*pulsar, error) {
	if _, err := os.Stat(o.project + "/pom.xml"); err != nil {
		return nil, fmt.Errorf("the Java side is not there (run from the root of the project, or use -pulsar): %w", err)
	}
	mvn := exec.CommandContext(ctx, o.maven, "-q", "-B", "-f", o.project+"/pom.xml", "compile",
		"dependency:build-classpath", "-Dmdep.outputFile=target/classpath.txt")
	if out, err := mvn.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w (a JDK 17 and Maven are needed)\n%s", mvn, err, out)
	}
	jars, err := os.ReadFile(o.project + "/target/classpath.txt")
	if err != nil {
		return nil, fmt.Errorf("class path of the Java side: %w", err)
	}
	var start []string
	if o.method.heap > 0 {
		start = append(start, fmt.Sprintf("-Xms%dm", o.method.heap))
	}
	start = append(append(start, strings.Fields(os.Getenv("JAVA_OPTS"))...), "-cp",
		o.project+"/target/classes"+string(os.PathListSeparator)+strings.TrimSpace(string(jars)), "ballast.bench.PulsarBench")
	return &pulsar{start: func(ctx context.Context, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, o.java, append(start[:len(start):len(start)], args...)...)
	}}, nil
}
