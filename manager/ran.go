package manager

// A broker's process cannot run a load manager again that it has stopped: the manager of the locks under which Modular and
// Simple brokers register is one for each class of report and lives as long as the process, and a stopped load manager has
// closed it. The broker then leaves the registry as soon as it has entered it (Pulsar: CoordinationServiceImpl.getLockManager,
// LockManagerImpl.acquireLock).
//
// The same happens to a broker that starts while loadManagerClassName is set in the metadata store and its broker.conf names
// another one: it makes the load manager before there is one to change from, closes it, and makes it again (Pulsar:
// BrokerService.updateConfigurationAndRegisterListeners).

// ModularMetric is the metric that stands in a process once the Modular load manager was made there.
const ModularMetric = "pulsar_broker_load_manager_bundle_assigment"

// How long after its process a load manager may be made and still be its first: brokers that start slowly. Where somebody
// has set the load manager at run time, less is believed: that may have been done half a minute after the start, and a switch
// that is refused for nothing does less harm than one that empties the registry.
const (
	startSlack   = 2 * 60 * 1000 // ms
	dynamicSlack = 10 * 1000     // ms
)

// RanBefore is what a broker's process has run besides what it runs now. processStart is the Unix ms of its start, 0 = not
// known; managerStart is startTimestamp of a Modular broker's report; modularMade says whether ModularMetric stands there,
// dynamic whether loadManagerClassName is set in the metadata store.
func RanBefore(runs Kind, processStart, managerStart int64, modularMade, dynamic bool) []Kind {
	slack := int64(startSlack)
	if dynamic {
		slack = dynamicSlack
	}
	switch {
	case runs == Simple && modularMade:
		return []Kind{Modular}
	case runs == Modular && processStart > 0 && managerStart-processStart > slack:
		return []Kind{Simple}
	}
	return nil
}
