package extensible

import (
	"slices"

	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// transferable says whether a bundle may go from the source of a pair to its destination or, without transfers, anywhere.
func (s *shedding) transferable(p *pair, bundle string) bool {
	if s.Detached {
		return true
	}
	ns := policy.NamespaceOf(bundle)
	if kind := s.policyOf(ns); kind != "" && !s.conf.LoadBalancerSheddingBundlesWithPoliciesEnabled {
		if s.tr != nil {
			s.tr.Skip(bundle, p.source.Broker, p.destination.Broker, HasPolicy.Because(plan.S("namespace", ns), plan.S("policy", kind)))
		}
		return false
	}
	c := s.filters()
	if c.failed != nil {
		s.refuse(p, bundle, c.failedAt, FilterFailed.Because(plan.S("filter", c.failedAt), plan.S("error", c.failed.Error())), nil)
		return false
	}
	source, destination := s.snap.BrokerIndex(p.source.Broker), s.snap.BrokerIndex(p.destination.Broker)
	var out dropped // why the destination may not take it
	if s.tr != nil {
		out = s.base[destination]
		if destination < 0 {
			out = dropped{"registry", NotRegistered.Because()}
		}
		c.Left = func(i int, r plan.Reason) {
			if i == destination {
				out.why = r
			}
		}
		defer func() { c.Left = nil }()
	}
	left := append(s.scratch[:0], c.base...)
	s.scratch = left
	for _, f := range c.filters[c.shared:] {
		was := s.tr != nil && slices.Contains(left, destination)
		kept, err := f.Keep(c, bundle, left)
		if err != nil {
			s.refuse(p, bundle, f.Name(), FilterFailed.Because(plan.S("filter", f.Name()), plan.S("error", err.Error())), nil)
			return false
		}
		left = kept
		if was && !slices.Contains(left, destination) {
			out.filter = f.Name()
		}
	}
	others := 0
	ok := false
	for _, i := range left {
		if i != source {
			others++
		}
		ok = ok || i == destination
	}
	switch {
	case !ok:
		s.refuse(p, bundle, out.filter, out.why, &others)
	case s.conf.LoadBalancerTransferEnabled:
		ok = destination != source
	default:
		ok = others > 0
	}
	return ok
}

// policyOf names the policy that a namespace has, "" for none.
func (s *shedding) policyOf(ns string) string {
	policies := s.Policies
	if policies == nil {
		policies = s.snap.Policies
	}
	switch {
	case policies.HasIsolation(ns):
		return "an isolation policy"
	case policies.HasAntiAffinity(ns):
		return "an anti-affinity group"
	}
	return ""
}

// filters is the cycle's filters, with the answers that hold for all bundles.
func (s *shedding) filters() *Cycle {
	if s.cycle == nil {
		filters := s.Filters
		if filters == nil {
			filters = Filters(s.Options)
		}
		s.cycle = newCycle(s.snap, filters, s.Options, s.baseLeft())
	}
	return s.cycle
}

// dropped is why no bundle may go to a broker, and which filter says so.
type dropped struct {
	filter string
	why    plan.Reason
}

// baseLeft records the brokers that no bundle may go to.
func (s *shedding) baseLeft() func(string, int, plan.Reason) {
	if s.tr == nil {
		return nil
	}
	s.base = make(map[int]dropped)
	return func(filter string, i int, why plan.Reason) {
		s.tr.Skip("", s.snap.Brokers[i].ID, "", why)
		s.base[i] = dropped{filter, why}
	}
}

// refuse records that a bundle may not go to the destination. others is how many other brokers may take it, if known.
func (s *shedding) refuse(p *pair, bundle, filter string, why plan.Reason, others *int) {
	if s.tr == nil {
		return
	}
	name, text := plan.S("filter", filter), plan.S("why", why.String())
	r := NoOtherBroker.Because(plan.S("source", p.source.Broker), name, text)
	switch {
	case others == nil:
		r = why
	case *others > 0:
		r = NotTransferable.Because(plan.S("destination", p.destination.Broker), plan.N("others", *others), name, text)
	}
	s.tr.Skip(bundle, p.source.Broker, p.destination.Broker, r)
}
