package manager_test

import (
	"testing"

	"github.com/ballast-lb/ballast/manager"
)

func TestMoved(t *testing.T) {
	const s, m, e, u = manager.Simple, manager.Modular, manager.Extensible, manager.Unknown
	for _, x := range []struct {
		name     string
		followed manager.Kind
		runs     []manager.Kind
		to       manager.Kind
	}{
		{"nobody answers", m, nil, u},
		{"nothing changed", m, []manager.Kind{m, m}, u},
		{"the first broker is through", m, []manager.Kind{e, m, m}, u},
		{"the last broker is not", m, []manager.Kind{e, e, m}, u},
		{"all are through", m, []manager.Kind{e, e, e}, e},
		{"and back", e, []manager.Kind{m, m}, m},
		{"Extensible to Simple", e, []manager.Kind{s}, s},
		{"Modular to Simple", m, []manager.Kind{s, s}, s},
		{"two others", m, []manager.Kind{e, s}, u},
		{"one that nobody knows", m, []manager.Kind{e, u}, u},
		{"none known", m, []manager.Kind{u}, u},
	} {
		if to, moved := manager.Moved(x.followed, x.runs); to != x.to || moved != (x.to != u) {
			t.Errorf("%s: %v, %v, want %v", x.name, to, moved, x.to)
		}
	}
}
