package guard

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/ballast-lb/ballast/plan"
)

// StateVersion is the version of State.
const StateVersion = 2

// State is what the guard remembers. It is versioned, plain data that goes in and comes out; what goes in is never changed. The
// zero value and states of version 1, which had only Moved, Failed and Brokers, are good to begin with.
type State struct {
	Version int              `json:"version"`
	Moved   map[string]int64 `json:"moved,omitempty"`   // bundle -> Unix ms
	Failed  map[string]int64 `json:"failed,omitempty"`  // bundle -> Unix ms of the last move that failed
	Brokers map[string]int64 `json:"brokers,omitempty"` // broker id -> Unix ms when it last gave or took a bundle

	Failures map[string]int      `json:"failures,omitempty"` // bundle -> moves that failed in a row
	Round    int64               `json:"round,omitempty"`    // Unix ms of the look that was last observed
	Recent   []Move              `json:"recent,omitempty"`   // moves that load data may not show yet, oldest first
	Seen     map[string]Sighting `json:"seen,omitempty"`     // broker id -> since when it is there
	Trails   map[string][]Hop    `json:"trails,omitempty"`   // bundle -> where it was, oldest first
	Swings   map[string][]Swing  `json:"swings,omitempty"`   // broker id -> what rounds brought and took, oldest first
	Holds    map[string]Hold     `json:"holds,omitempty"`    // bundle or broker id -> held for going to and fro
	Draining map[string]int64    `json:"draining,omitempty"` // broker id -> Unix ms since when it receives nothing
	Paused   *Pause              `json:"paused,omitempty"`   // nothing is moved for balance
	Pace     Pace                `json:"pace"`               // how many moves at once
	Clients  map[string]Clients  `json:"clients,omitempty"`  // broker id -> what its clients see when nothing moves
}

// Move is a move that was made.
type Move struct {
	At          int64   `json:"at"` // Unix ms
	Source      string  `json:"source"`
	Destination string  `json:"destination,omitempty"` // "" = not known
	Throughput  float64 `json:"throughput,omitempty"`  // bytes/s
	MsgRate     float64 `json:"msgRate,omitempty"`     // msg/s
}

// Sighting is when a broker was first seen, and with which start time.
type Sighting struct {
	Since   int64 `json:"since,omitempty"`   // Unix ms; 0 = it was there when the guard began to look
	Started int64 `json:"started,omitempty"` // Unix ms, as it says itself
}

// Hop is one move of a bundle.
type Hop struct {
	At   int64  `json:"at"` // Unix ms
	From string `json:"from"`
	To   string `json:"to"`
}

// Swing is what one round brought to a broker (above 0) or took from it.
type Swing struct {
	Round int64   `json:"round"` // Unix ms of the round's look
	At    int64   `json:"at"`    // Unix ms of its last move
	Net   float64 `json:"net"`   // bytes/s
}

// Hold is a pause of one bundle or broker.
type Hold struct {
	Since int64 `json:"since"` // Unix ms
	Until int64 `json:"until"` // Unix ms
	Level int   `json:"level"` // how many holds in a row: each is twice as long as the one before
	Turns int   `json:"turns"` // what it is for
}

// Pause is an operator's pause.
type Pause struct {
	Reason string `json:"reason,omitempty"`
	By     string `json:"by,omitempty"`
	Since  int64  `json:"since"`           // Unix ms
	Until  int64  `json:"until,omitempty"` // Unix ms; 0 = until it is resumed
}

// NewState is the state before the first cycle.
func NewState() State { return State{Version: StateVersion} }

// DecodeState reads a state of version 1 or 2, as encoding/json writes it.
func DecodeState(b []byte) (State, error) {
	var st State
	if err := json.Unmarshal(b, &st); err != nil {
		return State{}, fmt.Errorf("state of the guard: %w", err)
	}
	if st.Version < 1 || st.Version > StateVersion {
		return State{}, fmt.Errorf("state of the guard: version is %d, this program reads 1 to %d", st.Version, StateVersion)
	}
	st.Version = StateVersion
	return st, nil
}

// Stop returns the state in which nothing is moved for balance, until p ends or Resume. Orders of an operator still run.
func Stop(st State, p Pause) State {
	st.Version, st.Paused = StateVersion, &p
	return st
}

// Resume ends a pause.
func Resume(st State) State {
	st.Version, st.Paused = StateVersion, nil
	return st
}

// Drain returns the state in which a broker receives nothing any more, whoever decides it.
func Drain(st State, broker string, now int64) State {
	st.Version, st.Draining = StateVersion, with(st.Draining, broker, now)
	return st
}

// Undrain ends Drain.
func Undrain(st State, broker string) State {
	st.Version, st.Draining = StateVersion, maps.Clone(st.Draining)
	delete(st.Draining, broker)
	return st
}

// paused is the pause that holds now.
func (st *State) paused(now int64) *Pause {
	if p := st.Paused; p != nil && (p.Until == 0 || now < p.Until) {
		return p
	}
	return nil
}

// with is the map with one entry more, or another; m itself is not changed.
func with[V any](m map[string]V, key string, v V) map[string]V {
	out := make(map[string]V, len(m)+1)
	maps.Copy(out, m)
	out[key] = v
	return out
}

// Ordered says whether a decision is an operator's and not a strategy's: its Pulsar reason is Admin. It need not gain
// anything, and neither cool-downs, pauses, windows nor limits for new brokers hold it up. Policies, the registry, ownership,
// freezes and budgets do, and after a failure a rest that is short at first.
func Ordered(d plan.Decision) bool { return d.PulsarReason == plan.Admin }
