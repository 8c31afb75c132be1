package ownership

import (
	"maps"
	"slices"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Times of the world below, in ms. A write of ours lands within landing, which is less than a bundle takes from being owned to
// having no record: a split, or an unload and the removal of a free record.
const (
	worldWait    = 30_000 // loadBalancerInFlightServiceUnitStateWaitingTimeInMillis
	worldDelay   = 120_000
	worldLanding = 400
	worldRemoval = 500
)

const (
	parent  = "t/n/0x00000000_0x80000000"
	left    = "t/n/0x00000000_0x40000000"
	right   = "t/n/0x40000000_0x80000000"
	another = "t/n/0x80000000_0xffffffff"
)

// wire is one record on the log; a nil Data is a tombstone.
type wire struct {
	bundle string
	data   *event.ServiceUnitStateData
}

// obeying is a broker that does what the rules of the channel say (spec: reactions to accepted records, in log order).
type obeying struct {
	id   string
	up   bool
	read int
	view map[string]event.ServiceUnitStateData
	todo []todo
}

// todo is what a broker is about to write, not before a time.
type todo struct {
	at int64
	wire
	split bool // the namespace has the children from then on
}

// world is a log with brokers around it, and us.
type world struct {
	t       *rapid.T
	now     int64
	log     []wire
	brokers []*obeying
	bundles []string // what the namespace is divided into

	fold     *Fold // ours, which misses tombstones now and then
	exact    *Fold // another one that misses nothing
	model    model
	seen     int
	missed   int
	attempts []*Attempt
	landing  []landing // decided, not on the log yet
}

type landing struct {
	by int64
	w  *Attempt
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, now: 1_000_000, bundles: []string{parent, another}, fold: NewFold(), exact: NewFold()}
	for _, id := range []string{"a:1", "b:1", "c:1"} {
		w.brokers = append(w.brokers, &obeying{id: id, up: true, view: map[string]event.ServiceUnitStateData{}})
	}
	return w
}

func (w *world) live() (out []*obeying) {
	for _, b := range w.brokers {
		if b.up {
			out = append(out, b)
		}
	}
	return out
}

func (w *world) registered(id string) bool {
	return slices.ContainsFunc(w.live(), func(b *obeying) bool { return b.id == id })
}

// put appends a record; every fold that misses nothing must then be what the rules say of the whole prefix.
func (w *world) put(x wire) {
	w.log = append(w.log, x)
	m := w.message(len(w.log) - 1)
	w.exact.Apply(m)
	w.model.log = append(w.model.log, m)
	if diff := cmp.Diff(describeModel(w.model.evaluate()), describe(w.exact.Snapshot())); diff != "" {
		w.t.Fatalf("after %d records the fold differs (-model +fold):\n%s", len(w.log), diff)
	}
}

func (w *world) message(i int) Message {
	return Message{Bundle: w.log[i].bundle, Data: w.log[i].data, ID: ID{Ledger: 1, Entry: int64(i + 1), Batch: -1}, At: w.now}
}

// next is the record that a broker writes after what its own view holds.
func (w *world) next(b *obeying, bundle string, s event.ServiceUnitState, dst, src string) *event.ServiceUnitStateData {
	d := &event.ServiceUnitStateData{State: s, DstBroker: dst, SourceBroker: src, Timestamp: w.now, VersionID: 1}
	if old, ok := b.view[bundle]; ok {
		d.VersionID = old.VersionID + 1
	}
	return d
}

// hear lets a broker read one record and decide what to write about it.
func (w *world) hear(b *obeying) {
	if !b.up || b.read == len(w.log) {
		return
	}
	m := w.log[b.read]
	b.read++
	var old *event.ServiceUnitStateData
	if d, ok := b.view[m.bundle]; ok {
		old = &d
	}
	if (Resolver{}).Decide(old, m.data).Keep {
		return
	}
	if m.data == nil {
		delete(b.view, m.bundle)
		return
	}
	d := *m.data
	b.view[m.bundle] = d
	write := func(after int64, split bool, bundle string, next *event.ServiceUnitStateData) {
		b.todo = append(b.todo, todo{w.now + after, wire{bundle, next}, split})
	}
	switch {
	case d.State == event.Assigning && d.DstBroker == b.id:
		write(0, false, m.bundle, w.next(b, m.bundle, event.Owned, d.DstBroker, d.SourceBroker))
	case d.State == event.Releasing && d.SourceBroker == b.id && d.DstBroker != "":
		write(0, false, m.bundle, w.next(b, m.bundle, event.Assigning, d.DstBroker, b.id))
	case d.State == event.Releasing && d.SourceBroker == b.id:
		write(0, false, m.bundle, w.next(b, m.bundle, event.Free, "", b.id))
	case d.State == event.Splitting && d.SourceBroker == b.id:
		for _, c := range d.SplitServiceUnitToDestBroker {
			child := event.NamespaceOf(m.bundle) + "/" + c.Range
			if _, has := b.view[child]; !has {
				write(0, false, child, &event.ServiceUnitStateData{State: event.Owned, DstBroker: b.id, Timestamp: w.now, VersionID: 1})
			}
		}
		write(worldRemoval/2, true, m.bundle, w.next(b, m.bundle, event.Deleted, "", b.id))
	case d.State == event.Deleted && d.SourceBroker == b.id, d.State == event.Free && d.Force && d.SourceBroker == b.id:
		write(worldRemoval/2, false, m.bundle, nil)
	}
}

// act lets a broker write the first thing that it has in mind.
func (w *world) act(b *obeying) {
	if !b.up || len(b.todo) == 0 || b.todo[0].at > w.now {
		return
	}
	x := b.todo[0]
	b.todo = b.todo[1:]
	if x.split {
		w.bundles = []string{left, right, another}
	}
	w.put(x.wire)
}

// override is what the leader does about a record whose broker is gone or that takes too long.
func (w *world) override(leader *obeying, bundle string, d event.ServiceUnitStateData, without string) {
	candidates := slices.DeleteFunc(w.live(), func(b *obeying) bool { return b.id == without })
	src := d.SourceBroker
	if d.State == event.Owned {
		src = d.DstBroker
	}
	next := w.next(leader, bundle, event.Free, "", src)
	if len(candidates) > 0 {
		n := candidates[int(d.VersionID)%len(candidates)].id
		if src == n {
			src = ""
		}
		next = w.next(leader, bundle, event.Owned, n, src)
		if d.State == event.Splitting {
			next = w.next(leader, bundle, event.Splitting, d.DstBroker, n)
			next.SplitServiceUnitToDestBroker = d.SplitServiceUnitToDestBroker
		}
	}
	next.Force = true
	w.put(wire{bundle, next})
}

// lead is one pass of the leader over the records.
func (w *world) lead() {
	all := w.live()
	if len(all) == 0 {
		return
	}
	leader := all[0]
	for _, bundle := range slices.Sorted(maps.Keys(leader.view)) {
		d := leader.view[bundle]
		age := w.now - d.Timestamp
		switch {
		case d.State == event.Owned && !w.registered(d.DstBroker):
			w.override(leader, bundle, d, d.DstBroker)
		case InFlight(d.State) && d.SourceBroker != "" && !w.registered(d.SourceBroker):
			w.override(leader, bundle, d, d.SourceBroker)
		case InFlight(d.State) && d.DstBroker != "" && !w.registered(d.DstBroker):
			w.override(leader, bundle, d, d.DstBroker)
		case InFlight(d.State) && age > worldWait:
			w.override(leader, bundle, d, "")
		case !Active(d.State) && age > worldDelay && leader.read == len(w.log):
			// One that lags could remove a record that is in use by now: tombstones are accepted whatever they hit.
			w.put(wire{bundle, nil})
		}
	}
}

// ask is a request to a broker by somebody else: a lookup, an unload, a split.
func (w *world) ask(b *obeying) {
	bundle := rapid.SampledFrom(w.bundles).Draw(w.t, "asked about")
	to := rapid.SampledFrom(w.live()).Draw(w.t, "chosen").id
	d, has := b.view[bundle]
	switch {
	case !has || d.State == event.Free:
		w.put(wire{bundle, w.next(b, bundle, event.Assigning, to, "")})
	case d.State != event.Owned:
	case bundle == parent && rapid.IntRange(0, 3).Draw(w.t, "split") == 0:
		x := w.next(b, bundle, event.Splitting, "", d.DstBroker)
		x.SplitServiceUnitToDestBroker = []event.SplitDestination{{Range: left[4:]}, {Range: right[4:]}}
		w.put(wire{bundle, x})
	case to != d.DstBroker && rapid.Bool().Draw(w.t, "transfer"):
		w.put(wire{bundle, w.next(b, bundle, event.Releasing, to, d.DstBroker)})
	default:
		w.put(wire{bundle, w.next(b, bundle, event.Releasing, "", d.DstBroker)})
	}
}

// follow lets us read one record. A tombstone may be missed, as client libraries do.
func (w *world) follow(miss bool) {
	if w.seen == len(w.log) {
		return
	}
	m := w.message(w.seen)
	w.seen++
	if m.Data == nil && miss {
		w.missed++
		return
	}
	o := w.fold.Apply(m)
	for _, a := range w.attempts {
		a.See(o)
	}
}

// want lets us try to write something.
func (w *world) want() {
	s := Sight{Now: w.now, Snapshot: w.fold.Snapshot(), Topic: Reading{CaughtUp: w.seen == len(w.log)},
		Facts: Facts{TableView: topicClass, TombstoneDelay: worldDelay}}
	for _, b := range w.live() {
		s.Facts.Brokers = append(s.Facts.Brokers, Member{b.id, "4.2.4", managerClass})
	}
	broker := rapid.SampledFrom([]string{"a:1", "b:1", "c:1"})
	want := Want{Bundle: rapid.SampledFrom([]string{parent, left, right, another}).Draw(w.t, "bundle"), Destination: broker.Draw(w.t, "to")}
	s.Exists = slices.Contains(w.bundles, want.Bundle)
	r, _ := s.Snapshot.Get(want.Bundle)
	switch want.Action = rapid.SampledFrom([]Action{Transfer, Transfer, Unload, Place}).Draw(w.t, "action"); want.Action {
	case Transfer:
		want.Source = r.Owner()
	case Unload:
		want.Source, want.Destination = r.Owner(), ""
	}
	s.Answer.Asked = w.now
	for _, b := range w.live() {
		if d, ok := b.view[want.Bundle]; ok && d.State == event.Owned && d.DstBroker == b.id && (want.Action == Place || b.id == want.Source) {
			s.Answer.Owners = append(s.Answer.Owners, b.id)
		}
	}
	d, refused := Write(s, want)
	if !refused.IsZero() {
		return
	}
	a := Follow(want, d)
	w.attempts = append(w.attempts, a)
	w.landing = append(w.landing, landing{w.now + worldLanding, a})
}

// land puts what we decided to write onto the log, and looks at what it does there.
func (w *world) land() {
	if len(w.landing) == 0 {
		return
	}
	a := w.landing[0].w
	w.landing = w.landing[1:]
	var present *event.ServiceUnitStateData
	if r, ok := w.exact.Get(a.Want.Bundle); ok {
		present = &r.Data
	}
	v := (Resolver{}).Decide(present, &a.Written)
	switch {
	case v.Rule == Gap || v.Rule == Forced || v.Gap > 0:
		w.t.Fatalf("%+v is decided by %s over %+v", a.Written, v.Rule, present)
	case a.Written.VersionID > NextVersion(present) && present != nil:
		w.t.Fatalf("%+v leaves a gap after %+v", a.Written, present)
	case !v.Keep && a.Want.Action != Place && (present == nil || present.State != event.Owned || present.DstBroker != a.Written.SourceBroker):
		w.t.Fatalf("%+v is accepted over %+v, which its source does not own", a.Written, present)
	case !v.Keep && a.Want.Action == Place && present != nil && present.State != event.Free:
		w.t.Fatalf("%+v is accepted over %+v, which is not unowned", a.Written, present)
	}
	data := a.Written
	w.put(wire{a.Want.Bundle, &data})
}

// pass lets time pass, at most until something must have landed.
func (w *world) pass(ms int64) {
	w.now += ms
	for len(w.landing) > 0 && w.landing[0].by <= w.now {
		w.land()
	}
}

// calm lets everybody do what is left to do, with the leader at work: afterwards nothing may be in flight.
func (w *world) calm() {
	for range 12 {
		w.pass(worldWait / 2)
		for range 40 {
			for _, b := range w.brokers {
				w.hear(b)
				w.act(b)
			}
			w.now += worldRemoval / 20
		}
		w.lead()
	}
	for range 200 {
		for _, b := range w.brokers {
			w.hear(b)
			w.act(b)
		}
		w.now += worldRemoval / 20
	}
	for w.seen < len(w.log) {
		w.follow(false)
	}
}

// TestWritesAreSafe: whatever brokers, others and faults do in between, what we write is never a gap and never of the wrong source;
// the fold equals the rules on every prefix; and what is in flight ends.
func TestWritesAreSafe(t *testing.T) {
	var written, settled, beaten, missed int
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		faults := rapid.Bool().Draw(t, "tombstones are missed")
		for range rapid.IntRange(50, 300).Draw(t, "steps") {
			b := rapid.SampledFrom(w.brokers).Draw(t, "broker")
			switch rapid.IntRange(0, 19).Draw(t, "what") {
			case 0, 1, 2:
				for range rapid.IntRange(1, 6).Draw(t, "records") {
					w.hear(b)
				}
			case 3:
				for range 6 {
					for _, b := range w.brokers {
						w.hear(b)
						w.act(b)
					}
				}
			case 4, 5, 6:
				w.act(b)
			case 7, 8:
				if len(w.live()) > 0 && b.up {
					w.ask(b)
				}
			case 9:
				w.lead()
			case 10:
				if b.up && len(w.live()) > 1 {
					b.up, b.todo = false, nil
				} else if !b.up {
					b.up, b.read, b.view = true, 0, map[string]event.ServiceUnitStateData{}
					for b.read < len(w.log) { // it reads the past without acting on it
						w.hear(b)
					}
					b.todo = nil
				}
			case 11, 12, 13:
				w.follow(faults && rapid.Bool().Draw(t, "missed"))
			case 14:
				for w.seen < len(w.log) {
					w.follow(faults && rapid.Bool().Draw(t, "missed"))
				}
				w.want()
			case 15, 16:
				for w.seen < len(w.log) {
					w.follow(faults && rapid.Bool().Draw(t, "missed"))
				}
				w.want()
				w.want()
			case 17:
				w.land()
			default:
				w.pass(rapid.SampledFrom([]int64{20, 100, worldRemoval, 20_000, worldDelay}).Draw(t, "time"))
			}
		}
		w.calm()
		for bundle, r := range w.exact.Snapshot().InFlight() {
			t.Errorf("%s is %s since %d ms, with everybody well again", bundle, r.State(), w.now-r.InFlightSince)
		}
		for _, a := range w.attempts {
			if !a.Progress.Final() && w.missed == 0 {
				t.Errorf("what came of %+v is not known in the end: %s", a.Written, a.Progress)
			}
			settled, beaten = settled+count(a.Progress == Settled), beaten+count(a.Progress == Beaten)
		}
		written, missed = written+len(w.attempts), missed+w.missed
	})
	t.Logf("%d writes, %d settled, %d beaten, %d tombstones missed", written, settled, beaten, missed)
	if written == 0 || settled == 0 || beaten == 0 || missed == 0 {
		t.Error("the worlds showed nothing")
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
