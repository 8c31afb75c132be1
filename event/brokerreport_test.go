package event_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/event"
)

// TestDecodeReport: reports of either kind, also as documents about 3.0 show them.
func TestDecodeReport(t *testing.T) {
	unknown := event.ResourceUsage{Usage: -1, Limit: -1}
	cpu := event.ResourceUsage{Usage: 5, Limit: 200}
	for _, x := range []struct {
		name, document string
		kind           event.ReportKind
		cpu, memory    event.ResourceUsage
	}{
		{"Modular", `{"cpu":{"usage":5,"limit":200},"lastUpdate":7,"loadReportType":"LocalBrokerData"}`, event.ModularReport, cpu, event.ResourceUsage{}},
		{"Modular, nothing but usage", `{"cpu":{"usage":5,"limit":200},"bundles":[]}`, event.ModularReport, cpu, event.ResourceUsage{}},
		{"Modular, null", `{"cpu":{"usage":5,"limit":200},"memory":null}`, event.ModularReport, cpu, unknown},
		{"Simple", `{"systemResourceUsage":{"cpu":{"usage":5,"limit":200}},"timestamp":7,"loadReportType":"LoadReport"}`, event.SimpleReport, cpu, unknown},
		{"Simple, without its type", `{"systemResourceUsage":{"cpu":{"usage":5,"limit":200}}}`, event.SimpleReport, cpu, unknown},
		{"Simple, usage at the top", `{"cpu":{"usage":5,"limit":200},"underLoaded":true}`, event.SimpleReport, cpu, unknown},
		{"Simple, both", `{"cpu":{"usage":9,"limit":9},"systemResourceUsage":{"cpu":{"usage":5,"limit":200},"memory":null},"underLoaded":true}`, event.SimpleReport, cpu, unknown},
		{"Simple, none", `{"loadReportType":"LoadReport"}`, event.SimpleReport, unknown, unknown},
	} {
		t.Run(x.name, func(t *testing.T) {
			r, err := event.DecodeReport([]byte(x.document))
			if err != nil || r.Empty() || r.Kind() != x.kind {
				t.Fatalf("%+v, %v", r, err)
			}
			u := r.Usage()
			if u.CPU != x.cpu || u.Memory != x.memory || u.Null != 0 {
				t.Errorf("usage %+v", u)
			}
			b, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			again, err := event.DecodeReport(b)
			if err != nil || again.Kind() != x.kind || again.Usage().CPU != x.cpu {
				t.Errorf("written and read again: %s: %+v, %v", b, again, err)
			}
		})
	}
	for _, bad := range []string{"", "null", "[]", "{", `{"cpu":7}`, `{"underLoaded":true,"cpu":7}`, "\xff"} {
		var e *event.Error
		if r, err := event.DecodeReport([]byte(bad)); !errors.As(err, &e) {
			t.Errorf("%q: %+v, %v", bad, r, err)
		}
	}
}

// TestBundleStats: the list keeps its order; an empty one is written.
func TestBundleStats(t *testing.T) {
	for _, list := range [][]event.NamedBundleStats{{}, {
		{Bundle: "t/ns/0x80000000_0xffffffff", Stats: event.NamespaceBundleStats{MsgRateIn: 1.5, Topics: 3}},
		{Bundle: "t/ns/0x00000000_0x80000000", Stats: event.NamespaceBundleStats{ConsumerCount: 2}},
	}} {
		b, err := json.Marshal(event.BundleStats{BundleStats: list})
		if err != nil {
			t.Fatal(err)
		}
		got, err := event.Decode[event.BundleStats](b)
		if diff := cmp.Diff(list, got.BundleStats); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", b, err, diff)
		}
	}
	if _, err := event.Decode[event.BundleStats]([]byte(`{"bundleStats":[]}`)); err == nil {
		t.Error("an array was taken for a map")
	}
}
