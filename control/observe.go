package control

import (
	"sync"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/plan"
)

const (
	// cycleGap ends a cycle of the cluster's balancer: its moves come within seconds, the next cycle a minute later.
	cycleGap = 15 * time.Second
	// agreementWindow is how long an observation counts in the agreement.
	agreementWindow = 24 * time.Hour
)

// Explainer compares moves that somebody else made with its own plan on the same data. extensible.Manager is one.
type Explainer interface {
	Explain(snap *cluster.Snapshot, state plan.State, moves []extensible.Move) extensible.Observation
}

// Observer collects the moves of the cluster's own balancer, together with the picture of the cluster from before the first
// move of each of its cycles.
type Observer struct {
	views     *Views // nil = looks are compared
	explainer Explainer
	looks     lookMoves

	mu        sync.Mutex
	agreement extensible.Agreement
	open      []extensible.Move // moves of the cycle that is going on
	last      time.Time         // when the newest of them was seen, by our clock
	before    *cluster.Snapshot // the picture before the first of them; nil when none was made yet

	ended struct { // the cycle before, when a look found both its end and the beginning of the next one
		moves  []extensible.Move
		before *cluster.Snapshot
	}
}

// NewObserver watches the ownership topic from now on.
func NewObserver(views *Views, explainer Explainer) *Observer {
	o := &Observer{views: views, explainer: explainer, agreement: extensible.Agreement{WindowMillis: agreementWindow.Milliseconds()}}
	views.Watch(o.see)
	return o
}

// see takes in one ownership record.
func (o *Observer) see(e OwnershipEvent) {
	if e.Keep || e.After == nil || e.After.Data.State != event.Releasing {
		return
	}
	move, ok := extensible.MoveOf(e.Bundle, &e.After.Data)
	if !ok {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.open) == 0 {
		o.before = o.views.Before(e)
	}
	if o.before == nil {
		return // nothing is known yet: the topic's history is being read
	}
	o.open, o.last = append(o.open, move), e.At
}

// over says whether the balancer's cycle is over.
func (o *Observer) over(now time.Time) bool {
	if o.views == nil {
		return now.Sub(o.last) >= o.looks.lag
	}
	return now.Sub(o.last) >= cycleGap
}

// Observed is the observation of the balancer's last cycle once it is over; false while there is none.
func (o *Observer) Observed(state plan.State, now time.Time) (extensible.Observation, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	moves, before := o.ended.moves, o.ended.before
	o.ended.moves, o.ended.before = nil, nil
	if len(moves) == 0 {
		if len(o.open) == 0 || !o.over(now) {
			return extensible.Observation{}, false
		}
		moves, before = o.open, o.before
		o.open, o.before = nil, nil
	}
	seen := o.explainer.Explain(before, state, moves)
	o.agreement.Add(seen, now.UnixMilli())
	return seen, true
}

// Score is how far the cluster's moves and the plans agreed over the last day.
func (o *Observer) Score(now time.Time) extensible.Score {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.agreement.Score(now.UnixMilli())
}
