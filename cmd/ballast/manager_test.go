package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ballast-lb/ballast/manager"
)

// managed is a web service of one broker whose load manager can be switched: a dynamic value changes its configuration and
// the form of its load report.
type managed struct {
	mu      sync.Mutex
	class   string // of broker.conf
	dynamic map[string]string
	asked   []string // requests that change something
	extra   map[string]string
	refused string // a path that is answered with 403
	reports map[manager.Kind]string
}

func newManaged(t *testing.T, kind manager.Kind) (*managed, string) {
	t.Helper()
	m := &managed{class: kind.Class(), dynamic: map[string]string{}, extra: map[string]string{}, reports: map[manager.Kind]string{}}
	for k, file := range map[manager.Kind]string{manager.Modular: "modular", manager.Simple: "simple", manager.Extensible: "extensible"} {
		b, err := os.ReadFile("../../cluster/admin/testdata/load-report-" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		m.reports[k] = string(b)
	}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	return m, server.URL
}

func (m *managed) effective() string {
	if v, ok := m.dynamic[manager.Key]; ok {
		return v
	}
	return m.class
}

func (m *managed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Method != http.MethodGet {
		m.asked = append(m.asked, r.Method+" "+r.URL.Path)
		if rest, ok := strings.CutPrefix(r.URL.Path, "/admin/v2/brokers/configuration/"); ok && r.Method == http.MethodPost {
			key, value, _ := strings.Cut(rest, "/")
			m.dynamic[key] = value
		}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	runs := manager.OfClass(m.effective())
	answers := map[string]string{
		"/admin/v2/brokers/configuration/runtime": `{"loadManagerClassName":"` + m.effective() + `","clusterName":"c"}`,
		"/admin/v2/brokers/configuration/values":  string(mustJSON(m.dynamic)),
		"/admin/v2/brokers/configuration":         `["loadManagerClassName","loadBalancerSheddingEnabled"]`,
		"/admin/v2/brokers/leaderBroker":          `{"serviceUrl":"http://` + r.Host + `","brokerId":"` + r.Host + `"}`,
		"/admin/v2/brokers/version":               "4.2.4",
		"/admin/v2/brokers":                       `["` + r.Host + `"]`,
		"/admin/v2/broker-stats/load-report":      m.reports[runs],
		"/admin/v2/broker-stats/topics":           `{}`,
	}
	maps.Copy(answers, m.extra)
	w.Header().Set("Content-Type", "application/json")
	answer, ok := answers[r.URL.Path]
	switch {
	case m.refused == r.URL.Path:
		w.WriteHeader(http.StatusForbidden)
		answer = `{"reason":"not allowed"}`
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		answer = `{"reason":"not found"}`
	case r.URL.Path == "/admin/v2/broker-stats/load-report" && runs == manager.Extensible:
		w.WriteHeader(http.StatusInternalServerError)
	}
	_, _ = w.Write([]byte(answer))
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func TestManagerShow(t *testing.T) {
	for kind, report := range map[manager.Kind]string{manager.Modular: "LocalBrokerData", manager.Simple: "LoadReport", manager.Extensible: "unsupported"} {
		_, url := newManaged(t, kind)
		stdout, stderr, code := ballast(t, nil, "manager", "show", "-o", "json", "--admin-service-url", url)
		var doc managerDocument
		if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != 0 {
			t.Fatalf("%v: exit %d, %v: %s%s", kind, code, err, stdout, stderr)
		}
		if !slices.Equal(doc.Runs, []manager.Kind{kind}) || len(doc.Brokers) != 1 || string(doc.Brokers[0].Report) != report || doc.Brokers[0].Configured != kind.Class() ||
			doc.Leader != doc.Brokers[0].ID || doc.Dynamic != nil {
			t.Errorf("%v: %+v", kind, doc)
		}
		if stdout, _, code := ballast(t, nil, "manager", "show", "--admin-service-url", url); code != 0 || !strings.Contains(stdout, kind.String()+"  ") || !strings.Contains(stdout, report) {
			t.Errorf("%v: exit %d, %s", kind, code, stdout)
		}
	}
}

func TestManagerCheck(t *testing.T) {
	for _, x := range []struct {
		runs manager.Kind
		name string
		code int
		text string
	}{
		{manager.Modular, "simple", 0, "would work"},
		{manager.Simple, manager.Modular.Class(), 0, "would work"},
		{manager.Modular, "modular", 0, "NOTHING_TO_SWITCH"},
		{manager.Modular, "extensible", exitPlanned, "EXTENSIBLE_NEEDS_RESTART"},
		{manager.Extensible, "modular", exitPlanned, "EXTENSIBLE_NEEDS_RESTART"},
		{manager.Modular, "modul", exitPlanned, "MANAGER_NAME_UNKNOWN"},
	} {
		m, url := newManaged(t, x.runs)
		stdout, stderr, code := ballast(t, nil, "manager", "check", x.name, "--admin-service-url", url)
		if code != x.code || !strings.Contains(stdout, x.text) {
			t.Errorf("%v to %s: exit %d, %s%s", x.runs, x.name, code, stdout, stderr)
		}
		if len(m.asked) > 0 {
			t.Errorf("%v to %s: check changed something: %v", x.runs, x.name, m.asked)
		}
	}
}

// TestManagerSwitchPlansFirst: without --execute, and where it is refused, nothing is changed. What --execute does needs a
// cluster with topics, for the lock.
func TestManagerSwitchPlansFirst(t *testing.T) {
	for _, x := range []struct {
		runs manager.Kind
		args []string
		code int
		text string
	}{
		{manager.Modular, []string{"simple"}, exitPlanned, "Nothing was changed: --execute does it."},
		{manager.Modular, []string{"modular", "--execute"}, 0, "has nothing to do"},
		{manager.Extensible, []string{"modular", "--execute"}, exitError, "EXTENSIBLE_NEEDS_RESTART"},
		{manager.Modular, []string{"modul", "--execute"}, exitError, "MANAGER_NAME_UNKNOWN"},
	} {
		m, url := newManaged(t, x.runs)
		stdout, stderr, code := ballast(t, nil, append([]string{"manager", "switch", "--admin-service-url", url}, x.args...)...)
		if code != x.code || !strings.Contains(stdout, x.text) || len(m.asked) > 0 {
			t.Errorf("%v, %v: exit %d, changed %v, %s%s", x.runs, x.args, code, m.asked, stdout, stderr)
		}
	}
	m, url := newManaged(t, manager.Modular)
	m.extra["/admin/v2/persistent/pulsar/system/ballast-leader/stats"] = `{"publishers":[{}]}`
	if stdout, _, code := ballast(t, nil, "manager", "switch", "simple", "--execute", "--admin-service-url", url); code != exitError ||
		!strings.Contains(stdout, "BALLAST_GOVERNS") || len(m.asked) > 0 {
		t.Errorf("exit %d, changed %v, %s", code, m.asked, stdout)
	}
}

func TestManagerArguments(t *testing.T) {
	fails(t, nil, []string{"manager", "check"}, "0 names given", "simple, modular, extensible")
	fails(t, nil, []string{"manager", "switch", "a", "b"}, "2 names given")
	fails(t, nil, []string{"manager", "swich"}, "unknown command", "show, check or switch")
	fails(t, nil, []string{"manager", "show", "-o", "xml"}, "--output", "xml")
	fails(t, nil, []string{"manager", "switch", "simple", "--wait", "1ms"}, "--wait is 1ms")
	fails(t, nil, []string{"migrate", "plan", "--to", "modular"}, "--to is \"modular\"", "ballast manager switch")
	fails(t, nil, []string{"migrate", "now"}, "unknown command", "it is plan")
	for _, args := range [][]string{{"manager", "show"}, {"manager", "check", "simple"}, {"manager", "switch", "simple"}, {"migrate", "plan"}} {
		fails(t, nil, append(args, "--admin-service-url", unreachable), unreachable, "webServiceUrl", "refused")
	}
}
