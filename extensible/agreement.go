package extensible

import (
	"slices"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Move is a bundle that left a broker, as seen on the ownership topic or between two looks at load reports.
type Move struct {
	Bundle      string `json:"bundle"`
	Source      string `json:"source"`
	Destination string `json:"destination,omitempty"` // "" = released without a destination
	At          int64  `json:"at"`                    // Unix ms
}

// MoveOf is the move that a record of the ownership topic begins, if it begins one: it releases the bundle.
func MoveOf(bundle string, d *event.ServiceUnitStateData) (Move, bool) {
	if d.State != event.Releasing || d.SourceBroker == "" {
		return Move{}, false
	}
	return Move{Bundle: bundle, Source: d.SourceBroker, Destination: d.DstBroker, At: d.Timestamp}, true
}

// Cycles puts moves, in the order of the topic, into groups of which each begins more than gap ms after the last move
// before it: the moves of one shedding cycle come together.
func Cycles(moves []Move, gap int64) [][]Move {
	var out [][]Move
	for i, m := range moves {
		if i == 0 || m.At-moves[i-1].At > gap {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], m)
	}
	return out
}

// Verdict is how far a plan agrees with a move.
type Verdict string

// The verdicts, from full agreement to none.
const (
	Same             Verdict = "same"             // planned just so
	SameButWaiting   Verdict = "sameButWaiting"   // planned just so, but for hits, a cool-down or a recent unload that still wait
	OtherDestination Verdict = "otherDestination" // planned from there, but to another broker
	OtherBundle      Verdict = "otherBundle"      // only other bundles were planned from there
	NotPlanned       Verdict = "notPlanned"       // nothing was planned from there
)

// Why a move was made, as far as TransferShedder can tell. Where the plan has the move its own reason is given.
var (
	// MadeEarlier: the plan has it, but waits.
	MadeEarlier = plan.Code{ID: "MOVE_BEFORE_PLAN", Template: "{why}; the plan waits: {waits}"}
	// MadeToOther: the plan has the bundle, but with another destination.
	MadeToOther = plan.Code{ID: "MOVE_TO_OTHER_BROKER", Template: "planned to {planned} instead: {why}"}
	// MadeOfOther: the plan unloads the broker, but leaves this bundle out.
	MadeOfOther = plan.Code{ID: "MOVE_OF_OTHER_BUNDLE", Template: "{planned} other bundles are planned from {source}; this one is left out: {why}"}
	// NotExplained: the plan does not unload the broker: an admin, a broker that stops, or data that differs.
	NotExplained = plan.Code{ID: "MOVE_NOT_PLANNED", Template: "load {sourceLoad} to {destinationLoad}, average {avg}, std {std}: {why}; the plan: {outcome}"}
)

// Explained is a move that somebody else made, compared with the plan on the same data.
type Explained struct {
	Move    Move        `json:"move"`
	Verdict Verdict     `json:"verdict"`
	Why     plan.Reason `json:"why"` // why it was made
}

// Observation is one cycle of the cluster's own balancer, compared with the plan on the same data.
type Observation struct {
	At      int64           `json:"at"` // Unix ms: of the snapshot
	Moves   []Explained     `json:"moves"`
	Missed  []plan.Decision `json:"missed,omitempty"` // planned, but not made
	Outcome plan.Reason     `json:"outcome"`          // of the plan
}

// Explain compares the moves of one cycle of the cluster's own balancer with the plan on the snapshot from before the first
// of them. The state is not changed; it should have seen the same cycles and moves (Shed, Record).
func (m *Manager) Explain(snap *cluster.Snapshot, state plan.State, moves []Move) Observation {
	trace := &plan.Trace{}
	now, _ := m.Shed(snap, state, nil, trace)
	return Compare(snap, &now, m.eager(snap, state), trace, moves)
}

// Compare compares moves with a plan on the snapshot from before them, its trace, and eager: what would be planned if nothing had to
// wait. A decision without a destination agrees with any: the cluster chose it.
func Compare(snap *cluster.Snapshot, now, eager *plan.Plan, trace *plan.Trace, moves []Move) Observation {
	o := Observation{At: snap.Now, Outcome: now.Outcome}
	c := &comparison{snap: snap, now: now, trace: trace, eager: eager}
	for _, move := range moves {
		o.Moves = append(o.Moves, c.explain(move))
	}
	for _, d := range now.Decisions {
		if !slices.ContainsFunc(moves, func(m Move) bool { return m.Bundle == d.Bundle && m.Source == d.Source }) {
			o.Missed = append(o.Missed, d)
		}
	}
	return o
}

// eager is the plan without anything that waits: hits, cool-downs, recent unloads.
func (m *Manager) eager(snap *cluster.Snapshot, state plan.State) *plan.Plan {
	st := stateOf(state).next()
	st.HitCount = max(st.HitCount, snap.Settings.LoadBalancerSheddingConditionHitCountThreshold)
	st.UnloadedBundles, st.UnloadedBrokers = nil, nil
	p, _ := m.Shed(snap, st, nil, &plan.Trace{})
	return &p
}

// comparison is a plan with its trace, and the same plan without waiting.
type comparison struct {
	snap       *cluster.Snapshot
	now, eager *plan.Plan
	trace      *plan.Trace
}

func (c *comparison) explain(m Move) Explained {
	out := Explained{Move: m}
	planned := find(c.now, m)
	switch eager := find(c.eager, m); {
	case planned != nil && agree(planned, m):
		out.Verdict, out.Why = Same, planned.Why
	case eager != nil && agree(eager, m):
		out.Verdict = SameButWaiting
		waits := c.now.Outcome.String()
		if len(c.now.Decisions) > 0 {
			waits = c.passedOver(m)
		}
		out.Why = MadeEarlier.Because(plan.S("why", eager.Why.String()), plan.S("waits", waits))
	case planned != nil || eager != nil:
		if planned == nil {
			planned = eager
		}
		out.Verdict = OtherDestination
		out.Why = MadeToOther.Because(plan.S("planned", quoted(planned.Destination)), plan.S("why", planned.Why.String()))
	default:
		out.Verdict, out.Why = c.leftOut(m)
	}
	return out
}

func agree(d *plan.Decision, m Move) bool {
	return d.Destination == "" || d.Destination == m.Destination
}

// find is the decision about the bundle of a move from the same broker, nil if there is none.
func find(p *plan.Plan, m Move) *plan.Decision {
	i := slices.IndexFunc(p.Decisions, func(d plan.Decision) bool { return d.Bundle == m.Bundle && d.Source == m.Source })
	if i < 0 {
		return nil
	}
	return &p.Decisions[i]
}

// leftOut says why a move is not in the plan.
func (c *comparison) leftOut(m Move) (Verdict, plan.Reason) {
	others := 0
	for _, d := range c.now.Decisions {
		if d.Source == m.Source {
			others++
		}
	}
	why := plan.S("why", c.passedOver(m))
	if others > 0 {
		return OtherBundle, MadeOfOther.Because(plan.N("planned", others), plan.S("source", m.Source), why)
	}
	return NotPlanned, NotExplained.Because(c.load("sourceLoad", m.Source), c.load("destinationLoad", m.Destination),
		plan.N("avg", c.now.LoadAvg), plan.N("std", c.now.LoadStd), why, plan.S("outcome", c.now.Outcome.String()))
}

// passedOver is what the trace says about a bundle, or about the broker that it left.
func (c *comparison) passedOver(m Move) string {
	text := "not looked at"
	for _, e := range c.trace.Entries {
		switch {
		case e.Bundle == m.Bundle && e.Broker == m.Source:
			return e.Why.String()
		case e.Bundle == "" && e.Broker == m.Source:
			text = e.Why.String()
		}
	}
	if i := c.snap.LoadIndex(m.Source); i >= 0 && !slices.ContainsFunc(c.snap.Load[i].TopBundles,
		func(b event.BundleLoad) bool { return b.BundleName == m.Bundle }) {
		return "not among the top bundles of " + m.Source
	}
	return text
}

func (c *comparison) load(name, broker string) plan.Number {
	if i := c.snap.LoadIndex(broker); i >= 0 {
		return plan.N(name, c.snap.Load[i].Data.WeightedMaxEMA)
	}
	return plan.S(name, "unknown")
}

// Agreement is the observations of a while.
type Agreement struct {
	WindowMillis int64         `json:"windowMillis"` // how long an observation counts
	Observations []Observation `json:"observations"`
}

// Add takes in an observation and drops those that are too old by now (Unix ms).
func (a *Agreement) Add(o Observation, now int64) {
	a.Observations = slices.DeleteFunc(append(a.Observations, o), func(o Observation) bool { return now-o.At > a.WindowMillis })
}

// Score says how far plans and moves agreed.
type Score struct {
	Moves            int     `json:"moves"`
	Same             int     `json:"same"`
	SameButWaiting   int     `json:"sameButWaiting"`
	OtherDestination int     `json:"otherDestination"`
	OtherBundle      int     `json:"otherBundle"`
	NotPlanned       int     `json:"notPlanned"`
	Missed           int     `json:"missed"`  // decisions that nobody carried out
	Percent          float64 `json:"percent"` // moves that were planned just so, also if the plan waited; 100 when there were none
}

// Score is the agreement over the observations that are not too old by now (Unix ms).
func (a *Agreement) Score(now int64) Score {
	s := Score{Percent: 100}
	for _, o := range a.Observations {
		if now-o.At > a.WindowMillis {
			continue
		}
		s.Missed += len(o.Missed)
		for _, m := range o.Moves {
			s.Moves++
			switch m.Verdict {
			case Same:
				s.Same++
			case SameButWaiting:
				s.SameButWaiting++
			case OtherDestination:
				s.OtherDestination++
			case OtherBundle:
				s.OtherBundle++
			default:
				s.NotPlanned++
			}
		}
	}
	if s.Moves > 0 {
		s.Percent = 100 * float64(s.Same+s.SameButWaiting) / float64(s.Moves)
	}
	return s
}
