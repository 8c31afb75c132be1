package control

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/drain"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
)

// DrainAsks is what the rounds of drains ask of the cluster beside a look. The zero value asks nothing.
type DrainAsks struct {
	// Figures fills the figures of all bundles into a snapshot. That is a long answer of every broker. nil = those that brokers publish
	// are enough.
	Figures func(ctx context.Context, snap *cluster.Snapshot) (*cluster.Snapshot, error)
	// Owned are the bundles that a broker says it owns. nil = the look is believed.
	Owned func(ctx context.Context, broker string) ([]string, error)
	// Reported: the owners in a look follow from load reports, which may be old or missing. What a broker says counts more.
	Reported bool
}

const (
	drainRest  = 15 * time.Second // between two rounds that ask, of a broker that nothing leaves and on which nothing changes
	drainDoubt = 5 * time.Second  // likewise, while it is not certain what the broker has
)

// drainer plans the rounds of drains and asks no more than they need: figures when something leaves, the broker itself before it
// counts as empty, and nothing while nothing changes.
type drainer struct {
	asks   DrainAsks
	clock  Clock
	logger *slog.Logger
	rests  map[string]drainRests // by broker
}

// drainRests is what a broker looked like when a round asked and nothing left, and until when that is an answer.
type drainRests struct {
	sight string
	until time.Time
}

// drainRound is a round of one broker, before anything is done.
type drainRound struct {
	plan    drain.Plan
	verdict guard.Verdict
	snap    *cluster.Snapshot // what it was planned from
}

func newDrainer(asks DrainAsks, clock Clock, logger *slog.Logger) *drainer {
	return &drainer{asks: asks, clock: clock, logger: logger, rests: map[string]drainRests{}}
}

// awake makes the next round of a broker ask, whatever it looks like.
func (d *drainer) awake(broker string) { delete(d.rests, broker) }

// resting says whether every one of some brokers rests.
func (d *drainer) resting(brokers []string) bool {
	now := d.clock.Now()
	for _, id := range brokers {
		if !now.Before(d.rests[id].until) {
			return false
		}
	}
	return true
}

// round plans a round; why is added to the reasons, and check is the guard. ok = false: the broker rests, and nothing was asked.
func (d *drainer) round(ctx context.Context, in drain.Input, why string, check func(*cluster.Snapshot, []plan.Decision) guard.Verdict) (r drainRound, ok bool) {
	id := in.Broker
	planned := func() drainRound {
		p := drain.Of(in)
		for i := range p.Decisions {
			p.Decisions[i].Why.Text += why
		}
		return drainRound{plan: p, verdict: check(in.Snapshot, p.Decisions), snap: in.Snapshot}
	}
	r = planned()
	sight := r.sight(id)
	if rest := d.rests[id]; rest.sight == sight && d.clock.Now().Before(rest.until) {
		return r, false
	}
	var doubts []plan.LeftOut
	at, asked := in.Snapshot.BrokerIndex(id), false
	stale := at >= 0 && !in.Snapshot.Brokers[at].Stale.IsZero()
	// A report still names what has left since: before anything runs the broker is asked, too.
	if d.asks.Owned != nil && at >= 0 && (r.plan.Empty() || d.asks.Reported && (stale || len(r.verdict.Run) > 0)) {
		asked = true
		switch owned, err := d.asks.Owned(ctx, id); {
		case err != nil && !stale && !r.plan.Empty():
			d.logger.Debug("a drain goes by what the broker reported", "broker", id, "error", err)
		case err != nil:
			doubts = append(doubts, plan.LeftOut{Broker: id, Why: drain.NotTold.Because(plan.S("broker", id), plan.S("error", err.Error()))})
		case d.asks.Reported:
			in.Snapshot = drain.Told(in.Snapshot, id, owned)
			r = planned()
		default:
			doubts = drain.Doubts(in.Snapshot, id, owned)
		}
	}
	if d.asks.Figures != nil && len(r.verdict.Run) > 0 {
		asked = true
		if snap, err := d.asks.Figures(ctx, in.Snapshot); err == nil {
			in.Snapshot = snap
			r = planned()
		} else {
			d.logger.Debug("a drain goes by the figures that brokers publish", "error", err)
		}
	}
	r.plan.Waiting = append(r.plan.Waiting, doubts...)
	delete(d.rests, id)
	if asked && len(r.verdict.Run) == 0 {
		rest := drainRest
		if len(doubts) > 0 {
			rest = drainDoubt
		}
		d.rests[id] = drainRests{sight, d.clock.Now().Add(rest)}
	}
	return r, true
}

// sight is what there is to be seen of a broker that is drained, without where its bundles would go.
func (r *drainRound) sight(id string) string {
	var b strings.Builder
	if at := r.snap.BrokerIndex(id); at >= 0 {
		b.WriteString(r.snap.Brokers[at].Stale.Code)
	}
	for _, d := range r.verdict.Run {
		b.WriteString("\nleaves " + d.Bundle)
	}
	for _, x := range r.verdict.Refused {
		b.WriteString("\n" + x.Why.Code + " " + x.Decision.Bundle)
	}
	for _, l := range r.plan.Waiting {
		b.WriteString("\n" + l.Why.Code + " " + l.Bundle)
	}
	for _, l := range r.plan.Stay {
		b.WriteString("\n" + l.Why.Code + " " + l.Bundle)
	}
	return b.String()
}
