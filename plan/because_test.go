package plan

import (
	"math"
	"testing"
)

func TestBecause(t *testing.T) {
	for _, c := range []struct {
		template string
		numbers  []Number
		want     string
	}{
		{"", nil, ""},
		{"plain", []Number{N("a", 1)}, "plain"},
		{"{a} {b}{a}", []Number{N("a", 1), S("b", "x")}, "1 x1"},
		{"{a} of {missing}", []Number{N("a", 0.25)}, "0.25 of {missing}"},
		{"open {a", []Number{N("a", 1)}, "open {a"},
		{"{{a}}", []Number{N("a", 1)}, "{1}"},
		{"{}", nil, "{}"},
		{"{a}", []Number{S("a", "{b}"), N("b", 7)}, "{b}"}, // what is filled in is not a template
		{"{a}", []Number{N("a", math.NaN())}, "NaN"},
		{"{a}", []Number{N("a", 123456789)}, "123456789"},
		{"{a}", []Number{N("a", 1.23456789)}, "1.23457"},
		{"{a}", []Number{N("a", 1e300)}, "1e+300"},
	} {
		r := Code{ID: "X", Template: c.template}.Because(c.numbers...)
		if r.Text != c.want || r.Code != "X" || len(r.Numbers) != len(c.numbers) {
			t.Errorf("%q: %+v, want %q", c.template, r, c.want)
		}
	}
}
