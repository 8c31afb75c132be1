package ownership

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
)

const writeNow = 10_000_000

// writeSight is a fold, and a sight on it in which nothing speaks against a write.
func writeSight(messages ...Message) Sight {
	f := NewFold()
	for i, m := range messages {
		m.ID, m.At = ID{1, int64(i + 1), -1}, writeNow-60_000
		f.Apply(m)
	}
	s := Sight{Now: writeNow, Snapshot: f.Snapshot(), Topic: Reading{CaughtUp: true}, Exists: true,
		Facts:  Facts{TableView: "x." + topicClass, Syncer: "None", TombstoneDelay: 3_600_000},
		Answer: BrokersAnswer{Asked: writeNow - 100}}
	for _, id := range []string{"a:1", "b:1", "c:1"} {
		s.Facts.Brokers = append(s.Facts.Brokers, Member{id, "4.2.4", "x." + managerClass})
	}
	return s
}

func at(bundle string, d *event.ServiceUnitStateData) Message {
	if d != nil {
		d.Timestamp = writeNow - 60_000
	}
	return Message{Bundle: bundle, Data: d}
}

// TestWrite: each rail refuses with its own code, and what passes them all is exactly the next record.
func TestWrite(t *testing.T) {
	owned := at(another, record(event.Owned, 5, "a:1", ""))
	transfer := Want{Transfer, another, "a:1", "b:1"}
	unload := Want{Action: Unload, Bundle: another, Source: "a:1"}
	place := Want{Action: Place, Bundle: another, Destination: "b:1"}
	byOwner := func(s *Sight) { s.Answer.Owners = []string{"a:1"} }
	for _, x := range []struct {
		name     string
		messages []Message
		want     Want
		change   func(*Sight)
		code     string
		next     *event.ServiceUnitStateData
	}{
		{"transfer", []Message{owned}, transfer, nil, "", record(event.Releasing, 6, "b:1", "a:1")},
		{"unload", []Message{owned}, unload, nil, "", record(event.Releasing, 6, "", "a:1")},
		{"place what has no record", nil, place, func(s *Sight) { s.Answer.Owners = nil }, "", record(event.Assigning, 1, "b:1", "")},
		{"place what is free", []Message{at(another, record(event.Free, 8, "", "a:1"))}, place, func(s *Sight) { s.Answer.Owners = nil }, "",
			record(event.Assigning, 9, "b:1", "")},
		{"system", nil, Want{Transfer, "pulsar/system/0x00000000_0xffffffff", "a:1", "b:1"}, nil, "CHANNEL_NOT_MANAGED", nil},
		{"heartbeat", nil, Want{Transfer, "pulsar/a:1/0x00000000_0xffffffff", "a:1", "b:1"}, nil, "CHANNEL_NOT_MANAGED", nil},
		{"no bundle", nil, Want{Transfer, "t/n", "a:1", "b:1"}, nil, "CHANNEL_NO_BUNDLE", nil},
		{"no action", []Message{owned}, Want{"split", another, "a:1", "b:1"}, nil, "CHANNEL_NO_SUCH_ACTION", nil},
		{"blind", []Message{owned}, transfer, func(s *Sight) { s.Topic.Trouble = "gone" }, "CHANNEL_BLIND", nil},
		{"behind", []Message{owned}, transfer, func(s *Sight) { s.Topic.CaughtUp = false }, "CHANNEL_NOT_CAUGHT_UP", nil},
		{"lost messages", []Message{owned}, transfer, func(s *Sight) { s.Topic.Missing = 1 }, "CHANNEL_LOST_EVENTS", nil},
		{"ran backwards", []Message{owned, at(another, record(event.Assigning, 1, "b:1", ""))}, transfer, nil, "CHANNEL_SUSPECT_VERSION", nil},
		{"jumped", []Message{owned, at(another, record(event.Owned, 9, "a:1", ""))}, transfer, nil, "CHANNEL_SUSPECT_VERSION", nil},
		{"ran backwards, then fits", []Message{owned, at(another, record(event.Assigning, 1, "b:1", "")), at(another, record(event.Releasing, 6, "a:1", "a:1")),
			at(another, record(event.Releasing, 6, "c:1", "a:1")), at(another, record(event.Assigning, 7, "c:1", "a:1")), at(another, record(event.Owned, 8, "c:1", "a:1"))},
			Want{Transfer, another, "c:1", "b:1"}, func(s *Sight) { s.Answer.Owners = []string{"c:1"} }, "", record(event.Releasing, 9, "b:1", "c:1")},
		{"unreadable", []Message{owned, at(another, record(event.Owned, 6, "", ""))}, transfer, nil, "CHANNEL_UNREADABLE_RECORD", nil},
		{"last version", []Message{at(another, record(event.Owned, lastVersion, "a:1", ""))}, transfer, nil, "CHANNEL_LAST_VERSION", nil},
		{"in flight", []Message{owned, at(another, record(event.Releasing, 6, "c:1", "a:1"))}, transfer, nil, "CHANNEL_NOT_OWNED", nil},
		{"other owner", []Message{owned}, Want{Transfer, another, "b:1", "c:1"}, nil, "CHANNEL_OTHER_OWNER", nil},
		{"destination unknown", []Message{owned}, Want{Transfer, another, "a:1", "d:1"}, nil, "CHANNEL_DESTINATION_NOT_REGISTERED", nil},
		{"owner gone", []Message{at(another, record(event.Owned, 5, "d:1", ""))}, Want{Transfer, another, "d:1", "b:1"}, nil, "CHANNEL_SOURCE_NOT_REGISTERED", nil},
		{"to itself", []Message{owned}, Want{Transfer, another, "a:1", "a:1"}, nil, "CHANNEL_SAME_BROKER", nil},
		{"not asked", []Message{owned}, transfer, func(s *Sight) { s.Answer = BrokersAnswer{} }, "CHANNEL_NO_ANSWER", nil},
		{"no answer", []Message{owned}, transfer, func(s *Sight) { s.Answer.Failed = "503" }, "CHANNEL_NO_ANSWER", nil},
		{"asked before the record", []Message{owned}, transfer, func(s *Sight) { s.Answer.Asked = writeNow - 60_001 }, "CHANNEL_NO_ANSWER", nil},
		{"the owner says no", []Message{owned}, transfer, func(s *Sight) { s.Answer.Owners = nil }, "CHANNEL_DISAGREEMENT", nil},
		{"a broker says it has it", nil, place, nil, "CHANNEL_DISAGREEMENT", nil},
		{"policy", []Message{owned}, transfer, func(s *Sight) { s.Policy = policy.NotRegistered.Because(policy.S("broker", "b:1")) }, "CHANNEL_POLICY", nil},
		{"place what is owned", []Message{owned}, place, nil, "CHANNEL_NOT_UNOWNED", nil},
		{"place what is no bundle", nil, place, func(s *Sight) { s.Exists = false }, "CHANNEL_UNKNOWN_BUNDLE", nil},
		{"place an old record", []Message{at(another, record(event.Free, 8, "", "a:1"))}, place, func(s *Sight) { s.Now += 3_300_000 }, "CHANNEL_OLD_RECORD", nil},
		{"place what was set free by force", []Message{at(another, &event.ServiceUnitStateData{State: event.Free, SourceBroker: "a:1", VersionID: 8, Force: true})}, place,
			nil, "CHANNEL_OLD_RECORD", nil},
		{"parent beside a child", []Message{at(parent, record(event.Owned, 5, "a:1", "")), at(left, record(event.Owned, 1, "a:1", ""))},
			Want{Transfer, parent, "a:1", "b:1"}, nil, "CHANNEL_OVERLAP", nil},
		{"metadata store", []Message{owned}, transfer, func(s *Sight) { s.Facts.TableView = "x.ServiceUnitStateMetadataStoreTableViewImpl" }, "CHANNEL_METADATA_STORE", nil},
		{"syncer", []Message{owned}, transfer, func(s *Sight) { s.Facts.Syncer = "SystemTopicToMetadataStoreSyncer" }, "CHANNEL_SYNCER_ACTIVE", nil},
		{"mixed", []Message{owned}, transfer, func(s *Sight) { s.Facts.Brokers[2].LoadManager = "ModularLoadManagerImpl" }, "CHANNEL_MIXED_MANAGERS", nil},
		{"silent", []Message{owned}, transfer, func(s *Sight) { s.Facts.Brokers[2].LoadManager = "" }, "CHANNEL_SILENT_BROKER", nil},
		{"untested", []Message{owned}, transfer, func(s *Sight) { s.Facts.Brokers[2].Version = "4.3.0" }, "CHANNEL_VERSION_UNTESTED", nil},
	} {
		s := writeSight(x.messages...)
		byOwner(&s)
		if x.change != nil {
			x.change(&s)
		}
		got, refused := Write(s, x.want)
		if refused.Code != x.code || x.code != "" && refused.Text == "" {
			t.Errorf("%s: refused with %q %q, want %q", x.name, refused.Code, refused.Text, x.code)
			continue
		}
		if refused.AdminREST != (x.code == "CHANNEL_SUSPECT_VERSION") {
			t.Errorf("%s: admin REST instead: %t", x.name, refused.AdminREST)
		}
		if x.next == nil {
			continue
		}
		x.next.Timestamp = writeNow
		if diff := cmp.Diff(*x.next, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, diff)
		}
	}
}

// TestAttempt: what became of a record is read from what was accepted after it.
func TestAttempt(t *testing.T) {
	ours := *record(event.Releasing, 6, "b:1", "a:1")
	owned := at(another, record(event.Owned, 5, "a:1", ""))
	for _, x := range []struct {
		name     string
		after    []*event.ServiceUnitStateData // nil = a tombstone
		progress Progress
		owner    string
		by       string
	}{
		{"not read back", nil, Unseen, "", ""},
		{"accepted", []*event.ServiceUnitStateData{&ours}, Accepted, "", ""},
		{"arrived", []*event.ServiceUnitStateData{&ours, record(event.Assigning, 7, "b:1", "a:1"), record(event.Owned, 8, "b:1", "a:1")}, Settled, "b:1", ""},
		{"beaten", []*event.ServiceUnitStateData{record(event.Releasing, 6, "c:1", "a:1"), &ours}, Beaten, "", "Releasing version 6 from a:1 to c:1"},
		{"beaten by a split", []*event.ServiceUnitStateData{record(event.Splitting, 6, "", "a:1"), &ours}, Beaten, "a:1", "Splitting version 6 from a:1"},
		{"overridden to where it was wanted", []*event.ServiceUnitStateData{&ours, forced(record(event.Owned, 7, "b:1", "a:1"))}, Settled, "b:1", ""},
		{"overridden", []*event.ServiceUnitStateData{&ours, forced(record(event.Owned, 7, "c:1", "a:1"))}, Diverted, "c:1", "Owned version 7 from a:1 to c:1, forced"},
		{"removed on its way", []*event.ServiceUnitStateData{&ours, nil}, Diverted, "", "the record was removed"},
		{"removed before ours comes", []*event.ServiceUnitStateData{nil, &ours}, Accepted, "", ""},
	} {
		f := NewFold()
		f.Apply(owned)
		a := Follow(Want{Transfer, another, "a:1", "b:1"}, ours)
		for i, d := range x.after {
			a.See(f.Apply(Message{Bundle: another, Data: d, ID: ID{2, int64(i), -1}}))
		}
		if a.Progress != x.progress || a.Owner != x.owner || a.By != x.by {
			t.Errorf("%s: %s, owner %q, by %q; want %s, %q, %q", x.name, a.Progress, a.Owner, a.By, x.progress, x.owner, x.by)
		}
		// The present record alone never says more than what was seen.
		b := Follow(a.Want, ours)
		r, _ := f.Get(another)
		if b.Check(r); b.Progress.Final() && b.Progress != a.Progress {
			t.Errorf("%s: by the record alone %s", x.name, b.Progress)
		}
	}
}
