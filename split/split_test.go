package split

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRecorded holds the algorithms against the answers of Pulsar 4.2.4's own classes.
func TestRecorded(t *testing.T) {
	f, err := os.Open(filepath.Join("testdata", "algorithms.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[Algorithm]int)
	for sc := bufio.NewScanner(z); sc.Scan(); {
		var line struct {
			Case      int
			Algorithm Algorithm
			Force     bool
			Lower     uint32
			Upper     uint32
			Topics    []struct {
				Hash                              uint32
				Known                             bool
				MsgRateIn, MsgRateOut             float64
				MsgThroughputIn, MsgThroughputOut float64
			}
			Positions          []uint32
			MaxMsgRate         float64
			MaxBandwidthMbytes float64
			DifferencePercent  float64
			Boundaries         []uint32
			Exception          string
		}
		if err := json.Unmarshal(sc.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		count[line.Algorithm]++
		r := Request{
			Range: Range{line.Lower, line.Upper}, Positions: line.Positions, Force: line.Force,
			MaxMsgRate: line.MaxMsgRate, MaxThroughput: line.MaxBandwidthMbytes * (1 << 20), DifferencePercent: line.DifferencePercent,
		}
		for _, x := range line.Topics {
			r.Topics = append(r.Topics, Topic{
				Hash: x.Hash, Known: x.Known, MsgRate: x.MsgRateIn + x.MsgRateOut, Throughput: x.MsgThroughputIn + x.MsgThroughputOut,
			})
		}
		got, ok, err := Boundaries(line.Algorithm, r)
		if failed := line.Exception != ""; failed != (err != nil) {
			t.Errorf("case %d %s: error %v, Pulsar: %q", line.Case, line.Algorithm, err, line.Exception)
		}
		if line.Exception == "" && (ok != (line.Boundaries != nil) || !slices.Equal(got, line.Boundaries)) {
			t.Errorf("case %d %s: got %v %v, Pulsar has %v", line.Case, line.Algorithm, got, ok, line.Boundaries)
		}
	}
	for _, a := range Algorithms() {
		if count[a] < 50 {
			t.Errorf("only %d recorded answers of %s", count[a], a)
		}
	}
}

func TestParseBundle(t *testing.T) {
	for _, c := range []struct {
		name, namespace, text, wrong string
	}{
		{name: "t/n/0x00000000_0x40000000", namespace: "t/n", text: "0x00000000_0x40000000"},
		{name: "t/n/0xc0000000_0xffffffff", namespace: "t/n", text: "0xc0000000_0xffffffff"},
		{name: "t/n/0x0_0x1", namespace: "t/n", text: "0x00000000_0x00000001"},
		{name: "t/c/n/0x0_0xFF", namespace: "t/c/n", text: "0x00000000_0x000000ff"},
		{name: "", wrong: "no namespace"},
		{name: "0x0_0x1", wrong: "no namespace"},
		{name: "t/n/", wrong: "no '_'"},
		{name: "t/n/0x0", wrong: "no '_'"},
		{name: "t/n/0_1", wrong: "does not begin with 0x"},
		{name: "t/n/0x0_0x100000000", wrong: "hex digits"},
		{name: "t/n/0x_0x1", wrong: "hex digits"},
		{name: "t/n/0x-1_0x1", wrong: "hex digits"},
		{name: "t/n/0x5_0x5", wrong: "empty"},
		{name: "t/n/0x6_0x5", wrong: "empty"},
	} {
		ns, r, err := ParseBundle(c.name)
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%q: error %v, want one about %q", c.name, err, c.wrong)
			}
		case err != nil:
			t.Errorf("%q: %v", c.name, err)
		case ns != c.namespace || r.String() != c.text:
			t.Errorf("%q: got %s %s", c.name, ns, r)
		}
	}
}

func TestRange(t *testing.T) {
	for _, c := range []struct {
		r   Range
		can bool
		in  []uint32
		out []uint32
	}{
		{r: Range{0, 1}, can: false, in: []uint32{0}, out: []uint32{1, Full}},
		{r: Range{0, 2}, can: true, in: []uint32{0, 1}, out: []uint32{2}},
		{r: Range{0, Full}, can: true, in: []uint32{0, Full - 1, Full}},
		{r: Range{Full - 1, Full}, can: false, in: []uint32{Full - 1, Full}, out: []uint32{Full - 2}},
		{r: Range{5, 3}, can: false, out: []uint32{3, 4, 5}},
	} {
		if got := c.r.CanSplit(); got != c.can {
			t.Errorf("%s: can split %v", c.r, got)
		}
		for _, h := range c.in {
			if !c.r.Contains(h) {
				t.Errorf("%s does not contain %d", c.r, h)
			}
		}
		for _, h := range c.out {
			if c.r.Contains(h) {
				t.Errorf("%s contains %d", c.r, h)
			}
		}
	}
	if got := Hash("123456789"); got != 0xcbf43926 {
		t.Errorf("hash is %#x, not the CRC-32 check value", got)
	}
}

func TestApply(t *testing.T) {
	bounds := []uint32{0, 100, 200, Full}
	for _, c := range []struct {
		r     Range
		cuts  []uint32
		want  []uint32
		wrong string
	}{
		{r: Range{100, 200}, cuts: []uint32{150}, want: []uint32{0, 100, 150, 200, Full}},
		{r: Range{0, 100}, cuts: []uint32{50, 25}, want: []uint32{0, 25, 50, 100, 200, Full}},
		{r: Range{200, Full}, cuts: []uint32{Full - 1}, want: []uint32{0, 100, 200, Full - 1, Full}},
		{r: Range{100, 200}, cuts: nil, wrong: "no boundary"},
		{r: Range{100, 200}, cuts: []uint32{100}, wrong: "strictly inside"},
		{r: Range{100, 200}, cuts: []uint32{200}, wrong: "strictly inside"},
		{r: Range{100, 200}, cuts: []uint32{150, 150}, wrong: "twice"},
		{r: Range{0, 200}, cuts: []uint32{150}, wrong: "not a bundle"},
		{r: Range{50, 60}, cuts: []uint32{55}, wrong: "not a bundle"},
	} {
		got, err := Apply(bounds, c.r, c.cuts)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s at %v: error %v, want one about %q", c.r, c.cuts, err, c.wrong)
			}
			continue
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s at %v: %v, %v", c.r, c.cuts, got, err)
		}
	}
	if !slices.Equal(bounds, []uint32{0, 100, 200, Full}) {
		t.Errorf("the given bounds were changed to %v", bounds)
	}
}

func TestParseAlgorithm(t *testing.T) {
	for _, a := range Algorithms() {
		if got, err := ParseAlgorithm(string(a)); got != a || err != nil {
			t.Errorf("%s: %v, %v", a, got, err)
		}
	}
	_, err := ParseAlgorithm("range")
	if err == nil || !strings.Contains(err.Error(), "range_equally_divide, topic_count_equally_divide") {
		t.Errorf("error %v does not list the algorithms", err)
	}
	if _, _, err := Boundaries("range", Request{}); err == nil {
		t.Error("an unknown algorithm was accepted")
	}
}

// TestChildrenProperty: children cover the parent without gap or overlap, whatever the boundaries.
func TestChildrenProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Range{rapid.Uint32().Draw(t, "lower"), rapid.Uint32().Draw(t, "upper")}
		cuts := rapid.SliceOfN(rapid.Uint32(), 0, 5).Draw(t, "cuts")
		children, err := r.Children(cuts)
		if err != nil {
			return
		}
		if len(children) != len(cuts)+1 {
			t.Fatalf("%d boundaries made %d children", len(cuts), len(children))
		}
		from := r.Lower
		for _, c := range children {
			if c.Lower != from || c.Upper <= c.Lower {
				t.Fatalf("child %s of %s does not follow on %#x", c, r, from)
			}
			from = c.Upper
		}
		if from != r.Upper {
			t.Fatalf("children of %s end at %#x", r, from)
		}
	})
}

// TestFlowProperty: with distinct hashes inside the range a flow split cuts ascending and strictly inside, and no part but
// those of one topic exceeds a limit.
func TestFlowProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Request{Range: Range{0, 1 << 20}, MaxMsgRate: 100, MaxThroughput: 1000}
		hashes := rapid.SliceOfNDistinct(rapid.Uint32Range(0, 1<<20-1), 0, 20, rapid.ID[uint32]).Draw(t, "hashes")
		for _, h := range hashes {
			r.Topics = append(r.Topics, Topic{Hash: h, Known: true,
				MsgRate: float64(rapid.IntRange(0, 60).Draw(t, "rate")), Throughput: float64(rapid.IntRange(0, 600).Draw(t, "throughput"))})
		}
		cuts, ok, err := Boundaries(FlowOrQPSEquallyDivide, r)
		if err != nil {
			t.Fatal(err)
		}
		if !ok || len(cuts) == 0 {
			return
		}
		children, err := r.Range.Children(cuts)
		if err != nil {
			t.Fatalf("cuts %v: %v", cuts, err)
		}
		for _, c := range children {
			var rate, throughput float64
			for _, x := range r.Topics {
				if c.Contains(x.Hash) {
					rate += x.MsgRate
					throughput += x.Throughput
				}
			}
			if rate > r.MaxMsgRate || throughput > r.MaxThroughput {
				t.Fatalf("part %s has %v msg/s and %v B/s", c, rate, throughput)
			}
		}
	})
}

func FuzzParseBundle(f *testing.F) {
	for _, seed := range []string{"t/n/0x00000000_0x40000000", "t/n/0xc0000000_0xffffffff", "", "/_", "t/n/0x_0x", "a/0x0_0xfffffffff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		ns, r, err := ParseBundle(name)
		if err != nil {
			return
		}
		again, r2, err := ParseBundle(ns + "/" + r.String())
		if err != nil || again != ns || r2 != r {
			t.Fatalf("%q: %q %s reads back as %q %s, %v", name, ns, r, again, r2, err)
		}
		if r.CanSplit() {
			cuts, ok, err := Boundaries(RangeEquallyDivide, Request{Range: r})
			if err != nil || !ok {
				t.Fatalf("%s: %v %v", r, ok, err)
			}
			if _, err := r.Children(cuts); err != nil {
				t.Fatalf("%s: %v", r, err)
			}
		}
	})
}

func FuzzBoundaries(f *testing.F) {
	f.Add("flow_or_qps_equally_divide", uint32(0), uint32(100), []byte{1, 2, 3, 4, 5, 6, 7, 8}, 10.0, 10.0, 10.0)
	f.Fuzz(func(t *testing.T, name string, lower, upper uint32, topics []byte, rate, throughput, percent float64) {
		r := Request{Range: Range{lower, upper}, MaxMsgRate: rate, MaxThroughput: throughput, DifferencePercent: percent}
		for i, b := range topics {
			r.Topics = append(r.Topics, Topic{Hash: upper - uint32(b), Known: b%5 > 0, MsgRate: rate * float64(b) / 100, Throughput: float64(i)})
			r.Positions = append(r.Positions, lower+uint32(b))
		}
		for _, a := range append(Algorithms(), Algorithm(name)) {
			cuts, ok, err := Boundaries(a, r)
			if !ok && len(cuts) > 0 || err != nil && ok {
				t.Fatalf("%s: %v %v %v", a, cuts, ok, err)
			}
			if !slices.IsSorted(cuts) {
				t.Fatalf("%s: %v is not ascending", a, cuts)
			}
		}
	})
}
