package shares_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/internal/shares"
)

// snapshot is of brokers with a number of topics each (-1: not heard), and of bundles.
func snapshot(reported []int64, bundles ...cluster.Bundle) *cluster.Snapshot {
	snap := &cluster.Snapshot{Bundles: bundles}
	for i, n := range reported {
		b := cluster.Broker{ID: string(rune('a' + i))}
		if n >= 0 {
			b.Load = &event.BrokerLoadData{Topics: n}
		}
		snap.Brokers = append(snap.Brokers, b)
	}
	return snap.Index()
}

func bundle(name, owner string, topics int64) cluster.Bundle {
	return cluster.Bundle{Name: name, Namespace: "t/n", Owner: owner, State: event.Owned, Known: topics >= 0, Stats: event.NamespaceBundleStats{Topics: max(topics, 0)}}
}

// What a broker is told to have too much of, by what is known.
func TestBeyond(t *testing.T) {
	two := shares.Limit{Serving: 2, Points: 0.05}
	way := bundle("y", "b", 10)
	way.State, way.Heading = event.Releasing, "a"
	system := bundle("s", "a", -1)
	system.Namespace = "pulsar/system"
	deleted := bundle("d", "", 1000)
	deleted.State = event.Deleted
	lost := bundle("l", "z", 20)
	for name, tc := range map[string]struct {
		reported []int64
		bundles  []cluster.Bundle
		limit    shares.Limit
		want     shares.Over
	}{
		"within":                         {[]int64{0, 0}, []cluster.Bundle{bundle("x", "b", 5), bundle("y", "b", 5)}, two, shares.Over{}},
		"above":                          {[]int64{0, 0}, []cluster.Bundle{bundle("x", "b", 6), bundle("y", "b", 4)}, two, shares.Over{Measure: "topics", After: 6, All: 10, Limit: 5.5}},
		"no limit":                       {[]int64{0, 0}, []cluster.Bundle{bundle("x", "b", 6), bundle("y", "b", 4)}, shares.Limit{Serving: 2}, shares.Over{}},
		"more serve":                     {[]int64{0, 0}, []cluster.Bundle{bundle("x", "b", 5), bundle("y", "b", 5)}, shares.Limit{Serving: 3, Points: 0.05}, shares.Over{Measure: "topics", After: 5, All: 10, Limit: 3.8}},
		"on its way there":               {[]int64{0, 0}, []cluster.Bundle{bundle("x", "b", 10), way, bundle("w", "b", 12)}, two, shares.Over{Measure: "topics", After: 20, All: 32, Limit: 17.6}},
		"what is split is nobody's":      {[]int64{0, 0}, []cluster.Bundle{bundle("x", "b", 6), bundle("y", "b", 4), deleted}, two, shares.Over{Measure: "topics", After: 6, All: 10, Limit: 5.5}},
		"of a broker that has just gone": {[]int64{0, 0}, []cluster.Bundle{bundle("x", "b", 6), bundle("y", "b", 4), lost}, two, shares.Over{}},
		// 20 topics of a are in two bundles without a number: x, with 5, makes it 25 of 40.
		"a guess": {[]int64{20, 20}, []cluster.Bundle{bundle("x", "b", 5), bundle("y", "b", 15), bundle("u", "a", -1), bundle("v", "a", -1)}, two,
			shares.Over{Measure: "topics", After: 25, All: 40, Limit: 22}},
		// 7 of 18 topics, but 3 of 4 bundles.
		"a guess that the bundles speak against": {[]int64{2, 16}, []cluster.Bundle{bundle("x", "b", 5), bundle("y", "b", 11), bundle("u", "a", -1), bundle("v", "a", -1)}, two,
			shares.Over{Measure: "bundles", After: 3, All: 4, Limit: 2}},
		"nothing is known":            {[]int64{-1, -1}, []cluster.Bundle{bundle("x", "b", -1), bundle("u", "a", -1), bundle("v", "a", -1)}, two, shares.Over{Measure: "bundles", After: 3, All: 3, Limit: 2}},
		"an even number of bundles":   {[]int64{-1, -1}, []cluster.Bundle{bundle("x", "b", -1), bundle("u", "a", -1), bundle("v", "b", -1)}, two, shares.Over{}},
		"the system's do not count":   {[]int64{-1, -1}, []cluster.Bundle{bundle("x", "b", -1), bundle("v", "b", -1), system}, two, shares.Over{}},
		"all bundles have no topics":  {[]int64{0, 0}, []cluster.Bundle{bundle("x", "b", 0), bundle("y", "a", 0)}, two, shares.Over{Measure: "bundles", After: 2, All: 2, Limit: 1}},
		"numbers that are not honest": {[]int64{0, 0}, []cluster.Bundle{bundle("x", "b", 1<<62), bundle("y", "b", 1<<62)}, two, shares.Over{}},
	} {
		snap := snapshot(tc.reported, tc.bundles...)
		got, over := shares.Of(snap).Beyond(0, snap.BundleIndex("x"), tc.limit)
		if diff := cmp.Diff(tc.want, got); diff != "" || over != (tc.want != shares.Over{}) {
			t.Errorf("%s: over: %v\n%s", name, over, diff)
		}
	}
}

// A move that is counted is as if it had been made, and can be taken back.
func TestMove(t *testing.T) {
	snap := snapshot([]int64{0, 0}, bundle("x", "b", 6), bundle("y", "b", 4), bundle("z", "b", 3))
	c, lim := shares.Of(snap), shares.Limit{Serving: 2, Points: 0.05}
	if over, yes := c.Beyond(0, 0, lim); yes {
		t.Errorf("the first is too much: %+v", over)
	}
	c.Move(0, 0)
	if over, yes := c.Beyond(0, 1, lim); !yes || over.After != 10 {
		t.Errorf("the second makes %+v", over)
	}
	if _, yes := c.Beyond(0, 0, lim); yes {
		t.Error("what it has already is too much")
	}
	if over, yes := c.Has(1, lim); yes {
		t.Errorf("the source has %+v", over)
	}
	c.Move(0, 1)
	if over, yes := c.Has(1, lim); !yes || over.After != 13 {
		t.Errorf("taken back the source has %+v", over)
	}
	c.Move(-1, 0)
	if _, yes := c.Beyond(-1, 0, lim); yes {
		t.Error("a broker that is not there has too much")
	}
}
