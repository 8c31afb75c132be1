package control

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/guard"
)

// metricsOf answers with samples by broker; a broker that is not there fails.
type metricsOf map[string][]admin.Sample

func (m metricsOf) Metrics(_ context.Context, broker string, _ ...string) ([]admin.Sample, error) {
	if s, ok := m[broker]; ok {
		return s, nil
	}
	return nil, errors.New("503")
}

func clientSamples(p99, created float64) []admin.Sample {
	return []admin.Sample{{Name: publishLatency, Labels: map[string]string{"quantile": "0.5"}, Value: 1}, {Name: publishLatency, Labels: map[string]string{"quantile": "0.99"}, Value: p99},
		{Name: publishLatency + "_count", Value: 1e6}, {Name: connectionsCreated, Value: created}}
}

func TestHarmReader(t *testing.T) {
	var log strings.Builder
	m := metricsOf{"b1": clientSamples(10, 100), "b2": clientSamples(math.NaN(), 7)}
	r, at := NewHarmReader(m, time.Minute, slog.New(slog.NewTextHandler(&log, nil))), time.UnixMilli(1_700_000_000_000)
	var st HarmState
	brokers := []string{"b1", "b2", "gone"}
	for _, step := range []struct {
		name   string
		change func()
		want   []guard.Clients
	}{
		{"first", func() {}, []guard.Clients{{Broker: "b1", Latency: 10, Reconnects: -1}, {Broker: "b2", Latency: -1, Reconnects: -1}}},
		{"ten seconds later", func() { m["b1"] = clientSamples(700, 150) }, []guard.Clients{{Broker: "b1", Latency: 700, Reconnects: 5}, {Broker: "b2", Latency: -1, Reconnects: 0}}},
		{"b1 restarted", func() { m["b1"] = clientSamples(10, 3) }, []guard.Clients{{Broker: "b1", Latency: 10, Reconnects: -1}, {Broker: "b2", Latency: -1, Reconnects: 0}}},
		{"b2 fails", func() { delete(m, "b2") }, []guard.Clients{{Broker: "b1", Latency: 10, Reconnects: 0}}},
		{"b2 answers", func() { m["b2"] = clientSamples(2, 90) }, []guard.Clients{{Broker: "b1", Latency: 10, Reconnects: 0}, {Broker: "b2", Latency: 2, Reconnects: -1}}},
		{"no metrics of either", func() { m["b1"], m["b2"] = nil, nil }, []guard.Clients{{Broker: "b1", Latency: -1, Reconnects: -1}, {Broker: "b2", Latency: -1, Reconnects: -1}}},
	} {
		step.change()
		var got guard.Harm
		got, st = r.Read(t.Context(), brokers, at, st)
		if diff := cmp.Diff(guard.Harm{At: at.UnixMilli(), Brokers: step.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		at = at.Add(10 * time.Second)
	}
	if n := strings.Count(log.String(), "broker=gone"); n != 1 {
		t.Errorf("a broker that never answers is logged %d times:\n%s", n, &log)
	}
	if n := strings.Count(log.String(), "broker=b2"); n != 1 {
		t.Errorf("a broker that did not answer once is logged %d times:\n%s", n, &log)
	}
}

// TestHarmOfRecordedMetrics reads what brokers of both load managers wrote, through the admin client.
func TestHarmOfRecordedMetrics(t *testing.T) {
	for file, want := range map[string]guard.Clients{
		"extensible.prom": {Latency: 10.112, Reconnects: -1},
		"modular.prom":    {Latency: 163.286, Reconnects: -1},
	} {
		text, err := os.ReadFile("testdata/metrics/" + file)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := w.Write(text); err != nil {
				t.Error(err)
			}
		}))
		client, err := admin.New(admin.Options{URLs: []string{server.URL}})
		if err != nil {
			t.Fatal(err)
		}
		broker := strings.TrimPrefix(server.URL, "http://")
		r, at := NewHarmReader(client, time.Minute, slog.New(slog.DiscardHandler)), time.UnixMilli(1_700_000_000_000)
		want.Broker = broker
		var st HarmState
		for i := range 2 {
			var got guard.Harm
			if got, st = r.Read(t.Context(), []string{broker}, at.Add(time.Duration(i)*time.Minute), st); len(got.Brokers) != 1 || got.Brokers[0] != want {
				t.Errorf("%s: clients are %+v, want %+v", file, got.Brokers, want)
			}
			want.Reconnects = 0 // the count is the same a minute later
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}
