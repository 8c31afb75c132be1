package control_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

func look(t *testing.T, w *world) *control.Look {
	t.Helper()
	l, err := w.views.Look(t.Context(), w.Now())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func frozen(l *control.Look) []string {
	var out []string
	for _, why := range l.Frozen {
		out = append(out, why.Code)
	}
	return out
}

func TestLostOwnershipEventsAreReadAgain(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Advise, script{}, false)
	bundle := w.bundles(t)[0]
	look(t, w) // what the topic holds so far
	e.Log().SetFaults(topics.Faults{Deliver: func(m topics.Message) topics.Delivery {
		if m.Topic == topics.ServiceUnitState {
			return topics.Lose
		}
		return topics.Deliver
	}})
	if err := e.Unload(t.Context(), bundle, c); err != nil {
		t.Fatal(err)
	}
	if got := w.owner(t, bundle); got != a {
		t.Fatalf("the lost events arrived: the owner is %q", got)
	}
	if diff := cmp.Diff([]string{control.LostEvents.ID}, frozen(look(t, w))); diff != "" {
		t.Errorf("while they are lost (-want +got):\n%s", diff)
	}
	e.Log().SetFaults(topics.Faults{})
	if diff := cmp.Diff([]string(nil), frozen(look(t, w))); diff != "" {
		t.Errorf("after reading again (-want +got):\n%s", diff)
	}
	if got := w.owner(t, bundle); got != c {
		t.Errorf("the owner is %q, want %s", got, c)
	}
}

func TestWhatFreezes(t *testing.T) {
	corrupt := func(payload string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			err := w.With(t.Context(), func(cl *simulate.Cluster) {
				if err := cl.Corrupt(b, topics.BrokerLoadData, []byte(payload)); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Sleep(t.Context(), 2*time.Minute); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		name string
		do   func(*testing.T, *world)
		want []string
	}{
		{name: "nothing", do: func(*testing.T, *world) {}},
		{name: "a figure that is no number", do: corrupt(`{"weightedMaxEMA":"NaN","maxResourceUsage":0.5}`), want: []string{control.Unusable.ID}},
		{name: "a negative figure", do: corrupt(`{"weightedMaxEMA":0.5,"msgThroughputIn":-1}`), want: []string{control.Unusable.ID}},
		{name: "garbage keeps the last report", do: corrupt(`{"cpu":`)},
		{name: "a broker that was never heard", want: []string{control.NotHeard.ID}, do: func(t *testing.T, w *world) {
			err := w.With(t.Context(), func(cl *simulate.Cluster) {
				if err := cl.AddBroker(simulate.Broker{ID: "d:8080", Cores: 2}); err != nil {
					t.Error(err)
				}
				if err := cl.Mute("d:8080", true); err != nil {
					t.Error(err)
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Sleep(t.Context(), 30*time.Second); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a topic that cannot be read", want: []string{control.Blind.ID}, do: func(_ *testing.T, w *world) {
			w.Log().Disconnect(topics.TopBundles)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := process(t, small(t, nil), "one", control.Advise, script{}, false)
			tc.do(t, w)
			l := look(t, w)
			if diff := cmp.Diff(tc.want, frozen(l)); diff != "" {
				t.Errorf("frozen (-want +got):\n%s", diff)
			}
			for _, why := range l.Frozen {
				if why.Text == "" {
					t.Errorf("%s has no sentence", why.Code)
				}
			}
		})
	}
}

// Garbage is skipped, counted and visible; the last good report stays.
func TestGarbageIsCounted(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Advise, script{}, false)
	for topic, key := range map[string]string{topics.BrokerLoadData: b, topics.TopBundles: b, topics.ServiceUnitState: w.bundles(t)[0]} {
		pub, err := e.Log().Publisher(t.Context(), topic, topics.PublishOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, payload := range []string{`{"state":7}`, `[`, "\x00\xff"} {
			if _, err := pub.Publish(t.Context(), key, []byte(payload)); err != nil {
				t.Fatal(err)
			}
		}
	}
	l := look(t, w)
	if l.Snapshot.LoadIndex(b) < 0 {
		t.Error("the last good report is gone")
	}
	want := map[string]float64{topics.BrokerLoadData: 3, topics.TopBundles: 2, topics.ServiceUnitState: 3}
	if diff := cmp.Diff(want, skipped(t, w)); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
}

func TestEstimatesFillInAndAreMarked(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Advise, script{}, false)
	err := e.With(t.Context(), func(cl *simulate.Cluster) {
		if err := cl.AddBroker(simulate.Broker{ID: "d:8080", Cores: 2}); err != nil {
			t.Error(err)
		}
		if err := cl.Mute("d:8080", true); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Sleep(t.Context(), 30*time.Second); err != nil {
		t.Fatal(err)
	}
	w.views.Estimate(true)
	l := look(t, w)
	if len(l.Missing) > 0 || len(l.Frozen) > 0 {
		t.Fatalf("missing %q, frozen %q", l.Missing, frozen(l))
	}
	for _, br := range l.Snapshot.Brokers {
		if want := br.ID == "d:8080"; br.Estimated != want {
			t.Errorf("%s: estimated is %v", br.ID, br.Estimated)
		}
	}
}

// A broker whose clock is an hour off is as fresh as its last report is by our clock.
func TestAgesCountFromHearing(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Advise, script{}, false)
	err := e.With(t.Context(), func(cl *simulate.Cluster) {
		if err := cl.Skew(b, -time.Hour); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Sleep(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	l := look(t, w)
	at := l.Snapshot.LoadIndex(b)
	if at < 0 {
		t.Fatal("no load data")
	}
	if age := l.Snapshot.Now - l.Snapshot.Load[at].Data.UpdatedAt; age < 0 || age > 90_000 {
		t.Errorf("its load data is %d ms old", age)
	}
}

// Brokers repeat tombstones, and send them for keys that are not there.
func TestTombstonesOfNothing(t *testing.T) {
	e := small(t, nil)
	w := process(t, e, "one", control.Advise, script{}, false)
	look(t, w)
	for _, topic := range []string{topics.BrokerLoadData, topics.TopBundles, topics.ServiceUnitState} {
		pub, err := e.Log().Publisher(t.Context(), topic, topics.PublishOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{b, b, "never:1", "never/heard/0x00000000_0xffffffff"} {
			if _, err := pub.Publish(t.Context(), key, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if diff := cmp.Diff([]string{b}, look(t, w).Missing); diff != "" {
		t.Errorf("missing (-want +got):\n%s", diff)
	}
}
