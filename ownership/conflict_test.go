package ownership

import (
	"math"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/google/go-cmp/cmp"
)

func record(state event.ServiceUnitState, version int64, dst, source string) *event.ServiceUnitStateData {
	return &event.ServiceUnitStateData{State: state, VersionID: version, DstBroker: dst, SourceBroker: source}
}

func forced(d *event.ServiceUnitStateData) *event.ServiceUnitStateData {
	d.Force = true
	return d
}

// TestDecide names the rule that decides. That the decisions are Pulsar's is shown by its recorded ones.
func TestDecide(t *testing.T) {
	owned := record(event.Owned, 2, "b1", "")
	for _, test := range []struct {
		name             string
		present, next    *event.ServiceUnitStateData
		topic, metadata  Rule
		keepT, keepM     bool
		gapTopic, gapMet int64
	}{
		{name: "next version, unforced, same state", present: owned, next: record(event.Owned, 3, "b2", ""),
			topic: BadTransition, keepT: true, metadata: BadTransition, keepM: true},
		{name: "a gap", present: owned, next: record(event.Owned, 4, "b2", ""),
			topic: Gap, gapTopic: 1, metadata: TooFarAhead, keepM: true, gapMet: 1},
		{name: "forced", present: owned, next: forced(record(event.Owned, 3, "b2", "")), topic: Forced, metadata: Forced},
		{name: "forced at the same version", present: owned, next: forced(record(event.Owned, 2, "b2", "")),
			topic: Stale, keepT: true, metadata: Stale, keepM: true},
		{name: "forced with a gap", present: owned, next: forced(record(event.Owned, 9, "b2", "")),
			topic: Gap, gapTopic: 6, metadata: TooFarAhead, keepM: true, gapMet: 6},
		{name: "backwards", present: owned, next: record(event.Releasing, 1, "", "b1"),
			topic: Backwards, keepT: true, metadata: Backwards, keepM: true},
		{name: "a first record above 1", next: record(event.Assigning, 3, "b1", ""), topic: First, metadata: NotFirst, keepM: true},
		{name: "a first record", next: record(event.Deleted, 1, "b1", ""), topic: First, metadata: First},
		{name: "a first record of state Init", next: record(event.Init, 1, "b1", ""),
			topic: BadTransition, keepT: true, metadata: First},
		{name: "a tombstone", present: owned, topic: Tombstone, metadata: Tombstone},
		{name: "a tombstone of nothing", topic: Tombstone, metadata: Tombstone},
		{name: "transfer", present: owned, next: record(event.Releasing, 3, "b2", "b1"), topic: Next, metadata: Next},
		{name: "transfer to itself", present: owned, next: record(event.Releasing, 3, "b1", "b1"),
			topic: BadBrokers, keepT: true, metadata: BadBrokers, keepM: true},
		{name: "release of another's bundle", present: owned, next: record(event.Releasing, 3, "", "b2"),
			topic: BadBrokers, keepT: true, metadata: BadBrokers, keepM: true},
		{name: "release of a bundle that is Owned by nobody", present: record(event.Owned, 2, "", "b1"), next: record(event.Releasing, 3, "", "b1"),
			topic: Undecidable, keepT: true, metadata: Undecidable, keepM: true},
		{name: "around the end", present: record(event.Owned, math.MaxInt64, "b1", ""), next: record(event.Splitting, math.MinInt64, "", "b1"),
			topic: Next, metadata: Next},
		{name: "the widest gap", present: record(event.Owned, math.MinInt64, "b1", ""), next: record(event.Owned, math.MaxInt64, "b1", ""),
			topic: Gap, gapTopic: math.MaxInt64, metadata: TooFarAhead, keepM: true, gapMet: math.MaxInt64},
	} {
		t.Run(test.name, func(t *testing.T) {
			for store, want := range map[Store]Verdict{
				SystemTopic:   {Keep: test.keepT, Rule: test.topic, Gap: test.gapTopic},
				MetadataStore: {Keep: test.keepM, Rule: test.metadata, Gap: test.gapMet},
			} {
				if diff := cmp.Diff(want, Resolver{Store: store}.Decide(test.present, test.next)); diff != "" {
					t.Errorf("%s: verdict differs (-want +got):\n%s", store, diff)
				}
			}
		})
	}
}

func TestNextVersion(t *testing.T) {
	for want, present := range map[int64]*event.ServiceUnitStateData{
		1: nil, 8: record(event.Owned, 7, "b", ""), math.MinInt64: record(event.Owned, math.MaxInt64, "b", ""),
	} {
		if got := NextVersion(present); got != want {
			t.Errorf("next version is %d, want %d", got, want)
		}
	}
}

func TestParseStore(t *testing.T) {
	for _, s := range []Store{SystemTopic, MetadataStore} {
		if got, err := ParseStore(s.String()); err != nil || got != s {
			t.Errorf("%s is read as %s, %v", s, got, err)
		}
	}
	if s, err := ParseStore("systemtopic"); err == nil {
		t.Errorf("an unknown name is read as %s", s)
	}
}
