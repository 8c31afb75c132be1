package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
)

// pulsar is the Java side.
type pulsar struct {
	start func(ctx context.Context, args ...string) *exec.Cmd
}

// first is what the JVM says before it times anything.
type first struct {
	Java   string   `json:"java"`
	Pulsar string   `json:"pulsar"`
	State  string   `json:"state"`
	Check  decision `json:"check"`
}

// timed is the times per call, in nanoseconds, and what the last call decided.
type timed struct {
	WarmupCalls int64    `json:"warmupCalls"`
	PerRound    int      `json:"perRound"`
	WallMedian  float64  `json:"wallMedian"`
	WallMin     float64  `json:"wallMin"`
	CPUMedian   float64  `json:"cpuMedian"`
	CPUMin      float64  `json:"cpuMin"`
	Check       decision `json:"check"`
	Allocs      int64    `json:"-"` // per call; of Ballast only
}

// run measures one case in a JVM of its own. It goes on to time it only if agree accepts what it decided first. With 0
// rounds nothing is timed.
func (p *pulsar) run(ctx context.Context, c benchCase, m method, agree func(first) error) (first, timed, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := p.start(ctx, c.name, strconv.Itoa(c.size.brokers), strconv.Itoa(c.size.bundles), strconv.Itoa(c.hotEvery),
		strconv.FormatUint(m.seed, 10), strconv.FormatInt(m.warm.Milliseconds(), 10), strconv.Itoa(m.rounds),
		strconv.FormatInt(m.round.Milliseconds(), 10))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return first{}, timed{}, fmt.Errorf("start of the JVM for %s: %w", c, err)
	}
	f, t, err := talk(stdout, m, agree)
	if err != nil {
		cancel()
	}
	if ended := cmd.Wait(); err == nil {
		err = ended
	}
	if err != nil && stderr.Len() > 0 {
		err = fmt.Errorf("%w\n%s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	if err != nil {
		return f, t, fmt.Errorf("pulsar, %s: %w", c, err)
	}
	return f, t, nil
}

// talk reads what the JVM prints, to the end.
func talk(stdout io.Reader, m method, agree func(first) error) (f first, t timed, err error) {
	lines := json.NewDecoder(stdout)
	if err := lines.Decode(&f); err != nil {
		return f, t, fmt.Errorf("its first line: %w", err)
	}
	if err := agree(f); err != nil {
		return f, t, err
	}
	if m.rounds > 0 {
		if err := lines.Decode(&t); err != nil {
			return f, t, fmt.Errorf("its times: %w", err)
		}
	}
	if err := lines.Decode(new(any)); err != io.EOF {
		return f, t, fmt.Errorf("more output than expected (%v)", err)
	}
	return f, t, nil
}
