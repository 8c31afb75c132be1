package settings

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Origin is where a value comes from. Later origins win: default, cluster, file, environment, flag.
type Origin string

// The origins.
const (
	OriginDefault     Origin = "default"     // of the cluster's Pulsar version
	OriginCluster     Origin = "cluster"     // the runtime configuration that a broker reports
	OriginFile        Origin = "file"        //
	OriginEnvironment Origin = "environment" //
	OriginFlag        Origin = "flag"        // the command line
)

var originRank = map[Origin]int{OriginDefault: 0, OriginCluster: 1, OriginFile: 2, OriginEnvironment: 3, OriginFlag: 4}

// Scope says whose keys a source holds.
type Scope string

// The scopes. In a broker.conf or a client.conf most keys are none of Ballast's business: they are passed over, unless
// they look like a misspelt setting.
const (
	ScopeAll    Scope = ""            // every key must be a known one
	ScopeBroker Scope = "broker.conf" // only the keys of Settings are read
	ScopeClient Scope = "client.conf" // only the keys of Ballast are read
)

// Entry is one assignment as it was found.
type Entry struct {
	Key   string
	Text  string
	Where string // "ballast.conf:12", "BALLAST_MODE", "--set"; for messages
}

// Layer is what one source says.
type Layer struct {
	Origin  Origin
	Scope   Scope
	Entries []Entry
}

// Value is one setting with its provenance.
type Value struct {
	Key    Key
	Text   string // "***" of a secret that is set
	Origin Origin
	Where  string // "" of a default
}

// Layered are settings whose every value knows where it comes from.
type Layered struct {
	Settings *Settings
	Ballast  *Ballast
	Version  string    // the Pulsar version whose defaults were taken
	Notes    []Problem // warnings about single values; Check adds those about pairs
	from     map[string]Entry
	origin   map[string]Origin
}

// Resolve lays the layers over the defaults of a Pulsar version ("4.2.4" or "5.0.1"; "" = 4.2.4), by origin and within an
// origin in the order given. All faults are reported at once, joined: unknown keys, bad values, keys set twice.
// What a cluster runs with is not refused for being out of range: it becomes a note.
func Resolve(version string, layers ...Layer) (*Layered, error) {
	if version != "" && major(version) == 0 {
		return nil, fmt.Errorf("version of Pulsar is %q: it must be like 4.2.4", version)
	}
	l := &Layered{Settings: DefaultsOf(version), Ballast: DefaultBallast(), Version: version,
		from: map[string]Entry{}, origin: map[string]Origin{}}
	layers = slices.Clone(layers)
	slices.SortStableFunc(layers, func(a, b Layer) int { return cmp.Compare(originRank[a.Origin], originRank[b.Origin]) })
	var faults []error
	for _, layer := range layers {
		seen := map[string]Entry{}
		for _, e := range layer.Entries {
			if err := l.apply(layer, e, seen); err != nil {
				faults = append(faults, at(e, err))
			}
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return l, nil
}

func at(e Entry, err error) error {
	if e.Where == "" {
		return err
	}
	return fmt.Errorf("%s: %w", e.Where, err)
}

func (l *Layered) apply(layer Layer, e Entry, seen map[string]Entry) error {
	k, known := byName[e.Key]
	if !known || !layer.Scope.reads(k) {
		return l.foreign(layer, e)
	}
	if layer.Scope == ScopeBroker && layer.Origin != OriginCluster && blank(e.Text) && k.Type != TypeList {
		return nil // Pulsar leaves the default when a broker.conf gives no value
	}
	if first, twice := seen[k.Name]; twice && first.Text != e.Text {
		if layer.Scope == ScopeAll {
			return fmt.Errorf("%s is set twice: %q at %s, then %q", k.Name, k.shown(first.Text), first.Where, k.shown(e.Text))
		}
		l.note("SET_TWICE", k.Name, fmt.Sprintf("%s is set twice, the last one counts: %q at %s, then %q at %s",
			k.Name, k.shown(first.Text), first.Where, k.shown(e.Text), e.Where))
	}
	seen[k.Name] = e
	if err := l.set(layer.Origin, k, e); err != nil {
		return err
	}
	if k.Since != "" && l.Version != "" && major(l.Version) < major(k.Since) {
		l.note("KEY_TOO_NEW", k.Name, fmt.Sprintf("%s has no effect in Pulsar %s: brokers know it since %s", k.Name, l.Version, k.Since))
	}
	l.from[k.Name], l.origin[k.Name] = e, layer.Origin
	return nil
}

// set stores a value. One that a cluster really has is taken also when it is out of range, as long as it can be read.
func (l *Layered) set(origin Origin, k Key, e Entry) error {
	f := l.field(k)
	err := setField(f, k, e.Text)
	if err == nil {
		return nil
	}
	wrong := &ValueError{Key: e.Key, Value: k.shown(e.Text), Right: err.Error()}
	if origin != OriginCluster {
		return wrong
	}
	free := k
	free.Range, free.OneOf = "", nil
	if setField(f, free, e.Text) != nil {
		return wrong
	}
	l.note("VALUE_OUT_OF_RANGE", k.Name, wrong.Error()+"; the cluster runs with it")
	return nil
}

// foreign decides about a key that the layer's scope does not read.
func (l *Layered) foreign(layer Layer, e Entry) error {
	unknown := &UnknownKeyError{Key: e.Key, Nearest: Suggest(e.Key)}
	if layer.Scope == ScopeAll {
		return unknown
	}
	if layer.Scope == ScopeBroker && strings.HasPrefix(strings.ToLower(e.Key), "ballast") {
		return fmt.Errorf("key %q does not belong in a broker.conf: put it into Ballast's own file", e.Key)
	}
	if !layer.Scope.resembles(e.Key) {
		return nil
	}
	if layer.Origin != OriginCluster {
		return unknown
	}
	l.note("UNKNOWN_KEY", e.Key, "the cluster has a load-balancing key that is not known: "+unknown.Error())
	return nil
}

func (s Scope) reads(k Key) bool {
	return s == ScopeAll || k.own == (s == ScopeClient)
}

// resembles says whether a key that is not read looks like a setting of the scope, misspelt or too new.
func (s Scope) resembles(key string) bool {
	low := strings.ToLower(key)
	if s == ScopeBroker && (strings.HasPrefix(low, "loadbalanc") || strings.HasPrefix(low, "loadmanager")) {
		return true
	}
	if _, known := byName[key]; known {
		return false
	}
	keys := pulsarKeys
	if s == ScopeClient {
		keys = ballastKeys
	}
	return slices.ContainsFunc(keys, func(k Key) bool {
		return min(len(key), len(k.Name)) > 6 && max(len(key), len(k.Name))-min(len(key), len(k.Name)) <= 2 &&
			distance(low, strings.ToLower(k.Name)) <= 2
	})
}

func (l *Layered) field(k Key) reflect.Value {
	if k.own {
		return reflect.ValueOf(l.Ballast).Elem().Field(k.field)
	}
	return reflect.ValueOf(l.Settings).Elem().Field(k.field)
}

func (l *Layered) note(code, key, text string) {
	l.Notes = append(l.Notes, Problem{Severity: Warning, Code: code, Keys: []string{key}, Text: text})
}

// shown is a text of the key as it may be shown.
func (k Key) shown(text string) string {
	if k.Secret && text != "" {
		return masked
	}
	return text
}

func blank(text string) bool { return strings.TrimSpace(text) == "" }

// Values are all settings, first the keys of broker.conf, then Ballast's own.
func (l *Layered) Values() []Value {
	values := make([]Value, 0, len(pulsarKeys)+len(ballastKeys))
	for _, keys := range [][]Key{pulsarKeys, ballastKeys} {
		for _, k := range keys {
			values = append(values, l.value(k))
		}
	}
	return values
}

// Value is one setting by its name or alias; false if there is no such key.
func (l *Layered) Value(key string) (Value, bool) {
	k, ok := byName[key]
	if !ok {
		return Value{}, false
	}
	return l.value(k), true
}

func (l *Layered) value(k Key) Value {
	return Value{Key: k, Text: k.shown(fieldText(l.field(k), k)),
		Origin: cmp.Or(l.origin[k.Name], OriginDefault), Where: l.from[k.Name].Where}
}

// ClusterLayer is the runtime configuration as a broker answers it (GET /admin/v2/brokers/configuration/runtime): every
// key of the broker, values as Java prints them: "Optional.empty" and "null" are no value, "Optional[x]" is x.
func ClusterLayer(where string, runtime map[string]string) Layer {
	layer := Layer{Origin: OriginCluster, Scope: ScopeBroker}
	for _, key := range slices.Sorted(maps.Keys(runtime)) {
		text := runtime[key]
		if text == "Optional.empty" || text == "null" {
			continue
		}
		if x, ok := strings.CutPrefix(text, "Optional["); ok {
			text = strings.TrimSuffix(x, "]")
		}
		layer.Entries = append(layer.Entries, Entry{Key: key, Text: text, Where: where})
	}
	return layer
}
