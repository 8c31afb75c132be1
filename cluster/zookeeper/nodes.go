package zookeeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/event"
)

// The nodes. Pulsar: LoadManager.LOADBALANCE_BROKERS_ROOT, ModularLoadManagerImpl and LoadManagerShared's constants.
const (
	brokersNode  = "/loadbalance/brokers"
	leaderNode   = "/loadbalance/leader"
	bundlesNode  = "/loadbalance/bundle-data"
	averagesNode = "/loadbalance/broker-time-average"
)

// BundleHistory is what the cluster's leader knows of a bundle's past. Pulsar: BundleData.
type BundleHistory struct {
	Bundle string // tenant/namespace/0x........_0x........
	Data   event.BundleData
}

// BrokerHistory are the sums of a broker's bundles' averages. Pulsar: TimeAverageBrokerData.
type BrokerHistory struct {
	Broker string // host:webPort
	Data   event.TimeAverageBrokerData
}

// Brokers are the ids of the registered brokers, ordered. Without any there is an error: a cluster has brokers, so the node
// of another one is looked at.
func (c *Client) Brokers(ctx context.Context) ([]string, error) {
	const op = "brokers in ZooKeeper"
	ids, err := c.children(ctx, op, brokersNode)
	if errors.Is(err, admin.NotFound) || err == nil && len(ids) == 0 {
		return nil, c.badAnswer(op, brokersNode, errors.New("no broker is registered there; is this the metadata store of the cluster?"))
	}
	slices.Sort(ids)
	return ids, err
}

// LoadReport is the load report that a broker wrote last; it writes one when its load has changed enough, and every 15 minutes
// by default. One that is not registered: errors.Is(err, admin.NotFound). An Extensible one keeps no load there:
// errors.Is(err, admin.Unsupported).
func (c *Client) LoadReport(ctx context.Context, broker string) (admin.LoadReport, error) {
	op, path := "load report of "+broker+" in ZooKeeper", brokersNode+"/"+broker
	if broker == "" || strings.Contains(broker, "/") {
		return admin.LoadReport{}, &admin.Error{Op: op, Kind: admin.BadRequest, Reason: fmt.Sprintf("the broker id %q should be host:port", broker), RetrySafe: true}
	}
	document, err := c.get(ctx, op, path)
	if err != nil {
		return admin.LoadReport{}, err
	}
	kind, err := event.KindOfReport(document)
	if err != nil {
		return admin.LoadReport{}, c.badAnswer(op, path, err)
	}
	if kind == event.SimpleReport {
		d, err := event.Decode[event.LoadReport](document)
		if err != nil {
			return admin.LoadReport{}, c.badAnswer(op, path, err)
		}
		return admin.LoadReport{Simple: &d}, nil
	}
	d, err := event.Decode[event.LocalBrokerData](document)
	if err != nil {
		return admin.LoadReport{}, c.badAnswer(op, path, err)
	}
	if strings.HasSuffix(d.LoadManagerClassName, "ExtensibleLoadManagerImpl") {
		e := c.badAnswer(op, path, fmt.Errorf("the broker runs %s, which registers without its load", d.LoadManagerClassName))
		e.Kind = admin.Unsupported
		return admin.LoadReport{}, e
	}
	return admin.LoadReport{Local: &d}, nil
}

// Leader is the broker id of the leader of the Simple or Modular load manager, "" if there is none.
func (c *Client) Leader(ctx context.Context) (string, error) {
	const op = "leader in ZooKeeper"
	document, err := c.get(ctx, op, leaderNode)
	if errors.Is(err, admin.NotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var leader struct {
		BrokerID   string `json:"brokerId"`
		ServiceURL string `json:"serviceUrl"` // alone before Pulsar 3.0
	}
	if err := json.Unmarshal(document, &leader); err != nil {
		return "", c.badAnswer(op, leaderNode, err)
	}
	_, address, _ := strings.Cut(leader.ServiceURL, "://")
	id := cmp.Or(leader.BrokerID, address)
	if id == "" {
		return "", c.badAnswer(op, leaderNode, fmt.Errorf("%s names no leader", short(string(document))))
	}
	return id, nil
}

// BundleData is the history of every bundle that has one, ordered by name; the leader of a Modular cluster writes it every
// 15 minutes by default, so there may be none. Nodes that go while they are read, and nodes whose names make no bundle, are
// left out; one that is not what it should be is an error.
func (c *Client) BundleData(ctx context.Context) ([]BundleHistory, error) {
	const op = "bundle data in ZooKeeper"
	tenants, err := c.children(ctx, op, bundlesNode)
	if errors.Is(err, admin.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	namespaces, err := c.below(ctx, op, tenants)
	if err != nil {
		return nil, err
	}
	bundles, err := c.below(ctx, op, namespaces)
	if err != nil {
		return nil, err
	}
	bundles = slices.DeleteFunc(bundles, func(name string) bool {
		_, err := event.ParseBundle(name)
		return err != nil
	})
	return readAll(ctx, c, op, bundlesNode, bundles, func(name string, d event.BundleData) BundleHistory { return BundleHistory{name, d} })
}

// BrokerAverages are the averages of every broker that has some, ordered by id. As BundleData they may be missing.
func (c *Client) BrokerAverages(ctx context.Context) ([]BrokerHistory, error) {
	const op = "brokers' averages in ZooKeeper"
	ids, err := c.children(ctx, op, averagesNode)
	if errors.Is(err, admin.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return readAll(ctx, c, op, averagesNode, ids, func(id string, d event.TimeAverageBrokerData) BrokerHistory { return BrokerHistory{id, d} })
}

// below are the nodes below nodes of bundlesNode, as paths from there.
func (c *Client) below(ctx context.Context, op string, parents []string) ([]string, error) {
	lists, err := each(ctx, c, parents, func(ctx context.Context, parent string) ([]string, error) {
		names, err := c.children(ctx, op, bundlesNode+"/"+parent)
		for i := range names {
			names[i] = parent + "/" + names[i]
		}
		return names, err
	})
	return slices.Concat(lists...), err
}

// readAll reads and decodes nodes of one parent.
func readAll[T any, P interface {
	*T
	json.Unmarshaler
}, R any](ctx context.Context, c *Client, op, parent string, names []string, result func(string, T) R) ([]R, error) {
	slices.Sort(names)
	return each(ctx, c, names, func(ctx context.Context, name string) (R, error) {
		var none R
		document, err := c.get(ctx, op, parent+"/"+name)
		if err != nil {
			return none, err
		}
		d, err := event.Decode[T, P](document)
		if err != nil {
			return none, c.badAnswer(op, parent+"/"+name, err)
		}
		return result(name, d), nil
	})
}

// each does something to every name, a few at once. What was not found is left out; the first other error ends it.
func each[T any](ctx context.Context, c *Client, names []string, f func(context.Context, string) (T, error)) ([]T, error) {
	results, found := make([]T, len(names)), make([]bool, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(c.options.Concurrent)
	for i, name := range names {
		group.Go(func() (err error) {
			results[i], err = f(ctx, name)
			found[i] = err == nil
			if errors.Is(err, admin.NotFound) {
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []T
	for i := range results {
		if found[i] {
			out = append(out, results[i])
		}
	}
	return out, nil
}
