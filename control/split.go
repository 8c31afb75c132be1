package control

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/plan"
)

// Splitting says when the loop splits bundles (ballastSplit).
type Splitting string

// When it does. Never while the cluster splits by itself: two that split one bundle are in each other's way.
const (
	SplitAuto Splitting = "auto" // on Modular and Simple clusters
	SplitOn   Splitting = "on"   // on Extensible ones, too
	SplitOff  Splitting = "off"  // never
)

var (
	// SplitByCluster: the cluster's own splitting is on.
	SplitByCluster = plan.Code{ID: "SPLITTING_LEFT_TO_CLUSTER", Template: "the cluster splits bundles by itself ({key} is true)"}
	// SplitUnclear: nobody knows whether it is on.
	SplitUnclear = plan.Code{ID: "SPLITTING_UNCLEAR", Template: "it cannot be read whether the cluster splits bundles by itself, so none is split: {error}"}
	// AndSplits is the outcome of a cycle that splits bundles.
	AndSplits = plan.Code{ID: "SPLITS", Template: "{splits} splits: {why}; {moves} moves: {outcome}"}
)

// Splits has a controller split the bundles that are above a limit (loadBalancerNamespaceBundleMax...), by the rules of the load
// manager that decides.
type Splits struct {
	When       Splitting
	Extensible bool // the cluster runs the Extensible load manager
	Cluster    interface {
		RuntimeConfig(ctx context.Context) (map[string]string, error)
	}
}

// wanted says whether this kind of cluster is to be looked after at all.
func (s *Splits) wanted() bool {
	return s != nil && (s.When == SplitOn || s.When == SplitAuto && !s.Extensible)
}

// held is why nothing may be split now; zero if it may. It is asked in every cycle, as the setting is a dynamic one.
func (s *Splits) held(ctx context.Context) plan.Reason {
	config, err := s.Cluster.RuntimeConfig(ctx)
	if err != nil {
		return SplitUnclear.Because(plan.S("error", err.Error()))
	}
	const key = "loadBalancerAutoBundleSplitEnabled"
	for _, k := range []string{"loadBalancerEnabled", key} {
		if strings.EqualFold(config[k], "false") {
			return plan.Reason{}
		}
	}
	return SplitByCluster.Because(plan.S("key", key))
}

// addSplits plans a round of splits besides the moves. Where a bundle is to be both split and moved the split comes first, and
// the guard holds the move back: its parts may move by themselves afterwards. All other splits follow the moves, so that
// many of them do not use up the budget of a cycle while a broker is overloaded.
func (c *Controller) addSplits(ctx context.Context, cy *Cycle, trace *plan.Trace) {
	if !c.o.Splits.wanted() {
		return
	}
	if why := c.o.Splits.held(ctx); why.Code != "" {
		if why.Code == SplitUnclear.ID {
			c.o.Logger.Warn("no bundle is split", "why", why.String())
		}
		trace.Skip("", "", "", why)
		return
	}
	// The rules ask whether the cluster splits: here it is Ballast that does.
	snap, set := *cy.Snapshot, *cy.Snapshot.Settings
	set.LoadBalancerAutoBundleSplitEnabled, snap.Settings = true, &set
	var p plan.Plan
	p, c.state = c.o.Manager.Split(&snap, c.state, trace)
	cy.Plan.Advice = append(slices.Clip(cy.Plan.Advice), p.Advice...)
	if len(p.Decisions) == 0 {
		return
	}
	moves := cy.Plan.Decisions
	cy.Plan.Outcome = AndSplits.Because(plan.N("splits", len(p.Decisions)), plan.S("why", p.Outcome.String()),
		plan.N("moves", len(moves)), plan.S("outcome", cmp.Or(cy.Plan.Outcome.String(), "no more is said")))
	cy.Plan.Counts = append(slices.Clip(cy.Plan.Counts), p.Counts...)
	var merged []plan.Decision
	splits := slices.Clone(p.Decisions)
	for _, m := range moves {
		if i := slices.IndexFunc(splits, func(d plan.Decision) bool { return d.Bundle == m.Bundle }); i >= 0 {
			merged = append(merged, splits[i])
			splits = slices.Delete(splits, i, i+1)
		}
		merged = append(merged, m)
	}
	cy.Plan.Decisions = append(merged, splits...)
}
