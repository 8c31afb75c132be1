package admin_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
)

func TestLoadReports(t *testing.T) {
	f := broker(t)
	client := newClient(t, admin.Options{}, f.URL)
	const path = "GET /admin/v2/broker-stats/load-report"
	f.on(path, text(200, sample(t, "load-report-modular.json")))
	r, err := client.LoadReport(t.Context(), f.id())
	if err != nil || r.Simple != nil || r.Local == nil || !sameJSON(t, sample(t, "load-report-modular.json"), r.Local) {
		t.Errorf("%+v, %v", r, err)
	}
	f.on(path, text(200, sample(t, "load-report-simple.json")))
	r, err = client.LoadReport(t.Context(), f.id())
	if err != nil || r.Local != nil || r.Simple == nil || r.Simple.Name != "127.0.0.1:18081" {
		t.Errorf("%+v, %v", r, err)
	}
	f.on(path, text(500, sample(t, "load-report-extensible.json")))
	_, err = client.LoadReport(t.Context(), f.id())
	checkError(t, err, admin.Unsupported, false, true)
	for _, bad := range []string{"", "[]", "null", "{", `{"cpu":7}`} {
		f.on(path, text(200, bad))
		_, err = client.LoadReport(t.Context(), f.id())
		checkError(t, err, admin.BadAnswer, false, true)
	}
	_, err = client.LoadReport(t.Context(), "no port")
	checkError(t, err, admin.BadRequest, false, true)
}

func sameJSON(t *testing.T, want string, v any) bool {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var a, c map[string]any
	if json.Unmarshal([]byte(want), &a) != nil || json.Unmarshal(b, &c) != nil {
		t.Fatal("no JSON")
	}
	return cmp.Equal(a["cpu"], c["cpu"]) && cmp.Equal(a["lastStats"], c["lastStats"])
}

func TestEstimateLoad(t *testing.T) {
	f := broker(t).on("GET /metrics/", text(200, sample(t, "metrics.prom"))).on("GET /admin/v2/broker-stats/topics", text(200, sample(t, "topics.json")))
	now := time.UnixMilli(1_700_000_000_000)
	client := newClient(t, admin.Options{Now: func() time.Time { return now }}, f.URL)
	d, top, err := client.EstimateLoad(t.Context(), f.id())
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*math.Abs(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("cpu", d.CPU.Usage, 72.17786)
	near("memory", d.Memory.Usage, 32.64801)
	near("maxResourceUsage", d.MaxResourceUsage, 0.7217786)
	near("weightedMaxEMA", d.WeightedMaxEMA, 0.721778564453125)
	near("msgRateIn", d.MsgRateIn, 56.24+56.25+56.234)
	near("msgThroughputOut", d.MsgThroughputOut, 30541.046+30544.503+30535.768)
	if d.BundleCount != 3 || d.Topics != 9 || d.UpdatedAt != now.UnixMilli() || d.ReportedAt != now.UnixMilli() || d.BandwidthIn.Limit != 100 {
		t.Errorf("%+v", d)
	}
	if len(top) != 2 { // loadBalancerMaxNumberOfBundlesInBundleLoadReport
		t.Fatalf("%+v", top)
	}
	s := top[0].Stats
	if math.Abs(s.MsgRateIn-56.24) > 0.02 || s.Topics != 3 || s.ProducerCount != 3 || s.ConsumerCount != 3 {
		t.Errorf("%+v", top)
	}
	topics, err := client.TopicStats(t.Context(), f.id())
	if err != nil || len(topics) != 9 || topics[0].Bundle != "public/h2/0x90000000_0xa0000000" || topics[0].Producers != 1 || topics[0].Consumers != 1 {
		t.Errorf("%d, %v", len(topics), err)
	}
	for i := 1; i < len(topics); i++ {
		if topics[i-1].Bundle+topics[i-1].Topic >= topics[i].Bundle+topics[i].Topic {
			t.Errorf("not ordered: %v", topics)
		}
	}
}

func TestEstimateLoadFromBadAnswers(t *testing.T) {
	metrics, topics := sample(t, "metrics.prom"), sample(t, "topics.json")
	withoutMemory := strings.ReplaceAll(metrics, "pulsar_lb_memory_usage", "pulsar_lb_other")
	for name, c := range map[string]struct{ metrics, topics, config string }{
		"no metrics":      {"hello", topics, runtimeConfig},
		"empty":           {"", topics, runtimeConfig},
		"a metric fewer":  {withoutMemory, topics, runtimeConfig},
		"broken metric":   {metrics + "\npulsar_lb_cpu_usage{ 7\n", topics, runtimeConfig},
		"garbage topics":  {metrics, "garbage", runtimeConfig},
		"half of topics":  {metrics, topics[:len(topics)/2], runtimeConfig},
		"no range":        {metrics, `{"t/ns":{"all":{}}}`, runtimeConfig},
		"another form":    {metrics, `{"t/ns":[]}`, runtimeConfig},
		"negative report": {metrics, topics, strings.Replace(runtimeConfig, `InBundleLoadReport":"2"`, `InBundleLoadReport":"two"`, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			f := broker(t).on("GET /metrics/", text(200, c.metrics)).on("GET /admin/v2/broker-stats/topics", text(200, c.topics)).
				on("GET /admin/v2/brokers/configuration/runtime", text(200, c.config))
			_, top, err := newClient(t, admin.Options{}, f.URL).EstimateLoad(t.Context(), f.id())
			if top != nil || !errors.Is(err, admin.BadAnswer) {
				t.Errorf("%v, %v", top, err)
			}
		})
	}
	// A usage that is not known is not 0.
	unknown := strings.Replace(metrics, "72.17786", "NaN", 1)
	f := broker(t).on("GET /metrics/", text(200, unknown)).on("GET /admin/v2/broker-stats/topics", text(200, "{}"))
	d, top, err := newClient(t, admin.Options{}, f.URL).EstimateLoad(t.Context(), f.id())
	if err != nil || d.CPU.Limit != -1 || d.Memory.Limit != 100 || len(top) != 0 || d.BundleCount != 0 {
		t.Errorf("%+v, %v, %v", d, top, err)
	}
}
