// Package jsondiff compares JSON values exactly: whole numbers as such, others bit for bit as doubles.
package jsondiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Option changes how values are compared.
type Option func(*differ)

// IgnoreKeys leaves these keys out of the comparison wherever they stand, such as remarks in an output.
func IgnoreKeys(keys ...string) Option {
	return func(d *differ) {
		for _, k := range keys {
			d.ignore[k] = true
		}
	}
}

// Sets compares the arrays under these keys without regard to order.
func Sets(keys ...string) Option {
	return func(d *differ) {
		for _, k := range keys {
			d.sets[k] = true
		}
	}
}

// Diff compares two values as JSON values: want as recorded (json.RawMessage, text or anything that encodes to JSON), got
// likewise. Whole numbers are compared exactly, other numbers bit for bit as doubles (0 and -0 differ, NaN equals NaN),
// the order of object keys does not matter. It returns "" if they are equal, otherwise one pair of lines per place that
// differs, "-" before what is wanted and "+" before what was got.
func Diff(want, got any, opts ...Option) string {
	d := differ{ignore: make(map[string]bool), sets: make(map[string]bool)}
	for _, o := range opts {
		o(&d)
	}
	w, err := normalize(want)
	if err != nil {
		return "wanted value: " + err.Error()
	}
	g, err := normalize(got)
	if err != nil {
		return "value got: " + err.Error()
	}
	d.compare("", w, g)
	return d.out.String()
}

// Parse decodes one JSON value; numbers stay text (json.Number), so that no int64 is bent through float64.
func Parse(text []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

func normalize(v any) (any, error) {
	switch v := v.(type) {
	case json.RawMessage:
		return Parse(v)
	case []byte:
		return Parse(v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

type differ struct {
	ignore map[string]bool
	sets   map[string]bool
	out    strings.Builder
}

func (d *differ) differs(path string, want, got string) {
	if path == "" {
		path = "."
	}
	fmt.Fprintf(&d.out, "- %s: %s\n+ %s: %s\n", path, want, path, got)
}

func (d *differ) compare(path string, want, got any) {
	switch w := want.(type) {
	case map[string]any:
		if g, ok := got.(map[string]any); ok {
			d.objects(path, w, g)
			return
		}
	case []any:
		if g, ok := got.([]any); ok {
			d.arrays(path, w, g)
			return
		}
	case json.Number:
		if g, ok := got.(json.Number); ok && sameNumber(w, g) {
			return
		}
	default:
		if want == got {
			return
		}
	}
	d.differs(path, text(want), text(got))
}

func (d *differ) objects(path string, want, got map[string]any) {
	keys := make(map[string]bool, len(want))
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if d.ignore[k] {
			continue
		}
		w, inWant := want[k]
		g, inGot := got[k]
		switch {
		case !inWant:
			d.differs(path+"."+k, "(absent)", text(g))
		case !inGot:
			d.differs(path+"."+k, text(w), "(absent)")
		default:
			if d.sets[k] {
				w, g = sorted(w), sorted(g)
			}
			d.compare(path+"."+k, w, g)
		}
	}
}

func (d *differ) arrays(path string, want, got []any) {
	if len(want) != len(got) {
		d.differs(path, text(want), text(got))
		return
	}
	for i := range want {
		d.compare(path+"["+strconv.Itoa(i)+"]", want[i], got[i])
	}
}

// sorted orders an array by the text of its members.
func sorted(v any) any {
	a, ok := v.([]any)
	if !ok {
		return v
	}
	return slices.SortedStableFunc(slices.Values(a), func(x, y any) int { return strings.Compare(text(x), text(y)) })
}

// sameNumber compares whole numbers exactly and all others as doubles.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	i, errA := strconv.ParseInt(string(a), 10, 64)
	j, errB := strconv.ParseInt(string(b), 10, 64)
	if errA == nil && errB == nil && i != 0 {
		return i == j
	}
	x, errA := a.Float64()
	y, errB := b.Float64()
	return errA == nil && errB == nil && math.Float64bits(x) == math.Float64bits(y)
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
