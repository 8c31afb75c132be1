package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
)

// A broker that has died stays registered, and leader, for a while: the version is that of another one meanwhile.
func TestClusterVersionBesideADeadLeader(t *testing.T) {
	for _, test := range []struct {
		name    string
		dead    []string
		alive   bool
		version string
		err     string
	}{
		{"the leader is dead", []string{"127.0.0.1:1"}, true, "4.2.4", ""},
		{"nobody answers", []string{"127.0.0.1:1", "127.0.0.1:2"}, false, "", "127.0.0.1:2"},
		{"nobody is registered", nil, false, "", "no registered broker"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ids []string
			mux := http.NewServeMux()
			answer := func(path string, text func() string) {
				mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					fmt.Fprint(w, text())
				})
			}
			answer("/admin/v2/clusters", func() string { return `["c"]` })
			answer("/admin/v2/brokers", func() string {
				if len(ids) == 0 {
					return "[]"
				}
				return `["` + strings.Join(ids, `","`) + `"]`
			})
			if len(test.dead) > 0 {
				answer("/admin/v2/brokers/leaderBroker", func() string { return `{"brokerId":"127.0.0.1:1","serviceUrl":"http://127.0.0.1:1"}` })
			}
			answer("/admin/v2/brokers/version", func() string { return "4.2.4" })
			server := httptest.NewServer(mux)
			defer server.Close()
			ids = test.dead
			if test.alive {
				ids = append(ids, strings.TrimPrefix(server.URL, "http://"))
			}
			c, err := admin.New(admin.Options{URLs: []string{server.URL}, Retries: -1, RetryWait: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			version, err := clusterVersion(t.Context(), c)
			if version != test.version || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("version %q, error %v, want %q, %q", version, err, test.version, test.err)
			}
		})
	}
}
