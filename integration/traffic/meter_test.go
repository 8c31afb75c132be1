package traffic

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The lines are of the form that Pulsar 4.2.4 gives.
const metrics = `# TYPE pulsar_in_bytes_total counter
pulsar_in_bytes_total{cluster="test",namespace="test/ns",topic="persistent://test/ns/t-1"} 1000
pulsar_in_bytes_total{cluster="test",namespace="pulsar/system",topic="persistent://pulsar/system/x"} 77
pulsar_in_messages_total{cluster="test",namespace="test/ns",topic="persistent://test/ns/t-1"} 10
pulsar_out_bytes_total{cluster="test",namespace="test/ns",topic="persistent://test/ns/t-1",subscription="a"} 900 1700000000000
pulsar_out_bytes_total{cluster="test",namespace="test/ns",topic="persistent://test/ns/t-1",subscription="b"} 1e3
pulsar_out_messages_total{cluster="test",namespace="test/ns",topic="persistent://test/ns/t-1",subscription="a"} NaN-ish
pulsar_throughput_in{cluster="test",namespace="test/ns",topic="persistent://test/ns/t-1"} 5
pulsar_in_bytes_total{cluster="test"} 3
pulsar_in_bytes_total 4
`

func TestParse(t *testing.T) {
	const topic = " persistent://test/ns/t-1 "
	want := counters{
		"pulsar_in_bytes_total" + topic:        {Bytes: 1000},
		"pulsar_in_messages_total" + topic:     {Messages: 10},
		"pulsar_out_bytes_total" + topic + "a": {Bytes: 900},
		"pulsar_out_bytes_total" + topic + "b": {Bytes: 1000},
	}
	if diff := cmp.Diff(want, parse(metrics, "test/ns")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if all := parse(metrics, ""); len(all) != len(want)+1 {
		t.Errorf("without a namespace: %v", all)
	}
}

func TestSince(t *testing.T) {
	before := counters{"steady": {Bytes: 100}, "left": {Bytes: 50}, "restarted": {Bytes: 80}, "messages": {Messages: 10}}
	now := counters{"steady": {Bytes: 160}, "restarted": {Bytes: 20}, "new": {Bytes: 40}, "messages": {Messages: 40}}
	if diff := cmp.Diff(Load{Bytes: 12, Messages: 3}, since(before, now, 10*time.Second)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := since(before, now, 0); got != (Load{}) {
		t.Errorf("in no time: %v", got)
	}
}

// Two brokers, one of which counts on while it is watched.
func TestMeasure(t *testing.T) {
	serve := func(step int64) string {
		var total atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "pulsar_in_bytes_total{namespace=%q,topic=\"t\"} %d\n", "test/ns", total.Add(step))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	busy, idle := serve(1000), serve(0)
	loads := Meter{Namespace: "test/ns", URLs: []string{busy, idle}}.Measure(t, time.Millisecond)
	if loads[busy].Bytes <= 0 || loads[idle].Bytes != 0 || len(loads) != 2 {
		t.Errorf("loads %v", loads)
	}
}
