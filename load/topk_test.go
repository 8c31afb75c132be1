package load

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func named(name string, throughput float64) event.NamedBundleStats {
	return event.NamedBundleStats{Bundle: name, Stats: event.NamespaceBundleStats{MsgThroughputIn: throughput}}
}

func TestTopK(t *testing.T) {
	stats := []event.NamedBundleStats{
		named("t/n/0x0_0x1", 5e6), named("t/n/0x1_0x2", 0), named("pulsar/system/0x0_0x1", 9e6),
		named("pulsar/h:8080/0x0_0x1", 9e6), named("sla-monitor/h:8080/0x0_0x1", 9e6), named("t/policy/0x0_0x1", 8e6),
		named("t/out/0x0_0x1", 7e6), named("t/n/0x2_0x3", 6e6), named("t/n/0x3_0x4", 1e6), named("pulsar/h:80x/0x0_0x1", 2e6),
	}
	skipped := make(map[string]TopKSkip)
	rules := TopKRules{
		K: 3, Excluded: []string{"t/out"},
		HasPolicy: func(ns string) (bool, error) { return ns == "t/policy", nil },
		Skipped:   func(b string, why TopKSkip) { skipped[b] = why },
	}
	got, err := TopK(stats, rules)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"pulsar/h:80x/0x0_0x1", "t/n/0x0_0x1", "t/n/0x2_0x3"}, namesOf(got)); diff != "" {
		t.Error(diff)
	}
	want := map[string]TopKSkip{
		"t/n/0x1_0x2": TopKIdle, "pulsar/system/0x0_0x1": TopKSystem, "pulsar/h:8080/0x0_0x1": TopKSystem,
		"sla-monitor/h:8080/0x0_0x1": TopKSystem, "t/policy/0x0_0x1": TopKPolicy, "t/out/0x0_0x1": TopKExcluded,
	}
	if diff := cmp.Diff(want, skipped); diff != "" {
		t.Error(diff)
	}
	rules.WithPolicies = true
	if got, _ = TopK(stats, rules); !slices.Contains(namesOf(got), "t/policy/0x0_0x1") {
		t.Errorf("a bundle with a policy is left out although allowed: %v", namesOf(got))
	}
	broken := errors.New("unreadable")
	rules.WithPolicies, rules.HasPolicy = false, func(string) (bool, error) { return false, broken }
	if _, err := TopK(stats, rules); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

func namesOf(top []event.BundleLoad) []string {
	var out []string
	for i := range top {
		out = append(out, top[i].BundleName)
	}
	return out
}

// TestTopKProperty: nothing left out is heavier than anything in the report, and the report ascends.
func TestTopKProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := rapid.SliceOfN(rapid.IntRange(0, 9), 0, 40).Draw(t, "loads")
		k := rapid.IntRange(-2, 50).Draw(t, "k")
		var stats []event.NamedBundleStats
		for i, l := range loads {
			stats = append(stats, named(fmt.Sprintf("t/n/0x%08x_0x%08x", i, i+1), float64(l)*1e5))
		}
		top, err := TopK(stats, TopKRules{K: k})
		if err != nil {
			t.Fatal(err)
		}
		in := make(map[string]bool)
		for i := range top {
			in[top[i].BundleName] = true
			if i > 0 && top[i-1].Stats.Compare(top[i].Stats) > 0 {
				t.Fatalf("not ascending at %d", i)
			}
		}
		busy := 0
		for i := range stats {
			if Throughput(&stats[i].Stats) == 0 {
				continue
			}
			busy++
			if len(top) > 0 && !in[stats[i].Bundle] && stats[i].Stats.Compare(top[0].Stats) > 0 {
				t.Fatalf("%s is heavier than the lightest of the report but not in it", stats[i].Bundle)
			}
		}
		if want := max(0, min(k, busy)); len(top) != want || len(in) != want {
			t.Fatalf("%d bundles (%d distinct), want %d", len(top), len(in), want)
		}
	})
}

func TestIsBrokerNamespace(t *testing.T) {
	for ns, want := range map[string]bool{
		"pulsar/h:8080": true, "sla-monitor/h:8080": true, "pulsar/cluster/h:8080": true, "pulsar/10.0.0.1:80": true,
		"pulsar/system": false, "pulsar/h:80x": false, "pulsar/:80": false, "pulsar/h:": false, "pulsar/h": false,
		"t/h:8080": false, "": false, "pulsar": false, "pulsar/a:b:80": false, "xpulsar/h:80": false,
	} {
		if got := IsBrokerNamespace(ns); got != want {
			t.Errorf("%q: %v", ns, got)
		}
	}
}
