package simulate

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

func samplesOf(step time.Duration, rows ...[]float64) []Sample {
	var out []Sample
	for i, loads := range rows {
		s := Sample{At: int64(i) * step.Milliseconds(), Loads: loads}
		sum, most, n := 0.0, 0.0, 0.0
		for _, l := range loads {
			if !math.IsNaN(l) {
				sum, most, n = sum+l, max(most, l), n+1
			}
		}
		s.MaxMean = most * n / sum
		out = append(out, s)
	}
	return out
}

func TestScoreboard(t *testing.T) {
	nan := math.NaN()
	samples := samplesOf(10*time.Second,
		[]float64{30, 10, nan}, // 1.5
		[]float64{22, 18, nan}, // 1.1
		[]float64{30, 5, 10},   // 2
		[]float64{18, 17, 10},  // 1.2
		[]float64{16, 15, 14},  // 16/15
	)
	var s Scoreboard
	s.evenness(samples)
	if s.Start != 1.5 || s.Worst != 2 || math.Abs(s.End-16.0/15) > 1e-12 {
		t.Errorf("max/mean %v to %v, worst %v", s.Start, s.End, s.Worst)
	}
	if want := 10 * (0.5 + 0.1 + 1 + 0.2); math.Abs(s.Excess-want) > 1e-9 {
		t.Errorf("excess %v s, want %v", s.Excess, want)
	}
	if s.Reached != 10*time.Second || s.Held != 30*time.Second {
		t.Errorf("even after %v, to stay after %v", s.Reached, s.Held)
	}

	const b = 1 << 20
	move := func(at int64, bundle, from, to string, why Cause, load float64) Move {
		return Move{At: at, Bundle: bundle, From: from, To: to, Cause: why, Topics: 2, Traffic: Traffic{BytesIn: load * b / 2, BytesOut: load * b / 2}}
	}
	s = Scoreboard{}
	s.movement([]Move{
		move(5, "x", "a", "b", Shed, 10), // before the account begins
		move(10, "x", "a", "b", Shed, 10),
		move(20, "x", "b", "a", Asked, 10), // undone
		move(30, "y", "a", "c", Shed, 20),  // a trend
		move(40, "z", "a", "c", Shed, 20),
		move(50, "z", "c", "c", Shed, 20), // back where it was
		move(60, "w", "b", "a", Overridden, 50),
		move(70, "w", "b", "a", Placed, 50),
	}, 10, 100*b)
	if s.Moves != 5 || s.Topics != 10 || s.Repeats != 2 || s.Futile != 1 || s.Overridden != 1 {
		t.Errorf("%+v", s)
	}
	// a gave 50 and gained 10, b gave and gained 10, c gained 60 and gave 20, of 100.
	if math.Abs(s.Moved-0.8) > 1e-12 || math.Abs(s.Thrash-0.4) > 1e-12 {
		t.Errorf("moved %v, undone %v", s.Moved, s.Thrash)
	}
}

func TestPlot(t *testing.T) {
	got := Plot(samplesOf(10*time.Minute, []float64{30, 10}, []float64{30, 10}, []float64{24, 16}, []float64{22, 18}, []float64{20, 20}), 5, 5)
	const want = `  1.50 |**
  1.38 |
  1.25 |..*..
  1.12 |   *
  1.00 |    *
       +-----
        00:40:00
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for _, x := range []struct {
		samples       []Sample
		width, height int
	}{{nil, 10, 10}, {samplesOf(1, []float64{1, 1}), 0, 10}, {samplesOf(1, []float64{1, 1}), 10, 1}} {
		if got := Plot(x.samples, x.width, x.height); got != "" {
			t.Errorf("%+v: got\n%s", x, got)
		}
	}
}

// TestScenariosRepeat runs every case twice: decisions, loads and what is on the wire are the same, byte for byte.
func TestScenariosRepeat(t *testing.T) {
	for _, s := range Cases() {
		run := func() []byte {
			r, err := runCase(s, []string{"AvgShedder", "place=AvgShedder"})
			if err != nil {
				t.Fatal(err)
			}
			out := []byte(r.Log() + r.Scoreboard().String())
			for _, x := range r.Samples {
				out = append(out, r.Loads(x)...)
			}
			return append(out, wire(r.Cluster.Take())...)
		}
		if !bytes.Equal(run(), run()) {
			t.Errorf("%s: two runs differ", s.Name)
		}
	}
}

func TestScenarioErrors(t *testing.T) {
	if _, err := CaseNamed("A99"); err == nil || !strings.Contains(err.Error(), `"A99"`) {
		t.Errorf("got %v", err)
	}
	s, err := CaseNamed("A1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.With("loadBalancerSheddingIntervalMinuts", "1"); err == nil || !strings.Contains(err.Error(), "loadBalancerSheddingIntervalMinutes") {
		t.Errorf("a misspelt key: got %v", err)
	}
	s.Changes = []Change{killed(9, time.Second)}
	if _, err := s.Run(nil); err == nil || !strings.Contains(err.Error(), `"broker-9:8080"`) {
		t.Errorf("a change that cannot be made: got %v", err)
	}
}

// FuzzHear lets anybody write anything on the system topics.
func FuzzHear(f *testing.F) {
	f.Add(0, "public/sim/0x00000000_0x80000000", []byte(`{"state":"Releasing","sourceBroker":"broker-1:8080","dstBroker":"broker-2:8080","versionId":3}`))
	f.Add(0, "public/sim/0x00000000_0x80000000", []byte(`{"state":"Splitting","sourceBroker":"broker-1:8080","versionId":9,"force":true,"splitServiceUnitToDestBroker":{"0x00000000_0x40000000":null,"x":null}}`))
	f.Add(0, "public/sim/0x00000000_0x80000000", []byte(`{"state":"Owned","dstBroker":"nobody","versionId":9223372036854775807}`))
	f.Add(0, "nonsense", []byte(nil))
	f.Add(1, "broker-1:8080", []byte(`{"weightedMaxEMA":"NaN","msgThroughputIn":"Infinity"}`))
	f.Add(2, "broker-1:8080", []byte(`{"topBundlesLoadData":[{"bundleName":null,"stats":null}]}`))
	f.Fuzz(func(t *testing.T, topic int, key string, payload []byte) {
		ns := Namespace{Name: "public/sim", Bundles: []Bundle{{Traffic: Messages(10, 100), NumTopics: 4}, {Traffic: Messages(10, 100), NumTopics: 4}}}
		c, err := New(Config{System: -1, Brokers: brokersOf(2, caseBroker), Namespaces: []Namespace{ns}})
		if err != nil {
			t.Fatal(err)
		}
		c.Run(time.Minute)
		system := [...]string{topics.ServiceUnitState, topics.BrokerLoadData, topics.TopBundles}
		c.Hear(system[uint(topic)%3], key, payload)
		c.Run(3 * time.Minute)
		c.Snapshot()
	})
}
