// Package extensible is Pulsar's Extensible load manager: the placement strategy LeastResourceUsageWithWeight, the broker
// filters, TransferShedder, the bundle splits and the rules around them, as Pulsar 4.2.4 has them (and 5.x where the
// cluster's version chooses). It is pure: a snapshot and a state go in, a plan and the next state come out.
//
// Repairs of known faults are Options, all off by default.
package extensible
