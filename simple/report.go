package simple

import (
	"maps"
	"math"
	"slices"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// heapWindow is the time that the average of heap usage spans, ms.
const heapWindow = 120_000

// ReportState is what a broker remembers between load reports. It is plain data. The zero value is that before the first
// report.
type ReportState struct {
	Heap         int64             `json:"heap"`         // average heap usage, MiB; 0 or less: none yet
	Last         *event.LoadReport `json:"last"`         // the report that was written last, nil before
	UsageChecked int64             `json:"usageChecked"` // when usage was last looked at, Unix ms; the caller sets it to the first report's time
	Forced       bool              `json:"forced"`       // write the next report in any case
}

// Why a load report is written, or not.
var (
	ReportForced     = plan.Code{ID: "REPORT_FORCED", Template: "asked for"}
	ReportOld        = plan.Code{ID: "REPORT_OLD", Template: "the last report is {age} ms old, more than loadBalancerReportUpdateMaxIntervalMinutes {limit}"}
	BundlesChanged   = plan.Code{ID: "BUNDLES_CHANGED", Template: "{bundles} bundles, {last} at the last report"}
	UsageChanged     = plan.Code{ID: "USAGE_CHANGED", Template: "usage changed by {change} points > loadBalancerReportUpdateThresholdPercentage {limit}"}
	ReportTooYoung   = plan.Code{ID: "REPORT_YOUNG", Template: "the last report is {age} ms old, not more than loadBalancerReportUpdateMinIntervalMillis {limit}"}
	UsageJustChecked = plan.Code{ID: "USAGE_JUST_CHECKED", Template: "usage was looked at {age} ms ago, not more than loadBalancerHostUsageCheckIntervalMinutes {limit}"}
	UsageUnchanged   = plan.Code{ID: "USAGE_UNCHANGED", Template: "usage changed by {change} points <= loadBalancerReportUpdateThresholdPercentage {limit}"}
)

// AddHeap takes a measurement of heap usage (MiB) into the average, which spans two minutes of report intervals.
func (s *ReportState) AddHeap(used int64, set *settings.Settings) {
	if s.Heap <= 0 {
		s.Heap = used
		return
	}
	n := int64(1)
	if interval := set.LoadBalancerReportUpdateMinIntervalMillis; interval > 0 {
		n = max(1, heapWindow/interval)
	}
	s.Heap = ((n-1)*s.Heap + used) / n
}

// WithHeap is host usage with the average heap usage as memory usage, as Simple brokers report it.
func (s *ReportState) WithHeap(host event.SystemResourceUsage) event.SystemResourceUsage {
	host.Memory.Usage = float64(s.Heap)
	return host
}

// Due says whether a broker with so many bundles and this usage (WithHeap) is to write a report now (Unix ms), and notes what
// was looked at. Pulsar compares the usage with that of the last report, which may be the very same object by then, so that
// it can miss changes; here it is compared with what was reported. Pulsar: writeLoadReportOnZookeeper.
func (s *ReportState) Due(now int64, bundles int64, usage event.SystemResourceUsage, set *settings.Settings) (bool, plan.Reason) {
	if s.Last == nil || s.Forced {
		s.Forced = false
		return true, ReportForced.Because()
	}
	age := now - s.Last.Timestamp
	if longest := set.LoadBalancerReportUpdateMaxIntervalMinutes; age > minutes(longest) {
		return true, ReportOld.Because(plan.N("age", age), plan.N("limit", longest))
	}
	if least := set.LoadBalancerReportUpdateMinIntervalMillis; age <= least {
		return false, ReportTooYoung.Because(plan.N("age", age), plan.N("limit", least))
	}
	if last := int64(s.Last.NumBundles()); last != bundles {
		return true, BundlesChanged.Because(plan.N("bundles", bundles), plan.N("last", last))
	}
	checked, interval := now-s.UsageChecked, set.LoadBalancerHostUsageCheckIntervalMinutes
	if checked <= minutes(interval) {
		return false, UsageJustChecked.Because(plan.N("age", checked), plan.N("limit", interval))
	}
	s.UsageChecked = now
	change, limit := usageChange(s.Last.SystemResourceUsage, &usage), set.LoadBalancerReportUpdateThresholdPercentage
	if change > limit {
		return true, UsageChanged.Because(plan.N("change", change), plan.N("limit", limit))
	}
	return false, UsageUnchanged.Because(plan.N("change", change), plan.N("limit", limit))
}

// usageChange is the greatest change of a resource in whole percent points of its new limit, at most 100. Without an old
// usage everything changed.
func usageChange(last, now *event.SystemResourceUsage) int64 {
	if last == nil {
		return 100
	}
	change := func(old, new event.ResourceUsage) float64 {
		if new.Limit > 0 {
			return math.Abs((new.Usage - old.Usage) * 100 / new.Limit)
		}
		return 0
	}
	return toLong(min(100, max(change(last.CPU, now.CPU), change(last.DirectMemory, now.DirectMemory), change(last.Memory, now.Memory),
		change(last.BandwidthOut, now.BandwidthOut), change(last.BandwidthIn, now.BandwidthIn))))
}

// Written notes that a report was written.
func (s *ReportState) Written(r *event.LoadReport) { s.Last, s.UsageChecked = r, r.Timestamp }

// Identity is what a broker says of itself in its load reports.
type Identity struct {
	Broker              string // broker id
	Version             string
	WebServiceURL       string
	WebServiceURLTLS    string
	PulsarServiceURL    string
	PulsarServiceURLTLS string
	Protocols           map[string]string
	LoadManager         string // class name
}

// Report makes the load report of a broker at time now (Unix ms) from its usage (WithHeap) and its bundles; state is the load
// manager's, which knows quotas and rankings and is not changed. startTimestamp is now, as Pulsar has it.
// Pulsar: generateLoadReportForcefully.
func (s *ReportState) Report(who Identity, now int64, usage event.SystemResourceUsage, bundles []event.NamedBundleStats, set *settings.Settings, state *State) event.LoadReport {
	r := event.NewLoadReport()
	r.Name, r.BrokerVersionString, r.LoadManagerClassName = who.Broker, who.Version, who.LoadManager
	r.WebServiceURL, r.WebServiceURLTLS = who.WebServiceURL, who.WebServiceURLTLS
	r.PulsarServiceURL, r.PulsarServiceURLTLS = who.PulsarServiceURL, who.PulsarServiceURLTLS
	if who.Protocols != nil {
		r.Protocols = maps.Clone(who.Protocols)
	}
	r.PersistentTopicsEnabled, r.NonPersistentTopicsEnabled = set.EnablePersistentTopics, set.EnableNonPersistentTopics
	r.Timestamp, r.StartTimestamp = now, now
	r.SystemResourceUsage = &usage
	r.OverLoaded = above(&usage, set.LoadBalancerBrokerOverloadedThresholdPercentage)
	r.UnderLoaded = below(&usage, set.LoadBalancerBrokerUnderloadedThresholdPercentage)
	r.BundleStats = append([]event.NamedBundleStats{}, bundles...)
	var before []string
	if s.Last != nil {
		before = bundlesOf(s.Last)
	}
	current := bundlesOf(&r)
	r.BundleGains = append([]string{}, minus(current, before)...)
	r.BundleLosses = append([]string{}, minus(before, current)...)
	allocate(&r, state, current)
	return r
}

// allocate fills in what the bundles of a broker are expected to need: those it has, and those it was promised.
func allocate(r *event.LoadReport, st *State, current []string) {
	factor := float64(st.Quotas.CPUFactor)
	a := sum(current, st.Quotas.Of)
	r.AllocatedCPU, r.AllocatedMemory = (a.MsgRateIn+a.MsgRateOut)*factor, a.Memory
	r.AllocatedBandwidthIn, r.AllocatedBandwidthOut = a.BandwidthIn, a.BandwidthOut
	r.AllocatedMsgRateIn, r.AllocatedMsgRateOut = a.MsgRateIn, a.MsgRateOut
	at := slices.IndexFunc(st.Rankings, func(k Ranking) bool { return k.Broker == r.Name })
	if at < 0 {
		return
	}
	p := sum(minus(st.Rankings[at].Preallocated, current), st.Quotas.Of)
	r.PreAllocatedCPU, r.PreAllocatedMemory = (p.MsgRateIn+p.MsgRateOut)*factor, p.Memory
	r.PreAllocatedBandwidthIn, r.PreAllocatedBandwidthOut = p.BandwidthIn, p.BandwidthOut
	r.PreAllocatedMsgRateIn, r.PreAllocatedMsgRateOut = p.MsgRateIn, p.MsgRateOut
}
