package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/settings"
)

// Float is a double in a vector: a JSON number, or one of the strings "NaN", "Infinity" and "-Infinity".
// It is written as Pulsar writes it; null and absence leave it as it is.
type Float float64

// UnmarshalJSON reads a number or one of the three strings.
func (f *Float) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null":
		return nil
	case `"NaN"`:
		*f = Float(math.NaN())
	case `"Infinity"`:
		*f = Float(math.Inf(1))
	case `"-Infinity"`:
		*f = Float(math.Inf(-1))
	default:
		x, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return fmt.Errorf("%s is not a double (a number, \"NaN\", \"Infinity\" or \"-Infinity\")", b)
		}
		*f = Float(x)
	}
	return nil
}

// MarshalJSON writes a number that reads back as the same double, or one of the three strings.
func (f Float) MarshalJSON() ([]byte, error) {
	x := float64(f)
	switch {
	case math.IsNaN(x):
		return []byte(`"NaN"`), nil
	case math.IsInf(x, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(x, -1):
		return []byte(`"-Infinity"`), nil
	}
	return strconv.AppendFloat(nil, x, 'g', -1, 64), nil
}

// Resource is a resource in a vector, [usage, limit]; absent it is [0, 0].
type Resource [2]Float

// Usage is the resource as the decisions take it.
func (r Resource) Usage() event.ResourceUsage {
	return event.ResourceUsage{Usage: float64(r[0]), Limit: float64(r[1])}
}

// Settings are the configuration of a line on top of the defaults. Keys that are no settings (see Option) are left out.
func (l Line) Settings() (*settings.Settings, error) {
	s := settings.Defaults()
	config, err := l.config()
	if err != nil {
		return nil, err
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		key := v.Type().Field(i).Tag.Get("key")
		raw, ok := config[key]
		if !ok {
			continue
		}
		if err := setTyped(v.Field(i), raw); err != nil {
			return nil, fmt.Errorf("config key %s: %w", key, err)
		}
	}
	return s, nil
}

// Option decodes one key of the configuration of any name, such as storageType, and says whether it is there.
func (l Line) Option(key string, into any) (bool, error) {
	config, err := l.config()
	if err != nil {
		return false, err
	}
	raw, ok := config[key]
	if !ok {
		return false, nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return true, fmt.Errorf("config key %s: %w", key, err)
	}
	return true, nil
}

func (l Line) config() (map[string]json.RawMessage, error) {
	var config map[string]json.RawMessage
	if len(l.Config) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(l.Config, &config); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return config, nil
}

// setTyped decodes a JSON value into a settings field; null keeps the default.
func setTyped(f reflect.Value, raw json.RawMessage) error {
	if string(raw) == "null" {
		return nil
	}
	if f.Kind() == reflect.Float64 {
		var x Float
		if err := x.UnmarshalJSON(bytes.TrimSpace(raw)); err != nil {
			return err
		}
		f.SetFloat(float64(x))
		return nil
	}
	return json.Unmarshal(raw, f.Addr().Interface())
}
