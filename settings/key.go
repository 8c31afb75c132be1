package settings

import (
	"reflect"
	"slices"
	"strings"
)

// Type is the type of a setting, in Java's words where Pulsar has the setting too.
type Type string

// The types.
const (
	TypeString   Type = "string"
	TypeBoolean  Type = "boolean"  // true or false
	TypeInt      Type = "int"      // 32 bits
	TypeLong     Type = "long"     // 64 bits
	TypeDouble   Type = "double"   // finite
	TypeList     Type = "list"     // items with commas between, brackets around them allowed
	TypeDuration Type = "duration" // a number with a unit, "30s"
)

// Change says when a changed value acts in a broker.
type Change string

// When changes act. All but ChangeRestart can be set dynamically over admin REST.
const (
	ChangeNow     Change = "now"     // at the next use
	ChangeMixed   Change = "mixed"   // at the next use by some readers, after a restart by others
	ChangeStart   Change = "start"   // dynamic in name only: read once, at start or when a broker becomes leader
	ChangeRestart Change = "restart" // not dynamic
)

// Key describes one setting. The source of Pulsar's keys is ServiceConfiguration.
type Key struct {
	Name     string
	Alias    string // another name that is read, "" if none
	Type     Type
	Default  string // as text; of Pulsar 4.2.4
	Default5 string // as text; of Pulsar 5.0.1
	Since    string // first Pulsar version that has the key, "" = all that Ballast knows
	Unit     string // "" = none
	Range    string // "least..most", either may be missing; "" = any. Of lists: of no meaning
	OneOf    []string
	Group    string
	Change   Change // "" for Ballast's own keys
	Users    string // which readers: S Simple, M Modular, X Extensible, H host usage; "" for Ballast's own keys
	Secret   bool   // never shown
	Doc      string
	Hint     string // added to the error of a value that is not one of OneOf

	field int  // index in its struct
	own   bool // one of Ballast's own keys
}

// Dynamic says whether a running broker takes a new value over admin REST (it may act only later: see Change).
func (k Key) Dynamic() bool { return k.Change != "" && k.Change != ChangeRestart }

// Own says whether the key is one of Ballast's, not of broker.conf.
func (k Key) Own() bool { return k.own }

// DefaultOf is the default in a Pulsar version ("4.2.4").
func (k Key) DefaultOf(version string) string {
	if major(version) >= 5 {
		return k.Default5
	}
	return k.Default
}

var (
	pulsarKeys  = keysOf(reflect.TypeFor[Settings](), false)
	ballastKeys = keysOf(reflect.TypeFor[Ballast](), true)
	byName      = indexKeys(pulsarKeys, ballastKeys)
)

// Keys are the keys of broker.conf that Settings has, in the order of its fields.
func Keys() []Key { return slices.Clone(pulsarKeys) }

// BallastKeys are Ballast's own keys, in the order of the fields of Ballast.
func BallastKeys() []Key { return slices.Clone(ballastKeys) }

// Lookup finds a key by its name or alias.
func Lookup(name string) (Key, bool) {
	k, ok := byName[name]
	return k, ok
}

func keysOf(t reflect.Type, own bool) []Key {
	keys := make([]Key, t.NumField())
	for i := range keys {
		tag := t.Field(i).Tag
		k := Key{
			Name: tag.Get("key"), Alias: tag.Get("alias"), Type: Type(tag.Get("type")), Default: tag.Get("default"),
			Since: tag.Get("since"), Unit: tag.Get("unit"), Range: tag.Get("range"), Group: tag.Get("group"),
			Change: Change(tag.Get("change")), Users: tag.Get("users"), Secret: tag.Get("secret") == "true", Doc: tag.Get("doc"), Hint: tag.Get("hint"),
			field: i, own: own,
		}
		k.Default5 = k.Default
		if d, ok := tag.Lookup("default5"); ok {
			k.Default5 = d
		}
		if one := tag.Get("oneof"); one != "" {
			k.OneOf = strings.Split(one, "|")
		}
		keys[i] = k
	}
	return keys
}

func indexKeys(lists ...[]Key) map[string]Key {
	index := make(map[string]Key)
	for _, keys := range lists {
		for _, k := range keys {
			index[k.Name] = k
			if k.Alias != "" {
				index[k.Alias] = k
			}
		}
	}
	return index
}

// major is the leading number of a version, 0 if there is none.
func major(version string) int {
	n := 0
	for _, c := range version {
		if c < '0' || c > '9' || n > 1000 {
			break
		}
		n = 10*n + int(c-'0')
	}
	return n
}
