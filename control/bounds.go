package control

import (
	"encoding/json"

	"github.com/ballast-lb/ballast/plan"
)

// Bounds of a record. Brokers refuse messages above 5 MiB, and who starts reads the whole log. What is carried out cannot be left
// out of a record, as the next leader goes on with it: so there is a limit to what one cycle carries out. A record of a plan has
// maxDecided of the plan, of what was refused, of what runs, and twice of a plan that waits for review.
const (
	maxLeftOut   = 1000      // entries of a record
	maxDecisions = 1000      // decisions, and refusals, of a record; decisions that one cycle carries out
	maxDecided   = 512 << 10 // bytes of each list of these
	maxListed    = 64 << 10  // bytes of the left-out entries of a record, and of what is slowed
	maxState     = 512 << 10 // bytes of a strategy's state, and of the guard's
	maxCommand   = 16 << 10  // bytes of an operator's command, which its answer repeats
)

// CycleFull holds a decision back that the record of a cycle has no room for.
var CycleFull = plan.Code{ID: "CYCLE_FULL", Template: "one cycle carries out {limit} decisions of {bytes} bytes at most, as its record holds them: the next one plans anew"}

// full says which decisions are too many for one cycle, in their order. What is under way already, or comes before the plan, counts.
func (c *Controller) full(cy *Cycle) func(plan.Decision) bool {
	n, size, full := len(cy.Cures), sized(cy.Cures), false
	for _, h := range c.held {
		size += sized(h)
	}
	return func(d plan.Decision) bool {
		if full {
			return true
		}
		more := sized(d)
		if full = n >= maxDecisions || n > 0 && size+more > maxDecided; !full {
			n, size = n+1, size+more
		}
		return full
	}
}

// sized is how many bytes a value takes in a record, with what separates it from the next.
func sized(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 0 // the record itself cannot be written either, and says why
	}
	return len(b) + 1
}

// bounded cuts the lists of a record to what is kept, and says how much is missing.
func (r Record) bounded() Record {
	if r.Plan != nil {
		p := *r.Plan
		p.Decisions, r.DecisionsMore = cut(p.Decisions, maxDecisions, maxDecided)
		r.Plan = &p
	}
	if r.Verdict != nil {
		v := *r.Verdict
		v.Refused, r.RefusedMore = cut(v.Refused, maxDecisions, maxDecided)
		v.Slowed, r.SlowedMore = cut(v.Slowed, maxLeftOut, maxListed)
		r.Verdict = &v
	}
	all := len(r.LeftOut)
	r.LeftOut, _ = cut(r.LeftOut, maxLeftOut, 0)
	size := 0
	for i, l := range r.LeftOut {
		if size += leftOutSize(l); size > maxListed {
			r.LeftOut = r.LeftOut[:i]
			break
		}
	}
	r.LeftOutMore = all - len(r.LeftOut)
	return r
}

// cut is the first entries of a list, at most so many and of so many bytes (0 = no limit), and how many more there are.
func cut[T any](list []T, most, bytes int) ([]T, int) {
	kept := min(len(list), most)
	for i, size := 0, 0; bytes > 0 && i < kept; i++ {
		if size += sized(list[i]); size > bytes {
			kept = i
		}
	}
	return list[:kept], len(list) - kept
}

// leftOutSize is about how many bytes an entry takes.
func leftOutSize(l plan.LeftOut) int {
	n := 64 + len(l.Bundle) + len(l.Broker) + len(l.Other) + len(l.Why.Code) + len(l.Why.Text)
	for _, x := range l.Why.Numbers {
		n += 40 + len(x.Name) + len(x.Text)
	}
	return n
}
