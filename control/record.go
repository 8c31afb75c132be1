package control

import (
	"encoding/json"
	"fmt"

	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/watch"
)

// Kind is what a record of the decision log is about.
type Kind string

// The kinds of records.
const (
	KindLeader  Kind = "leader"  // a process leads from now on, or does no longer
	KindPlan    Kind = "plan"    // what one cycle planned, or why it planned nothing
	KindIntent  Kind = "intent"  // what is about to be done
	KindOutcome Kind = "outcome" // what came of it
	KindPause   Kind = "pause"   // nothing is done from now on, or something again
	KindReview  Kind = "review"  // a plan waits for an operator, or what became of it
	KindCommand Kind = "command" // what an operator asked for, and the answer
)

// Kinds are the kinds of records in the order of the documentation.
var Kinds = []Kind{KindLeader, KindPlan, KindIntent, KindOutcome, KindPause, KindReview, KindCommand}

// RecordVersion is the version of the record schema. Readers skip records of a newer version.
const RecordVersion = 1

// Record is one event of the decision log: JSON on topics.Decisions, each under a key of its own. docs/decision-log.md
// describes it field by field.
type Record struct {
	Version  int    `json:"version"`
	Kind     Kind   `json:"kind"`
	At       int64  `json:"at"`              // Unix ms by the writer's clock
	Instance string `json:"instance"`        // the writer
	Epoch    int64  `json:"epoch,omitempty"` // grows with every leader; 0 = written by a process that does not lead
	Seq      int64  `json:"seq,omitempty"`   // counts the records of one writer from 1
	Cycle    int64  `json:"cycle,omitempty"` // counts on from leader to leader
	Mode     Mode   `json:"mode,omitempty"`

	Leader *Leadership `json:"leader,omitempty"`

	Missing       []string        `json:"missing,omitempty"` // registered brokers that were not heard
	Frozen        []plan.Reason   `json:"frozen,omitempty"`  // why nothing could be decided
	Plan          *plan.Plan      `json:"plan,omitempty"`
	DecisionsMore int             `json:"decisionsMore,omitempty"` // how many decisions the plan has beyond those listed
	Verdict       *guard.Verdict  `json:"verdict,omitempty"`       // what of the plan may run
	RefusedMore   int             `json:"refusedMore,omitempty"`   // how many were refused beyond those listed
	SlowedMore    int             `json:"slowedMore,omitempty"`    // how much is slowed or held beyond what is listed
	Cures         []plan.Decision `json:"cures,omitempty"`         // of bundles that are stuck, carried out before the plan
	Harm          *guard.Harm     `json:"harm,omitempty"`          // what clients see of the brokers that moves are about
	LeftOut       []plan.LeftOut  `json:"leftOut,omitempty"`       // what was looked at and passed over
	LeftOutMore   int             `json:"leftOutMore,omitempty"`   // how many more there were

	Decision *plan.Decision `json:"decision,omitempty"` // of an intent
	Limit    int64          `json:"limit,omitempty"`    // ms from At after which the request of an intent is not sent any more
	Of       string         `json:"of,omitempty"`       // key of the record that this one answers
	Outcome  *Outcome       `json:"outcome,omitempty"`

	Pause   *Pause   `json:"pause,omitempty"`
	Review  *Review  `json:"review,omitempty"`
	Command *Command `json:"command,omitempty"`
	Answer  *Answer  `json:"answer,omitempty"`

	Memory *Memory `json:"memory,omitempty"` // what a next leader goes on with
}

// Leadership says that a process begins to lead, or ends.
type Leadership struct {
	What   string `json:"what"`             // leads, steps-down, stops
	Why    string `json:"why,omitempty"`    // why it ends
	After  int64  `json:"after,omitempty"`  // epoch of the leader before
	Memory string `json:"memory,omitempty"` // what of the memory could not be used, and why
}

// The ways of a leadership.
const (
	Leads     = "leads"
	StepsDown = "steps-down"
	Stops     = "stops"
)

// Memory is what a leader goes on with that another one left.
type Memory struct {
	Strategy string                     `json:"strategy"`           // whose state State is; another strategy does not take it
	State    json.RawMessage            `json:"state,omitempty"`    // the strategy's own
	TooLarge int                        `json:"tooLarge,omitempty"` // bytes of a state that was left out
	Guard    json.RawMessage            `json:"guard,omitempty"`    // the guard's
	Seed     uint64                     `json:"seed,string"`        // of the randomness of every plan, together with Draws
	Draws    int64                      `json:"draws,omitempty"`    // plans that were made with it so far
	Pause    *Pause                     `json:"pause,omitempty"`    // in force
	Review   *Review                    `json:"review,omitempty"`   // waiting
	Held     []Held                     `json:"held,omitempty"`     // decisions whose request may have been sent by an earlier leader
	Orders   map[string]json.RawMessage `json:"orders,omitempty"`   // standing orders of operators, by name
	Clients  HarmState                  `json:"clients,omitzero"`   // how many connections were opened when clients were last looked at
	Cures    watch.CureState            `json:"cures,omitzero"`     // which stuck bundles were treated, and when
}

// Pause is a time in which nothing is done.
type Pause struct {
	On     bool   `json:"on"` // false: it ends
	Reason string `json:"reason"`
	By     string `json:"by,omitempty"`
	At     int64  `json:"at"`              // Unix ms when it began
	Until  int64  `json:"until,omitempty"` // Unix ms when it ends by itself; 0 = it is ended by an operator
}

// Result is how an action ended.
type Result string

// The results of an action.
const (
	Done      Result = "done"      // the wanted owner was seen
	Elsewhere Result = "elsewhere" // another broker owns the bundle now
	Refused   Result = "refused"   // the cluster refused; nothing changed
	Failed    Result = "failed"    // the request failed
	TimedOut  Result = "timed-out" // no owner was seen in time
	Skipped   Result = "skipped"   // not tried: the cluster changed since the plan
	Unknown   Result = "unknown"   // an earlier leader's request was not seen to have an effect; it may still have one
)

// Outcome is what came of one decision.
type Outcome struct {
	Decision  plan.Decision `json:"decision"`
	Result    Result        `json:"result"`
	Owner     string        `json:"owner,omitempty"` // the owner seen at the end
	Parts     []Part        `json:"parts,omitempty"` // of a split: what the bundle became, in range order
	Millis    int64         `json:"millis"`          // from the request to the end
	Attempts  int           `json:"attempts"`
	Why       string        `json:"why,omitempty"`
	Inherited bool          `json:"inherited,omitempty"` // found by the leader after the one that acted
}

// DecodeRecord reads a record of the decision log.
func DecodeRecord(b []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(b, &r); err != nil {
		return Record{}, fmt.Errorf("decision log: %w", err)
	}
	if r.Version < 1 || r.Version > RecordVersion {
		return Record{}, fmt.Errorf("decision log: version is %d, this program reads 1 to %d", r.Version, RecordVersion)
	}
	if missing := r.missing(); missing != "" {
		return Record{}, fmt.Errorf("decision log: a record of kind %q has no %s", r.Kind, missing)
	}
	return r, nil
}

// missing names what a record of its kind must have and this one has not. Kinds that are not known are left to the reader.
func (r *Record) missing() string {
	switch {
	case r.Kind == KindLeader && r.Leader == nil:
		return "leader"
	case r.Kind == KindPlan && r.Plan == nil:
		return "plan"
	case r.Kind == KindIntent && r.Decision == nil:
		return "decision"
	case r.Kind == KindOutcome && r.Outcome == nil:
		return "outcome"
	case r.Kind == KindPause && r.Pause == nil:
		return "pause"
	case r.Kind == KindReview && r.Review == nil:
		return "review"
	case r.Kind == KindCommand && r.Command == nil:
		return "command"
	case r.Kind == KindCommand && r.Answer == nil:
		return "answer"
	}
	return ""
}
