package event

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// text eats a JSON string and returns what it says: a part of the document, or a copy if it has escapes. nil after an error.
func (r *reader) text(want string) []byte {
	if r.peek() != '"' {
		r.fail(want)
		return nil
	}
	start := r.pos + 1
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			r.pos = i + 1
			return r.data[start:i:i]
		case c == '\\':
			return r.escaped(start, i)
		case c < ' ':
			r.failAt(i, "allowed in a string without an escape")
			return nil
		}
	}
	r.fail("a string that ends")
	return nil
}

// escaped goes on with a string at its first escape.
func (r *reader) escaped(start, i int) []byte {
	out := append(make([]byte, 0, i-start+16), r.data[start:i]...)
	for i < len(r.data) {
		switch c := r.data[i]; {
		case c == '"':
			r.pos = i + 1
			return out
		case c == '\\':
			var n int
			if out, n = unescape(out, r.data[i:]); n == 0 {
				r.failAt(i, "an escape of JSON")
				return nil
			}
			i += n
		case c < ' ':
			r.failAt(i, "allowed in a string without an escape")
			return nil
		default:
			out = append(out, c)
			i++
		}
	}
	r.fail("a string that ends")
	return nil
}

// unescape appends what the escape at the start of b stands for and says how long it is, 0 if it is none.
func unescape(out, b []byte) ([]byte, int) {
	if len(b) < 2 {
		return out, 0
	}
	switch b[1] {
	case '"', '\\', '/':
		return append(out, b[1]), 2
	case 'b':
		return append(out, '\b'), 2
	case 'f':
		return append(out, '\f'), 2
	case 'n':
		return append(out, '\n'), 2
	case 'r':
		return append(out, '\r'), 2
	case 't':
		return append(out, '\t'), 2
	case 'u':
		unit, ok := codeUnit(b)
		if !ok {
			return out, 0
		}
		if utf16.IsSurrogate(unit) {
			second, ok := codeUnit(b[6:])
			if char := utf16.DecodeRune(unit, second); ok && char != utf8.RuneError {
				return utf8.AppendRune(out, char), 12
			}
		}
		return utf8.AppendRune(out, unit), 6 // half of a pair alone becomes U+FFFD
	}
	return out, 0
}

// codeUnit reads \uXXXX at the start of b.
func codeUnit(b []byte) (rune, bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	return rune(n), err == nil
}

// appendText writes s as a JSON string, escaping what has to be escaped and nothing else.
func appendText(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			char, size := utf8.DecodeRuneInString(s[i:])
			if char == utf8.RuneError && size == 1 {
				out = append(append(out, s[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			out = append(out, s[start:i]...)
			switch c {
			case '"', '\\':
				out = append(out, '\\', c)
			case '\n':
				out = append(out, '\\', 'n')
			case '\r':
				out = append(out, '\\', 'r')
			case '\t':
				out = append(out, '\\', 't')
			default:
				out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			}
			start = i + 1
		}
		i++
	}
	return append(append(out, s[start:]...), '"')
}
