package plan

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ballast-lb/ballast/internal/jsonfloat"
	"github.com/ballast-lb/ballast/policy"
)

// Code is a stable reason code with the sentence it stands for. In the sentence {name} is replaced by the number of that
// name. Codes are declared once, as package variables beside the rule that uses them, and never renamed.
type Code struct {
	ID       string // UPPER_SNAKE_CASE, stable
	Template string // "rate delta {delta} < minUnloadMessage {limit}"
}

// Reason is why something was decided or left out: a code and the numbers that were compared.
type Reason struct {
	Code    string   `json:"code"`
	Text    string   `json:"text,omitempty"`
	Numbers []Number `json:"numbers,omitempty"`
}

// Number is one named value of a reason.
type Number struct {
	Name  string
	Value float64
	Text  string // set instead of Value for names (a broker id, a namespace)
}

// N is a numeric value of a reason.
func N[T ~int | ~int32 | ~int64 | ~float64](name string, v T) Number {
	return Number{Name: name, Value: float64(v)}
}

// S is a textual value of a reason.
func S(name, text string) Number { return Number{Name: name, Text: text} }

// Because makes a reason of the code with its numbers. It allocates: on hot paths call it only when a trace is wanted.
func (c Code) Because(numbers ...Number) Reason {
	var text strings.Builder
	text.Grow(len(c.Template) + 16*len(numbers))
	rest := c.Template
	for {
		before, after, ok := strings.Cut(rest, "{")
		text.WriteString(before)
		if !ok {
			break
		}
		name, next, closed := strings.Cut(after, "}")
		i := slices.IndexFunc(numbers, func(n Number) bool { return n.Name == name })
		if !closed || i < 0 { // no number of that name: the text stays as it is
			text.WriteByte('{')
			rest = after
			continue
		}
		numbers[i].writeTo(&text)
		rest = next
	}
	return Reason{Code: c.ID, Text: text.String(), Numbers: numbers}
}

// String is the sentence of the reason, or its code where it has none.
func (r Reason) String() string {
	if r.Text == "" {
		return r.Code
	}
	return r.Text
}

// String is the value as people read it: up to six significant digits.
func (n Number) String() string {
	var text strings.Builder
	n.writeTo(&text)
	return text.String()
}

func (n *Number) writeTo(text *strings.Builder) {
	if n.Text != "" {
		text.WriteString(n.Text)
		return
	}
	format, precision := byte('g'), 6
	switch size := math.Abs(n.Value); {
	case n.Value == math.Trunc(n.Value) && size < 1e15:
		format, precision = 'f', -1
	case size >= 1e5 && size < 1e15: // no exponents where people read rates in bytes
		format, precision = 'f', 0
	}
	var digits [32]byte
	text.Write(strconv.AppendFloat(digits[:0], n.Value, format, precision, 64))
}

type numberJSON struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// MarshalJSON writes {"name": ..., "value": number | string}; non-finite numbers become "NaN", "Infinity", "-Infinity".
func (n Number) MarshalJSON() ([]byte, error) {
	out := numberJSON{Name: n.Name, Value: jsonfloat.Float(n.Value)}
	if n.Text != "" {
		out.Value = n.Text
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Number) UnmarshalJSON(b []byte) error {
	var in numberJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*n = Number{Name: in.Name}
	switch v := in.Value.(type) {
	case float64:
		n.Value = v
	case string:
		switch v {
		case "NaN":
			n.Value = math.NaN()
		case "Infinity":
			n.Value = math.Inf(1)
		case "-Infinity":
			n.Value = math.Inf(-1)
		default:
			n.Text = v
		}
	}
	return nil
}

// FromPolicy is a reason of package policy, which cannot import this one.
func FromPolicy(r policy.Reason) Reason {
	out := Reason{Code: r.Code, Text: r.Text}
	for _, n := range r.Numbers {
		out.Numbers = append(out.Numbers, Number(n))
	}
	return out
}
