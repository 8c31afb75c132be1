// Package simple is Pulsar's Simple load manager: brokers report their load to the metadata store, every broker ranks all
// of them by what their bundles are expected to need (resource quotas learnt from the reports), bundles are placed by rank,
// and the leader sheds one bundle from each overloaded broker. It is pure. Pulsar: SimpleLoadManagerImpl,
// ResourceUnitRanking, WRRPlacementStrategy.
//
// With no Options set every decision is that of Pulsar 4.2.4 (5.x decides alike). Three things differ on purpose: a namespace
// whose policies cannot be read gets no broker, where Pulsar takes all of them; a broker whose report has no usage is left out,
// where Pulsar stops ranking; and where Pulsar's request fails on a null pointer there is no broker and a reason.
//
// Pulsar reads the strategy and the thresholds from /loadbalance/settings first; the caller puts such values into the
// snapshot's settings.
package simple
