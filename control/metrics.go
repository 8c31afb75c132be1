package control

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/plan"
)

// Metrics are the controller's Prometheus metrics, under Pulsar's own names where Pulsar has them. A nil *Metrics counts nothing.
type Metrics struct {
	usage     *prometheus.GaugeVec
	stats     *prometheus.GaugeVec
	bundles   prometheus.Counter
	brokers   prometheus.Counter
	breakdown *prometheus.CounterVec
	splits    prometheus.Counter
	splitWhy  *prometheus.CounterVec
	assigned  *prometheus.CounterVec
	cycles    *prometheus.CounterVec
	outcomes  *prometheus.CounterVec
	requests  prometheus.Counter
	duration  prometheus.Histogram
	missing   prometheus.Gauge
	unwatched prometheus.Gauge
	agreement prometheus.Gauge
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(r prometheus.Registerer, clusterName string) *Metrics {
	labels := prometheus.Labels{"cluster": clusterName}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	}
	counter := func(name, help string, names ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels}, names)
	}
	// Pulsar's names have Pulsar's label metric, as its brokers export them.
	pulsar := func(metric string) prometheus.Labels {
		return prometheus.Labels{"cluster": clusterName, "metric": metric}
	}
	const unloading = "bundleUnloading"
	m := &Metrics{
		usage: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pulsar_lb_resource_usage", ConstLabels: pulsar("loadBalancing"),
			Help: "Usage of a broker as Ballast sees it, a fraction: max_ema is the weighted maximum average, max the maximum."}, []string{"broker", "feature"}),
		stats: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "pulsar_lb_resource_usage_stats", ConstLabels: pulsar(unloading),
			Help: "Average and standard deviation of the brokers' usage that the last plan compared with."}, []string{"feature", "stat"}),
		bundles: prometheus.NewCounter(prometheus.CounterOpts{Name: "pulsar_lb_unload_bundle_total", ConstLabels: pulsar(unloading),
			Help: "Bundles that Ballast moved."}),
		brokers: prometheus.NewCounter(prometheus.CounterOpts{Name: "pulsar_lb_unload_broker_total", ConstLabels: pulsar(unloading),
			Help: "Brokers that Ballast moved bundles from, counted once per cycle."}),
		breakdown: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pulsar_lb_unload_broker_breakdown_total", ConstLabels: pulsar(unloading),
			Help: "Decisions by Pulsar's result and reason."}, []string{"result", "reason"}),
		splits: prometheus.NewCounter(prometheus.CounterOpts{Name: "pulsar_lb_bundles_split_total", ConstLabels: pulsar("bundlesSplit"),
			Help: "Bundles that Ballast split."}),
		splitWhy: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pulsar_lb_bundles_split_breakdown_total", ConstLabels: pulsar("bundlesSplit"),
			Help: "Splits that Ballast tried by Pulsar's result and reason."}, []string{"result", "reason"}),
		assigned: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "pulsar_lb_assign_broker_breakdown_total", ConstLabels: pulsar("assign"),
			Help: "Bundles without an owner that Ballast placed, by the broker that was chosen and Pulsar's result."}, []string{"broker", "result"}),
		cycles:   counter("ballast_cycles_total", "Cycles by what came of them: planned, nothing, frozen.", "result"),
		outcomes: counter("ballast_actions_total", "Actions by how they ended.", "result"),
		requests: prometheus.NewCounter(prometheus.CounterOpts{Name: "ballast_unload_requests_total", ConstLabels: labels,
			Help: "Requests for unloads and splits. More than actions: on Modular and Simple clusters some are repeated, as a destination is a hint there, or ignored."}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "ballast_move_seconds", ConstLabels: labels,
			Help: "Time from the request of a move until its new owner was seen.", Buckets: prometheus.ExponentialBuckets(0.05, 2, 12)}),
		missing:   gauge("ballast_brokers_not_heard", "Registered brokers without load data."),
		unwatched: gauge("ballast_nobody_balances", "1 when the built-in balancing is off and no Ballast acts."),
		agreement: gauge("ballast_agreement_ratio", "Share of the cluster's own moves that the plan on the same data has, a fraction."),
	}
	r.MustRegister(m.usage, m.stats, m.bundles, m.brokers, m.breakdown, m.splits, m.splitWhy, m.assigned, m.cycles, m.outcomes, m.requests, m.duration, m.missing, m.unwatched, m.agreement)
	return m
}

func (m *Metrics) cycle(cy *Cycle) {
	if m == nil {
		return
	}
	result := "nothing"
	switch {
	case len(cy.Frozen) > 0:
		result = "frozen"
	case len(cy.Plan.Decisions) > 0:
		result = "planned"
	}
	m.cycles.WithLabelValues(result).Inc()
	m.missing.Set(float64(len(cy.Missing)))
	if cy.Plan.LoadAvg > 0 && cy.Plan.LoadStd > 0 {
		m.stats.WithLabelValues("max_ema", "avg").Set(cy.Plan.LoadAvg)
		m.stats.WithLabelValues("max_ema", "std").Set(cy.Plan.LoadStd)
	}
	for _, n := range cy.Plan.Counts {
		m.breakdown.WithLabelValues(n.Label, n.Reason).Add(float64(n.N))
	}
	m.usage.Reset() // brokers come and go
	if cy.Snapshot != nil {
		for i := range cy.Snapshot.Brokers {
			if b := &cy.Snapshot.Brokers[i]; b.Load != nil {
				m.usage.WithLabelValues(b.ID, "max_ema").Set(b.Load.WeightedMaxEMA)
				m.usage.WithLabelValues(b.ID, "max").Set(b.Load.MaxResourceUsage)
			}
		}
	}
}

func (m *Metrics) acted(outcomes []Outcome) {
	if m == nil {
		return
	}
	sources := map[string]bool{}
	for _, o := range outcomes {
		m.outcomes.WithLabelValues(string(o.Result)).Inc()
		m.requests.Add(float64(o.Attempts))
		m.counted(o)
		if o.Result != Done && o.Result != Elsewhere {
			continue
		}
		m.duration.Observe(float64(o.Millis) / 1000)
		if o.Decision.Action == plan.Transfer || o.Decision.Action == plan.Unload {
			m.bundles.Inc()
			sources[o.Decision.Source] = true
		}
	}
	m.brokers.Add(float64(len(sources)))
}

// counted counts a split or a placement as Pulsar's load manager counts its own (Pulsar: SplitCounter, AssignCounter).
func (m *Metrics) counted(o Outcome) {
	switch d := o.Decision; {
	case d.Action == plan.Split && o.Result == Done:
		m.splits.Inc()
		m.splitWhy.WithLabelValues(extensible.Success, d.PulsarReason).Inc()
	case d.Action == plan.Split && o.Result != Skipped:
		m.splitWhy.WithLabelValues(extensible.Failure, extensible.Unknown).Inc()
	case d.Action == plan.Place && o.Result == Done:
		m.assigned.WithLabelValues(d.Destination, extensible.Success).Inc()
	case d.Action == plan.Place && (o.Result == Elsewhere || o.Result == Skipped): // it has an owner by now
		m.assigned.WithLabelValues(d.Destination, extensible.Skip).Inc()
	case d.Action == plan.Place:
		m.assigned.WithLabelValues(d.Destination, extensible.Failure).Inc()
	}
}

// Unwatched sets the alarm "built-in balancing off and no Ballast alive".
func (m *Metrics) Unwatched(on bool) {
	if m == nil {
		return
	}
	m.unwatched.Set(0)
	if on {
		m.unwatched.Set(1)
	}
}

// Agreement sets the share of the cluster's own moves that the plan on the same data has (0 to 1).
func (m *Metrics) Agreement(share float64) {
	if m != nil {
		m.agreement.Set(share)
	}
}
