package watch

import (
	"cmp"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
)

// since is when a record's condition began: when we heard it or, of what had been on the topic before we came, when its writer
// says that it was written.
func (l *look) sinceOf(r *ownership.Record, heard int64) int64 {
	if t := r.Data.Timestamp; heard <= l.p.Backlog && t > 0 && t < heard {
		return t
	}
	return heard
}

// inFlight finds bundles that are on their way for longer than brokers let them. Pulsar's leader overrides them then
// (ServiceUnitStateChannelImpl.monitorOwnerships).
func (l *look) inFlight() {
	for bundle, r := range l.p.Owners.InFlight() {
		since := l.sinceOf(r, r.InFlightSince)
		age := l.p.Now - since
		if age <= l.w.lim.InFlight {
			continue
		}
		a := Anomaly{Severity: l.severity(age, l.w.lim.InFlight), Bundle: bundle, Since: since, state: r.State(), Evidence: recordEvidence(r),
			Why: InFlight.Because(plan.S("state", string(r.State())), plan.N("seconds", age/1000), plan.S("source", orNone(r.Data.SourceBroker)),
				plan.S("destination", orNone(r.Data.DstBroker)), plan.N("limit", l.w.lim.InFlight/1000)),
			Advice: "clients of the bundle wait; look at the log of " + orNone(actor(r)) + ", which should act, and of the leader, which should override it"}
		if who := actor(r); who != "" && len(l.p.Brokers) > 0 && !l.registered(who) {
			a.Broker = who
			a.Advice = who + " should act and is not registered: the leader's ownership monitor should give the bundle to another"
		}
		l.add(a)
	}
}

// actor is the broker whose turn it is while a bundle is in flight.
func actor(r *ownership.Record) string {
	if r.State() == event.Assigning {
		return r.Data.DstBroker
	}
	return r.Data.SourceBroker
}

// owners finds brokers that own bundles and are not registered.
func (l *look) owners() {
	if len(l.p.Brokers) == 0 {
		return // nobody knows
	}
	for broker, count := range l.p.Owners.Owners() {
		if l.registered(broker) {
			continue
		}
		since := l.lasts(OwnerGone, broker)
		age := l.p.Now - since
		if age < l.w.lim.Gone {
			continue
		}
		a := Anomaly{Severity: l.severity(age, l.w.lim.Gone), Broker: broker, Since: since,
			Why:    OwnerGone.Because(plan.S("broker", broker), plan.N("count", count), plan.N("seconds", age/1000)),
			Advice: "clients of these bundles are not served; the leader should override them: look at its log, and whether its metadata session is stable"}
		for bundle := range l.p.Owners.Owned(broker) {
			if len(a.Evidence) == l.w.lim.Shown {
				break
			}
			if r, ok := l.p.Owners.Get(bundle); ok {
				a.Evidence = append(a.Evidence, recordEvidence(r)...)
			}
		}
		l.add(a)
	}
}

// parents finds bundles of one namespace that overlap although both are owned, and records of split bundles that stay.
func (l *look) parents() {
	var list []unit // of one namespace
	namespace := ""
	for bundle, r := range l.p.Owners.All() {
		if ns := event.NamespaceOf(bundle); ns != namespace {
			l.overlaps(list)
			list, namespace = list[:0], ns
		}
		switch r.State() {
		case event.Owned, event.Assigning:
			if b, err := event.ParseBundle(bundle); err == nil {
				list = append(list, unit{bundle, b.Range, r})
			}
		case event.Deleted:
			l.deleted(bundle, r)
		}
	}
	l.overlaps(list)
}

type unit struct {
	bundle string
	event.Range
	record *ownership.Record
}

func (l *look) overlaps(list []unit) {
	slices.SortFunc(list, func(a, b unit) int { return cmp.Or(cmp.Compare(a.Lower, b.Lower), -cmp.Compare(a.Upper, b.Upper)) })
	var widest *unit // the one so far that reaches furthest
	for i := range list {
		u := &list[i]
		if widest == nil || u.Lower >= widest.Upper {
			widest = u
			continue
		}
		l.beside(widest, u)
		if u.Upper > widest.Upper {
			widest = u
		}
	}
}

func (l *look) beside(parent, child *unit) {
	since := l.lasts(Beside, parent.bundle+" "+child.bundle)
	if age := l.p.Now - since; age >= l.w.lim.Overlap {
		l.add(Anomaly{Severity: Error, Bundle: parent.bundle, Since: since, Evidence: slices.Concat(recordEvidence(parent.record), recordEvidence(child.record)),
			Why: Beside.Because(plan.S("other", child.bundle), plan.S("state", string(parent.record.State())), plan.S("owner", orNone(parent.record.Assigned())),
				plan.S("otherState", string(child.record.State())), plan.S("otherOwner", orNone(child.record.Assigned()))),
			Advice: "compare with the namespace's bundles (pulsar-admin namespaces bundles): the one that is not among them is left over from a split that failed; do not move either until that is mended"})
	}
}

func (l *look) deleted(bundle string, r *ownership.Record) {
	since := l.sinceOf(r, r.Since)
	if age := l.p.Now - since; age > l.w.lim.Tombstone+2*l.w.lim.Monitor {
		l.add(Anomaly{Severity: Warning, Bundle: bundle, Since: since, Evidence: recordEvidence(r),
			Why:    ParentLeft.Because(plan.N("seconds", age/1000), plan.N("limit", l.w.lim.Tombstone/1000)),
			Advice: "it does no harm by itself; the leader's ownership monitor does not work if it stays: look at the leader's log"})
	}
}

func (l *look) unreadable() {
	for bundle, why := range l.p.Owners.Unreadable() {
		l.add(Anomaly{Severity: Warning, Bundle: bundle, Since: l.lasts(UnreadableUnit, bundle), Why: UnreadableUnit.Because(plan.S("why", why)),
			Advice: "brokers cannot read it either and keep what they had; nothing is decided about the bundle until its next record"})
	}
}

func orNone(broker string) string {
	if broker == "" {
		return "none"
	}
	return broker
}
