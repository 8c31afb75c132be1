//go:build integration

package pulsar

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/topics"
	"github.com/ballast-lb/ballast/topics/logtest"
)

// cluster is a real Pulsar cluster that somebody else started:
//
//	BALLAST_TEST_SERVICE_URL=pulsar://... BALLAST_TEST_ADMIN_URL=http://... go test -tags integration ./topics/pulsar
//
// It must run the Extensible load manager for the tests of its ownership topic.
type cluster struct{ service, admin string }

func realCluster(t *testing.T) cluster {
	t.Helper()
	c := cluster{os.Getenv("BALLAST_TEST_SERVICE_URL"), os.Getenv("BALLAST_TEST_ADMIN_URL")}
	if c.service == "" || c.admin == "" {
		t.Skip("BALLAST_TEST_SERVICE_URL and BALLAST_TEST_ADMIN_URL do not name a cluster")
	}
	return c
}

func (c cluster) options(t *testing.T) Options {
	o := Options{ServiceURL: c.service, AdminURL: c.admin, Logger: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: level()}))}
	return o
}

func level() slog.Level {
	if os.Getenv("BALLAST_TEST_DEBUG") != "" {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func (c cluster) open(t *testing.T) *Log {
	t.Helper()
	log, err := Open(c.options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return log
}

// testWriter writes lines of the log into the test's.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSuffix(string(b), "\n"))
	return len(b), nil
}

// call makes one admin request. It repeats what a cluster that is moving things answers for a moment.
func (c cluster) call(t *testing.T, method, path string, body string) (int, string) {
	t.Helper()
	base, _, _ := strings.Cut(c.admin, ",")
	for try := 0; ; try++ {
		req, err := http.NewRequestWithContext(t.Context(), method, base+"/admin/v2/"+path, bytes.NewBufferString(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode < 500 || try == 20 {
			return resp.StatusCode, string(answer)
		}
		time.Sleep(250 * time.Millisecond)
	}
}

func (c cluster) must(t *testing.T, method, path string, body string) string {
	t.Helper()
	status, answer := c.call(t, method, path, body)
	if status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	return answer
}

// adminPath is a topic's path in the admin interface.
func adminPath(topic string) string { return strings.Replace(topic, "://", "/", 1) }

// compact compacts a topic and waits until that is done.
func (c cluster) compact(t *testing.T, topic string) {
	t.Helper()
	c.must(t, http.MethodPut, adminPath(topic)+"/compaction", "")
	for {
		answer := c.must(t, http.MethodGet, adminPath(topic)+"/compaction", "")
		switch {
		case strings.Contains(answer, "SUCCESS"):
			return
		case strings.Contains(answer, "ERROR"):
			t.Fatalf("compaction of %s: %s", topic, answer)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// unload makes the broker drop a topic and everybody who is connected to it.
func (c cluster) unload(t *testing.T, topic string) {
	t.Helper()
	c.must(t, http.MethodPut, adminPath(topic)+"/unload", "")
}

// TestCluster holds the log on a real cluster to the behaviour that all logs share.
func TestCluster(t *testing.T) {
	c := realCluster(t)
	logtest.Run(t, func(t *testing.T) topics.Log { return c.open(t) }, logtest.Hooks{Compact: c.compact, Interrupt: c.unload})
}
