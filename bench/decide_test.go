package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/ballast-lb/ballast/internal/benchstate"
)

// recordings are what Pulsar's classes decided, written by -check.
func recordings(t *testing.T) []recorded {
	t.Helper()
	f, err := os.Open("testdata/pulsar-4.2.4.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []recorded
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func (r recorded) benchCase(t *testing.T) benchCase {
	t.Helper()
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == r.Kind && k.hotEvery == r.HotEvery })
	if i < 0 {
		t.Fatalf("no kind %s with hot brokers every %d", r.Kind, r.HotEvery)
	}
	return benchCase{&kinds[i], size{r.Brokers, r.Bundles}}
}

// TestDecidesAsPulsar compares the first and a later decision with those that Pulsar's classes took on the same state.
func TestDecidesAsPulsar(t *testing.T) {
	covered := make(map[string]bool)
	for _, r := range recordings(t) {
		c := r.benchCase(t)
		t.Run(fmt.Sprintf("%s/seed%d", c, r.Seed), func(t *testing.T) {
			if testing.Short() && r.Bundles > 10_000 {
				t.Skip("a big cluster")
			}
			s := newSide(c, r.Seed)
			if err := s.agree(first{State: r.State, Check: r.Check}); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				s.decide()
			}
			if later, err := s.last(); err != nil || later != r.Check {
				t.Errorf("later: %v (%v), want %v", later, err, r.Check)
			}
		})
		if r.Check.Decided > 0 {
			covered[c.String()] = true
		}
	}
	o, err := parse(nil, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	cases, err := o.cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		if !covered[c.String()] {
			t.Errorf("no recording of %s in which something is decided", c)
		}
	}
}

func TestPlacementAllocatesNothing(t *testing.T) {
	for i := range kinds {
		if k := &kinds[i]; k.placement {
			d := k.new(benchstate.New(42, 50, 500, k.hotEvery))
			if n := testing.AllocsPerRun(100, d.decide); n != 0 {
				t.Errorf("%s allocates %v times", k.label(), n)
			}
		}
	}
}

// TestDigestTells holds that a change of any number or name of the state, and of any line decided, is seen.
func TestDigestTells(t *testing.T) {
	state := func(change func(*benchstate.State)) string {
		s := benchstate.New(42, 3, 9, 2)
		change(s)
		return stateDigest(s)
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*benchstate.State){
		"same":          func(*benchstate.State) {},
		"broker":        func(s *benchstate.State) { s.Brokers[2].ID = "x" },
		"load":          func(s *benchstate.State) { s.Brokers[0].Load += 1e-12 },
		"cpu":           func(s *benchstate.State) { s.Brokers[0].System.CPU.Usage++ },
		"memory":        func(s *benchstate.State) { s.Brokers[0].System.Memory.Usage++ },
		"direct memory": func(s *benchstate.State) { s.Brokers[0].System.DirectMemory.Usage++ },
		"bandwidth in":  func(s *benchstate.State) { s.Brokers[0].System.BandwidthIn.Usage++ },
		"bandwidth out": func(s *benchstate.State) { s.Brokers[0].System.BandwidthOut.Usage++ },
		"broker in":     func(s *benchstate.State) { s.Brokers[1].In++ },
		"broker out":    func(s *benchstate.State) { s.Brokers[1].Out++ },
		"bundle":        func(s *benchstate.State) { s.Bundles[8].Name = "x" },
		"bundle in":     func(s *benchstate.State) { s.Bundles[8].In++ },
		"bundle out":    func(s *benchstate.State) { s.Bundles[8].Out++ },
	} {
		d := state(change)
		if other, twice := seen[d]; twice {
			t.Errorf("%q and %q have the same digest %s", name, other, d)
		}
		seen[d] = name
	}
	lines := []string{"b", "a"}
	if decisionOf(lines) != decisionOf([]string{"a", "b"}) || lines[0] != "b" {
		t.Error("the order of the lines counts, or was changed")
	}
	for _, other := range [][]string{nil, {"a"}, {"a", "c"}, {"a", "b", "b"}} {
		if decisionOf(lines).Digest == decisionOf(other).Digest {
			t.Errorf("%q and %q have the same digest", lines, other)
		}
	}
}
