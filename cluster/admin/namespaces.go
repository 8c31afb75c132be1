package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/ballast-lb/ballast/event"
)

// Tenants are the tenants of the instance, ordered.
func (c *Client) Tenants(ctx context.Context) (tenants []string, err error) {
	err = c.read(ctx, "list the tenants", func(ctx context.Context, at *endpoint) (err error) {
		tenants, err = at.pulsar.Tenants().ListWithContext(ctx)
		return answered(err, tenants != nil)
	})
	slices.Sort(tenants)
	return tenants, err
}

// NamespacesOf are the namespaces of a tenant (tenant/ns), ordered.
func (c *Client) NamespacesOf(ctx context.Context, tenant string) (namespaces []string, err error) {
	err = c.read(ctx, "list the namespaces of "+tenant, func(ctx context.Context, at *endpoint) (err error) {
		namespaces, err = at.pulsar.Namespaces().GetNamespacesWithContext(ctx, tenant)
		return answered(err, namespaces != nil)
	})
	slices.Sort(namespaces)
	return namespaces, err
}

// Namespaces are all namespaces of the instance, ordered. A tenant that is deleted meanwhile has none.
func (c *Client) Namespaces(ctx context.Context) ([]string, error) {
	tenants, err := c.Tenants(ctx)
	if err != nil {
		return nil, err
	}
	lists, failed := make([][]string, len(tenants)), make([]error, len(tenants))
	c.each(len(tenants), func(i int) {
		if failed[i] = c.bulk.Wait(ctx); failed[i] == nil {
			lists[i], failed[i] = c.NamespacesOf(ctx, tenants[i])
		}
	})
	for _, err := range failed {
		if err != nil && !errors.Is(err, NotFound) {
			return nil, failure(ctx, ctx, "list the namespaces", true, err)
		}
	}
	out := slices.Concat(lists...)
	slices.Sort(out)
	return slices.Compact(out), nil
}

// namespacePath is the path of a namespace, tenant/ns or tenant/cluster/ns.
func namespacePath(namespace string) string {
	return "/admin/v2/namespaces" + path(strings.Split(namespace, "/")...)
}

// Bundles are the names of all bundles of a namespace (tenant/ns/0x........_0x........), in range order.
func (c *Client) Bundles(ctx context.Context, namespace string) (bundles []string, err error) {
	err = c.read(ctx, "list the bundles of "+namespace, c.get(namespacePath(namespace)+"/bundles", func(r io.Reader) error {
		var answer struct{ Boundaries []string }
		if err := intoJSON(&answer)(r); err != nil {
			return err
		}
		bundles, err = bundleNames(namespace, answer.Boundaries)
		return err
	}))
	return bundles, err
}

// bundleNames makes names of boundaries, which must rise from 0x00000000 to 0xffffffff.
func bundleNames(namespace string, boundaries []string) ([]string, error) {
	if len(boundaries) < 2 {
		return nil, answerError("%d boundaries, want at least 2", len(boundaries))
	}
	if first, last := boundaries[0], boundaries[len(boundaries)-1]; first != "0x00000000" || last != "0xffffffff" {
		return nil, answerError("boundaries from %q to %q, want 0x00000000 to 0xffffffff", oneLine(first), oneLine(last))
	}
	var out []string
	for i, upper := range boundaries[1:] {
		r, err := event.ParseRange(boundaries[i] + "_" + upper)
		if err != nil {
			return nil, answerError("boundaries: %v", err)
		}
		out = append(out, event.BundleName{Namespace: namespace, Range: r}.String())
	}
	return out, nil
}

// Owned are the bundles that a broker says it owns, ordered; its heartbeat and SLA namespaces' bundles are among them.
func (c *Client) Owned(ctx context.Context, broker string) (bundles []string, err error) {
	name, err := c.Name(ctx)
	if err != nil {
		return nil, err
	}
	err = c.read(ctx, "list the bundles that "+broker+" owns", func(ctx context.Context, at *endpoint) error {
		owned, err := at.pulsar.Brokers().GetOwnedNamespacesWithContext(ctx, name, broker)
		bundles = slices.Sorted(maps.Keys(owned))
		return answered(err, owned != nil)
	})
	if err != nil {
		return nil, err
	}
	return bundles, nil
}

// OwnerOf is the broker that says it owns a bundle, "" if none does. It asks every broker, and fails if one does not
// answer and no other has the bundle.
func (c *Client) OwnerOf(ctx context.Context, bundle string) (string, error) {
	ids, err := c.BrokerIDs(ctx)
	if err != nil {
		return "", err
	}
	failed := make([]error, len(ids))
	var owner atomic.Pointer[string]
	c.each(len(ids), func(i int) {
		if owner.Load() != nil {
			return
		}
		if failed[i] = c.bulk.Wait(ctx); failed[i] != nil {
			return
		}
		bundles, err := c.Owned(ctx, ids[i])
		if failed[i] = err; slices.Contains(bundles, bundle) {
			owner.Store(&ids[i])
		}
	})
	if o := owner.Load(); o != nil {
		return *o, nil
	}
	for _, err := range failed {
		if err != nil && !errors.Is(err, NotFound) { // not found: it left meanwhile
			return "", failure(ctx, ctx, "find the owner of "+bundle, true, err)
		}
	}
	return "", nil
}

// Unload asks for a bundle to be unloaded, to the named broker when destination is not "", and waits until the cluster
// says that it was. It is never repeated once a broker may have heard it: whoever gets an error looks for the owner.
// Simple load managers ignore the destination, Modular ones may, too. Isolation policies are not asked.
func (c *Client) Unload(ctx context.Context, bundle, destination string) error {
	query := url.Values{}
	if destination != "" {
		query.Set("destinationBroker", destination)
	}
	return c.change(ctx, "unload "+bundle, bundle, "/unload", query, nil)
}

// Split splits a bundle by an algorithm of the brokers, "" for their default; boundaries ("0x........") only for
// specified_positions_divide. The children stay where the parent was; unload asks for them to be unloaded afterwards.
func (c *Client) Split(ctx context.Context, bundle, algorithm string, boundaries []string, unload bool) error {
	query := url.Values{"unload": {strconv.FormatBool(unload)}}
	if algorithm != "" {
		query.Set("splitAlgorithmName", algorithm)
	}
	op := "split " + bundle
	var positions []int64
	for _, b := range boundaries {
		n, err := strconv.ParseUint(b, 0, 32)
		if err != nil || !strings.HasPrefix(b, "0x") {
			return badRequest(op, fmt.Errorf("boundary %q: want 0x and eight digits", b))
		}
		positions = append(positions, int64(n))
	}
	var body any
	if positions != nil {
		body = positions
	}
	return c.change(ctx, op, bundle, "/split", query, body)
}

func (c *Client) change(ctx context.Context, op, bundle, what string, query url.Values, body any) error {
	b, err := event.ParseBundle(bundle)
	if err != nil {
		return badRequest(op, err)
	}
	p := namespacePath(b.Namespace) + path(b.Range.String()) + what
	return c.write(ctx, op, func(ctx context.Context, at *endpoint) error {
		return c.do(ctx, at, request{method: http.MethodPut, path: p, query: query, body: body}, nil)
	})
}
