package settings

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// The prefixes of environment variables that hold settings.
const (
	pulsarPrefix  = "PULSAR_PREFIX_" // then the key: as Pulsar's images have it
	ballastPrefix = "BALLAST_"       // then the key in upper snake case
)

// serviceVariable are the variables that Kubernetes makes for a service called ballast or ballast-...
var serviceVariable = regexp.MustCompile(
	`^BALLAST(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$`)

var byVariable = func() map[string]string {
	names := make(map[string]string)
	for _, keys := range [][]Key{pulsarKeys, ballastKeys} {
		for _, k := range keys {
			names[k.Variable()] = k.Name
		}
	}
	return names
}()

// Variable is the name of the environment variable of a key: BALLAST_ and the key in upper snake case
// (BALLAST_LOAD_BALANCER_CPU_RESOURCE_WEIGHT); a leading "ballast" of the key is not repeated (BALLAST_MODE).
func (k Key) Variable() string {
	return ballastPrefix + strings.TrimPrefix(upperSnake(k.Name), ballastPrefix)
}

// Environment makes layers of "NAME=value" strings (os.Environ): one of the PULSAR_PREFIX_ variables, one of the
// BALLAST_ ones, which win. Reserved are names that belong to somebody else, such as BALLAST_CONFIG.
// An unknown BALLAST_ variable is an error; those that Kubernetes makes for services are passed over.
func Environment(environ []string, reserved ...string) ([]Layer, error) {
	environ = slices.Sorted(slices.Values(environ))
	pulsar := Layer{Origin: OriginEnvironment, Scope: ScopeBroker}
	own := Layer{Origin: OriginEnvironment}
	var faults []error
	for _, e := range environ {
		name, text, _ := strings.Cut(e, "=")
		if key, ok := strings.CutPrefix(name, pulsarPrefix); ok {
			pulsar.Entries = append(pulsar.Entries, Entry{Key: key, Text: text, Where: name})
			continue
		}
		if !strings.HasPrefix(name, ballastPrefix) || slices.Contains(reserved, name) || serviceVariable.MatchString(name) {
			continue
		}
		key, ok := byVariable[name]
		if !ok {
			faults = append(faults, unknownVariable(name))
			continue
		}
		own.Entries = append(own.Entries, Entry{Key: key, Text: text, Where: name})
	}
	return []Layer{pulsar, own}, errors.Join(faults...)
}

func unknownVariable(name string) error {
	if near := nearest(name, slices.Sorted(maps.Keys(byVariable))); near != "" {
		return fmt.Errorf("unknown environment variable %s: did you mean %s?", name, near)
	}
	return fmt.Errorf("unknown environment variable %s: variables that begin with %s must name a setting", name, ballastPrefix)
}

// upperSnake turns dataTTLInSeconds into DATA_TTL_IN_SECONDS.
func upperSnake(name string) string {
	letters := []rune(name)
	var b strings.Builder
	for i, c := range letters {
		if i > 0 && unicode.IsUpper(c) {
			endOfWord := !unicode.IsUpper(letters[i-1])
			endOfAcronym := i+1 < len(letters) && unicode.IsLower(letters[i+1])
			if endOfWord || endOfAcronym {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToUpper(c))
	}
	return b.String()
}
