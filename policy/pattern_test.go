package policy

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// javaMatches is the recorded file: what Java answers to patterns and texts.
func javaMatches(t testing.TB) (texts []string, answers map[string]string) {
	t.Helper()
	f, err := os.Open("testdata/java-matches.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	answers = map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "#"):
		case texts == nil:
			for line != "" {
				q, err := strconv.QuotedPrefix(line)
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, unquote(t, q))
				line = strings.TrimPrefix(line[len(q):], " ")
			}
		default:
			i := strings.LastIndexByte(line, ' ')
			answers[unquote(t, line[:i])] = line[i+1:]
		}
	}
	return texts, answers
}

func unquote(t testing.TB, q string) string {
	t.Helper()
	s, err := strconv.Unquote(q)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return s
}

// TestPatternsAsJava holds the translation against Java: a pattern that is translated matches what Java matches, and
// what Java refuses is refused.
func TestPatternsAsJava(t *testing.T) {
	texts, answers := javaMatches(t)
	translated, refused := 0, 0
	for java, want := range answers {
		p := compile(java)
		switch {
		case want == "-":
			if p.re != nil {
				t.Errorf("%q: Java refuses it, translated to %s", java, p.re)
			}
		case p.re == nil:
			refused++
		default:
			translated++
			for i, text := range texts {
				if got := p.matches(text); (got == yes) != (want[i] == '1') || got == unknown {
					t.Errorf("%q on %q: %v, Java %c (%s)", java, text, got, want[i], p.re)
				}
			}
		}
	}
	if translated < 700 || refused > 150 {
		t.Errorf("%d patterns translated, %d refused that Java takes", translated, refused)
	}
}

// TestPatternsRefused are patterns that Java takes and whose meaning Go cannot keep.
func TestPatternsRefused(t *testing.T) {
	_, answers := javaMatches(t)
	for _, java := range []string{
		"(?!pulsar/).*", "(?=t).*", "(?<=a)b", "(?<!a)b", "(?>a|ab)c", "a*+b", "a++", "a?+", `(a)\1`, `(?<x>a)\k<x>`,
		"[a-z&&[^b]]", "[a-c[x-z]]", `\G.*`, `\X`, `\R`, `\N{DIGIT ONE}`, `\cA`, `\07`, "(?x)a b", "(?m)^a$", `(?U)\w`, "a{1001}",
	} {
		if answers[java] == "" || answers[java] == "-" {
			t.Errorf("%q is not recorded as a pattern that Java takes", java)
		}
		if p := compile(java); p.re != nil || p.err == nil || p.matches("a") != unknown {
			t.Errorf("%q was translated to %v", java, p.re)
		}
	}
}

func TestPatternLimits(t *testing.T) {
	for name, java := range map[string]string{
		"long":          strings.Repeat("a", maxPattern+1),
		"deep":          strings.Repeat("(", maxNesting+1) + strings.Repeat(")", maxNesting+1),
		"not UTF-8":     "a\xff",
		"class":         "[a\xff]",
		"repeats":       "((a{999}){999}){999}",
		"property":      `\p`,
		"open property": `\p{Alpha`,
		"hex":           `\x4`,
		"flags":         "(?i",
		"name":          "(?<1>a)",
		"surrogate":     `\ud83d`,
	} {
		if p := compile(java); p.err == nil {
			t.Errorf("%s: translated to %s", name, p.re)
		} else if len(p.err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", name, len(p.err.Error()))
		}
	}
	if p := compile(strings.Repeat("(", 50) + "a" + strings.Repeat(")", 50)); p.matches("a") != yes {
		t.Error(p.err)
	}
}

func TestMatchesOnlyPrintableASCII(t *testing.T) {
	p := compile(".*")
	for text, want := range map[string]answer{"t/ns": yes, "": yes, "t/n\u00e4": unknown, "t\n": unknown, "\x7f": unknown, "\xff": unknown} {
		if got := p.matches(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// FuzzPattern: translating is total and deterministic; what is quoted matches itself and nothing else; a pattern in a
// group, or with an alternative that cannot match, means the same.
func FuzzPattern(f *testing.F) {
	texts, answers := javaMatches(f)
	for java := range answers {
		f.Add(java, texts[len(java)%len(texts)])
	}
	f.Fuzz(func(t *testing.T, java, text string) {
		p := compile(java)
		if (p.re == nil) == (p.err == nil) {
			t.Fatalf("%q: %v and %v", java, p.re, p.err)
		}
		got := p.matches(text)
		if again := compile(java); again.matches(text) != got || fmt.Sprint(again.err) != fmt.Sprint(p.err) {
			t.Fatalf("%q: not deterministic", java)
		}
		if p.re == nil {
			return
		}
		for _, same := range []string{"(?:" + java + ")", "(?:" + java + `)|[^\p{ASCII}]x`} {
			if q := compile(same); q.re != nil && q.matches(text) != got && balanced(java) {
				t.Fatalf("%q and %q differ on %q", java, same, text)
			}
		}
		if text == "" || strings.Contains(text, `\E`) || !printable(text) || strings.HasSuffix(text, `\`) {
			return
		}
		if q := compile(`\Q` + text + `\E`); q.matches(text) != yes || q.matches(text+"x") != no {
			t.Fatalf("quoted %q: %v", text, q.err)
		}
	})
}

// balanced says whether a pattern stays one when something is written behind it: it does not end inside a quotation.
func balanced(java string) bool { return !strings.Contains(java, `\Q`) }
