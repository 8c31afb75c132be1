// Package conformance holds Ballast's decisions against those recorded from the real classes of Apache Pulsar.
//
// A vector file is JSON lines, plain or gzip-compressed. Each line names a kind of decision, the configuration and the
// whole state it was taken from, and what Pulsar's class answered. The check of a kind takes the same decision in Go and
// says how the answers differ.
package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// The Pulsar versions whose decisions were recorded. Where they differ, both behaviours exist and the version chooses.
const (
	Pulsar4 = "4.2.4"
	Pulsar5 = "5.0.1"
)

// ErrUnknownKind is wrapped by the error about lines of a kind for which there is no check.
var ErrUnknownKind = errors.New("unknown kind of vector")

// Line is one recorded decision.
type Line struct {
	Kind     string          `json:"kind"`
	Seed     int64           `json:"seed"`
	Case     int64           `json:"case"`
	Scenario string          `json:"scenario"` // a label; never needed to decide
	Config   json.RawMessage `json:"config"`   // broker.conf keys with typed values, and a few switches of the resolver
	Input    json.RawMessage `json:"input"`    // the whole state
	Output   json.RawMessage `json:"output"`   // Pulsar's answer
}

// Check takes the decision of a line as the given Pulsar version (Pulsar4 or Pulsar5) takes it, and says how it differs
// from the recorded one: "" if it does not. A line that cannot be read is a difference, too.
type Check func(l Line, pulsar string) (diff string)

// Kinds returns the check of every kind. The kinds of each area are in a file of their own.
func Kinds() map[string]Check {
	all := make(map[string]Check)
	for _, area := range []map[string]Check{wireKinds, extensibleKinds, modularKinds} {
		maps.Copy(all, area)
	}
	return all
}

// checkVersion fills in the default version and refuses one that was never recorded.
func checkVersion(pulsar string) (string, error) {
	switch pulsar {
	case "":
		return Pulsar4, nil
	case Pulsar4, Pulsar5:
		return pulsar, nil
	}
	return "", fmt.Errorf("conformance: there are no vectors of Pulsar %q, only of %s and %s", pulsar, Pulsar4, Pulsar5)
}

// unknownKinds makes the error about lines without a check.
func unknownKinds(count map[string]int, known map[string]Check) error {
	if len(count) == 0 {
		return nil
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%q (%d lines)", kind, count[kind]))
	}
	return fmt.Errorf("%w: %s; known are %s", ErrUnknownKind, strings.Join(parts, ", "),
		strings.Join(slices.Sorted(maps.Keys(known)), ", "))
}
