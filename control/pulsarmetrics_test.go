package control

import (
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
)

// Metrics with Pulsar's names have Pulsar's labels. The table is that of what brokers export, but for the label broker where it would name
// the exporting broker, which Ballast is not.
func TestPulsarsMetrics(t *testing.T) {
	want := map[string]struct {
		metric string
		labels []string // beside cluster and metric
	}{
		"pulsar_lb_resource_usage":                {"loadBalancing", []string{"broker", "feature"}},
		"pulsar_lb_resource_usage_stats":          {"bundleUnloading", []string{"feature", "stat"}},
		"pulsar_lb_unload_bundle_total":           {"bundleUnloading", nil},
		"pulsar_lb_unload_broker_total":           {"bundleUnloading", nil},
		"pulsar_lb_unload_broker_breakdown_total": {"bundleUnloading", []string{"reason", "result"}},
		"pulsar_lb_bundles_split_total":           {"bundlesSplit", nil},
		"pulsar_lb_bundles_split_breakdown_total": {"bundlesSplit", []string{"reason", "result"}},
		"pulsar_lb_assign_broker_breakdown_total": {"assign", []string{"broker", "result"}},
	}
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry, "c")
	m.cycle(&Cycle{Plan: plan.Plan{LoadAvg: 0.5, LoadStd: 0.1, Counts: []plan.Count{{Label: "Success", Reason: "Overloaded", N: 2}}},
		Snapshot: &cluster.Snapshot{Brokers: []cluster.Broker{{ID: "a:8080", Load: &event.BrokerLoadData{WeightedMaxEMA: 0.5, MaxResourceUsage: 0.6}}}}})
	outcome := func(action plan.Action, result Result) Outcome {
		return Outcome{Decision: plan.Decision{Action: action, Source: "a:8080", Destination: "b:8080", PulsarReason: "MsgRate"}, Result: result}
	}
	m.acted([]Outcome{outcome(plan.Transfer, Done), outcome(plan.Unload, Elsewhere), outcome(plan.Split, Done), outcome(plan.Split, Done), outcome(plan.Split, TimedOut),
		outcome(plan.Split, Skipped), outcome(plan.Place, Done), outcome(plan.Place, Elsewhere), outcome(plan.Place, Failed), outcome(plan.Place, TimedOut)})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{} // of counters, by name and the values of result and reason
	for _, f := range families {
		w, known := want[f.GetName()]
		if !known {
			if len(f.GetName()) > 7 && f.GetName()[:7] == "pulsar_" {
				t.Errorf("%s is none of Pulsar's", f.GetName())
			}
			continue
		}
		delete(want, f.GetName())
		for _, x := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range x.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["cluster"] != "c" || labels["metric"] != w.metric {
				t.Errorf("%s has %v, want metric=%s", f.GetName(), labels, w.metric)
			}
			values[f.GetName()+" "+labels["result"]+" "+labels["reason"]] += x.GetCounter().GetValue()
			delete(labels, "cluster")
			delete(labels, "metric")
			if names := slices.Sorted(maps.Keys(labels)); !slices.Equal(names, w.labels) {
				t.Errorf("%s has the labels %q, want %q", f.GetName(), names, w.labels)
			}
		}
	}
	for name := range want {
		t.Errorf("%s is missing", name)
	}
	for key, n := range map[string]float64{
		"pulsar_lb_unload_bundle_total  ":                            2,
		"pulsar_lb_unload_broker_total  ":                            1,
		"pulsar_lb_unload_broker_breakdown_total Success Overloaded": 2,
		"pulsar_lb_bundles_split_total  ":                            2,
		"pulsar_lb_bundles_split_breakdown_total Success MsgRate":    2,
		"pulsar_lb_bundles_split_breakdown_total Failure Unknown":    1,
		"pulsar_lb_assign_broker_breakdown_total Success ":           1,
		"pulsar_lb_assign_broker_breakdown_total Skip ":              1,
		"pulsar_lb_assign_broker_breakdown_total Failure ":           2,
	} {
		if values[key] != n {
			t.Errorf("%q is %v, want %v", key, values[key], n)
		}
	}
}
