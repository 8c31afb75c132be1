package policy

import (
	"fmt"
	"regexp"
	"strings"
)

// pattern is one Java regular expression of a policy. Pulsar matches it with String.matches: the whole text must match.
type pattern struct {
	text string         // as written in the policy
	re   *regexp.Regexp // nil = not known to mean the same in Go
	err  error          // why re is nil
}

// compile translates a Java regular expression.
func compile(java string) pattern {
	re, err := translate(java)
	return pattern{text: java, re: re, err: err}
}

// answer is what is known of a question about a pattern.
type answer uint8

const (
	no answer = iota
	yes
	unknown
)

// matches says whether the whole text matches. Java and Go agree on printable ASCII, which is all that names of
// namespaces and hosts are made of; of other text nothing is said.
func (p *pattern) matches(text string) answer {
	switch {
	case p.re == nil || !printable(text):
		return unknown
	case p.re.MatchString(text):
		return yes
	}
	return no
}

// anyMatches says whether one of the patterns matches the text.
func anyMatches(patterns []pattern, text string) answer {
	result := no
	for i := range patterns {
		switch patterns[i].matches(text) {
		case yes:
			return yes
		case unknown:
			result = unknown
		}
	}
	return result
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// Limits of what is translated; beyond them a pattern counts as one that Go cannot compile.
const (
	maxPattern = 1 << 11 // bytes
	maxNesting = 100     // parentheses
)

// translate turns a Java pattern into a Go one that matches the same printable ASCII texts as a whole. It knows the
// part of Java's syntax whose meaning is the same for such texts and refuses everything else: looking around, back
// references, atomic groups, possessive quantifiers, intersections of classes, comments, and whatever Java refuses.
func translate(java string) (*regexp.Regexp, error) {
	if len(java) > maxPattern {
		return nil, fmt.Errorf("pattern of %d bytes, at most %d are translated", len(java), maxPattern)
	}
	t := translator{in: java}
	t.out.WriteString(`\A(?:`)
	t.alternatives(false)
	if t.err == nil && t.pos < len(t.in) {
		t.fail(") without (")
	}
	t.out.WriteString(`)\z`)
	if t.err != nil {
		return nil, t.err
	}
	re, err := regexp.Compile(t.out.String())
	if err != nil {
		return nil, fmt.Errorf("pattern %s: %w", quote(java), err)
	}
	return re, nil
}

// translator reads a Java pattern from left to right and writes the Go one. Letters that match in either case are
// written out as classes, so Go's own case folding, which goes beyond ASCII, is never used.
type translator struct {
	in       string
	pos      int
	out      strings.Builder
	fold     bool // (?i)
	unicode  bool // (?u)
	nesting  int
	names    []string
	beyond   bool // a character beyond ASCII was written
	folded   bool // (?i) was used
	unicodes bool // (?u) was used
	err      error
}

func (t *translator) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf("pattern %s at %d: %s", quote(t.in), t.pos, fmt.Sprintf(format, args...))
	}
}

func quote(java string) string {
	const most = 200
	if len(java) > most {
		return fmt.Sprintf("%q...", java[:most])
	}
	return fmt.Sprintf("%q", java)
}

// alternatives reads up to the ) that ends the group, or to the end of the pattern.
func (t *translator) alternatives(group bool) {
	fold, unicode := t.fold, t.unicode
	for t.err == nil && t.pos < len(t.in) {
		switch c := t.in[t.pos]; c {
		case '|':
			t.pos++
			t.out.WriteByte('|')
		case ')':
			if !group {
				return // translate reports it
			}
			t.fold, t.unicode = fold, unicode
			return
		default:
			t.piece()
		}
	}
	if group {
		t.fail("( without )")
	}
	if t.unicodes && t.folded && t.beyond {
		t.fail("(?iu) with characters beyond ASCII")
	}
}

// piece reads one atom and the quantifier after it.
func (t *translator) piece() {
	switch rest := t.in[t.pos:]; {
	case strings.HasPrefix(rest, `\Q`):
		t.quoted()
	case strings.HasPrefix(rest, "(?"):
		if t.flags() {
			return // (?i) alone is no atom
		}
	case rest[0] == '(':
		t.group("(?:", 1)
	case rest[0] == '^' || rest[0] == '$':
		// Without a line break in the text, $ holds only at its very end, also before what could match one.
		t.pos++
		t.out.WriteString(map[byte]string{'^': `\A`, '$': `\z`}[rest[0]])
		t.noQuantifier()
		return
	case rest[0] == '.':
		t.pos++
		t.out.WriteString(`(?s:.)`)
	case rest[0] == '[':
		t.class()
	case rest[0] == '\\':
		if t.escape() {
			return // an assertion
		}
	case strings.IndexByte("*+?{", rest[0]) >= 0:
		t.fail("%q has nothing to repeat", rest[0])
	default:
		t.literal(t.rune())
	}
	t.quantifier()
}

// quoted reads \Q...\E; a quantifier after it belongs to the last character.
func (t *translator) quoted() {
	text, after, ended := strings.Cut(t.in[t.pos+2:], `\E`)
	if text == "" {
		t.fail(`nothing between \Q and \E`)
		return
	}
	for _, r := range text {
		t.literal(r)
	}
	t.pos = len(t.in)
	if ended {
		t.pos -= len(after)
	}
}

// group reads a group whose opening is n bytes long.
func (t *translator) group(open string, n int) {
	if t.nesting++; t.nesting > maxNesting {
		t.fail("more than %d parentheses within each other", maxNesting)
		return
	}
	t.pos += n
	t.out.WriteString(open)
	t.alternatives(true)
	t.out.WriteByte(')')
	t.pos++
	t.nesting--
}

// flags reads what begins with (?. It says whether that was flags alone, which hold until the end of the group.
func (t *translator) flags() (alone bool) {
	rest := t.in[t.pos+2:]
	if strings.HasPrefix(rest, "<") {
		t.named(rest[1:])
		return false
	}
	fold, unicode := t.fold, t.unicode
	on := true
	for i := range len(rest) {
		switch rest[i] {
		case 'i':
			fold = on
		case 'u':
			unicode = on
		case 's', 'd': // about line breaks, which the texts do not have
		case '-':
			if !on {
				t.fail("(?%s...) has two -", rest[:i])
				return false
			}
			on = false
		case ')', ':':
			if rest[i] == ')' {
				t.pos += 2 + i + 1
				t.setFlags(fold, unicode)
				t.noQuantifier()
				return true
			}
			was, wasUnicode := t.fold, t.unicode
			t.setFlags(fold, unicode)
			t.group("(?:", 2+i+1)
			t.fold, t.unicode = was, wasUnicode
			return false
		default:
			t.fail("(?%s is not translated", rest[:i+1])
			return false
		}
	}
	t.fail("( without )")
	return false
}

func (t *translator) setFlags(fold, unicode bool) {
	t.fold, t.unicode = fold, unicode
	t.folded = t.folded || fold
	t.unicodes = t.unicodes || unicode
}

// named reads the group (?<name>...); after is what follows the <.
func (t *translator) named(after string) {
	name, _, ok := strings.Cut(after, ">")
	if !ok || !groupName(name) {
		t.fail("(?<%s is not translated", shorten(after))
		return
	}
	for _, n := range t.names {
		if n == name {
			t.fail("two groups of the name %s", name)
			return
		}
	}
	t.names = append(t.names, name)
	t.group("(?:", 3+len(name)+1)
}

func shorten(s string) string { return s[:min(len(s), 20)] }

func groupName(name string) bool {
	for i := range len(name) {
		if !letter(name[i]) && (i == 0 || !digit(name[i])) {
			return false
		}
	}
	return name != ""
}

func letter(c byte) bool { return 'a' <= c|' ' && c|' ' <= 'z' }
func digit(c byte) bool  { return '0' <= c && c <= '9' }

// quantifier reads what may follow an atom. Lazy quantifiers match the same texts as greedy ones.
func (t *translator) quantifier() {
	if t.err != nil || t.pos >= len(t.in) {
		return
	}
	from := t.pos
	switch t.in[t.pos] {
	case '?', '*', '+':
		t.pos++
	case '{':
		if !t.counts() {
			t.pos = from
			t.fail("{ without numbers")
			return
		}
	default:
		return
	}
	t.out.WriteString(t.in[from:t.pos])
	if t.pos < len(t.in) && t.in[t.pos] == '?' {
		t.pos++
	}
	t.noQuantifier()
}

// counts passes over {n}, {n,} or {n,m}. Go checks the numbers.
func (t *translator) counts() bool {
	digits := func() (n int) {
		for t.pos < len(t.in) && digit(t.in[t.pos]) {
			t.pos++
			n++
		}
		return n
	}
	t.pos++
	if digits() == 0 {
		return false
	}
	if t.pos < len(t.in) && t.in[t.pos] == ',' {
		t.pos++
		digits()
	}
	t.pos++
	return t.pos <= len(t.in) && t.in[t.pos-1] == '}'
}

// noQuantifier refuses a quantifier where Java refuses one or means a possessive one.
func (t *translator) noQuantifier() {
	if t.err == nil && t.pos < len(t.in) && strings.IndexByte("*+?{", t.in[t.pos]) >= 0 {
		t.fail("%q is not translated here", t.in[t.pos])
	}
}
