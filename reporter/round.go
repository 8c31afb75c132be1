package reporter

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// round is one Poll that is going on.
type round struct {
	r   *Reporter
	now time.Time

	mu     sync.Mutex
	out    Round
	errs   []error
	itself *member // a broker that publishes itself
}

func (p *round) millis() int64 { return p.now.UnixMilli() }

// configuration asks once whether brokers store their reports.
func (p *round) configuration(ctx context.Context) {
	if p.r.known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.r.o.Timeout)
	defer cancel()
	if config, err := p.r.o.Cluster.RuntimeConfig(ctx); err == nil {
		p.r.rules.Unwritten, p.r.known = strings.EqualFold(config["loadBalancerEnabled"], "false"), true
	}
}

// departed is a broker that has left the registry.
type departed struct {
	*Broker
	events []Event   // take back what was published of it
	until  time.Time // as long as this they are repeated
}

// takingBack is for how long tombstones are repeated: the broker that is gone may have served the very topics, and who listens
// finds them again only after a while.
const takingBack = time.Minute

// registry takes over who is registered, and takes back what was published of those that are no more.
func (p *round) registry(ctx context.Context) {
	r := p.r
	limited, cancel := context.WithTimeout(ctx, r.o.Timeout)
	ids, err := r.o.Cluster.BrokerIDs(limited)
	cancel()
	if err != nil { // those that are known go on
		p.why(NoRegistry.Because(plan.S("error", err.Error())))
		p.failed(err)
		return
	}
	for _, id := range slices.Sorted(maps.Keys(r.brokers)) {
		if !slices.Contains(ids, id) {
			r.gone = append(r.gone, p.leaving(r.brokers[id].Broker))
			delete(r.brokers, id)
			r.setStale(id, nil)
		}
	}
	for _, id := range ids {
		if r.brokers[id] == nil {
			r.brokers[id] = &member{Broker: NewBroker(id)}
		}
	}
	for _, m := range r.brokers {
		p.note(m)
	}
	p.inherit()
	r.gone = slices.DeleteFunc(r.gone, func(d departed) bool {
		if m := r.brokers[d.ID]; m != nil { // what is back is published anew
			m.inherit(d.reported())
			return true
		}
		return p.send(ctx, d.Broker, d.events) && !p.now.Before(d.until) && p.settle(ctx, d.Broker)
	})
}

// leaving is a broker that is no longer registered.
func (p *round) leaving(b *Broker) departed {
	d := departed{Broker: b, events: b.Withdraw(), until: p.now}
	if len(d.events) > 0 {
		d.until = p.now.Add(takingBack)
	}
	return d
}

// broker reads one broker and publishes what is due.
func (p *round) broker(ctx context.Context, m *member) {
	line := BrokerRound{ID: m.ID}
	defer func() {
		line.Class, line.Heard = m.class, m.Heard()
		if d, ok := m.Load(); ok {
			line.Load = &d
		}
		if why, ok := m.Stale(); ok {
			line.Stale = &why
		}
		p.mu.Lock()
		p.out.Brokers = append(p.out.Brokers, line)
		p.mu.Unlock()
	}()
	if m.class == "" && !p.classify(ctx, m) {
		return
	}
	if PublishesItself(m.class) {
		p.bundles(ctx, m)
		return
	}
	if p.beside() != nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, p.r.o.Timeout)
	report, err := p.r.o.Reports.LoadReport(limited, m.ID)
	cancel()
	switch {
	case ctx.Err() != nil:
		return
	case err != nil:
		if !errors.Is(err, context.DeadlineExceeded) && p.classify(ctx, m) && PublishesItself(m.class) {
			p.bundles(ctx, m)
			return
		}
		p.r.o.Metrics.read("failed")
		p.fail(ctx, m, err)
		return
	}
	line.Report = report
	if class := report.LoadManager(); class != "" && class != m.class {
		m.class = class
		p.note(m)
	}
	p.hear(ctx, m, report)
}

// classify asks which load manager a broker runs. False: it did not say.
func (p *round) classify(ctx context.Context, m *member) bool {
	limited, cancel := context.WithTimeout(ctx, p.r.o.Timeout)
	defer cancel()
	class, err := p.r.o.Cluster.LoadManagerOf(limited, m.ID)
	if err == nil {
		m.class = class
		p.note(m)
		return true
	}
	if ctx.Err() == nil && m.class == "" {
		p.send(ctx, m.Broker, m.Fail(p.millis(), &p.r.rules, func(int64) plan.Reason {
			return ManagerUnknown.Because(plan.S("error", err.Error()))
		}))
		p.mark(m)
	}
	return false
}

// note notices a broker that publishes itself.
func (p *round) note(m *member) {
	if !PublishesItself(m.class) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.itself == nil || m.ID < p.itself.ID {
		p.itself = m
	}
}

// beside is the broker beside which nothing may be published; nil while there is none.
func (p *round) beside() *member {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.itself
}

func (p *round) hear(ctx context.Context, m *member, report event.BrokerReport) {
	r := p.r
	events, err := m.Hear(Reading{
		Report: report, Now: p.millis(),
		Registered: func(id string) bool { return id != m.ID && r.brokers[id] != nil },
		HasPolicy:  func(ns string) (bool, error) { return r.policies.has(ctx, p.now, ns) },
	}, &r.rules)
	if err != nil {
		p.why(NoPolicies.Because(plan.S("error", err.Error())))
	}
	result := "good"
	if _, stale := m.Stale(); stale {
		result = "refused"
	}
	r.o.Metrics.read(result)
	if p.beside() == nil {
		p.mark(m)
		p.send(ctx, m.Broker, events)
	}
}

func (p *round) fail(ctx context.Context, m *member, err error) {
	p.send(ctx, m.Broker, m.Fail(p.millis(), &p.r.rules, func(seconds int64) plan.Reason {
		what, since := plan.S("error", err.Error()), plan.N("seconds", seconds)
		var document *event.Error
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return NoAnswer.Because(plan.N("limit", p.r.o.Timeout.Milliseconds()), since, what)
		case errors.Is(err, admin.BadAnswer), errors.As(err, &document):
			return Unreadable.Because(since, what)
		}
		return NotRead.Because(since, what)
	}))
	p.mark(m)
}

func (p *round) mark(m *member) {
	if why, stale := m.Stale(); stale {
		p.r.setStale(m.ID, &why)
	} else {
		p.r.setStale(m.ID, nil)
	}
}

// bundlesLimit is how long the statistics of a broker's topics may take.
const bundlesLimit = 30 * time.Second

// bundles reads the topics of an Extensible broker, if that is due and the rate allows it, and publishes its bundles.
func (p *round) bundles(ctx context.Context, m *member) {
	r := p.r
	r.setStale(m.ID, nil)
	if r.o.BundleStatsInterval <= 0 || p.now.Sub(m.bundlesAt) < r.o.BundleStatsInterval || !r.limiter.AllowN(p.now, 1) {
		return
	}
	limited, cancel := context.WithTimeout(ctx, bundlesLimit)
	defer cancel()
	m.bundlesAt = p.now
	if class, err := r.o.Cluster.LoadManagerOf(limited, m.ID); err == nil && !PublishesItself(class) {
		m.class = "" // the next round reads it as what it is now
		return
	}
	stats, err := r.o.Cluster.BundleStats(limited, m.ID)
	if err != nil {
		if ctx.Err() == nil {
			r.o.Metrics.read("failed")
			r.o.Logger.Warn("the bundles of a broker cannot be read", "broker", m.ID, "error", err)
		}
		return
	}
	r.o.Metrics.read("good")
	p.send(ctx, m.Broker, []Event{{Topic: topics.BundleStats, Key: m.ID, Value: event.BundleStats{BundleStats: stats}}})
}

// alone takes everything back when a broker publishes itself: it would be the leader that reads both. What was published of
// that broker itself is left to be overwritten by it, which it does within seconds of its start: a tombstone could come after.
func (p *round) alone(ctx context.Context) {
	other := p.itself
	if other == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(p.r.brokers)) {
		m := p.r.brokers[id]
		if PublishesItself(m.class) {
			if p.send(ctx, m.Broker, m.leave()) {
				p.settle(ctx, m.Broker)
			}
			continue
		}
		why := Mixed.Because(plan.S("other", other.ID), plan.S("class", other.class))
		if p.send(ctx, m.Broker, m.displace(why)) {
			p.settle(ctx, m.Broker)
		}
		p.mark(m)
		for i := range p.out.Brokers {
			if p.out.Brokers[i].ID == id {
				p.out.Brokers[i].Stale, p.out.Brokers[i].Load = &why, nil
			}
		}
	}
}

// send publishes events of a broker. It says whether all went out; those that did not are due again.
func (p *round) send(ctx context.Context, b *Broker, events []Event) bool {
	if err := p.r.announce(ctx, b.ID, events); err != nil {
		p.failed(err)
		return false
	}
	all := true
	for _, e := range events {
		if err := p.r.sinks.send(ctx, e); err != nil {
			p.failed(err)
			all = false
			continue
		}
		b.Published(e, p.millis())
		p.mu.Lock()
		p.out.Published = append(p.out.Published, e)
		p.mu.Unlock()
	}
	return all
}

// settle removes the record of a broker of which nothing is on the topics any more. It says whether that is done.
func (p *round) settle(ctx context.Context, b *Broker) bool {
	if len(b.reported()) > 0 {
		return true
	}
	if err := p.r.settle(ctx, b.ID); err != nil {
		p.failed(err)
		return false
	}
	return true
}

func (p *round) why(w plan.Reason) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.ContainsFunc(p.out.Why, func(x plan.Reason) bool { return x.Code == w.Code }) {
		p.out.Why = append(p.out.Why, w)
	}
}

func (p *round) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, err)
}

// finish orders what was collected.
func (p *round) finish() Round {
	slices.SortFunc(p.out.Brokers, func(a, b BrokerRound) int { return strings.Compare(a.ID, b.ID) })
	slices.SortStableFunc(p.out.Published, func(a, b Event) int { return cmp.Compare(a.Key, b.Key) })
	return p.out
}
