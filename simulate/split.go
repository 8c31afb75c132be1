package simulate

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"github.com/ballast-lb/ballast/event"
)

// splitOn carries a split out on the broker that owns the parent: the children are there first, then the parent goes.
func (c *Cluster) splitOn(b *broker, parent string, d *event.ServiceUnitStateData) {
	c.at(b.ID, parent, d, c.jittered(c.cfg.Timing.Split), func(b *broker) {
		x := c.bundles[parent]
		if x == nil || len(d.SplitServiceUnitToDestBroker) != 2 {
			return
		}
		first, err := event.ParseRange(d.SplitServiceUnitToDestBroker[0].Range)
		if err != nil {
			return
		}
		low, high := x.divide(first.Upper)
		c.serve(x, nil)
		delete(c.bundles, parent)
		for _, child := range []*bundle{low, high} {
			c.addBundle(child)
			child.last = b
			c.serve(child, b)
			if c.records[child.name] == nil {
				c.write(b.ID, child.name, c.next(nil, event.Owned, b.ID, ""))
			}
		}
		c.write(b.ID, parent, c.next(d, event.Deleted, "", b.ID))
	})
}

// boundary is where an algorithm cuts a bundle. ok is false when it finds no place.
func (c *Cluster) boundary(x *bundle, algorithm string, given []string) (at uint32, ok bool, err error) {
	switch algorithm {
	case "range_equally_divide":
		return x.keys.Lower + (x.keys.Upper-x.keys.Lower)/2, x.keys.CanSplit(), nil
	case "topic_count_equally_divide":
		h := hashes(x.topics)
		if len(h) < 2 {
			return 0, false, nil
		}
		s, e := h[max(len(h)/2-1, 0)], h[len(h)/2]
		at = s + (e-s)/2
		return at, at > x.keys.Lower && at < x.keys.Upper, nil
	case "specified_positions_divide":
		for _, text := range given {
			p, err := parseBoundary(text)
			if err != nil {
				return 0, false, err
			}
			if p > x.keys.Lower && p < x.keys.Upper {
				return p, true, nil
			}
		}
		return 0, false, nil
	case "flow_or_qps_equally_divide":
		at, ok = x.halfOfTraffic()
		return at, ok, nil
	}
	return 0, false, fmt.Errorf("split algorithm is %q: it must be one of %q", algorithm, c.settings.SupportedNamespaceBundleSplitAlgorithms)
}

// halfOfTraffic is the place that leaves about half of the traffic on each side.
func (b *bundle) halfOfTraffic() (uint32, bool) {
	ordered := slices.Clone(b.topics)
	slices.SortFunc(ordered, func(a, b Topic) int { return cmp.Compare(a.Hash, b.Hash) })
	all, sum := 0.0, 0.0
	for _, t := range ordered {
		all += t.Share
	}
	for i := 1; i < len(ordered); i++ {
		sum += ordered[i-1].Share
		if prev := ordered[i-1].Hash; 2*(sum+ordered[i].Share) > all && ordered[i].Hash > prev {
			return prev + (ordered[i].Hash-prev)/2 + 1, true
		}
	}
	return 0, false
}

func hashes(topics []Topic) []uint32 {
	out := make([]uint32, len(topics))
	for i, t := range topics {
		out[i] = t.Hash
	}
	slices.Sort(out)
	return out
}

// split starts a split; done is told how it ended.
func (c *Cluster) split(name, algorithm string, given []string, done func(error)) error {
	x, err := c.bundleOf(name)
	if err != nil {
		return refused(http.StatusPreconditionFailed, "split %s: %w", name, err)
	}
	d := c.records[name]
	if d == nil || d.State != event.Owned || x.server == nil {
		return refused(http.StatusPreconditionFailed, "split %s: it is not owned by any broker now", name)
	}
	at, ok, err := c.boundary(x, cmp.Or(algorithm, c.settings.DefaultNamespaceBundleSplitAlgorithm), given)
	if err != nil {
		return refused(http.StatusPreconditionFailed, "split %s: %w", name, err)
	}
	if !ok {
		return refused(http.StatusPreconditionFailed, "split %s: there is no place to cut it", name)
	}
	next := c.next(d, event.Splitting, "", d.DstBroker)
	for _, r := range []event.Range{{Lower: x.keys.Lower, Upper: at}, {Lower: at, Upper: x.keys.Upper}} {
		next.SplitServiceUnitToDestBroker = append(next.SplitServiceUnitToDestBroker, event.SplitDestination{Range: r.String()})
	}
	c.wait(name, untilGone, done)
	c.write(d.DstBroker, name, next)
	return nil
}

// unloadParts unloads what a bundle was split into, in the background.
func (c *Cluster) unloadParts(parent *bundle) {
	for _, x := range c.namespaceBundles(parent.namespace) {
		if x.keys.Lower >= parent.keys.Lower && x.keys.Upper <= parent.keys.Upper {
			_ = c.unload(x.name, "", Asked, func(error) {}) // nobody waits for it
		}
	}
}
