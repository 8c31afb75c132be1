package story

import (
	"slices"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
)

// Filter chooses records. A zero field chooses all.
type Filter struct {
	Bundle string // tenant/ns/0x........_0x........
	Broker string // host:port
	Cycle  int64
	Kinds  []control.Kind
	Since  int64 // Unix ms
}

// Match says whether a record is chosen.
func (f Filter) Match(r control.Record) bool {
	switch {
	case r.At < f.Since, f.Cycle > 0 && r.Cycle != f.Cycle, len(f.Kinds) > 0 && !slices.Contains(f.Kinds, r.Kind):
		return false
	case f.Bundle != "" && !about(r, func(d plan.Decision) bool { return d.Bundle == f.Bundle }, func(l plan.LeftOut) bool { return l.Bundle == f.Bundle }):
		return false
	case f.Broker != "":
		return slices.Contains(r.Missing, f.Broker) ||
			about(r, func(d plan.Decision) bool { return d.Source == f.Broker || d.Destination == f.Broker },
				func(l plan.LeftOut) bool { return l.Broker == f.Broker || l.Other == f.Broker })
	}
	return true
}

// about says whether any decision or left-out entry of a record is wanted.
func about(r control.Record, decision func(plan.Decision) bool, leftOut func(plan.LeftOut) bool) bool {
	switch {
	case r.Decision != nil && decision(*r.Decision), r.Outcome != nil && decision(r.Outcome.Decision):
		return true
	case r.Plan != nil && slices.ContainsFunc(r.Plan.Decisions, decision), slices.ContainsFunc(r.LeftOut, leftOut):
		return true
	}
	return r.Review != nil && slices.ContainsFunc(r.Review.Decisions, decision)
}
