package guard

import (
	"math"

	"github.com/ballast-lb/ballast/internal/schedule"
	"github.com/ballast-lb/ballast/plan"
)

// Figure is what a move has to make more even.
type Figure string

// The figures.
const (
	NoFigure   Figure = ""           // the rule is off
	Usage      Figure = "usage"      // of a broker's busiest resource, as a fraction
	Throughput Figure = "throughput" // bytes/s in + out
	MsgRate    Figure = "msgRate"    // msg/s in + out
	Traffic    Figure = "traffic"    // messages or bytes, whichever falls
)

// Limits are the budgets, cool-downs and thresholds. A limit of 0 is no limit, so the zero value leaves the rules that always
// hold: policies, the registry, who owns what, load data that is there.
type Limits struct {
	// Budgets of a cycle. A bundle that alone is above TopicsPerCycle or ThroughputPerCycle may go as the first of a cycle.
	BundlesPerCycle    int     // decisions let through per cycle
	BundlesPerSource   int     // of these, from one broker
	BundlesPerTarget   int     // of these, to one broker
	TopicsPerCycle     int64   // topics that move with them
	ThroughputPerCycle float64 // bytes/s in + out that move with them
	TopicsPerSecond    float64 // pace: a bundle of n topics takes n / TopicsPerSecond seconds

	// Cool-downs, ms.
	BundleCoolDown  int64 // during which a moved bundle is left alone
	BrokerCoolDown  int64 // during which a broker that gave or took a bundle does neither
	FailureCoolDown int64 // during which a bundle whose move failed is left alone

	// Freezes.
	LoadDataTTL    int64   // ms after which load data that was heard is too old to act on
	SilentFraction float64 // when more than this part of the brokers, and at least two, are silent, nothing moves

	// Moves must be worth it.
	GainBy Figure // the figure of which the higher of two brokers must fall

	// Brokers that are new.
	NewBrokerTime  int64   // ms during which a broker is new
	NewBrokerShare float64 // part of all bundles, and of all topics, that it receives at most in a cycle, from 0 to 1

	// Topics while a broker is drained.
	DrainPoints float64 // how much of all topics a broker may have beyond an even part, a fraction

	// Movement that cancels out.
	OscillationWindow int64 // ms: turns that are no further apart than this belong together
	OscillationTurns  int   // turns from which a bundle or a broker is held; from half of them on it is slowed

	// How many moves at once.
	MovesAtOnce   int     // most moves in flight together
	SlowMove      int64   // ms: a move that takes longer counts as slow
	MaxLatency    float64 // ms: clients of a broker whose 99th percentile of publish latency is above are hurt
	MaxReconnects float64 // connections/s opened to a broker from which its clients count as hurt

	// Windows say when moves are allowed.
	Windows schedule.Windows
}

// maxPause (ms) is a day: beyond it a pace is as good as standing still, and far beyond it durations overflow.
const maxPause = 24 * 60 * 60 * 1000

// Pause is how long (ms) to wait after starting a decision so that topics move no faster than the budget allows.
func (l Limits) Pause(d plan.Decision) int64 {
	if !(l.TopicsPerSecond > 0) || d.Topics <= 0 {
		return 0
	}
	return int64(min(float64(d.Topics)*1000/l.TopicsPerSecond, maxPause))
}

// slowFrom is how many turns slow a bundle or a broker down.
func (l Limits) slowFrom() int { return max(1, l.OscillationTurns/2) }

func (l Limits) watchesTurns() bool { return l.OscillationWindow > 0 && l.OscillationTurns > 0 }

// longer is a rest of base ms, doubled times times, at most a day.
func longer(base int64, times int) int64 {
	for range times {
		if base >= maxPause/2 {
			return maxPause
		}
		base *= 2
	}
	return min(base, maxPause)
}

// mostLoad (bytes/s or msg/s) is far above what any cluster carries; sums of what is said to be more stay finite.
const mostLoad = 1e18

// measured says whether a figure can be one that was measured.
func measured(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }
