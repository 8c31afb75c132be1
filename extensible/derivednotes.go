package extensible

import (
	"strconv"

	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/plan"
)

// What is remarkable about a load report (load.Note).
var (
	// ResourceUnknown: a resource of the broker cannot be judged and is left out of its load.
	ResourceUnknown = plan.Code{ID: "RESOURCE_UNKNOWN", Template: "{resource} is unknown (usage {usage}, limit {limit}) and left out of the load"}
	// LoadUnknown: nothing of the broker can be judged, so it has no load data.
	LoadUnknown = plan.Code{ID: "LOAD_UNKNOWN", Template: "no resource with a weight can be judged: the load is unknown"}
	// ThroughputUnknown: the broker's throughput cannot be used; its average stays.
	ThroughputUnknown = plan.Code{ID: "THROUGHPUT_UNKNOWN", Template: "throughput {usage} cannot be used; its average stays as it was"}
	// LimitChanged: the reported limit of a resource changed by half or more.
	LimitChanged = plan.Code{ID: "RESOURCE_LIMIT_CHANGED", Template: "the reported limit of {resource} changed from {before} to {limit}"}
)

// Notes are the reasons for what was remarkable about a report of a broker.
func Notes(broker string, notes []load.Note) []plan.LeftOut {
	var out []plan.LeftOut
	for _, n := range notes {
		resource, usage, limit := plan.S("resource", n.Resource.String()), plan.N("usage", n.Usage), plan.N("limit", n.Limit)
		var why plan.Reason
		switch n.Kind {
		case load.UnknownResource:
			why = ResourceUnknown.Because(resource, usage, limit)
		case load.UnknownUsage:
			why = LoadUnknown.Because()
		case load.UnknownThroughput:
			why = ThroughputUnknown.Because(usage)
		case load.LimitChanged:
			why = LimitChanged.Because(resource, plan.N("before", n.Before), limit)
		default:
			why = plan.Reason{Code: "LOAD_NOTE", Text: strconv.Quote(string(n.Kind))}
		}
		out = append(out, plan.LeftOut{Broker: broker, Why: why})
	}
	return out
}
