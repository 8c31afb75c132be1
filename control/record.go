package control

import (
	"encoding/json"
	"fmt"

	"github.com/ballast-lb/ballast/plan"
)

// Kind is what a record of the decision log is about.
type Kind string

// The kinds of records.
const (
	KindPlan    Kind = "plan"    // what one cycle planned, or why it planned nothing
	KindIntent  Kind = "intent"  // what is about to be done
	KindOutcome Kind = "outcome" // what came of it
)

// RecordVersion is the version of the record schema. Readers skip records of a newer version.
const RecordVersion = 1

// Record is one event of the decision log, JSON on topics.Decisions, under the key instance/cycle/kind, and /bundle for what is
// about a bundle.
type Record struct {
	Version     int             `json:"version"`
	Kind        Kind            `json:"kind"`
	At          int64           `json:"at"`       // Unix ms by the writer's clock
	Instance    string          `json:"instance"` // the writer
	Cycle       int64           `json:"cycle,omitempty"`
	Mode        Mode            `json:"mode,omitempty"`
	Plan        *plan.Plan      `json:"plan,omitempty"`
	LeftOut     []plan.LeftOut  `json:"leftOut,omitempty"`     // the first 1000
	LeftOutMore int             `json:"leftOutMore,omitempty"` // how many more there were
	Decision    *plan.Decision  `json:"decision,omitempty"`
	Outcome     *Outcome        `json:"outcome,omitempty"`
	State       json.RawMessage `json:"state,omitempty"` // strategy state after the cycle
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
)

// Outcome is what came of one decision.
type Outcome struct {
	Decision plan.Decision `json:"decision"`
	Result   Result        `json:"result"`
	Owner    string        `json:"owner,omitempty"` // the owner seen at the end
	Millis   int64         `json:"millis"`          // from the request to the end
	Attempts int           `json:"attempts"`
	Why      string        `json:"why,omitempty"`
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
	return r, nil
}
