package traffic

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Meter measures the load of brokers by the counters that they export for every topic. Unlike Pulsar's own rates, which
// follow once a minute, the counters are always current.
type Meter struct {
	Namespace string   // only topics of this namespace count; "" = all
	URLs      []string // http:// URLs of the brokers
}

// Load is what passed through a broker, both ways together.
type Load struct {
	Bytes    float64 // per second
	Messages float64 // per second
}

// counters are the totals of one broker's topics.
type counters map[string]Load

// Measure watches the brokers for a while and gives the load of each, by URL.
func (m Meter) Measure(t testing.TB, period time.Duration) map[string]Load {
	t.Helper()
	before, begun := m.sample(t)
	select {
	case <-time.After(period):
	case <-t.Context().Done():
	}
	after, ended := m.sample(t)
	loads := map[string]Load{}
	for url, now := range after {
		loads[url] = since(before[url], now, ended[url].Sub(begun[url]))
	}
	return loads
}

// MaxOverMean is the ratio of the highest to the mean throughput of brokers, in bytes.
func (m Meter) MaxOverMean(t testing.TB, period time.Duration) float64 {
	t.Helper()
	var bytes []float64
	for _, load := range m.Measure(t, period) {
		bytes = append(bytes, load.Bytes)
	}
	return MaxOverMean(bytes)
}

func (m Meter) sample(t testing.TB) (map[string]counters, map[string]time.Time) {
	t.Helper()
	samples, times := map[string]counters{}, map[string]time.Time{}
	for _, url := range m.URLs {
		text, err := scrape(t.Context(), url)
		if err != nil {
			t.Fatalf("measuring %s: %v", url, err)
		}
		samples[url], times[url] = parse(text, m.Namespace), time.Now()
	}
	return samples, times
}

func scrape(ctx context.Context, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics/", nil)
	if err != nil {
		return "", err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("GET %s/metrics/: %s", url, resp.Status)
	}
	return string(text), err
}

// parse adds up the counters of every topic: those of its producers, and those of its subscriptions.
func parse(text, namespace string) counters {
	c := counters{}
	lines := bufio.NewScanner(strings.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, rest, ok := strings.Cut(lines.Text(), "{")
		if !ok {
			continue
		}
		var bytes, messages float64
		switch name {
		case "pulsar_in_bytes_total", "pulsar_out_bytes_total":
			bytes = 1
		case "pulsar_in_messages_total", "pulsar_out_messages_total":
			messages = 1
		default:
			continue
		}
		labels, value, ok := strings.Cut(rest, "} ")
		topic := label(labels, "topic")
		if !ok || topic == "" || namespace != "" && label(labels, "namespace") != namespace {
			continue
		}
		number, _, _ := strings.Cut(value, " ")
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			continue
		}
		// Counters of different kinds are kept apart, so that one that began anew is noticed.
		key := name + " " + topic + " " + label(labels, "subscription")
		load := c[key]
		c[key] = Load{Bytes: load.Bytes + bytes*x, Messages: load.Messages + messages*x}
	}
	return c
}

func label(labels, name string) string {
	for part := range strings.SplitSeq(labels, ",") {
		if value, ok := strings.CutPrefix(part, name+`="`); ok {
			return strings.TrimSuffix(value, `"`)
		}
	}
	return ""
}

// since is the load between two samples. The counters of a topic that came to the broker meanwhile began at 0 there, and so
// did those that are lower than before.
func since(before, now counters, period time.Duration) Load {
	var load Load
	for _, key := range slices.Sorted(maps.Keys(now)) {
		x, was := now[key], before[key]
		if x.Bytes < was.Bytes || x.Messages < was.Messages {
			was = Load{}
		}
		load.Bytes += x.Bytes - was.Bytes
		load.Messages += x.Messages - was.Messages
	}
	if period <= 0 {
		return Load{}
	}
	return Load{Bytes: load.Bytes / period.Seconds(), Messages: load.Messages / period.Seconds()}
}
