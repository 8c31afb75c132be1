package modular

import (
	"strings"

	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// Name and Class are the load manager's short name and Pulsar's class name.
const (
	Name  = "modular"
	Class = classes + "ModularLoadManagerImpl"
)

const classes = "org.apache.pulsar.broker.loadbalance.impl."

// loadManagerClass is the class name that brokers report for a load manager that may be named in short.
func loadManagerClass(name string) string {
	if strings.EqualFold(name, Name) {
		return Class
	}
	return name
}

var managers = []string{Name}

// ManagerEntry is the load manager, under Pulsar's class name and its short name.
func ManagerEntry(o Options) plan.Entry[plan.NewManager] {
	return plan.Entry[plan.NewManager]{
		Name: Name, Class: Class,
		Doc: "Pulsar's default: the leader places bundles by their histories and sheds by a strategy; load reports are in the metadata store.",
		New: func(p plan.Parts) (plan.Manager, error) { return New(p.Shedder, p.Placer, o) },
	}
}

// Shedders are the shedding strategies of this package, under Pulsar's class names and their short names.
func Shedders(o Options) []plan.Entry[plan.NewShedder] {
	entry := func(name, doc string, s plan.Shedder) plan.Entry[plan.NewShedder] {
		return plan.Entry[plan.NewShedder]{
			Name: name, Class: classes + name, Managers: managers, Doc: doc,
			New: func(*settings.Settings) plan.Shedder { return s },
		}
	}
	return []plan.Entry[plan.NewShedder]{
		entry("OverloadShedder", "Sheds from every broker above a fixed usage.", OverloadShedder{Options: o}),
		entry("ThresholdShedder", "Sheds from brokers whose average usage is well above the average of all.", ThresholdShedder{Options: o}),
		entry("UniformLoadShedder", "Sheds from the broker with the most messages or throughput when it has far more than the one with the least.", UniformLoadShedder{Options: o}),
		entry("AvgShedder", "Pairs the most with the least used brokers and evens out pairs that stay apart.", AvgShedder{Options: o}),
	}
}

// Placers are the placement strategies of this package, under Pulsar's class names and their short names.
func Placers(o Options) []plan.Entry[plan.NewPlacer] {
	entry := func(name, doc string, p plan.Placer) plan.Entry[plan.NewPlacer] {
		return plan.Entry[plan.NewPlacer]{
			Name: name, Class: classes + name, Managers: managers, Doc: doc,
			New: func(*settings.Settings) plan.Placer { return p },
		}
	}
	documented := entry("LeastLongTermMessageRateDocumented",
		"LeastLongTermMessageRate as Pulsar's documents describe it, weighted by the room below the overload threshold.", LeastLongTermMessageRateDocumented{})
	documented.Class = "" // Pulsar has no such class
	return []plan.Entry[plan.NewPlacer]{
		entry("LeastLongTermMessageRate", "Places on the broker with the lowest long-term message rate that is not overloaded.", LeastLongTermMessageRate{}),
		documented,
		entry("LeastResourceUsageWithWeight", "Places on a broker whose average usage is well below the average of all.", LeastResourceUsageWithWeight{Options: o}),
		entry("RoundRobinBrokerSelector", "Places on the brokers in turn.", RoundRobinBrokerSelector{}),
		entry("AvgShedder", "Places a shed bundle on the destination AvgShedder planned, any other on a random broker.", AvgShedder{Options: o}),
	}
}
