package simulate

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/plan"
)

// Scenario is a cluster and what happens to it.
type Scenario struct {
	Name     string
	Shows    string // what one sees in it, in a sentence
	Config   Config // its Manager is replaced by the one that runs
	Settle   time.Duration
	Duration time.Duration // after Settle
	Changes  []Change
	Measure  Measure
	Every    time.Duration // between samples; 0 = 5 s
}

// Change happens to the cluster at a time after Settle.
type Change struct {
	After time.Duration
	What  string
	Do    func(*Cluster) error
}

// note is a change that was made.
type note struct {
	after time.Duration
	what  string
}

func (n note) String() string { return clock(n.after) + " " + n.what }

// Run is a scenario under way.
type Run struct {
	Scenario Scenario
	Cluster  *Cluster
	Samples  []Sample
	notes    []note
	before   gaps
	err      error
}

// Start makes the scenario's cluster with a load manager of its own, nil for none, and plans everything that will happen as
// time passes in the cluster, whoever advances it. Nothing is shed and nothing is measured before Settle has passed.
func (s Scenario) Start(m plan.Manager) (*Run, error) {
	cfg := s.Config
	cfg.Manager = m
	c, err := New(cfg)
	if err != nil {
		return nil, fmt.Errorf("scenario %s: %w", s.Name, err)
	}
	r := &Run{Scenario: s, Cluster: c}
	c.Hold(true)
	c.after(s.Settle, func() {
		c.Hold(false)
		r.before, c.gaps.longest = c.gaps, 0
		every := s.Every
		if every <= 0 {
			every = 5 * time.Second
		}
		c.every(0, every, func() bool {
			r.Samples = append(r.Samples, c.Sample(s.Measure))
			return true
		})
	})
	for _, change := range s.Changes {
		c.after(s.Settle+change.After, func() {
			r.notes = append(r.notes, note{change.After, change.What})
			if err := change.Do(c); err != nil && r.err == nil {
				r.err = fmt.Errorf("scenario %s, %s at %v: %w", s.Name, change.What, change.After, err)
			}
		})
	}
	return r, nil
}

// Run runs the scenario to its end with a load manager, nil for none.
func (s Scenario) Run(m plan.Manager) (*Run, error) {
	r, err := s.Start(m)
	if err != nil {
		return nil, err
	}
	r.Cluster.Run(s.Settle + s.Duration)
	return r, r.err
}

// Time is a moment (Unix ms) as the time since Settle.
func (r *Run) Time(at int64) string {
	return clock(time.Duration(at-r.Cluster.cfg.Start)*time.Millisecond - r.Scenario.Settle)
}

// Err is the first change that could not be made.
func (r *Run) Err() error { return r.err }

// Scoreboard is the account so far, with the cycles of the cluster's own balancer.
func (r *Run) Scoreboard() Scoreboard {
	begin := r.Cluster.cfg.Start + r.Scenario.Settle.Milliseconds()
	cycles, acting := 0, []int64(nil)
	for _, l := range r.Cluster.log {
		if l.At < begin {
			continue
		}
		cycles++
		if len(l.Plan.Decisions) > 0 {
			acting = append(acting, l.At)
		}
	}
	return r.ScoreboardOf(cycles, acting)
}

// ScoreboardOf is the account so far where somebody else balances: how many cycles that made, and when those were (Unix ms)
// that moved something.
func (r *Run) ScoreboardOf(cycles int, acting []int64) Scoreboard {
	return r.Cluster.account(r.Samples, r.before, cycles, acting)
}

// Loads is one line of loads: of each broker as a fraction of the mean, "-" for one that is not there.
func (r *Run) Loads(s Sample) string {
	sum, n := 0.0, 0
	for _, l := range s.Loads {
		if !math.IsNaN(l) {
			sum, n = sum+l, n+1
		}
	}
	var out []string
	for i, l := range s.Loads {
		text := "-"
		if !math.IsNaN(l) && sum > 0 {
			text = fmt.Sprintf("%.2f", l*float64(n)/sum)
		}
		out = append(out, short(r.Cluster.brokers[i].ID)+" "+text)
	}
	return strings.Join(out, "  ")
}

// Log is what the cluster's own balancer decided, what happened, and the loads after it, one line each.
func (r *Run) Log() string {
	c, s := r.Cluster, r.Scenario
	begin := c.cfg.Start + s.Settle.Milliseconds()
	var b strings.Builder
	notes, since, times := r.notes, time.Duration(0), 0
	for i, l := range c.log {
		at := time.Duration(l.At-begin) * time.Millisecond
		for len(notes) > 0 && notes[0].after <= at {
			fmt.Fprintln(&b, notes[0])
			notes = notes[1:]
		}
		if times == 0 {
			since = at
		}
		times++
		if i+1 < len(c.log) && same(l.Plan, c.log[i+1].Plan) && (len(notes) == 0 || notes[0].after > time.Duration(c.log[i+1].At-begin)*time.Millisecond) {
			continue // one line for cycles that say the same
		}
		fmt.Fprintf(&b, "%s %s: %s%s", clock(since), l.Plan.Strategy, l.Plan.Outcome.Code, Pairs(l.Plan.Decisions))
		if times > 1 {
			fmt.Fprintf(&b, " (%d cycles, until %s)", times, clock(at))
		}
		b.WriteByte('\n')
		times = 0
	}
	for _, n := range notes {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

// same says whether two cycles did nothing for the same reason.
func same(a, b plan.Plan) bool {
	return len(a.Decisions) == 0 && len(b.Decisions) == 0 && a.Outcome.Code == b.Outcome.Code
}

// Pairs sums decisions up: how many bundles go from where to where.
func Pairs(decisions []plan.Decision) string {
	type pair struct{ from, to string }
	var order []pair
	count, bytes := map[pair]int{}, map[pair]float64{}
	for _, d := range decisions {
		k := pair{short(d.Source), short(d.Destination)}
		if count[k] == 0 {
			order = append(order, k)
		}
		count[k]++
		bytes[k] += d.Throughput
	}
	var b strings.Builder
	for _, k := range order {
		fmt.Fprintf(&b, "; %s>%s %d bundles %.0f kB/s", k.from, k.to, count[k], bytes[k]/1000)
	}
	return b.String()
}

// short is the host part of a broker id.
func short(id string) string {
	host, _, _ := strings.Cut(id, ":")
	return host
}
