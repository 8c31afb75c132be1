package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/split"
)

// Part is one of the bundles that a split made of another.
type Part struct {
	Bundle string `json:"bundle"`
	Owner  string `json:"owner,omitempty"` // broker id; "" = nobody had asked for it when it was looked at
}

// leaveTime is how long parts that are to be placed anew are watched: brokers unload them after they have answered.
const leaveTime = 3 * time.Second

// verifySplit waits until the namespace has the parts of a bundle instead of the bundle. What counts is the list of bundles
// and not what the request said; failed is its error. It asks within going, which outlives ctx.
func (x *Executor) verifySplit(ctx, going context.Context, d plan.Decision, failed error) Outcome {
	namespace, whole, err := split.ParseBundle(d.Bundle)
	if err != nil {
		return Outcome{Result: Failed, Why: err.Error()}
	}
	begun := x.clock.Now()
	v := vigil{ctx: ctx, clock: x.clock, deadline: begun.Add(x.limits.Verify)}
	for {
		why := ""
		list, err := x.cluster.Bundles(going, namespace)
		if err != nil {
			why = err.Error()
		} else {
			var parts []string
			if parts, why = partsOf(list, d.Bundle, whole); why == "" {
				return x.placed(ctx, going, d, parts)
			}
		}
		if v.over() {
			if failed != nil {
				return Outcome{Result: Failed, Why: fmt.Sprintf("%v; %s", failed, why)}
			}
			return Outcome{Result: TimedOut, Why: v.why(fmt.Sprintf("after %v %s", x.clock.Now().Sub(begun).Round(time.Millisecond), why))}
		}
		if err := v.sleep(x.limits.Poll); err != nil {
			return Outcome{Result: TimedOut, Why: err.Error()}
		}
	}
}

// partsOf are the bundles of a list that a bundle was split into, in range order, or why it was not: they must cover its range
// without a gap and without an overlap.
func partsOf(list []string, bundle string, whole split.Range) (parts []string, why string) {
	type part struct {
		name string
		split.Range
	}
	var found []part
	for _, name := range list {
		if name == bundle {
			return nil, "the namespace still has the bundle"
		}
		_, r, err := split.ParseBundle(name)
		if err != nil {
			return nil, err.Error()
		}
		if r.Lower < whole.Upper && r.Upper > whole.Lower {
			found = append(found, part{name, r})
		}
	}
	slices.SortFunc(found, func(a, b part) int { return cmp.Compare(a.Lower, b.Lower) })
	at := whole.Lower
	for _, p := range found {
		if p.Lower != at {
			return nil, fmt.Sprintf("one bundle begins at %s, where the one before ends at %s", split.FormatBound(p.Lower), split.FormatBound(at))
		}
		at, parts = p.Upper, append(parts, p.name)
	}
	if at != whole.Upper {
		return nil, fmt.Sprintf("the parts end at %s, the bundle ended at %s", split.FormatBound(at), split.FormatBound(whole.Upper))
	}
	return parts, ""
}

// placed is the outcome of a split that is done, with the owners of the parts. Parts that are to be placed anew are given a
// moment to leave; where they go is up to the cluster.
func (x *Executor) placed(ctx, going context.Context, d plan.Decision, parts []string) Outcome {
	v := vigil{ctx: ctx, clock: x.clock, deadline: x.clock.Now().Add(min(leaveTime, x.limits.Verify))}
	for {
		out, here := Outcome{Result: Done}, 0
		for _, part := range parts {
			o, err := x.owner(going, part, d.Source)
			if err != nil {
				out.Why = fmt.Sprintf("the owner of %s cannot be read: %v", part, err)
			}
			if o.State == event.Owned && o.Owner == d.Source {
				here++
			}
			out.Parts = append(out.Parts, Part{Bundle: part, Owner: o.Owner})
		}
		if !d.UnloadAfter || here == 0 || v.over() {
			if d.UnloadAfter && here > 0 && out.Why == "" {
				out.Why = fmt.Sprintf("%d of %d parts are at %s, which they were to leave: not unloaded, or placed there again", here, len(parts), d.Source)
			}
			return out
		}
		if err := v.sleep(x.limits.Poll); err != nil {
			out.Why = err.Error()
			return out
		}
	}
}
