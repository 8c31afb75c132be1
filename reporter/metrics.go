package reporter

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the reporter's Prometheus metrics. A nil *Metrics counts nothing.
type Metrics struct {
	reads  *prometheus.CounterVec
	events *prometheus.CounterVec
	stale  *prometheus.GaugeVec
	age    *prometheus.GaugeVec
	holds  prometheus.Gauge
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(r prometheus.Registerer, clusterName string) *Metrics {
	labels := prometheus.Labels{"cluster": clusterName}
	counter := func(name, help string, names ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, names)
	}
	gauge := func(name, help string, names ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, names)
	}
	m := &Metrics{
		reads:  counter("ballast_report_reads_total", "Readings of load reports by result: good, refused, failed.", "result"),
		events: counter("ballast_report_events_total", "Events that the reporter published: value or tombstone.", "topic", "kind"),
		stale:  gauge("ballast_report_stale", "1 for a broker whose load is not known, with the code of the reason.", "broker", "code"),
		age:    gauge("ballast_report_age_seconds", "Time from the last good report of a broker to the last round.", "broker"),
		holds: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ballast_report_active", ConstLabels: labels,
			Help: "1 while this process reports."}),
	}
	r.MustRegister(m.reads, m.events, m.stale, m.age, m.holds)
	return m
}

func (m *Metrics) read(result string) {
	if m != nil {
		m.reads.WithLabelValues(result).Inc()
	}
}

func (m *Metrics) sent(e Event) {
	if m == nil {
		return
	}
	kind := "value"
	if e.Value == nil {
		kind = "tombstone"
	}
	m.events.WithLabelValues(e.Topic, kind).Inc()
}

func (m *Metrics) round(round *Round) {
	if m == nil {
		return
	}
	m.stale.Reset() // brokers come and go
	m.age.Reset()
	for i := range round.Brokers {
		b := &round.Brokers[i]
		if b.Stale != nil {
			m.stale.WithLabelValues(b.ID, b.Stale.Code).Set(1)
		}
		if b.Heard > 0 {
			m.age.WithLabelValues(b.ID).Set(float64(round.At-b.Heard) / 1000)
		}
	}
}

func (m *Metrics) active(on bool) {
	if m == nil {
		return
	}
	m.holds.Set(0)
	if on {
		m.holds.Set(1)
	}
}
