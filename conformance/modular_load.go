package conformance

import (
	"math"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
)

func namedStats(list []bundleStats) []event.NamedBundleStats {
	out := make([]event.NamedBundleStats, len(list))
	for i, s := range list {
		out[i] = event.NamedBundleStats{Bundle: s.Name, Stats: s.stats()}
	}
	return out
}

// vectorAverage is a time average in a vector, in and out.
type vectorAverage struct {
	MaxSamples       int32 `json:"maxSamples"`
	NumSamples       int32 `json:"numSamples"`
	MsgThroughputIn  Float `json:"msgThroughputIn"`
	MsgThroughputOut Float `json:"msgThroughputOut"`
	MsgRateIn        Float `json:"msgRateIn"`
	MsgRateOut       Float `json:"msgRateOut"`
}

func (v *vectorAverage) into(t *event.TimeAverageMessageData) {
	if v == nil {
		return
	}
	t.MsgThroughputIn, t.MsgThroughputOut = float64(v.MsgThroughputIn), float64(v.MsgThroughputOut)
	t.MsgRateIn, t.MsgRateOut = float64(v.MsgRateIn), float64(v.MsgRateOut)
}

func averageOf(t *event.TimeAverageMessageData) vectorAverage {
	return vectorAverage{
		MaxSamples: t.MaxSamples, NumSamples: t.NumSamples,
		MsgThroughputIn: Float(t.MsgThroughputIn), MsgThroughputOut: Float(t.MsgThroughputOut),
		MsgRateIn: Float(t.MsgRateIn), MsgRateOut: Float(t.MsgRateOut),
	}
}

func checkTimeAvgMessage(l Line, _ string) string {
	var in struct {
		MaxSamples   int32         `json:"maxSamples"`
		NumSamples   *int32        `json:"numSamples"`
		DefaultStats bundleStats   `json:"defaultStats"`
		Updates      []bundleStats `json:"updates"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	t := load.NewTimeAverage(in.MaxSamples, in.DefaultStats.stats())
	if in.NumSamples != nil {
		t.NumSamples = *in.NumSamples
	}
	type after struct {
		vectorAverage
		TotalMsgRate       Float `json:"totalMsgRate"`
		TotalMsgThroughput Float `json:"totalMsgThroughput"`
	}
	out := struct {
		After []after `json:"after"`
	}{After: []after{}}
	for _, u := range in.Updates {
		s := u.stats()
		load.UpdateTimeAverage(&t, &s)
		out.After = append(out.After, after{averageOf(&t), Float(t.TotalMsgRate()), Float(t.TotalMsgThroughput())})
	}
	return Diff(l.Output, out)
}

func checkBundleDataUpdate(l Line, _ string) string {
	var in struct {
		NumShortSamples int32         `json:"numShortSamples"`
		NumLongSamples  int32         `json:"numLongSamples"`
		DefaultStats    bundleStats   `json:"defaultStats"`
		Updates         []bundleStats `json:"updates"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	d := load.NewBundleData(in.NumShortSamples, in.NumLongSamples, in.DefaultStats.stats())
	topics := []int32{}
	for _, u := range in.Updates {
		s := u.stats()
		load.UpdateBundleData(&d, &s)
		topics = append(topics, d.Topics)
	}
	return Diff(l.Output, map[string]any{
		"topics": topics, "shortTerm": averageOf(&d.ShortTermData), "longTerm": averageOf(&d.LongTermData),
	})
}

func checkTimeAvgBroker(l Line, _ string) string {
	var in struct {
		Owned        []string       `json:"owned"`
		Data         []vectorBundle `json:"data"`
		DefaultStats bundleStats    `json:"defaultStats"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	known := make(map[string]*event.BundleData, len(in.Data))
	for _, b := range in.Data {
		d := b.data()
		known[b.Name] = &d
	}
	defaults := in.DefaultStats.stats()
	var sum event.TimeAverageBrokerData
	for _, name := range in.Owned {
		load.AddBundleData(&sum, known[name], &defaults)
	}
	return Diff(l.Output, vectorTimeAverageOf(sum))
}

// vectorTimeAverage is a broker's time averages in a vector.
type vectorTimeAverage struct {
	ShortTermMsgThroughputIn  Float `json:"shortTermMsgThroughputIn"`
	ShortTermMsgThroughputOut Float `json:"shortTermMsgThroughputOut"`
	ShortTermMsgRateIn        Float `json:"shortTermMsgRateIn"`
	ShortTermMsgRateOut       Float `json:"shortTermMsgRateOut"`
	LongTermMsgThroughputIn   Float `json:"longTermMsgThroughputIn"`
	LongTermMsgThroughputOut  Float `json:"longTermMsgThroughputOut"`
	LongTermMsgRateIn         Float `json:"longTermMsgRateIn"`
	LongTermMsgRateOut        Float `json:"longTermMsgRateOut"`
}

func vectorTimeAverageOf(t event.TimeAverageBrokerData) vectorTimeAverage {
	return vectorTimeAverage{
		Float(t.ShortTermMsgThroughputIn), Float(t.ShortTermMsgThroughputOut), Float(t.ShortTermMsgRateIn), Float(t.ShortTermMsgRateOut),
		Float(t.LongTermMsgThroughputIn), Float(t.LongTermMsgThroughputOut), Float(t.LongTermMsgRateIn), Float(t.LongTermMsgRateOut),
	}
}

func (v *vectorTimeAverage) data() event.TimeAverageBrokerData {
	return event.TimeAverageBrokerData{
		ShortTermMsgThroughputIn: float64(v.ShortTermMsgThroughputIn), ShortTermMsgThroughputOut: float64(v.ShortTermMsgThroughputOut),
		ShortTermMsgRateIn: float64(v.ShortTermMsgRateIn), ShortTermMsgRateOut: float64(v.ShortTermMsgRateOut),
		LongTermMsgThroughputIn: float64(v.LongTermMsgThroughputIn), LongTermMsgThroughputOut: float64(v.LongTermMsgThroughputOut),
		LongTermMsgRateIn: float64(v.LongTermMsgRateIn), LongTermMsgRateOut: float64(v.LongTermMsgRateOut),
	}
}

func checkLocalMaxUsage(l Line, _ string) string {
	var in struct {
		Broker  vectorBroker `json:"broker"`
		Weights [4]Float     `json:"weights"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	d := in.Broker.local()
	w := load.Weights{
		CPU: float64(in.Weights[0]), DirectMemory: float64(in.Weights[1]),
		BandwidthIn: float64(in.Weights[2]), BandwidthOut: float64(in.Weights[3]),
		Memory: math.NaN(), // never read
	}
	return Diff(l.Output, map[string]any{
		"maxResourceUsage":           Float(load.LocalMaxUsage(d)),
		"maxResourceUsageWithWeight": Float(load.LocalWeightedMaxUsage(d, &w)),
	})
}

func checkLocalBrokerUpdate(l Line, _ string) string {
	var in struct {
		Updates []struct {
			Usage           vectorBroker  `json:"usage"`
			Stats           []bundleStats `json:"stats"`
			CleanDeltaAfter bool          `json:"cleanDeltasAfter"`
		} `json:"updates"`
	}
	if diff := decode(l, &in); diff != "" {
		return diff
	}
	d := event.NewLocalBrokerData(0)
	after := []map[string]any{}
	for _, u := range in.Updates {
		load.UpdateLocal(&d, u.Usage.system(), namedStats(u.Stats))
		after = append(after, map[string]any{
			"msgThroughputIn": Float(d.MsgThroughputIn), "msgThroughputOut": Float(d.MsgThroughputOut),
			"msgRateIn": Float(d.MsgRateIn), "msgRateOut": Float(d.MsgRateOut),
			"numTopics": d.NumTopics, "numBundles": d.NumBundles, "numConsumers": d.NumConsumers, "numProducers": d.NumProducers,
			"bundles": array(d.Bundles), "lastBundleGains": array(d.LastBundleGains), "lastBundleLosses": array(d.LastBundleLosses),
			"maxResourceUsage": Float(load.LocalMaxUsage(&d)),
		})
		if u.CleanDeltaAfter {
			load.CleanDeltas(&d)
		}
	}
	return Diff(l.Output, map[string]any{"after": after}, Sets("bundles", "lastBundleGains", "lastBundleLosses"))
}

// array is a list that is written as [] when it is empty.
func array(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
