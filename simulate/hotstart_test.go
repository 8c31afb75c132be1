package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/settings"
)

// hotSeeds are the layouts of the hot start that are looked at.
var hotSeeds = []uint64{1, 2, 3, 4, 5}

// TestHotStart holds what TransferShedder makes of the hot start under which settings. Commands:
//
//	layouts                                       the bundles' parts of the traffic
//	run seed=N [size=BYTES] [hot=F] [KEY=VALUE]   one run, in full, with HotTuned
//	sweep [size=BYTES] [hot=F] [KEY=V,V,...]      all seeds: acting cycles needed, time, max/mean at the end, bundles moved twice
//	shipped                                       all seeds with Pulsar's own settings
func TestHotStart(t *testing.T) {
	datadriven.Walk(t, "testdata/hotstart", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
			out, err := hotCommand(td)
			if err != nil {
				td.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

func hotCommand(td *datadriven.TestData) (string, error) {
	size, hot, seed := 5000.0, 0.85, uint64(1)
	var key string
	values := []string{""}
	for _, a := range td.CmdArgs {
		var err error
		switch a.Key {
		case "size":
			_, err = fmt.Sscan(a.Vals[0], &size)
		case "hot":
			_, err = fmt.Sscan(a.Vals[0], &hot)
		case "seed":
			_, err = fmt.Sscan(a.Vals[0], &seed)
		default:
			key, values = a.Key, a.Vals
		}
		if err != nil {
			return "", err
		}
	}
	switch td.Cmd {
	case "layouts":
		return layouts(), nil
	case "run":
		r, err := hotRun(seed, size, hot, HotTuned, key, values[0])
		if err != nil {
			return "", err
		}
		return r.Log() + r.Scoreboard().String() + r.Loads(r.Samples[len(r.Samples)-1]) + "\n" + Plot(r.Samples, 60, 8), nil
	}
	tune := HotTuned
	if td.Cmd == "shipped" {
		tune = HotShipped
	}
	var b strings.Builder
	for _, v := range values {
		if v != "" {
			fmt.Fprintf(&b, "%s=%s:", key, v)
		}
		for _, seed := range hotSeeds {
			r, err := hotRun(seed, size, hot, tune, key, v)
			if err != nil {
				return "", err
			}
			s := r.Scoreboard()
			fmt.Fprintf(&b, "  %s", hotLine(s))
		}
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func hotLine(s Scoreboard) string {
	if s.Reached < 0 {
		return fmt.Sprintf("never, %.2f, %d", s.End, s.Repeats)
	}
	return fmt.Sprintf("%d cycles %s, %.2f, %d", s.Needed, clock(s.Reached), s.End, s.Repeats)
}

func hotRun(seed uint64, size, hot float64, tune func(*settings.Settings), key, value string) (*Run, error) {
	s := HotStart(seed, Messages(1000, size), hot, tune)
	if key != "" {
		var err error
		if s, err = s.With(key, value); err != nil {
			return nil, err
		}
	}
	return s.Run(extensible.New(nil, nil, extensible.Options{}))
}

func layouts() string {
	var b strings.Builder
	for _, seed := range hotSeeds {
		var parts []string
		s := HotStart(seed, Messages(1000, 5000), 0.85, nil)
		for _, x := range s.Config.Namespaces[0].Bundles {
			parts = append(parts, fmt.Sprintf("%.1f", x.Traffic.MsgIn/10))
		}
		fmt.Fprintf(&b, "%d: %s\n", seed, strings.Join(parts, " "))
	}
	return b.String()
}

// TestHotTuned is the promise: TransferShedder as Pulsar has it makes every layout even within four acting cycles, whatever
// the brokers' timing and the order of their maps; with 5 top bundles it also moves no bundle twice.
func TestHotTuned(t *testing.T) {
	for _, hot := range []float64{0.7, 0.8, 0.9} {
		for _, seed := range hotSeeds {
			for timing := range uint64(2) {
				for _, top := range []int64{5, 6} {
					s := HotStart(seed, Messages(1000, 5000), hot, HotTuned).set(func(x *settings.Settings) {
						x.LoadBalancerMaxNumberOfBundlesInBundleLoadReport = top
					})
					s.Config.Seed = 100*seed + timing
					r, err := s.Run(extensible.New(nil, nil, extensible.Options{}))
					if err != nil {
						t.Fatal(err)
					}
					if x := r.Scoreboard(); x.Reached < 0 || x.Held < 0 || x.Needed > 4 || top == 5 && x.Repeats > 0 {
						t.Errorf("hot %v, layout %d, timing %d, %d top bundles: %s\n%s%s", hot, seed, timing, top, hotLine(x), r.Log(), x)
					}
				}
			}
		}
	}
}

func TestHotLayout(t *testing.T) {
	for _, seed := range hotSeeds {
		sum, bundles := 0.0, make([]float64, HotBundles)
		for _, x := range HotLayout("public/hot", seed) {
			sum += x.Share
			bundles[event.TopicHash(x.Topic)>>27] += x.Share
		}
		if sum < 1-1e-9 || sum > 1+1e-9 {
			t.Errorf("layout %d: the shares sum to %v", seed, sum)
		}
		for i, share := range bundles {
			if share > HotLimit {
				t.Errorf("layout %d: bundle %d has %v of the traffic", seed, i, share)
			}
		}
	}
}

// TestDemo: the cluster's own TransferShedder evens the demonstration out, and does so again after the rush.
func TestDemo(t *testing.T) {
	for seed := range uint64(5) {
		s := Scenario{Name: "demo", Config: DemoCluster(seed), Settle: 3 * time.Minute, Duration: 30 * time.Minute}
		r, err := s.Run(extensible.New(nil, nil, extensible.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		before := r.Samples[(DemoRush-s.Settle)/(5*time.Second)-1]
		if x := r.Scoreboard(); x.Start < 1.5 || before.MaxMean > Even || x.End > Even || x.Worst > 2.5 {
			t.Errorf("seed %d, max/mean %.3f before the rush:\n%s%s%s", seed, before.MaxMean, r.Log(), x, Plot(r.Samples, 60, 8))
		}
	}
}
