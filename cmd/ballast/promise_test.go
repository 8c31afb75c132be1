package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/manager"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/settings"
)

// The plan of a drain says what can be promised of destinations, where the cluster is not bound by them.
func TestADrainPromises(t *testing.T) {
	for class, code := range map[string]string{manager.Modular.Class(): control.DestinationIsHint.ID, manager.Simple.Class(): control.DestinationIgnored.ID,
		manager.Extensible.Class(): ""} {
		s := &session{class: class, settings: &settings.Layered{Settings: settings.Defaults(), Ballast: settings.DefaultBallast()}}
		got := s.promise(2, nil)
		if (code == "") != (len(got) == 0) || len(got) > 0 && got[0].Why.Code != code {
			t.Errorf("%s: %v, want %s", class, got, code)
		}
		if none := s.promise(0, nil); len(none) > 0 {
			t.Errorf("%s: a plan without moves promises %v", class, none)
		}
		var out bytes.Buffer
		printOperated(&out, &operated{Plan: []plan.Decision{}, Advice: got})
		if strings.Contains(out.String(), "Advice") != (code != "") || !strings.Contains(out.String(), code) {
			t.Errorf("%s: it prints %s", class, out.String())
		}
	}
}
