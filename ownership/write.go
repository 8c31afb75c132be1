package ownership

import (
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
)

// Action is what a record written from outside the brokers asks for.
type Action string

// The actions.
const (
	Transfer Action = "transfer" // an owned bundle goes to a named broker: Releasing with a destination
	Unload   Action = "unload"   // an owned bundle is set free, its next lookup assigns it: Releasing without one
	Place    Action = "place"    // an unowned bundle gets its broker: Assigning
)

// Want is a change of ownership that is wanted.
type Want struct {
	Action      Action
	Bundle      string
	Source      string // the owner; "" for Place
	Destination string // "" for Unload
}

// Sight is all that a write is decided from.
type Sight struct {
	Now      int64 // Unix ms by our clock
	Snapshot *Snapshot
	Topic    Reading
	Facts    Facts
	Answer   BrokersAnswer
	Policy   policy.Reason // why policies do not let the bundle go there; zero = they do
	Exists   bool          // the namespace has the bundle now; for Place, as its namespace may be gone
}

// Reading is how well the ownership topic is read.
type Reading struct {
	Trouble  string // why it cannot be read now, "" if it can
	CaughtUp bool   // everything that it held has been applied
	Missing  int64  // messages that are lost or may be
}

// BrokersAnswer is what brokers themselves say about who owns a bundle. The owner is asked about an owned bundle, every
// registered broker about an unowned one.
type BrokersAnswer struct {
	Asked  int64    // Unix ms by our clock when they were asked; 0 = they were not
	Owners []string // those that say they own it
	Failed string   // why an answer is missing, "" if none is
}

// Refusal is why nothing may be written, with the numbers. The zero value is none.
type Refusal struct {
	policy.Reason
	AdminREST bool // the change may be asked for over admin REST, where the brokers choose the version
}

// Why a record is not written.
var (
	NotManaged     = policy.Code{ID: "CHANNEL_NOT_MANAGED", Template: "{bundle} is never written for: {why}"}
	NoBundleName   = policy.Code{ID: "CHANNEL_NO_BUNDLE", Template: "{bundle} is no bundle: it must be tenant/namespace/0x........_0x........"}
	NoSuchAction   = policy.Code{ID: "CHANNEL_NO_SUCH_ACTION", Template: "{action} cannot be written: it must be transfer, unload or place"}
	TopicBlind     = policy.Code{ID: "CHANNEL_BLIND", Template: "the ownership topic cannot be read: {error}"}
	TopicBehind    = policy.Code{ID: "CHANNEL_NOT_CAUGHT_UP", Template: "the ownership topic has not been read to its end"}
	TopicLost      = policy.Code{ID: "CHANNEL_LOST_EVENTS", Template: "{count} messages of the ownership topic are lost or may be"}
	NotReadable    = policy.Code{ID: "CHANNEL_UNREADABLE_RECORD", Template: "the newest record of the bundle cannot be read: {error}"}
	SuspectVersion = policy.Code{ID: "CHANNEL_SUSPECT_VERSION", Template: "the version of the bundle is in doubt: {seen} came after {present}; a record may have been missed"}
	NotOwned       = policy.Code{ID: "CHANNEL_NOT_OWNED", Template: "the bundle is {state}, it must be Owned"}
	NotUnowned     = policy.Code{ID: "CHANNEL_NOT_UNOWNED", Template: "the bundle is {state} by {broker}, it must be unowned"}
	OtherOwner     = policy.Code{ID: "CHANNEL_OTHER_OWNER", Template: "{owner} owns the bundle, not {source}"}
	OldRecord      = policy.Code{ID: "CHANNEL_OLD_RECORD", Template: "the record is {age} ms old: after {limit} ms it is about to be removed"}
	LastVersion    = policy.Code{ID: "CHANNEL_LAST_VERSION", Template: "version {version} is the last one that there is"}
	Overlap        = policy.Code{ID: "CHANNEL_OVERLAP", Template: "{other} has a part of its range and is {state}"}
	UnknownBundle  = policy.Code{ID: "CHANNEL_UNKNOWN_BUNDLE", Template: "the namespace has no bundle {bundle}"}
	NoDestination  = policy.Code{ID: "CHANNEL_DESTINATION_NOT_REGISTERED", Template: "the destination {broker} is not registered"}
	NoSource       = policy.Code{ID: "CHANNEL_SOURCE_NOT_REGISTERED", Template: "the owner {broker} is not registered: it cannot give the bundle up"}
	SameBroker     = policy.Code{ID: "CHANNEL_SAME_BROKER", Template: "{broker} has the bundle already"}
	NotAsked       = policy.Code{ID: "CHANNEL_NO_ANSWER", Template: "the brokers were not asked, or not since the record came: {error}"}
	Disagree       = policy.Code{ID: "CHANNEL_DISAGREEMENT", Template: "by the ownership topic the owner is {owner}, by the brokers themselves {says}"}
	Forbidden      = policy.Code{ID: "CHANNEL_POLICY", Template: "{why}"}
	NotNext        = policy.Code{ID: "CHANNEL_NOT_NEXT", Template: "the record would be decided by {rule}, not as the next one"}
)

// Write is the record to publish for what is wanted, under the bundle as its key, or why none may be. It is exactly the next
// one, never forced. What cannot be known from the ownership topic comes in with the sight.
func Write(s Sight, w Want) (event.ServiceUnitStateData, Refusal) {
	present, _ := s.Snapshot.Get(w.Bundle)
	for _, rule := range [...]func(Sight, Want, *Record) Refusal{name, topic, certain, ends, state, overlap, answer} {
		if r := rule(s, w, present); !r.IsZero() {
			return event.ServiceUnitStateData{}, r
		}
	}
	if r := s.Facts.Check(); !r.IsZero() {
		return event.ServiceUnitStateData{}, r
	}
	if !s.Policy.IsZero() {
		return event.ServiceUnitStateData{}, refuse(Forbidden, policy.S("why", s.Policy.Text))
	}
	var before *event.ServiceUnitStateData
	if present != nil {
		before = &present.Data
	}
	d := event.ServiceUnitStateData{State: event.Releasing, DstBroker: w.Destination, SourceBroker: w.Source, Timestamp: s.Now, VersionID: NextVersion(before)}
	if w.Action == Place {
		d.State, d.SourceBroker = event.Assigning, ""
	}
	// The brokers' own rule has the last word: it must take the record as the next one, not by way of a gap.
	if v := (Resolver{Store: SystemTopic}).Decide(before, &d); v.Keep || v.Rule != Next && v.Rule != First {
		return event.ServiceUnitStateData{}, refuse(NotNext, policy.S("rule", string(v.Rule)))
	}
	return d, Refusal{}
}

func refuse(c policy.Code, numbers ...policy.Number) Refusal {
	return Refusal{Reason: c.Because(numbers...)}
}

// name: the bundle is one, it is managed, and what is wanted can be written.
func name(_ Sight, w Want, _ *Record) Refusal {
	if _, err := event.ParseBundle(w.Bundle); err != nil {
		return refuse(NoBundleName, policy.S("bundle", w.Bundle))
	}
	if why := policy.Unmanaged(event.NamespaceOf(w.Bundle), nil); !why.IsZero() {
		return refuse(NotManaged, policy.S("bundle", w.Bundle), policy.S("why", why.Text))
	}
	switch w.Action {
	case Transfer, Unload, Place:
		return Refusal{}
	}
	return refuse(NoSuchAction, policy.S("action", string(w.Action)))
}

// topic: the ownership topic is read to its end and nothing of it is missing.
func topic(s Sight, _ Want, _ *Record) Refusal {
	switch t := s.Topic; {
	case t.Trouble != "":
		return refuse(TopicBlind, policy.S("error", t.Trouble))
	case !t.CaughtUp:
		return refuse(TopicBehind)
	case t.Missing > 0:
		return refuse(TopicLost, policy.N("count", int(t.Missing)))
	}
	return Refusal{}
}

// certain: the present record is what brokers have, too.
func certain(s Sight, w Want, present *Record) Refusal {
	if why, bad := s.Snapshot.IsUnreadable(w.Bundle); bad {
		return refuse(NotReadable, policy.S("error", why))
	}
	if d, doubt := s.Snapshot.Suspect(w.Bundle); doubt {
		r := refuse(SuspectVersion, policy.N("present", int(d.Present)), policy.N("seen", int(d.Seen)))
		r.AdminREST = w.Action != Place
		return r
	}
	if present != nil && present.Data.VersionID >= lastVersion {
		return refuse(LastVersion, policy.N("version", int(present.Data.VersionID)))
	}
	return Refusal{}
}

// ends: both brokers are registered and different.
func ends(s Sight, w Want, _ *Record) Refusal {
	switch {
	case w.Action != Unload && !s.Facts.registered(w.Destination):
		return refuse(NoDestination, policy.S("broker", w.Destination))
	case w.Action == Place:
		return Refusal{}
	case !s.Facts.registered(w.Source):
		return refuse(NoSource, policy.S("broker", w.Source))
	case w.Source == w.Destination:
		return refuse(SameBroker, policy.S("broker", w.Source))
	}
	return Refusal{}
}

// state: an owned bundle is owned by the source; an unowned one has no record, or is Free and stays so for a while.
func state(s Sight, w Want, present *Record) Refusal {
	switch {
	case w.Action == Place && present != nil && present.State() != event.Free:
		return refuse(NotUnowned, policy.S("state", string(present.State())), policy.S("broker", present.Assigned()))
	case w.Action == Place && !s.Exists:
		return refuse(UnknownBundle, policy.S("bundle", w.Bundle))
	case w.Action == Place && present != nil:
		return ageing(s, present)
	case w.Action == Place:
		return Refusal{}
	case present.State() != event.Owned:
		return refuse(NotOwned, policy.S("state", string(present.State())))
	case present.Owner() != w.Source:
		return refuse(OtherOwner, policy.S("owner", present.Owner()), policy.S("source", w.Source))
	}
	return Refusal{}
}

// ageing: the leader removes an unowned record after a time, and a forced one is removed at once. Then versions begin anew, and
// the next version of a record that is gone would be a gap.
func ageing(s Sight, present *Record) Refusal {
	limit := s.Facts.recordLife()
	if present.Data.Force {
		limit = 0
	}
	if age := max(present.Age(s.Now), since(present.Data.Timestamp, s.Now)); age >= limit {
		return refuse(OldRecord, policy.N("age", int(age)), policy.N("limit", int(limit)))
	}
	return Refusal{}
}

// overlap: no other bundle has a part of the range, as after a split that left the parent behind.
func overlap(s Sight, w Want, _ *Record) Refusal {
	mine, err := event.ParseBundle(w.Bundle)
	if err != nil {
		return refuse(NoBundleName, policy.S("bundle", w.Bundle))
	}
	for other, r := range s.Snapshot.Namespace(mine.Namespace) {
		if other == w.Bundle || !Active(r.State()) {
			continue
		}
		b, err := event.ParseBundle(other)
		if err == nil && b.Range.Lower < mine.Range.Upper && mine.Range.Lower < b.Range.Upper {
			return refuse(Overlap, policy.S("other", other), policy.S("state", string(r.State())))
		}
	}
	return Refusal{}
}

// answer: the brokers themselves, asked since the record came, say the same as the topic.
func answer(s Sight, w Want, present *Record) Refusal {
	a := s.Answer
	switch {
	case a.Failed != "":
		return refuse(NotAsked, policy.S("error", a.Failed))
	case a.Asked == 0:
		return refuse(NotAsked, policy.S("error", "nobody was asked"))
	case present != nil && a.Asked < present.Since:
		return refuse(NotAsked, policy.S("error", "the answer is older than the record"))
	}
	want := present.Owner()
	if want == "" && len(a.Owners) == 0 || len(a.Owners) == 1 && a.Owners[0] == want {
		return Refusal{}
	}
	return refuse(Disagree, policy.S("owner", orNobody(want)), policy.S("says", orNobody(joined(a.Owners))))
}
