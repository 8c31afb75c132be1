package control

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/plan"
)

// NewLookObserver observes a cluster whose ownership is on no topic: it finds moves by who reports a bundle in one look and in the
// next. Moves that follow each other closely are taken for those of one cycle of the balancer.
func NewLookObserver(explainer Explainer) *Observer {
	return &Observer{explainer: explainer, agreement: extensible.Agreement{WindowMillis: agreementWindow.Milliseconds()}}
}

// leftFor is how long a bundle that nobody serves is remembered as on its way: clients of one that was unloaded are back sooner, and
// each one remembered keeps a picture in memory.
const leftFor = 10 * time.Minute

// lookMoves finds moves between looks.
type lookMoves struct {
	lag      time.Duration                // brokers' lists of bundles are up to so old
	pictures []*cluster.Snapshot          // oldest first; the first one is older than lag, if there is one
	owners   map[string]string            // who was the last to report a bundle
	left     map[string]*cluster.Snapshot // bundles that nobody reports any more: the picture from before
}

// look takes in a picture that may be decided on.
func (o *Observer) look(snap *cluster.Snapshot) {
	if o.views != nil {
		return // the topic tells
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	l, now := &o.looks, time.UnixMilli(snap.Now)
	l.lag = time.Duration(max(snap.Settings.StatsUpdateFrequencyInSecs, 1)) * time.Second
	moves, before := l.next(snap)
	if len(moves) == 0 {
		return
	}
	if len(o.open) > 0 && o.over(now) {
		o.ended.moves, o.ended.before = o.open, o.before
		o.open = nil
	}
	if len(o.open) == 0 {
		o.before = before
	}
	o.open, o.last = append(o.open, moves...), now
}

// next is what has moved since the picture before, and the picture from before the first of these moves. A bundle whose broker
// left the registry was not moved by the balancer, nor was one that nobody had served.
func (l *lookMoves) next(snap *cluster.Snapshot) (moves []extensible.Move, before *cluster.Snapshot) {
	for len(l.pictures) > 1 && l.pictures[1].Now <= snap.Now-l.lag.Milliseconds() {
		l.pictures = l.pictures[1:]
	}
	owners, left := make(map[string]string, len(snap.Bundles)), map[string]*cluster.Snapshot{}
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		was, from := l.owners[b.Name], l.left[b.Name]
		if from == nil && len(l.pictures) > 0 {
			from = l.pictures[0]
		}
		switch {
		case b.Owner == "" && (was == "" || snap.Now-from.Now > leftFor.Milliseconds()):
			continue
		case b.Owner == "":
			owners[b.Name], left[b.Name] = was, from
			continue
		case was != "" && was != b.Owner && snap.BrokerIndex(was) >= 0:
			if before == nil || from.Now < before.Now {
				before = from
			}
			moves = append(moves, extensible.Move{Bundle: b.Name, Source: was, Destination: b.Owner, At: snap.Now})
		}
		owners[b.Name] = b.Owner
	}
	l.owners, l.left, l.pictures = owners, left, append(l.pictures, snap)
	return moves, before
}

// Explaining is an Explainer for any load manager: the moves are compared with what it plans to leave which broker. Where it goes is not
// compared: Modular and Simple clusters choose that when a bundle is looked up, and by chance.
type Explaining struct{ Manager plan.Manager }

// Explain implements Explainer. What a manager remembers may make it wait; so it is also asked without its memory.
func (x Explaining) Explain(snap *cluster.Snapshot, state plan.State, moves []extensible.Move) extensible.Observation {
	trace := &plan.Trace{}
	draw := func() plan.Rand { return rand.New(rand.NewPCG(uint64(snap.Now), 0)) }
	now, _ := x.Manager.Shed(snap, state, draw(), trace)
	eager, _ := x.Manager.Shed(snap, x.Manager.NewState(), draw(), &plan.Trace{})
	for _, p := range []*plan.Plan{&now, &eager} {
		p.Decisions = slices.Clone(p.Decisions)
		for i := range p.Decisions {
			p.Decisions[i].Destination = ""
		}
	}
	return extensible.Compare(snap, &now, &eager, trace, moves)
}
