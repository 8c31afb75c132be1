// Package load reads settings from files: properties (broker.conf, client.conf) with the parser of settings, YAML and JSON
// through koanf. It is the edge of settings, which itself does no I/O.
package load

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/v2"

	"github.com/ballast-lb/ballast/settings"
)

// File reads a file of settings, in which every key must be a known one. Its form follows from its name: .conf and
// .properties are properties, .yaml and .yml YAML, .json JSON, the last two flat maps of key to value.
func File(path string) (settings.Layer, error) {
	return read(path, settings.ScopeAll)
}

// BrokerConf reads a broker's configuration file: of its many keys only those of settings.Settings count.
func BrokerConf(path string) (settings.Layer, error) {
	return read(path, settings.ScopeBroker)
}

// ClientConf reads a client.conf: only the keys of settings.Ballast count (addresses, authentication, TLS).
func ClientConf(path string) (settings.Layer, error) {
	return read(path, settings.ScopeClient)
}

func read(path string, scope settings.Scope) (settings.Layer, error) {
	layer := settings.Layer{Origin: settings.OriginFile, Scope: scope}
	var err error
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".conf", ".properties":
		layer.Entries, err = properties(path)
	case ".yaml", ".yml":
		layer.Entries, err = mapped(path, yaml.Parser())
	case ".json":
		layer.Entries, err = mapped(path, jsonParser{})
	default:
		err = fmt.Errorf("configuration file %s: its name ends in %q: it must end in .conf, .properties, .yaml, .yml or .json", path, ext)
	}
	if err != nil {
		return settings.Layer{}, err
	}
	return layer, nil
}

func properties(path string) ([]settings.Entry, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration file: %w", err)
	}
	return settings.ParseProperties(path, string(text))
}

// noDelimiter cannot occur in a key, so that koanf takes keys as they are.
const noDelimiter = "\x00"

func mapped(path string, parser koanf.Parser) ([]settings.Entry, error) {
	k := koanf.New(noDelimiter)
	if err := k.Load(file.Provider(path), parser); err != nil {
		return nil, fmt.Errorf("read configuration file %s: %w", path, err)
	}
	raw := k.Raw()
	keys := make([]string, 0, len(raw))
	for key := range raw {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var entries []settings.Entry
	for _, key := range keys {
		text, err := textOf(raw[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", path, key, err)
		}
		entries = append(entries, settings.Entry{Key: key, Text: text, Where: path})
	}
	return entries, nil
}

var errValue = errors.New("it must be a text, a number, true, false, or a list of these")

// textOf is a decoded value as text. An item of a list must not hold a comma, which would make it two.
func textOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	case int:
		return strconv.Itoa(v), nil
	case json.Number:
		return numberText(v)
	case float64:
		return floatText(v), nil
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			text, err := textOf(item)
			if _, nested := item.([]any); err != nil || nested {
				return "", errValue
			}
			if strings.Contains(text, ",") {
				return "", fmt.Errorf("list item %q must not hold a comma", text)
			}
			items[i] = text
		}
		return strings.Join(items, ","), nil
	}
	return "", errValue
}

// floatText writes 1e3 as 1000, so that it can be a whole number.
func floatText(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

func numberText(n json.Number) (string, error) {
	if _, err := n.Int64(); err == nil {
		return n.String(), nil
	}
	x, err := n.Float64()
	if err != nil {
		return "", fmt.Errorf("number %s: %w", n, err)
	}
	return floatText(x), nil
}

// jsonParser is a koanf.Parser that keeps whole numbers whole.
type jsonParser struct{}

// Unmarshal decodes one JSON object, in which no key may occur twice.
func (jsonParser) Unmarshal(b []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, cmp.Or(err, errors.New("it must be one JSON object"))
	}
	m := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key := t.(string) // the decoder takes nothing else here
		if _, twice := m[key]; twice {
			return nil, fmt.Errorf("key %q occurs twice", key)
		}
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		m[key] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more after the JSON object")
	}
	return m, nil
}

// Marshal is the inverse of Unmarshal; koanf asks for it, reading does not.
func (jsonParser) Marshal(m map[string]any) ([]byte, error) { return json.Marshal(m) }
