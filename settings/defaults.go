package settings

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Defaults returns the settings of a Pulsar 4.2.4 broker with an empty broker.conf.
func Defaults() *Settings {
	s := new(Settings)
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if err := setField(v.Field(i), f.Tag.Get("default")); err != nil {
			panic(fmt.Sprintf("settings: default of %s: %v", f.Tag.Get("key"), err)) // a fault in this package's own table
		}
	}
	return s
}

// setField parses text into a field of one of the five kinds that Settings has.
func setField(f reflect.Value, text string) error {
	switch f.Kind() {
	case reflect.String:
		f.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not true or false", text)
		}
		f.SetBool(b)
	case reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", text)
		}
		f.SetInt(n)
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		f.SetFloat(x)
	case reflect.Slice:
		var list []string
		for _, item := range strings.Split(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, item)
			}
		}
		f.Set(reflect.ValueOf(list))
	default:
		return fmt.Errorf("kind %s is not supported", f.Kind())
	}
	return nil
}
