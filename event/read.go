package event

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"
)

const (
	// MaxPayload is the largest document that is decoded, in bytes. Pulsar's own limit for a message is 5 MiB by default.
	MaxPayload = 32 << 20

	maxDepth = 1000 // of nested values, as in Jackson
)

// Error says why a document was not decoded.
type Error struct {
	Document string // what was decoded, such as "BrokerLoadData"
	Field    string // where in the document, such as "cpu.usage"; "" = the document itself
	Value    string // what stands there, shortened
	Want     string // what would be right
	Offset   int    // of the value, in bytes from the start of the document
}

func (e *Error) Error() string {
	field := ""
	if e.Field != "" {
		field = " field " + e.Field + ":"
	}
	return fmt.Sprintf("%s:%s %s (at byte %d) is not %s", e.Document, field, e.Value, e.Offset, e.Want)
}

// reader is a pull parser over one JSON document. The first error sticks: from then on everything reads as nothing, so
// that decoders need to look only once, at the end.
type reader struct {
	data  []byte
	pos   int
	depth int
	err   *Error
}

// begin looks at a whole document before it is decoded. A document that is null is not decoded: by the convention of
// encoding/json it leaves the value as it is.
func (r *reader) begin() bool {
	switch {
	case len(r.data) > MaxPayload:
		want := fmt.Sprintf("allowed: the limit is %d bytes", MaxPayload)
		r.err = &Error{Value: fmt.Sprintf("a payload of %d bytes", len(r.data)), Want: want}
	case !utf8.Valid(r.data):
		r.err = &Error{Value: shorten(r.data), Want: "UTF-8"}
	}
	return r.err == nil && !r.null()
}

// finish says what came of a document.
func (r *reader) finish(document string) error {
	if r.space(); r.err == nil && r.pos < len(r.data) {
		r.fail("the end of the document")
	}
	if r.err == nil {
		return nil
	}
	r.err.Document = document
	return r.err
}

// fail records the first error, about the value at the current position.
func (r *reader) fail(want string) { r.failAt(r.pos, want) }

func (r *reader) failAt(pos int, want string) {
	if r.err == nil {
		r.err = &Error{Value: shorten(r.data[pos:]), Want: want, Offset: pos}
	}
	r.pos = len(r.data)
}

// in names the member or element in which an error happened, from the inside out.
func (r *reader) in(name string) {
	switch {
	case r.err == nil:
	case r.err.Field == "" || r.err.Field[0] == '[':
		r.err.Field = name + r.err.Field
	default:
		r.err.Field = name + "." + r.err.Field
	}
}

// shorten is the beginning of a value, to be shown.
func shorten(b []byte) string {
	const limit = 40
	switch {
	case len(b) == 0:
		return "nothing"
	case len(b) <= limit:
		return strconv.QuoteToASCII(string(b))
	}
	return strconv.QuoteToASCII(string(b[:limit])) + "..."
}

// space skips white space.
func (r *reader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// peek is the first byte of the next value, 0 at the end.
func (r *reader) peek() byte {
	r.space()
	if r.pos < len(r.data) {
		return r.data[r.pos]
	}
	return 0
}

// enter counts one level of nesting and eats its opening bracket.
func (r *reader) enter(open byte, want string) bool {
	if r.peek() != open {
		r.fail(want)
		return false
	}
	if r.depth++; r.depth > maxDepth {
		r.fail("nested less than 1000 deep")
		return false
	}
	r.pos++
	return true
}

// next moves to the next member or element of an object or array; false at its end, or after an error.
func (r *reader) next(first bool, end byte, want string) bool {
	if r.err != nil {
		return false
	}
	c := r.peek()
	if c == end {
		r.pos++
		r.depth--
		return false
	}
	if first {
		return true
	}
	if c != ',' {
		r.fail(want)
		return false
	}
	r.pos++
	return true
}

// fields yields the key of each member of an object. The body must consume the value.
func (r *reader) fields(yield func(key []byte) bool) {
	if !r.enter('{', "an object") {
		return
	}
	for first := true; r.next(first, '}', "a comma or the end of the object"); first = false {
		key := r.text("a member's name in quotes")
		if r.peek() != ':' {
			r.fail("a colon after a member's name")
			return
		}
		r.pos++
		if !yield(key) {
			return
		}
		if r.err != nil {
			r.in(string(key))
			return
		}
	}
}

// elements yields the index of each element of an array. The body must consume the element.
func (r *reader) elements(yield func(i int) bool) {
	if !r.enter('[', "an array") {
		return
	}
	i := 0
	for r.next(i == 0, ']', "a comma or the end of the array") {
		if !yield(i) {
			return
		}
		if r.err != nil {
			r.in("[" + strconv.Itoa(i) + "]")
			return
		}
		i++
	}
}

// literal eats the word if it comes next.
func (r *reader) literal(word string) bool {
	end := r.pos + len(word)
	if end > len(r.data) || string(r.data[r.pos:end]) != word {
		return false
	}
	r.pos = end
	return true
}

// null eats a null if it comes next.
func (r *reader) null() bool { return r.peek() == 'n' && r.literal("null") }

// bool reads true or false; null is false.
func (r *reader) bool(to *bool) {
	switch r.peek() {
	case 't':
		if r.literal("true") {
			*to = true
			return
		}
	case 'f':
		if r.literal("false") {
			*to = false
			return
		}
	case 'n':
		if r.literal("null") {
			*to = false
			return
		}
	}
	r.fail("true or false")
}

// float reads a number or one of the strings for what JSON has no numbers for; null is 0.
func (r *reader) float(to *float64) {
	const want = `a number, "NaN", "Infinity" or "-Infinity"`
	switch r.peek() {
	case 'n':
		if r.literal("null") {
			*to = 0
			return
		}
	case '"':
		switch {
		case r.literal(`"NaN"`):
			*to = math.NaN()
			return
		case r.literal(`"Infinity"`):
			*to = math.Inf(1)
			return
		case r.literal(`"-Infinity"`):
			*to = math.Inf(-1)
			return
		}
	}
	if number := r.number(want); number != nil {
		// An exponent out of range gives an infinity or zero, as in Java.
		*to, _ = strconv.ParseFloat(string(number), 64)
	}
}

// int64 reads a whole number; null is 0.
func (r *reader) int64(to *int64) { *to = r.whole(64, "a whole number of 64 bits") }

// int32 reads a whole number; null is 0.
func (r *reader) int32(to *int32) { *to = int32(r.whole(32, "a whole number of 32 bits")) }

func (r *reader) whole(bits int, want string) int64 {
	if r.null() {
		return 0
	}
	start := r.pos
	number := r.number(want)
	if number == nil {
		return 0
	}
	n, err := strconv.ParseInt(string(number), 10, bits)
	if err == nil {
		return n
	}
	// 1.0E3 is whole, too; what is beyond 2^53 is always written in digits.
	if x, err := strconv.ParseFloat(string(number), 64); err == nil && x == math.Trunc(x) && math.Abs(x) < math.Ldexp(1, min(bits-1, 53)) {
		return int64(x)
	}
	r.failAt(start, want)
	return 0
}

// number eats a JSON number and returns its text, nil after an error.
func (r *reader) number(want string) []byte {
	r.space()
	start := r.pos
	if r.pos < len(r.data) && r.data[r.pos] == '-' {
		r.pos++
	}
	leading := r.pos
	if n := r.digits(); n == 0 || n > 1 && r.data[leading] == '0' {
		r.failAt(start, want)
		return nil
	}
	if r.pos < len(r.data) && r.data[r.pos] == '.' {
		if r.pos++; r.digits() == 0 {
			r.failAt(start, want)
			return nil
		}
	}
	if r.pos < len(r.data) && r.data[r.pos]|0x20 == 'e' {
		if r.pos++; r.pos < len(r.data) && (r.data[r.pos] == '+' || r.data[r.pos] == '-') {
			r.pos++
		}
		if r.digits() == 0 {
			r.failAt(start, want)
			return nil
		}
	}
	return r.data[start:r.pos]
}

func (r *reader) digits() (n int) {
	for r.pos < len(r.data) && r.data[r.pos]-'0' <= 9 {
		r.pos++
		n++
	}
	return n
}

// string reads a string; null is "".
func (r *reader) string(to *string) {
	if r.null() {
		*to = ""
		return
	}
	*to = string(r.text("a string"))
}

// skip eats a value of any kind.
func (r *reader) skip() {
	switch c := r.peek(); c {
	case '{':
		for range r.fields {
			r.skip()
		}
	case '[':
		for range r.elements {
			r.skip()
		}
	case '"':
		r.text("a string")
	case 't', 'f':
		var ignored bool
		r.bool(&ignored)
	case 'n':
		if !r.literal("null") {
			r.fail("null")
		}
	default:
		r.number("a JSON value")
	}
}
