package settings

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseProperties(t *testing.T) {
	text := "# comment\r\n! comment\n\n  a=1\nb : 2\nc 3\nd\\=e = 4 = 5 \nlong=x,\\\n   y,\\\n\tz\nempty=\nalone\nslash=\\\\\nend=\\\\\\\\\ntab=\\t\\u00e9\\:\na=again\rmac=1\nlast=\\"
	want := []Entry{
		{"a", "1", "f:4"}, {"b", "2", "f:5"}, {"c", "3", "f:6"}, {"d=e", "4 = 5 ", "f:7"}, {"long", "x,y,z", "f:8"}, {"empty", "", "f:11"},
		{"alone", "", "f:12"}, {"slash", `\`, "f:13"}, {"end", `\\`, "f:14"}, {"tab", "\té:", "f:15"}, {"a", "again", "f:16"}, {"mac", "1", "f:17"}, {"last", "", "f:18"},
	}
	got, err := ParseProperties("f", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"a=1\nb=\\u12x4": `f:2: value of b: "u12x4" after a backslash: it must be u and four hexadecimal digits`,
		"\\u12=1":        `f:1: key: "u12" after a backslash: it must be u and four hexadecimal digits`,
	} {
		if _, err := ParseProperties("f", text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// FuzzParseProperties: every text gives entries or an error, and what was read can be written and read again.
func FuzzParseProperties(f *testing.F) {
	for _, seed := range []string{"a=b", "a\\\n=b", "\\u0041 : x\\ny", "a=\\", "#x\n!y\n\n=", "k v\\\\\\\nw"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, err := ParseProperties("f", text)
		if err != nil {
			return
		}
		escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, "\f", `\f`, " ", `\ `, "=", `\=`, ":", `\:`, "#", `\#`, "!", `\!`)
		for _, e := range entries {
			again, err := ParseProperties("f", escape.Replace(e.Key)+"="+escape.Replace(e.Text))
			if e.Key == "" {
				continue
			}
			if err != nil || len(again) != 1 || again[0].Key != e.Key || again[0].Text != e.Text {
				t.Fatalf("%q=%q came back as %v, %v", e.Key, e.Text, again, err)
			}
		}
	})
}

// FuzzSet: no text for any key panics, and what is accepted reads back.
func FuzzSet(f *testing.F) {
	for i, seed := range []string{"1", "-1", "true", "[a, b]", "NaN", "1e309", "0.5", "99999999999999999999", "leastLoadedServer", "[]", "["} {
		f.Add(i*7, seed)
	}
	f.Fuzz(func(t *testing.T, n int, text string) {
		keys := Keys()
		k := keys[uint(n)%uint(len(keys))]
		s := Defaults()
		if err := Set(s, k.Name, text); err != nil {
			if !strings.Contains(err.Error(), k.Name) {
				t.Fatalf("the error does not name %s: %v", k.Name, err)
			}
			return
		}
		shown, _ := Get(s, k.Name)
		if err := Set(s, k.Name, shown); err != nil {
			t.Fatalf("%s: %q was taken and shown as %q: %v", k.Name, text, shown, err)
		}
	})
}
