package simulate

import (
	"context"
	"net/http"
	"slices"

	"github.com/ballast-lb/ballast/event"
)

// BrokerIDs are the ids of the registered brokers, ordered.
func (e *Embedded) BrokerIDs(ctx context.Context) (out []string, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		for _, b := range c.registered() {
			out = append(out, b.ID)
		}
		return nil
	})
	return out, err
}

// LoadManagerOf is the class name of a broker's load manager.
func (e *Embedded) LoadManagerOf(ctx context.Context, id string) (class string, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		_, err := c.answering(id)
		class = c.cfg.Kind.class()
		return err
	})
	return class, err
}

// LoadReport is the load report of a Modular or a Simple broker; Extensible ones fail, as real ones do.
func (e *Embedded) LoadReport(ctx context.Context, id string) (r event.BrokerReport, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		switch c.cfg.Kind {
		case Extensible:
			return &Error{Status: http.StatusInternalServerError, Err: errUnsupported, no: true}
		case Simple:
			d, err := c.simpleReport(id)
			r.Simple = d
			return err
		}
		d, err := c.LoadReport(id)
		if err != nil {
			return err
		}
		d.Bundles, d.LastStats = slices.Clone(d.Bundles), slices.Clone(d.LastStats)
		r.Local = &d
		return nil
	})
	return r, err
}

// BundleStats are the statistics of all bundles that a broker serves, as its topics' statistics add up.
func (e *Embedded) BundleStats(ctx context.Context, id string) (out []event.NamedBundleStats, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		b, err := c.answering(id)
		if err == nil {
			out = slices.Clone(b.stats)
		}
		return err
	})
	return out, err
}
