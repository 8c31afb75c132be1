package event_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/event"
	"github.com/google/go-cmp/cmp"
)

// TestSchemas compares the definitions with what the brokers of three versions had registered.
func TestSchemas(t *testing.T) {
	for pulsar, file := range map[string]string{
		"4.2.4": "testdata/samples/extensible/schemas.txt",
		"4.0.7": "testdata/samples/older/extensible-407-schemas.txt",
		"3.0.7": "testdata/samples/older/extensible-307-schemas.txt",
	} {
		found := 0
		for n, line := range lines(t, file) {
			var registered struct {
				Type       string
				Data       string
				Properties map[string]string
			}
			if json.Unmarshal(line, &registered) != nil || !strings.Contains(registered.Data, "broker.loadbalance") {
				continue // answers to other questions
			}
			found++
			var definition struct{ Name string }
			mustDecode(t, []byte(registered.Data), &definition)
			got, ok := event.SchemaOf(definition.Name, pulsar)
			if !ok || registered.Type != "JSON" {
				t.Errorf("%s: no schema of %s, type %s", pulsar, definition.Name, registered.Type)
			}
			if diff := cmp.Diff(registered.Data, got.Definition); diff != "" {
				t.Errorf("%s line %d: %s differs (-registered +known):\n%s", pulsar, n, definition.Name, diff)
			}
			if diff := cmp.Diff(registered.Properties, got.Properties()); diff != "" {
				t.Errorf("%s: properties of %s differ (-registered +known):\n%s", pulsar, definition.Name, diff)
			}
		}
		if found < 2 {
			t.Errorf("%s: only %d schemas", pulsar, found)
		}
	}
}

func TestSchemasOf(t *testing.T) {
	for class, want := range map[string]int{
		"BrokerLoadData": 2, "TopBundlesLoadData": 1, "ServiceUnitStateData": 2, "BrokerLookupData": 2, "LoadReport": 0,
	} {
		if got := event.SchemasOf(class); len(got) != want {
			t.Errorf("%d schemas of %s, want %d", len(got), class, want)
		}
	}
	if s, ok := event.SchemaOf("BrokerLoadData", "9.9.9"); ok {
		t.Errorf("schema of a version that nobody saw: %s", s.Definition)
	}
	changed := event.SchemasOf("BrokerLoadData")[0]
	changed.Seen[0] = "x"
	if _, ok := event.SchemaOf("BrokerLoadData", "5.0.1"); !ok {
		t.Error("a caller changed the known schemas")
	}
}
