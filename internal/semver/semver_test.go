package semver

import (
	"errors"
	"slices"
	"testing"
)

func TestCheck(t *testing.T) {
	for v, right := range map[string]bool{
		"4.2.4": true, "0.0.0": true, "10.20.30": true, "4.2.4-SNAPSHOT": true, "4.2.4-rc.1": true, "4.2.4+b1": true, "4.2.4-rc.1+b.01": true,
		"": false, "4.2": false, "4": false, "4.2.4.1": false, "v4.2.4": false, "04.2.4": false, "4.2.4-": false, "4.2.4+": false,
		"4.2.-1": false, "4.2.4-01": false, "x": false, "4.2.4 ": false, "4.2.4-a..b": false,
	} {
		err := Check(v)
		if (err == nil) != right {
			t.Errorf("%q: %v", v, err)
		}
		if err != nil && !errors.Is(err, ErrVersion) {
			t.Errorf("%q: %v does not wrap ErrVersion", v, err)
		}
	}
}

func TestCompare(t *testing.T) {
	ascending := []string{"2.10.0", "3.0.7", "4.2.4-alpha", "4.2.4-rc.2", "4.2.4-rc.10", "4.2.4", "4.2.4+1", "4.2.4+01.0", "4.2.4+2", "4.2.4+10", "4.2.4+b1", "4.2.4+b1.0", "4.2.4+b2", "4.10.0", "10.0.0"}
	if !slices.IsSortedFunc(ascending, func(a, b string) int { return Compare(a, b, true) }) {
		t.Error("not ascending with builds")
	}
	for i, a := range ascending {
		for j, b := range ascending {
			got, want := Compare(a, b, true), 0
			switch {
			case i < j:
				want = -1
			case i > j:
				want = 1
			}
			if got != want {
				t.Errorf("%s, %s: %d, want %d", a, b, got, want)
			}
		}
	}
	if Compare("4.2.4+b1", "4.2.4", false) != 0 || Compare("4.2.4+b1", "4.2.4+b2", false) != 0 {
		t.Error("builds count although they should not")
	}
	if Compare("4.2.4+001", "4.2.4+1", true) != 0 {
		t.Error("leading zeros count")
	}
}

func TestMajor(t *testing.T) {
	for v, want := range map[string]int{"5.0.1": 5, "4.2.4": 4, "": 0, "x.1": 0, "10": 10} {
		if got := Major(v); got != want {
			t.Errorf("%q: %d, want %d", v, got, want)
		}
	}
}
