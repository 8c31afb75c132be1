package admin_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/policy"
)

func TestPolicies(t *testing.T) {
	const isolation = `{"z":{"namespaces":["t/.*"],"primary":["b1"],"secondary":["b2"],"auto_failover_policy":{"policy_type":"min_available","parameters":{"min_limit":"2","usage_threshold":"80"}},"unload_scope":"changed"},` +
		`"a":{"namespaces":["t/a"],"primary":["b2"],"secondary":[],"auto_failover_policy":{"policy_type":"min_available","parameters":{"min_limit":"1","usage_threshold":"80"}}}}`
	const isolationPath = "GET /admin/v2/clusters/local/namespaceIsolationPolicies"
	for _, c := range []struct {
		name   string
		key    string // what answers otherwise
		answer http.HandlerFunc
		first  string // policy of t/a
		frozen []string
		group  string // of t/b
		kind   admin.Kind
	}{
		{name: "none", group: "gold"},
		{name: "empty", key: isolationPath, answer: text(200, "{}"), group: "gold"},
		{name: "order of the answer", key: isolationPath, answer: text(200, isolation), first: "z", group: "gold"},
		{name: "500", key: isolationPath, answer: reason(500, "no"), frozen: []string{"t/a", "t/b", "x/y"}, group: "gold"},
		{name: "404 of something else", key: isolationPath, answer: text(404, "<html>"), frozen: []string{"t/a", "t/b", "x/y"}, group: "gold"},
		{name: "garbage", key: isolationPath, answer: text(200, "[1]"), frozen: []string{"t/a", "t/b", "x/y"}, group: "gold"},
		{name: "half", key: isolationPath, answer: text(200, isolation[:200]), frozen: []string{"t/a", "t/b", "x/y"}, group: "gold"},
		{name: "null policy", key: isolationPath, answer: text(200, `{"a":null}`), frozen: []string{"t/a", "t/b", "x/y"}, group: "gold"},
		{name: "no number", key: isolationPath, answer: text(200, strings.Replace(isolation, `"min_limit":"2"`, `"min_limit":"two"`, 1)), frozen: []string{"t/a"}, group: "gold"},
		{name: "unknown failover", key: isolationPath, answer: text(200, strings.Replace(isolation, `min_available`, `max_available`, 1)), frozen: []string{"t/a"}, group: "gold"},
		{name: "tenants fail", key: "GET /admin/v2/tenants", answer: reason(503, "no"), frozen: []string{"t/a", "x/y"}},
		{name: "namespaces fail", key: "GET /admin/v2/namespaces/t", answer: reason(503, "no"), frozen: []string{"t/a", "x/y"}},
		{name: "tenant deleted", key: "GET /admin/v2/namespaces/t", answer: reason(404, "Tenant does not exist")},
		{name: "a group fails", key: "GET /admin/v2/namespaces/t/a/antiAffinity", answer: reason(500, "no"), frozen: []string{"t/a", "t/b"}, group: "gold"},
		{name: "a namespace deleted", key: "GET /admin/v2/namespaces/t/a/antiAffinity", answer: reason(404, "Namespace does not exist"), group: "gold"},
		{name: "quoted group", key: "GET /admin/v2/namespaces/t/b/antiAffinity", answer: text(200, `"gold"`), group: "gold"},
		{name: "domains fail", key: "GET /admin/v2/clusters/local/failureDomains", answer: reason(500, "no"), frozen: []string{"t/b"}, group: "gold"},
		{name: "no name", key: "GET /admin/v2/brokers/configuration/runtime", answer: reason(500, "no"), kind: admin.Server},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := broker(t)
			if c.key != "" {
				f.on(c.key, c.answer)
			}
			set, err := newClient(t, admin.Options{Retries: -1}, f.URL).Policies(t.Context())
			if c.kind != "" {
				if set != nil || !errors.Is(err, c.kind) {
					t.Errorf("%v, %v", set, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if p, ok, _ := set.Isolation("t/a"); ok != (c.first != "") || p.Name != c.first {
				t.Errorf("t/a has %q, want %q", p.Name, c.first)
			}
			if set.Group("t/b") != c.group {
				t.Errorf("group %q", set.Group("t/b"))
			}
			for _, ns := range c.frozen {
				if v := set.Allowed(ns, []policy.Broker{{ID: "b9:1", PersistentTopics: true}}, true); v.Frozen.IsZero() || v.Brokers[0].Allowed || !set.HasPolicy(ns) {
					t.Errorf("%s is not frozen: %+v", ns, v)
				}
			}
			if len(c.frozen) == 0 && len(set.Frozen()) > 0 {
				t.Errorf("%v", set.Frozen())
			}
		})
	}
}

func TestPoliciesWhenNothingAnswers(t *testing.T) {
	f := broker(t).on("GET /admin/v2/tenants", text(503, "")).on("GET /admin/v2/clusters/local/namespaceIsolationPolicies", text(503, ""))
	set, err := newClient(t, admin.Options{Retries: -1}, f.URL).Policies(t.Context())
	if set != nil || !errors.Is(err, admin.Server) {
		t.Errorf("%v, %v", set, err)
	}
}

// TestPoliciesWithPorts: patterns with a colon mean something else from Pulsar 5 on.
func TestPoliciesWithPorts(t *testing.T) {
	for version, want := range map[string]string{"4.2.4": "", "5.0.1": "b1:8080", "<html>": "frozen"} {
		f := broker(t).on("GET /admin/v2/brokers/version", text(200, version)).on("GET /admin/v2/clusters/local/namespaceIsolationPolicies",
			text(200, `{"p":{"namespaces":["t/a"],"primary":["b1:8080"],"secondary":[],"auto_failover_policy":{"policy_type":"min_available","parameters":{"min_limit":"1","usage_threshold":"80"}}}}`))
		set, err := newClient(t, admin.Options{}, f.URL).Policies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v := set.Allowed("t/a", []policy.Broker{{ID: "b1:8080"}, {ID: "b1:8081"}}, true)
		got := ""
		for _, i := range v.Candidates() {
			got += v.Brokers[i].Broker
		}
		if !v.Frozen.IsZero() {
			got = "frozen"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}
