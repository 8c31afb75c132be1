package control

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ballast-lb/ballast/topics"
)

// Watched are views whose topics' health can be exported.
type Watched interface {
	watched() []*feed
	// garbage is how many messages of a topic could not be used.
	garbage(topic string) int64
}

// Collector exports what the views heard, and what they could not use, of each topic.
type Collector struct {
	views     Watched
	messages  *prometheus.Desc
	skipped   *prometheus.Desc
	recovered *prometheus.Desc
	lost      *prometheus.Desc
	blind     *prometheus.Desc
	connected *prometheus.Desc
}

// NewCollector makes the collector of views; views may be nil when only the descriptions are wanted.
func NewCollector(views Watched, clusterName string) *Collector {
	labels := prometheus.Labels{"cluster": clusterName}
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"topic"}, labels)
	}
	return &Collector{
		views:     views,
		messages:  desc("ballast_events_total", "Events that were delivered."),
		skipped:   desc("ballast_events_skipped_total", "Events that could not be used: undecodable, without a key, too large, or load reports that were sent again."),
		recovered: desc("ballast_events_recovered_total", "Events that the client library dropped and that were fetched over admin REST."),
		lost:      desc("ballast_events_lost_total", "Events that are known to be missing."),
		blind:     desc("ballast_topic_blind_seconds_total", "Time without a working subscription."),
		connected: desc("ballast_topic_connected", "1 while the topic is being read."),
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.messages, c.skipped, c.recovered, c.lost, c.blind, c.connected} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	for _, f := range c.views.watched() {
		sub := f.subscription()
		if sub == nil {
			continue
		}
		st := sub.Status()
		connected := 0.0
		if st.Connected {
			connected = 1
		}
		count := func(d *prometheus.Desc, v float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, f.topic)
		}
		count(c.messages, float64(st.Messages))
		count(c.skipped, float64(st.Skipped+c.views.garbage(f.topic)))
		count(c.recovered, float64(st.Recovered))
		count(c.lost, float64(st.Lost))
		count(c.blind, st.Blind.Seconds())
		ch <- prometheus.MustNewConstMetric(c.connected, prometheus.GaugeValue, connected, f.topic)
	}
}

func (v *Views) watched() []*feed { return v.feeds }

func (v *Views) garbage(topic string) int64 {
	switch topic {
	case topics.BrokerLoadData:
		st := v.load.Snapshot().Stats
		return st.Garbage + st.Rejected
	case topics.TopBundles:
		return v.top.Snapshot().Stats.Garbage
	}
	return v.owners.unreadable()
}

func (v *ReportViews) watched() []*feed { return append([]*feed{v.feed}, v.o.History.feeds...) }

func (v *ReportViews) garbage(topic string) int64 {
	switch topic {
	case topics.BundleData:
		return v.o.History.bundles.view.Snapshot().Stats.Garbage
	case topics.BrokerAverages:
		return v.o.History.averages.view.Snapshot().Stats.Garbage
	}
	return v.view.Snapshot().Stats.Garbage
}
