package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/ballast-lb/ballast/cluster"
)

// identity is what the client must know of a cluster to ask it further.
type identity struct {
	name          string
	port, portTLS string // web service ports of the broker that was asked; "" = none
}

// Name is the name of the cluster: what the brokers are configured with.
func (c *Client) Name(ctx context.Context) (string, error) {
	id, err := c.identity(ctx)
	if err != nil {
		return "", err
	}
	return id.name, nil
}

func (c *Client) identity(ctx context.Context) (*identity, error) {
	c.mu.Lock()
	known := c.self
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	config, err := c.RuntimeConfig(ctx)
	if err != nil {
		return nil, err
	}
	id := &identity{name: config["clusterName"], port: portIn(config["webServicePort"]), portTLS: portIn(config["webServicePortTls"])}
	if id.name == "" {
		return nil, &Error{Op: "name of the cluster", Kind: BadAnswer, Reason: "the runtime configuration has no clusterName", RetrySafe: true}
	}
	c.mu.Lock()
	c.self = id
	c.mu.Unlock()
	return id, nil
}

var optionalPort = regexp.MustCompile(`^Optional\[(\d+)\]$`)

// portIn is the port in a runtime configuration value, "Optional[8080]" or "Optional.empty".
func portIn(value string) string {
	if m := optionalPort.FindStringSubmatch(value); m != nil {
		return m[1]
	}
	return ""
}

// brokerEndpoint is where a broker itself is asked: at its id, with the scheme of the addresses that the client was
// given. Over https an id with the plain port stands for the broker's TLS port.
func (c *Client) brokerEndpoint(ctx context.Context, broker string) (*endpoint, error) {
	c.mu.Lock()
	at := c.brokers[broker]
	c.mu.Unlock()
	if at != nil {
		return at, nil
	}
	base := &url.URL{Scheme: c.endpoints[0].base.Scheme, Host: broker}
	if u, err := url.Parse(base.String()); err != nil || u.Host != broker || u.Port() == "" {
		return nil, badRequest("ask a broker", fmt.Errorf("broker id %q, want host:port", broker))
	}
	if base.Scheme == "https" {
		id, err := c.identity(ctx)
		if err != nil {
			return nil, err
		}
		if host, ok := strings.CutSuffix(broker, ":"+id.port); ok && id.port != "" && id.portTLS != "" {
			base.Host = host + ":" + id.portTLS
		}
	}
	at, err := c.newEndpoint(base)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.brokers[broker] = at
	c.mu.Unlock()
	return at, nil
}

// Brokers are the registered brokers ordered by id. Version, load manager and topic flags are filled in where the
// broker answers; Answers tells why one did not. StartedAt is not told by the web service and stays 0.
func (c *Client) Brokers(ctx context.Context) ([]cluster.Broker, error) {
	brokers, _, err := c.Answers(ctx)
	return brokers, err
}

// Answers is Brokers with the reason for every broker that is registered and did not answer, by broker id.
func (c *Client) Answers(ctx context.Context) ([]cluster.Broker, map[string]error, error) {
	ids, err := c.BrokerIDs(ctx)
	if err != nil {
		return nil, nil, err
	}
	brokers, failed := make([]cluster.Broker, len(ids)), make([]error, len(ids))
	c.each(len(ids), func(i int) {
		brokers[i].ID = ids[i]
		failed[i] = c.fill(ctx, &brokers[i])
	})
	if ctx.Err() != nil {
		return nil, nil, failure(ctx, ctx, "ask the brokers", true, ctx.Err())
	}
	silent := map[string]error{}
	for i, err := range failed {
		if err != nil {
			silent[ids[i]] = err
		}
		c.logSilence(ctx, ids[i], err)
	}
	return brokers, silent, nil
}

// logSilence logs that a broker does not answer, or answers again, when that changes.
func (c *Client) logSilence(ctx context.Context, broker string, err error) {
	c.mu.Lock()
	was := c.silent[broker]
	if err != nil {
		c.silent[broker] = true
	} else {
		delete(c.silent, broker)
	}
	c.mu.Unlock()
	switch {
	case err != nil && !was:
		c.options.Logger.LogAttrs(ctx, slog.LevelWarn, "a registered broker does not answer", slog.String("broker", broker), slog.Any("error", err))
	case err == nil && was:
		c.options.Logger.LogAttrs(ctx, slog.LevelInfo, "a broker answers again", slog.String("broker", broker))
	}
}

// BrokerIDs are the ids of the registered brokers, ordered.
func (c *Client) BrokerIDs(ctx context.Context) ([]string, error) {
	var ids []string
	err := c.read(ctx, "list the brokers", func(ctx context.Context, at *endpoint) (err error) {
		ids, err = at.pulsar.Brokers().GetListActiveBrokersWithContext(ctx)
		return answered(err, ids != nil)
	})
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// answered tells an empty list from no answer: the library takes no body, or null, for nothing at all.
func answered(err error, something bool) error {
	if err == nil && !something {
		return answerError("empty")
	}
	return err
}

// each calls f for 0 to n-1, several at once, at the rate of bulk requests that was set. It ends when all calls have.
func (c *Client) each(n int, f func(int)) {
	var g errgroup.Group
	g.SetLimit(c.options.Concurrent)
	for i := range n {
		g.Go(func() error { f(i); return nil })
	}
	_ = g.Wait() // no call returns an error
}

// fill asks a broker for what it says about itself.
func (c *Client) fill(ctx context.Context, b *cluster.Broker) error {
	version, err := c.Version(ctx, b.ID)
	if err != nil {
		return err
	}
	b.Version = version
	config, err := c.RuntimeConfigOf(ctx, b.ID)
	if err != nil {
		return err
	}
	b.LoadManager = config["loadManagerClassName"]
	b.PersistentTopics = config["enablePersistentTopics"] == "true"
	b.NonPersistentTopics = config["enableNonPersistentTopics"] == "true"
	return nil
}

var version = regexp.MustCompile(`^\d+\.\d+`)

// Version is the Pulsar version that a broker reports.
func (c *Client) Version(ctx context.Context, broker string) (string, error) {
	var text string
	if err := c.bulk.Wait(ctx); err != nil {
		return "", failure(ctx, ctx, "version of "+broker, true, err)
	}
	err := c.readAt(ctx, "version of "+broker, broker, c.get("/admin/v2/brokers/version", func(r io.Reader) error {
		if err := intoText(&text)(r); err != nil {
			return err
		}
		if !version.MatchString(text) {
			return answerError("%q is no version", oneLine(text))
		}
		return nil
	}))
	return text, err
}

// Ready says whether a broker is ready for requests; nil = it is.
func (c *Client) Ready(ctx context.Context, broker string) error {
	return c.readAt(ctx, "ask whether "+broker+" is ready", broker, c.get("/admin/v2/brokers/ready", isOK))
}

// Healthy lets a broker check itself by a message to itself and back, which may take as long as a change; nil = it is
// healthy.
func (c *Client) Healthy(ctx context.Context, broker string) error {
	return c.askAt(ctx, "health of "+broker, broker, c.options.WriteTimeout, c.get("/admin/v2/brokers/health", isOK))
}

func isOK(r io.Reader) error {
	var text string
	if err := intoText(&text)(r); err != nil {
		return err
	}
	if text != "ok" {
		return answerError("%q, want ok", oneLine(text))
	}
	return nil
}

// Leader is the broker id of the load manager's leader, "" if there is none.
func (c *Client) Leader(ctx context.Context) (string, error) {
	var id string
	err := c.read(ctx, "find the leader", func(ctx context.Context, at *endpoint) error {
		info, err := at.pulsar.Brokers().GetLeaderBrokerWithContext(ctx)
		if err != nil {
			return err
		}
		id = info.BrokerID
		if id == "" { // before 3.2 only the address is told
			_, id, _ = strings.Cut(info.ServiceURL, "://")
		}
		return answered(nil, id != "")
	})
	if errors.Is(err, NotFound) {
		return "", nil
	}
	return id, err
}

// RuntimeConfig is the effective configuration of the broker that answers, every key that it reports. It holds what
// the broker's configuration holds, passwords included: do not log it.
func (c *Client) RuntimeConfig(ctx context.Context) (config map[string]string, err error) {
	err = c.read(ctx, "read the runtime configuration", runtimeConfig(&config))
	return config, err
}

// RuntimeConfigOf is the effective configuration of one broker.
func (c *Client) RuntimeConfigOf(ctx context.Context, broker string) (config map[string]string, err error) {
	if err := c.bulk.Wait(ctx); err != nil {
		return nil, failure(ctx, ctx, "runtime configuration of "+broker, true, err)
	}
	err = c.readAt(ctx, "runtime configuration of "+broker, broker, runtimeConfig(&config))
	return config, err
}

func runtimeConfig(to *map[string]string) attempt {
	return func(ctx context.Context, at *endpoint) (err error) {
		*to, err = at.pulsar.Brokers().GetRuntimeConfigurationsWithContext(ctx)
		return answered(err, len(*to) > 0)
	}
}

// DynamicConfig is what has been set dynamically: only keys that are present in the metadata store.
func (c *Client) DynamicConfig(ctx context.Context) (config map[string]string, err error) {
	err = c.read(ctx, "read the dynamic configuration", func(ctx context.Context, at *endpoint) (err error) {
		config, err = at.pulsar.Brokers().GetAllDynamicConfigurationsWithContext(ctx)
		return answered(err, config != nil)
	})
	return config, err
}

// DynamicConfigNames are the keys that can be set dynamically, ordered.
func (c *Client) DynamicConfigNames(ctx context.Context) (names []string, err error) {
	err = c.read(ctx, "list the dynamic configuration's keys", func(ctx context.Context, at *endpoint) (err error) {
		names, err = at.pulsar.Brokers().GetDynamicConfigurationNamesWithContext(ctx)
		return answered(err, names != nil)
	})
	slices.Sort(names)
	return names, err
}

// SetDynamicConfig sets a key for all brokers. They do not check the value. An empty value cannot be expressed in the
// web service's address, and is refused.
func (c *Client) SetDynamicConfig(ctx context.Context, key, value string) error {
	op := "set " + key
	if key == "" || value == "" {
		return badRequest(op, errors.New("the web service takes no empty key or value; delete the key instead"))
	}
	return c.write(ctx, op, func(ctx context.Context, at *endpoint) error {
		return c.do(ctx, at, request{method: http.MethodPost, path: "/admin/v2/brokers/configuration" + path(key, value)}, nil)
	})
}

// DeleteDynamicConfig deletes a key: what the brokers' own configuration says counts again. Deleting what is not set is
// no error.
func (c *Client) DeleteDynamicConfig(ctx context.Context, key string) error {
	op := "delete " + key
	if key == "" {
		return badRequest(op, errors.New("the key is empty"))
	}
	return c.write(ctx, op, func(ctx context.Context, at *endpoint) error {
		return at.pulsar.Brokers().DeleteDynamicConfigurationWithContext(ctx, key)
	})
}
