package traffic

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// equalBundles are the bundles of a namespace as Pulsar divides it at first.
func equalBundles(ns string, n int) []string {
	var bundles []string
	for i := range n {
		low, high := uint64(i)*(math.MaxUint32/uint64(n)), uint64(i+1)*(math.MaxUint32/uint64(n))
		if i == n-1 {
			high = math.MaxUint32
		}
		bundles = append(bundles, fmt.Sprintf("%s/0x%08x_0x%08x", ns, low, high))
	}
	return bundles
}

// The names and bundles are those that a Pulsar 4.2.4 broker gives for the same topics (lookup/v2/topic/.../bundle).
func TestTopicIn(t *testing.T) {
	for bundle, want := range map[string]string{
		"test/ns/0x00000000_0x40000000": "persistent://test/ns/t-2",
		"test/ns/0x40000000_0x80000000": "persistent://test/ns/t-3",
		"test/ns/0x80000000_0xc0000000": "persistent://test/ns/t-1",
		"test/ns/0xc0000000_0xffffffff": "persistent://test/ns/t-0",
	} {
		if got, err := TopicIn(bundle); err != nil || got != want {
			t.Errorf("TopicIn(%s) = %s, %v, want %s", bundle, got, err, want)
		}
	}
	for _, bad := range []string{"", "test/ns", "test/ns/0x00", "0x00000000_0x40000000", "test/ns/0x4_0x4", "test/ns/a_b", "test/ns/0x0_0x100000000"} {
		if _, err := TopicIn(bad); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", bad)) {
			t.Errorf("TopicIn(%q): %v, want an error that names it", bad, err)
		}
	}
}

func TestNewLayoutRefuses(t *testing.T) {
	for name, shape := range map[string]Shape{
		"Bundles":  {},
		"MaxShare": {Bundles: equalBundles("test/ns", 4), MaxShare: 0.2},
		"Exponent": {Bundles: equalBundles("test/ns", 4), Exponent: math.NaN()},
		"Rate":     {Bundles: equalBundles("test/ns", 4), Rate: -1},
	} {
		if _, err := NewLayout(shape); err == nil || !strings.Contains(err.Error(), "Shape."+name) {
			t.Errorf("%s: %v, want an error that names the field", name, err)
		}
	}
}

func TestLayoutProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "bundles")
		shape := Shape{
			Bundles:         equalBundles("test/ns", n),
			TopicsPerBundle: rapid.IntRange(1, 3).Draw(t, "topics"),
			Rate:            rapid.Float64Range(1, 5000).Draw(t, "rate"),
			Exponent:        rapid.Float64Range(0, 2).Draw(t, "exponent"),
			Seed:            rapid.Uint64().Draw(t, "seed"),
		}
		if rapid.Bool().Draw(t, "capped") {
			shape.MaxShare = rapid.Float64Range(1/float64(n), 1).Draw(t, "share")
		}
		layout, err := NewLayout(shape)
		if err != nil {
			t.Fatal(err)
		}
		if len(layout) != n*shape.TopicsPerBundle {
			t.Fatalf("%d topics in %d bundles", len(layout), n)
		}
		if got := layout.Rate(); math.Abs(got-shape.Rate) > 1e-6*shape.Rate {
			t.Errorf("rate %v, want %v", got, shape.Rate)
		}
		for bundle, rate := range layout.Bundles() {
			if shape.MaxShare > 0 && rate > shape.MaxShare*shape.Rate*(1+1e-6) {
				t.Errorf("%s has %v of %v, more than the share %v", bundle, rate, shape.Rate, shape.MaxShare)
			}
		}
		again, err := NewLayout(shape)
		if diff := cmp.Diff(layout, again); diff != "" || err != nil {
			t.Errorf("not the same again: %v\n%s", err, diff)
		}
		names := map[string]bool{}
		for _, topic := range layout {
			if topic.Rate <= 0 || names[topic.Name] {
				t.Errorf("%s has the rate %v or is there twice", topic.Name, topic.Rate)
			}
			names[topic.Name] = true
		}
		if best := layout.Best(3); best < 1-1e-9 || best > 3+1e-9 {
			t.Errorf("best ratio of three brokers %v", best)
		}
	})
}

// Zipf with exponent 1 over four topics: shares 12/25, 6/25, 4/25, 3/25. A cap of 0.4 on the heaviest leaves the rest in
// proportion: 0.6 is divided 6:4:3. The next cap, 0.3, is met by the second as well after the first round.
func TestCap(t *testing.T) {
	for _, c := range []struct {
		share float64
		want  []float64
	}{
		{0, []float64{48, 24, 16, 12}},
		{0.4, []float64{40, 60 * 6 / 13.0, 60 * 4 / 13.0, 60 * 3 / 13.0}},
		{0.3, []float64{30, 30, 40 * 4 / 7.0, 40 * 3 / 7.0}},
		{0.25, []float64{25, 25, 25, 25}},
	} {
		layout := Layout{{Bundle: "a", Rate: 48}, {Bundle: "b", Rate: 24}, {Bundle: "c", Rate: 16}, {Bundle: "d", Rate: 12}}
		if c.share > 0 {
			layout.capBundles(c.share)
		}
		for i, topic := range layout {
			if math.Abs(topic.Rate-c.want[i]) > 1e-9 {
				t.Errorf("share %v: %v, want %v", c.share, layout, c.want)
				break
			}
		}
	}
}

func TestMaxOverMean(t *testing.T) {
	for _, c := range []struct {
		loads []float64
		want  float64
	}{{[]float64{1, 1, 1}, 1}, {[]float64{3, 0, 0}, 3}, {[]float64{2, 1, 0}, 2}} {
		if got := MaxOverMean(c.loads); got != c.want {
			t.Errorf("MaxOverMean(%v) = %v, want %v", c.loads, got, c.want)
		}
	}
	for _, none := range [][]float64{nil, {0, 0}} {
		if got := MaxOverMean(none); !math.IsNaN(got) {
			t.Errorf("MaxOverMean(%v) = %v, want NaN", none, got)
		}
	}
}
