package admin

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/ballast-lb/ballast/event"
)

// TestMetricsOfPulsar: Pulsar writes samples of one metric in several places and with blanks between labels.
func TestMetricsOfPulsar(t *testing.T) {
	b, err := os.ReadFile("testdata/metrics.prom")
	if err != nil {
		t.Fatal(err)
	}
	samples, err := readMetrics(strings.NewReader(string(b)+string(b)), []string{"pulsar_lb_resource_usage{"})
	if err != nil || len(samples) != 4 || samples[0].Labels["feature"] != "max_ema" || samples[0].Value != 0.721778564453125 {
		t.Errorf("%v, %v", samples, err)
	}
	if _, err := readMetrics(strings.NewReader("# TYPE x gauge\n"+strings.Repeat("x", 2<<20)), nil); !errors.Is(err, errAnswer) {
		t.Error(err)
	}
}

func FuzzAnswers(f *testing.F) {
	for _, name := range []string{"topics.json", "load-report-modular.json", "load-report-simple.json", "load-report-extensible.json", "metrics.prom"} {
		b, err := os.ReadFile("testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(b[:min(len(b), 2000)]))
	}
	f.Add(`{"t/ns":{"0x00000000_0xffffffff":{"persistent":{"persistent://t/ns/a":{"msgRateIn":1.5}}}}}`)
	f.Add(`{"p":{"namespaces":["a"],"primary":["b"],"secondary":[],"auto_failover_policy":{"policy_type":"min_available","parameters":{"min_limit":"1","usage_threshold":"80"}}}}`)
	f.Add("# TYPE a gauge\na{b=\"c\", d=\"e\"} NaN\n")
	f.Fuzz(func(t *testing.T, answer string) {
		if topics, err := readTopicStats(strings.NewReader(answer)); err == nil {
			var n int64
			for _, b := range bundleStats(topics) {
				n += b.Stats.Topics
			}
			if n != int64(len(topics)) {
				t.Errorf("%d topics in bundles, %d altogether", n, len(topics))
			}
		}
		if policies, err := readIsolation(strings.NewReader(answer)); err != nil && policies != nil {
			t.Errorf("%v and %v", policies, err)
		}
		samples, err := readMetrics(strings.NewReader(answer), []string{"a"})
		if err != nil && samples != nil {
			t.Errorf("%v and %v", samples, err)
		}
		for _, s := range samples {
			if !strings.HasPrefix(s.Name, "a") {
				t.Errorf("%v was not asked for", s)
			}
		}
		if _, err := event.DecodeReport([]byte(answer)); err != nil {
			if kind, _ := kindOf(err); kind != BadAnswer {
				t.Errorf("%v is %s", err, kind)
			}
		}
		w := httptest.NewRecorder()
		w.WriteHeader(http.StatusTeapot)
		_, _ = w.WriteString(answer)
		resp := w.Result()
		resp.Request = httptest.NewRequest(http.MethodGet, "http://b:1/x", nil)
		e := statusError(resp)
		if len(e.Error()) > 500 || strings.ContainsFunc(e.Error(), unicode.IsControl) || e.Reason == "" {
			t.Errorf("%q", e)
		}
	})
}
