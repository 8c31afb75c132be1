package jsonfloat

import (
	"encoding/json"
	"math"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	for text, x := range map[string]float64{
		"0": 0, "-0": math.Copysign(0, -1), "0.1": 0.1, "1e+300": 1e300, "5e-324": 5e-324, `"NaN"`: math.NaN(), `"Infinity"`: math.Inf(1), `"-Infinity"`: math.Inf(-1),
	} {
		b, err := json.Marshal(Float(x))
		if err != nil || string(b) != text {
			t.Errorf("%v: %s, %v", x, b, err)
		}
		var f Float
		if err := json.Unmarshal(b, &f); err != nil {
			t.Errorf("%s: %v", b, err)
		}
		if math.Float64bits(float64(f)) != math.Float64bits(x) && !math.IsNaN(x) {
			t.Errorf("%s: %v", b, f)
		}
	}
	f := Float(7)
	if err := json.Unmarshal([]byte("null"), &f); err != nil || f != 7 {
		t.Errorf("null: %v, %v", f, err)
	}
	for _, wrong := range []string{`"nan"`, `true`, `"1"`, `{}`} {
		if err := json.Unmarshal([]byte(wrong), &f); err == nil {
			t.Errorf("%s was accepted", wrong)
		}
	}
}
