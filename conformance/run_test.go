package conformance

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/settings"
	"github.com/google/go-cmp/cmp"
)

const (
	goodLine = `{"kind":"resource_usage","seed":1,"case":2,"scenario":"x","config":{},"input":{"a":[1,4],"b":[1,2]},` +
		`"output":{"percentA":25.0,"percentABits":"41c80000","percentB":50.0,"percentBBits":"42480000","compare":1}}`
	badLine = `{"kind":"resource_usage","seed":1,"case":3,"scenario":"x","config":{},"input":{"a":[1,4],"b":[1,2]},` +
		`"output":{"percentA":25.0,"percentABits":"41c80000","percentB":50.0,"percentBBits":"42480000","compare":-1}}`
	unknownLine = `{"kind":"no_such_kind","config":{},"input":{},"output":{}}`
)

func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRun(t *testing.T) {
	text := goodLine + "\n\n" + badLine + "\n"
	for name, file := range map[string][]byte{"plain": []byte(text), "gzip": compressed(t, text)} {
		t.Run(name, func(t *testing.T) {
			report, err := Run(bytes.NewReader(file), "")
			if err != nil {
				t.Fatal(err)
			}
			want := Report{Pulsar: Pulsar4, Kinds: []KindReport{{Kind: "resource_usage", Matched: 1, Total: 2, Differences: []Difference{
				{Line: 3, Seed: 1, Case: 3, Scenario: "x", Diff: "- .compare: -1\n+ .compare: 1\n"},
			}}}}
			if diff := cmp.Diff(want, report); diff != "" {
				t.Errorf("report differs (-want +got):\n%s", diff)
			}
			if report.OK() {
				t.Error("a report with a difference is OK")
			}
			if text := report.String(); !strings.Contains(text, "resource_usage                        1/2\n") || !strings.Contains(text, "    - .compare: -1\n") {
				t.Errorf("report is written as\n%s", text)
			}
		})
	}
}

// TestUnknownKind reports what is known and fails because of the rest.
func TestUnknownKind(t *testing.T) {
	report, err := Run(strings.NewReader(unknownLine+"\n"+goodLine+"\n"+unknownLine), Pulsar4)
	if !errors.Is(err, ErrUnknownKind) || !strings.Contains(err.Error(), `"no_such_kind" (2 lines)`) {
		t.Errorf("error is %v", err)
	}
	if len(report.Kinds) != 1 || report.Kinds[0].Total != 1 {
		t.Errorf("report is %v", report)
	}
}

func TestBadFiles(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"no JSON", "{", "line 1 is not a vector"},
		{"no object", goodLine + "\n[]", "line 2 is not a vector"},
		{"no kind", "{}", "line 1 has no kind"},
		{"torn gzip", string(compressed(t, goodLine)[:40]), "unexpected EOF"},
		{"gzip of nothing", "\x1f\x8b", "EOF"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Run(strings.NewReader(test.text), ""); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want one with %q", err, test.want)
			}
		})
	}
	if _, err := Run(strings.NewReader(""), "3.0.7"); err == nil || !strings.Contains(err.Error(), `"3.0.7"`) {
		t.Errorf("unknown version: %v", err)
	}
}

// TestRunFiles checks the other files though one cannot be read.
func TestRunFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "good.jsonl")
	if err := os.WriteFile(name, []byte(goodLine), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := RunFiles([]string{filepath.Join(t.TempDir(), "absent"), name}, Pulsar5)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	if !report.OK() || len(report.Kinds) != 1 || report.Kinds[0].Matched != 1 {
		t.Errorf("report is %v", report)
	}
}

// TestGuarded holds that a check that panics is a difference and not the end.
func TestGuarded(t *testing.T) {
	if got := guarded(func(Line, string) string { panic("out of range") }, Line{}, Pulsar4); got != "panic: out of range" {
		t.Errorf("difference is %q", got)
	}
}

// TestChecksCanFail gives each kind an output that nobody recorded: a check that is content with it checks nothing.
func TestChecksCanFail(t *testing.T) {
	for kind, check := range Kinds() {
		t.Run(kind, func(t *testing.T) {
			file, pulsar := filepath.Join("testdata", kind+".jsonl.gz"), Pulsar4
			if _, err := os.Stat(file); err != nil {
				file, pulsar = filepath.Join("testdata", "pulsar-5", kind+".jsonl.gz"), Pulsar5
			}
			line := firstLine(t, file)
			line.Output = json.RawMessage(`{}`)
			if guarded(check, line, pulsar) == "" {
				t.Error("the check is content")
			}
		})
	}
}

func firstLine(t *testing.T, file string) Line {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := decompress(f)
	if err != nil {
		t.Fatal(err)
	}
	var line Line
	if err := json.NewDecoder(in).Decode(&line); err != nil {
		t.Fatal(err)
	}
	return line
}

func TestLineSettings(t *testing.T) {
	l := Line{Config: json.RawMessage(`{"loadBalancerBrokerMaxTopics":7,"loadBalancerHistoryResourcePercentage":"NaN","preferLaterVersions":true,` +
		`"loadManagerClassName":"x","loadBalancerSheddingExcludedNamespaces":["a/b"],"minUnloadMessage":null,"storageType":"SystemTopic"}`)}
	got, err := l.Settings()
	if err != nil {
		t.Fatal(err)
	}
	want := settings.Defaults()
	want.LoadBalancerBrokerMaxTopics, want.PreferLaterVersions, want.LoadManagerClassName = 7, true, "x"
	want.LoadBalancerSheddingExcludedNamespaces = []string{"a/b"}
	if !math.IsNaN(got.LoadBalancerHistoryResourcePercentage) {
		t.Errorf("history is %v", got.LoadBalancerHistoryResourcePercentage)
	}
	got.LoadBalancerHistoryResourcePercentage = want.LoadBalancerHistoryResourcePercentage
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings differ (-want +got):\n%s", diff)
	}
	var store string
	if there, err := l.Option("storageType", &store); err != nil || !there || store != "SystemTopic" {
		t.Errorf("option is %q, %t, %v", store, there, err)
	}
	if there, err := l.Option("checkBrokers", &store); err != nil || there {
		t.Errorf("an absent option: %t, %v", there, err)
	}
	if _, err := l.Option("preferLaterVersions", &store); err == nil {
		t.Error("a flag was read as a string")
	}
	for _, config := range []string{`[]`, `{"minUnloadMessage":"1"}`, `{"maxUnloadPercentage":"much"}`} {
		if _, err := (Line{Config: json.RawMessage(config)}).Settings(); err == nil {
			t.Errorf("configuration %s was read", config)
		}
	}
}

func TestFloat(t *testing.T) {
	for text, want := range map[string]Float{
		`1.5`: 1.5, `"NaN"`: Float(math.NaN()), `"Infinity"`: Float(math.Inf(1)), `"-Infinity"`: Float(math.Inf(-1)), `4.9E-324`: 5e-324, `-0.0`: Float(math.Copysign(0, -1)),
	} {
		var got Float
		if err := json.Unmarshal([]byte(text), &got); err != nil || math.Float64bits(float64(got)) != math.Float64bits(float64(want)) && want == want {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
		again, err := json.Marshal(got)
		if err != nil {
			t.Error(err)
		}
		if diff := Diff([]byte(text), again); diff != "" {
			t.Errorf("%s is written as %s", text, again)
		}
	}
	kept := Float(3)
	if err := json.Unmarshal([]byte(`null`), &kept); err != nil || kept != 3 {
		t.Errorf("null makes %v, %v", kept, err)
	}
	if err := json.Unmarshal([]byte(`"1.5"`), &kept); err == nil {
		t.Error("a string was read")
	}
}
