package control_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

func placeSnapshot(brokers, bundles int, owner func(i int) (string, event.ServiceUnitState)) (*cluster.Snapshot, []string) {
	s := &cluster.Snapshot{Now: 1_000_000, Version: "4.2.4", Settings: settings.Defaults()}
	s.Settings.LoadManagerClassName = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
	for i := range brokers {
		id := fmt.Sprintf("b%d:8080", i)
		d := event.NewBrokerLoadData()
		d.WeightedMaxEMA, d.UpdatedAt = float64(i)/10, s.Now
		s.Load = append(s.Load, cluster.BrokerLoad{Broker: id, Data: d, Heard: s.Now})
		s.Brokers = append(s.Brokers, cluster.Broker{ID: id, Version: "4.2.4", LoadManager: s.Settings.LoadManagerClassName, PersistentTopics: true, NonPersistentTopics: true,
			Load: &s.Load[len(s.Load)-1].Data, LoadHeard: s.Now})
	}
	var names []string
	for i := range bundles {
		name := event.BundleName{Namespace: "t/n", Range: event.Range{Lower: uint32(i) << 16, Upper: uint32(i+1) << 16}}.String()
		names = append(names, name)
		if id, state := owner(i); state != "" {
			s.Bundles = append(s.Bundles, cluster.Bundle{Name: name, Namespace: "t/n", Owner: id, State: state})
		}
	}
	return s.Index(), names
}

// Whatever is owned already, placing what is not makes brokers differ by one bundle at most, unless one had more before.
func TestPlaceEvenly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		brokers := rapid.IntRange(1, 6).Draw(t, "brokers")
		have, unowned := map[string]int{}, map[string]bool{}
		snap, names := placeSnapshot(brokers, rapid.IntRange(1, 80).Draw(t, "bundles"), func(int) (string, event.ServiceUnitState) {
			switch rapid.IntRange(0, 9).Draw(t, "state") {
			case 0, 1:
				id := fmt.Sprintf("b%d:8080", rapid.IntRange(0, brokers-1).Draw(t, "owner"))
				have[id]++
				return id, event.Owned
			case 2:
				return "", event.Free
			case 3:
				return "", event.Assigning
			}
			return "", ""
		})
		for _, name := range names {
			if i := snap.BundleIndex(name); i < 0 || snap.Bundles[i].State == event.Free {
				unowned[name] = true
			}
		}
		before := 0
		for _, n := range have {
			before = max(before, n)
		}
		m := extensible.New(nil, nil, extensible.Options{})
		p, _ := control.PlaceEvenly(snap, names, m, m.NewState(), rand.New(rand.NewPCG(1, 1)), new(plan.Trace))
		for _, d := range p.Decisions {
			if d.Action != plan.Place || !unowned[d.Bundle] || d.Why.Code != "PLACE_EVEN" {
				t.Fatalf("%+v", d)
			}
			delete(unowned, d.Bundle)
			have[d.Destination]++
		}
		if len(unowned) > 0 {
			t.Fatalf("%d bundles got no broker", len(unowned))
		}
		least, most := len(names), 0
		for i := range brokers {
			n := have[fmt.Sprintf("b%d:8080", i)]
			least, most = min(least, n), max(most, n)
		}
		if len(p.Decisions) > 0 && most-least > 1 && most > before {
			t.Fatalf("from %d to %d, before at most %d", least, most, before)
		}
	})
}

// Bundles that lost their owner come first in the plan; what never had one, and pulsar/system, is left alone.
func TestPrePlacing(t *testing.T) {
	snap, names := placeSnapshot(3, 9, func(i int) (string, event.ServiceUnitState) {
		if i < 6 {
			return "", event.Free
		}
		return "b0:8080", event.Owned
	})
	snap.Bundles = append(snap.Bundles, cluster.Bundle{Name: "pulsar/system/0x00000000_0xffffffff", Namespace: "pulsar/system", State: event.Free})
	snap.Index()
	inner := script{plans: [][]plan.Decision{{transfer(names[8], "b0:8080", "b1:8080")}}}
	m := control.PrePlacing(placer{inner, extensible.New(nil, nil, extensible.Options{})})
	p, _ := m.Shed(snap, m.NewState(), rand.New(rand.NewPCG(1, 1)), nil)
	got := map[string]int{"b0:8080": 3}
	for _, d := range p.Decisions[:len(p.Decisions)-1] {
		if d.Action != plan.Place {
			t.Errorf("%+v", d)
		}
		got[d.Destination]++
	}
	if last := p.Decisions[len(p.Decisions)-1]; len(p.Decisions) != 7 || last.Action != plan.Transfer || got["b0:8080"] != 3 || got["b1:8080"] != 3 || got["b2:8080"] != 3 {
		t.Errorf("%v, %+v", got, p.Decisions)
	}
}

// placer sheds as one manager does and places as another.
type placer struct {
	script
	m *extensible.Manager
}

func (p placer) Place(snap *cluster.Snapshot, bundle string, state plan.State, rnd plan.Rand, trace *plan.Trace) (plan.Decision, plan.State) {
	d, _ := p.m.Place(snap, bundle, p.m.NewState(), rnd, trace)
	return d, state
}
