package watch

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ballast-lb/ballast/plan"
)

// writers is what is known of the producers of the ownership topic. A record names its producer, the topic's statistics name
// the addresses of those that are connected: whose address is no broker's is foreign. That is a heuristic: addresses may be
// translated on the way, so nothing is said unless every registered broker is found among the producers.
type writers struct {
	known  map[string]int64  // names that were a broker's, or Ballast's -> Unix ms when last seen
	wrote  map[string]*tally // producers whose records are not judged yet
	before []string          // registered brokers when the statistics were last complete
}

// tally is what a producer wrote since it was first heard.
type tally struct {
	first, last int64
	count       int
	bundle      string // of the last record
}

func newWriters() writers { return writers{known: map[string]int64{}, wrote: map[string]*tally{}} }

// count counts a record of a producer.
func (t *writers) count(producer, bundle string, at int64) {
	w := t.wrote[producer]
	if w == nil {
		if len(t.wrote) >= most {
			t.drop()
		}
		w = &tally{first: at}
		t.wrote[producer] = w
	}
	w.count++
	w.last, w.bundle = at, bundle
}

func (t *writers) drop() {
	oldest := ""
	for name, w := range t.wrote {
		if o := t.wrote[oldest]; o == nil || cmp.Or(cmp.Compare(w.last, o.last), cmp.Compare(name, oldest)) < 0 {
			oldest = name
		}
	}
	delete(t.wrote, oldest)
}

// producers judges who writes to the ownership topic.
func (l *look) producers() {
	t := l.p.Topic
	if t == nil || len(l.p.Brokers) == 0 {
		return
	}
	w := &l.w.writers
	brokerAt := map[string]string{}
	for id, hosts := range t.Hosts {
		for _, h := range hosts {
			if l.registered(id) {
				brokerAt[h] = id
			}
		}
	}
	connected, found := map[string]string{}, map[string]bool{}
	for _, p := range t.Producers {
		connected[p.Name] = p.Address
		if id, ok := brokerAt[p.Address]; ok {
			found[id] = true
			w.known[p.Name] = l.p.Now
		} else if p.Own {
			w.known[p.Name] = l.p.Now
		}
	}
	for len(w.known) > most {
		w.forget()
	}
	l.absent(found, len(brokerAt) > 0)
	complete := len(found) == len(l.p.Brokers)
	if complete {
		for _, name := range slices.Sorted(maps.Keys(connected)) {
			if w.known[name] == 0 {
				l.add(Anomaly{Severity: Warning, Producer: name, Since: l.lasts(ForeignWriter, name),
					Why:    ForeignWriter.Because(plan.S("producer", name), plan.S("address", at(connected[name]))),
					Advice: "brokers obey what it writes; stop it unless it is a tool of yours, and let only the brokers' role produce to pulsar/system"})
			}
		}
	}
	l.records(connected, complete)
}

func (t *writers) forget() {
	oldest := ""
	for name, seen := range t.known {
		if oldest == "" || cmp.Or(cmp.Compare(seen, t.known[oldest]), cmp.Compare(name, oldest)) < 0 {
			oldest = name
		}
	}
	delete(t.known, oldest)
}

// absent finds registered brokers that have no producer, while others have.
func (l *look) absent(found map[string]bool, resolved bool) {
	if !resolved || len(found) == 0 {
		return // the addresses are not those of the brokers: nothing can be told
	}
	for _, id := range l.p.Brokers {
		if found[id] || len(l.p.Topic.Hosts[id]) == 0 {
			continue
		}
		since := l.lasts(NoProducer, id)
		if age := l.p.Now - since; age >= l.w.lim.Gone {
			l.add(Anomaly{Severity: Warning, Broker: id, Since: since, Why: NoProducer.Because(plan.S("broker", id), plan.N("seconds", age/1000)),
				Advice: "look at its log for a load manager that failed to start; restart it if it does not mend itself"})
		}
	}
}

// records judges what was written since the last look. A producer that is not connected any more may have been that of a
// broker that came or went meanwhile; only when the same brokers are there as before is it told that it was none.
func (l *look) records(connected map[string]string, complete bool) {
	w := &l.w.writers
	same := complete && slices.Equal(w.before, l.p.Brokers)
	for _, name := range slices.Sorted(maps.Keys(w.wrote)) {
		t := w.wrote[name]
		address, there := connected[name]
		switch {
		case w.known[name] != 0:
		case complete && there || same:
			l.w.tell(t.last, Anomaly{Severity: Warning, Producer: name, Since: t.first,
				Why:    ForeignRecord.Because(plan.N("count", t.count), plan.S("producer", name), plan.S("address", at(address))),
				Advice: "brokers obey such records; the last one is about " + t.bundle + ": find who writes, and let only the brokers' role produce to pulsar/system"})
			continue // it stays counted, so that the count grows
		case complete: // brokers came or went: it may have been one of them
		default:
			continue // judged when the statistics are complete
		}
		delete(w.wrote, name)
	}
	if complete {
		w.before = slices.Clone(l.p.Brokers)
	}
}

func at(address string) string {
	if address == "" {
		return " (not connected any more)"
	}
	return " at " + address
}
