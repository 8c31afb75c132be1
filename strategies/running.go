package strategies

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ballast-lb/ballast/extensible"
	"github.com/ballast-lb/ballast/modular"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simple"
)

// Running is the short name of the load manager that a cluster with this class runs; a blank class is the Simple one.
func Running(class string) (string, error) {
	r, err := Registry(nil)
	if err != nil {
		return "", err
	}
	m, err := r.Manager(cmp.Or(strings.TrimSpace(class), simple.Name))
	if err != nil {
		return "", fmt.Errorf("this cluster runs a load manager that Ballast does not know: %w", err)
	}
	return m.Name, nil
}

// For is New for a cluster that runs a load manager of this class, which need not be the one that decides: on Modular and Simple
// clusters any can, as every kind of load data is made from their reports. What the operator sets in Ballast's settings
// decides: a loadManagerClassName, or else a shedding strategy, which chooses the load manager that has it. Otherwise it is
// what the cluster runs. Extensible brokers give no load reports, so on their clusters only the Extensible one can decide.
func For(l *settings.Layered, class string) (plan.Manager, Choice, error) {
	running, err := Running(class)
	if err != nil {
		return nil, Choice{}, err
	}
	r, err := Registry(l.Ballast.BallastRepairs)
	if err != nil {
		return nil, Choice{}, err
	}
	name := running
	switch {
	case asked(l, managerKey):
		name = cmp.Or(strings.TrimSpace(l.Settings.LoadManagerClassName), simple.Name)
	case running != extensible.Name && asked(l, sheddingKey):
		if name, err = having(r, l.Settings.LoadBalancerLoadSheddingStrategy, running); err != nil {
			return nil, Choice{}, fmt.Errorf("%s: %w", sheddingKey, err)
		}
	}
	m, err := r.Manager(name)
	if err != nil {
		return nil, Choice{}, fmt.Errorf("%s: %w", managerKey, err)
	}
	if running == extensible.Name && m.Name != running {
		return nil, Choice{}, fmt.Errorf("%s is %s, but this cluster runs the extensible load manager, whose brokers give no load reports for the %s one to decide on: "+
			"it must be extensible, or left to the cluster", managerKey, l.Settings.LoadManagerClassName, m.Name)
	}
	return build(l, r, m)
}

// having is the load manager that has a shedding strategy: the one that runs, if that has it.
func having(r *plan.Registry, strategy, running string) (string, error) {
	for _, name := range []string{running, modular.Name, extensible.Name} {
		if _, err := r.Shedder(strategy, name); err == nil {
			return name, nil
		}
	}
	_, err := r.Shedder(strategy, "")
	return "", err
}

// ModularOptions are the repairs of the Modular load manager among those that are named.
func ModularOptions(repaired []string) (modular.Options, error) {
	var r repairs
	err := r.parse(repaired)
	return r.modular, err
}
