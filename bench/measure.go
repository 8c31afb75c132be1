package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/internal/benchstate"
)

// maxPerRound bounds the calls of a round.
const maxPerRound = 1 << 20

// measure times a decision as the Java side does.
func measure(decide func(), m method) timed {
	var t timed
	var spent time.Duration
	room := make([]byte, m.heap<<20) // never touched; as much can be allocated before garbage is collected
	defer runtime.KeepAlive(room)
	runtime.GC()
	for t.PerRound = 1; spent < m.warm || t.WarmupCalls == 0; {
		took := repeat(decide, t.PerRound).cpu
		t.WarmupCalls += int64(t.PerRound)
		spent += max(took, time.Microsecond)
		if took < m.round && t.PerRound < maxPerRound {
			t.PerRound *= 2
		}
	}
	wall, cpu, allocs := make([]float64, m.rounds), make([]float64, m.rounds), make([]int64, m.rounds)
	for i := range m.rounds {
		r := repeat(decide, t.PerRound)
		wall[i] = float64(r.wall) / float64(t.PerRound)
		cpu[i] = float64(r.cpu) / float64(t.PerRound)
		allocs[i] = int64(r.allocs) / int64(t.PerRound)
	}
	slices.Sort(wall)
	slices.Sort(cpu)
	slices.Sort(allocs)
	t.WallMedian, t.WallMin = wall[m.rounds/2], wall[0]
	t.CPUMedian, t.CPUMin = cpu[m.rounds/2], cpu[0]
	t.Allocs = allocs[m.rounds/2]
	return t
}

// round is what some calls took together.
type round struct {
	wall, cpu time.Duration
	allocs    uint64
}

func repeat(decide func(), calls int) round {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, cpu := time.Now(), cpuTime()
	for range calls {
		decide()
	}
	r := round{wall: time.Since(start), cpu: cpuTime() - cpu}
	runtime.ReadMemStats(&after)
	r.allocs = after.Mallocs - before.Mallocs
	return r
}

// side is Ballast's side of a case.
type side struct {
	decider
	state string
}

func newSide(c benchCase, seed uint64) side {
	s := benchstate.New(seed, c.size.brokers, c.size.bundles, c.hotEvery)
	return side{c.new(s), stateDigest(s)}
}

// last is what the last call decided.
func (s side) last() (decision, error) {
	lines, err := s.decided()
	return decisionOf(lines), err
}

// agree says whether the first decisions of both sides, on the same state, are the same.
func (s side) agree(f first) error {
	if f.State != s.state {
		return fmt.Errorf("the states differ: Pulsar's has digest %s, Ballast's %s", f.State, s.state)
	}
	s.decide()
	ours, err := s.last()
	if err != nil {
		return err
	}
	return same(f.Check, ours)
}

func same(pulsars, ours decision) error {
	if pulsars != ours {
		return fmt.Errorf("the decisions differ: Pulsar: %s; Ballast: %s", pulsars, ours)
	}
	return nil
}

// recorded is one line of a check: what both sides decided on the same state.
type recorded struct {
	Kind     string   `json:"kind"`
	HotEvery int      `json:"hotEvery"`
	Brokers  int      `json:"brokers"`
	Bundles  int      `json:"bundles"`
	Seed     uint64   `json:"seed"`
	Pulsar   string   `json:"pulsar"`
	State    string   `json:"state"`
	Check    decision `json:"check"`
}

// check compares all decisions once and writes down what was decided.
func check(ctx context.Context, o options, jvm *pulsar, out io.Writer) error {
	cases, err := o.cases()
	if err != nil {
		return err
	}
	m := method{seed: o.method.seed}
	for _, c := range cases {
		f, _, err := jvm.run(ctx, c, m, newSide(c, m.seed).agree)
		if err != nil {
			return err
		}
		line := recorded{c.name, c.hotEvery, c.size.brokers, c.size.bundles, m.seed, f.Pulsar, f.State, f.Check}
		if err := json.NewEncoder(out).Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// row is one case, measured on both sides.
type row struct {
	benchCase
	pulsar, ballast timed
}

func measureAll(ctx context.Context, o options, jvm *pulsar, progress io.Writer) (*report, error) {
	cases, err := o.cases()
	if err != nil {
		return nil, err
	}
	r := &report{method: o.method, machine: thisMachine(), day: time.Now()}
	for _, c := range cases {
		x, f, err := measureCase(ctx, c, o.method, jvm)
		if err != nil {
			return nil, err
		}
		r.java, r.pulsar, r.rows = f.Java, f.Pulsar, append(r.rows, x)
		fmt.Fprintf(progress, "%s: Pulsar %s, Ballast %s\n", c, perCall(x.pulsar.WallMedian), perCall(x.ballast.WallMedian))
	}
	return r, nil
}

// measureCase measures the sides one after the other.
func measureCase(ctx context.Context, c benchCase, m method, jvm *pulsar) (row, first, error) {
	s := newSide(c, m.seed)
	f, theirs, err := jvm.run(ctx, c, m, s.agree)
	if err != nil {
		return row{}, f, err
	}
	ours := measure(s.decide, m)
	if ours.Check, err = s.last(); err == nil {
		err = same(theirs.Check, ours.Check)
	}
	if err != nil {
		return row{}, f, fmt.Errorf("%s, after all rounds: %w", c, err)
	}
	return row{c, theirs, ours}, f, nil
}
