package monitor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
)

func TestSortBundles(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	stats := func(rate, bytes float64) *Rates {
		return Of(&event.NamespaceBundleStats{MsgRateIn: rate, MsgThroughputOut: bytes})
	}
	list := []Bundle{
		{Name: "a", Owner: "y", Topics: n(3), Now: stats(1, 30)},
		{Name: "b", Owner: "x", Topics: n(1), Now: stats(3, 10), Long: &Average{Rates: *stats(5, 0)}},
		{Name: "c", Owner: "x"}, // nothing is known of it
		{Name: "d", Owner: "x", Topics: n(2), Now: stats(2, 20), Short: &Average{Rates: *stats(9, 0)}, Long: &Average{Rates: *stats(7, 0)}},
		{Name: "e", Owner: "y", Topics: n(2), Now: stats(2, 20)},
	}
	for key, want := range map[string]string{"throughput": "adebc", "rate": "bdeac", "topics": "adebc", "short": "dabce", "long": "dbace", "name": "abcde", "owner": "dbcae"} {
		got := slices.Clone(list)
		slices.Reverse(got)
		if err := SortBundles(got, key); err != nil {
			t.Fatal(err)
		}
		var order strings.Builder
		for _, b := range got {
			order.WriteString(b.Name)
		}
		if order.String() != want {
			t.Errorf("by %s: %s, want %s", key, &order, want)
		}
	}
	if err := SortBundles(nil, "size"); err == nil || !strings.Contains(err.Error(), "throughput, rate, topics") {
		t.Error(err)
	}
}

// TestBlankIsNotZero: what is not known is blank in a table and null as JSON.
func TestBlankIsNotZero(t *testing.T) {
	var b strings.Builder
	if err := WriteBrokers(&b, []Broker{{ID: "a:8080", Leads: true}, {ID: "b:8080", Usage: UsageOf(event.ResourceUsage{Usage: 50, Limit: 200}, event.ResourceUsage{},
		event.ResourceUsage{Usage: 1, Limit: 4}, event.ResourceUsage{Usage: 5, Limit: -1000}, event.ResourceUsage{Usage: -1, Limit: 10})}}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if got := strings.Fields(lines[1]); !slices.Equal(got, []string{"a:8080", "*"}) {
		t.Errorf("nothing is known of it, printed is %q", got)
	}
	if got := strings.Fields(lines[2]); !slices.Equal(got, []string{"b:8080", "25.00", "25.00", "25.00"}) { // CPU, direct memory, maximum
		t.Errorf("printed is %q", got)
	}
	doc, err := json.Marshal(Bundle{Name: "t/n/0x00000000_0xffffffff"})
	if err != nil || !strings.Contains(string(doc), `"topics":null`) || !strings.Contains(string(doc), `"rates":null`) || !strings.Contains(string(doc), `"longTerm":null`) {
		t.Errorf("%s, %v", doc, err)
	}
	if AverageOf(&event.TimeAverageMessageData{MaxSamples: 10, MsgRateIn: 50}) != nil {
		t.Error("an average without a sample holds defaults, which are no measurement")
	}
}

// TestAverages: one sample for each report that says something new, as a Modular leader folds them.
func TestAverages(t *testing.T) {
	report := func(at int64, rate float64) *event.LocalBrokerData {
		return &event.LocalBrokerData{LastUpdate: at, LastStats: []event.NamedBundleStats{{Bundle: "t/n/0x00000000_0x80000000", Stats: event.NamespaceBundleStats{MsgRateIn: rate}}}}
	}
	var a Averages
	for i, x := range []struct {
		at         int64
		rate, want float64
	}{{1, 10, 10}, {1, 10, 10}, {2, 20, 15}, {3, 30, 20}} {
		if got := a.Hear("a:8080", report(x.at, x.rate)); got.ShortTermMsgRateIn != x.want || got.LongTermMsgRateIn != x.want {
			t.Errorf("report %d: %+v, want %v", i, got, x.want)
		}
	}
	if a.Samples() != 3 {
		t.Errorf("%d samples, want 3", a.Samples())
	}
	var kept Averages
	d := load.NewBundleData(10, 1000, event.NamespaceBundleStats{MsgRateIn: 100})
	d.ShortTermData.NumSamples = 9
	kept.Start(map[string]event.BundleData{"t/n/0x00000000_0x80000000": d})
	if got := kept.Hear("a:8080", report(1, 0)); got.ShortTermMsgRateIn != 90 {
		t.Errorf("goes on from a kept history: %+v, want 90", got)
	}
}

// TestRebuild: the report of an Extensible broker has the members of a Modular one's and says what is not the broker's own.
func TestRebuild(t *testing.T) {
	s := Sources{Broker: "b1:8080", Version: "4.2.4", Class: "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl", Now: 100_000, Heard: 70_000,
		Config: map[string]string{"webServicePort": "Optional[8080]", "brokerServicePort": "Optional[6650]", "webServicePortTls": "Optional.empty",
			"advertisedListeners": "null", "enableNonPersistentTopics": "false"},
		Load: &event.BrokerLoadData{CPU: event.ResourceUsage{Usage: 50, Limit: 200}, UpdatedAt: 65_000, Topics: 9, BundleCount: 4, MsgRateIn: 7},
		Stats: []event.NamedBundleStats{{Bundle: "t/n/0x00000000_0x80000000", Stats: event.NamespaceBundleStats{MsgRateIn: 2, Topics: 1, ConsumerCount: 3}},
			{Bundle: "t/n/0x80000000_0xffffffff", Stats: event.NamespaceBundleStats{MsgRateIn: 3, Topics: 2, ProducerCount: 1}}},
		StatsFrom: "its topics", Owned: []string{"t/n/0x00000000_0x80000000", "t/idle/0x00000000_0xffffffff"},
	}
	var got map[string]any
	decode := func(r Rebuilt) {
		t.Helper()
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		got = nil
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		if _, err := event.Decode[event.LocalBrokerData](b); err != nil {
			t.Errorf("readers of reports cannot read it: %v", err)
		}
	}
	decode(Rebuild(s))
	for key, want := range map[string]any{"webServiceUrl": "http://b1:8080", "pulsarServiceUrl": "pulsar://b1:6650", "numTopics": 3.0, "numBundles": 2.0, "numConsumers": 3.0,
		"msgRateIn": 5.0, "maxResourceUsage": 0.25, "lastUpdate": 65_000.0, "nonPersistentTopicsEnabled": false, "loadReportType": "LocalBrokerData", "brokerVersionString": "4.2.4"} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
	want := map[string]any{"from": []any{"the runtime configuration", "its load data, heard 30 s ago", "its topics"},
		"missing": []any{"lastStats.cacheSize", "startTimestamp", "lastBundleGains", "lastBundleLosses"}, "idleBundles": []any{"t/idle/0x00000000_0xffffffff"}}
	if diff := cmp.Diff(want, got["rebuilt"]); diff != "" {
		t.Errorf("rebuilt (-want +got):\n%s", diff)
	}

	s.Stats, s.StatsFrom, s.Estimated = nil, "", true
	s.Top = []event.BundleLoad{{BundleName: "t/n/0x80000000_0xffffffff", Stats: event.NamespaceBundleStats{MsgRateIn: 3, Topics: 2}}}
	r := Rebuild(s)
	if r.Report.NumTopics != 9 || r.Report.NumBundles != 4 || r.Report.MsgRateIn != 7 || !slices.Contains(r.Estimated, "lastStats") || !slices.Contains(r.Estimated, "cpu") {
		t.Errorf("from the heaviest bundles: %+v", r)
	}
	s.Load.NullResources = event.ResourceSet(0).With(event.Memory)
	if decode(Rebuild(s)); !slices.Contains(Rebuild(s).Missing, "memory") {
		t.Errorf("a resource that is null in the load data: %v", got["rebuilt"])
	}
	r = Rebuild(Sources{Broker: "b1:8080"})
	decode(r)
	if !slices.Contains(r.Missing, "cpu") || !slices.Contains(r.Missing, "bundles") || !slices.Contains(r.Missing, "webServiceUrl") || r.Report.CPU.Limit != -1 {
		t.Errorf("from nothing: %+v, %v", r, got)
	}
}
