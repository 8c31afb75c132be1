package admin_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
)

func TestErrorKinds(t *testing.T) {
	const op = "GET /admin/v2/brokers"
	half := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `["a:1",`)
	}
	for _, c := range []struct {
		name      string
		answer    http.HandlerFunc
		kind      admin.Kind
		status    int
		temporary bool
		refused   bool
		says      string
		asked     int // with two repetitions
	}{
		{"401", reason(401, "Authentication required"), admin.Unauthorized, 401, false, true, "Authentication required", 1},
		{"403", reason(403, "not allowed"), admin.Unauthorized, 403, false, true, "not allowed", 1},
		{"404 of Pulsar", reason(404, "Cluster does not exist"), admin.NotFound, 404, false, true, "does not exist", 1},
		{"404 of something else", text(404, "<html><title>Nothing here</title>"), admin.BadAnswer, 404, false, true, "Nothing here; is this the web service address", 1},
		{"405", text(405, "<title>Error 405 Method Not Allowed</title>"), admin.BadRequest, 405, false, true, "Error 405", 1},
		{"409", reason(409, "inactive"), admin.Conflict, 409, false, true, "inactive", 1},
		{"412", reason(412, "unsupported"), admin.Precondition, 412, false, true, "unsupported", 1},
		{"429", reason(429, "slow down"), admin.Server, 429, true, true, "slow down", 3},
		{"500", reason(500, "\n --- An unexpected error occurred in the server ---\n\nMessage: no luck\n\nStacktrace:\n\njava.lang.IllegalStateException: no luck\n\tat x.Y"), admin.Server, 500, true, false, "java.lang.IllegalStateException: no luck", 3},
		{"503", text(503, ""), admin.Server, 503, true, false, "Service Unavailable", 3},
		{"unsupported", reason(500, "Message: null\n\nStacktrace:\n\njava.lang.UnsupportedOperationException\n\tat x"), admin.Unsupported, 500, false, false, "UnsupportedOperationException", 1},
		{"garbage", text(200, "\x00\x01garbage"), admin.BadAnswer, 0, false, false, "invalid character", 1},
		{"another type", text(200, `{"a":1}`), admin.BadAnswer, 0, false, false, "cannot unmarshal", 1},
		{"nothing", text(200, ""), admin.BadAnswer, 0, false, false, "empty", 1},
		{"null", text(200, "null"), admin.BadAnswer, 0, false, false, "empty", 1},
		{"a web page", text(200, "<html>welcome</html>"), admin.BadAnswer, 0, false, false, "invalid character '<'", 1},
		{"half", half, admin.BadAnswer, 0, false, false, "unexpected EOF", 1},
		{"redirect to nowhere", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMovedPermanently) }, admin.BadAnswer, 0, false, false, "", 1},
		{"too long", text(200, `["`+strings.Repeat("x", 2000)+`"]`), admin.BadAnswer, 0, false, false, "more than 1000 bytes", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t).on(op, c.answer)
			ids, err := newClient(t, admin.Options{MaxAnswer: 1000}, f.URL).BrokerIDs(t.Context())
			var e *admin.Error
			if !errors.As(err, &e) || !errors.Is(err, c.kind) || len(ids) > 0 {
				t.Fatalf("%v, %v: want %s", ids, err, c.kind)
			}
			if e.Status != c.status || e.Temporary != c.temporary || e.Refused() != c.refused || !e.RetrySafe || !strings.Contains(e.Reason, c.says) {
				t.Errorf("%#v", e)
			}
			if !strings.Contains(err.Error(), "list the brokers: ") || !strings.Contains(err.Error(), f.id()) || strings.ContainsAny(err.Error(), "\n\t\x00") {
				t.Errorf("%q", err)
			}
			if n := len(f.requests()); n != c.asked {
				t.Errorf("asked %d times, want %d", n, c.asked)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	_ = l.Close()
	garbage := rawServer(t, "this is not HTTP\r\n")
	broken := rawServer(t, "")
	plain := newFake(t)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	for name, c := range map[string]struct {
		url     string
		kind    admin.Kind
		refused bool
	}{
		"nobody listens":            {closed, admin.Unreachable, true},
		"no such host":              {"http://no-such-host.invalid:8080", admin.Unreachable, true},
		"not HTTP":                  {garbage, admin.BadAnswer, false},
		"closed without an answer":  {broken, admin.Unreachable, false},
		"http at a TLS port":        {strings.Replace(secure.URL, "https", "http", 1), admin.BadRequest, true},
		"https at a plain port":     {strings.Replace(plain.URL, "http", "https", 1), admin.Unreachable, true},
		"a certificate of a nobody": {secure.URL, admin.Unreachable, true},
	} {
		t.Run(name, func(t *testing.T) {
			client := newClient(t, admin.Options{}, c.url)
			for op, err := range map[string]error{
				"read":  second(client.BrokerIDs(t.Context())),
				"write": client.Unload(t.Context(), "t/ns/0x00000000_0xffffffff", ""),
			} {
				var e *admin.Error
				if !errors.As(err, &e) || !errors.Is(err, c.kind) {
					t.Fatalf("%s: %v: want %s", op, err, c.kind)
				}
				if e.Refused() != c.refused || e.RetrySafe != (op == "read" || c.refused) {
					t.Errorf("%s: refused %v, retry safe %v: %v", op, e.Refused(), e.RetrySafe, err)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// rawServer answers every connection with the text and closes it.
func rawServer(t *testing.T, answer string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 4096)
			_, _ = conn.Read(buf)
			_, _ = io.WriteString(conn, answer)
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	return "http://" + l.Addr().String()
}

func TestTimeouts(t *testing.T) {
	f := newFake(t).on("GET /admin/v2/brokers", hang(t)).on("PUT /admin/v2/namespaces/t/ns/0x00000000_0xffffffff/unload", hang(t))
	client := newClient(t, admin.Options{ReadTimeout: 250 * time.Millisecond, WriteTimeout: 250 * time.Millisecond}, f.URL)
	_, err := client.BrokerIDs(t.Context())
	checkError(t, err, admin.Timeout, true, true)
	if n := len(f.requests()); n != 3 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read was tried %d times, want 3: %v", n, err)
	}
	err = client.Unload(t.Context(), "t/ns/0x00000000_0xffffffff", "b:1")
	checkError(t, err, admin.Timeout, true, false)
	if n := len(f.requests()); n != 4 {
		t.Errorf("an unload that timed out was repeated %d times", n-4)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	patient := newClient(t, admin.Options{}, f.URL)
	_, err = patient.BrokerIDs(ctx)
	checkError(t, err, admin.Canceled, false, true)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	for _, err := range []error{
		second(patient.BrokerIDs(ctx)), second(patient.Policies(ctx)), second(patient.Brokers(ctx)), second(patient.OwnerOf(ctx, "t/ns/0x00000000_0xffffffff")),
	} {
		checkError(t, err, admin.Timeout, true, true)
	}
}

func checkError(t *testing.T, err error, kind admin.Kind, temporary, safe bool) {
	t.Helper()
	var e *admin.Error
	if !errors.As(err, &e) || !errors.Is(err, kind) || e.Temporary != temporary || e.RetrySafe != safe {
		t.Errorf("%v: want %s, temporary %v, retry safe %v; have %#v", err, kind, temporary, safe, e)
	}
}
