// Package jsonfloat carries floats through JSON that JSON has no number for.
package jsonfloat

import (
	"fmt"
	"math"
	"strconv"
)

// Float is a float64 that JSON can carry whatever it is: NaN and the infinities are the strings "NaN", "Infinity" and
// "-Infinity", as Pulsar writes them.
type Float float64

// MarshalJSON writes a number that reads back as the same float, or one of the three strings.
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

// UnmarshalJSON reads a number or one of the three strings; null leaves the float as it is.
func (f *Float) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case "null":
	case `"NaN"`:
		*f = Float(math.NaN())
	case `"Infinity"`:
		*f = Float(math.Inf(1))
	case `"-Infinity"`:
		*f = Float(math.Inf(-1))
	default:
		x, err := strconv.ParseFloat(string(b), 64)
		if err != nil {
			return fmt.Errorf(`%s is neither a number nor "NaN", "Infinity" or "-Infinity"`, b)
		}
		*f = Float(x)
	}
	return nil
}
