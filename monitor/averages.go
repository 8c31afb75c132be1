package monitor

import (
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
)

// Averages are short- and long-term averages of bundles, made from the load reports of one run, for clusters whose history
// nobody keeps. A report that says nothing new is no sample. The zero value knows nothing.
type Averages struct {
	bundles map[string]*event.BundleData
	last    map[string]event.LocalBrokerData // by broker id
	samples int
}

// Start takes over a history that was kept, by bundle.
func (a *Averages) Start(history map[string]event.BundleData) {
	a.init()
	for bundle, d := range history {
		a.bundles[bundle] = &d
	}
}

func (a *Averages) init() {
	if a.bundles == nil {
		a.bundles, a.last = map[string]*event.BundleData{}, map[string]event.LocalBrokerData{}
	}
}

// Hear adds a broker's report and returns the sums of its bundles' averages (Pulsar: BundleData.update and
// TimeAverageBrokerData.reset).
func (a *Averages) Hear(broker string, d *event.LocalBrokerData) *event.TimeAverageBrokerData {
	a.init()
	before, heard := a.last[broker]
	isNew := !heard || before.LastUpdate != d.LastUpdate || !slices.Equal(before.LastStats, d.LastStats)
	if isNew {
		a.last[broker] = *d
		a.samples++
	}
	var sum event.TimeAverageBrokerData
	defaults := load.DefaultStats()
	for i := range d.LastStats {
		s := &d.LastStats[i]
		b := a.bundles[s.Bundle]
		if b == nil {
			fresh := load.NewBundleData(load.ShortSamples, load.LongSamples, defaults)
			b = &fresh
			a.bundles[s.Bundle] = b
		}
		if isNew {
			load.UpdateBundleData(b, &s.Stats)
		}
		load.AddBundleData(&sum, b, &defaults)
	}
	return &sum
}

// Samples is how many reports were new.
func (a *Averages) Samples() int { return a.samples }
