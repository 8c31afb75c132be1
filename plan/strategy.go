package plan

import "github.com/ballast-lb/ballast/cluster"

// Rand is the randomness that a decision may use. *math/rand/v2.Rand is one.
type Rand interface {
	IntN(n int) int // uniform in [0, n)
}

// State is a strategy's memory between cycles: hit counts, histories, recent moves. It is a pointer to plain data that
// encoding/json writes and reads back without loss, so that it can be logged, handed to a new leader and replayed.
// A strategy without memory uses nil.
type State any

// Shedder plans which bundles leave which brokers. It does not change the state that it is given: it returns the next one.
type Shedder interface {
	Shed(snap *cluster.Snapshot, state State, trace *Trace) (Plan, State)
}

// Placer chooses a broker for a bundle among candidates (indexes into snap.Brokers) and returns its index, or -1 for none.
// It owns the state and may change it in place. Without a trace it allocates nothing and returns the zero Reason.
type Placer interface {
	Place(snap *cluster.Snapshot, bundle string, candidates []int, state State, rnd Rand, trace *Trace) (int, Reason)
}

// Manager is a load manager: the rules around its strategies.
type Manager interface {
	// NewState is the state before the first cycle.
	NewState() State
	// Shed plans one shedding cycle of the leader.
	Shed(snap *cluster.Snapshot, state State, rnd Rand, trace *Trace) (Plan, State)
	// Split plans one round of splits.
	Split(snap *cluster.Snapshot, state State, trace *Trace) (Plan, State)
	// Place chooses the broker of an unowned bundle; the decision has no destination when there is none.
	Place(snap *cluster.Snapshot, bundle string, state State, rnd Rand, trace *Trace) (Decision, State)
	// Record tells the state that a decision was carried out at time now (Unix ms).
	Record(state State, done Decision, now int64) State
}
