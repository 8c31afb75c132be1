package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	dockernet "github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	tc "github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
	tcnet "github.com/testcontainers/testcontainers-go/network"
)

// ownerLabel marks everything that a run of the tests creates in Docker with the process that owns it. What belongs to a
// process that is no more is a leftover; what belongs to another live one is left alone.
const ownerLabel = "ballast.owner"

func init() {
	// testcontainers reads its environment once, at the first use. Its own reaper is an image that would have to be
	// pulled; sweep does that work. The host override spares it the guess of where published ports are.
	for key, value := range map[string]string{
		"TESTCONTAINERS_RYUK_DISABLED": "true",
		"TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
	} {
		if _, set := os.LookupEnv(key); !set {
			os.Setenv(key, value)
		}
	}
	tclog.SetDefault(tclog.NewNoopLogger()) // what matters comes back as errors
}

func newDocker(ctx context.Context) (*tc.DockerClient, error) {
	docker, err := tc.NewDockerClientWithOpts(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to Docker: %w", err)
	}
	if _, err := docker.Ping(ctx, client.PingOptions{}); err != nil {
		docker.Close()
		return nil, fmt.Errorf("no Docker engine answers (start one: dockerd, or as `make integration` does, deploy/ci/with-docker.sh): %w", err)
	}
	return docker, nil
}

// owner names a process as "id-starttime-namespace": a later one with the same id began later, and one in another container
// has another namespace of process ids. It is "" when there is no such process, or no /proc to tell.
func owner(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The command name is in parentheses and may hold anything; the start time is the 20th field after it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fmt.Sprintf("%d-%s-%s", pid, fields[19], pidNamespace())
}

// pidNamespace is the number of this process's namespace of process ids; deploy/ci/with-docker.sh reads it the same way.
func pidNamespace() string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return "none"
	}
	return strings.Trim(link, "pid:[]")
}

func labels() map[string]string {
	return map[string]string{ownerLabel: cmp.Or(owner(os.Getpid()), "unknown")}
}

// leftover says whether the owner named by a label is known to be dead.
func leftover(label string) bool {
	parts := strings.Split(label, "-")
	if len(parts) != 3 || parts[2] != pidNamespace() {
		return false
	}
	pid, err := strconv.Atoi(parts[0])
	return err == nil && owner(os.Getpid()) != "" && owner(pid) != label
}

// sweep removes the containers and networks of earlier runs that did not come to their end. Another run may be sweeping, too.
func sweep(ctx context.Context, docker *tc.DockerClient) error {
	filter := client.Filters{}.Add("label", ownerLabel)
	containers, err := docker.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filter})
	if err != nil {
		return fmt.Errorf("looking for leftovers: %w", err)
	}
	var errs []error
	note := func(err error) {
		if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
			errs = append(errs, err)
		}
	}
	for _, c := range containers.Items {
		if leftover(c.Labels[ownerLabel]) {
			_, err := docker.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			note(err)
		}
	}
	networks, err := docker.NetworkList(ctx, client.NetworkListOptions{Filters: filter})
	note(err)
	for _, n := range networks.Items {
		if leftover(n.Labels[ownerLabel]) {
			_, err := docker.NetworkRemove(ctx, n.ID, client.NetworkRemoveOptions{})
			note(err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing leftovers: %w", err)
	}
	return nil
}

// newNetwork makes a bridge network with a subnet of its own, since only such a network lets containers keep their address
// over a restart. The subnets are from 198.18.0.0/15, which is set aside for tests of networks.
func newNetwork(ctx context.Context) (*tc.DockerNetwork, netip.Prefix, error) {
	var last error
	for i := range 64 {
		subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, byte((os.Getpid() + i) % 256), 0}), 24)
		if hostHas(subnet) {
			continue
		}
		ipam := &dockernet.IPAM{Driver: "default", Config: []dockernet.IPAMConfig{{Subnet: subnet, Gateway: subnet.Addr().Next()}}}
		nw, err := tcnet.New(ctx, tcnet.WithIPAM(ipam), tcnet.WithLabels(labels()))
		if err == nil {
			return nw, subnet, nil
		}
		last = err
		if !strings.Contains(err.Error(), "overlap") {
			break
		}
	}
	return nil, netip.Prefix{}, fmt.Errorf("creating a bridge network: %w", last)
}

func hostHas(subnet netip.Prefix) bool {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Overlaps(subnet) {
			return true
		}
	}
	return false
}

// address is the n-th address of a /24.
func address(subnet netip.Prefix, n int) netip.Addr {
	a := subnet.Addr().As4()
	a[3] = byte(n)
	return netip.AddrFrom4(a)
}

// request is what all containers of a cluster have in common.
func request(nw *tc.DockerNetwork, name string, ip netip.Addr, env map[string]string, script string) []tc.ContainerCustomizer {
	return []tc.ContainerCustomizer{
		tc.WithLabels(labels()),
		tc.WithEnv(maps.Clone(env)),
		tc.WithCmd("sh", "-c", script),
		tc.WithConfigModifier(func(c *container.Config) { c.Hostname = name }),
		tcnet.WithNetwork([]string{name}, nw),
		tc.WithEndpointSettingsModifier(func(settings map[string]*dockernet.EndpointSettings) {
			settings[nw.Name].IPAMConfig = &dockernet.EndpointIPAMConfig{IPv4Address: ip}
		}),
	}
}
