package advise

import (
	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

var (
	// Misplaced: the bundle is where its namespace's policies do not allow it any more.
	Misplaced = plan.Code{ID: "MUST_MOVE", Template: "must leave {broker}: {why}"}
	// MisplacedStuck: likewise, and no other broker may take it.
	MisplacedStuck = plan.Code{ID: "MUST_MOVE_NOWHERE", Template: "must leave {broker}: {why}; but {stuck}"}
)

// MustMove are the bundles that isolation policies no longer allow where they are. Policies count only when a bundle is
// assigned, so a change of them leaves what is assigned already; these moves are owed whatever the load is.
func MustMove(snap *cluster.Snapshot) []plan.LeftOut {
	placed := make([]policy.Placed, 0, len(snap.Bundles))
	for i := range snap.Bundles {
		b := &snap.Bundles[i]
		if b.Owner != "" {
			placed = append(placed, policy.Placed{Bundle: b.Name, Broker: b.Owner, NonPersistent: b.NonPersistent})
		}
	}
	var out []plan.LeftOut
	for _, m := range view(snap).MustMove(placed) {
		code, numbers := Misplaced, []plan.Number{plan.S("broker", m.Broker), plan.S("why", m.Why.String())}
		if !m.Stuck.IsZero() {
			code, numbers = MisplacedStuck, append(numbers, plan.S("stuck", m.Stuck.String()))
		}
		out = append(out, plan.LeftOut{Bundle: m.Bundle, Broker: m.Broker, Why: code.Because(numbers...)})
	}
	return out
}
