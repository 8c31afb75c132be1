package simulate

import (
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ballast-lb/ballast/load"
)

// Measure is what counts as a broker's load on the scoreboard.
type Measure int

// The measures.
const (
	Throughput Measure = iota // bytes/s in and out that clients want to have handled
	Usage                     // weighted maximum usage as a fraction, not averaged
)

// Even is the max/mean at or below which a cluster counts as even.
const Even = 1.25

// Sample is the true load of the brokers at one moment.
type Sample struct {
	At      int64     // Unix ms
	Loads   []float64 // in the order in which the brokers came; NaN = not there
	MaxMean float64   // 1 when there is no load
	MinMean float64   // likewise
	Std     float64   // standard deviation of the loads as a fraction of their mean
}

// Sample measures the brokers that are registered and alive.
func (c *Cluster) Sample(m Measure) Sample {
	s := Sample{At: c.now, Loads: make([]float64, len(c.brokers)), MaxMean: 1, MinMean: 1}
	sum, most, least, n := 0.0, 0.0, math.Inf(1), 0
	for i, b := range c.brokers {
		s.Loads[i] = math.NaN()
		if !b.registered || !b.alive() {
			continue
		}
		if m == Usage {
			s.Loads[i] = load.WeightedMax(b.usage(c.Elapsed()), load.WeightsOf(c.settings))
		} else {
			s.Loads[i] = b.demand(c.Elapsed()).Throughput()
		}
		sum, most, least, n = sum+s.Loads[i], max(most, s.Loads[i]), min(least, s.Loads[i]), n+1
	}
	if !(sum > 0) {
		return s
	}
	mean, squares := sum/float64(n), 0.0
	for _, l := range s.Loads {
		if !math.IsNaN(l) {
			squares += float64((l - mean) * (l - mean))
		}
	}
	s.MaxMean, s.MinMean, s.Std = most/mean, least/mean, math.Sqrt(squares/float64(n))/mean
	return s
}

// Scoreboard says how even the load became and what that cost. Moves of bundles that had lost their broker are not counted
// as moves: no balancer chose them.
type Scoreboard struct {
	Start, End, Worst float64       // max/mean
	Least             float64       // min/mean at the end: 0 where a broker idles
	Excess            float64       // integral of (max/mean - 1) over time, seconds
	Std               float64       // at the end, as a fraction of the mean
	Reached           time.Duration // until max/mean was first at most Even; negative = never
	Held              time.Duration // from when on it stayed so to the end; negative = it did not

	Cycles  int     // cycles of the balancer
	Acting  int     // cycles that moved something
	Needed  int     // acting cycles until max/mean was first at most Even; all of them if it never was
	Moves   int     // bundles moved, each time counted
	Topics  int     // topics moved with them
	Repeats int     // moves of a bundle that had been moved before
	Futile  int     // moves that ended where they began
	Moved   float64 // load moved as a fraction of the cluster's load at the time
	Thrash  float64 // the part of it that other moves undid: what a broker both gained and gave away. A trend costs nothing

	Overridden int           // bundles given away by the leader because their broker was gone
	CutOff     float64       // bundle-seconds without a serving broker
	CutTopics  float64       // topic-seconds
	LongestCut time.Duration // of one bundle
}

// account makes the scoreboard of a stretch of time: its samples, and the moves from its first sample on. cycles is how many
// cycles there were, acting when those were (Unix ms) that moved something.
func (c *Cluster) account(samples []Sample, before gaps, cycles int, acting []int64) Scoreboard {
	var s Scoreboard
	if len(samples) == 0 {
		return s
	}
	first := samples[0].At
	s.evenness(samples)
	s.movement(c.moves, first, totalLoad(samples))
	s.Cycles = cycles
	for _, at := range acting {
		s.Acting++
		if s.Reached < 0 || at-first <= s.Reached.Milliseconds() {
			s.Needed++
		}
	}
	now := c.gaps
	for _, x := range c.sortedBundles() {
		if x.gapSince >= 0 {
			now.add(c.now-x.gapSince, len(x.topics))
		}
	}
	s.CutOff, s.CutTopics = now.bundleSeconds-before.bundleSeconds, now.topicSeconds-before.topicSeconds
	s.LongestCut = time.Duration(now.longest) * time.Millisecond
	return s
}

func (s *Scoreboard) evenness(samples []Sample) {
	first, last := samples[0], samples[len(samples)-1]
	s.Start, s.End, s.Least, s.Std, s.Reached, s.Held = first.MaxMean, last.MaxMean, last.MinMean, last.Std, -1, -1
	for i, x := range samples {
		since := time.Duration(x.At-first.At) * time.Millisecond
		s.Worst = max(s.Worst, x.MaxMean)
		if i > 0 {
			s.Excess += float64((samples[i-1].MaxMean - 1) * float64(x.At-samples[i-1].At) / 1000)
		}
		switch {
		case x.MaxMean > Even:
			s.Held = -1
			continue
		case s.Held < 0:
			s.Held = since
		}
		if s.Reached < 0 {
			s.Reached = since
		}
	}
}

// movement counts moves. The load of a move is its bytes/s, whatever the samples measure.
func (s *Scoreboard) movement(moves []Move, from int64, total float64) {
	seen := map[string]bool{}
	gained, given := map[string]float64{}, map[string]float64{}
	var brokers []string
	note := func(m map[string]float64, id string, v float64) {
		if gained[id] == 0 && given[id] == 0 {
			brokers = append(brokers, id)
		}
		m[id] += v
	}
	for _, m := range moves {
		if m.At < from {
			continue
		}
		if m.Cause == Overridden {
			s.Overridden++
		}
		if m.Cause != Shed && m.Cause != Asked {
			continue
		}
		s.Moves++
		s.Topics += m.Topics
		if seen[m.Bundle] {
			s.Repeats++
		}
		seen[m.Bundle] = true
		if m.From == m.To {
			s.Futile++
		}
		if v := m.Traffic.Throughput(); total > 0 && v > 0 {
			s.Moved += v / total
			note(gained, m.To, v)
			note(given, m.From, v)
		}
	}
	for _, id := range brokers {
		s.Thrash += min(gained[id], given[id]) / total
	}
}

// totalLoad is the cluster's mean load over the samples.
func totalLoad(samples []Sample) float64 {
	sum := 0.0
	for _, s := range samples {
		for _, l := range s.Loads {
			if !math.IsNaN(l) {
				sum += l
			}
		}
	}
	return sum / float64(len(samples))
}

// String is the scoreboard as a few lines of text.
func (s Scoreboard) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "max/mean %.3f -> %.3f (worst %.3f, excess %.1f s), min/mean %.3f, std %.3f\n", s.Start, s.End, s.Worst, s.Excess, s.Least, s.Std)
	fmt.Fprintf(&b, "even (<= %.2f): %s, to stay: %s\n", Even, when(s.Reached), when(s.Held))
	fmt.Fprintf(&b, "moves %d of %d topics in %d of %d cycles; load moved %.3f, undone %.3f; repeated %d, futile %d\n",
		s.Moves, s.Topics, s.Acting, s.Cycles, s.Moved, s.Thrash, s.Repeats, s.Futile)
	fmt.Fprintf(&b, "cut off %.1f bundle-s, %.1f topic-s, longest %.1f s; overridden %d\n", s.CutOff, s.CutTopics, s.LongestCut.Seconds(), s.Overridden)
	return b.String()
}

// Row is a line of a table of scoreboards.
type Row struct {
	Name  string
	Score Scoreboard
}

// Table sets scoreboards side by side.
func Table(rows []Row) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tmax/mean\tend\tworst\tmin/mean\texcess s\teven\tto stay\tacting\tmoves\ttopics\tmoved\tundone\trepeated\tcut off s\t")
	for _, r := range rows {
		s := r.Score
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%s\t%s\t%d\t%d\t%d\t%.2f\t%.2f\t%d\t%.0f\t\n", r.Name, s.Start, s.End, s.Worst,
			s.Least, s.Excess, at(s.Reached), at(s.Held), s.Acting, s.Moves, s.Topics, s.Moved, s.Thrash, s.Repeats, s.CutOff)
	}
	if err := w.Flush(); err != nil {
		panic("simulate: a strings.Builder failed: " + err.Error())
	}
	return b.String()
}

func at(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return clock(d)
}

func when(d time.Duration) string {
	if d < 0 {
		return "never"
	}
	return "after " + clock(d)
}

// clock is a time as h:mm:ss.
func clock(d time.Duration) string {
	s := int64(d / time.Second)
	return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
}
