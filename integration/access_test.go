//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/diagnose"
	"github.com/ballast-lb/ballast/integration/harness"
)

// secured is a cluster that authenticates and authorizes, with what its clients need.
type secured struct {
	*harness.Cluster
	keys  *harness.Secure
	trust string
}

// plain and tls are the flags for the two kinds of ports.
func (s *secured) plain() []string {
	return []string{"--admin-service-url", s.AdminURL(), "--service-url", s.ServiceURL()}
}

func (s *secured) tls() []string {
	service := strings.NewReplacer("pulsar://", "pulsar+ssl://", ":6650", ":6651").Replace(s.ServiceURL())
	web := strings.NewReplacer("http://", "https://", ":8080", ":8443").Replace(s.AdminURL())
	return []string{"--admin-service-url", web, "--service-url", service, "--tls-trust-cert-path", s.trust}
}

// issuer is an OAuth 2.0 server that gives out tokens of a role to the client that has the key file.
func (s *secured) issuer(t *testing.T, role string) (address, keyFile string) {
	t.Helper()
	const id, secret = "ballast", "0auth-s3cret"
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
			fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q}`, server.URL, server.URL+"/token")
		case r.PostFormValue("client_id") != id || r.PostFormValue("client_secret") != secret:
			http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
		default:
			fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, s.keys.Token(role))
		}
	})
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, s.keys.File(t, "oauth.json", fmt.Sprintf(`{"type":"client_credentials","client_id":%q,"client_secret":%q,"issuer_url":%q}`, id, secret, server.URL))
}

// granting is the address of the cluster behind an authorization that refuses some requests and passes on the others.
func (s *secured) granting(t *testing.T, refuse func(*http.Request) bool) string {
	t.Helper()
	to, err := url.Parse(s.AdminURL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuse(r) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"reason":"not granted to this role"}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// ballast runs the program to its end with an environment of its own.
func (s *secured) ballast(t *testing.T, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := launch(t, env, args...)
	code = p.wait(t)
	stdout, stderr = p.text()
	return stdout, stderr, code
}

// Every way to authenticate works on both kinds of ports, for topics and admin REST, and shows no secret.
func TestAccess(t *testing.T) {
	keys := harness.NewSecure(t)
	c := pool.Get(t, harness.Options{Brokers: 2, Secure: keys})
	s := &secured{Cluster: c, keys: keys, trust: keys.Trust(t)}
	token := keys.Token(harness.Super)
	file := keys.File(t, "token", token)
	cert, key := keys.Certificate(t, harness.Super)
	issuer, oauthKey := s.issuer(t, harness.Super)
	basic := fmt.Sprintf(`{"userId":%q,"password":%q}`, harness.BasicUser, harness.BasicPassword)
	secrets := []string{token, harness.BasicPassword, "0auth-s3cret", basic}
	const plugin = "org.apache.pulsar.client.impl.auth.Authentication"

	for _, way := range []struct {
		name  string
		env   []string
		flags []string
	}{
		{"token file", nil, slices.Concat(s.plain(), []string{"--token-file", file})},
		{"token in the environment", []string{"BALLAST_TOKEN=" + token}, s.plain()},
		{"name and password", []string{"BALLAST_AUTH_PLUGIN=" + plugin + "Basic", "BALLAST_AUTH_PARAMS=" + basic}, s.plain()},
		{"OAuth 2.0", nil, slices.Concat(s.plain(), []string{"--issuer-endpoint", issuer, "--client-id", "ballast", "--audience", "pulsar", "--key-file", oauthKey})},
		{"name and password over TLS", []string{"BALLAST_AUTH_PLUGIN=" + plugin + "Basic", "BALLAST_AUTH_PARAMS=" + basic}, s.tls()},
		{"OAuth 2.0 over TLS", nil, slices.Concat(s.tls(), []string{"--issuer-endpoint", issuer, "--client-id", "ballast", "--audience", "pulsar", "--key-file", oauthKey})},
		{"token over TLS", nil, slices.Concat(s.tls(), []string{"--token-file", file})},
		{"client certificate", nil, slices.Concat(s.tls(), []string{"--tls-cert-file", cert, "--tls-key-file", key})},
	} {
		t.Run(way.name, func(t *testing.T) {
			stdout, stderr, code := s.ballast(t, way.env, slices.Concat([]string{"plan", "-o", "json", "--estimate", "--wait", "5s", "--log-level", "debug"}, way.flags)...)
			var cy cycle
			if err := json.Unmarshal([]byte(stdout), &cy); err != nil || code == 1 {
				t.Fatalf("plan ended with %d (%v)\n%s\n%s", code, err, stdout, tail(stderr))
			}
			config, err2, code2 := s.ballast(t, way.env, slices.Concat([]string{"config", "-o", "json"}, way.flags)...)
			if code2 != 0 {
				t.Errorf("config ended with %d: %s", code2, err2)
			}
			for _, secret := range secrets {
				if strings.Contains(stdout+stderr+config+err2, secret) {
					t.Errorf("a secret is shown: %s", secret)
				}
			}
		})
	}

	t.Run("govern", func(t *testing.T) {
		before := conf(t, c)
		args := slices.Concat([]string{"run", "--mode", "govern", "--take-over", "--set", "ballastCycleInterval=2s", "--set", "ballastHttpListenAddress="}, s.tls())
		p := launch(t, []string{"BALLAST_TOKEN=" + token}, args...) // what the environment has could get into the process list
		p.says(t, "took over", time.Minute)
		p.says(t, "msg=cycle", 3*time.Minute)
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.cmd.Process.Pid))
		if err != nil || strings.Contains(string(line), token) {
			t.Errorf("the process list shows %q (%v)", line, err)
		}
		if code := p.stop(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if stdout, stderr := p.text(); strings.Contains(stdout+stderr, token) {
			t.Error("the token is shown")
		}
		if after := conf(t, c); len(after) != len(before) {
			t.Errorf("dynamic configuration before %v, after %v", before, after)
		}
	})

	t.Run("doctor", func(t *testing.T) {
		args := slices.Concat([]string{"doctor", "-o", "json", "--watch", "2s", "--set", "ballastMode=govern"}, s.plain(), []string{"--token-file", file})
		stdout, stderr, code := s.ballast(t, nil, args...)
		var got examined
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("it ended with %d (%v)\n%s\n%s", code, err, stdout, tail(stderr))
		}
		tried := 0
		for _, f := range got.Findings {
			if f.Area == diagnose.Permissions {
				if tried++; f.Severity != diagnose.OK {
					t.Errorf("a super-user lacks a permission: %s %s", f.Why.Code, f.Why)
				}
			}
		}
		if tried == 0 {
			t.Error("nothing is said about permissions")
		}
		if strings.Contains(stdout+stderr, token) {
			t.Error("the token is shown")
		}
		if after := conf(t, c); len(after) > 0 {
			t.Errorf("trying the permissions left %v in the dynamic configuration", after)
		}
	})

	// A cluster with an authorization of its own can grant less than everything: what it refuses is named.
	for _, lacks := range []struct {
		what   string
		refuse func(*http.Request) bool
	}{
		{string(admin.MayUnload), func(r *http.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/unload")
		}},
		{string(admin.MayConfigure), func(r *http.Request) bool {
			return r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/brokers/configuration/")
		}},
		{"read the isolation policies", func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/namespaceIsolationPolicies") }},
	} {
		t.Run("doctor without: "+lacks.what, func(t *testing.T) {
			args := []string{"doctor", "-o", "json", "--watch", "1s", "--set", "ballastMode=govern", "--admin-service-url", s.granting(t, lacks.refuse),
				"--service-url", s.ServiceURL(), "--token-file", file}
			stdout, stderr, code := s.ballast(t, nil, args...)
			var got examined
			if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 1 {
				t.Fatalf("it ended with %d (%v)\n%s\n%s", code, err, stdout, tail(stderr))
			}
			var denied []string
			for _, f := range got.Findings {
				if f.Why.Code == diagnose.Denied.ID {
					denied = append(denied, f.About)
				}
			}
			if !slices.Equal(denied, []string{lacks.what}) {
				t.Errorf("it names %q as denied, want %q alone\n%s", denied, lacks.what, stdout)
			}
		})
	}

	for _, bad := range []struct {
		name  string
		flags []string
		want  []string
	}{
		{"no credentials", s.plain(), []string{"401"}},
		{"a token of another cluster", slices.Concat(s.plain(), []string{"--token-file", keys.File(t, "stranger", harness.NewSecure(t).Token(harness.Super))}), []string{"401"}},
		{"a role without rights", slices.Concat(s.plain(), []string{"--token-file", keys.File(t, "nobody", keys.Token("nobody"))}), []string{"not authorized", "nobody", "LIST_RUNTIME_CONFIGURATIONS"}},
		{"an authority that is not trusted", slices.Concat(s.tls()[:4], []string{"--token-file", file}), []string{"certificate"}},
		{"a token file that is not there", slices.Concat(s.plain(), []string{"--token-file", filepath.Join(t.TempDir(), "none")}), []string{"TokenFile", "no such file"}},
	} {
		t.Run(bad.name, func(t *testing.T) {
			stdout, stderr, code := s.ballast(t, nil, slices.Concat([]string{"plan"}, bad.flags)...)
			if code != 1 || stdout != "" || strings.Count(stderr, "error: ") != 1 {
				t.Errorf("it ended with %d, %q and %q", code, stdout, stderr)
			}
			for _, want := range bad.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("it does not say %q: %s", want, stderr)
				}
			}
			if strings.Contains(stderr, token) {
				t.Error("the error shows the token")
			}
		})
	}
}
