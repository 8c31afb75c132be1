// Package harness runs a real Pulsar cluster in containers for tests: one container with ZooKeeper and a bookie, and one per
// broker, each with an address and a network interface of its own, which the host reaches directly (on Linux). Brokers can
// be killed, stopped, paused, cut off, started again and added; see package integration for how a test looks.
//
// Helpers that take a testing.TB fail the test when they cannot do their work. A Cluster may be used by several goroutines.
package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	tc "github.com/testcontainers/testcontainers-go"
)

// Options say what cluster is wanted. The zero value is three brokers with the Extensible load manager.
type Options struct {
	Manager Manager
	Brokers int               // how many; 0 = 3
	Conf    map[string]string // keys of broker.conf, before the harness's own and the manager's
	Secure  *Secure           // authentication, authorization and TLS; nil = none of them
}

func (o Options) withDefaults() Options {
	if o.Brokers == 0 {
		o.Brokers = 3
	}
	return o
}

func (o Options) equal(p Options) bool {
	o, p = o.withDefaults(), p.withDefaults()
	return o.Manager == p.Manager && o.Brokers == p.Brokers && maps.Equal(o.Conf, p.Conf) && o.Secure == p.Secure
}

// The limits of waiting. They only bound what hangs; nothing is expected to take that long.
const (
	startLimit    = 4 * time.Minute // of a container, on a machine that is busy
	registryLimit = 2 * time.Minute // of the registry to follow what happened to a broker
)

// Addresses within the cluster's subnet; .1 is the host.
const (
	metaAddress   = 2
	brokerAddress = 11 // of the first broker
)

// Cluster is a running Pulsar cluster.
type Cluster struct {
	options Options
	image   string
	docker  *tc.DockerClient
	network *tc.DockerNetwork
	subnet  netip.Prefix
	meta    *tc.DockerContainer
	metaIP  string

	mu         sync.Mutex
	brokers    []*Broker
	added      int // brokers ever added: names and addresses are not used twice
	namespaces []string
	dynamic    map[string]string // dynamic configuration of the fresh cluster
}

// Start brings a cluster up. It has all its brokers registered and a leader when Start returns; Close ends it. The error is
// ErrNoJDK when the image cannot be made on this machine. Tests usually take one from a Pool instead.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options = options.withDefaults()
	docker, err := newDocker(ctx)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: options, docker: docker}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting a cluster of Pulsar %s: %w", Version(), err), c.Close(context.WithoutCancel(ctx)))
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context) (err error) {
	if err = sweep(ctx, c.docker); err != nil {
		return err
	}
	if c.image, err = image(ctx); err != nil {
		return err
	}
	if c.network, c.subnet, err = newNetwork(ctx); err != nil {
		return err
	}
	metaIP := address(c.subnet, metaAddress)
	c.metaIP = metaIP.String()
	first := address(c.subnet, brokerAddress).String()
	c.meta, err = tc.Run(ctx, c.image, request(c.network, "meta", metaIP, metaEnv(c.metaIP, first), metaScript)...)
	if err == nil { // a broker that finds no bookie exits, so it is not enough that the metadata is there
		err = awaitUp(ctx, c.meta, c.bookieRegistered)
	}
	if err != nil {
		return fmt.Errorf("ZooKeeper and bookie: %w\n%s", err, tail(c.containerLog(ctx, c.meta), 20))
	}
	brokers := make([]*Broker, c.options.Brokers)
	for i := range brokers {
		brokers[i] = c.newBroker(nil)
	}
	if err := c.startBrokers(ctx, brokers...); err != nil {
		return err
	}
	c.dynamic, err = c.DynamicConfig(ctx)
	return err
}

// awaitUp waits until what runs in a container says that it is ready. One that has exited is not waited for.
func awaitUp(ctx context.Context, container *tc.DockerContainer, ready func(context.Context) error) error {
	return poll(ctx, startLimit, func(ctx context.Context) error {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if state, serr := container.State(ctx); serr == nil && !state.Running {
			return permanent{fmt.Errorf("it exited with code %d", state.ExitCode)}
		}
		return err
	})
}

// bookieRegistered asks ZooKeeper whether one of its ephemeral nodes is a bookie's.
func (c *Cluster) bookieRegistered(ctx context.Context) error {
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", c.ZooKeeper())
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := io.WriteString(conn, "dump"); err != nil {
		return err
	}
	nodes, err := io.ReadAll(conn)
	if err == nil && !strings.Contains(string(nodes), "/ledgers/available/") {
		err = errors.New("no bookie is registered")
	}
	return err
}

// startBrokers starts new brokers at once and waits until they are registered.
func (c *Cluster) startBrokers(ctx context.Context, brokers ...*Broker) error {
	errs := make([]error, len(brokers))
	var wg sync.WaitGroup
	for i, b := range brokers {
		wg.Go(func() {
			if err := b.create(ctx); err != nil {
				errs[i] = fmt.Errorf("%s: %w", b.Name, err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return c.awaitRegistry(ctx)
}

func (c *Cluster) newBroker(conf map[string]string) *Broker {
	c.mu.Lock()
	defer c.mu.Unlock()
	ip := address(c.subnet, brokerAddress+c.added)
	c.added++
	layers := []map[string]string{c.options.Manager.conf(), c.options.Conf, conf}
	if c.options.Secure != nil {
		layers = append(layers, c.options.Secure.conf())
		tokens.Store(ip.String(), c.options.Secure.Token(Super))
	}
	b := &Broker{Name: fmt.Sprintf("broker-%d", c.added), IP: ip, ID: ip.String() + ":8080", cluster: c,
		conf: brokerConf(c.metaIP, ip.String(), layers...)}
	c.brokers = append(c.brokers, b)
	return b
}

// Close ends the cluster and removes its containers and network. Clients of it should be closed before.
func (c *Cluster) Close(ctx context.Context) error {
	var errs []error
	for _, b := range c.Brokers() {
		errs = append(errs, b.remove(ctx))
		tokens.Delete(b.IP.String())
	}
	if c.meta != nil {
		errs = append(errs, c.meta.Terminate(ctx, tc.StopTimeout(0)))
	}
	if c.network != nil {
		errs = append(errs, c.network.Remove(ctx))
	}
	errs = append(errs, c.docker.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ending the cluster: %w", err)
	}
	return nil
}

// Manager is the load manager that the cluster was started with.
func (c *Cluster) Manager() Manager { return c.options.Manager }

// Name is the name of the cluster in Pulsar.
func (c *Cluster) Name() string { return clusterName }

// Brokers are the brokers of the cluster, dead or alive, in the order in which they were added.
func (c *Cluster) Brokers() []*Broker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.brokers)
}

// Live are the brokers that are up and reachable as far as the harness knows.
func (c *Cluster) Live() []*Broker {
	return slices.DeleteFunc(c.Brokers(), func(b *Broker) bool { return b.State() != Running })
}

// Broker is the broker of an id (host:port); it is nil if there is none.
func (c *Cluster) Broker(id string) *Broker {
	for _, b := range c.Brokers() {
		if b.ID == id {
			return b
		}
	}
	return nil
}

// ServiceURL is the pulsar:// URL with the addresses of all brokers.
func (c *Cluster) ServiceURL() string {
	var hosts []string
	for _, b := range c.Brokers() {
		hosts = append(hosts, b.IP.String()+":6650")
	}
	return "pulsar://" + strings.Join(hosts, ",")
}

// AdminURL is the http:// URL of the first broker that is up.
func (c *Cluster) AdminURL() string {
	if live := c.Live(); len(live) > 0 {
		return live[0].AdminURL()
	}
	return c.Brokers()[0].AdminURL()
}

// AddBroker starts one more broker and waits until it is registered. conf is added to the configuration of the others.
func (c *Cluster) AddBroker(t testing.TB, conf map[string]string) *Broker {
	t.Helper()
	b := c.newBroker(conf)
	b.extra = true
	if err := c.startBrokers(t.Context(), b); err != nil {
		t.Fatalf("adding a broker: %v", err)
	}
	return b
}

// Registry are the ids of the brokers that the cluster holds for alive, sorted.
func (c *Cluster) Registry(ctx context.Context) ([]string, error) {
	var ids []string
	if err := c.Get(ctx, "/admin/v2/brokers/"+clusterName, &ids); err != nil {
		return nil, fmt.Errorf("reading the registry: %w", err)
	}
	slices.Sort(ids)
	return ids, nil
}

// Leader is the id of the load manager's leader.
func (c *Cluster) Leader(ctx context.Context) (string, error) {
	var leader struct {
		BrokerID   string `json:"brokerId"`
		ServiceURL string `json:"serviceUrl"`
	}
	if err := c.Get(ctx, "/admin/v2/brokers/leaderBroker", &leader); err != nil {
		return "", fmt.Errorf("asking for the leader: %w", err)
	}
	if leader.BrokerID == "" { // before 3.0
		return strings.TrimPrefix(leader.ServiceURL, "http://"), nil
	}
	return leader.BrokerID, nil
}

// awaitRegistry waits until exactly the brokers that are up are registered, every one of them says so, and there is a
// leader among them.
func (c *Cluster) awaitRegistry(ctx context.Context) error {
	return poll(ctx, registryLimit, func(ctx context.Context) error {
		live := c.Live()
		var want []string
		for _, b := range live {
			want = append(want, b.ID)
		}
		slices.Sort(want)
		for _, b := range live {
			var ids []string
			if err := call(ctx, "GET", b.AdminURL()+"/admin/v2/brokers/"+clusterName, nil, &ids); err != nil {
				return fmt.Errorf("%s: %w", b.Name, err)
			}
			slices.Sort(ids)
			if !slices.Equal(ids, want) {
				return fmt.Errorf("%s knows the brokers %v, not %v", b.Name, ids, want)
			}
		}
		leader, err := c.Leader(ctx)
		if err == nil && !slices.Contains(want, leader) {
			err = fmt.Errorf("the leader is %q, not one of %v", leader, want)
		}
		return err
	})
}

// ZooKeeper is the address of the cluster's metadata store, host:port.
func (c *Cluster) ZooKeeper() string { return c.metaIP + ":2181" }
