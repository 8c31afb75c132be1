package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/diagnose"
	"github.com/ballast-lb/ballast/settings"
)

// TestConnections: what ballastBrokerAddresses and ballastZooKeeper name is looked for before it is needed.
func TestConnections(t *testing.T) {
	l := layered(t, "ballastBrokerAddresses", "b:8080=c:1,a:8080=c:2", "ballastZooKeeper", "127.0.0.1:1")
	keeper, err := newZooKeeper(l.Ballast, quietLogger())
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close()
	e := &examination{session: &session{settings: l, keeper: keeper, logger: quietLogger()}}
	e.connections(t.Context())
	if !slices.Equal(e.facts.Addressed, []string{"a:8080", "b:8080"}) || !strings.Contains(e.facts.Keeper, "127.0.0.1:1") {
		t.Errorf("%q, %q", e.facts.Addressed, e.facts.Keeper)
	}
	var findings []string
	for _, f := range diagnose.Check(e.facts) {
		findings = append(findings, f.Why.Code)
	}
	if !slices.Contains(findings, diagnose.NoZooKeeper.ID) {
		t.Errorf("%q", findings)
	}
	e = &examination{session: &session{settings: &settings.Layered{Ballast: settings.DefaultBallast()}}}
	if e.connections(t.Context()); e.facts.Addressed != nil || e.facts.Keeper != "" {
		t.Errorf("by default: %+v", e.facts)
	}
}
