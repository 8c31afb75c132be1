package strategies_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
	"github.com/ballast-lb/ballast/strategies"
)

const (
	impl       = "org.apache.pulsar.broker.loadbalance.impl."
	extensions = "org.apache.pulsar.broker.loadbalance.extensions."
)

// resolve lays key=value pairs over the defaults of a version. A pair after "cluster:" is what the cluster runs with.
func resolve(t *testing.T, version string, pairs ...string) *settings.Layered {
	t.Helper()
	file, running := settings.Layer{Origin: settings.OriginFile}, settings.Layer{Origin: settings.OriginCluster}
	for _, pair := range pairs {
		layer := &file
		if rest, ok := strings.CutPrefix(pair, "cluster:"); ok {
			layer, pair = &running, rest
		}
		k, v, _ := strings.Cut(pair, "=")
		layer.Entries = append(layer.Entries, settings.Entry{Key: k, Text: v})
	}
	l, err := settings.Resolve(version, running, file)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestNew: what is chosen, by whoever set it, and the errors of what cannot be chosen.
func TestNew(t *testing.T) {
	const manager, shed, place = "loadManagerClassName=", "loadBalancerLoadSheddingStrategy=", "loadBalancerLoadPlacementStrategy="
	for _, x := range []struct {
		name    string
		version string
		set     []string
		want    strategies.Choice
		fault   string
	}{
		{"Pulsar 4's defaults", "4.2.4", nil, strategies.Choice{Manager: "modular", Shedder: "ThresholdShedder", Placer: "LeastLongTermMessageRate"}, ""},
		{"Pulsar 5's defaults", "5.0.1", nil, strategies.Choice{Manager: "modular", Shedder: "AvgShedder", Placer: "AvgShedder"}, ""},
		{"class names", "4.2.4", []string{manager + impl + "ModularLoadManagerImpl", shed + impl + "OverloadShedder", place + impl + "LeastResourceUsageWithWeight"},
			strategies.Choice{Manager: "modular", Shedder: "OverloadShedder", Placer: "LeastResourceUsageWithWeight"}, ""},
		{"short names, whatever their case", "4.2.4", []string{manager + "Modular", shed + "uniformloadshedder", place + "roundRobinBrokerSelector"},
			strategies.Choice{Manager: "modular", Shedder: "UniformLoadShedder", Placer: "RoundRobinBrokerSelector"}, ""},
		{"what only Ballast has", "4.2.4", []string{place + "LeastLongTermMessageRateDocumented"},
			strategies.Choice{Manager: "modular", Shedder: "ThresholdShedder", Placer: "LeastLongTermMessageRateDocumented"}, ""},
		{"Simple has its own", "4.2.4", []string{manager + "simple", "cluster:" + shed + "nonsense"}, strategies.Choice{Manager: "simple"}, ""},
		{"and takes no other", "4.2.4", []string{manager + "simple", shed + "nonsense"}, strategies.Choice{}, "loadBalancerLoadSheddingStrategy is nonsense: the simple load manager"},
		{"a blank class is Simple", "4.2.4", []string{manager + " "}, strategies.Choice{Manager: "simple"}, ""},

		{"Extensible, the shedding key left alone", "4.2.4", []string{manager + "extensible"},
			strategies.Choice{Manager: "extensible", Shedder: "TransferShedder", Placer: "LeastResourceUsageWithWeight"}, ""},
		{"Extensible, as a cluster of 4 runs it", "4.2.4", []string{"cluster:" + manager + extensions + "ExtensibleLoadManagerImpl",
			"cluster:" + shed + impl + "ThresholdShedder", "cluster:" + place + impl + "LeastLongTermMessageRate"},
			strategies.Choice{Manager: "extensible", Shedder: "TransferShedder", Placer: "LeastResourceUsageWithWeight"}, ""},
		{"Extensible, as a cluster of 5 runs it", "5.0.1", []string{"cluster:" + manager + extensions + "ExtensibleLoadManagerImpl"},
			strategies.Choice{Manager: "extensible", Shedder: "TransferShedder", Placer: "LeastResourceUsageWithWeight"}, ""},
		{"Extensible, asked for by name", "4.2.4", []string{manager + "extensible", shed + extensions + "scheduler.TransferShedder", place + "RoundRobinBrokerSelectionStrategy"},
			strategies.Choice{Manager: "extensible", Shedder: "TransferShedder", Placer: "RoundRobinBrokerSelectionStrategy"}, ""},
		{"a short name that two managers have", "4.2.4", []string{manager + "extensible", place + "LeastResourceUsageWithWeight"},
			strategies.Choice{Manager: "extensible", Shedder: "TransferShedder", Placer: "LeastResourceUsageWithWeight"}, ""},

		{"a shedder of the other manager that somebody asked for", "4.2.4", []string{manager + "extensible", shed + "ThresholdShedder"}, strategies.Choice{},
			`loadBalancerLoadSheddingStrategy: shedding strategy "ThresholdShedder" works with the modular load manager, not with extensible: possible here are TransferShedder`},
		{"and the other way round", "4.2.4", []string{shed + extensions + "scheduler.TransferShedder"}, strategies.Choice{},
			`works with the extensible load manager, not with modular: possible here are OverloadShedder, ThresholdShedder, UniformLoadShedder, AvgShedder`},
		{"a placer of the other manager", "4.2.4", []string{place + extensions + "strategy.LeastResourceUsageWithWeight"}, strategies.Choice{},
			`loadBalancerLoadPlacementStrategy: placement strategy "` + extensions + `strategy.LeastResourceUsageWithWeight" works with the extensible load manager, not with modular`},
		{"a misspelt shedder", "4.2.4", []string{shed + impl + "ThresholdSheder"}, strategies.Choice{},
			`loadBalancerLoadSheddingStrategy: shedding strategy for the modular load manager is "` + impl + `ThresholdSheder": it must be one of OverloadShedder, ThresholdShedder, UniformLoadShedder, AvgShedder, or Pulsar's class name of one`},
		{"a misspelt load manager", "4.2.4", []string{manager + "modul"}, strategies.Choice{},
			`loadManagerClassName: load manager is "modul": it must be one of extensible, modular, simple, or Pulsar's class name of one`},
		{"a class name in other case", "4.2.4", []string{shed + impl + "thresholdshedder"}, strategies.Choice{}, "it must be one of"},
		{"AvgShedder only places", "4.2.4", []string{place + "AvgShedder"}, strategies.Choice{},
			"AvgShedder places only what it sheds itself; loadBalancerLoadSheddingStrategy is modular.ThresholdShedder, it must be AvgShedder or loadBalancerLoadPlacementStrategy another one"},
		{"AvgShedder only sheds", "4.2.4", []string{shed + "AvgShedder"}, strategies.Choice{Manager: "modular", Shedder: "AvgShedder", Placer: "LeastLongTermMessageRate"}, ""},
		{"a repair that there is not", "4.2.4", []string{"ballastRepairs=countSwapGains"}, strategies.Choice{},
			`ballastRepairs names "countSwapGains": it must be one of antiAffinityByNamespace, avoidOverloaded, `},
	} {
		m, choice, err := strategies.New(resolve(t, x.version, x.set...))
		switch {
		case x.fault == "" && (err != nil || m == nil || choice != x.want):
			t.Errorf("%s: %+v, %v; want %+v", x.name, choice, err, x.want)
		case x.fault != "" && (err == nil || !strings.Contains(err.Error(), x.fault)):
			t.Errorf("%s: error is\n%v\nwant in it\n%s", x.name, err, x.fault)
		}
	}
}

// TestNames: everything that is registered is found by its class name and by its short name, for each of its managers and, with
// its class name, for no other.
func TestNames(t *testing.T) {
	r, err := strategies.Registry(nil)
	if err != nil {
		t.Fatal(err)
	}
	var managers []string
	for _, e := range r.Managers {
		managers = append(managers, e.Name)
		for _, name := range []string{e.Name, e.Class, strings.ToUpper(e.Name)} {
			if got, err := r.Manager(name); err != nil || got.Class != e.Class {
				t.Errorf("load manager %q is %q, %v", name, got.Class, err)
			}
		}
	}
	if diff := cmp.Diff([]string{extensible.Name, modular.Name, simple.Name}, managers); diff != "" {
		t.Errorf("load managers (-want +got):\n%s", diff)
	}
	checkNames(t, r.Shedders, managers, r.Shedder)
	checkNames(t, r.Placers, managers, r.Placer)
}

func checkNames[T any](t *testing.T, list []plan.Entry[T], managers []string, find func(name, manager string) (plan.Entry[T], error)) {
	t.Helper()
	for _, e := range list {
		if e.Name == "" || e.Doc == "" || len(e.Managers) == 0 {
			t.Errorf("entry %+v lacks a name, a sentence or a load manager", e)
		}
		for _, m := range managers {
			fits := slices.Contains(e.Managers, m)
			for _, name := range []string{e.Name, strings.ToLower(e.Name), e.Class} {
				if name == "" || !fits && name != e.Class {
					continue
				}
				if got, err := find(name, m); fits != (err == nil && got.Class == e.Class && got.Name == e.Name) {
					t.Errorf("%q for %s is %q, %v", name, m, got.Name, err)
				}
			}
		}
	}
}

// TestRepairs: every option of every load manager can be named and switches that option on, and nothing else can be named.
func TestRepairs(t *testing.T) {
	want := make(map[string]bool)
	for _, options := range []any{extensible.Options{}, modular.Options{}, simple.Options{}} {
		for i := range reflect.TypeOf(options).NumField() {
			name := reflect.TypeOf(options).Field(i).Name
			want[strings.ToLower(name[:1])+name[1:]] = true
		}
	}
	names := strategies.Repairs()
	if len(names) != len(want) || !slices.IsSorted(names) {
		t.Errorf("%d names for %d options: %v", len(names), len(want), names)
	}
	for _, name := range names {
		if !want[name] {
			t.Errorf("%q is no option", name)
		}
		if _, err := strategies.Registry([]string{name}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", "CountSwapGain", "countswapgain", "countSwapGain ", "options"} {
		if _, err := strategies.Registry([]string{name}); err == nil || !strings.Contains(err.Error(), strings.Join(names, ", ")) {
			t.Errorf("%q: error is %v; it must list all names", name, err)
		}
	}
}

// TestRepairsArrive: the strategies and load managers of a registry have the options that were named, and those alone.
func TestRepairsArrive(t *testing.T) {
	r, err := strategies.Registry([]string{"countSwapGain", "avoidOverloaded", "exactBudget", "countSwapGain"})
	if err != nil {
		t.Fatal(err)
	}
	set := settings.Defaults()
	of := func(x any) any {
		v := reflect.Indirect(reflect.ValueOf(x))
		return v.FieldByName("Options").Interface()
	}
	xo, mo := extensible.Options{CountSwapGain: true, AvoidOverloaded: true}, modular.Options{AvoidOverloaded: true, ExactBudget: true}
	for _, e := range r.Shedders {
		if got := of(e.New(set)); got != any(xo) && got != any(mo) {
			t.Errorf("%s has %+v", e.Name, got)
		}
	}
	for manager, want := range map[string]any{extensible.Name: xo, modular.Name: mo, simple.Name: simple.Options{}} {
		e, err := r.Manager(manager)
		if err != nil {
			t.Fatal(err)
		}
		m, err := e.New(plan.Parts{Settings: set, Shedder: modular.ThresholdShedder{}, Placer: modular.RoundRobinBrokerSelector{}})
		if err != nil {
			t.Fatal(err)
		}
		if got := of(m); got != want {
			t.Errorf("%s has %+v, want %+v", manager, got, want)
		}
	}
}

// TestEverythingIsMade: every choice makes something that works on a cluster without brokers.
func TestEverythingIsMade(t *testing.T) {
	r, err := strategies.Registry(strategies.Repairs())
	if err != nil {
		t.Fatal(err)
	}
	snap := threeBrokers()
	snap.Brokers, snap.Bundles = nil, nil
	snap.Index()
	for _, e := range r.Managers {
		parts := plan.Parts{Settings: snap.Settings}
		if e.Name == modular.Name { // the others have defaults, or strategies of their own
			parts.Shedder, parts.Placer = modular.AvgShedder{}, modular.AvgShedder{}
		}
		m, err := e.New(parts)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := m.Shed(snap, m.NewState(), nil, nil); len(p.Decisions) > 0 || p.Outcome.Code == "" {
			t.Errorf("%s: %+v", e.Name, p)
		}
	}
	for _, e := range r.Shedders {
		if p, _ := e.New(snap.Settings).Shed(snap, nil, nil); len(p.Decisions) > 0 || p.Outcome.Code == "" {
			t.Errorf("%s: %+v", e.Name, p)
		}
	}
	for _, e := range r.Placers {
		if i, _ := e.New(snap.Settings).Place(snap, "t/n/0x00000000_0xffffffff", nil, nil, nil, nil); i != -1 {
			t.Errorf("%s chose %d of nobody", e.Name, i)
		}
	}
}
