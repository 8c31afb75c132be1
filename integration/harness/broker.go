package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	dockernet "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	tc "github.com/testcontainers/testcontainers-go"
)

// State is what the harness did to a broker last.
type State int

// The states of a broker.
const (
	Starting State = iota
	Running
	Down   // killed or stopped
	Paused // frozen: neither answers nor dies
	Cut    // without network
)

func (s State) String() string {
	return [...]string{"starting", "running", "down", "paused", "cut off"}[s]
}

// Broker is one broker of a Cluster. It keeps its address when it is started again.
type Broker struct {
	Name string     // broker-1, broker-2...
	IP   netip.Addr // reachable from the host
	ID   string     // as Pulsar names it: host:port of its web service

	cluster   *Cluster
	conf      map[string]string
	extra     bool // added by a test
	mu        sync.Mutex
	state     State
	container *tc.DockerContainer
}

// AdminURL is the http:// URL of this broker.
func (b *Broker) AdminURL() string { return "http://" + b.ID }

// ServiceURL is the pulsar:// URL of this broker.
func (b *Broker) ServiceURL() string { return "pulsar://" + b.IP.String() + ":6650" }

// ContainerID is the id of the broker's container in Docker, for what the harness has no method for.
func (b *Broker) ContainerID() string { return b.container.GetContainerID() }

// State is what the harness did to the broker last.
func (b *Broker) State() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.state
}

func (b *Broker) set(s State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = s
}

// create makes and starts the container and waits until the broker is ready.
func (b *Broker) create(ctx context.Context) error {
	c := b.cluster
	what := request(c.network, b.Name, b.IP, brokerEnv(b.conf), brokerScript)
	if c.options.Secure != nil {
		files, err := c.options.Secure.files(b.IP)
		if err != nil {
			return err
		}
		for path, content := range files {
			what = append(what, tc.WithFiles(tc.ContainerFile{Reader: bytes.NewReader(content), ContainerFilePath: path, FileMode: 0o644}))
		}
	}
	container, err := tc.Run(ctx, c.image, what...)
	b.mu.Lock()
	b.container = container
	b.mu.Unlock()
	if err != nil {
		return err
	}
	return b.awaitReady(ctx)
}

// awaitReady waits until the broker says that it is ready. A broker that has exited is not waited for.
func (b *Broker) awaitReady(ctx context.Context) error {
	err := awaitUp(ctx, b.container, func(ctx context.Context) error {
		return call(ctx, "GET", b.AdminURL()+"/admin/v2/brokers/ready", nil, nil)
	})
	if err != nil {
		return fmt.Errorf("waiting until it is ready: %w\n%s", err, tail(b.log(context.WithoutCancel(ctx)), 20))
	}
	b.set(Running)
	return nil
}

// Kill ends the broker as kill -9 does. The cluster notices when the metadata session ends (6 s unless configured).
func (b *Broker) Kill(t testing.TB) {
	t.Helper()
	b.must(t, Down, func(ctx context.Context) error {
		_, err := b.cluster.docker.ContainerKill(ctx, b.container.GetContainerID(), client.ContainerKillOptions{Signal: "KILL"})
		return err
	})
}

// Stop ends the broker in order: it hands over its bundles and leaves the registry.
func (b *Broker) Stop(t testing.TB) {
	t.Helper()
	b.must(t, Down, func(ctx context.Context) error {
		patience := 30 * time.Second
		return b.container.Stop(ctx, &patience)
	})
}

// Pause freezes the broker: its connections stay open and nothing answers.
func (b *Broker) Pause(t testing.TB) {
	t.Helper()
	b.must(t, Paused, func(ctx context.Context) error {
		_, err := b.cluster.docker.ContainerPause(ctx, b.container.GetContainerID(), client.ContainerPauseOptions{})
		return err
	})
}

// Cut takes the broker's network away. Its interface is another one afterwards, with counters that begin at 0.
func (b *Broker) Cut(t testing.TB) {
	t.Helper()
	b.must(t, Cut, func(ctx context.Context) error {
		_, err := b.cluster.docker.NetworkDisconnect(ctx, b.cluster.network.ID,
			client.NetworkDisconnectOptions{Container: b.container.GetContainerID(), Force: true})
		return err
	})
}

// Start brings the broker back from whatever was done to it and waits until it is registered again. One that was killed is
// started only when the registry has forgotten it, so that its new life is not taken for the old one.
func (b *Broker) Start(t testing.TB) {
	t.Helper()
	if err := b.start(t.Context()); err != nil {
		t.Fatalf("starting %s: %v", b.Name, err)
	}
	if err := b.cluster.awaitRegistry(t.Context()); err != nil {
		t.Fatalf("starting %s: %v", b.Name, err)
	}
}

func (b *Broker) start(ctx context.Context) error {
	c := b.cluster
	switch b.State() {
	case Running:
		return nil
	case Starting:
		return errors.New("it never came up")
	case Paused:
		if _, err := c.docker.ContainerUnpause(ctx, b.container.GetContainerID(), client.ContainerUnpauseOptions{}); err != nil {
			return err
		}
	case Cut:
		settings := &dockernet.EndpointSettings{IPAMConfig: &dockernet.EndpointIPAMConfig{IPv4Address: b.IP}, Aliases: []string{b.Name}}
		if _, err := c.docker.NetworkConnect(ctx, c.network.ID,
			client.NetworkConnectOptions{Container: b.container.GetContainerID(), EndpointConfig: settings}); err != nil {
			return err
		}
	case Down:
		if len(c.Live()) > 0 {
			if err := poll(ctx, registryLimit, b.forgotten); err != nil {
				return err
			}
		}
	}
	// A broker that lost its metadata session while it was frozen or cut off may have ended itself.
	if state, err := b.container.State(ctx); err != nil || !state.Running {
		if err := b.container.Start(ctx); err != nil {
			return err
		}
	}
	return b.awaitReady(ctx)
}

// RunManager ends the broker in order and starts a new process at its address whose broker.conf names another load manager, as an
// operator does who moves a cluster. It waits until the broker is registered again.
func (b *Broker) RunManager(t testing.TB, m Manager) {
	t.Helper()
	b.Stop(t)
	b.AwaitGone(t)
	if _, err := b.cluster.docker.ContainerRemove(t.Context(), b.container.GetContainerID(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true}); err != nil {
		t.Fatalf("%s should run %v: %v", b.Name, m, err)
	}
	maps.Copy(b.conf, m.conf())
	b.set(Starting)
	if err := b.create(t.Context()); err != nil {
		t.Fatalf("%s should run %v: %v", b.Name, m, err)
	}
	if err := b.cluster.awaitRegistry(t.Context()); err != nil {
		t.Fatalf("%s should run %v: %v", b.Name, m, err)
	}
}

// forgotten is nil when the registry no longer has the broker.
func (b *Broker) forgotten(ctx context.Context) error {
	ids, err := b.cluster.Registry(ctx)
	if err == nil && slices.Contains(ids, b.ID) {
		err = fmt.Errorf("%s is still registered", b.ID)
	}
	return err
}

// AwaitGone waits until the cluster's registry no longer has the broker.
func (b *Broker) AwaitGone(t testing.TB) {
	t.Helper()
	if err := poll(t.Context(), registryLimit, b.forgotten); err != nil {
		t.Fatalf("waiting until %s leaves the registry: %v", b.Name, err)
	}
}

// Remove ends a broker that the test added and takes it out of the cluster for good.
func (b *Broker) Remove(t testing.TB) {
	t.Helper()
	if err := b.remove(t.Context()); err != nil {
		t.Fatalf("removing %s: %v", b.Name, err)
	}
}

func (b *Broker) remove(ctx context.Context) error {
	b.set(Down)
	c := b.cluster
	c.mu.Lock()
	c.brokers = slices.DeleteFunc(c.brokers, func(x *Broker) bool { return x == b })
	c.mu.Unlock()
	if b.container == nil {
		return nil
	}
	// Not Terminate, which first tries to stop: a paused container would not.
	_, err := c.docker.ContainerRemove(ctx, b.container.GetContainerID(), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	return err
}

// must does something to a running broker. The state changes first, so that nobody asks a broker that is going.
func (b *Broker) must(t testing.TB, to State, do func(context.Context) error) {
	t.Helper()
	if s := b.State(); s != Running {
		t.Fatalf("%s should become %v but is %v; start it first", b.Name, to, s)
	}
	b.set(to)
	if err := do(t.Context()); err != nil {
		t.Fatalf("%s should become %v: %v", b.Name, to, err)
	}
}
