// Package control runs Ballast against a cluster: one synchronous Step (snapshot, plan, guard, execute, verify, outcome)
// and the loop around it, the lock that lets one process act, and the take-over of the built-in balancer.
package control

import (
	"context"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/policy"
)

// Cluster is what control asks of a Pulsar cluster besides its topics. cluster/admin is the real one (admin REST),
// simulate has a simulated one. Methods return typed errors (admin.Error) that say whether a retry is safe.
type Cluster interface {
	// Name is the name of the cluster.
	Name(ctx context.Context) (string, error)
	// Brokers are the registered brokers ordered by id: the cluster's own registry, the only judge of who is alive.
	// Version, LoadManager and the topic flags are filled in where the broker answers.
	Brokers(ctx context.Context) ([]cluster.Broker, error)
	// Leader is the broker id of the load manager's leader, "" if there is none.
	Leader(ctx context.Context) (string, error)
	// RuntimeConfig is the effective configuration of a broker, every key that it reports.
	RuntimeConfig(ctx context.Context) (map[string]string, error)
	// DynamicConfig is what has been set dynamically: only keys that are present in the metadata store.
	DynamicConfig(ctx context.Context) (map[string]string, error)
	SetDynamicConfig(ctx context.Context, key, value string) error
	DeleteDynamicConfig(ctx context.Context, key string) error
	// Policies are the isolation policies, anti-affinity groups and failure domains. What cannot be read is frozen inside
	// the set; the error is for when nothing could be asked at all.
	Policies(ctx context.Context) (*policy.Set, error)
	// Bundles are the names of all bundles of a namespace (tenant/ns/0x........_0x........), in range order.
	Bundles(ctx context.Context, namespace string) ([]string, error)
	// Owned are the bundles that a broker says it owns.
	Owned(ctx context.Context, broker string) ([]string, error)
	// Unload asks for a bundle to be unloaded, to the named broker when destination is not "".
	Unload(ctx context.Context, bundle, destination string) error
	// Split splits a bundle; boundaries only for specified_positions_divide.
	Split(ctx context.Context, bundle, algorithm string, boundaries []string, unload bool) error
	// EstimateLoad derives load data of a broker from its metrics, for brokers that have published nothing yet.
	EstimateLoad(ctx context.Context, broker string) (event.BrokerLoadData, []event.BundleLoad, error)
	// Publishers is how many producers are connected to a topic; 0 when the topic does not exist.
	Publishers(ctx context.Context, topic string) (int, error)
	// CreateTopic makes a non-partitioned topic where it does not exist yet, for clusters without automatic creation.
	CreateTopic(ctx context.Context, topic string) error
}
