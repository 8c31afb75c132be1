package event_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestParseBundle(t *testing.T) {
	for name, want := range map[string]event.BundleName{
		"t/n/0x00000000_0x40000000":   {Namespace: "t/n", Range: event.Range{Lower: 0, Upper: 0x40000000}},
		"t/c/n/0xf0000000_0xffffffff": {Namespace: "t/c/n", Range: event.Range{Lower: 0xf0000000, Upper: 0xffffffff}},
		"pulsar/b:8080/0x00000000_0xffffffff": {
			Namespace: "pulsar/b:8080", Range: event.Range{Lower: 0, Upper: 0xffffffff},
		},
	} {
		got, err := event.ParseBundle(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
		if got.String() != name {
			t.Errorf("%s is written as %s", name, got)
		}
	}
	for _, name := range []string{
		"", "/", "t", "t/n", "t/n/", "0x00000000_0x40000000", "t/0x00000000_0x40000000", "/n/0x00000000_0x40000000",
		"t//0x00000000_0x40000000", "t/n/0x0_0x4", "t/n/0x40000000_0x40000000", "t/n/0x40000000_0x00000000", "t/n/0x00000000-0x40000000",
		"t/n/0x00000000_0x40000000_0x80000000", "t/n/00000000_40000000", "t/n/0x0000000g_0x40000000", "t/n/0x+0000001_0x40000000",
	} {
		if got, err := event.ParseBundle(name); err == nil {
			t.Errorf("%q is read as %v", name, got)
		}
	}
}

func TestBundleNameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lower := rapid.Uint32Max(0xfffffffe).Draw(t, "lower")
		upper := rapid.Uint32Min(lower+1).Draw(t, "upper")
		want := event.BundleName{
			Namespace: rapid.StringMatching(`[a-z]{1,5}/[a-z:.]{1,9}`).Draw(t, "namespace"), Range: event.Range{Lower: lower, Upper: upper},
		}
		got, err := event.ParseBundle(want.String())
		if err != nil || got != want {
			t.Fatalf("%v is read again as %v, %v", want, got, err)
		}
	})
}

// TestTopicHash finds the bundle of topics as real brokers did: their statistics list the topics of each bundle.
func TestTopicHash(t *testing.T) {
	text, err := os.ReadFile("testdata/samples/extensible/broker-stats-topics.json")
	if err != nil {
		t.Fatal(err)
	}
	var stats map[string]map[string]map[string]map[string]json.RawMessage // namespace, range, domain, topic
	if err := json.Unmarshal(text, &stats); err != nil {
		t.Fatal(err)
	}
	topics := 0
	for namespace, ranges := range stats {
		for name, domains := range ranges {
			bundle, err := event.ParseBundle(namespace + "/" + name)
			if err != nil {
				t.Fatal(err)
			}
			for _, inDomain := range domains {
				for topic := range inDomain {
					topics++
					if hash := event.TopicHash(topic); !bundle.Range.Contains(hash) {
						t.Errorf("hash 0x%08x of %s is not in %s", hash, topic, bundle)
					}
				}
			}
		}
	}
	if topics < 5 {
		t.Errorf("only %d topics", topics)
	}
	if got := event.TopicHash("123456789"); got != 0xcbf43926 { // the check value of CRC-32
		t.Errorf("hash is 0x%08x", got)
	}
}

func TestRange(t *testing.T) {
	last := event.Range{Lower: 0xf0000000, Upper: 0xffffffff}
	first := event.Range{Lower: 0, Upper: 0x10000000}
	for _, test := range []struct {
		r    event.Range
		hash uint32
		want bool
	}{
		{first, 0, true}, {first, 0x0fffffff, true}, {first, 0x10000000, false}, {first, 0xffffffff, false},
		{last, 0xefffffff, false}, {last, 0xf0000000, true}, {last, 0xfffffffe, true}, {last, 0xffffffff, true},
	} {
		if got := test.r.Contains(test.hash); got != test.want {
			t.Errorf("%s contains 0x%08x: %t", test.r, test.hash, got)
		}
	}
	if !first.CanSplit() || (event.Range{Lower: 5, Upper: 6}).CanSplit() || !(event.Range{Lower: 5, Upper: 7}).CanSplit() {
		t.Error("a range can be split if it holds more than one hash")
	}
}

// TestBoundaries finds every hash in exactly the range that contains it.
func TestBoundaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inner := rapid.SliceOfNDistinct(rapid.Uint32Range(1, 0xfffffffe), 0, 8, rapid.ID).Draw(t, "inner")
		texts := []string{"0x00000000"}
		for r, rest := (event.Range{}), sorted(inner); len(rest) > 0; rest = rest[1:] {
			r.Lower = rest[0]
			texts = append(texts, r.String()[:10])
		}
		b, err := event.ParseBoundaries(append(texts, "0xffffffff"))
		if err != nil {
			t.Fatal(err)
		}
		hash := rapid.OneOf(rapid.Uint32(), rapid.SampledFrom([]uint32(b))).Draw(t, "hash")
		got, ok := b.Find(hash)
		holders := 0
		for _, r := range b.Ranges() {
			if r.Contains(hash) {
				holders++
				if r != got {
					t.Fatalf("0x%08x is in %s, found in %s", hash, r, got)
				}
			}
		}
		if !ok || holders != 1 {
			t.Fatalf("0x%08x is in %d ranges, found: %t", hash, holders, ok)
		}
	})
	for _, texts := range [][]string{nil, {"0x00000000"}, {"0x00000000", "0x00000000"}, {"0x10000000", "0x00000000"}, {"0", "1"}} {
		if b, err := event.ParseBoundaries(texts); err == nil {
			t.Errorf("%q are read as %v", texts, b)
		}
	}
	partial := event.Boundaries{0x10, 0x20}
	for _, hash := range []uint32{0, 0xf, 0x20, 0xffffffff} {
		if r, ok := partial.Find(hash); ok {
			t.Errorf("0x%x is found in %s", hash, r)
		}
	}
	if r, ok := event.Boundaries(nil).Find(5); ok || event.Boundaries(nil).Ranges() != nil {
		t.Errorf("found in %s of no boundaries", r)
	}
}

func sorted(list []uint32) []uint32 {
	for i := range list {
		for j := i; j > 0 && list[j] < list[j-1]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}

func TestBrokerHost(t *testing.T) {
	for id, want := range map[string]string{"h:8080": "h", "10.0.0.1:8080": "10.0.0.1", "[::1]:8080": "[::1]", "h:": "h", ":80": ""} {
		if got, ok := event.BrokerHost(id); !ok || got != want {
			t.Errorf("host of %q is %q, %t", id, got, ok)
		}
	}
	if got, ok := event.BrokerHost("h"); ok {
		t.Errorf("host of an id without a colon is %q", got)
	}
}

// TestBoundToBroker knows the namespaces that brokers watch themselves with, of both forms, with and without a range.
func TestBoundToBroker(t *testing.T) {
	for _, test := range []struct {
		name                   string
		heartbeat, sla, system bool
	}{
		{"pulsar/host:8080", true, false, false},
		{"pulsar/10.0.0.1:8080", true, false, false},
		{"pulsar/cluster/host:8080", true, false, false},
		{"pulsar/host:8080/0x00000000_0xffffffff", true, false, false},
		{"pulsar/cluster/host:8080/0x00000000_0xffffffff", true, false, false},
		{"sla-monitor/host:8080", false, true, false},
		{"sla-monitor/cluster/host:8080", false, true, false},
		{"sla-monitor/host:8080/0x00000000_0xffffffff", false, true, false},
		{"sla-monitor/cluster/host:8080/0x00000000_0xffffffff", false, true, false},
		{"pulsar/system", false, false, true},
		{"pulsar/system/0x00000000_0x10000000", false, false, true},
		{"pulsar/system2", false, false, false},
		{"pulsar/host", false, false, false},
		{"pulsar/host:", false, false, false},
		{"pulsar/:8080", false, false, false},
		{"pulsar/host:8080x", false, false, false},
		{"pulsar/host:80:80", false, false, false},
		{"pulsar/[::1]:8080", false, false, false}, // as in Pulsar
		{"public/host:8080", false, false, false},
		{"xpulsar/host:8080", false, false, false},
		{"sla-monitor", false, false, false},
		{"public/default/0x00000000_0x10000000", false, false, false},
		{"", false, false, false},
	} {
		if got := event.IsHeartbeat(test.name); got != test.heartbeat {
			t.Errorf("%q is a heartbeat namespace: %t", test.name, got)
		}
		if got := event.IsSLA(test.name); got != test.sla {
			t.Errorf("%q is an SLA namespace: %t", test.name, got)
		}
		if got := event.IsSystem(test.name); got != test.system {
			t.Errorf("%q is the system namespace: %t", test.name, got)
		}
		if got := event.IsBrokerBound(test.name); got != (test.heartbeat || test.sla) {
			t.Errorf("%q belongs to a broker: %t", test.name, got)
		}
	}
}

func FuzzParseBundle(f *testing.F) {
	for _, seed := range []string{"t/n/0x00000000_0x40000000", "t/c/n/0xf0000000_0xffffffff", "pulsar/h:80/0x0_0x1", "//", "a/b/0x_0x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		b, err := event.ParseBundle(name)
		if err != nil {
			return
		}
		if again, err := event.ParseBundle(b.String()); err != nil || again != b {
			t.Errorf("%q is read as %v, and that as %v, %v", name, b, again, err)
		}
		if event.NamespaceOf(name) != b.Namespace {
			t.Errorf("namespace of %q is %q, not %q", name, event.NamespaceOf(name), b.Namespace)
		}
	})
}
