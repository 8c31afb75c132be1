package watch

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
)

// most is how many anomalies of a moment are remembered, and how many bundles whose versions run backwards.
const most = 1024

// Hear takes the next event of the ownership topic.
func (w *Watcher) Hear(e Event) {
	if len(w.events) < w.lim.Events {
		w.events = append(w.events, e)
	} else {
		w.events[w.next] = e
	}
	w.next = (w.next + 1) % w.lim.Events
	if !e.Continuous {
		delete(w.back, e.Bundle)
		return
	}
	if e.Producer != "" {
		w.writers.count(e.Producer, e.Bundle, e.At)
	}
	w.versions(e)
}

// versions looks at the version of a record that was heard as it was written.
func (w *Watcher) versions(e Event) {
	if e.Rule != ownership.Backwards {
		delete(w.back, e.Bundle)
	}
	switch {
	case e.Rule == ownership.Gap && e.Data != nil && e.Before != nil:
		w.tell(e.At, Anomaly{Severity: Warning, Bundle: e.Bundle, Since: e.At, Evidence: w.recent(e.Bundle),
			Why:    VersionGap.Because(plan.N("version", e.Data.VersionID), plan.N("before", e.Before.Data.VersionID)),
			Advice: "find who wrote it (see its producer): neither brokers nor Ballast leave a gap; compare the owner with a lookup"})
	case e.Rule == ownership.Backwards && e.Data != nil && e.Before != nil:
		// One late loser of a race is usual. A record that begins anew, and is followed by the next one, is another life of the bundle.
		if n := w.back[e.Bundle]; e.Data.VersionID != int64(n)+1 {
			delete(w.back, e.Bundle)
			return
		}
		if len(w.back) >= most {
			clear(w.back)
		}
		if w.back[e.Bundle]++; w.back[e.Bundle] >= 2 {
			w.tell(e.At, Anomaly{Severity: Warning, Bundle: e.Bundle, Since: e.At, Evidence: w.recent(e.Bundle),
				Why:    VersionBack.Because(plan.N("version", 1), plan.N("before", e.Before.Data.VersionID)),
				Advice: "nothing is decided about the bundle by the log; compare with a lookup, and read the topic anew"})
		}
	}
}

// tell remembers an anomaly of one moment. Of one kind about one subject the newest counts, since the first.
func (w *Watcher) tell(now int64, a Anomaly) {
	key := a.key()
	if before, ok := w.told[key]; ok {
		a.Since = before.a.Since
	} else if len(w.told) >= most {
		w.forget()
	}
	w.told[key] = told{a: a, last: now}
}

// forget drops the anomaly that was seen longest ago.
func (w *Watcher) forget() {
	oldest, at := "", int64(0)
	for key, t := range w.told {
		if oldest == "" || cmp.Or(cmp.Compare(t.last, at), cmp.Compare(key, oldest)) < 0 {
			oldest, at = key, t.last
		}
	}
	delete(w.told, oldest)
}

// newest are the events that are kept, newest first.
func (w *Watcher) newest() iter.Seq[*Event] {
	return func(yield func(*Event) bool) {
		n := len(w.events)
		for i := range n {
			if !yield(&w.events[((w.next-1-i)%n+n)%n]) {
				return
			}
		}
	}
}

// recent are the newest events of a bundle, oldest first.
func (w *Watcher) recent(bundle string) (out []Evidence) {
	for e := range w.newest() {
		if e.Bundle == bundle {
			out = append(out, evidenceOf(e))
		}
		if len(out) == w.lim.Shown {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// evidence puts the newest events about each anomaly beside it.
func (w *Watcher) evidence(list []Anomaly) {
	byBundle, byProducer := map[string][]*Anomaly{}, map[string][]*Anomaly{}
	for i := range list {
		a := &list[i]
		switch a.Why.Code {
		case VersionGap.ID, VersionBack.ID, Beside.ID:
			continue // they have their own
		}
		if a.Bundle != "" {
			byBundle[a.Bundle] = append(byBundle[a.Bundle], a)
		}
		if a.Producer != "" {
			byProducer[a.Producer] = append(byProducer[a.Producer], a)
		}
	}
	if len(byBundle)+len(byProducer) == 0 {
		return
	}
	shown := map[*Anomaly][]Evidence{}
	for e := range w.newest() {
		for _, a := range slices.Concat(byBundle[e.Bundle], byProducer[e.Producer]) {
			if len(shown[a]) < w.lim.Shown && (a.Bundle == "" || a.Bundle == e.Bundle) {
				shown[a] = append(shown[a], evidenceOf(e))
			}
		}
	}
	for a, events := range shown {
		slices.Reverse(events)
		a.Evidence = events
	}
}

func evidenceOf(e *Event) Evidence {
	out := Evidence{At: e.At, Producer: e.Producer, State: "tombstone", Rule: string(e.Rule), Ignored: e.Keep}
	if e.ID != (ownership.ID{}) {
		out.ID = fmt.Sprintf("%d:%d:%d", e.ID.Ledger, e.ID.Entry, e.ID.Batch)
	}
	if e.Data != nil {
		out.fill(e.Data)
	} else if e.Rule == ownership.Unreadable {
		out.State = "unreadable"
	}
	return out
}

func (out *Evidence) fill(d *event.ServiceUnitStateData) {
	out.State, out.Version, out.Force, out.Timestamp = string(d.State), d.VersionID, d.Force, d.Timestamp
	out.Source, out.Destination = d.SourceBroker, d.DstBroker
}

// recordEvidence is the present record of a bundle, for bundles whose events were heard by nobody.
func recordEvidence(r *ownership.Record) []Evidence {
	out := Evidence{At: r.Since, Rule: "present"}
	if r.ID != (ownership.ID{}) {
		out.ID = fmt.Sprintf("%d:%d:%d", r.ID.Ledger, r.ID.Entry, r.ID.Batch)
	}
	out.fill(&r.Data)
	return []Evidence{out}
}
