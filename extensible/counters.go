package extensible

import (
	"encoding/json"
	"fmt"

	"github.com/ballast-lb/ballast/plan"
)

// Pulsar's labels of decisions.
const (
	Success = "Success"
	Skip    = "Skip"
	Failure = "Failure"
)

// Pulsar's reasons of unload decisions.
const (
	Overloaded   = "Overloaded"
	Underloaded  = "Underloaded"
	Admin        = plan.Admin
	HitCount     = "HitCount"
	NoBundles    = "NoBundles"
	CoolDown     = "CoolDown"
	OutDatedData = "OutDatedData"
	NoLoadData   = "NoLoadData"
	NoBrokers    = "NoBrokers"
	Unknown      = "Unknown"
)

// Pulsar's reasons of split decisions, besides Admin and Unknown.
const (
	Topics    = "Topics"
	Sessions  = "Sessions"
	MsgRate   = "MsgRate"
	Bandwidth = "Bandwidth"
)

// UnloadCounts counts unload decisions by label and reason; plain array semantics, so that a copy is independent.
type UnloadCounts [len(unloadPairs)]int64

var unloadPairs = [...]plan.Count{
	{Label: Success, Reason: Overloaded}, {Label: Success, Reason: Underloaded}, {Label: Success, Reason: Admin},
	{Label: Skip, Reason: HitCount}, {Label: Skip, Reason: NoBundles}, {Label: Skip, Reason: CoolDown},
	{Label: Skip, Reason: OutDatedData}, {Label: Skip, Reason: NoLoadData}, {Label: Skip, Reason: NoBrokers},
	{Label: Skip, Reason: Unknown}, {Label: Failure, Reason: Unknown},
}

// SplitCounts counts split decisions by label and reason.
type SplitCounts [len(splitPairs)]int64

var splitPairs = [...]plan.Count{
	{Label: Success, Reason: Topics}, {Label: Success, Reason: Sessions}, {Label: Success, Reason: MsgRate},
	{Label: Success, Reason: Bandwidth}, {Label: Success, Reason: Admin}, {Label: Failure, Reason: Unknown},
}

// AssignCounts counts assignments by result.
type AssignCounts [len(assignPairs)]int64

var assignPairs = [...]plan.Count{{Label: Success}, {Label: Failure}, {Label: Skip}}

// Pairs are all labels and reasons with their counts, in a fixed order.
func (c UnloadCounts) Pairs() []plan.Count { return pairs(unloadPairs[:], c[:]) }

// Pairs are all labels and reasons with their counts, in a fixed order.
func (c SplitCounts) Pairs() []plan.Count { return pairs(splitPairs[:], c[:]) }

// Pairs are all results with their counts, in a fixed order; they have no reasons.
func (c AssignCounts) Pairs() []plan.Count { return pairs(assignPairs[:], c[:]) }

func (c *UnloadCounts) add(label, reason string) { add(unloadPairs[:], c[:], label, reason) }
func (c *SplitCounts) add(label, reason string)  { add(splitPairs[:], c[:], label, reason) }
func (c *AssignCounts) add(label string)         { add(assignPairs[:], c[:], label, "") }

// MarshalJSON writes {"Skip/HitCount": 3, ...}, without what is 0.
func (c UnloadCounts) MarshalJSON() ([]byte, error) { return marshalCounts(unloadPairs[:], c[:]) }

// MarshalJSON writes {"Success/Topics": 3, ...}, without what is 0.
func (c SplitCounts) MarshalJSON() ([]byte, error) { return marshalCounts(splitPairs[:], c[:]) }

// MarshalJSON writes {"Success": 3, ...}, without what is 0.
func (c AssignCounts) MarshalJSON() ([]byte, error) { return marshalCounts(assignPairs[:], c[:]) }

// UnmarshalJSON reads what MarshalJSON writes.
func (c *UnloadCounts) UnmarshalJSON(b []byte) error { return unmarshalCounts(unloadPairs[:], c[:], b) }

// UnmarshalJSON reads what MarshalJSON writes.
func (c *SplitCounts) UnmarshalJSON(b []byte) error { return unmarshalCounts(splitPairs[:], c[:], b) }

// UnmarshalJSON reads what MarshalJSON writes.
func (c *AssignCounts) UnmarshalJSON(b []byte) error { return unmarshalCounts(assignPairs[:], c[:], b) }

func pairs(names []plan.Count, counts []int64) []plan.Count {
	out := make([]plan.Count, len(names))
	for i, p := range names {
		out[i] = plan.Count{Label: p.Label, Reason: p.Reason, N: counts[i]}
	}
	return out
}

// add counts a pair. Another pair than Pulsar's, as of a decision from elsewhere, is not counted.
func add(names []plan.Count, counts []int64, label, reason string) {
	for i := range names {
		if names[i].Label == label && names[i].Reason == reason {
			counts[i]++
			return
		}
	}
}

func key(p plan.Count) string {
	if p.Reason == "" {
		return p.Label
	}
	return p.Label + "/" + p.Reason
}

func marshalCounts(names []plan.Count, counts []int64) ([]byte, error) {
	out := make(map[string]int64)
	for i, p := range names {
		if counts[i] != 0 {
			out[key(p)] = counts[i]
		}
	}
	return json.Marshal(out)
}

func unmarshalCounts(names []plan.Count, counts []int64, b []byte) error {
	var in map[string]int64
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("counters: %w", err)
	}
	for i, p := range names {
		counts[i] = in[key(p)]
		delete(in, key(p))
	}
	for name := range in {
		return fmt.Errorf("counters: %q is no counter of Pulsar", name)
	}
	return nil
}
