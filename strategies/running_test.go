package strategies_test

import (
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/strategies"
)

// TestFor: which engine decides on a cluster, by what it runs and by what the operator asks for.
func TestFor(t *testing.T) {
	const (
		manager, shed, place = "loadManagerClassName=", "loadBalancerLoadSheddingStrategy=", "loadBalancerLoadPlacementStrategy="
		modular, simple      = impl + "ModularLoadManagerImpl", impl + "SimpleLoadManagerImpl"
		extensible           = extensions + "ExtensibleLoadManagerImpl"
		threshold, placing   = "cluster:" + shed + impl + "ThresholdShedder", "cluster:" + place + impl + "LeastLongTermMessageRate"
	)
	transfer := strategies.Choice{Manager: "extensible", Shedder: "TransferShedder", Placer: "LeastResourceUsageWithWeight"}
	for _, x := range []struct {
		name  string
		class string // what the cluster runs
		set   []string
		want  strategies.Choice
		fault string
	}{
		{"what the cluster runs: Modular", modular, nil, strategies.Choice{Manager: "modular", Shedder: "ThresholdShedder", Placer: "LeastLongTermMessageRate"}, ""},
		{"what the cluster runs: Simple", simple, nil, strategies.Choice{Manager: "simple"}, ""},
		{"a blank class is Simple", " ", nil, strategies.Choice{Manager: "simple"}, ""},
		{"what the cluster runs: Extensible", extensible, nil, transfer, ""},
		{"TransferShedder on Modular, by the strategy", modular, []string{shed + "TransferShedder"}, transfer, ""},
		{"by its class", modular, []string{shed + extensions + "scheduler.TransferShedder"}, transfer, ""},
		{"by the load manager", modular, []string{manager + "extensible"}, transfer, ""},
		{"TransferShedder on Simple", simple, []string{shed + "TransferShedder"}, transfer, ""},
		{"another strategy of the same manager", modular, []string{shed + "OverloadShedder"},
			strategies.Choice{Manager: "modular", Shedder: "OverloadShedder", Placer: "LeastLongTermMessageRate"}, ""},
		{"AvgShedder for both", modular, []string{shed + "AvgShedder", place + "AvgShedder"},
			strategies.Choice{Manager: "modular", Shedder: "AvgShedder", Placer: "AvgShedder"}, ""},
		{"a Modular strategy on Simple", simple, []string{shed + "ThresholdShedder"},
			strategies.Choice{Manager: "modular", Shedder: "ThresholdShedder", Placer: "LeastLongTermMessageRate"}, ""},
		{"Simple on Modular", modular, []string{manager + "simple"}, strategies.Choice{Manager: "simple"}, ""},

		{"a Modular engine on Extensible", extensible, []string{manager + "modular"}, strategies.Choice{},
			"loadManagerClassName is modular, but this cluster runs the extensible load manager, whose brokers give no load reports"},
		{"a Modular strategy on Extensible", extensible, []string{shed + "ThresholdShedder"}, strategies.Choice{},
			`"ThresholdShedder" works with the modular load manager, not with extensible`},
		{"a manager and a strategy that do not fit", modular, []string{manager + "modular", shed + "TransferShedder"}, strategies.Choice{},
			`"TransferShedder" works with the extensible load manager, not with modular`},
		{"Simple and a strategy, which it has none of", simple, []string{manager + "simple", shed + "TransferShedder"}, strategies.Choice{},
			"loadBalancerLoadSheddingStrategy is TransferShedder: the simple load manager sheds by its own rules"},
		{"Simple by its class and a Modular strategy", modular, []string{manager + simple, shed + "ThresholdShedder"}, strategies.Choice{},
			"loadBalancerLoadSheddingStrategy is ThresholdShedder: the simple load manager"},
		{"the broker.conf of a Simple cluster, of an older version", simple, []string{manager + simple, "loadBalancerLoadSheddingStrategy=org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder"}, strategies.Choice{Manager: "simple"}, ""},
		{"a blank strategy beside Simple", simple, []string{manager + simple, "loadBalancerLoadSheddingStrategy="}, strategies.Choice{Manager: "simple"}, ""},
		{"the broker.conf of a Simple cluster", simple, []string{manager + simple, strings.TrimPrefix(threshold, "cluster:")}, strategies.Choice{Manager: "simple"}, ""},
		{"a placement that does not fit", modular, []string{shed + "TransferShedder", place + "LeastLongTermMessageRate"}, strategies.Choice{},
			"loadBalancerLoadPlacementStrategy: placement strategy"},
		{"a misspelt strategy", modular, []string{shed + "TransferSheder"}, strategies.Choice{}, `shedding strategy is "TransferSheder": it must be one of TransferShedder, OverloadShedder`},
		{"a load manager that nobody knows", "com.example.Own", nil, strategies.Choice{}, "this cluster runs a load manager that Ballast does not know"},
	} {
		t.Run(x.name, func(t *testing.T) {
			class := "cluster:" + manager + x.class
			if strings.TrimSpace(x.class) == "" {
				class = "cluster:" + manager + " "
			}
			_, choice, err := strategies.For(resolve(t, "4.2.4", append([]string{class, threshold, placing}, x.set...)...), x.class)
			switch {
			case x.fault == "" && (err != nil || choice != x.want):
				t.Errorf("%+v, %v; want %+v", choice, err, x.want)
			case x.fault != "" && (err == nil || !strings.Contains(err.Error(), x.fault)):
				t.Errorf("error is\n%v\nwant in it\n%s", err, x.fault)
			}
		})
	}
}
