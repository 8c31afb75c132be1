package ownership

import (
	"iter"
	"math"
)

// Suspicion is why the version of a bundle's present record is in doubt: a version that ran backwards may mean that a tombstone
// was missed, after which versions began anew, and one that jumped ahead that records were. Brokers may then hold another
// record, so that the version after ours is a gap to them, which they obey unchecked. Nothing may be written for the bundle.
type Suspicion struct {
	Rule    Rule  // Backwards or Gap
	Present int64 // the version that the present record had
	Seen    int64 // the version of the record that does not fit
	At      int64 // Unix ms by our clock when it came
}

// doubt keeps the suspicions. One ends with a tombstone, and with the next record that follows the present one by the state
// machine: who wrote it held the same record as the fold, or it would not fit.
func (f *Fold) doubt(o Outcome, m Message) {
	switch o.Rule {
	case Backwards, Gap:
		s := Suspicion{Rule: o.Rule, Present: math.MinInt64, Seen: m.Data.VersionID, At: m.At}
		if o.Before != nil {
			s.Present = o.Before.Data.VersionID
		}
		f.state.suspect.Set(m.Bundle, s)
	case Tombstone, Next:
		if f.state.suspect.Len() > 0 {
			f.state.suspect.Delete(m.Bundle)
		}
	}
}

// Suspect says whether the version of a bundle's record is in doubt, and why.
func (s *Snapshot) Suspect(bundle string) (Suspicion, bool) { return s.suspect.Get(bundle) }

// Suspects are the bundles whose versions are in doubt.
func (s *Snapshot) Suspects() iter.Seq2[string, Suspicion] { return s.suspect.Scan }
