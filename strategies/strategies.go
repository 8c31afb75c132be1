// Package strategies is the one place where load managers and strategies are registered. A new strategy is one file in its
// manager's package and one entry in that package's list.
package strategies

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
)

// repairs are the options of the load managers, under the names that ballastRepairs takes.
type repairs struct {
	extensible extensible.Options
	modular    modular.Options
	simple     simple.Options
}

// parse switches on the options that are named. One name switches on every option of that name.
func (r *repairs) parse(names []string) error {
	for _, name := range names {
		found := false
		for _, options := range r.all() {
			v := reflect.ValueOf(options).Elem()
			for i := range v.NumField() {
				if repairName(v.Type().Field(i).Name) == name {
					v.Field(i).SetBool(true)
					found = true
				}
			}
		}
		if !found {
			return fmt.Errorf("ballastRepairs names %q: it must be one of %s", name, strings.Join(Repairs(), ", "))
		}
	}
	return nil
}

func (r *repairs) all() []any { return []any{&r.extensible, &r.modular, &r.simple} }

// repairName is the name of an option as a setting: CountSwapGain is countSwapGain.
func repairName(field string) string {
	first, n := utf8.DecodeRuneInString(field)
	return string(unicode.ToLower(first)) + field[n:]
}

// Repairs are the names that ballastRepairs takes.
func Repairs() []string {
	var out []string
	for _, options := range new(repairs).all() {
		t := reflect.TypeOf(options).Elem()
		for i := range t.NumField() {
			if name := repairName(t.Field(i).Name); !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Registry is everything that can be chosen, with the repairs that are named switched on.
func Registry(repaired []string) (*plan.Registry, error) {
	var r repairs
	if err := r.parse(repaired); err != nil {
		return nil, err
	}
	return &plan.Registry{
		Managers: []plan.Entry[plan.NewManager]{extensibleEntry(r.extensible), modular.ManagerEntry(r.modular), simple.ManagerEntry(r.simple)},
		Shedders: slices.Concat(extensible.Shedders(r.extensible), modular.Shedders(r.modular)),
		Placers:  slices.Concat(extensible.Placers(r.extensible), modular.Placers(r.modular)),
	}, nil
}

// Choice is what was chosen, by short names; Shedder and Placer are "" for a manager that has its own.
type Choice struct {
	Manager, Shedder, Placer string
}

// New makes the load manager that the settings name, of the strategies that they name.
//
// Pulsar's Extensible manager does not read the placement key, and it uses TransferShedder whenever the shedding key names a
// class that does not fit, as the default does. Here a key that was left at its default means what the cluster does with
// it; a key that somebody set must fit.
func New(l *settings.Layered) (plan.Manager, Choice, error) {
	r, err := Registry(l.Ballast.BallastRepairs)
	if err != nil {
		return nil, Choice{}, err
	}
	// A blank class is the Simple manager, in Pulsar too.
	manager, err := r.Manager(cmp.Or(strings.TrimSpace(l.Settings.LoadManagerClassName), simple.Name))
	if err != nil {
		return nil, Choice{}, fmt.Errorf("%s: %w", managerKey, err)
	}
	return build(l, r, manager)
}

// The keys that choose.
const (
	managerKey  = "loadManagerClassName"
	sheddingKey = "loadBalancerLoadSheddingStrategy"
	placingKey  = "loadBalancerLoadPlacementStrategy"
)

// build makes a load manager of the strategies that the settings name.
func build(l *settings.Layered, r *plan.Registry, manager plan.Entry[plan.NewManager]) (plan.Manager, Choice, error) {
	parts, choice := plan.Parts{Settings: l.Settings}, Choice{Manager: manager.Name}
	if names := r.ShedderNames(manager.Name); len(names) > 0 {
		name := l.Settings.LoadBalancerLoadSheddingStrategy
		if manager.Name == extensible.Name && !asked(l, sheddingKey) {
			name = "TransferShedder"
		}
		shedder, err := r.Shedder(name, manager.Name)
		if err != nil {
			return nil, Choice{}, fmt.Errorf("%s: %w", sheddingKey, err)
		}
		parts.Shedder, choice.Shedder = shedder.New(l.Settings), shedder.Name
	} else if name := l.Settings.LoadBalancerLoadSheddingStrategy; asked(l, sheddingKey) && !untouched(l, sheddingKey) {
		return nil, Choice{}, fmt.Errorf("%s is %s: the %s load manager sheds by its own rules and takes no strategy; leave the key out, "+
			"or %s, so that the strategy chooses the load manager that has it", sheddingKey, name, manager.Name, managerKey)
	}
	if names := r.PlacerNames(manager.Name); len(names) > 0 {
		name := l.Settings.LoadBalancerLoadPlacementStrategy
		if manager.Name == extensible.Name && !asked(l, placingKey) {
			name = "LeastResourceUsageWithWeight"
		}
		placer, err := r.Placer(name, manager.Name)
		if err != nil {
			return nil, Choice{}, fmt.Errorf("%s: %w", placingKey, err)
		}
		parts.Placer, choice.Placer = placer.New(l.Settings), placer.Name
	}
	m, err := manager.New(parts)
	if err != nil {
		return nil, Choice{}, fmt.Errorf("load manager %s: %w", manager.Name, err)
	}
	return m, choice, nil
}

// asked says whether the operator of Ballast set the key; what the cluster runs with is taken as the cluster takes it.
func asked(l *settings.Layered, key string) bool {
	v, ok := l.Value(key)
	return ok && v.Origin != settings.OriginDefault && v.Origin != settings.OriginCluster
}

// untouched says whether a key is blank or has its default of any version, in the words that broker.conf has for it: a cluster's
// whole broker.conf names it whether or not its load manager reads it, and is often kept when the cluster is upgraded.
func untouched(l *settings.Layered, key string) bool {
	v, ok := l.Value(key)
	text := strings.TrimSpace(v.Text)
	return ok && (text == "" || text == v.Key.Default || text == v.Key.Default5)
}

func extensibleEntry(o extensible.Options) plan.Entry[plan.NewManager] {
	return plan.Entry[plan.NewManager]{Name: extensible.Name, Class: extensible.Class,
		Doc: "Load data and ownership are on topics; every broker places, the leader transfers bundles between brokers.",
		New: func(p plan.Parts) (plan.Manager, error) { return extensible.New(p.Shedder, p.Placer, o), nil }}
}
