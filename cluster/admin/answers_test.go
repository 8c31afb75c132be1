package admin_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/cluster/admin"
)

const runtimeConfig = `{"clusterName":"local","loadManagerClassName":"org.apache.pulsar.X","enablePersistentTopics":"true",` +
	`"enableNonPersistentTopics":"false","webServicePort":"Optional[8080]","webServicePortTls":"Optional[8443]",` +
	`"loadBalancerCPUResourceWeight":"1.0","loadBalancerMemoryResourceWeight":"0","loadBalancerMaxNumberOfBundlesInBundleLoadReport":"2"}`

// broker is a fake that answers what every broker answers.
func broker(t *testing.T) *fake {
	f := newFake(t)
	f.on("GET /admin/v2/brokers", func(w http.ResponseWriter, r *http.Request) { text(200, `["`+f.id()+`"]`)(w, r) })
	f.on("GET /admin/v2/brokers/version", text(200, "4.2.4"))
	f.on("GET /admin/v2/brokers/configuration/runtime", text(200, runtimeConfig))
	f.on("GET /admin/v2/tenants", text(200, `["t"]`))
	f.on("GET /admin/v2/namespaces/t", text(200, `["t/b","t/a"]`))
	f.on("GET /admin/v2/namespaces/t/a/antiAffinity", text(200, ""))
	f.on("GET /admin/v2/namespaces/t/b/antiAffinity", text(200, "Gold"))
	f.on("GET /admin/v2/clusters/local/failureDomains", text(200, `{"d":{"brokers":["b2:1","b1:1"]}}`))
	f.on("GET /admin/v2/clusters/local/namespaceIsolationPolicies", reason(404, "NamespaceIsolationPolicies for cluster local does not exist"))
	return f
}

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestBrokers: one broker that does not answer stays in the list, without what only it can say.
func TestBrokers(t *testing.T) {
	f := broker(t)
	gone := httptest.NewServer(nil)
	gone.Close()
	goneID := strings.TrimPrefix(gone.URL, "http://")
	confused := newFake(t).on("GET /admin/v2/brokers/version", text(200, "<html>hello</html>"))
	f.on("GET /admin/v2/brokers", text(200, `["`+goneID+`","`+f.id()+`","`+confused.id()+`","`+f.id()+`"]`))
	client := newClient(t, admin.Options{}, f.URL)
	brokers, silent, err := client.Answers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]cluster.Broker{}
	for i, b := range brokers {
		byID[b.ID] = b
		if i > 0 && brokers[i-1].ID >= b.ID {
			t.Errorf("not ordered: %v", brokers)
		}
	}
	want := map[string]cluster.Broker{
		goneID:        {ID: goneID},
		confused.id(): {ID: confused.id()},
		f.id():        {ID: f.id(), Version: "4.2.4", LoadManager: "org.apache.pulsar.X", PersistentTopics: true},
	}
	if diff := cmp.Diff(want, byID); diff != "" {
		t.Error(diff)
	}
	if len(silent) != 2 || !errors.Is(silent[goneID], admin.Unreachable) || !errors.Is(silent[confused.id()], admin.BadAnswer) {
		t.Errorf("%v", silent)
	}
	if again, err := client.Brokers(t.Context()); err != nil || !cmp.Equal(brokers, again) {
		t.Errorf("%v, %v", again, err)
	}
}

func TestLeader(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
		kind   admin.Kind
	}{
		"new":    {text(200, `{"serviceUrl":"http://x:1","brokerId":"b1:8080"}`), "b1:8080", ""},
		"old":    {text(200, `{"serviceUrl":"http://b1:8080"}`), "b1:8080", ""},
		"none":   {reason(404, "Couldn't find leader broker"), "", ""},
		"page":   {text(404, "<html>"), "", admin.BadAnswer},
		"empty":  {text(200, `{}`), "", admin.BadAnswer},
		"failed": {text(500, ``), "", admin.Server},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t).on("GET /admin/v2/brokers/leaderBroker", c.answer)
			id, err := newClient(t, admin.Options{Retries: -1}, f.URL).Leader(t.Context())
			if id != c.want || (c.kind == "") != (err == nil) || c.kind != "" && !errors.Is(err, c.kind) {
				t.Errorf("%q, %v", id, err)
			}
		})
	}
}

func TestConfiguration(t *testing.T) {
	f := broker(t)
	f.on("GET /admin/v2/brokers/configuration/values", text(200, `{"a":"1"}`))
	f.on("GET /admin/v2/brokers/configuration", text(200, `["b","a"]`))
	f.on("POST /admin/v2/brokers/configuration/a/x%2Fy%20%25+;", text(204, ""))
	client := newClient(t, admin.Options{}, f.URL)
	if name, err := client.Name(t.Context()); name != "local" || err != nil {
		t.Error(name, err)
	}
	if v, err := client.DynamicConfig(t.Context()); err != nil || v["a"] != "1" {
		t.Error(v, err)
	}
	if v, err := client.DynamicConfigNames(t.Context()); err != nil || !cmp.Equal(v, []string{"a", "b"}) {
		t.Error(v, err)
	}
	before := len(f.requests())
	checkError(t, client.SetDynamicConfig(t.Context(), "a", ""), admin.BadRequest, false, true)
	checkError(t, client.SetDynamicConfig(t.Context(), "", "1"), admin.BadRequest, false, true)
	checkError(t, client.DeleteDynamicConfig(t.Context(), ""), admin.BadRequest, false, true)
	if len(f.requests()) != before {
		t.Error("a request that cannot be right was sent")
	}
	err := client.SetDynamicConfig(t.Context(), "a", "x/y %+;")
	if got := f.requests()[before]; got != "POST /admin/v2/brokers/configuration/a/x%2Fy%20%25+%3B" {
		t.Errorf("%s, %v", got, err)
	}
	f.on("DELETE /admin/v2/brokers/configuration/a", text(200, ""))
	if err := client.DeleteDynamicConfig(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	for _, answer := range []string{`{"x":"y"}`, `{}`} {
		f := newFake(t).on("GET /admin/v2/brokers/configuration/runtime", text(200, answer))
		_, err := newClient(t, admin.Options{}, f.URL).Name(t.Context())
		checkError(t, err, admin.BadAnswer, false, true)
	}
}

func TestBundles(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		want   []string
		says   string
	}{
		"two":       {`{"boundaries":["0x00000000","0x80000000","0xffffffff"],"numBundles":2}`, []string{"t/ns/0x00000000_0x80000000", "t/ns/0x80000000_0xffffffff"}, ""},
		"none":      {`{"boundaries":[]}`, nil, "0 boundaries"},
		"null":      {`null`, nil, "0 boundaries"},
		"starts":    {`{"boundaries":["0x00000001","0xffffffff"]}`, nil, "want 0x00000000"},
		"falls":     {`{"boundaries":["0x00000000","0x80000000","0x70000000","0xffffffff"]}`, nil, "not a range"},
		"twice":     {`{"boundaries":["0x00000000","0x80000000","0x80000000","0xffffffff"]}`, nil, "not a range"},
		"no number": {`{"boundaries":["0x00000000","0x8000000z","0xffffffff"]}`, nil, "not a range"},
		"more":      {`{"boundaries":["0x00000000","0xffffffff"]} and more`, nil, "after the JSON value"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t).on("GET /admin/v2/namespaces/t/ns/bundles", text(200, c.answer))
			got, err := newClient(t, admin.Options{}, f.URL).Bundles(t.Context(), "t/ns")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if (c.says == "") != (err == nil) || c.says != "" && (!errors.Is(err, admin.BadAnswer) || !strings.Contains(err.Error(), c.says)) {
				t.Error(err)
			}
		})
	}
}

func TestOwners(t *testing.T) {
	f := broker(t)
	f.on("GET /admin/v2/brokers", text(200, `["b1:1","b2:1"]`))
	status := `{"broker_assignment":"shared","is_controlled":false,"is_active":true}`
	f.on("GET /admin/v2/brokers/local/b1:1/ownedNamespaces", text(200, `{"t/b/0x00000000_0xffffffff":`+status+`,"t/a/0x00000000_0xffffffff":`+status+`}`))
	f.on("GET /admin/v2/brokers/local/b2:1/ownedNamespaces", text(200, `{}`))
	client := newClient(t, admin.Options{Retries: -1, Concurrent: 1}, f.URL)
	got, err := client.Owned(t.Context(), "b1:1")
	if diff := cmp.Diff([]string{"t/a/0x00000000_0xffffffff", "t/b/0x00000000_0xffffffff"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	owner := func(bundle, want string, kind admin.Kind) {
		t.Helper()
		got, err := client.OwnerOf(t.Context(), bundle)
		if got != want || (kind == "") != (err == nil) || kind != "" && !errors.Is(err, kind) {
			t.Errorf("%q, %v", got, err)
		}
	}
	owner("t/a/0x00000000_0xffffffff", "b1:1", "")
	owner("t/c/0x00000000_0xffffffff", "", "")
	f.on("GET /admin/v2/brokers/local/b2:1/ownedNamespaces", reason(500, "no"))
	owner("t/a/0x00000000_0xffffffff", "b1:1", "")
	owner("t/c/0x00000000_0xffffffff", "", admin.Server) // the broker that does not answer may have it
	f.on("GET /admin/v2/brokers/local/b2:1/ownedNamespaces", reason(404, "Broker id 'b2:1' not found in available brokers."))
	owner("t/c/0x00000000_0xffffffff", "", "")
	checkError(t, client.Unload(t.Context(), "t/ns", ""), admin.BadRequest, false, true)
	checkError(t, client.Split(t.Context(), "t/ns/0x00000000_0xffffffff", "", []string{"17"}, false), admin.BadRequest, false, true)
}

func TestTopics(t *testing.T) {
	f := broker(t)
	f.on("GET /lookup/v2/topic/persistent/t/ns/a%2Fb/bundle", text(200, "0x80000000_0xc0000000"))
	f.on("GET /lookup/v2/topic/persistent/t/ns/a", text(200, `{"brokerUrl":"pulsar://b:6650","httpUrl":"http://b:8080"}`))
	f.on("GET /lookup/v2/topic/persistent/t/ns/b", text(200, `{"httpUrl":"","httpUrlTls":"https://b:8443"}`))
	f.on("GET /lookup/v2/topic/persistent/t/ns/c", text(200, `{}`))
	f.on("GET /lookup/v2/topic/persistent/t/ns/c/bundle", text(200, `everywhere`))
	f.on("GET /admin/v2/persistent/t/ns/a/stats", text(200, `{"publishers":[{"producerName":"x"},{}]}`))
	f.on("GET /admin/v2/persistent/t/ns/b/stats", reason(404, "Topic not found"))
	f.on("GET /admin/v2/persistent/t/ns/c/stats", text(200, `{}`))
	f.on("PUT /admin/v2/persistent/t/ns/a", text(204, ""))
	f.on("PUT /admin/v2/persistent/t/ns/b", reason(409, "This topic already exists"))
	f.on("PUT /admin/v2/persistent/t/ns/c", reason(412, "no"))
	client := newClient(t, admin.Options{}, f.URL)
	type result struct {
		Got  any
		Kind admin.Kind
	}
	of := func(got any, err error) result {
		var e *admin.Error
		if errors.As(err, &e) {
			return result{got, e.Kind}
		}
		return result{got, ""}
	}
	ctx := t.Context()
	got := map[string]result{
		"bundle":      of(client.BundleOf(ctx, "persistent://t/ns/a/b")),
		"bundle c":    of(client.BundleOf(ctx, "persistent://t/ns/c")),
		"no topic":    of(client.BundleOf(ctx, "t/ns/c")),
		"lookup":      of(client.Lookup(ctx, "persistent://t/ns/a")),
		"lookup TLS":  of(client.Lookup(ctx, "persistent://t/ns/b")),
		"lookup c":    of(client.Lookup(ctx, "persistent://t/ns/c")),
		"producers":   of(client.Publishers(ctx, "persistent://t/ns/a")),
		"producers b": of(client.Publishers(ctx, "persistent://t/ns/b")),
		"producers c": of(client.Publishers(ctx, "persistent://t/ns/c")),
		"create":      of(nil, client.CreateTopic(ctx, "persistent://t/ns/a")),
		"create b":    of(nil, client.CreateTopic(ctx, "persistent://t/ns/b")),
		"create c":    of(nil, client.CreateTopic(ctx, "persistent://t/ns/c")),
		"create none": of(nil, client.CreateTopic(ctx, "persistent://t//c")),
	}
	want := map[string]result{
		"bundle": {"t/ns/0x80000000_0xc0000000", ""}, "bundle c": {"", admin.BadAnswer}, "no topic": {"", admin.BadRequest},
		"lookup": {"http://b:8080", ""}, "lookup TLS": {"https://b:8443", ""}, "lookup c": {"", admin.BadAnswer},
		"producers": {2, ""}, "producers b": {0, ""}, "producers c": {0, admin.BadAnswer},
		"create": {nil, ""}, "create b": {nil, ""}, "create c": {nil, admin.Precondition}, "create none": {nil, admin.BadRequest},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestHealth(t *testing.T) {
	f := broker(t).on("GET /admin/v2/brokers/ready", text(200, "ok")).on("GET /admin/v2/brokers/health", text(503, ""))
	client := newClient(t, admin.Options{}, f.URL)
	if err := client.Ready(t.Context(), f.id()); err != nil {
		t.Error(err)
	}
	checkError(t, client.Healthy(t.Context(), f.id()), admin.Server, true, true)
	f.on("GET /admin/v2/brokers/ready", text(200, "<html>"))
	checkError(t, client.Ready(t.Context(), f.id()), admin.BadAnswer, false, true)
}
