package conformance

import "github.com/ballast-lb/ballast/internal/jsondiff"

// DiffOption changes how values are compared.
type DiffOption = jsondiff.Option

// IgnoreKeys leaves these keys out of the comparison wherever they stand, such as remarks in an output.
func IgnoreKeys(keys ...string) DiffOption { return jsondiff.IgnoreKeys(keys...) }

// Sets compares the arrays under these keys without regard to order.
func Sets(keys ...string) DiffOption { return jsondiff.Sets(keys...) }

// Diff compares two values as JSON values: want as recorded (json.RawMessage, text or anything that encodes to JSON), got
// likewise. Whole numbers are compared exactly, other numbers bit for bit as doubles (0 and -0 differ, NaN equals NaN),
// the order of object keys does not matter. It returns "" if they are equal, otherwise one pair of lines per place that
// differs, "-" before what Pulsar has and "+" before what Ballast has.
func Diff(want, got any, opts ...DiffOption) string { return jsondiff.Diff(want, got, opts...) }

// ParseJSON decodes one JSON value; numbers stay text (json.Number), so that no int64 is bent through float64.
func ParseJSON(text []byte) (any, error) { return jsondiff.Parse(text) }
