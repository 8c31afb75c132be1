package control

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/plan"
)

// Past is what the decision log tells a next leader: the memory, what was to be done and is not done yet, the commands
// that were answered. It folds the records in the order of the log. It is plain data and changed by Apply alone.
//
// A record of a lower epoch than one before it comes from a leader that had lost the lock by then. Its intent was not acted
// on, as acting needs the lock after the intent is stored; its plan and memory do not count; what it says came of an
// earlier intent does, unless it does not know: it holds the decision back in its memory alone.
type Past struct {
	Epoch int64 // the highest so far
	Cycle int64 // the last one of any leader

	planned   int64 // Unix ms: when the last cycle was planned
	memory    *Memory
	memoryKey string
	batch     batch
	open      []openIntent
	entries   []logEntry
	bytes     int
	answered  map[string]int64 // command id -> Unix ms of the answer
	last      string           // key of the newest record
	skipped   int64            // records that could not be read
}

// batch are the decisions that are being carried out: those of a plan that the guard let through, or of a plan that an
// operator approved.
type batch struct {
	key   string
	cycle int64
	at    int64 // Unix ms: when it was planned, or approved
	left  []plan.Decision
}

type openIntent struct {
	key    string
	record Record
}

type logEntry struct {
	key  string
	at   int64
	size int
}

// NewPast is an empty one.
func NewPast() *Past { return &Past{answered: map[string]int64{}} }

// Apply takes in one message of the decision log; an empty payload removes the record of the key.
func (h *Past) Apply(key string, payload []byte) {
	if len(payload) == 0 {
		h.remove(key)
		return
	}
	r, err := DecodeRecord(payload)
	if err != nil {
		h.skipped++
		return
	}
	h.entries = append(h.entries, logEntry{key: key, at: r.At, size: len(payload)})
	h.bytes += len(payload)
	h.last = key
	late := r.Epoch < h.Epoch
	if r.Kind == KindOutcome && r.Of != "" && !(late && r.Outcome.Result == Unknown) {
		h.open = slices.DeleteFunc(h.open, func(o openIntent) bool { return o.key == r.Of })
	}
	if r.Epoch == 0 || late {
		return
	}
	h.Epoch, h.Cycle = r.Epoch, max(h.Cycle, r.Cycle)
	if r.Memory != nil {
		h.memory, h.memoryKey = r.Memory, key
	}
	switch r.Kind {
	case KindPlan:
		if h.batch = (batch{}); r.Plan.Strategy != DrainStrategy { // a drain is between the cycles
			h.planned = r.At
		}
		if r.Review == nil && r.Pause == nil {
			left := slices.Clone(r.Cures)
			if r.Verdict != nil {
				left = append(left, r.Verdict.Run...)
			}
			h.batch = batch{key: key, cycle: r.Cycle, at: r.At, left: left}
		}
	case KindReview:
		if r.Review.State == Approved {
			h.batch = batch{key: key, cycle: r.Review.Cycle, at: r.At, left: slices.Clone(r.Review.Decisions)}
		}
	case KindIntent:
		h.settle(*r.Decision)
		h.open = append(h.open, openIntent{key: key, record: r})
	case KindOutcome:
		h.settle(r.Outcome.Decision)
	case KindCommand:
		h.answered[r.Command.ID] = r.At
		for id, at := range h.answered {
			if r.At-at > answeredFor.Milliseconds() {
				delete(h.answered, id)
			}
		}
	}
}

// answeredFor is how long it is remembered that a command was answered: longer than any sender waits.
const answeredFor = time.Hour

// settle takes a decision out of the batch.
func (h *Past) settle(d plan.Decision) {
	if i := slices.IndexFunc(h.batch.left, func(x plan.Decision) bool { return x.Bundle == d.Bundle && x.Action == d.Action }); i >= 0 {
		h.batch.left = slices.Delete(h.batch.left, i, i+1)
	}
}

// remove forgets a record. Records go from the oldest on, so it is among the first.
func (h *Past) remove(key string) {
	i := slices.IndexFunc(h.entries, func(e logEntry) bool { return e.key == key })
	if i < 0 {
		return
	}
	h.bytes -= h.entries[i].size
	h.entries = slices.Delete(h.entries, i, i+1)
}

// Orders are the standing orders of operators.
func (h *Past) Orders() map[string]json.RawMessage {
	if h.memory == nil {
		return nil
	}
	return h.memory.Orders
}

// Len is how many records the log holds, and of how many bytes.
func (h *Past) Len() (records, bytes int) { return len(h.entries), h.bytes }

// Retention bounds the decision log. A limit of 0 is no limit.
type Retention struct {
	Age     time.Duration
	Records int
	Bytes   int
}

// DefaultRetention bounds what a process that starts has to read.
var DefaultRetention = Retention{Age: 7 * 24 * time.Hour, Records: 100_000, Bytes: 64 << 20}

// Excess are the keys of the oldest records that need not be kept any more, at most so many. What a next leader needs stays.
func (h *Past) Excess(now int64, r Retention, most int) []string {
	var out []string
	records, bytes := h.Len()
	for _, e := range h.entries {
		old := r.Age > 0 && now-e.at > r.Age.Milliseconds()
		if len(out) == most || !old && (r.Records == 0 || records <= r.Records) && (r.Bytes == 0 || bytes <= r.Bytes) {
			break
		}
		if h.needed(e.key) {
			continue
		}
		out = append(out, e.key)
		records, bytes = records-1, bytes-e.size
	}
	return out
}

func (h *Past) needed(key string) bool {
	return key == h.memoryKey || key == h.batch.key && len(h.batch.left) > 0 || key == h.last ||
		slices.ContainsFunc(h.open, func(o openIntent) bool { return o.key == key })
}
