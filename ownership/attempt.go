package ownership

import (
	"fmt"

	"github.com/ballast-lb/ballast/event"
)

// Progress is how far a written record has come.
type Progress string

// The stages of a written record.
const (
	Unseen   Progress = "unseen"   // it has not been read back yet
	Accepted Progress = "accepted" // brokers have it: the bundle is on its way
	Settled  Progress = "settled"  // the bundle is where it was wanted
	Beaten   Progress = "beaten"   // another record came first, ours has no effect
	Diverted Progress = "diverted" // ours was accepted, but the bundle ended elsewhere
)

// Final says whether nothing further will come of the record.
func (p Progress) Final() bool { return p == Settled || p == Beaten || p == Diverted }

// Attempt follows a written record through what the fold accepts. The zero value is of no use: see Follow.
type Attempt struct {
	Want     Want
	Written  event.ServiceUnitStateData
	Progress Progress
	Owner    string // once final: who owns the bundle, "" if nobody does
	By       string // Beaten, Diverted: what came instead, in words
}

// Follow begins to follow a record.
func Follow(w Want, written event.ServiceUnitStateData) *Attempt {
	return &Attempt{Want: w, Written: written, Progress: Unseen}
}

// See takes what a message of the topic did, in the order of the topic. Messages of other bundles are of no interest.
func (a *Attempt) See(o Outcome) {
	if o.Bundle != a.Want.Bundle || a.Progress.Final() || o.Keep {
		return
	}
	r := o.After
	switch {
	case a.Progress == Unseen && r != nil && sameRecord(r.Data, a.Written):
		a.Progress = Accepted
	case a.Progress == Unseen:
		a.beaten(r)
	default:
		a.onItsWay(r)
	}
}

// Check compares with the present record, for when messages were not seen one by one. It decides only what the record alone tells.
func (a *Attempt) Check(r *Record) {
	switch {
	case a.Progress.Final() || r == nil && a.Progress == Unseen:
	case a.Progress == Accepted:
		a.onItsWay(r)
	case sameRecord(r.Data, a.Written):
		a.Progress = Accepted
	case r.Data.VersionID == a.Written.VersionID:
		a.beaten(r)
	case r.Data.VersionID > a.Written.VersionID && a.arrived(r):
		a.Progress, a.Owner = Settled, r.Owner()
	}
}

// beaten: another record was accepted. It is in the place of ours unless its version is lower, or the bundle's record was
// removed: then ours is still to come, and is decided about when it does.
func (a *Attempt) beaten(r *Record) {
	if r == nil || r.Data.VersionID < a.Written.VersionID {
		return
	}
	a.Progress, a.Owner, a.By = Beaten, r.Owner(), words(r)
}

// onItsWay: ours was accepted, and this is what became of the bundle since.
func (a *Attempt) onItsWay(r *Record) {
	switch {
	case r != nil && sameRecord(r.Data, a.Written):
	case a.arrived(r):
		a.Progress, a.Owner = Settled, r.Owner()
	case r.State() == event.Releasing && a.Want.Action != Place && r.Data.SourceBroker == a.Want.Source && r.Data.DstBroker == a.Want.Destination,
		r.State() == event.Assigning && (a.Want.Action == Unload || r.Data.DstBroker == a.Want.Destination):
		// still on its way
	default:
		a.Progress, a.Owner, a.By = Diverted, r.Owner(), words(r)
	}
}

// arrived says whether a record is what was wanted in the end. A released bundle is done when it is free: its next lookup
// gives it an owner.
func (a *Attempt) arrived(r *Record) bool {
	if a.Want.Action == Unload {
		return r.State() == event.Free || r == nil || r.State() == event.Owned
	}
	return r.State() == event.Owned && r.Data.DstBroker == a.Want.Destination
}

func sameRecord(a, b event.ServiceUnitStateData) bool {
	return a.State == b.State && a.VersionID == b.VersionID && a.DstBroker == b.DstBroker && a.SourceBroker == b.SourceBroker &&
		a.Timestamp == b.Timestamp && a.Force == b.Force
}

// words is a record in words.
func words(r *Record) string {
	if r == nil {
		return "the record was removed"
	}
	text := fmt.Sprintf("%s version %d", r.Data.State, r.Data.VersionID)
	if r.Data.SourceBroker != "" {
		text += " from " + r.Data.SourceBroker
	}
	if r.Data.DstBroker != "" {
		text += " to " + r.Data.DstBroker
	}
	if r.Data.Force {
		text += ", forced"
	}
	return text
}
