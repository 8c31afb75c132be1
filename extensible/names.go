package extensible

import (
	"strings"

	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// Name and Class are the load manager's short name and Pulsar's class name.
const (
	Name  = "extensible"
	Class = classes + "ExtensibleLoadManagerImpl"
)

const classes = "org.apache.pulsar.broker.loadbalance.extensions."

var managers = []string{Name}

// loadManagerClass is the class name that brokers report for a load manager that may be named in short.
func loadManagerClass(name string) string {
	if strings.EqualFold(name, Name) {
		return Class
	}
	return name
}

// Shedders are the shedding strategies of this package, under Pulsar's class names and their short names.
func Shedders(o Options) []plan.Entry[plan.NewShedder] {
	return []plan.Entry[plan.NewShedder]{{
		Name: "TransferShedder", Class: classes + "scheduler.TransferShedder", Managers: managers,
		Doc: "Pairs the most with the least loaded brokers and moves bundles until the loads' standard deviation is small enough.",
		New: func(*settings.Settings) plan.Shedder { return &TransferShedder{Options: o} },
	}}
}

// Placers are the placement strategies of this package, under Pulsar's class names and their short names.
func Placers(o Options) []plan.Entry[plan.NewPlacer] {
	return []plan.Entry[plan.NewPlacer]{
		{
			Name: "LeastResourceUsageWithWeight", Class: classes + "strategy.LeastResourceUsageWithWeight", Managers: managers,
			Doc: "Places on a broker whose published load is well below the average of all.",
			New: func(*settings.Settings) plan.Placer { return LeastResourceUsageWithWeight{Options: o} },
		},
		{
			Name: "RoundRobinBrokerSelectionStrategy", Class: classes + "strategy.RoundRobinBrokerSelectionStrategy", Managers: managers,
			Doc: "Places on the brokers in turn.",
			New: func(*settings.Settings) plan.Placer { return RoundRobinBrokerSelectionStrategy{} },
		},
	}
}
