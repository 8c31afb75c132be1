package ownership

import (
	"math"

	"github.com/ballast-lb/ballast/event"
)

// Rule is the rule that decided about a record: a stable code.
type Rule string

// Why a record was accepted.
const (
	Tombstone Rule = "tombstone"    // removes the bundle; always accepted
	First     Rule = "first-record" // the bundle had none
	Next      Rule = "next-version" // the next version, by the state machine
	Gap       Rule = "version-gap"  // two or more versions ahead: accepted unchecked, as the history may be compacted
	Forced    Rule = "forced"       // force: states and brokers are not checked
)

// Why a record was ignored and the present one kept.
const (
	Stale         Rule = "stale-version"      // the version is the present one: it lost a race
	Backwards     Rule = "version-backwards"  // the version is below the present one
	TooFarAhead   Rule = "version-too-far"    // metadata store: not the next version
	NotFirst      Rule = "not-first-version"  // metadata store: a first record must have version 1
	BadTransition Rule = "invalid-transition" // its state may not follow the present one
	BadBrokers    Rule = "brokers-mismatch"   // its brokers do not fit the present ones
	Undecidable   Rule = "owner-missing"      // the present record is Owned by nobody: Pulsar throws here
)

// Verdict is what is done with a new record.
type Verdict struct {
	Keep bool // the present record stays, the new one is ignored
	Rule Rule // which rule decided
	Gap  int64
}

// Resolver decides between the present record of a bundle and a new one. The zero value is what every broker uses that reads
// the system topic (Pulsar: ServiceUnitStateDataConflictResolver).
type Resolver struct {
	Store         Store
	IgnoreBrokers bool // do not compare brokers; a switch of Pulsar's class that its brokers leave alone
}

// Decide applies the rules of conflict. A nil present record is none; a nil new one is a tombstone. Gap of the verdict is the
// number of versions that are missing between the two.
func (r Resolver) Decide(present, next *event.ServiceUnitStateData) Verdict {
	if next == nil {
		return Verdict{Rule: Tombstone}
	}
	from := event.Init
	if present != nil {
		from = present.State
		if verdict, final := r.decideVersions(present.VersionID, next.VersionID); final {
			return verdict
		}
	} else if r.Store == MetadataStore {
		// The version alone decides about a first record: its state is never looked at.
		return Verdict{Keep: next.VersionID != 1, Rule: either(next.VersionID == 1, First, NotFirst)}
	}
	switch {
	case next.Force:
		return Verdict{Rule: Forced}
	case !ValidTransition(from, next.State, r.Store):
		return Verdict{Keep: true, Rule: BadTransition}
	case present == nil:
		return Verdict{Rule: First}
	case r.IgnoreBrokers:
		return Verdict{Rule: Next}
	}
	if rule := brokers(present, next); rule != Next {
		return Verdict{Keep: true, Rule: rule}
	}
	return Verdict{Rule: Next}
}

// decideVersions applies the version rules; not final means that the new version is the next one, also around the end of the numbers.
func (r Resolver) decideVersions(present, next int64) (verdict Verdict, final bool) {
	switch {
	case present == math.MaxInt64 && next == math.MinInt64:
		return Verdict{}, false
	case present == next:
		return Verdict{Keep: true, Rule: Stale}, true
	case present > next:
		return Verdict{Keep: true, Rule: Backwards}, true
	case next == present+1:
		return Verdict{}, false
	}
	missing := next - present - 1
	if missing < 0 { // more than fit into 63 bits
		missing = math.MaxInt64
	}
	if r.Store == MetadataStore {
		return Verdict{Keep: true, Rule: TooFarAhead, Gap: missing}, true
	}
	return Verdict{Rule: Gap, Gap: missing}, true
}

// brokers compares the brokers of two records of which the second may follow the first. Null equals null only.
func brokers(present, next *event.ServiceUnitStateData) Rule {
	var keep bool
	switch present.State {
	case event.Owned:
		return ownedBrokers(present, next)
	case event.Assigning, event.Splitting: // to Owned, to Deleted
		keep = !sameBrokers(present, next)
	case event.Releasing: // to Free or Assigning
		keep = next.State == event.Assigning && event.Blank(next.DstBroker) || !sameBrokers(present, next)
	case event.Free:
		keep = next.State == event.Assigning && (!event.Blank(next.SourceBroker) || event.Blank(next.DstBroker))
	}
	return either(keep, BadBrokers, Next)
}

// ownedBrokers compares brokers when an owner splits or gives up a bundle: the source must be the present owner.
func ownedBrokers(present, next *event.ServiceUnitStateData) Rule {
	owner := dst(present)
	if next.State == event.Splitting && !event.Blank(next.DstBroker) ||
		next.State == event.Releasing && event.Blank(next.SourceBroker) {
		return BadBrokers
	}
	if owner.null {
		return Undecidable
	}
	keep := owner != source(next) || next.State == event.Releasing && owner == dst(next)
	return either(keep, BadBrokers, Next)
}

// broker is a broker id that may be null.
type broker struct {
	id   string
	null bool
}

func dst(d *event.ServiceUnitStateData) broker {
	return broker{d.DstBroker, d.DstBroker == "" && !d.EmptyDst}
}

func source(d *event.ServiceUnitStateData) broker {
	return broker{d.SourceBroker, d.SourceBroker == "" && !d.EmptySource}
}

func sameBrokers(a, b *event.ServiceUnitStateData) bool {
	return dst(a) == dst(b) && source(a) == source(b)
}

func either(condition bool, yes, no Rule) Rule {
	if condition {
		return yes
	}
	return no
}

// NextVersion is the version of the record that may follow the present one, which may be nil: 1 at first, then one more,
// around the end of the numbers as in Java.
func NextVersion(present *event.ServiceUnitStateData) int64 {
	if present == nil {
		return 1
	}
	return present.VersionID + 1
}
