package advise

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/internal/jsonfloat"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// Measure is what a strategy compares brokers by.
type Measure string

// The measures.
const (
	Nothing    Measure = ""
	Usage      Measure = "usage"
	MsgRate    Measure = "message rate"
	Throughput Measure = "throughput"
)

// MeasureOf is what a strategy (short name or Pulsar's class name) compares brokers by; Nothing if it takes turns or is not known.
func MeasureOf(strategy string, s *settings.Settings) Measure {
	switch strategy[strings.LastIndexByte(strategy, '.')+1:] {
	case "TransferShedder", "ThresholdShedder", "OverloadShedder", "AvgShedder", "LeastResourceUsageWithWeight", "leastLoadedServer":
		return Usage
	case "LeastLongTermMessageRate", "LeastLongTermMessageRateDocumented", "leastMsgPerSecond":
		return MsgRate
	case "UniformLoadShedder":
		if s.LoadBalancerMsgRateDifferenceShedderThreshold > 0 {
			return MsgRate
		}
		return Throughput
	}
	return Nothing
}

var (
	// ScoresDiffer: shedding and placement compare brokers by different figures.
	ScoresDiffer = plan.Code{ID: "SCORES_DIFFER", Template: "{shedder} compares brokers by {shedBy}, {placer} by {placeBy}: what is shed may land on a broker that is to be shed next"}
	// ScoreMismatch: rounds of moves made nothing better, and the scores differ.
	ScoreMismatch = plan.Code{ID: "SCORE_MISMATCH", Template: "{rounds} rounds of moves did not make {shedBy} more even (most to mean {spread}): {shedder} sheds by it, {placer} places by {placeBy}"}
	// NoProgress: rounds of moves made nothing better.
	NoProgress = plan.Code{ID: "NO_PROGRESS", Template: "{rounds} rounds of moves by {shedder} did not make {shedBy} more even (most to mean {spread})"}
)

// Mismatch says that a shedding and a placement strategy compare brokers by different figures; nil if not, or if nothing is known.
func Mismatch(shedder, placer string, s *settings.Settings) []plan.LeftOut {
	a, b := MeasureOf(shedder, s), MeasureOf(placer, s)
	if a == b || a == Nothing || b == Nothing {
		return nil
	}
	return []plan.LeftOut{{Why: ScoresDiffer.Because(plan.S("shedder", shedder), plan.S("shedBy", string(a)), plan.S("placer", placer), plan.S("placeBy", string(b)))}}
}

// Progress follows whether rounds of moves make the shedding strategy's own figure more even. The zero value is before the first
// round; it is plain data. It starts anew after a grace period without moves, and when a broker comes, goes or restarts.
type Progress struct {
	Rounds  int             `json:"rounds"`  // rounds of moves running after which it was not more even than it had been before
	Best    jsonfloat.Float `json:"best"`    // most to mean broker, at its best since the first of the moves
	Last    jsonfloat.Float `json:"last"`    // and now
	Acted   int64           `json:"acted"`   // when a round last moved something, Unix ms; 0 = never
	Moved   bool            `json:"moved"`   // the last round moved something
	Brokers uint64          `json:"brokers"` // hash of who was registered
}

// better is the fraction by which a round must make things more even to count.
const better = 0.01

// Next takes in a round: the snapshot it was planned on, and whether it moves anything. While some broker's figure is unknown it
// changes nothing.
func (p Progress) Next(snap *cluster.Snapshot, moves bool, by Measure) Progress {
	spread, ok := Spread(snap, by)
	if !ok {
		return p
	}
	brokers := registered(snap)
	grace := snap.Settings.LoadBalancerSheddingGracePeriodMinutes
	switch {
	case p.Brokers != brokers, p.Acted > 0 && float64(snap.Now-p.Acted) > float64(grace)*60_000:
		p = Progress{Brokers: brokers}
	case p.Acted > 0 && spread < float64(p.Best)*(1-better):
		p.Rounds, p.Best = 0, jsonfloat.Float(spread)
	case p.Moved:
		p.Rounds++
	}
	if moves && p.Acted == 0 {
		p.Best = jsonfloat.Float(spread)
	}
	if p.Last, p.Moved = jsonfloat.Float(spread), moves; moves {
		p.Acted = snap.Now
	}
	return p
}

// registered is a hash of the registered brokers and of when they started.
func registered(snap *cluster.Snapshot) uint64 {
	h := fnv.New64a()
	for i := range snap.Brokers {
		fmt.Fprintf(h, "%s %d\n", snap.Brokers[i].ID, snap.Brokers[i].StartedAt)
	}
	return h.Sum64()
}

// Advice is that the last n rounds of moves led nowhere: a balancer should stop.
func (p Progress) Advice(n int, shedder, placer string, s *settings.Settings) []plan.LeftOut {
	if n <= 0 || p.Rounds < n {
		return nil
	}
	code, by, place := NoProgress, MeasureOf(shedder, s), MeasureOf(placer, s)
	if by != place && by != Nothing && place != Nothing {
		code = ScoreMismatch
	}
	return []plan.LeftOut{{Why: code.Because(plan.N("rounds", p.Rounds), plan.S("shedBy", cmp.Or(string(by), "the load")),
		plan.N("spread", float64(p.Last)), plan.S("shedder", shedder), plan.S("placer", placer), plan.S("placeBy", string(place)))}}
}

// Spread is the figure of the broker with the most of it over the mean, 1 when nobody has any; false if some broker was not heard.
func Spread(snap *cluster.Snapshot, by Measure) (float64, bool) {
	w := load.WeightsOf(snap.Settings)
	total, most := 0.0, 0.0
	for i := range snap.Brokers {
		r, ok := reportOf(&snap.Brokers[i], w)
		if !ok {
			return 0, false
		}
		v := r.usage
		switch by {
		case MsgRate:
			v, ok = r.rate, r.hasTraffic
		case Throughput:
			v, ok = r.throughput(), r.hasTraffic
		default:
			ok = r.hasUsage
		}
		if !ok {
			return 0, false
		}
		total, most = total+v, max(most, v)
	}
	if n := float64(len(snap.Brokers)); total > 0 && measured(total) {
		return most * n / total, true
	}
	return 1, len(snap.Brokers) > 0
}
