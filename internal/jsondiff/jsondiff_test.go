package jsondiff

import (
	"encoding/json"
	"math"
	"testing"
)

func TestDiff(t *testing.T) {
	for _, test := range []struct {
		name, want, got string
		opts            []Option
		diff            string
	}{
		{"equal", `{"a":1,"b":[true,null]}`, `{"b":[true,null],"a":1.0}`, nil, ""},
		{"forms of a double", `1.0E7`, `1e+07`, nil, ""},
		{"a double and an int", `100`, `100.0`, nil, ""},
		{"zero", `0`, `0.0`, nil, ""},
		{"negative zero", `0.0`, `-0.0`, nil, "- .: 0.0\n+ .: -0.0\n"},
		{"large ints", `9007199254740993`, `9007199254740992`, nil, "- .: 9007199254740993\n+ .: 9007199254740992\n"},
		{"last bit", `0.1`, `0.10000000000000002`, nil, "- .: 0.1\n+ .: 0.10000000000000002\n"},
		{"NaN", `"NaN"`, `"NaN"`, nil, ""},
		{"type", `{"a":"1"}`, `{"a":1}`, nil, "- .a: \"1\"\n+ .a: 1\n"},
		{"absent and null", `{"a":null}`, `{}`, nil, "- .a: null\n+ .a: (absent)\n"},
		{"extra", `{}`, `{"a":1}`, nil, "- .a: (absent)\n+ .a: 1\n"},
		{"element", `[1,[2,3]]`, `[1,[2,4]]`, nil, "- [1][1]: 3\n+ [1][1]: 4\n"},
		{"length", `[1]`, `[1,2]`, nil, "- .: [1]\n+ .: [1,2]\n"},
		{"order of an array", `{"a":[1,2]}`, `{"a":[2,1]}`, nil, "- .a[0]: 1\n+ .a[0]: 2\n- .a[1]: 2\n+ .a[1]: 1\n"},
		{"set", `{"a":[1,2,2]}`, `{"a":[2,1,2]}`, []Option{Sets("a")}, ""},
		{"set with other members", `{"a":[1,2]}`, `{"a":[2,2]}`, []Option{Sets("a")}, "- .a[0]: 1\n+ .a[0]: 2\n"},
		{"ignored", `{"a":1,"b":{"a":2,"c":3}}`, `{"b":{"c":3}}`, []Option{IgnoreKeys("a")}, ""},
		{"bad", `{`, `{}`, nil, "wanted value: unexpected EOF"},
		{"two values", `1`, `1 2`, nil, "value got: more than one JSON value"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := Diff(json.RawMessage(test.want), []byte(test.got), test.opts...); got != test.diff {
				t.Errorf("diff is %q, want %q", got, test.diff)
			}
		})
	}
}

func TestDiffOfGoValues(t *testing.T) {
	type point struct {
		X int64 `json:"x"`
	}
	if got := Diff(json.RawMessage(`{"x":9223372036854775807}`), point{math.MaxInt64}); got != "" {
		t.Error(got)
	}
	if got := Diff(point{1}, math.NaN()); got != "value got: json: unsupported value: NaN" {
		t.Error(got)
	}
}
