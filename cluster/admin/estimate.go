package admin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/settings"
)

// Sample is one value of a metric.
type Sample struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Metrics reads those of a broker's Prometheus metrics whose names have one of the prefixes. Brokers of the Extensible
// load manager count a reading as a load update: read seldom.
func (c *Client) Metrics(ctx context.Context, broker string, prefixes ...string) (samples []Sample, err error) {
	ctx = allowAnswer(ctx, 32*c.options.MaxAnswer)
	err = c.readAt(ctx, "metrics of "+broker, broker, c.get("/metrics/", func(r io.Reader) error {
		samples, err = readMetrics(r, prefixes)
		return err
	}))
	return samples, err
}

// readMetrics keeps the wanted lines only, so that it needs no memory for the others and does not mind that Pulsar writes
// the samples of one metric in several places.
func readMetrics(r io.Reader, prefixes []string) ([]Sample, error) {
	var out []Sample
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	any := false
	for lines.Scan() {
		line := lines.Bytes()
		any = any || bytes.HasPrefix(line, []byte("# TYPE "))
		if !hasPrefix(line, prefixes) {
			continue
		}
		parser := expfmt.NewTextParser(model.UTF8Validation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(string(line) + "\n"))
		if err != nil {
			return nil, answerError("metrics: %v", err)
		}
		for name, f := range families {
			for _, m := range f.Metric {
				out = append(out, sample(name, m))
			}
		}
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			return nil, answerError("metrics: %v", err)
		}
		return nil, err
	}
	if !any {
		return nil, answerError("no metrics")
	}
	return out, nil
}

func hasPrefix(line []byte, prefixes []string) bool {
	for _, p := range prefixes {
		if bytes.HasPrefix(line, []byte(p)) {
			return true
		}
	}
	return false
}

func sample(name string, m *dto.Metric) Sample {
	s := Sample{Name: name, Labels: map[string]string{}, Value: m.GetUntyped().GetValue()}
	for _, l := range m.Label {
		s.Labels[l.GetName()] = l.GetValue()
	}
	return s
}

// EstimateLoad derives load data of a broker from its metrics and its topics' statistics, for brokers that have
// published nothing yet: usages are percentages of a limit of 100, since metrics tell no limits, and averages begin with
// what is now. The bundles are those that the broker would publish, lightest first, also of namespaces that have a policy. Estimates are as old as the brokers' statistics, a minute by default.
func (c *Client) EstimateLoad(ctx context.Context, broker string) (event.BrokerLoadData, []event.BundleLoad, error) {
	none := event.BrokerLoadData{}
	samples, err := c.Metrics(ctx, broker, "pulsar_lb_")
	if err != nil {
		return none, nil, err
	}
	topics, err := c.TopicStats(ctx, broker)
	if err != nil {
		return none, nil, err
	}
	config, err := c.RuntimeConfigOf(ctx, broker)
	if err != nil {
		return none, nil, err
	}
	d, top, err := estimate(samples, topics, config, c.options.Now().UnixMilli())
	if err != nil {
		return none, nil, &Error{Op: "estimate the load of " + broker, Kind: BadAnswer, Reason: reasonOf(err), Err: err, RetrySafe: true}
	}
	return d, top, nil
}

func estimate(samples []Sample, topics []TopicStats, config map[string]string, now int64) (d event.BrokerLoadData, top []event.BundleLoad, err error) {
	values := map[string]float64{}
	for _, s := range samples {
		if s.Labels["metric"] == "loadBalancing" {
			values[s.Name+s.Labels["feature"]] = s.Value
		}
	}
	var host event.SystemResourceUsage
	for name, to := range map[string]*event.ResourceUsage{
		"cpu": &host.CPU, "memory": &host.Memory, "directMemory": &host.DirectMemory, "bandwidth_in": &host.BandwidthIn, "bandwidth_out": &host.BandwidthOut,
	} {
		v, ok := values["pulsar_lb_"+name+"_usage"]
		if !ok {
			return d, nil, fmt.Errorf("the metrics have no pulsar_lb_%s_usage", name)
		}
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) { // unknown, as everywhere
			*to = event.ResourceUsage{Usage: -1, Limit: -1}
			continue
		}
		*to = event.ResourceUsage{Usage: v, Limit: 100}
	}
	set, err := loadSettings(config)
	if err != nil {
		return d, nil, err
	}
	stats := bundleStats(topics)
	d = event.NewBrokerLoadData()
	load.UpdateBrokerLoad(&d, host, totals(stats), load.WeightsOf(set), 0, now)
	if v, ok := values["pulsar_lb_resource_usagemax_ema"]; ok && v >= 0 && !math.IsInf(v, 0) { // the broker's own average
		d.WeightedMaxEMA = v
	}
	d.ReportedAt = now
	top, err = load.TopK(stats, load.TopKRules{
		K:            int(set.LoadBalancerMaxNumberOfBundlesInBundleLoadReport),
		Excluded:     set.LoadBalancerSheddingExcludedNamespaces,
		WithPolicies: true,
	})
	return d, top, err
}

// loadSettings are the settings that decide what a broker publishes, as it reports them.
func loadSettings(config map[string]string) (*settings.Settings, error) {
	s := settings.Defaults()
	for _, key := range []string{
		"loadBalancerCPUResourceWeight", "loadBalancerMemoryResourceWeight", "loadBalancerDirectMemoryResourceWeight",
		"loadBalancerBandwidthInResourceWeight", "loadBalancerBandwidthOutResourceWeight",
		"loadBalancerBandwithInResourceWeight", "loadBalancerBandwithOutResourceWeight",
		"loadBalancerMaxNumberOfBundlesInBundleLoadReport", "loadBalancerSheddingExcludedNamespaces",
	} {
		if value, ok := config[key]; ok {
			if err := settings.Set(s, key, value); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func totals(stats []event.NamedBundleStats) (t load.Totals) {
	for i := range stats {
		s := &stats[i].Stats
		t.MsgRateIn += s.MsgRateIn
		t.MsgRateOut += s.MsgRateOut
		t.MsgThroughputIn += s.MsgThroughputIn
		t.MsgThroughputOut += s.MsgThroughputOut
		t.Topics += s.Topics
	}
	t.BundleCount = int64(len(stats))
	return t
}
