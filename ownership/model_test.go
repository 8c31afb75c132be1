package ownership

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model is the ownership topic evaluated again from its start, rule by rule as they are written down, with no thought for speed.
type model struct {
	log []Message
}

type modelRecord struct {
	data                      event.ServiceUnitStateData
	id                        ID
	since, owner, inFlightAge int64
}

// transitions are the valid ones of the system topic.
var transitions = map[string]bool{
	"Init Free": true, "Init Owned": true, "Init Assigning": true, "Init Releasing": true, "Init Splitting": true, "Init Deleted": true,
	"Free Assigning": true, "Free Init": true, "Owned Splitting": true, "Owned Releasing": true, "Assigning Owned": true,
	"Releasing Assigning": true, "Releasing Free": true, "Splitting Deleted": true, "Deleted Init": true,
}

// modelKeeps says whether the old record is kept.
func modelKeeps(old *modelRecord, m Message) bool {
	if m.Bundle == "" {
		return true
	}
	if old != nil && m.ID != (ID{}) && !modelAfter(m.ID, old.id) {
		return true
	}
	if m.Data == nil {
		return false
	}
	n := *m.Data
	if n.State != event.Free && event.Blank(n.DstBroker) && event.Blank(n.SourceBroker) {
		return true
	}
	from := "Init"
	if old != nil {
		o := old.data
		from = string(o.State)
		wraps := o.VersionID == math.MaxInt64 && n.VersionID == math.MinInt64
		if !wraps {
			if o.VersionID >= n.VersionID {
				return true
			}
			if n.VersionID != o.VersionID+1 {
				return false
			}
		}
	}
	if n.Force {
		return false
	}
	if !transitions[from+" "+string(n.State)] {
		return true
	}
	if old == nil {
		return false
	}
	null := func(id string, empty bool) string { return fmt.Sprint(id, id == "" && !empty) }
	oDst, oSrc := null(old.data.DstBroker, old.data.EmptyDst), null(old.data.SourceBroker, old.data.EmptySource)
	nDst, nSrc := null(n.DstBroker, n.EmptyDst), null(n.SourceBroker, n.EmptySource)
	nobody := null("", false)
	switch from + " " + string(n.State) {
	case "Owned Splitting":
		return !event.Blank(n.DstBroker) || oDst == nobody || oDst != nSrc
	case "Owned Releasing":
		return event.Blank(n.SourceBroker) || oDst == nobody || oDst != nSrc || oDst == nDst
	case "Assigning Owned", "Releasing Free", "Splitting Deleted":
		return oDst != nDst || oSrc != nSrc
	case "Releasing Assigning":
		return event.Blank(n.DstBroker) || oDst != nDst || oSrc != nSrc
	case "Free Assigning":
		return !event.Blank(n.SourceBroker) || event.Blank(n.DstBroker)
	}
	return false
}

func modelAfter(a, b ID) bool {
	if a.Ledger != b.Ledger {
		return a.Ledger > b.Ledger
	}
	if a.Entry != b.Entry {
		return a.Entry > b.Entry
	}
	return a.Batch > b.Batch
}

func modelOwner(r *modelRecord) string {
	switch {
	case r != nil && r.data.State == event.Owned:
		return r.data.DstBroker
	case r != nil && r.data.State == event.Splitting:
		return r.data.SourceBroker
	}
	return ""
}

func modelInFlight(r *modelRecord) bool {
	return r != nil && slices.Contains([]event.ServiceUnitState{event.Assigning, event.Releasing, event.Splitting}, r.data.State)
}

// evaluate reads the whole log.
func (m *model) evaluate() map[string]*modelRecord {
	records := make(map[string]*modelRecord)
	for _, message := range m.log {
		old := records[message.Bundle]
		if modelKeeps(old, message) {
			continue
		}
		if message.Data == nil {
			delete(records, message.Bundle)
			continue
		}
		r := &modelRecord{data: *message.Data, id: message.ID, since: message.At}
		if modelOwner(r) != "" {
			r.owner = message.At
			if modelOwner(old) == modelOwner(r) {
				r.owner = old.owner
			}
		}
		if modelInFlight(r) {
			r.inFlightAge = message.At
			if modelInFlight(old) {
				r.inFlightAge = old.inFlightAge
			}
		}
		records[message.Bundle] = r
	}
	return records
}

// describe writes down everything that a snapshot answers.
func describe(s *Snapshot) map[string]string {
	all := make(map[string]string)
	for bundle, r := range s.All() {
		all[bundle] = fmt.Sprintf("%+v %v %d %d %d", r.Data, r.ID, r.Since, r.OwnerSince, r.InFlightSince)
	}
	for broker, count := range s.Owners() {
		all["owned by "+broker] = fmt.Sprint(count, s.OwnedCount(broker), slices.Collect(s.Owned(broker)))
	}
	var flying []string
	for bundle := range s.InFlight() {
		flying = append(flying, bundle)
	}
	all["in flight"] = fmt.Sprint(s.InFlightCount(), flying)
	all["size"] = fmt.Sprint(s.Len())
	return all
}

// describeModel writes down the same from the model.
func describeModel(records map[string]*modelRecord) map[string]string {
	all := make(map[string]string)
	ownedBy := make(map[string][]string)
	var flying []string
	for _, bundle := range slices.Sorted(maps.Keys(records)) {
		r := records[bundle]
		all[bundle] = fmt.Sprintf("%+v %v %d %d %d", r.data, r.id, r.since, r.owner, r.inFlightAge)
		if broker := modelOwner(r); broker != "" {
			ownedBy[broker] = append(ownedBy[broker], bundle)
		}
		if modelInFlight(r) {
			flying = append(flying, bundle)
		}
	}
	for broker, bundles := range ownedBy {
		all["owned by "+broker] = fmt.Sprint(len(bundles), len(bundles), bundles)
	}
	all["in flight"] = fmt.Sprint(len(flying), flying)
	all["size"] = fmt.Sprint(len(records))
	return all
}

// drawMessage draws what one of several publishers would write, who know the topic only up to some point: mostly plausible records,
// sometimes late, doubled, forced, with gaps, without sense.
func drawMessage(t *rapid.T, m *model, n int) Message {
	view := model{m.log[:len(m.log)-rapid.IntRange(0, min(3, len(m.log))).Draw(t, "behind")]}
	bundle := rapid.SampledFrom([]string{"t/n/0x00000000_0x40000000", "t/n/0x40000000_0x80000000", "t/m/0x00000000_0xffffffff", ""}).Draw(t, "bundle")
	broker := rapid.SampledFrom([]string{"a:1", "b:1", "c:1", ""})
	message := Message{Bundle: bundle, At: int64(1000 + 10*n)}
	if rapid.IntRange(0, 9).Draw(t, "with an id") > 0 {
		message.ID = ID{Ledger: 5, Entry: int64(n), Batch: -1}
	}
	old := view.evaluate()[bundle]
	if rapid.IntRange(0, 15).Draw(t, "tombstone") == 0 || old != nil && old.data.State == event.Deleted {
		return message
	}
	d := &event.ServiceUnitStateData{Timestamp: message.At, VersionID: 1}
	if old != nil {
		d.VersionID = old.data.VersionID + 1
	}
	plausible(t, d, old, broker)
	if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
		d.State = rapid.SampledFrom(States()).Draw(t, "state")
		d.DstBroker, d.SourceBroker = broker.Draw(t, "dst"), broker.Draw(t, "source")
		d.EmptyDst = d.DstBroker == "" && rapid.Bool().Draw(t, "empty dst")
		d.EmptySource = d.SourceBroker == "" && rapid.Bool().Draw(t, "empty source")
		d.Force = rapid.Bool().Draw(t, "force")
		d.VersionID += rapid.SampledFrom([]int64{0, 0, 0, -1, 1, 2, math.MaxInt64}).Draw(t, "versions off")
	}
	message.Data = d
	return message
}

// plausible fills in what may follow a record.
func plausible(t *rapid.T, d *event.ServiceUnitStateData, old *modelRecord, broker *rapid.Generator[string]) {
	state := event.Init
	if old != nil {
		state = old.data.State
		d.DstBroker, d.SourceBroker = old.data.DstBroker, old.data.SourceBroker
	}
	switch state {
	case event.Init, event.Free:
		d.State, d.DstBroker, d.SourceBroker = event.Assigning, broker.Draw(t, "dst"), ""
	case event.Assigning:
		d.State = event.Owned
	case event.Owned:
		d.State = rapid.SampledFrom([]event.ServiceUnitState{event.Releasing, event.Releasing, event.Splitting}).Draw(t, "state")
		d.DstBroker, d.SourceBroker = "", old.data.DstBroker
		if d.State == event.Releasing {
			d.DstBroker = broker.Draw(t, "dst")
		}
	case event.Releasing:
		d.State = event.Free
		if d.DstBroker != "" {
			d.State = event.Assigning
		}
	case event.Splitting:
		d.State = event.Deleted
	}
}

// TestFoldEqualsModel applies random interleavings: after every message the fold equals the topic evaluated again from its start, the
// outcome says what happened, and snapshots that were taken before are what they were.
func TestFoldEqualsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fold := NewFold()
		var m model
		var taken []*Snapshot
		var then []map[string]string
		for n := range rapid.IntRange(1, 40).Draw(t, "messages") {
			before := m.evaluate()
			message := drawMessage(t, &m, n)
			m.log = append(m.log, message)
			outcome := fold.Apply(message)
			after := m.evaluate()
			if outcome.Keep != modelKeeps(before[message.Bundle], message) {
				t.Fatalf("message %d %+v: kept: %t by rule %s", n, message, outcome.Keep, outcome.Rule)
			}
			if changed := modelOwner(before[message.Bundle]) != modelOwner(after[message.Bundle]); changed != outcome.OwnerChanged() {
				t.Fatalf("message %d %+v: owner changed: %t", n, message, outcome.OwnerChanged())
			}
			snapshot := fold.Snapshot()
			want := describeModel(after)
			if diff := cmp.Diff(want, describe(snapshot)); diff != "" {
				t.Fatalf("after message %d %+v the fold differs (-model +fold):\n%s", n, message, diff)
			}
			taken, then = append(taken, snapshot), append(then, want)
		}
		for i := range taken {
			if diff := cmp.Diff(then[i], describe(taken[i])); diff != "" {
				t.Fatalf("snapshot %d changed (-then +now):\n%s", i, diff)
			}
		}
	})
}

// TestSnapshotsUnderWrites reads snapshots in other goroutines while the fold goes on. It says something under the race detector.
func TestSnapshotsUnderWrites(t *testing.T) {
	fold := NewFold()
	var readers sync.WaitGroup
	for round := range 50 {
		for i := range 40 {
			bundle := event.BundleName{Namespace: "t/n", Range: event.Range{Lower: uint32(i), Upper: uint32(i + 1)}}.String()
			d := record(event.Owned, int64(3*round+1), fmt.Sprint("b", (i+round)%3, ":1"), "")
			fold.Apply(Message{Bundle: bundle, Data: d, ID: ID{1, int64(round*40 + i), -1}, At: int64(round)})
		}
		snapshot := fold.Snapshot()
		readers.Go(func() {
			total := 0
			for _, count := range snapshot.Owners() {
				total += count
			}
			if total != 40 || snapshot.Len() != 40 {
				t.Errorf("round %d: %d bundles are owned of %d", round, total, snapshot.Len())
			}
			for bundle, r := range snapshot.All() {
				if r.Data.VersionID != int64(3*round+1) {
					t.Errorf("round %d: %s has version %d", round, bundle, r.Data.VersionID)
				}
			}
		})
	}
	readers.Wait()
}
