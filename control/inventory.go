package control

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/event"
)

// ReportCluster is what is asked of a cluster whose ownership is not on a topic, besides what every cluster is asked.
type ReportCluster interface {
	Cluster
	// Namespaces are all namespaces (tenant/ns), ordered.
	Namespaces(ctx context.Context) ([]string, error)
}

// inventoryAge is how old the list of all bundles may be: reading it takes a request for every namespace.
const inventoryAge = 2 * time.Minute

// inventory is every bundle that there is, whether anybody serves it or not.
type inventory struct {
	read     time.Time
	bundles  map[string][]string // by namespace, in range order
	complete bool                // every namespace is known
	unread   map[string]bool     // namespaces whose bundles could not be read lately
	listed   map[string]struct{} // every bundle of bundles
	strange  map[string]struct{} // named by somebody, but not listed, and already looked for
}

// index makes the look-up table of what is listed.
func (v *inventory) index() {
	v.listed, v.strange = map[string]struct{}{}, map[string]struct{}{}
	for _, list := range v.bundles {
		for _, bundle := range list {
			v.listed[bundle] = struct{}{}
		}
	}
}

// replaced says whether a reported bundle is known not to exist any more though its namespace does: it was split, and the report
// is older than that.
func (v *inventory) replaced(bundle string) bool {
	ns := event.NamespaceOf(bundle)
	if _, exists := v.bundles[ns]; !exists || v.unread[ns] {
		return false
	}
	_, listed := v.listed[bundle]
	return !listed
}

// catchUp reads the bundles of namespaces anew of which bundles are named that are not listed, once for every such bundle.
func (v *inventory) catchUp(ctx context.Context, c ReportCluster, named func(yield func(bundle string) bool), logger *slog.Logger) {
	again := map[string]bool{}
	for bundle := range named {
		if _, known := v.strange[bundle]; !known && v.replaced(bundle) {
			v.strange[bundle] = struct{}{}
			again[event.NamespaceOf(bundle)] = true
		}
	}
	for ns := range again {
		list, err := c.Bundles(ctx, ns)
		switch {
		case err == nil:
			for _, bundle := range v.bundles[ns] {
				delete(v.listed, bundle)
			}
			for _, bundle := range list {
				v.listed[bundle] = struct{}{}
			}
			v.bundles[ns] = list
		case !isNotFound(err):
			v.unread[ns] = true
			logger.Warn("the bundles of a namespace cannot be listed: they are as they were", "namespace", ns, "error", err)
		}
	}
}

// refresh reads the list anew when it is too old, and says whether it did. What cannot be read stays as it was: silence is not
// emptiness.
func (v *inventory) refresh(ctx context.Context, c ReportCluster, now time.Time, atOnce int, logger *slog.Logger) bool {
	if v.bundles != nil && now.Sub(v.read) < inventoryAge {
		return false
	}
	v.read = now
	namespaces, err := c.Namespaces(ctx)
	if err != nil {
		v.complete = false
		logger.Warn("the namespaces cannot be listed: bundles that nobody serves are as they were", "error", err)
		return false
	}
	lists, failed := make([][]string, len(namespaces)), make([]error, len(namespaces))
	var g errgroup.Group
	g.SetLimit(atOnce)
	for i, ns := range namespaces {
		g.Go(func() error {
			lists[i], failed[i] = c.Bundles(ctx, ns)
			return nil
		})
	}
	_ = g.Wait() // no call returns an error
	defer v.index()
	before := v.bundles
	v.bundles, v.unread, v.complete = make(map[string][]string, len(namespaces)), map[string]bool{}, true
	for i, ns := range namespaces {
		switch {
		case failed[i] == nil:
			v.bundles[ns] = lists[i]
		case isNotFound(failed[i]): // deleted meanwhile
		default:
			v.unread[ns], v.bundles[ns] = true, before[ns]
			logger.Warn("the bundles of a namespace cannot be listed: they are as they were", "namespace", ns, "error", failed[i])
		}
	}
	return true
}

// isNotFound says whether the cluster answered that there is no such thing.
func isNotFound(err error) bool {
	var r interface{ NotFound() bool }
	return errors.As(err, &r) && r.NotFound()
}

// gone says whether a bundle is known not to exist any more.
func (v *inventory) gone(bundle string) bool {
	ns := event.NamespaceOf(bundle)
	if !v.complete || v.unread[ns] {
		return false
	}
	list, exists := v.bundles[ns]
	return !exists || !slices.Contains(list, bundle)
}
