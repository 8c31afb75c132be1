package admin_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ballast-lb/ballast/access"
	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
)

// control asks a real cluster through this client.
var _ control.Cluster = (*admin.Client)(nil)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a broker's web service: answers by "METHOD path", and what was asked.
type fake struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]http.HandlerFunc
	asked   []string
}

func newFake(t *testing.T) *fake {
	f := &fake{answers: map[string]http.HandlerFunc{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	key := r.Method + " " + r.URL.EscapedPath()
	f.asked = append(f.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	h := f.answers[key]
	f.mu.Unlock()
	if h == nil {
		text(http.StatusNotFound, "<html><title>Error 404 Not Found</title></html>")(w, r)
		return
	}
	h(w, r)
}

func (f *fake) on(key string, h http.HandlerFunc) *fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[key] = h
	return f
}

func (f *fake) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.asked...)
}

func (f *fake) id() string { return strings.TrimPrefix(f.URL, "http://") }

func text(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func reason(status int, why string) http.HandlerFunc {
	b, _ := json.Marshal(map[string]string{"reason": why})
	return text(status, string(b))
}

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", to+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// hang answers when the test ends.
func hang(t *testing.T) http.HandlerFunc {
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}
}

func newClient(t *testing.T, o admin.Options, urls ...string) *admin.Client {
	t.Helper()
	o.URLs = urls
	o.RetryWait = time.Millisecond
	c, err := admin.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestRedirects(t *testing.T) {
	const unload = "PUT /admin/v2/namespaces/t/ns/0x00000000_0xffffffff/unload"
	const split = "PUT /admin/v2/namespaces/t/ns/0x00000000_0xffffffff/split"
	owner := newFake(t).on(unload, text(204, "")).on(split, text(204, ""))
	first := newFake(t).on(unload, redirect(owner.URL)).on(split, redirect(owner.URL)).on("GET /admin/v2/brokers", redirect(owner.URL))
	client := newClient(t, admin.Options{Auth: access.Auth{Token: "secret"}}, first.URL)
	if err := client.Unload(t.Context(), "t/ns/0x00000000_0xffffffff", "b2:8080"); err != nil {
		t.Fatal(err)
	}
	if err := client.Split(t.Context(), "t/ns/0x00000000_0xffffffff", "specified_positions_divide", []string{"0x00000010", "0xf0000000"}, true); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"PUT /admin/v2/namespaces/t/ns/0x00000000_0xffffffff/unload?destinationBroker=b2%3A8080",
		"PUT /admin/v2/namespaces/t/ns/0x00000000_0xffffffff/split?splitAlgorithmName=specified_positions_divide&unload=true [16,4026531840]",
	}
	for name, f := range map[string]*fake{"first": first, "owner": owner} {
		if diff := cmp.Diff(want, f.requests()); diff != "" {
			t.Errorf("%s was asked (-want +got):\n%s", name, diff)
		}
	}
	loop := newFake(t)
	loop.on(unload, redirect(loop.URL)).on("GET /admin/v2/brokers", redirect(loop.URL))
	client = newClient(t, admin.Options{Retries: -1}, loop.URL)
	checkError(t, client.Unload(t.Context(), "t/ns/0x00000000_0xffffffff", ""), admin.Redirects, true, true)
	checkError(t, second(client.BrokerIDs(t.Context())), admin.Redirects, true, true)
	if n := len(loop.requests()); n != 12 {
		t.Errorf("%d requests, want 6 for each", n)
	}
}

func TestRedirectsThatAreRefused(t *testing.T) {
	const unload = "PUT /admin/v2/namespaces/t/ns/0x00000000_0xffffffff/unload"
	plain := newFake(t).on(unload, text(204, ""))
	secure := httptest.NewTLSServer(redirect(plain.URL))
	t.Cleanup(secure.Close)
	client := newClient(t, admin.Options{TLS: access.TLS{AllowInsecure: true}, Auth: access.Auth{Token: "secret"}}, secure.URL)
	checkError(t, client.Unload(t.Context(), "t/ns/0x00000000_0xffffffff", ""), admin.Redirects, true, true)
	if n := len(plain.requests()); n > 0 {
		t.Error("a token was sent on from https to http")
	}
	moved := newFake(t).on(unload, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, plain.URL+r.URL.RequestURI(), http.StatusMovedPermanently)
	})
	client = newClient(t, admin.Options{}, moved.URL)
	err := client.Unload(t.Context(), "t/ns/0x00000000_0xffffffff", "")
	checkError(t, err, admin.Redirects, true, true)
	if n := len(plain.requests()); n > 0 || !strings.Contains(err.Error(), "makes a GET of a PUT") {
		t.Errorf("%v; %d requests", err, n)
	}
}

func TestSeveralAddresses(t *testing.T) {
	const unload = "PUT /admin/v2/namespaces/t/ns/0x00000000_0xffffffff/unload"
	brokers := text(200, `["b:1"]`)
	notReady, page := newFake(t).on("GET /admin/v2/brokers", text(503, "")), newFake(t)
	good := newFake(t).on("GET /admin/v2/brokers", brokers).on(unload, text(204, ""))
	gone := httptest.NewServer(nil)
	gone.Close()
	client := newClient(t, admin.Options{}, gone.URL+","+strings.TrimPrefix(notReady.URL, "http://"), page.URL, good.URL)
	for range 2 {
		ids, err := client.BrokerIDs(t.Context())
		if err != nil || len(ids) != 1 {
			t.Fatal(ids, err)
		}
	}
	if a, b, c := len(notReady.requests()), len(page.requests()), len(good.requests()); a != 1 || b != 1 || c != 2 {
		t.Errorf("asked %d, %d, %d times: want the address that answered to be kept", a, b, c)
	}
	// A change goes on to the next address only from one that cannot be reached.
	client = newClient(t, admin.Options{}, gone.URL, good.URL)
	if err := client.Unload(t.Context(), "t/ns/0x00000000_0xffffffff", ""); err != nil {
		t.Error(err)
	}
	failing := newFake(t).on(unload, text(500, ""))
	client = newClient(t, admin.Options{}, failing.URL, good.URL)
	checkError(t, client.Unload(t.Context(), "t/ns/0x00000000_0xffffffff", ""), admin.Server, true, false)
	if n := len(failing.requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

func TestAuthentication(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("from-file-1")
	for _, c := range []struct {
		auth access.Auth
		want string
		name string
	}{
		{access.Auth{}, "", "none"},
		{access.Auth{Token: "t0ken"}, "Bearer t0ken", "Token"},
		{access.Auth{TokenFile: file}, "Bearer from-file-1", "TokenFile"},
		{access.Auth{BasicUser: "u", BasicPassword: "p4ss"}, "Basic dTpwNHNz", "BasicUser"},
		{access.Auth{Plugin: "org.apache.pulsar.client.impl.auth.AuthenticationToken", Params: `{"token":"p1ugin"}`}, "Bearer p1ugin", "Plugin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got atomic.Value
			owner := newFake(t).on("GET /admin/v2/brokers", func(w http.ResponseWriter, r *http.Request) {
				got.Store(r.Header.Get("Authorization"))
				reason(401, "go away")(w, r)
			})
			first := newFake(t).on("GET /admin/v2/brokers", redirect(owner.URL))
			client := newClient(t, admin.Options{Auth: c.auth}, first.URL)
			_, err := client.BrokerIDs(t.Context())
			checkError(t, err, admin.Unauthorized, false, true)
			if got.Load() != c.want {
				t.Errorf("after a redirect: %q, want %q", got.Load(), c.want)
			}
			shown := fmt.Sprintf("%v %+v %#v %v", c.auth, admin.Options{Auth: c.auth}, c.auth, err)
			for _, secret := range []string{"t0ken", "p4ss", "from-file", "p1ugin", "dTpwNHNz"} {
				if strings.Contains(shown, secret) {
					t.Errorf("a secret is shown: %s", shown)
				}
			}
			if c.auth.TokenFile != "" {
				write("from-file-2")
				_, _ = client.BrokerIDs(t.Context())
				if got.Load() != "Bearer from-file-2" {
					t.Errorf("the token file was not read anew: %q", got.Load())
				}
			}
			resp, err := client.HTTPClient().Get(first.URL + "/admin/v2/brokers")
			if err != nil || resp.StatusCode != 401 || got.Load() == "" && c.want != "" {
				t.Errorf("HTTPClient: %v, %v", resp, err)
			}
			if err == nil {
				_ = resp.Body.Close()
			}
		})
	}
}

func TestOptionsAreChecked(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	notPEM := filepath.Join(t.TempDir(), "pem")
	if err := os.WriteFile(notPEM, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	ok := []string{"http://b:8080"}
	for want, o := range map[string]admin.Options{
		"URLs is empty":                   {},
		`URLs: "b:8080": want http://`:    {URLs: []string{"b:8080"}},
		`URLs: "pulsar://b:6650"`:         {URLs: []string{"pulsar://b:6650"}},
		`URLs: "http://": want`:           {URLs: []string{"http://"}},
		`"...@b:8080": want http`:         {URLs: []string{"http://me:hunter2@b:8080"}},
		"Retries is -2":                   {URLs: ok, Retries: -2},
		"ReadTimeout is -1s":              {URLs: ok, ReadTimeout: -time.Second},
		"TLS.TrustCertsFile":              {URLs: ok, TLS: access.TLS{TrustCertsFile: missing}},
		"holds no PEM certificate":        {URLs: ok, TLS: access.TLS{TrustCertsFile: notPEM}},
		"want both or neither":            {URLs: ok, TLS: access.TLS{CertFile: missing}},
		"TLS.CertFile: ":                  {URLs: ok, TLS: access.TLS{CertFile: missing, KeyFile: missing}},
		"want both CertFile and":          {URLs: ok, Auth: access.Auth{CertFile: missing}},
		"more than one way in Auth":       {URLs: ok, Auth: access.Auth{Token: "hunter2", BasicUser: "u"}},
		"Auth.TokenFile":                  {URLs: ok, Auth: access.Auth{TokenFile: missing}},
		"Auth.Plugin":                     {URLs: ok, Auth: access.Auth{Plugin: "no.such.Plugin", Params: `{"password":"hunter2"}`}},
		"Transport is set beside":         {URLs: ok, Transport: http.DefaultTransport, Auth: access.Auth{Token: "hunter2"}},
		`URLs: "http://b:8080?a=1": want`: {URLs: []string{"http://b:8080?a=1"}},
	} {
		_, err := admin.New(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: want %q", err, want)
		}
	}
}

// TestAddresses: brokers name addresses that are not reached from here; requests go elsewhere under the same name.
func TestAddresses(t *testing.T) {
	f := newFake(t)
	var host atomic.Value
	f.on("GET /admin/v2/brokers/version", func(w http.ResponseWriter, r *http.Request) {
		host.Store(r.Host)
		text(200, "4.2.4")(w, r)
	})
	client := newClient(t, admin.Options{Addresses: map[string]string{"broker-0.internal:8080": f.id(), "entry.internal:80": f.id()}}, "http://entry.internal")
	f.on("GET /admin/v2/brokers", redirect("http://broker-0.internal:8080/x"))
	f.on("GET /x/admin/v2/brokers", text(200, `["broker-0.internal:8080"]`))
	ids, err := client.BrokerIDs(t.Context())
	if err != nil || len(ids) != 1 {
		t.Fatal(ids, err)
	}
	v, err := client.Version(t.Context(), ids[0])
	if err != nil || v != "4.2.4" || host.Load() != "broker-0.internal:8080" {
		t.Errorf("%q, %v, host %v", v, err, host.Load())
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(text(200, `["b:1"]`))
	t.Cleanup(s.Close)
	pem := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(pem, pemOf(s), 0o600); err != nil {
		t.Fatal(err)
	}
	client := newClient(t, admin.Options{TLS: access.TLS{TrustCertsFile: pem}}, s.URL)
	if ids, err := client.BrokerIDs(t.Context()); err != nil || len(ids) != 1 {
		t.Error(ids, err)
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	// The certificate is for example.com, and must not be taken for another name.
	wrong := newClient(t, admin.Options{TLS: access.TLS{TrustCertsFile: pem}, Addresses: map[string]string{"elsewhere.invalid:443": u.Host}}, "https://elsewhere.invalid")
	checkError(t, second(wrong.BrokerIDs(t.Context())), admin.Unreachable, false, true)
	right := newClient(t, admin.Options{TLS: access.TLS{TrustCertsFile: pem}, Addresses: map[string]string{"example.com:443": u.Host}}, "https://example.com")
	if ids, err := right.BrokerIDs(t.Context()); err != nil || len(ids) != 1 {
		t.Error(ids, err)
	}
}
