package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ballast-lb/ballast/settings"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ballast runs the program with an environment and arguments.
func ballast(t *testing.T, environ []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, environ, &out, &errs)
	return out.String(), errs.String(), code
}

func TestDemoMakesTheClusterEven(t *testing.T) {
	stdout, stderr, code := ballast(t, nil, "demo", "--pause", "0s")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	last := regexp.MustCompile(`max/mean of broker throughput: ([0-9.]+) before, ([0-9.]+) after; (\d+) moves, (\d+) topics moved\n$`).FindStringSubmatch(stdout)
	if last == nil {
		t.Fatalf("the last line is not the summary:\n%s", stdout[max(0, len(stdout)-400):])
	}
	if last[1] < "2" || last[2] > "1.25" {
		t.Errorf("from %s to %s: want from above 2 to at most 1.25", last[1], last[2])
	}
	if again, _, _ := ballast(t, nil, "demo", "--pause", "0s"); again != stdout {
		t.Error("a second run with the same seed says something else")
	}
	if other, _, _ := ballast(t, nil, "demo", "--pause", "0s", "--seed", "2"); other == stdout {
		t.Error("another seed gives the same run")
	}
}

func TestDemoCanBeStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code := run(ctx, []string{"demo"}, nil, &bytes.Buffer{}, &bytes.Buffer{}); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestConfigSaysWhereValuesComeFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ballast.conf")
	if err := os.WriteFile(file, []byte("loadBalancerBrokerLoadTargetStd=0.1\nballastMode=observe\ntoken=secret-one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := ballast(t, []string{"BALLAST_MODE=advise", "BALLAST_CONFIG=" + file}, "config", "--offline", "-o", "json",
		"--set", "ballastCycleInterval=5s", "--service-url", "pulsar://elsewhere:6650")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if strings.Contains(stdout, "secret-one") {
		t.Error("a secret is shown")
	}
	var doc configOutput
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		t.Fatal(err)
	}
	got := map[string]configValue{}
	for _, v := range doc.Settings {
		got[v.Key] = v
	}
	for key, want := range map[string]configValue{
		"loadBalancerBrokerLoadTargetStd": {Value: "0.1", Origin: "file"},
		"ballastMode":                     {Value: "advise", Origin: "environment"},
		"ballastCycleInterval":            {Value: "5s", Origin: "flag"},
		"serviceUrl":                      {Value: "pulsar://elsewhere:6650", Origin: "flag"},
		"loadBalancerTransferEnabled":     {Value: "true", Origin: "default"},
		"token":                           {Value: "***", Origin: "file"},
	} {
		if v := got[key]; v.Value != want.Value || v.Origin != want.Origin {
			t.Errorf("%s is %q from %s (%s), want %q from %s", key, v.Value, v.Origin, v.Where, want.Value, want.Origin)
		}
	}
	table, _, code := ballast(t, nil, "config", "--offline", "--all=false", "--set", "ballastMode=observe")
	if code != 0 || strings.Count(table, "\n") < 2 || strings.Contains(table, "loadBalancerTransferEnabled") {
		t.Errorf("exit code %d, with --all=false:\n%s", code, table)
	}
	yaml, _, code := ballast(t, nil, "config", "--offline", "-o", "yaml")
	if code != 0 || !strings.Contains(yaml, "key: ballastMode") {
		t.Errorf("exit code %d, as YAML:\n%s", code, yaml[:min(400, len(yaml))])
	}
}

func TestConformanceCommand(t *testing.T) {
	dir := "../../conformance/testdata/"
	stdout, stderr, code := ballast(t, nil, "conformance", dir+"resource_usage.jsonl.gz", dir+"state_transitions.jsonl.gz")
	if code != 0 || !regexp.MustCompile(`resource_usage\s+200/200\n`).MatchString(stdout) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	for name, line := range map[string]string{
		"a difference": `{"kind":"resource_usage","seed":1,"case":0,"scenario":"x","config":{},"input":{"a":[1,2],"b":[1,2]},"output":{"percentUsageA":51}}`,
		"unknown kind": `{"kind":"tea_leaves","seed":1,"case":0,"scenario":"x","config":{},"input":{},"output":{}}`,
		"garbage":      `{"kind":`,
	} {
		file := filepath.Join(t.TempDir(), "v.jsonl")
		if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if stdout, stderr, code := ballast(t, nil, "conformance", file); code != 1 || stdout+stderr == "" {
			t.Errorf("%s: exit code %d: %s%s", name, code, stdout, stderr)
		}
	}
	if _, stderr, code := ballast(t, nil, "conformance", dir+"absent.jsonl"); code != 1 || !strings.Contains(stderr, "absent.jsonl") {
		t.Errorf("a file that is not there: exit code %d: %s", code, stderr)
	}
	if _, stderr, code := ballast(t, nil, "conformance", "--pulsar", "3.3.3", dir+"resource_usage.jsonl.gz"); code != 1 || !strings.Contains(stderr, "3.3.3") {
		t.Errorf("a version without vectors: exit code %d: %s", code, stderr)
	}
}

func TestVersionAndCompletion(t *testing.T) {
	if stdout, _, code := ballast(t, nil, "version"); code != 0 || !strings.HasPrefix(stdout, "ballast ") {
		t.Errorf("version: exit code %d: %s", code, stdout)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if stdout, _, code := ballast(t, nil, "completion", shell); code != 0 || !strings.Contains(stdout, "ballast") {
			t.Errorf("completion %s: exit code %d", shell, code)
		}
	}
}

func TestUsageErrors(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"plna"}, `"plna"`},
		{[]string{"plan", "-o", "xml"}, `--output is "xml": it must be table, json or yaml`},
		{[]string{"monitor", "--interval", "1ms"}, "--interval is 1ms: it must be 1s or more"},
		{[]string{"tail", "lode"}, `topic is "lode"`},
		{[]string{"tail", "--from", "begin"}, `--from is "begin"`},
		{[]string{"demo", "--cycles", "0"}, "--cycles is 0"},
		{[]string{"config", "--offline", "--set", "ballastMode"}, "it must be key=value"},
	} {
		_, stderr, code := ballast(t, nil, tc.args...)
		if code != 1 || !strings.Contains(stderr, tc.want) {
			t.Errorf("%q: exit code %d, %q; want 1 and %q", tc.args, code, stderr, tc.want)
		}
	}
}

func TestPlansAlthoughTheClusterDoesNotShed(t *testing.T) {
	off := map[string]string{"loadBalancerEnabled": "false", "loadBalancerSheddingEnabled": "false"}
	l, err := settings.Resolve("4.2.4", settings.ClusterLayer("cluster", off))
	if err != nil {
		t.Fatal(err)
	}
	planAnyway(l)
	if !l.Settings.LoadBalancerEnabled || !l.Settings.LoadBalancerSheddingEnabled {
		t.Error("what the cluster switched off for itself keeps Ballast from planning")
	}
	own := settings.Layer{Origin: settings.OriginFlag, Entries: []settings.Entry{{Key: "loadBalancerSheddingEnabled", Text: "false"}}}
	if l, err = settings.Resolve("4.2.4", settings.ClusterLayer("cluster", off), own); err != nil {
		t.Fatal(err)
	}
	if planAnyway(l); l.Settings.LoadBalancerSheddingEnabled {
		t.Error("what the operator of Ballast switched off is on")
	}
}
