package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// set is a set of ASCII characters. The texts that are matched hold no others, so a class is what it is within ASCII.
type set [2]uint64

func (s *set) add(c byte)      { s[c>>6] |= 1 << (c & 63) }
func (s *set) has(c byte) bool { return s[c>>6]>>(c&63)&1 == 1 }

func (s *set) addRange(from, to rune) {
	for c := from; c <= to && c < utf8.RuneSelf; c++ {
		s.add(byte(c))
	}
}

func (s *set) union(o set)  { s[0] |= o[0]; s[1] |= o[1] }
func (s set) negated() set  { return set{^s[0], ^s[1]} }
func (s *set) foldLetters() { s.union(set{0, s[1]<<32&upperLower | s[1]>>32&upperLower}) }

// upperLower are the letters within the upper half of a set: A to Z and, 32 further on, a to z.
const upperLower = 0x07fffffe_07fffffe

func span(ranges string) (s set) {
	for i := 0; i < len(ranges); i += 2 {
		s.addRange(rune(ranges[i]), rune(ranges[i+1]))
	}
	return s
}

// The classes that Java names with one letter; upper case negates. Pulsar's patterns do not set UNICODE_CHARACTER_CLASS.
var letterClasses = map[byte]set{
	'd': span("09"),
	'w': span("azAZ09__"),
	's': span("\t\r  "),
	'h': span("\t\t  "),
	'v': span("\n\r"),
}

// The classes that Java names in \p{...}, within ASCII. Those about case are not here: what they mean under (?i)
// depends on the Java version.
var namedClasses = map[string]set{
	"Alpha": span("azAZ"), "Digit": span("09"), "Alnum": span("azAZ09"), "ASCII": span("\x00\x7f"),
	"Punct": span("!/:@[`{~"), "Graph": span("!~"), "Print": span(" ~"), "Blank": span("\t\t  "),
	"Cntrl": span("\x00\x1f\x7f\x7f"), "XDigit": span("09afAF"), "Space": span("\t\r  "),
	"javaLetter": span("azAZ"), "javaAlphabetic": span("azAZ"), "javaDigit": span("09"),
	"javaLetterOrDigit": span("azAZ09"), "javaWhitespace": span("\t\r\x1c\x1f  "),
	"L": span("azAZ"), "IsL": span("azAZ"), "N": span("09"), "IsN": span("09"), "Nd": span("09"), "IsNd": span("09"),
	"IsAlphabetic": span("azAZ"), "IsLetter": span("azAZ"), "IsDigit": span("09"), "IsLatin": span("azAZ"),
}

// The classes about case; refused under (?i).
var caseClasses = map[string]set{
	"Lower": span("az"), "javaLowerCase": span("az"), "Ll": span("az"), "IsLl": span("az"), "IsLowercase": span("az"),
	"Upper": span("AZ"), "javaUpperCase": span("AZ"), "Lu": span("AZ"), "IsLu": span("AZ"), "IsUppercase": span("AZ"),
}

// rune reads one character. Bytes that are no UTF-8 cannot be in a Java string.
func (t *translator) rune() rune {
	r, n := utf8.DecodeRuneInString(t.in[t.pos:])
	if r == utf8.RuneError && n <= 1 {
		t.fail("not UTF-8")
	}
	t.pos += n
	return r
}

func (t *translator) literal(r rune) {
	if r >= utf8.RuneSelf {
		t.beyond = true
		t.out.WriteString(regexp.QuoteMeta(string(r)))
		return
	}
	if t.fold && letter(byte(r)) {
		fmt.Fprintf(&t.out, "[%c%c]", r, r^' ')
		return
	}
	t.out.WriteString(regexp.QuoteMeta(string(r)))
}

// write writes a set as a Go class.
func (t *translator) write(s set) {
	if s == (set{}) {
		t.out.WriteString(`[^\x00-\x{10FFFF}]`)
		return
	}
	t.out.WriteByte('[')
	for c := 0; c < utf8.RuneSelf; c++ {
		if !s.has(byte(c)) {
			continue
		}
		first := c
		for c+1 < utf8.RuneSelf && s.has(byte(c+1)) {
			c++
		}
		fmt.Fprintf(&t.out, `\x%02x-\x%02x`, first, c)
	}
	t.out.WriteByte(']')
}

// escape reads a backslash and what belongs to it outside a class. It says whether that was an assertion.
func (t *translator) escape() (assertion bool) {
	if t.pos+1 < len(t.in) {
		if as, ok := map[byte]string{'A': `\A`, 'z': `\z`, 'Z': `\z`, 'b': `\b`, 'B': `\B`}[t.in[t.pos+1]]; ok {
			t.pos += 2
			if strings.HasPrefix(t.in[t.pos:], "{") {
				t.fail(`\b{ is not translated`)
			}
			t.out.WriteString(as)
			t.noQuantifier()
			return true
		}
	}
	if s, r, isSet := t.escaped(); isSet {
		t.write(s)
	} else {
		t.literal(r)
	}
	return false
}

// escaped reads a backslash and what belongs to it: a character or a class.
func (t *translator) escaped() (s set, r rune, isSet bool) {
	t.pos++
	if t.pos >= len(t.in) {
		t.fail(`\ at the end`)
		return s, 0, false
	}
	c := t.in[t.pos]
	if class, ok := letterClasses[c|' ']; ok && letter(c) {
		t.pos++
		if c < 'a' {
			class = class.negated()
		}
		return class, 0, true
	}
	switch c {
	case 'p', 'P':
		return t.property(), 0, true
	case 't', 'n', 'r', 'f', 'a', 'e':
		t.pos++
		return s, rune("\t\n\r\f\a\x1b"[strings.IndexByte("tnrfae", c)]), false
	case 'x', 'u':
		return s, t.hex(), false
	}
	if letter(c) || digit(c) {
		t.fail(`\%c is not translated`, c)
		return s, 0, false
	}
	return s, t.rune(), false
}

// hex reads xhh, x{h...} or uhhhh.
func (t *translator) hex() rune {
	n := 2
	if t.in[t.pos] == 'u' {
		n = 4
	}
	t.pos++
	digits := t.in[t.pos:min(t.pos+n, len(t.in))]
	if n == 2 && strings.HasPrefix(digits, "{") {
		inner, _, ok := strings.Cut(t.in[t.pos+1:], "}")
		if !ok {
			t.fail(`\x{ without }`)
			return 0
		}
		digits, n = inner, len(inner)
		t.pos += 2
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || len(digits) != n || !utf8.ValidRune(rune(v)) || v > utf8.MaxRune {
		t.fail("%q is no character", digits)
		return 0
	}
	t.pos += n
	return rune(v)
}

// property reads p{Name}, pX and their negations.
func (t *translator) property() set {
	negate := t.in[t.pos] == 'P'
	name := t.in[t.pos+1:]
	if name == "" {
		t.fail(`\p without a name`)
		return set{}
	}
	t.pos += 2
	if strings.HasPrefix(name, "{") {
		inner, _, ok := strings.Cut(name[1:], "}")
		if !ok {
			t.fail(`\p{ without }`)
			return set{}
		}
		name = inner
		t.pos += len(inner) + 1
	} else {
		name = name[:1]
	}
	s, ok := namedClasses[name]
	if !ok && !t.fold {
		s, ok = caseClasses[name]
	}
	if !ok {
		t.fail(`\p{%s} is not translated here`, shorten(name))
	}
	if negate {
		s = s.negated()
	}
	return s
}

// class reads [...]. Classes within classes and intersections are refused.
func (t *translator) class() {
	t.pos++
	negate := strings.HasPrefix(t.in[t.pos:], "^")
	if negate {
		t.pos++
	}
	var s set
	for first := true; t.err == nil; first = false {
		rest := t.in[t.pos:]
		switch {
		case rest == "":
			t.fail("[ without ]")
			return
		case rest[0] == ']' && !first:
			t.pos++
			if negate {
				s = s.negated()
			}
			t.write(s)
			return
		case rest[0] == '[' || rest[0] == ']' || strings.HasPrefix(rest, "&&"):
			t.fail("%q is not translated in a class", rest[:1])
			return
		case strings.HasPrefix(rest, `\Q`):
			t.fail(`\Q is not translated in a class`)
			return
		}
		t.member(&s)
	}
}

// member reads one member of a class: a class, a character or a range.
func (t *translator) member(s *set) {
	class, from, isSet := t.member1()
	if isSet {
		s.union(class)
		return
	}
	to := from
	if rest := t.in[t.pos:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
		if rest[1] == '[' || strings.HasPrefix(rest[1:], `\Q`) {
			t.fail("a range to %q is not translated", rest[1])
			return
		}
		t.pos++
		if _, to, isSet = t.member1(); isSet || to < from {
			t.fail("no range")
			return
		}
	}
	if from >= utf8.RuneSelf || to >= utf8.RuneSelf {
		t.beyond = true
	}
	var r set
	r.addRange(from, to)
	if t.fold {
		r.foldLetters()
	}
	s.union(r)
}

func (t *translator) member1() (set, rune, bool) {
	if t.in[t.pos] == '\\' {
		return t.escaped()
	}
	return set{}, t.rune(), false
}
