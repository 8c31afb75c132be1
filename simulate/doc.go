// Package simulate is a cluster without Pulsar: brokers with capacities, bundles with traffic, and the load data, ownership
// events and admin answers that a real cluster running the Extensible load manager would give. Scenarios run on it, a
// scoreboard says how even the load became and what that cost, and the same engine and loop that govern a real cluster can
// govern it.
//
// The core is Cluster: no goroutine, no clock and no randomness but the seed in its Config. Time moves only in
// Cluster.Advance, and what the cluster publishes waits in Cluster.Take. Embedded puts an event log and the answers of
// admin REST around it, and package drive runs Ballast's own loop against that.
//
// A cluster balances itself with the plan.Manager of its Config, as real ones do: extensible.New and modular.New make one
// around any plan.Shedder.
package simulate
