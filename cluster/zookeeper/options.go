package zookeeper

import (
	"fmt"
	"log/slog"
	"net"
	"path"
	"strconv"
	"strings"
	"time"
)

// Options say how to reach the metadata store of a cluster. Servers is required; every zero value has a default.
type Options struct {
	// Servers are addresses, host:port (port 2181 if there is none). The last may end with the path below which the cluster's
	// metadata is kept, and the first may begin with "zk:", as in Pulsar's metadataStoreUrl.
	Servers []string

	SessionTimeout time.Duration // asked for; 0 = 30 s
	ReadTimeout    time.Duration // for one attempt of a read, connecting included; 0 = 10 s
	Retries        int           // of reads; 0 = 2, -1 = none
	RetryWait      time.Duration // before the first repetition, then growing; 0 = 200 ms
	Concurrent     int           // requests at once when nodes are read one by one; 0 = 8
	MaxAnswer      int           // bytes of one answer; 0 = 32 MiB

	Logger *slog.Logger // nil = slog.Default()

	dial dialer // nil = a real connection
}

func (o Options) withDefaults() Options {
	set(&o.SessionTimeout, 30*time.Second)
	set(&o.ReadTimeout, 10*time.Second)
	set(&o.Retries, 2)
	set(&o.RetryWait, 200*time.Millisecond)
	set(&o.Concurrent, 8)
	set(&o.MaxAnswer, 32<<20)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.dial == nil {
		o.dial = connect
	}
	return o
}

func set[T comparable](v *T, otherwise T) {
	var zero T
	if *v == zero {
		*v = otherwise
	}
}

// servers are the addresses with their ports, and the path below which the cluster's nodes are, "" = the root.
func (o Options) servers() (servers []string, root string, err error) {
	all := strings.TrimPrefix(strings.Join(o.Servers, ","), "zk:")
	all, root, _ = strings.Cut(all, "/")
	if root != "" {
		root = path.Clean("/" + root)
	}
	if root == "/" {
		root = ""
	}
	if strings.ContainsAny(root, ", \t") {
		return nil, "", fmt.Errorf("ZooKeeper address %q: the path %s should stand behind the last server", strings.Join(o.Servers, ","), root)
	}
	for _, address := range strings.Split(all, ",") {
		if address = strings.TrimSpace(address); address == "" {
			continue
		}
		server, err := withPort(address)
		if err != nil {
			return nil, "", err
		}
		servers = append(servers, server)
	}
	if len(servers) == 0 {
		return nil, "", fmt.Errorf("ZooKeeper address %q: it should be host:port,host:port", strings.Join(o.Servers, ","))
	}
	return servers, root, nil
}

func withPort(address string) (string, error) {
	wrong := fmt.Errorf("ZooKeeper address %q: it should be host or host:port", address)
	host, port, err := net.SplitHostPort(address)
	if err != nil && !strings.Contains(strings.Trim(address, "[]"), ":") || strings.HasPrefix(address, "[") && strings.HasSuffix(address, "]") {
		host, port, err = strings.Trim(address, "[]"), "2181", nil
	}
	if err != nil || host == "" || strings.ContainsAny(host, " \t@?#") {
		return "", wrong
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", wrong
	}
	return net.JoinHostPort(host, port), nil
}
