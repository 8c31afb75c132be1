package strategies_test

import (
	"fmt"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/strategies"
)

// CountShedder sheds from every broker that serves more bundles than the average, rounded up. It has no memory.
type CountShedder struct{}

// Why CountShedder sheds from a broker, or not.
var (
	TooManyBundles   = plan.Code{ID: "TOO_MANY_BUNDLES", Template: "{bundles} bundles > average {average}"}
	NotTooMany       = plan.Code{ID: "NOT_TOO_MANY_BUNDLES", Template: "{bundles} bundles <= average {average}"}
	CountsCompared   = plan.Code{ID: "BUNDLES_COUNTED", Template: "{bundles} bundles of {brokers} brokers, average {average}"}
	NothingToCompare = plan.Code{ID: "NO_BROKERS", Template: "no broker is registered"}
)

// Shed implements plan.Shedder.
func (CountShedder) Shed(snap *cluster.Snapshot, state plan.State, trace *plan.Trace) (plan.Plan, plan.State) {
	p := plan.Plan{Strategy: "CountShedder", At: snap.Now}
	brokers, total := len(snap.Brokers), 0
	for i := range snap.Brokers {
		total += len(snap.Brokers[i].Bundles)
	}
	if brokers == 0 {
		p.Outcome = NothingToCompare.Because()
		return p, state
	}
	average := (total + brokers - 1) / brokers
	p.Outcome = CountsCompared.Because(plan.N("bundles", total), plan.N("brokers", brokers), plan.N("average", average))
	for i := range snap.Brokers {
		b := &snap.Brokers[i]
		numbers := []plan.Number{plan.N("bundles", len(b.Bundles)), plan.N("average", average)}
		if len(b.Bundles) <= average {
			if trace != nil {
				trace.Skip("", b.ID, "", NotTooMany.Because(numbers...))
			}
			continue
		}
		for _, k := range b.Bundles[average:] {
			p.Decisions = append(p.Decisions, plan.Decision{
				Action: plan.Unload, Bundle: snap.Bundles[k].Name, Source: b.ID, Why: TooManyBundles.Because(numbers...),
			})
		}
	}
	return p, state
}

// Example registers CountShedder and lets the Modular load manager shed with it.
func Example() {
	registry, err := strategies.Registry(nil)
	if err != nil {
		panic(err)
	}
	registry.Shedders = append(registry.Shedders, plan.Entry[plan.NewShedder]{
		Name: "CountShedder", Managers: []string{modular.Name}, Doc: "Sheds from brokers with more bundles than the average.",
		New: func(*settings.Settings) plan.Shedder { return CountShedder{} },
	})

	snap := threeBrokers()
	manager, _ := registry.Manager("modular")
	shedder, err := registry.Shedder("countShedder", manager.Name)
	if err != nil {
		panic(err)
	}
	placer, _ := registry.Placer("LeastLongTermMessageRate", manager.Name)
	m, err := manager.New(plan.Parts{Settings: snap.Settings, Shedder: shedder.New(snap.Settings), Placer: placer.New(snap.Settings)})
	if err != nil {
		panic(err)
	}
	trace := &plan.Trace{}
	p, _ := m.Shed(snap, m.NewState(), nil, trace)
	fmt.Println(p.Outcome)
	for _, d := range p.Decisions {
		fmt.Println(d.Action, d.Bundle, d.Source, "->", d.Destination+":", d.Why)
	}
	for _, e := range trace.Entries {
		if e.Bundle == "" {
			fmt.Println(e.Broker+":", e.Why)
		}
	}
	// Output:
	// 1 of 1 selected bundles leave 1 brokers
	// transfer t/n/0x80000000_0xc0000000 a:8080 -> c:8080: 3 bundles > average 2
	// b:8080: 1 bundles <= average 2
	// c:8080: 0 bundles <= average 2
}

// threeBrokers is a cluster whose bundles are on a and b.
func threeBrokers() *cluster.Snapshot {
	snap := &cluster.Snapshot{Version: "4.2.4", Settings: settings.Defaults()}
	ranges := []string{"0x00000000_0x40000000", "0x40000000_0x80000000", "0x80000000_0xc0000000", "0xc0000000_0xffffffff"}
	owners := []string{"a:8080", "a:8080", "a:8080", "b:8080"}
	for _, id := range []string{"a:8080", "b:8080", "c:8080"} {
		report := event.NewLocalBrokerData(snap.Now)
		report.LoadManagerClassName = modular.Class
		b := cluster.Broker{ID: id, Local: &report, TimeAverage: &event.TimeAverageBrokerData{}}
		for i, owner := range owners {
			if owner == id {
				b.Bundles = append(b.Bundles, i)
				b.TimeAverage.LongTermMsgRateIn += 1000
			}
		}
		snap.Brokers = append(snap.Brokers, b)
	}
	for i, r := range ranges {
		snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: "t/n/" + r, Namespace: "t/n", Owner: owners[i], State: event.Owned, Known: true})
	}
	return snap.Index()
}
