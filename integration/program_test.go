//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/topics"
	"github.com/ballast-lb/ballast/topics/pulsar"
)

// binary builds the program once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ballast-program-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ballast")
	out, err := exec.Command("go", "build", "-o", path, "../cmd/ballast").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// program is a running ballast.
type program struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // then: how

	mu     sync.Mutex
	stdout bytes.Buffer
	stderr bytes.Buffer
}

// output collects what the program writes; the program may still be writing when it is read.
type output struct {
	p  *program
	to *bytes.Buffer
}

func (o output) Write(b []byte) (int, error) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	return o.to.Write(b)
}

func (p *program) text() (stdout, stderr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String(), p.stderr.String()
}

// environment is this process's without the tests' own variables, which are no settings.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "BALLAST_") })
}

// start starts ballast with arguments against a cluster. It is killed when the test ends, if it still runs.
func start(t *testing.T, c *harness.Cluster, args ...string) *program {
	t.Helper()
	return launch(t, nil, append(args, "--admin-service-url", c.AdminURL(), "--service-url", c.ServiceURL())...)
}

// launch starts ballast with exactly these arguments, and variables beside the environment.
func launch(t *testing.T, env []string, args ...string) *program {
	t.Helper()
	return launched(t, env, nil, args...)
}

// launchAs starts ballast in a group of its own, by which it can be cut off.
func launchAs(t *testing.T, group int, args ...string) *program {
	t.Helper()
	if os.Geteuid() != 0 {
		return launch(t, nil, args...)
	}
	return launched(t, nil, &syscall.SysProcAttr{Credential: &syscall.Credential{Gid: uint32(group), NoSetGroups: true}}, args...)
}

func launched(t *testing.T, env []string, attr *syscall.SysProcAttr, args ...string) *program {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.SysProcAttr = attr
	p.cmd.Env = append(environment(), env...)
	p.cmd.Stdout, p.cmd.Stderr = output{p, &p.stdout}, output{p, &p.stderr}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended already
		<-p.done
		if t.Failed() {
			stdout, stderr := p.text()
			t.Logf("ballast %s\nstdout: %s\nstderr: %s", strings.Join(args, " "), tail(stdout), tail(stderr))
		}
	})
	return p
}

func (p *program) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
}

func tail(s string) string { return s[max(0, len(s)-8000):] }

// stop asks the program to end, as an operator does, and gives its exit code.
func (p *program) stop(t *testing.T) int {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	return p.wait(t)
}

// wait waits for the program's end and gives its exit code.
func (p *program) wait(t *testing.T) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		t.Fatal("the program does not end")
	}
	if exit := (*exec.ExitError)(nil); errors.As(p.err, &exit) {
		return exit.ExitCode()
	} else if p.err != nil {
		t.Fatal(p.err)
	}
	return 0
}

// run runs ballast to its end.
func run(t *testing.T, c *harness.Cluster, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := start(t, c, args...)
	code = p.wait(t)
	stdout, stderr = p.text()
	return stdout, stderr, code
}

// says waits until the program has written a text to its log.
func (p *program) says(t *testing.T, text string, limit time.Duration) {
	t.Helper()
	harness.Eventually(t, limit, "the program says "+text, func(context.Context) error {
		_, stderr := p.text()
		if strings.Contains(stderr, text) {
			return nil
		}
		select {
		case <-p.done:
			t.Fatalf("the program has ended without saying %s: %v; %s", text, p.err, tail(stderr))
		default:
		}
		return fmt.Errorf("it said: %s", tail(stderr))
	})
}

// connect opens the event log of a cluster.
func connect(t *testing.T, c *harness.Cluster) *pulsar.Log {
	t.Helper()
	log, err := pulsar.Open(pulsar.Options{ServiceURL: c.ServiceURL(), AdminURL: c.AdminURL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return log
}

// decisions reads the records of the decision log that are newer than a time.
func decisions(t *testing.T, c *harness.Cluster, since time.Time) []control.Record {
	t.Helper()
	sub, err := connect(t, c).Subscribe(t.Context(), topics.Decisions, topics.SubscribeOptions{From: topics.Earliest, Compacted: true, Existing: true})
	if errors.Is(err, topics.ErrNoTopic) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var out []control.Record
	err = topics.Drain(t.Context(), sub, func(m topics.Message) error {
		r, err := control.DecodeRecord(m.Payload)
		if err == nil && r.At >= since.UnixMilli() {
			out = append(out, r)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// outcomes are the outcomes among records, by cycle.
func outcomes(records []control.Record) (byCycle map[int64][]control.Outcome, all []control.Outcome) {
	byCycle = map[int64][]control.Outcome{}
	for _, r := range records {
		if r.Kind == control.KindOutcome {
			byCycle[r.Cycle] = append(byCycle[r.Cycle], *r.Outcome)
			all = append(all, *r.Outcome)
		}
	}
	return byCycle, all
}

// cycle is what `ballast plan -o json` prints, as far as tests look at it.
type cycle struct {
	Missing []string
	Frozen  []struct{ Code, Text string }
	Plan    struct {
		Decisions []struct{ Action, Bundle, Source, Destination string }
		Outcome   struct{ Code, Text string }
	}
	Verdict struct {
		Run     []struct{ Bundle, Destination string }
		Refused []struct {
			Decision struct{ Bundle, Destination string }
			Why      struct{ Code, Text string }
		}
	}
	LeftOut []struct {
		Bundle, Broker string
		Why            struct{ Code, Text string }
	}
}

// planned runs `ballast plan -o json`.
func planned(t *testing.T, c *harness.Cluster, args ...string) (cycle, int) {
	t.Helper()
	stdout, stderr, code := run(t, c, append([]string{"plan", "-o", "json"}, args...)...)
	var cy cycle
	if err := json.Unmarshal([]byte(stdout), &cy); err != nil {
		t.Fatalf("exit %d, output is no JSON: %v\n%s\n%s", code, err, stdout, stderr)
	}
	return cy, code
}

func settings(pairs ...string) []string {
	var out []string
	for _, p := range pairs {
		out = append(out, "--set", p)
	}
	return out
}
