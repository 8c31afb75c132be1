package settings

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestDefaultsAsRecorded compares the defaults with those that a ServiceConfiguration of Pulsar 4.2.4 has.
func TestDefaultsAsRecorded(t *testing.T) {
	text, err := os.ReadFile("testdata/config_defaults.json")
	if err != nil {
		t.Fatal(err)
	}
	var recorded map[string]json.RawMessage
	if err := json.Unmarshal(text, &recorded); err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(Defaults()).Elem()
	found := 0
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("key")
		raw, ok := recorded[key]
		if !ok {
			continue
		}
		found++
		want := reflect.New(v.Type().Field(i).Type) // null leaves the zero value
		if err := json.Unmarshal(raw, want.Interface()); err != nil {
			t.Errorf("%s: recorded %s does not fit the field: %v", key, raw, err)
			continue
		}
		if diff := cmp.Diff(want.Elem().Interface(), v.Field(i).Interface(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: default differs (-Pulsar +Ballast):\n%s", key, diff)
		}
	}
	if found != len(recorded) {
		t.Errorf("%d of %d recorded keys are settings", found, len(recorded))
	}
}
