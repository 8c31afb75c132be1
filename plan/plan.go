// Package plan says what a decision is: a Plan of Decisions with Reasons, the Trace of what was looked at and left out, and
// the interfaces and registry of the strategies that make plans. It has no I/O, no clock and no randomness of its own.
package plan

// Action is what a decision does to a bundle.
type Action string

// The actions.
const (
	Transfer Action = "transfer" // unload to a named broker
	Unload   Action = "unload"   // unload; the load manager of the cluster picks the next owner
	Split    Action = "split"    // split the bundle at Boundaries
	Place    Action = "place"    // give an unowned bundle its first owner
)

// Admin is the PulsarReason of what an operator ordered (Pulsar: UnloadDecision.Reason). It is no strategy's: Pulsar's grace period for
// what was unloaded is that of its own scheduler's unloads.
const Admin = "Admin"

// Decision is one thing to do, with why. Label and PulsarReason are Pulsar's own words for it (UnloadDecision, SplitDecision).
type Decision struct {
	Action       Action   `json:"action"`
	Bundle       string   `json:"bundle"`
	Source       string   `json:"source,omitempty"`       // broker id
	Destination  string   `json:"destination,omitempty"`  // broker id; "" = the cluster chooses
	Boundaries   []string `json:"boundaries,omitempty"`   // split: the new boundaries, "0x........"
	UnloadAfter  bool     `json:"unloadAfter,omitempty"`  // split: unload the children, so that they are placed anew
	Label        string   `json:"label,omitempty"`        // Success, Skip, Failure
	PulsarReason string   `json:"pulsarReason,omitempty"` // Overloaded, Underloaded, Topics, ...
	Throughput   float64  `json:"throughput"`             // bytes/s in + out that move with the bundle
	MsgRate      float64  `json:"msgRate"`                // msg/s in + out that move with the bundle
	Topics       int64    `json:"topics"`                 // topics that move with the bundle
	Why          Reason   `json:"why"`
}

// LeftOut is a bundle or a broker that was looked at and passed over, with why.
type LeftOut struct {
	Bundle string `json:"bundle,omitempty"`
	Broker string `json:"broker,omitempty"`
	Other  string `json:"other,omitempty"` // the other broker of the pair that was looked at, if any
	Why    Reason `json:"why"`
}

// Count is one of Pulsar's counters, label and reason as Pulsar names them ("Skip", "HitCount").
type Count struct {
	Label  string `json:"label"`
	Reason string `json:"reason"`
	N      int64  `json:"n"`
}

// Plan is the outcome of one cycle of a strategy: what to do and, when there is nothing to do, why.
type Plan struct {
	Strategy  string     `json:"strategy"`
	At        int64      `json:"at"` // Unix ms: the Now of the snapshot it was made from
	Decisions []Decision `json:"decisions"`
	Outcome   Reason     `json:"outcome"`          // why the cycle acted or did not act
	Advice    []LeftOut  `json:"advice,omitempty"` // what only an operator can mend; told once for as long as it holds
	Counts    []Count    `json:"counts,omitempty"`
	LoadAvg   float64    `json:"loadAvg"` // average load that the strategy compared with (fraction), 0 if it has none
	LoadStd   float64    `json:"loadStd"` // standard deviation of the loads, 0 if it has none
}

// Trace collects what was looked at and left out. A nil *Trace collects nothing; callers on hot paths test for nil before
// they build a reason, so that explaining costs nothing when nobody asked.
type Trace struct {
	Entries []LeftOut `json:"entries"`
}

// Skip records that a bundle, a broker or a pair was passed over.
func (t *Trace) Skip(bundle, broker, other string, why Reason) {
	if t == nil {
		return
	}
	t.Entries = append(t.Entries, LeftOut{Bundle: bundle, Broker: broker, Other: other, Why: why})
}
