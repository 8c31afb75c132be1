package reporter

import (
	"math"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
)

// Totals are the sums over the bundles of a report. Those of a Modular broker are as it says; those of a Simple one are
// summed in the order of the report, as its own msgThroughput is a message rate.
func Totals(r event.BrokerReport) load.Totals {
	if d := r.Local; d != nil {
		return load.Totals{MsgThroughputIn: d.MsgThroughputIn, MsgThroughputOut: d.MsgThroughputOut,
			MsgRateIn: d.MsgRateIn, MsgRateOut: d.MsgRateOut, BundleCount: int64(d.NumBundles), Topics: d.NumTopics}
	}
	t := load.Totals{BundleCount: int64(len(r.Stats()))}
	for _, b := range r.Stats() {
		t.MsgThroughputIn += b.Stats.MsgThroughputIn
		t.MsgThroughputOut += b.Stats.MsgThroughputOut
		t.MsgRateIn += b.Stats.MsgRateIn
		t.MsgRateOut += b.Stats.MsgRateOut
		t.Topics += b.Stats.Topics
	}
	return t
}

// Derive takes a report into the load data that an Extensible broker would publish: its averages go on from those in d, or
// start with this report when d is event.NewBrokerLoadData. now is Unix ms. A resource whose usage, limit or percentage is no
// finite number becomes (-1, -1), unknown, as Pulsar writes it. Pulsar: BrokerLoadData.update.
func Derive(d *event.BrokerLoadData, r event.BrokerReport, w load.Weights, history float64, now int64) {
	u := r.Usage()
	for _, to := range []*event.ResourceUsage{&u.CPU, &u.Memory, &u.DirectMemory, &u.BandwidthIn, &u.BandwidthOut} {
		if !number(*to) {
			*to = event.ResourceUsage{Usage: -1, Limit: -1}
		}
	}
	load.UpdateBrokerLoad(d, u, Totals(r), w, history, now)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// number says whether a usage is made of numbers.
func number(r event.ResourceUsage) bool {
	return finite(r.Usage) && finite(r.Limit) && finite(float64(r.PercentUsage()))
}

// badFigure is the first traffic figure of a report that is no number of 0 or more.
func badFigure(r event.BrokerReport) (what string, value float64, bad bool) {
	t := Totals(r)
	for _, f := range []struct {
		name  string
		value float64
	}{{"msgThroughputIn", t.MsgThroughputIn}, {"msgThroughputOut", t.MsgThroughputOut}, {"msgRateIn", t.MsgRateIn}, {"msgRateOut", t.MsgRateOut},
		{"msgThroughputIn + msgThroughputOut", t.MsgThroughputIn + t.MsgThroughputOut}} {
		if !finite(f.value) || f.value < 0 {
			return f.name, f.value, true
		}
	}
	for _, b := range r.Stats() {
		for _, v := range []float64{b.Stats.MsgThroughputIn, b.Stats.MsgThroughputOut, b.Stats.MsgRateIn, b.Stats.MsgRateOut} {
			if !finite(v) || v < 0 {
				return "a figure of " + b.Bundle, v, true
			}
		}
	}
	return "", 0, false
}

// anyUsage says whether at least one resource can be judged.
func anyUsage(u event.SystemResourceUsage) bool {
	for _, r := range []event.ResourceUsage{u.CPU, u.DirectMemory, u.BandwidthIn, u.BandwidthOut} {
		if number(r) && r.Limit > 0 {
			return true
		}
	}
	return false
}
