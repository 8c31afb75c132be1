package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/access"
	"github.com/ballast-lb/ballast/topics"
)

func ownershipTopic(t *testing.T) topics.Name {
	t.Helper()
	n, err := topics.ParseName(topics.ServiceUnitState)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// serve makes an admin interface that answers by path, and an admin that asks it.
func serve(t *testing.T, answers map[string]http.HandlerFunc) (*admin, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f, ok := answers[strings.TrimPrefix(r.URL.EscapedPath(), "/admin/v2/")]; ok {
			f(w, r)
			return
		}
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"reason":"Topic not found"}`)
	}))
	t.Cleanup(server.Close)
	return newAdmin(server.URL, server.Client(), time.Minute), server.URL
}

func body(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

const ownershipPath = "persistent/pulsar/system/loadbalancer-service-unit-state"

// TestLayout reads what a real broker answered, and what others might.
func TestLayout(t *testing.T) {
	recorded, err := os.ReadFile("testdata/internal-stats.json")
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		Ledgers []string
		Last    string
		Horizon string
	}
	for name, test := range map[string]struct {
		body string
		want result
		err  string
	}{
		"recorded": {body: string(recorded), want: result{[]string{"95:12", "104:8", "107:14", "112:8", "113:11", "196:7", "197:2"}, "197:1:0", "95:1:0"}},
		"open ledger": {body: `{"lastConfirmedEntry":"7:2","ledgers":[{"ledgerId":5,"entries":10},{"ledgerId":7,"entries":0}],"cursors":{}}`,
			want: result{[]string{"5:10", "7:3"}, "7:2:0", "-1:-1:0"}},
		"nothing in it": {body: `{"lastConfirmedEntry":"7:-1","ledgers":[{"ledgerId":5,"entries":10},{"ledgerId":7,"entries":0}],"cursors":{}}`,
			want: result{[]string{"5:10", "7:0"}, "5:9:0", "-1:-1:0"}},
		"empty": {body: `{"lastConfirmedEntry":"7:-1","ledgers":[{"ledgerId":7,"entries":0}]}`, want: result{[]string{"7:0"}, "-1:-1:0", "-1:-1:0"}},
		"compacted": {body: `{"lastConfirmedEntry":"7:2","ledgers":[{"ledgerId":7,"entries":0}],"compactedLedger":{"ledgerId":6,"entries":1},
			"cursors":{"__compaction":{"markDeletePosition":"7:1"}}}`, want: result{[]string{"7:3"}, "7:2:0", "7:1:0"}},
		"to be compacted": {body: `{"lastConfirmedEntry":"7:2","ledgers":[{"ledgerId":7,"entries":0}],"compactedLedger":{"ledgerId":-1},
			"cursors":{"__compaction":{"markDeletePosition":"7:-1"}}}`, want: result{[]string{"7:3"}, "7:2:0", "7:-1:0"}},
		"compacted and deleted": {body: `{"lastConfirmedEntry":"23:2","ledgers":[{"ledgerId":75,"entries":0}],"compactedLedger":{"ledgerId":61,"entries":1},
			"cursors":{"__compaction":{"markDeletePosition":"75:-1"}}}`, want: result{[]string{"75:0"}, "-1:-1:0", "75:-1:0"}},
		"no JSON":      {body: `<html>`, err: "internal stats of " + topics.ServiceUnitState},
		"bad position": {body: `{"lastConfirmedEntry":"7"}`, err: `lastConfirmedEntry: "7"`},
		"bad cursor":   {body: `{"lastConfirmedEntry":"7:2","compactedLedger":{"ledgerId":6},"cursors":{"__compaction":{"markDeletePosition":"x:y"}}}`, err: `"x:y"`},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := serve(t, map[string]http.HandlerFunc{ownershipPath + "/internalStats": body(http.StatusOK, test.body)})
			l, err := a.layout(t.Context(), ownershipTopic(t))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want one about %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := result{Last: l.last().String(), Horizon: l.horizon.String()}
			for _, s := range l.ledgers {
				got.Ledgers = append(got.Ledgers, fmt.Sprintf("%d:%d", s.id, s.entries))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("layout (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEntryAnswers(t *testing.T) {
	lone := func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range answerOf("X-Pulsar-partition-key: a", "X-Pulsar-null-value: true", "X-Pulsar-uncompressed-size: 0") {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
	}
	batch := func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range answerOf("X-Pulsar-num-batch-message: 2") {
			w.Header()[http.CanonicalHeaderKey(name)] = values
		}
		_, _ = w.Write(batchOf("a=1", "b="))
	}
	a, url := serve(t, map[string]http.HandlerFunc{
		ownershipPath + "/ledger/5/entry/0": lone,
		ownershipPath + "/ledger/5/entry/1": batch,
		ownershipPath + "/ledger/5/entry/2": body(http.StatusInternalServerError, `{"reason":"\n --- An unexpected error ---\n"}`),
		ownershipPath + "/ledger/5/entry/3": body(http.StatusBadGateway, "<html>\n<title>Error 502</title>\n<body>no</body></html>"),
		ownershipPath + "/ledger/5/entry/4": body(http.StatusOK, "no headers"),
	})
	n := ownershipTopic(t)
	get := func(entry int64) ([]record, error) { return a.entry(t.Context(), n, 5, entry, 1000) }
	records, err := get(0)
	if err != nil || len(records) != 1 || records[0].id != at(5, 0) || records[0].key != "a" || len(records[0].payload) != 0 {
		t.Errorf("lone tombstone: %+v, %v", records, err)
	}
	records, err = get(1)
	if err != nil || len(records) != 2 || records[0].id != at(5, 1, 0, 2) || records[1].id != at(5, 1, 1, 2) || records[1].key != "b" {
		t.Errorf("batch: %+v, %v", records, err)
	}
	for entry, want := range map[int64]string{
		2: "GET " + url + "/admin/v2/" + ownershipPath + "/ledger/5/entry/2: 500 Internal Server Error: --- An unexpected error ---",
		3: "502 Bad Gateway: Error 502",
		4: "entry 5:4 of " + topics.ServiceUnitState,
		9: "404 Not Found: Topic not found",
	} {
		if _, err := get(entry); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("entry %d: %v, want %q", entry, err, want)
		}
	}
}

func TestOtherAnswers(t *testing.T) {
	n := ownershipTopic(t)
	a, _ := serve(t, map[string]http.HandlerFunc{
		"schemas/pulsar/system/loadbalancer-service-unit-state/schema": body(http.StatusOK, `{"version":3,"type":"JSON","data":"{}","properties":{"a":"b"}}`),
		ownershipPath + "/stats":             body(http.StatusOK, `{"subscriptions":{"mine":{"consumers":[{},{}]},"idle":{"consumers":[]}}}`),
		"non-persistent/a/b/c%2Fd%20e/stats": body(http.StatusOK, `{}`),
	})
	if r, err := a.schema(t.Context(), n); err != nil || r.Version != 3 || r.Type != "JSON" || r.Data != "{}" || r.Properties["a"] != "b" {
		t.Errorf("schema: %+v, %v", r, err)
	}
	for name, want := range map[string]int{"mine": 2, "idle": 0, "other": 0} {
		if got, err := a.consumers(t.Context(), n, name); got != want || err != nil {
			t.Errorf("consumers of %s: %d, %v, want %d", name, got, err, want)
		}
	}
	odd := topics.Name{Tenant: "a", Namespace: "b", Local: "c/d e"}
	none := topics.Name{Tenant: "a", Namespace: "b", Local: "none"}
	for topic, want := range map[topics.Name]bool{n: true, odd: true, none: false} {
		if got, err := a.exists(t.Context(), topic); got != want || err != nil {
			t.Errorf("%s exists: %v, %v, want %v", topic, got, err, want)
		}
	}
	if r, err := a.schema(t.Context(), none); r != nil || err != nil {
		t.Errorf("schema of a topic without one: %+v, %v", r, err)
	}
	if got, err := a.consumers(t.Context(), none, "mine"); got != 0 || err != nil {
		t.Errorf("consumers of no topic: %d, %v", got, err)
	}
}

// TestNextAddress: an address that cannot be reached is left for the next one; one that answers badly is believed.
func TestNextAddress(t *testing.T) {
	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	asked := 0
	_, url := serve(t, map[string]http.HandlerFunc{ownershipPath + "/stats": func(http.ResponseWriter, *http.Request) { asked++ }})
	two := dead.URL + "," + strings.TrimPrefix(url, "http://")
	a := newAdmin(two, http.DefaultClient, time.Minute)
	defer http.DefaultClient.CloseIdleConnections()
	n := ownershipTopic(t)
	for range 3 {
		if ok, err := a.exists(t.Context(), n); !ok || err != nil {
			t.Errorf("exists: %v, %v", ok, err)
		}
	}
	if asked != 3 || a.current.Load() != 1 {
		t.Errorf("asked %d times, is at %d", asked, a.current.Load())
	}
	if _, err := a.layout(t.Context(), n); statusOf(err) != http.StatusNotFound || a.current.Load() != 1 {
		t.Errorf("layout: %v, is at %d", err, a.current.Load())
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.exists(ended, n); !errors.Is(err, context.Canceled) {
		t.Errorf("exists: %v, want context.Canceled", err)
	}
	b := newAdmin(dead.URL, http.DefaultClient, time.Minute)
	if _, err := b.exists(t.Context(), n); err == nil || statusOf(err) != 0 {
		t.Errorf("exists: %v, want that it cannot be reached", err)
	}
}

// TestRedirectsKeepAuthentication: brokers send each other's clients on with 307; every hop must be authenticated.
func TestRedirectsKeepAuthentication(t *testing.T) {
	tokenFile := t.TempDir() + "/token"
	if err := os.WriteFile(tokenFile, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		auth access.Auth
		want string
	}{
		"none":       {access.Auth{}, ""},
		"token":      {access.Auth{Token: "s3cret"}, "Bearer s3cret"},
		"token file": {access.Auth{TokenFile: tokenFile}, "Bearer s3cret"},
		"basic":      {access.Auth{BasicUser: "u", BasicPassword: "p"}, "Basic dTpw"},
		"plugin":     {access.Auth{Plugin: "token", Params: `{"token":"s3cret"}`}, "Bearer s3cret"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			note := func(next http.HandlerFunc) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					seen = append(seen, r.Header.Get("Authorization"))
					next(w, r)
				}
			}
			_, target := serve(t, map[string]http.HandlerFunc{ownershipPath + "/stats": note(body(http.StatusOK, "{}"))})
			_, first := serve(t, map[string]http.HandlerFunc{ownershipPath + "/stats": note(func(w http.ResponseWriter, r *http.Request) {
				other := strings.Replace(target, "127.0.0.1", "localhost", 1) // another host, as far as HTTP knows
				http.Redirect(w, r, other+r.URL.Path, http.StatusTemporaryRedirect)
			})})
			o := Options{ServiceURL: "pulsar://h:1", AdminURL: first, Auth: test.auth}.withDefaults()
			p, err := o.Auth.Provider()
			if err != nil {
				t.Fatal(err)
			}
			c, closeIdle, err := o.adminClient(p)
			if err != nil {
				t.Fatal(err)
			}
			defer closeIdle()
			if ok, err := newAdmin(o.AdminURL, c, time.Minute).exists(t.Context(), ownershipTopic(t)); !ok || err != nil {
				t.Fatalf("exists: %v, %v", ok, err)
			}
			if diff := cmp.Diff([]string{test.want, test.want}, seen); diff != "" {
				t.Errorf("authorization (-want +got):\n%s", diff)
			}
		})
	}
}
