package control_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

// kept is what a compacted topic holds, and how many tombstones were in it.
func (r *reported) kept(topic string) (values map[string]string, tombstones int) {
	r.t.Helper()
	sub, err := r.log.Subscribe(r.t.Context(), topic, topics.SubscribeOptions{From: topics.Earliest})
	if err != nil {
		r.t.Fatal(err)
	}
	defer sub.Close()
	values = map[string]string{}
	err = topics.Drain(r.t.Context(), sub, func(m topics.Message) error {
		if m.Tombstone() {
			tombstones++
			delete(values, m.Key)
			return nil
		}
		values[m.Key] = string(m.Payload)
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return values, tombstones
}

func threshold(t *testing.T) *modular.Manager {
	t.Helper()
	m, err := modular.New(modular.ThresholdShedder{}, modular.LeastLongTermMessageRate{}, modular.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A process that starts, or takes over, goes on with the averages of the one before: its next decision is that of a process
// that never stopped.
func TestRestartContinuesTheAverages(t *testing.T) {
	r := modularCluster(t, func(cfg *simulate.Config) {
		for i := range cfg.Namespaces[0].Bundles { // traffic that changes, so that averages differ from the present
			cfg.Namespaces[0].Bundles[i].Shape = simulate.Daily{Day: 7 * time.Minute, High: 1.5, Low: 0.5}
		}
		for i := range cfg.Brokers {
			cfg.Brokers[i].NICKbit = 4000
		}
	})
	staying, going := r.views(r.history(false), nil), r.views(r.history(true), nil)
	cycle := func(views ...*control.ReportViews) (out []*control.Look) {
		t.Helper()
		r.pass(20 * time.Second)
		r.report(a, b, c)
		for _, v := range views {
			out = append(out, r.look(v))
		}
		return out
	}
	for range 30 {
		cycle(staying, going)
	}
	if err := going.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	fresh, none := r.views(r.history(true), nil), r.views(nil, nil)
	looks := cycle(staying, fresh, none)
	decide := func(l *control.Look) (plan.Plan, map[string]event.BundleData) {
		if len(l.Frozen) > 0 {
			t.Fatal(l.Frozen)
		}
		m := control.OnReports(threshold(t), control.EngineOptions{Destinations: control.Hinted, Attempts: 3})
		p, _ := m.Shed(l.Snapshot, m.NewState(), simulate.NewRand(1, 1), nil)
		data := map[string]event.BundleData{}
		for _, x := range l.Snapshot.Bundles {
			if x.Data != nil {
				data[x.Name] = *x.Data
			}
		}
		return p, data
	}
	p, data := decide(looks[0])
	q, continued := decide(looks[1])
	_, begun := decide(looks[2])
	if len(p.Decisions) == 0 || len(data) < 4 {
		t.Fatalf("nothing was decided: %s", p.Outcome)
	}
	if diff := cmp.Diff(p, q); diff != "" {
		t.Errorf("the next plan (-without +with a restart):\n%s", diff)
	}
	if diff := cmp.Diff(data, continued); diff != "" {
		t.Errorf("averages (-without +with a restart):\n%s", diff)
	}
	if cmp.Equal(data, begun) {
		t.Error("the averages that begin anew are the same: nothing was shown")
	}
	for i := range looks[0].Snapshot.Brokers {
		if diff := cmp.Diff(looks[0].Snapshot.Brokers[i].TimeAverage, looks[1].Snapshot.Brokers[i].TimeAverage); diff != "" {
			t.Errorf("time averages:\n%s", diff)
		}
	}
}

// What changed is written when the interval is over; what is gone gets a tombstone; what nobody serves for a while stays.
func TestHistoryIsKept(t *testing.T) {
	r := modularCluster(t, func(cfg *simulate.Config) {
		cfg.Namespaces = append(cfg.Namespaces, simulate.Namespace{Name: "public/other", Bundles: []simulate.Bundle{{Traffic: simulate.Messages(10, 100), Owner: b}}})
	})
	r.pass(time.Minute)
	v := r.views(r.history(true), nil)
	step := func(d time.Duration, brokers ...string) *control.Look {
		t.Helper()
		r.pass(d)
		r.report(brokers...)
		return r.look(v)
	}
	step(0, a, b, c)
	if values, _ := r.kept(topics.BundleData); len(values) > 0 {
		t.Errorf("written before the interval was over: %v", values)
	}
	l := step(15*time.Minute, a, b, c)
	values, _ := r.kept(topics.BundleData)
	for _, x := range l.Snapshot.Bundles {
		if x.Data == nil {
			continue
		}
		var d event.BundleData
		if err := json.Unmarshal([]byte(values[x.Name]), &d); err != nil {
			t.Errorf("%s: %v", x.Name, err)
		} else if diff := cmp.Diff(*x.Data, d); diff != "" {
			t.Errorf("%s (-known +kept):\n%s", x.Name, diff)
		}
	}
	averages, _ := r.kept(topics.BrokerAverages)
	if diff := cmp.Diff([]string{a, b, c}, slices.Sorted(maps.Keys(averages))); diff != "" {
		t.Errorf("brokers (-want +kept):\n%s", diff)
	}

	// Nobody serves anything of b for a while: its averages stay.
	other := "public/other/0x00000000_0xffffffff"
	before := *l.Snapshot.Bundles[l.Snapshot.BundleIndex(other)].Data
	served, err := r.LoadReport(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	idle := withoutBundles(t, served)
	for range 3 {
		r.pass(15 * time.Minute)
		r.report(a, c)
		payload, err := json.Marshal(idle)
		if err != nil {
			t.Fatal(err)
		}
		r.send(topics.LocalBrokerData, b, payload)
		l = r.look(v)
	}
	x := l.Snapshot.Bundles[l.Snapshot.BundleIndex(other)]
	if x.Owner != "" || x.Data == nil || !cmp.Equal(before, *x.Data) {
		t.Errorf("unserved it is %+v with %+v, before %+v", x, x.Data, before)
	}
	if values, _ := r.kept(topics.BundleData); values[other] == "" {
		t.Error("its averages are gone")
	}

	// Nothing that nobody knows stays: a bundle that was split, a namespace that was deleted, a broker that left.
	gone := []string{ns + "/0x00000000_0x10000000", "public/deleted/0x00000000_0xffffffff"}
	for _, name := range gone {
		r.send(topics.BundleData, name, []byte(values[other]))
	}
	r.send(topics.BrokerAverages, "left:8080", []byte(averages[a]))
	step(15*time.Minute, a, b, c)
	values, stones := r.kept(topics.BundleData)
	for _, name := range gone {
		if _, there := values[name]; there {
			t.Errorf("%s is still kept", name)
		}
	}
	if averages, _ := r.kept(topics.BrokerAverages); stones != len(gone) || averages["left:8080"] != "" || len(averages) != 3 {
		t.Errorf("%d tombstones of bundles; brokers %v", stones, slices.Sorted(maps.Keys(averages)))
	}
}

// withoutBundles is a report of a broker that serves nothing.
func withoutBundles(t *testing.T, report any) (out map[string]any) {
	t.Helper()
	payload, err := json.Marshal(report)
	if err == nil {
		err = json.Unmarshal(payload, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	out["lastStats"], out["bundles"], out["numBundles"] = map[string]any{}, []string{}, 0
	return out
}

// A write that fails is done again, garbage in the topics is skipped, and what another process wrote counts.
func TestHistoryOfOthers(t *testing.T) {
	r := modularCluster(t, nil)
	v := r.views(r.history(true), nil)
	name := func() string {
		s := r.look(v).Snapshot
		return s.Bundles[s.BundleIndex(ns+"/0x00000000_0x40000000")].Name
	}
	r.report(a, b, c)
	bundle := name()
	r.log.SetFaults(topics.Faults{Publish: func(topic, key string, payload []byte) error {
		if topic == topics.BundleData && key == bundle {
			return errors.New("no room")
		}
		return nil
	}})
	if err := v.Leave(t.Context()); err == nil {
		t.Error("a write that failed is no error")
	}
	r.log.SetFaults(topics.Faults{})
	if values, _ := r.kept(topics.BundleData); values[bundle] != "" {
		t.Fatal("it was written")
	}
	if err := v.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	values, _ := r.kept(topics.BundleData)
	if values[bundle] == "" {
		t.Fatal("it was not written again")
	}
	r.send(topics.BundleData, bundle, []byte(`{"shortTermData":7}`))
	r.send(topics.BundleData, "no bundle", []byte(values[bundle]))
	before := *r.look(v).Snapshot.Bundles[0].Data
	if got := r.look(v).Snapshot.Bundles[0].Data; !cmp.Equal(before, *got) {
		t.Errorf("after garbage %+v, before %+v", got, before)
	}
	other := event.BundleData{Topics: 9, ShortTermData: event.TimeAverageMessageData{MaxSamples: 10, NumSamples: 10, MsgRateIn: 12345},
		LongTermData: event.TimeAverageMessageData{MaxSamples: 1000, NumSamples: 500, MsgRateIn: 54321}}
	payload, err := json.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	r.send(topics.BundleData, bundle, payload)
	s := r.look(v).Snapshot
	if got := s.Bundles[s.BundleIndex(bundle)].Data; !cmp.Equal(other, *got) {
		t.Errorf("what another process wrote is %+v here", got)
	}
}
