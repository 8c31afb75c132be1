package conformance

import (
	"encoding/json"
	"fmt"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
)

// extensibleKinds are the decisions of the Extensible load manager: load data, top bundles, placement, TransferShedder,
// splits, broker filters.
var extensibleKinds = map[string]Check{
	"broker_load_update":    checkBrokerLoadUpdate,
	"topk_update":           checkTopK,
	"ext_lruw_select":       checkExtensibleSelect,
	"filter_version":        checkVersionFilter(),
	"filter_max_topics":     checkMaxTopics(),
	"filter_lm_class":       checkLoadManagerClass(),
	"transfer_shedder":      checkTransferShedder,
	"transfer_shedder_full": checkTransferShedder,
	"split_strategy":        checkSplitStrategy,
}

// decode reads the input of a line; the difference says what is wrong with it.
func decode(l Line, into any) (diff string) {
	if err := json.Unmarshal(l.Input, into); err != nil {
		return fmt.Sprintf("input of %s: %v", l.Kind, err)
	}
	return ""
}

// thrown says whether Pulsar's class threw: then anything sane will do.
func thrown(l Line) bool {
	var out struct {
		Exception string `json:"exception"`
	}
	return json.Unmarshal(l.Output, &out) == nil && out.Exception != ""
}

// traffic is the four rates of something in a vector.
type traffic struct {
	MsgThroughputIn  Float `json:"msgThroughputIn"`
	MsgThroughputOut Float `json:"msgThroughputOut"`
	MsgRateIn        Float `json:"msgRateIn"`
	MsgRateOut       Float `json:"msgRateOut"`
}

// bundleStats is one bundle with its stats in a vector.
type bundleStats struct {
	Name string `json:"name"`
	traffic
	ConsumerCount int32 `json:"consumerCount"`
	ProducerCount int32 `json:"producerCount"`
	Topics        int64 `json:"topics"`
	CacheSize     int64 `json:"cacheSize"`
}

func (b *bundleStats) stats() event.NamespaceBundleStats {
	return event.NamespaceBundleStats{
		MsgThroughputIn: float64(b.MsgThroughputIn), MsgThroughputOut: float64(b.MsgThroughputOut),
		MsgRateIn: float64(b.MsgRateIn), MsgRateOut: float64(b.MsgRateOut),
		ConsumerCount: b.ConsumerCount, ProducerCount: b.ProducerCount, Topics: b.Topics, CacheSize: b.CacheSize,
	}
}

func checkBrokerLoadUpdate(l Line, _ string) string {
	var in struct {
		Ops []struct {
			Op    string `json:"op"`
			Usage struct {
				CPU          Resource `json:"cpu"`
				Memory       Resource `json:"memory"`
				DirectMemory Resource `json:"directMemory"`
				BandwidthIn  Resource `json:"bandwidthIn"`
				BandwidthOut Resource `json:"bandwidthOut"`
			} `json:"usage"`
			traffic
			BundleCount int64 `json:"bundleCount"`
			Topics      int64 `json:"topics"`
		} `json:"ops"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	type after struct {
		MaxResourceUsage Float `json:"maxResourceUsage"`
		WeightedMaxEMA   Float `json:"weightedMaxEMA"`
		MsgThroughputEMA Float `json:"msgThroughputEMA"`
		MsgThroughputIn  Float `json:"msgThroughputIn"`
		MsgThroughputOut Float `json:"msgThroughputOut"`
		BundleCount      int64 `json:"bundleCount"`
		Topics           int64 `json:"topics"`
		Updated          bool  `json:"updated"`
	}
	var got struct {
		After []after `json:"after"`
	}
	d := event.NewBrokerLoadData()
	for i := range in.Ops {
		op := &in.Ops[i]
		if op.Op == "clear" {
			d = event.NewBrokerLoadData()
		} else {
			if op.Op == "copy" { // Pulsar copies from a fresh object that has seen this measurement only
				d = event.NewBrokerLoadData()
			}
			u := event.SystemResourceUsage{
				CPU: op.Usage.CPU.Usage(), Memory: op.Usage.Memory.Usage(), DirectMemory: op.Usage.DirectMemory.Usage(),
				BandwidthIn: op.Usage.BandwidthIn.Usage(), BandwidthOut: op.Usage.BandwidthOut.Usage(),
			}
			t := load.Totals{
				MsgThroughputIn: float64(op.MsgThroughputIn), MsgThroughputOut: float64(op.MsgThroughputOut),
				MsgRateIn: float64(op.MsgRateIn), MsgRateOut: float64(op.MsgRateOut),
				BundleCount: op.BundleCount, Topics: op.Topics,
			}
			load.UpdateBrokerLoad(&d, u, t, load.WeightsOf(conf), conf.LoadBalancerHistoryResourcePercentage, int64(i)+1)
		}
		got.After = append(got.After, after{
			MaxResourceUsage: Float(d.MaxResourceUsage), WeightedMaxEMA: Float(d.WeightedMaxEMA),
			MsgThroughputEMA: Float(d.MsgThroughputEMA), MsgThroughputIn: Float(d.MsgThroughputIn),
			MsgThroughputOut: Float(d.MsgThroughputOut), BundleCount: d.BundleCount, Topics: d.Topics, Updated: d.UpdatedAt != 0,
		})
	}
	return Diff(l.Output, got)
}

func checkTopK(l Line, _ string) string {
	var in struct {
		K            int           `json:"topk"`
		Bundles      []bundleStats `json:"bundles"`
		Isolation    []string      `json:"isolationNamespaces"`
		AntiAffinity []string      `json:"antiAffinityNamespaces"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	conf, err := l.Settings()
	if err != nil {
		return err.Error()
	}
	policies := make(map[string]bool)
	for _, ns := range append(in.Isolation, in.AntiAffinity...) {
		policies[ns] = true
	}
	stats := make([]event.NamedBundleStats, len(in.Bundles))
	for i := range in.Bundles {
		stats[i] = event.NamedBundleStats{Bundle: in.Bundles[i].Name, Stats: in.Bundles[i].stats()}
	}
	top, err := load.TopK(stats, load.TopKRules{
		K: in.K, Excluded: conf.LoadBalancerSheddingExcludedNamespaces,
		WithPolicies: conf.LoadBalancerSheddingBundlesWithPoliciesEnabled,
		HasPolicy:    func(ns string) (bool, error) { return policies[ns], nil },
	})
	if err != nil {
		return err.Error()
	}
	if thrown(l) {
		return ""
	}
	got := struct {
		Top []string `json:"top"`
	}{Top: []string{}}
	for i := range top {
		got.Top = append(got.Top, top[i].BundleName)
	}
	return Diff(l.Output, got, remarks)
}

// remarks about other orders of the input are not part of an answer.
var remarks = IgnoreKeys("orderSensitive", "byName", "alternatives", "alternativesTruncated")
