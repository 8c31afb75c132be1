package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ballast-lb/ballast/settings"
)

// Entry is one load manager or strategy that can be chosen by name.
type Entry[T any] struct {
	Name     string   // short name, "TransferShedder"
	Class    string   // Pulsar's class name; "" for what only Ballast has
	Managers []string // short names of the load managers it works with; empty for load managers
	Doc      string   // one sentence: what it looks at and what it does
	New      T        // makes one
}

// Parts are what a load manager is put together from.
type Parts struct {
	Settings *settings.Settings
	Shedder  Shedder // nil when the manager has shedding of its own (Simple)
	Placer   Placer  // nil likewise
}

// NewManager makes a load manager.
type NewManager func(Parts) (Manager, error)

// NewShedder makes a shedding strategy.
type NewShedder func(*settings.Settings) Shedder

// NewPlacer makes a placement strategy.
type NewPlacer func(*settings.Settings) Placer

// Registry is everything that can be chosen. It is filled explicitly, in one place: package strategies.
type Registry struct {
	Managers []Entry[NewManager]
	Shedders []Entry[NewShedder]
	Placers  []Entry[NewPlacer]
}

// Manager finds a load manager by Pulsar's class name or its short name, ignoring case in the short name.
func (r *Registry) Manager(name string) (Entry[NewManager], error) {
	return find("load manager", r.Managers, name, "")
}

// Shedder finds a shedding strategy that works with the load manager (short name).
func (r *Registry) Shedder(name, manager string) (Entry[NewShedder], error) {
	return find("shedding strategy", r.Shedders, name, manager)
}

// Placer finds a placement strategy that works with the load manager (short name).
func (r *Registry) Placer(name, manager string) (Entry[NewPlacer], error) {
	return find("placement strategy", r.Placers, name, manager)
}

// find never falls back: Pulsar's silent fall-backs are reported faults (a mistyped class quietly became another manager).
func find[T any](what string, list []Entry[T], name, manager string) (Entry[T], error) {
	var misfit *Entry[T] // two managers may have strategies of one short name
	for i, e := range list {
		if !strings.EqualFold(e.Name, name) && (e.Class == "" || e.Class != name) {
			continue
		}
		if manager == "" || slices.Contains(e.Managers, manager) {
			return e, nil
		}
		misfit = &list[i]
	}
	possible := strings.Join(names(list, manager), ", ")
	if misfit != nil {
		return Entry[T]{}, fmt.Errorf("%s %q works with the %s load manager, not with %s: possible here are %s",
			what, name, strings.Join(misfit.Managers, " and "), manager, possible)
	}
	if manager != "" {
		what += " for the " + manager + " load manager"
	}
	return Entry[T]{}, fmt.Errorf("%s is %q: it must be one of %s, or Pulsar's class name of one", what, name, possible)
}

func names[T any](list []Entry[T], manager string) []string {
	var out []string
	for _, e := range list {
		if manager == "" || slices.Contains(e.Managers, manager) {
			out = append(out, e.Name)
		}
	}
	return out
}

// ShedderNames are the shedding strategies that work with the load manager; none when it has shedding of its own.
func (r *Registry) ShedderNames(manager string) []string { return names(r.Shedders, manager) }

// PlacerNames are the placement strategies that work with the load manager; none when it has placement of its own.
func (r *Registry) PlacerNames(manager string) []string { return names(r.Placers, manager) }
