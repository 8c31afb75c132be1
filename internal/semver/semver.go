// Package semver orders broker versions as Pulsar's version filters do: strict semantic versions
// x.y.z[-pre-release][+build], of which Pulsar 5 compares the build as well.
package semver

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/semver"
)

// ErrVersion is wrapped by the error about a version that is missing or not a strict semantic version.
var ErrVersion = errors.New("not a strict semantic version")

// Check says what is wrong with a version, nil if nothing is.
func Check(version string) error {
	v := "v" + version
	if !semver.IsValid(v) || semver.Canonical(v)+semver.Build(v) != v {
		return fmt.Errorf("version %q: %w; right is x.y.z[-pre-release][+build]", version, ErrVersion)
	}
	return nil
}

// Major is the first number of a version, 0 if it has none.
func Major(version string) int {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}

// Compare orders two versions that Check accepts, by precedence and, if builds count, by build metadata: none is lowest,
// identifiers compare like those of pre-releases, and of two lists that begin alike the shorter is lower.
func Compare(a, b string, builds bool) int {
	if c := semver.Compare("v"+a, "v"+b); c != 0 || !builds {
		return c
	}
	return compareBuilds(semver.Build("v"+a), semver.Build("v"+b))
}

func compareBuilds(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(a), len(b))
	}
	x, y := strings.Split(a[1:], "."), strings.Split(b[1:], ".")
	for i := range min(len(x), len(y)) {
		if c := compareIdentifiers(x[i], y[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// compareIdentifiers orders numbers by value and below words, words by their bytes.
func compareIdentifiers(a, b string) int {
	numA, numB := isNumber(a), isNumber(b)
	switch {
	case numA && numB:
		a, b = strings.TrimLeft(a, "0"), strings.TrimLeft(b, "0")
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	case numA:
		return -1
	case numB:
		return 1
	}
	return cmp.Compare(a, b)
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" }
