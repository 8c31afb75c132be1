package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const unreachable = "http://127.0.0.1:1" // nobody listens on port 1

// fails runs the program and checks that it ends with exactly one error, of one line, that has every text in it.
func fails(t *testing.T, environ, args []string, texts ...string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), args, environ, &stdout, &stderr)
	if code != exitError {
		t.Errorf("%q ended with %d, want %d; %s", args, code, exitError, stderr.String())
	}
	if stdout.Len() > 0 {
		t.Errorf("%q printed a result: %s", args, stdout.String())
	}
	var errors []string
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "time=") { // the log
			errors = append(errors, strings.TrimSuffix(line, "\n"))
		}
	}
	if len(errors) != 1 || !strings.HasPrefix(errors[0], "error: ") {
		t.Fatalf("%q said %q, want one error", args, errors)
	}
	t.Log(errors[0])
	for _, text := range texts {
		if !strings.Contains(errors[0], text) {
			t.Errorf("%q: the error does not say %q: %s", args, text, errors[0])
		}
	}
}

// brokerAnswers is a server that answers admin requests as a broker would; paths that are not in answers are not found. The
// broker b:8080 in them is this server.
func brokerAnswers(t *testing.T, answers map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, strings.ReplaceAll(answer, "b:8080", r.Host)) // what the client makes of it is the test
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func withManager(class string) map[string]string {
	return map[string]string{
		"/admin/v2/brokers/configuration/runtime": `{"loadManagerClassName":"` + class + `","clusterName":"c"}`,
		"/admin/v2/brokers/leaderBroker":          `{"serviceUrl":"http://b:8080","brokerId":"b:8080"}`,
		"/admin/v2/brokers/version":               "4.2.4",
		"/admin/v2/clusters":                      `["c"]`,
		"/admin/v2/brokers":                       `["b:8080"]`,
		"/admin/v2/brokers/c":                     `["b:8080"]`,
	}
}

func TestWrongAddresses(t *testing.T) {
	for _, command := range [][]string{{"plan"}, {"run"}, {"monitor"}, {"tail"}, {"release"}, {"config"}, {"brokers"}, {"bundles"}, {"report", "b:8080"}} {
		t.Run(command[0]+" with nobody there", func(t *testing.T) {
			fails(t, nil, append(command, "--admin-service-url", unreachable), unreachable, "webServiceUrl", "refused")
		})
	}
	for _, url := range []string{"ftp://broker:8080", "pulsar://broker:6650", "broker", "http://", "http://bro ker", "http://broker:port", "://"} {
		t.Run("webServiceUrl "+url, func(t *testing.T) {
			fails(t, nil, []string{"plan", "--admin-service-url", url}, "webServiceUrl", url)
		})
	}
	for _, url := range []string{"http://broker:8080", "broker:6650", "pulsar://", "pulsar://broker:port"} {
		t.Run("serviceUrl "+url, func(t *testing.T) {
			fails(t, nil, []string{"plan", "--service-url", url}, "serviceUrl", url)
		})
	}
	t.Run("no Pulsar there", func(t *testing.T) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello</html>") }))
		t.Cleanup(server.Close)
		fails(t, nil, []string{"plan", "--admin-service-url", server.URL}, server.URL, "not a Pulsar answer")
	})
	t.Run("another service there", func(t *testing.T) {
		url := brokerAnswers(t, nil)
		fails(t, nil, []string{"plan", "--admin-service-url", url}, url, "404")
	})
}

func TestWrongToken(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			if got := r.Header.Get("Authorization"); got != "Bearer wrong-secret" {
				t.Errorf("Authorization is %q", got)
			}
			http.Error(w, "Authentication required", status)
		}))
		t.Cleanup(server.Close)
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), []string{"plan", "--admin-service-url", server.URL, "--token", "wrong-secret"}, nil, &stdout, &stderr); code != exitError {
			t.Errorf("%d: it ended with %d", status, code)
		}
		if strings.Contains(stderr.String()+stdout.String(), "wrong-secret") {
			t.Errorf("%d: the token is shown: %s", status, stderr.String())
		}
		if asked != 1 {
			t.Errorf("%d: a refused token was tried %d times", status, asked)
		}
		fails(t, nil, []string{"plan", "--admin-service-url", server.URL, "--token", "wrong-secret"}, "not authorized", fmt.Sprint(status))
	}
	fails(t, nil, []string{"plan", "--admin-service-url", unreachable, "--token-file", filepath.Join(t.TempDir(), "none")}, "none")
}

func TestOtherLoadManagers(t *testing.T) {
	const class = "org.example.NoSuchLoadManager"
	url := brokerAnswers(t, withManager(class))
	for _, command := range []string{"plan", "run"} {
		fails(t, nil, []string{command, "--admin-service-url", url}, class, "load manager")
	}
	// What shows brokers says which one does not answer, and goes on.
	stdout, stderr, code := ballast(t, nil, "monitor", "-n", "1", "--admin-service-url", url)
	if code != exitOK || !strings.Contains(stdout, "does not answer") || !strings.Contains(stdout, "load report") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}

// A setting that is unknown or makes no sense is refused wherever it comes from, with where that was.
func TestWrongSettings(t *testing.T) {
	for _, c := range []struct {
		key, value string
		texts      []string
	}{
		{"loadBalancerBrokerLoadTargetStdd", "0.1", []string{"loadBalancerBrokerLoadTargetStdd", "loadBalancerBrokerLoadTargetStd"}}, // with what was meant
		{"loadBalancerBrokerLoadTargetStd", "much", []string{"loadBalancerBrokerLoadTargetStd", "much"}},
		{"loadBalancerBrokerLoadTargetStd", "NaN", []string{"loadBalancerBrokerLoadTargetStd", "NaN"}},
		{"loadBalancerSheddingEnabled", "perhaps", []string{"loadBalancerSheddingEnabled", "perhaps"}},
		{"loadBalanceSheddingDelayInSeconds", "99999999999999999999", []string{"loadBalanceSheddingDelayInSeconds"}},
		{"ballastMode", "rule", []string{"ballastMode", "rule", "govern"}},
		{"ballastCycleInterval", "soon", []string{"ballastCycleInterval", "soon"}},
		{"ballastCycleInterval", "0s", []string{"ballastCycleInterval"}},
		{"ballastCycleInterval", "-1s", []string{"ballastCycleInterval"}},
		{"ballastMaxBundlesPerCycle", "-1", []string{"ballastMaxBundlesPerCycle", "-1"}},
		{"ballastLoadSource", "guess", []string{"ballastLoadSource", "guess"}},
		{"ballastLogLevel", "loud", []string{"ballastLogLevel", "loud"}},
	} {
		t.Run(c.key+"="+c.value, func(t *testing.T) {
			args := []string{"config", "--offline"}
			fails(t, nil, append(args, "--set", c.key+"="+c.value), append(c.texts, "--set")...)
			for name, content := range map[string]string{"broker.conf": c.key + "=" + c.value + "\n", "ballast.yaml": c.key + ": " + c.value + "\n",
				"ballast.json": `{"` + c.key + `":"` + c.value + `"}`} {
				file := filepath.Join(t.TempDir(), name)
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
				fails(t, nil, append(args, "--config", file), append(c.texts, name)...)
			}
		})
	}
	for name, value := range map[string]string{"BALLAST_MODE": "rule", "BALLAST_LOAD_BALANCER_BROKER_LOAD_TARGET_STD": "much", "BALLAST_NO_SUCH_THING": "1"} {
		t.Run(name, func(t *testing.T) {
			fails(t, []string{name + "=" + value}, []string{"config", "--offline"}, name)
		})
	}
}

func TestWrongFilesAndArguments(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("a: [1\nb"), 0o600); err != nil {
		t.Fatal(err)
	}
	typed := filepath.Join(t.TempDir(), "settings.toml")
	if err := os.WriteFile(typed, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		texts []string
	}{
		{[]string{"config", "--offline", "--config", "no-such-file.conf"}, []string{"no-such-file.conf"}},
		{[]string{"config", "--offline", "--config", broken}, []string{"broken.yaml"}},
		{[]string{"config", "--offline", "--config", typed}, []string{"settings.toml", ".yaml"}},
		{[]string{"config", "--offline", "--set", "novalue"}, []string{"--set", "key=value"}},
		{[]string{"config", "--offline", "-o", "xml"}, []string{"xml", "json"}},
		{[]string{"plan", "-o", "xml"}, []string{"xml", "json"}},
		{[]string{"plam"}, []string{"plam"}},
		{[]string{"plan", "now"}, []string{"now"}},
		{[]string{"tail", "everything"}, []string{"everything", "ownership"}},
		{[]string{"tail", "--from", "yesterday"}, []string{"yesterday", "earliest"}},
		{[]string{"monitor", "--interval", "1ms"}, []string{"1ms", "1s"}},
		{[]string{"run", "--mode", "rule", "--admin-service-url", unreachable}, []string{"rule", "govern"}},
		{[]string{"plan", "--no-such-flag"}, []string{"no-such-flag"}},
	} {
		t.Run(strings.Join(c.args[:min(2, len(c.args))], " "), func(t *testing.T) { fails(t, nil, c.args, c.texts...) })
	}
}

// A wrong setting that the cluster itself has is no reason to refuse: brokers live with it.
func TestClusterWithUnknownSettings(t *testing.T) {
	answers := withManager("org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl")
	answers["/admin/v2/brokers/configuration/runtime"] = `{"noSuchKey":"1","loadManagerClassName":"x","loadBalancerBrokerLoadTargetStd":"0.5"}`
	var stdout, stderr bytes.Buffer
	args := []string{"config", "--all=false", "-o", "json", "--admin-service-url", brokerAnswers(t, answers)}
	if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitOK {
		t.Fatalf("it ended with %d: %s", code, stderr.String())
	}
	got := strings.Contains(stdout.String(), `"loadBalancerBrokerLoadTargetStd"`) && !strings.Contains(stdout.String(), "noSuchKey")
	if diff := cmp.Diff(true, got); diff != "" {
		t.Errorf("the settings are %s", stdout.String())
	}
}
