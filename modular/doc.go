// Package modular is Pulsar's ModularLoadManagerImpl outside the broker: its placement and shedding strategies, broker
// filters, pre-allocations, splits and the leader's cycle, as Pulsar 4.2.4 has them (and 5.x where the cluster's version
// says so). It is pure: a snapshot of the cluster and a State go in, a plan and the next State come out.
//
// The order of a snapshot's slices is the order in which Pulsar would iterate its hash maps; sorts are stable. Known
// faults of Pulsar are kept and can be repaired one by one with Options.
package modular
