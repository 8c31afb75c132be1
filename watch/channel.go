package watch

import (
	"fmt"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// channel finds an ownership topic that does not say what it should. Silence never means that there are no bundles.
func (l *look) channel() {
	if c := l.p.Channel; c != nil {
		l.subscription(c)
	}
	if len(l.p.Loaded) > 0 {
		l.unknownBundles()
	}
}

func (l *look) subscription(c *Channel) {
	if !c.Connected {
		since := l.lasts(ChannelBlind, "")
		if c.BlindSince > 0 {
			since = min(since, c.BlindSince)
		}
		severity := Warning // a topic that moves is away for a moment
		if l.p.Now-since > l.w.lim.Silence {
			severity = Error
		}
		l.add(Anomaly{Severity: severity, Since: since, Why: ChannelBlind.Because(plan.N("seconds", (l.p.Now-since)/1000), plan.S("error", orNone(c.Error))),
			Advice: "nothing is decided meanwhile; look up the topic's owner and its log"})
		return
	}
	if c.Lost > 0 {
		l.add(Anomaly{Severity: Warning, Since: l.lasts(ChannelLost, ""), Why: ChannelLost.Because(plan.N("count", c.Lost)),
			Advice: "the topic is read anew; if this stays, its entries cannot be fetched over admin REST"})
	}
	l.behind(c)
}

// behind compares what was delivered with the topic's last entry. What was there when the topic had first been read to its
// end does not count: the end of a compacted topic may have been compacted away.
func (l *look) behind(c *Channel) {
	w := l.w
	if l.p.Topic == nil || !c.CaughtUp {
		return
	}
	last := l.p.Topic.Last
	if !w.caught {
		w.caught, w.seen = true, last
	}
	if last.Entry < 0 || !after(last, w.seen) || !after(last, c.Last) {
		return // an empty ledger says nothing
	}
	since := l.lasts(ChannelBehind, entry(c.Last))
	if age := l.p.Now - since; age >= w.lim.Silence {
		l.add(Anomaly{Severity: Error, Since: since, Why: ChannelBehind.Because(plan.S("last", entry(last)), plan.S("read", entry(c.Last)), plan.N("seconds", age/1000)),
			Advice: "the channel is silent although it is written to: the topic may be owned and not served; unload the bundle of pulsar/system that it is in"})
	}
}

// after says whether entry a is behind b, batches apart.
func after(a, b ownership.ID) bool {
	a.Batch, b.Batch = 0, 0
	return a.Compare(b) > 0
}

func entry(id ownership.ID) string { return fmt.Sprintf("%d:%d", id.Ledger, id.Entry) }

// unknownBundles finds brokers that report load of bundles of which the log knows nothing, not even a part. Lists come once a
// minute: one counts when it came long enough after the bundles were first missed, as splits and deletions are older news then.
func (l *look) unknownBundles() {
	for _, report := range l.p.Loaded {
		var unknown []string
		for _, bundle := range report.Bundles {
			if policy.KindOf(policy.NamespaceOf(bundle)) != policy.OfBroker && !l.known(bundle) {
				unknown = append(unknown, bundle)
			}
		}
		if len(unknown) == 0 || len(l.p.Brokers) > 0 && !l.registered(report.Broker) {
			continue
		}
		since := l.lasts(ChannelSilent, report.Broker)
		if age := report.Heard - since; age >= l.w.lim.Silence {
			l.add(Anomaly{Severity: Error, Broker: report.Broker, Since: since,
				Why:    ChannelSilent.Because(plan.S("broker", report.Broker), plan.N("count", len(unknown)), plan.N("seconds", age/1000)),
				Advice: "the first of them is " + unknown[0] + "; compare with a lookup: records are missing from the log, or the broker serves what it does not own"})
		}
	}
}

// known says whether the log has a record of the bundle, of a part of it, or of one that it is a part of.
func (l *look) known(bundle string) bool {
	if _, ok := l.p.Owners.Get(bundle); ok {
		return true
	}
	b, err := event.ParseBundle(bundle)
	if err != nil {
		return true // nothing can be said about it
	}
	for name := range l.p.Owners.Namespace(b.Namespace) {
		if o, err := event.ParseBundle(name); err == nil && o.Range.Lower < b.Range.Upper && b.Range.Lower < o.Range.Upper {
			return true
		}
	}
	return false
}
