package event

import (
	"embed"
	"fmt"
	"slices"
	"strings"
)

//go:embed schemas/*.avsc
var schemaFiles embed.FS

// Schema is a schema as brokers register it on a system topic: of type JSON, without a name.
type Schema struct {
	Class      string   // Pulsar's class without its package, such as "BrokerLoadData"
	Seen       []string // Pulsar versions whose brokers register it, newest first
	Definition string   // Avro definition, exactly the brokers' text
}

// Properties are the schema's properties, which are the same for all. The caller may change the map.
func (Schema) Properties() map[string]string {
	return map[string]string{"__alwaysAllowNull": "true", "__jsr310ConversionEnabled": "false"}
}

// The definitions, newest first within a class. They are the brokers' own: on a topic of theirs nothing else is ever declared.
var schemas = []Schema{
	load("BrokerLoadData", "BrokerLoadData", "5.0.1", "4.2.4", "4.0.7"),
	load("BrokerLoadData", "BrokerLoadData-3.0", "3.0.7"), // counters of 32 bits
	load("TopBundlesLoadData", "TopBundlesLoadData", "5.0.1", "4.2.4", "4.0.7"),
	load("ServiceUnitStateData", "ServiceUnitStateData", "5.0.1", "4.2.4"),
	load("ServiceUnitStateData", "ServiceUnitStateData-4.0", "4.0.7", "3.0.7"), // a child's broker is an empty record
	load("BrokerLookupData", "BrokerLookupData-5.0", "5.0.1"),                  // with brokerId
	load("BrokerLookupData", "BrokerLookupData", "4.2.4"),
}

func load(class, file string, seen ...string) Schema {
	text, err := schemaFiles.ReadFile("schemas/" + file + ".avsc")
	if err != nil {
		panic(fmt.Sprintf("event: schema of %s: %v", class, err)) // a fault in how this package was built
	}
	return Schema{Class: class, Seen: seen, Definition: strings.TrimSuffix(string(text), "\n")}
}

// SchemasOf returns the known schemas of a class (BrokerLoadData, TopBundlesLoadData, ServiceUnitStateData or
// BrokerLookupData), newest first; none for other classes. What Ballast publishes onto a topic must be declared as the one
// of them that is registered there.
func SchemasOf(class string) []Schema {
	var of []Schema
	for _, s := range schemas {
		if s.Class == class {
			s.Seen = slices.Clone(s.Seen)
			of = append(of, s)
		}
	}
	return of
}

// SchemaOf returns the schema that brokers of the given Pulsar version register for a class; false if it is not known for
// sure. Versions are compared as text.
func SchemaOf(class, pulsar string) (Schema, bool) {
	for _, s := range SchemasOf(class) {
		if slices.Contains(s.Seen, pulsar) {
			return s, true
		}
	}
	return Schema{}, false
}
