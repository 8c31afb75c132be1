package drain

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/watch"
)

// Why the next broker may not be restarted yet.
var (
	GateFewBrokers = plan.Code{ID: "GATE_BROKERS_MISSING", Template: "{count} brokers are registered, {want} are wanted"}
	GateOnlyOne    = plan.Code{ID: "GATE_LAST_BROKER", Template: "{count} brokers are registered: nobody would serve while it restarts"}
	GateSilent     = plan.Code{ID: "GATE_BROKER_SILENT", Template: "it is registered and does not answer: {error}"}
	GateNotReady   = plan.Code{ID: "GATE_BROKER_NOT_READY", Template: "it is not ready: {error}"}
	GateNotHeard   = plan.Code{ID: "GATE_BROKER_NOT_REPORTING", Template: "its load is not known: {why}"}
	GateUnclear    = plan.Code{ID: "GATE_FROZEN", Template: "the cluster cannot be judged now: {code}: {text}"}
	GateInFlight   = plan.Code{ID: "GATE_IN_FLIGHT", Template: "{count} bundles are on their way, {bundle} among them ({state})"}
	GateAnomaly    = plan.Code{ID: "GATE_ANOMALY", Template: "{code}: {text}"}
	GateNoLeader   = plan.Code{ID: "GATE_NO_LEADER", Template: "the load manager has no leader"}
	GateNotCaught  = plan.Code{ID: "GATE_LOG_NOT_READ", Template: "the ownership log has not been read to its end"}
)

// Facts is what the gate judges.
type Facts struct {
	Snapshot  *cluster.Snapshot
	Silent    map[string]string // broker id -> why it did not answer
	NotReady  map[string]string // broker id -> why it is not ready
	Missing   []string          // brokers of which no load was heard yet, and none can be read from their metrics
	Frozen    []plan.Reason     // why nothing may be decided from the snapshot, besides what the fields above and CaughtUp say
	Want      int               // brokers that must be registered; 0 = at least two
	Owners    *ownership.Snapshot
	CaughtUp  bool
	Anomalies []watch.Anomaly
}

// Gate is why the next broker may not be restarted now; nothing means that it may. A broker that is down is not in the
// registry: only Want can tell that one is missing.
func Gate(f Facts) []plan.LeftOut {
	var out []plan.LeftOut
	add := func(bundle, broker string, why plan.Reason) {
		out = append(out, plan.LeftOut{Bundle: bundle, Broker: broker, Why: why})
	}
	switch n := len(f.Snapshot.Brokers); {
	case f.Want > 0 && n < f.Want:
		add("", "", GateFewBrokers.Because(plan.N("count", n), plan.N("want", f.Want)))
	case n < 2:
		add("", "", GateOnlyOne.Because(plan.N("count", n)))
	}
	for _, list := range []struct {
		code plan.Code
		of   map[string]string
	}{{GateSilent, f.Silent}, {GateNotReady, f.NotReady}} {
		for _, id := range slices.Sorted(maps.Keys(list.of)) {
			add("", id, list.code.Because(plan.S("error", list.of[id])))
		}
	}
	for _, id := range f.Missing {
		add("", id, GateNotHeard.Because(plan.S("why", "nothing was heard of it, and nothing can be read from its metrics")))
	}
	for i := range f.Snapshot.Brokers {
		b := &f.Snapshot.Brokers[i]
		if _, silent := f.Silent[b.ID]; !b.Stale.IsZero() && !silent {
			add("", b.ID, GateNotHeard.Because(plan.S("why", b.Stale.String())))
		}
	}
	for _, why := range f.Frozen {
		add("", "", GateUnclear.Because(plan.S("code", why.Code), plan.S("text", why.String())))
	}
	if f.Snapshot.Leader == "" {
		add("", "", GateNoLeader.Because())
	}
	if !f.CaughtUp {
		add("", "", GateNotCaught.Because())
	}
	if f.Owners != nil {
		for bundle, r := range f.Owners.InFlight() {
			add(bundle, "", GateInFlight.Because(plan.N("count", f.Owners.InFlightCount()), plan.S("bundle", bundle), plan.S("state", string(r.State()))))
			break
		}
	}
	for _, a := range f.Anomalies {
		add(a.Bundle, cmp.Or(a.Broker, a.Producer), GateAnomaly.Because(plan.S("code", a.Why.Code), plan.S("text", strings.TrimSpace(a.Why.String()))))
	}
	return out
}
