package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// report is a finished run.
type report struct {
	rows         []row
	method       method
	machine      machine
	java, pulsar string // versions
	day          time.Time
}

// machine is the kind of machine that was measured on.
type machine struct {
	cpu    string
	cores  int
	system string
	goes   string // Go version
}

func thisMachine() machine {
	return machine{cpuModel(), runtime.NumCPU(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version()}
}

// cpuModel is what the system calls its CPU, else the architecture.
func cpuModel() string {
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	if out, err := exec.Command("sysctl", "-n", "machdep.cpu.brand_string").Output(); err == nil {
		return strings.TrimSpace(string(out))
	}
	return runtime.GOARCH
}

// faster is how many times faster Ballast was: by the medians of wall and of CPU time, and by the least wall times.
func (r *row) faster() (wall, cpu, least float64) {
	return r.pulsar.WallMedian / r.ballast.WallMedian, r.pulsar.CPUMedian / r.ballast.CPUMedian, r.pulsar.WallMin / r.ballast.WallMin
}

// missed is what is not as wanted, "" if all is.
func (r *row) missed() string {
	wall, cpu, _ := r.faster()
	switch {
	case !(min(wall, cpu) >= r.goal()):
		return fmt.Sprintf("%s is %s times faster, wanted are %g", r.benchCase, times(min(wall, cpu)), r.goal())
	case r.placement && r.ballast.Allocs > 0:
		return fmt.Sprintf("%s allocates %d times, wanted is 0", r.benchCase, r.ballast.Allocs)
	}
	return ""
}

// markdown is the table with what is needed to read it.
func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s on %s, %d cores, %s, with %s, Java %s and the classes of Pulsar %s. ", r.day.Format(time.DateOnly),
		r.machine.cpu, r.machine.cores, r.machine.system, r.machine.goes, r.java, r.pulsar)
	fmt.Fprintf(&b, "Median time per call over %d rounds of about %v after %v of warm-up, both sides on the same cluster (seed %d), "+
		"one after the other, a JVM for each line; both decided the same before and after. ", r.method.rounds, r.method.round, r.method.warm, r.method.seed)
	if r.method.heap > 0 {
		fmt.Fprintf(&b, "Both start with a heap of %d MiB. ", r.method.heap)
	}
	b.WriteString("CPU time is that of the deciding thread for Pulsar, of the whole process for Ballast. " +
		"Pulsar's logging is off; what Ballast decides from is a snapshot that was taken before.\n\n")
	b.WriteString("| decision | brokers / bundles | Pulsar | CPU | Ballast | CPU | allocs | times faster | by CPU | by least | wanted |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	var missed []string
	for i := range r.rows {
		x := &r.rows[i]
		wall, cpu, least := x.faster()
		goal := fmt.Sprintf("%g", x.goal())
		if m := x.missed(); m != "" {
			missed = append(missed, m)
			goal += ", missed"
		}
		fmt.Fprintf(&b, "| %s | %s / %s | %s | %s | %s | %s | %d | **%s** | %s | %s | %s |\n", x.label(),
			thousands(x.size.brokers), thousands(x.size.bundles), perCall(x.pulsar.WallMedian), perCall(x.pulsar.CPUMedian),
			perCall(x.ballast.WallMedian), perCall(x.ballast.CPUMedian), x.ballast.Allocs, times(wall), times(cpu), times(least), goal)
	}
	for _, m := range missed {
		fmt.Fprintf(&b, "\nMissed: %s.\n", m)
	}
	return b.String()
}

// perCall is a time with three digits and its unit.
func perCall(ns float64) string {
	unit := "ns"
	for _, u := range []string{"µs", "ms", "s"} {
		if ns < 999.5 {
			break
		}
		ns, unit = ns/1000, u
	}
	return digits(ns) + " " + unit
}

// times is a ratio with three digits.
func times(x float64) string {
	if x >= 999.5 {
		return thousands(int(x + 0.5))
	}
	return digits(x)
}

func digits(x float64) string {
	switch {
	case x < 9.995:
		return fmt.Sprintf("%.2f", x)
	case x < 99.95:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// The table stands between these lines of a document.
const (
	begin = "<!-- bench-vs-pulsar: begin -->"
	end   = "<!-- bench-vs-pulsar: end -->"
)

// writeBetween replaces what stands between the markers of a document.
func writeBetween(path, text string) error {
	document, err := withTable(path, text)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
		return fmt.Errorf("the document for the table: %w", err)
	}
	return nil
}

// withTable is a document with another text between its markers.
func withTable(path, text string) (string, error) {
	old, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("the document for the table: %w", err)
	}
	document, err := between(string(old), text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return document, nil
}

func between(document, text string) (string, error) {
	for _, marker := range []string{begin, end} {
		if n := strings.Count(document, marker); n != 1 {
			return "", fmt.Errorf("the marker %q is there %d times, it must be once", marker, n)
		}
	}
	before, rest, _ := strings.Cut(document, begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("the marker %q must come before %q", begin, end)
	}
	return before + begin + "\n" + text + end + after, nil
}
