package conformance

import (
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/settings"
)

// modularKinds are the decisions of the Modular load manager: averages, load reports, placement, the shedders, splits,
// broker filters.
var modularKinds = map[string]Check{
	"time_avg_message":    checkTimeAvgMessage,
	"bundle_data_update":  checkBundleDataUpdate,
	"time_avg_broker":     checkTimeAvgBroker,
	"local_max_usage":     checkLocalMaxUsage,
	"local_broker_update": checkLocalBrokerUpdate,

	"llmr_select": checkLeastLongTermMessageRate,
	"lruw_select": checkLeastResourceUsage,
	"rr_select":   checkRoundRobin,
	"avg_select":  checkAvgSelect,
	"avg_planned": checkAvgPlanned,

	"overload_shedder":  checkShedder(modular.OverloadShedder{}, nil),
	"threshold_shedder": checkShedder(modular.ThresholdShedder{}, thresholdState),
	"uniform_shedder":   checkShedder(modular.UniformLoadShedder{}, nil),
	"avg_shedder":       checkShedder(modular.AvgShedder{}, avgState),

	"bundle_splitter":        checkBundleSplitter,
	"filter_version_modular": checkModularVersionFilter,
}

// vectorBroker is a Modular broker's data in a vector.
type vectorBroker struct {
	Name             string             `json:"name"`
	CPU              Resource           `json:"cpu"`
	Memory           Resource           `json:"memory"`
	DirectMemory     Resource           `json:"directMemory"`
	BandwidthIn      Resource           `json:"bandwidthIn"`
	BandwidthOut     Resource           `json:"bandwidthOut"`
	MsgThroughputIn  Float              `json:"msgThroughputIn"`
	MsgThroughputOut Float              `json:"msgThroughputOut"`
	MsgRateIn        Float              `json:"msgRateIn"`
	MsgRateOut       Float              `json:"msgRateOut"`
	Bundles          []string           `json:"bundles"`
	Version          string             `json:"version"`
	LastStats        []bundleStats      `json:"lastStats"`
	TimeAverage      *vectorTimeAverage `json:"timeAverage"`
	Preallocated     []vectorBundle     `json:"preallocated"`
}

func (v *vectorBroker) system() event.SystemResourceUsage {
	return event.SystemResourceUsage{
		CPU: v.CPU.Usage(), Memory: v.Memory.Usage(), DirectMemory: v.DirectMemory.Usage(),
		BandwidthIn: v.BandwidthIn.Usage(), BandwidthOut: v.BandwidthOut.Usage(),
	}
}

func (v *vectorBroker) local() *event.LocalBrokerData {
	d := event.NewLocalBrokerData(0)
	d.CPU, d.Memory, d.DirectMemory = v.CPU.Usage(), v.Memory.Usage(), v.DirectMemory.Usage()
	d.BandwidthIn, d.BandwidthOut = v.BandwidthIn.Usage(), v.BandwidthOut.Usage()
	d.MsgThroughputIn, d.MsgThroughputOut = float64(v.MsgThroughputIn), float64(v.MsgThroughputOut)
	d.MsgRateIn, d.MsgRateOut = float64(v.MsgRateIn), float64(v.MsgRateOut)
	d.Bundles, d.BrokerVersionString = v.Bundles, v.Version
	d.LastStats = namedStats(v.LastStats)
	return &d
}

// vectorBundle is a bundle's history in a vector.
type vectorBundle struct {
	Name      string         `json:"name"`
	ShortTerm *vectorAverage `json:"shortTerm"`
	LongTerm  *vectorAverage `json:"longTerm"`
	Topics    int32          `json:"topics"`
}

func (v *vectorBundle) data() event.BundleData {
	d := load.NewBundleData(load.ShortSamples, load.LongSamples, event.NamespaceBundleStats{})
	v.ShortTerm.into(&d.ShortTermData)
	v.LongTerm.into(&d.LongTermData)
	d.Topics = v.Topics
	return d
}

// modularSnapshot is the picture of a cluster of these brokers and bundles, in this order. A bundle that a broker serves
// and that has no history comes after the others.
func modularSnapshot(brokers []vectorBroker, bundles []vectorBundle, conf *settings.Settings, pulsar string) *cluster.Snapshot {
	snap := &cluster.Snapshot{Version: pulsar, Settings: conf}
	place := make(map[string]int, len(bundles))
	add := func(name string, data *event.BundleData) int {
		i, ok := place[name]
		if !ok {
			i = len(snap.Bundles)
			place[name] = i
			snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: name, Namespace: namespaceOf(name), Data: data})
		}
		return i
	}
	for i := range bundles {
		d := bundles[i].data()
		add(bundles[i].Name, &d)
	}
	for i := range brokers {
		v := &brokers[i]
		b := cluster.Broker{ID: v.Name, Version: v.Version, Local: v.local()}
		if v.TimeAverage != nil {
			t := v.TimeAverage.data()
			b.TimeAverage = &t
		}
		for _, name := range v.Bundles {
			b.Bundles = append(b.Bundles, add(name, nil))
		}
		snap.Brokers = append(snap.Brokers, b)
	}
	return snap.Index()
}

// namespaceOf is the tenant/namespace part of a bundle name.
func namespaceOf(bundle string) string {
	if i := strings.LastIndexByte(bundle, '/'); i >= 0 {
		return bundle[:i]
	}
	return bundle
}
