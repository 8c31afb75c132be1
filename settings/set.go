package settings

import (
	"errors"
	"fmt"
	"reflect"
)

// UnknownKeyError is a key that no setting has.
type UnknownKeyError struct {
	Key     string
	Nearest string // the key that was probably meant, "" if none is near
}

func (e *UnknownKeyError) Error() string {
	if e.Nearest == "" {
		return fmt.Sprintf("unknown key %q", e.Key)
	}
	return fmt.Sprintf("unknown key %q: did you mean %s?", e.Key, e.Nearest)
}

// ValueError is a value that a setting cannot have.
type ValueError struct {
	Key   string
	Value string // "***" of a secret
	Right string // what would be right
}

func (e *ValueError) Error() string { return fmt.Sprintf("%s is %q: %s", e.Key, e.Value, e.Right) }

// errOther is a key of the other struct: broker.conf's where Ballast's own is set, or the other way round.
var errOther = errors.New("belongs elsewhere")

// Set parses text into the setting of a key of broker.conf. It fails with *UnknownKeyError or *ValueError, and then changes
// nothing.
func Set(s *Settings, key, text string) error {
	return set(reflect.ValueOf(s).Elem(), false, key, text)
}

// SetBallast parses text into one of Ballast's own settings, as Set.
func SetBallast(b *Ballast, key, text string) error {
	return set(reflect.ValueOf(b).Elem(), true, key, text)
}

func set(v reflect.Value, own bool, key, text string) error {
	k, ok := byName[key]
	if !ok {
		return &UnknownKeyError{Key: key, Nearest: Suggest(key)}
	}
	if k.own != own {
		return fmt.Errorf("key %q %w: it is a key of %s", key, errOther, home(k.own))
	}
	if err := setField(v.Field(k.field), k, text); err != nil {
		if k.Secret {
			text = masked
		}
		return &ValueError{Key: key, Value: text, Right: err.Error()}
	}
	return nil
}

func home(own bool) string {
	if own {
		return "Ballast"
	}
	return "broker.conf"
}

// Get is the value of a key of broker.conf as text that Set reads back; false if there is no such key.
func Get(s *Settings, key string) (string, bool) {
	return get(reflect.ValueOf(s).Elem(), false, key)
}

// GetBallast is the value of one of Ballast's own keys as text that SetBallast reads back, secrets included.
func GetBallast(b *Ballast, key string) (string, bool) {
	return get(reflect.ValueOf(b).Elem(), true, key)
}

func get(v reflect.Value, own bool, key string) (string, bool) {
	k, ok := byName[key]
	if !ok || k.own != own {
		return "", false
	}
	return fieldText(v.Field(k.field), k), true
}

// masked stands for the value of a secret.
const masked = "***"
