package simulate

import (
	"bytes"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/topics"
)

// wire is everything that a cluster published, as text.
func wire(events []Event) []byte {
	var b bytes.Buffer
	for _, e := range events {
		fmt.Fprintf(&b, "%d %s %s %s %s\n", e.At, e.Producer, e.Topic, e.Key, e.Payload)
	}
	return b.Bytes()
}

// TestSameSeedSameCluster runs the demonstration with faults twice, and with another seed.
func TestSameSeedSameCluster(t *testing.T) {
	run := func(seed uint64, step time.Duration) []byte {
		c, err := New(DemoCluster(seed))
		if err != nil {
			t.Fatal(err)
		}
		advance := func(d time.Duration) {
			for ; d > 0; d -= step {
				c.Run(min(step, d))
			}
		}
		advance(3 * time.Minute)
		for _, err := range []error{c.Kill(demoBroker(0)), c.Skew(demoBroker(1), time.Hour), c.Freeze(demoBroker(2))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		advance(2 * time.Minute)
		for _, err := range []error{c.Restart(demoBroker(0)), c.Thaw(demoBroker(2))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		advance(2 * time.Minute)
		return wire(c.Take())
	}
	first := run(1, 7*time.Minute)
	if !bytes.Equal(first, run(1, 7*time.Minute)) {
		t.Error("the same seed gave another cluster")
	}
	if !bytes.Equal(first, run(1, 700*time.Millisecond)) {
		t.Error("advancing in small steps gave another cluster")
	}
	if bytes.Equal(first, run(2, 7*time.Minute)) {
		t.Error("another seed gave the same cluster")
	}
}

// TestAnyHistoryEndsWell does random things to a cluster. Whatever happens, the log tells everybody the same story as the
// cluster's own state, every accepted record follows the one before it, and once all faults are over every bundle is served
// by the broker that the log says owns it.
func TestAnyHistoryEndsWell(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers := rapid.IntRange(2, 5).Draw(t, "brokers")
		cfg := Config{Seed: rapid.Uint64().Draw(t, "seed"), Brokers: brokersOf(brokers, Broker{Cores: 2, HeapMiB: 400, DirectMiB: 256, NICKbit: 1e6})}
		ns := Namespace{Name: "public/any"}
		for range rapid.IntRange(1, 12).Draw(t, "bundles") {
			ns.Bundles = append(ns.Bundles, Bundle{Traffic: Messages(50, 1000), NumTopics: 3})
		}
		cfg.Namespaces = []Namespace{ns}
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		id := func() string { return brokerID(rapid.IntRange(1, brokers).Draw(t, "broker")) }
		some := func() string {
			all := c.namespaceBundles("public/any")
			return all[rapid.IntRange(0, len(all)-1).Draw(t, "bundle")].name
		}
		t.Repeat(map[string]func(*rapid.T){
			// What cannot be done in a state is refused; that is part of the history.
			"unload":  func(t *rapid.T) { _ = c.unload(some(), id(), Asked, func(error) {}) },
			"free":    func(t *rapid.T) { _ = c.unload(some(), "", Asked, func(error) {}) },
			"split":   func(t *rapid.T) { _ = c.split(some(), "", nil, func(error) {}) },
			"kill":    func(t *rapid.T) { _ = c.Kill(id()) },
			"restart": func(t *rapid.T) { _ = c.Restart(id()) },
			"freeze":  func(t *rapid.T) { _ = c.Freeze(id()) },
			"thaw":    func(t *rapid.T) { _ = c.Thaw(id()) },
			"stop":    func(t *rapid.T) { _ = c.Stop(id()) },
			"silence": func(t *rapid.T) { c.Silence(topics.ServiceUnitState, time.Second) },
			"wait": func(t *rapid.T) {
				c.Run(time.Duration(rapid.IntRange(1, 45_000).Draw(t, "ms")) * time.Millisecond)
			},
		})
		c.Run(10 * time.Second) // whoever is shutting down is down then
		for i := range brokers {
			_ = c.Thaw(brokerID(i + 1))
			_ = c.Restart(brokerID(i + 1))
		}
		c.Run(5 * time.Minute)
		checkLog(t, c)
		checkServed(t, c)
	})
}

// checkLog folds what was published as a reader would.
func checkLog(t *rapid.T, c *Cluster) {
	folded := map[string]*event.ServiceUnitStateData{}
	for _, e := range c.Take() {
		if e.Topic != topics.ServiceUnitState {
			continue
		}
		var next *event.ServiceUnitStateData
		if len(e.Payload) > 0 {
			d, err := event.Decode[event.ServiceUnitStateData](e.Payload)
			if err != nil {
				t.Fatalf("%s: %v", e.Payload, err)
			}
			next = &d
		}
		verdict := ownership.Resolver{}.Decide(folded[e.Key], next)
		switch {
		case verdict.Keep:
		case verdict.Rule == ownership.Gap:
			t.Fatalf("%s jumps to %s", e.Key, e.Payload)
		case next == nil:
			delete(folded, e.Key)
		default:
			folded[e.Key] = next
		}
	}
	if diff := cmp.Diff(c.records, folded); diff != "" {
		t.Fatalf("the log tells another story (-cluster +log):\n%s", diff)
	}
}

func checkServed(t *rapid.T, c *Cluster) {
	for name, d := range c.records {
		// A parent whose broker died before the tombstone stays Deleted for an hour.
		if c.bundles[name] == nil && d.State != event.Deleted {
			t.Errorf("%s is gone, its record is %+v", name, d)
		}
	}
	for _, x := range c.sortedBundles() {
		d := c.records[x.name]
		switch {
		case d == nil || d.State != event.Owned:
			t.Errorf("%s is %+v", x.name, d)
		case !x.served():
			t.Errorf("%s is served by nobody", x.name)
		case x.server.ID != d.DstBroker:
			t.Errorf("%s is served by %s, the log says %s", x.name, x.server.ID, d.DstBroker)
		}
	}
}

// TestTrafficIsCounted: what a broker reports is what its bundles carry, and a broker that cannot bear it reports its limit.
func TestTrafficIsCounted(t *testing.T) {
	cfg := Config{System: -1, Cost: Cost{CPUPerMsg: 0.01, Replicas: 1}, Brokers: []Broker{
		{ID: "fits:1", Cores: 1, NICKbit: 100_000, Background: Background{CPU: 5, InKbit: 1000, OutKbit: 2000}},
		{ID: "full:1", Cores: 1, NICKbit: 8_000},
		{ID: "blind:1", Cores: 1},
	}}
	ns := Namespace{Name: "public/sim"}
	for i := range 6 {
		ns.Bundles = append(ns.Bundles, Bundle{Traffic: Messages(250, 1000), NumTopics: 2, Owner: cfg.Brokers[i%3].ID})
	}
	cfg.Namespaces = []Namespace{ns}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Run(4 * time.Minute)
	for _, x := range []struct {
		id               string
		cpu, out, outMax float64 // percent of a core, kbit/s
		rate             float64
	}{
		{"fits:1", 5 + 10, 2000 + 8000, 100_000, 500},
		{"full:1", 10, 8000, 8000, 500}, // out is 8,000 kbit/s: exactly what the network bears
		{"blind:1", 10, -1, -1, 500},
	} {
		b := c.brokerByID[x.id]
		u := b.systemUsage()
		for _, f := range []struct {
			name      string
			got, want float64
		}{
			{"cpu", u.CPU.Usage, x.cpu}, {"out", u.BandwidthOut.Usage, x.out}, {"out limit", u.BandwidthOut.Limit, x.outMax},
			{"rate in", b.totals.MsgRateIn, x.rate}, {"rate out", b.totals.MsgRateOut, x.rate}, {"bundles", float64(b.totals.BundleCount), 2},
			{"topics", float64(b.totals.Topics), 4},
		} {
			if math.Abs(f.got-f.want) > 1e-6*math.Abs(f.want) {
				t.Errorf("%s: %s is %v, want %v", x.id, f.name, f.got, f.want)
			}
		}
	}
	// Half of the network: half of the traffic.
	c.brokerByID["full:1"].NICKbit = 4_000
	c.Run(3 * time.Minute)
	if got := c.brokerByID["full:1"].totals.MsgRateIn; math.Abs(got-250) > 1e-6 {
		t.Errorf("rate in of a broker with half the network is %v, want 250", got)
	}
}

func TestShapes(t *testing.T) {
	const m = time.Minute
	for _, x := range []struct {
		shape Shape
		want  [5]float64 // at 0, 15, 30, 45 and 60 minutes
	}{
		{nil, [5]float64{1, 1, 1, 1, 1}},
		{Constant{}, [5]float64{1, 1, 1, 1, 1}},
		{Square{Period: 30 * m, Duty: 0.4, High: 3, Low: 1}, [5]float64{3, 1, 3, 1, 3}},
		{Square{Period: 30 * m, Phase: 15 * m, Duty: 0.4, High: 3, Low: 1}, [5]float64{1, 3, 1, 3, 1}},
		{Square{Duty: 1, High: 2}, [5]float64{2, 2, 2, 2, 2}},
		{Growth{PerHour: 1}, [5]float64{1, 1.25, 1.5, 1.75, 2}},
		{Growth{PerHour: 1, Limit: 1.6}, [5]float64{1, 1.25, 1.5, 1.6, 1.6}},
		{Growth{PerHour: -2}, [5]float64{1, 0.5, 0, 0, 0}},
		{Daily{Day: time.Hour, Low: 1, High: 3}, [5]float64{1, 2, 3, 2, 1}},
		{Step{At: 30 * m, Before: 1, After: 4}, [5]float64{1, 1, 4, 4, 4}},
		{Product{Growth{PerHour: 1}, Step{At: 30 * m, Before: 1, After: 2}}, [5]float64{1, 1.25, 3, 3.5, 4}},
		{Product{Constant{}, Noise{Seed: 1}}, [5]float64{1, 1, 1, 1, 1}},
		{Growth{PerHour: math.NaN()}, [5]float64{}},
		{Growth{PerHour: math.Inf(1)}, [5]float64{}},
	} {
		var got [5]float64
		for i := range got {
			got[i] = factor(x.shape, time.Duration(i)*15*m)
		}
		if got != x.want {
			t.Errorf("%#v: %v, want %v", x.shape, got, x.want)
		}
	}
	n := Noise{Seed: 7, Amplitude: 0.2}
	sum := 0.0
	for i := range 10_000 {
		f := n.Factor(time.Duration(i) * 10 * time.Second)
		if f < 0.8 || f >= 1.2 {
			t.Fatalf("noise of 20 %% gives %v", f)
		}
		sum += f
	}
	if mean := sum / 10_000; math.Abs(mean-1) > 0.01 {
		t.Errorf("noise has the mean %v", mean)
	}
}

func TestZipfShares(t *testing.T) {
	shares := ZipfShares(64, 0.6)
	sum := 0.0
	for i, s := range shares {
		if i > 0 && s >= shares[i-1] {
			t.Errorf("share %d is %v after %v", i, s, shares[i-1])
		}
		sum += s
	}
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("the shares sum to %v", sum)
	}
	if got := ZipfShares(0, 1); len(got) != 0 {
		t.Errorf("no shares are %v", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	ok := Broker{ID: "a:1"}
	for _, x := range []struct {
		name string
		cfg  Config
		want string
	}{
		{"no broker", Config{}, "simulate: no broker: at least one is needed"},
		{"twice", Config{Brokers: []Broker{ok, ok}}, `simulate: broker 1 has the id "a:1": ids must be there and differ`},
		{"capacity", Config{Brokers: []Broker{{ID: "a:1", Cores: math.Inf(1)}}}, "simulate: broker a:1 has the capacity +Inf: it must be finite"},
		{"namespace", Config{Brokers: []Broker{ok}, Namespaces: []Namespace{{Name: "pulsar/system"}}}, `simulate: namespace "pulsar/system": names must be there and differ`},
		{"traffic", Config{Brokers: []Broker{ok}, Namespaces: []Namespace{{Name: "a/b", Bundles: []Bundle{{Traffic: Traffic{MsgIn: math.NaN()}}}}}},
			"simulate: bundle 0 of a/b has the traffic {MsgIn:NaN MsgOut:0 BytesIn:0 BytesOut:0}: it must be finite and not negative"},
		{"owner", Config{Brokers: []Broker{ok}, Namespaces: []Namespace{{Name: "a/b", Bundles: []Bundle{{Owner: "b:1"}}}}},
			`simulate: bundle 0 of a/b starts on "b:1", which is no broker`},
		{"range", Config{Brokers: []Broker{ok}, Namespaces: []Namespace{{Name: "a/b", Bundles: []Bundle{{Range: "0x0_0x1"}}}}},
			`simulate: bundle 0 of a/b: "0x0_0x1" is not a range of hashes: it must be 0xLLLLLLLL_0xUUUUUUUU with the lower bound first`},
		{"overlap", Config{Brokers: []Broker{ok}, Namespaces: []Namespace{{Name: "a/b", Bundles: []Bundle{{Range: "0x00000000_0x80000000"}, {Range: "0x40000000_0xffffffff"}}}}},
			"simulate: bundle 1 of a/b begins at 0x40000000, before the end of the one before it"},
		{"some ranges", Config{Brokers: []Broker{ok}, Namespaces: []Namespace{{Name: "a/b", Bundles: []Bundle{{Range: "0x00000000_0x80000000"}, {}}}}},
			"simulate: 1 of the 2 bundles of a/b have a range: give all or none"},
	} {
		if _, err := New(x.cfg); err == nil || err.Error() != x.want {
			t.Errorf("%s: got %v, want %s", x.name, err, x.want)
		}
	}
}

// TestHeapIsASawTooth: the heap climbs with what is handled and falls when it is full, between its floor and ceiling.
func TestHeapIsASawTooth(t *testing.T) {
	c, err := New(Config{System: -1, Brokers: []Broker{{ID: "a:1", Cores: 4, HeapMiB: 1000}},
		Namespaces: []Namespace{{Name: "public/sim", Bundles: []Bundle{{Traffic: Messages(2000, 5000)}}}}})
	if err != nil {
		t.Fatal(err)
	}
	b, falls := c.brokerByID["a:1"], 0
	before := b.systemUsage().Memory.Usage
	for range 600 {
		c.Run(time.Second)
		u := b.systemUsage().Memory
		if u.Limit != 1000 || u.Usage < 200 || u.Usage > 900 {
			t.Fatalf("heap %+v", u)
		}
		if u.Usage < before {
			falls++
		}
		before = u.Usage
	}
	// 20 MB/s allocate 30 MiB/s, one more is idle: 700 MiB are full after 22.6 s.
	if falls < 24 || falls > 28 {
		t.Errorf("the heap fell %d times in ten minutes", falls)
	}
}

// TestModularReports: a Modular cluster publishes nothing, answers for its load, and gives the bundles of a broker away as
// soon as its session is over.
func TestModularReports(t *testing.T) {
	cfg := DemoCluster(1)
	cfg.Kind = Modular
	m, _, err := managerOf("ThresholdShedder", "LeastLongTermMessageRate", false, cfg.Settings)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Manager = m
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.Hold(true)
	c.Run(3 * time.Minute)
	lost := demoBroker(1)
	d, err := c.LoadReport(lost)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, s := range d.LastStats {
		sum += s.Stats.MsgThroughputIn + s.Stats.MsgThroughputOut
	}
	if got := d.MsgThroughputIn + d.MsgThroughputOut; got == 0 || math.Abs(got-sum) > 1e-6*sum || len(d.Bundles) != int(d.NumBundles) {
		t.Errorf("throughput %v, that of its bundles %v; %d bundles, %d named", got, sum, d.NumBundles, len(d.Bundles))
	}
	if err := c.Kill(lost); err != nil {
		t.Fatal(err)
	}
	c.Run(DefaultTiming.Session + 5*time.Second)
	if _, err := c.LoadReport(lost); err == nil {
		t.Error("a dead broker reports")
	}
	for _, x := range c.sortedBundles() {
		if !x.served() {
			t.Errorf("%s is served by nobody", x.name)
		}
	}
	if events := c.Take(); len(events) > 0 {
		t.Errorf("%d events, the first is %+v", len(events), events[0])
	}
}
