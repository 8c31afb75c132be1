package simulate

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/event"
)

// Cause is why a bundle changed its broker.
type Cause string

// The causes.
const (
	Shed       Cause = "shed"       // the cluster's own balancer
	Asked      Cause = "asked"      // an admin request, or a record that somebody else wrote
	Placed     Cause = "placed"     // it had no owner
	Overridden Cause = "overridden" // its broker was gone or stuck
)

// Move is one change of a bundle's broker. From equals To when an unloaded bundle came back to where it was.
type Move struct {
	At      int64 // Unix ms when the new broker served it
	Bundle  string
	From    string
	To      string
	Cause   Cause
	Topics  int
	Traffic Traffic // at the time
}

// cause notes why the next change of a bundle's broker will happen. The first cause counts until it has happened.
func (c *Cluster) cause(bundle string, why Cause) {
	if x := c.bundles[bundle]; x != nil {
		x.why = cmp.Or(x.why, why)
	}
}

// moved notes that a bundle is served by a broker.
func (c *Cluster) moved(x *bundle, b *broker) {
	from, why := x.last, x.why
	x.last, x.why = b, ""
	if from == nil || from == b && why == "" {
		return
	}
	c.moves = append(c.moves, Move{At: c.now, Bundle: x.name, From: from.ID, To: b.ID, Cause: cmp.Or(why, Asked),
		Topics: len(x.topics), Traffic: x.demand(c.Elapsed())})
}

// Moves are all changes of owners so far, oldest first.
func (c *Cluster) Moves() []Move { return c.moves }

// operation waits for what the ownership log says about a bundle.
type operation struct {
	until func(*event.ServiceUnitStateData) bool
	done  func(error)
}

// untilMoved is the end of an unload: free, or owned by the next broker.
func untilMoved(d *event.ServiceUnitStateData) bool {
	return d == nil || d.State == event.Free && !d.Force || d.State == event.Owned && d.SourceBroker != ""
}

// untilGone is the end of a split: the parent has no record any more.
func untilGone(d *event.ServiceUnitStateData) bool { return d == nil }

// wait calls done once: when the log says that it is over, or with errTimedOut.
func (c *Cluster) wait(bundle string, until func(*event.ServiceUnitStateData) bool, done func(error)) {
	op := &operation{until: until, done: done}
	c.waiting[bundle] = append(c.waiting[bundle], op)
	limit := time.Duration(c.settings.NamespaceBundleUnloadingTimeoutMs) * time.Millisecond
	c.after(limit, func() { op.end(fmt.Errorf("%s: %w (%v)", bundle, errTimedOut, limit)) })
}

func (o *operation) end(err error) {
	if done := o.done; done != nil {
		o.done = nil
		done(err)
	}
}

// settle tells those who wait for a bundle what its record is now.
func (c *Cluster) settle(bundle string, d *event.ServiceUnitStateData) {
	waiting := c.waiting[bundle]
	delete(c.waiting, bundle)
	for _, op := range waiting {
		switch {
		case op.done == nil:
		case op.until(d):
			op.end(nil)
		default:
			c.waiting[bundle] = append(c.waiting[bundle], op)
		}
	}
}

// unload starts an unload, to dst unless that is "". An error means that it did not start; else done is told how it ended.
func (c *Cluster) unload(bundle, dst string, why Cause, done func(error)) error {
	x, err := c.bundleOf(bundle)
	if err != nil {
		return refused(http.StatusPreconditionFailed, "unload %s: %w", bundle, err)
	}
	d := c.records[bundle]
	if d == nil {
		done(nil)
		return nil
	}
	if d.State != event.Owned {
		return refused(http.StatusInternalServerError, "unload %s: it is in the state %s, not owned", bundle, d.State)
	}
	if dst != "" && !c.isRegistered(dst) {
		return refused(http.StatusConflict, "unload %s: the destination %s is not a broker of this cluster", bundle, dst)
	}
	if dst != "" && strings.HasSuffix(d.DstBroker, dst) {
		return refused(http.StatusInternalServerError, "unload %s: %s owns it already", bundle, dst)
	}
	x.why = why
	c.wait(bundle, untilMoved, done)
	if c.stored() {
		if why == Asked && dst != "" && c.cfg.Kind == Modular {
			c.modular.hints[bundle] = dst
		}
		dst = ""
	}
	c.write(d.DstBroker, bundle, c.next(d, event.Releasing, dst, d.DstBroker))
	return nil
}
