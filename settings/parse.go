package settings

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// setField parses text into the field of a key. On an error the field is unchanged and the error says what would be right.
func setField(f reflect.Value, k Key, text string) error {
	text = strings.TrimSpace(text)
	switch k.Type {
	case TypeString:
		if err := k.oneOf(text); err != nil {
			return err
		}
		f.SetString(text)
	case TypeBoolean:
		b, err := parseBool(text)
		if err != nil {
			return err
		}
		f.SetBool(b)
	case TypeInt, TypeLong:
		n, err := parseWhole(text, k)
		if err != nil {
			return err
		}
		f.SetInt(n)
	case TypeDouble:
		x, err := parseDouble(text, k)
		if err != nil {
			return err
		}
		f.SetFloat(x)
	case TypeDuration:
		d, err := parseDuration(text, k)
		if err != nil {
			return err
		}
		f.SetInt(int64(d))
	case TypeList:
		list := parseList(text)
		for _, item := range list {
			if err := k.oneOf(item); err != nil {
				return err
			}
		}
		f.Set(reflect.ValueOf(list))
	default:
		return fmt.Errorf("type %q is not supported", k.Type)
	}
	return nil
}

func (k Key) oneOf(text string) error {
	if len(k.OneOf) == 0 || slices.Contains(k.OneOf, text) {
		return nil
	}
	right := "it must be one of " + strings.Join(k.OneOf, ", ")
	if near := nearest(text, k.OneOf); near != "" {
		right += "; did you mean " + near + "?"
	} else if k.Hint != "" {
		right += "; " + k.Hint
	}
	return errors.New(right)
}

// parseBool takes true and false in any case. Java reads everything else as false, silently.
func parseBool(text string) (bool, error) {
	switch {
	case strings.EqualFold(text, "true"):
		return true, nil
	case strings.EqualFold(text, "false"):
		return false, nil
	}
	return false, fmt.Errorf("it must be true or false")
}

func parseWhole(text string, k Key) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("it must be a whole number%s", k.rangeText())
	}
	if k.Type == TypeInt && (n > math.MaxInt32 || n < math.MinInt32) {
		return 0, fmt.Errorf("it must be a whole number of 32 bits, at most %d", math.MaxInt32)
	}
	least, most := bounds(k.Range, parseInt64, math.MinInt64, math.MaxInt64)
	if n < least || n > most {
		return 0, fmt.Errorf("it must be a whole number%s", k.rangeText())
	}
	return n, nil
}

func parseDouble(text string, k Key) (float64, error) {
	decimal := text != "" && strings.Trim(text, "0123456789+-.eE") == "" // neither NaN nor Inf nor hexadecimal
	x, err := strconv.ParseFloat(text, 64)
	if !decimal || err != nil {
		return 0, fmt.Errorf("it must be a finite number%s", k.rangeText())
	}
	least, most := bounds(k.Range, parseFloat64, math.Inf(-1), math.Inf(1))
	if x < least || x > most {
		return 0, fmt.Errorf("it must be a number%s", k.rangeText())
	}
	return x, nil
}

func parseDuration(text string, k Key) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("it must be a duration with a unit, such as 30s or 5m%s", k.rangeText())
	}
	least, most := bounds(k.Range, time.ParseDuration, math.MinInt64, math.MaxInt64)
	if d < least || d > most {
		return 0, fmt.Errorf("it must be a duration%s", k.rangeText())
	}
	return d, nil
}

// parseList takes "a, b" and Java's "[a, b]"; blank items are dropped. It is nil when there is no item.
func parseList(text string) []string {
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") && len(text) >= 2 {
		text = text[1 : len(text)-1]
	}
	var list []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			list = append(list, item)
		}
	}
	return list
}

func parseInt64(text string) (int64, error)     { return strconv.ParseInt(text, 10, 64) }
func parseFloat64(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// bounds reads "least..most"; a missing side is unlimited.
func bounds[T any](text string, parse func(string) (T, error), least, most T) (T, T) {
	lo, hi, _ := strings.Cut(text, "..")
	if x, err := parse(lo); err == nil {
		least = x
	}
	if x, err := parse(hi); err == nil {
		most = x
	}
	return least, most
}

// rangeText is the range as the end of a sentence: " from 0 to 100", " of at least 1", or "".
func (k Key) rangeText() string {
	lo, hi, _ := strings.Cut(k.Range, "..")
	switch {
	case lo != "" && hi != "":
		return " from " + lo + " to " + hi
	case lo != "":
		return " of at least " + lo
	case hi != "":
		return " of at most " + hi
	}
	return ""
}

// fieldText is the value of the field of a key as setField reads it.
func fieldText(f reflect.Value, k Key) string {
	switch k.Type {
	case TypeBoolean:
		return strconv.FormatBool(f.Bool())
	case TypeInt, TypeLong:
		return strconv.FormatInt(f.Int(), 10)
	case TypeDouble:
		return strconv.FormatFloat(f.Float(), 'g', -1, 64)
	case TypeDuration:
		return time.Duration(f.Int()).String()
	case TypeList:
		return strings.Join(f.Interface().([]string), ",")
	default:
		return f.String()
	}
}
