package simulate

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/load"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// The answers of admin REST. Each may be refused with an *Error.

// ask lets f answer a question, unless the endpoint is down.
func (e *Embedded) ask(ctx context.Context, f func(*Cluster) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.c.faults.admin.Down || e.c.anyAlive() == nil {
		return unreachable()
	}
	if err := e.hearAll(); err != nil {
		return err
	}
	if err := f(e.c); err != nil {
		return err
	}
	return e.publish(ctx)
}

// Name is the name of the cluster.
func (e *Embedded) Name(ctx context.Context) (name string, err error) {
	err = e.ask(ctx, func(c *Cluster) error { name = c.cfg.Name; return nil })
	return name, err
}

// Brokers are the registered brokers, ordered by id. A broker that does not answer is there without its version.
func (e *Embedded) Brokers(ctx context.Context) (out []cluster.Broker, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		for _, b := range c.registered() {
			r := cluster.Broker{ID: b.ID}
			if b.alive() {
				r = c.registration(b)
			}
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// Leader is the leader's broker id, "" if there is none.
func (e *Embedded) Leader(ctx context.Context) (id string, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		if c.leader != nil {
			id = c.leader.ID
		}
		return nil
	})
	return id, err
}

// RuntimeConfig is the effective configuration: every key that package settings knows.
func (e *Embedded) RuntimeConfig(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := e.ask(ctx, func(c *Cluster) error {
		for _, k := range settings.Keys() {
			out[k.Name], _ = settings.Get(c.settings, k.Name)
		}
		out["clusterName"] = c.cfg.Name
		return nil
	})
	return out, err
}

// DynamicConfig is what has been set dynamically.
func (e *Embedded) DynamicConfig(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	err := e.ask(ctx, func(c *Cluster) error {
		for k, v := range c.dynamic {
			out[k] = v
		}
		return nil
	})
	return out, err
}

// SetDynamicConfig sets a key that brokers accept at run time; others, and values that do not fit, are refused.
func (e *Embedded) SetDynamicConfig(ctx context.Context, key, value string) error {
	return e.ask(ctx, func(c *Cluster) error {
		k, ok := settings.Lookup(key)
		if !ok || !k.Dynamic() {
			return refused(http.StatusPreconditionFailed, "set %s: it cannot be changed dynamically", key)
		}
		next := clone(c.settings)
		if err := settings.Set(next, key, value); err != nil {
			return refused(http.StatusPreconditionFailed, "set %s: %w", key, err)
		}
		c.settings, c.dynamic[key] = next, value
		return nil
	})
}

// DeleteDynamicConfig deletes a key: what broker.conf says counts again. (In Pulsar it does so after a restart only.)
func (e *Embedded) DeleteDynamicConfig(ctx context.Context, key string) error {
	return e.ask(ctx, func(c *Cluster) error {
		if k, ok := settings.Lookup(key); !ok || !k.Dynamic() {
			return refused(http.StatusPreconditionFailed, "delete %s: it cannot be changed dynamically", key)
		}
		if _, ok := c.dynamic[key]; !ok {
			return nil
		}
		delete(c.dynamic, key)
		original, _ := settings.Get(c.cfg.Settings, key)
		next := clone(c.settings)
		if err := settings.Set(next, key, original); err != nil {
			return fmt.Errorf("delete %s: %w", key, err)
		}
		c.settings = next
		return nil
	})
}

// Policies are the policies of the configuration.
func (e *Embedded) Policies(ctx context.Context) (out *policy.Set, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		if out = c.cfg.Policies; out == nil {
			out = policy.New(nil, nil, nil, nil)
		}
		return nil
	})
	return out, err
}

// Namespaces are all namespaces, ordered.
func (e *Embedded) Namespaces(ctx context.Context) (out []string, err error) {
	err = e.ask(ctx, func(c *Cluster) error { out = slices.Sorted(slices.Values(c.namespaces)); return nil })
	return out, err
}

// Bundles are the names of a namespace's bundles in range order.
func (e *Embedded) Bundles(ctx context.Context, namespace string) (out []string, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		if !slices.Contains(c.namespaces, namespace) {
			return refused(http.StatusNotFound, "namespace %s does not exist", namespace)
		}
		for _, b := range c.namespaceBundles(namespace) {
			out = append(out, b.name)
		}
		return nil
	})
	return out, err
}

// Owned are the bundles that a broker says it owns, ordered by name.
func (e *Embedded) Owned(ctx context.Context, id string) (out []string, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		b, err := c.answering(id)
		if err != nil {
			return err
		}
		for _, name := range c.recordNames() {
			d := c.records[name]
			if d.State == event.Owned && d.DstBroker == b.ID || d.State == event.Splitting && d.SourceBroker == b.ID {
				out = append(out, name)
			}
		}
		return nil
	})
	return out, err
}

// EstimateLoad is a broker's load from its metrics: the averages begin with the present.
func (e *Embedded) EstimateLoad(ctx context.Context, id string) (d event.BrokerLoadData, top []event.BundleLoad, err error) {
	err = e.ask(ctx, func(c *Cluster) error {
		b, err := c.answering(id)
		if err != nil {
			return err
		}
		d = event.NewBrokerLoadData()
		load.UpdateBrokerLoad(&d, b.systemUsage(), b.totals, load.WeightsOf(c.settings), c.settings.LoadBalancerHistoryResourcePercentage, b.clock())
		top, err = load.TopK(b.stats, c.topKRules())
		return err
	})
	return d, top, err
}

// Publishers is how many producers a topic has.
func (e *Embedded) Publishers(ctx context.Context, topic string) (n int, err error) {
	err = e.ask(ctx, func(*Cluster) error { n = e.log.Publishers(topic); return nil })
	return n, err
}

// CreateTopic has nothing to do: the log makes topics as they are used. A name that is none is refused.
func (e *Embedded) CreateTopic(ctx context.Context, topic string) error {
	return e.ask(ctx, func(*Cluster) error {
		if _, err := topics.ParseName(topic); err != nil {
			return refused(http.StatusPreconditionFailed, "create %s: %w", topic, err)
		}
		return nil
	})
}

// Unload unloads a bundle, to destination unless that is "", and waits until that is done.
func (e *Embedded) Unload(ctx context.Context, bundle, destination string) error {
	return e.request(ctx, func(c *Cluster, done func(error)) error {
		if destination != "" && c.faults.admin.Stray > 0 && c.luck.Float64() < c.faults.admin.Stray {
			destination = ""
		}
		return c.unload(bundle, destination, Asked, done)
	})
}

// Split splits a bundle and waits until that is done. The children stay where the parent was; with unload, Modular and Simple
// brokers unload them afterwards without waiting for that, and Extensible ones pass it over, all as in Pulsar.
func (e *Embedded) Split(ctx context.Context, bundle, algorithm string, boundaries []string, unload bool) error {
	return e.request(ctx, func(c *Cluster, done func(error)) error {
		before := c.bundles[bundle]
		return c.split(bundle, algorithm, boundaries, func(err error) {
			done(err)
			if err == nil && unload && c.cfg.Kind != Extensible {
				c.unloadParts(before)
			}
		})
	})
}

// request starts something after the time a request takes, and waits for its end.
func (e *Embedded) request(ctx context.Context, start func(*Cluster, func(error)) error) error {
	var over bool
	var result error
	done := func(err error) { over, result = true, err }
	err := e.ask(ctx, func(c *Cluster) error {
		fate := c.outcome()
		c.after(c.jittered(c.cfg.Timing.Admin), func() {
			switch fate {
			case ignored:
				done(nil)
			case failed:
				done(&Error{Status: http.StatusInternalServerError, Err: errBroken})
			case carriedOut:
				if err := start(c, done); err != nil {
					done(err)
				}
			}
		})
		return nil
	})
	if err != nil {
		return err
	}
	until := int64(math.MaxInt64)
	if e.options.SelfDriven {
		until = e.clock.Load() + e.options.Patience.Milliseconds()
	}
	answered, err := e.waitFor(ctx, until, func() bool { return over })
	switch {
	case err != nil:
		return err
	case !answered:
		return &Error{Err: fmt.Errorf("no answer within %v: %w", time.Duration(e.options.Patience), context.DeadlineExceeded)}
	}
	return result
}

// answering is a broker that answers requests.
func (c *Cluster) answering(id string) (*broker, error) {
	b := c.brokerByID[id]
	if b == nil || !b.registered {
		return nil, refused(http.StatusNotFound, "broker %s is not registered", id)
	}
	if !b.alive() {
		return nil, unreachable()
	}
	return b, nil
}
