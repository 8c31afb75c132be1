package harness

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tc "github.com/testcontainers/testcontainers-go"
)

// Log is everything that the broker has logged since it was added.
func (b *Broker) Log(ctx context.Context) string { return b.log(ctx) }

func (b *Broker) log(ctx context.Context) string { return b.cluster.containerLog(ctx, b.container) }

func (c *Cluster) containerLog(ctx context.Context, container *tc.DockerContainer) string {
	if container == nil {
		return "(no container)"
	}
	r, err := container.Logs(ctx)
	if err != nil {
		return fmt.Sprintf("(no log: %v)", err)
	}
	defer r.Close()
	log, err := io.ReadAll(r)
	if err != nil {
		log = fmt.Appendf(log, "\n(the rest is missing: %v)", err)
	}
	return string(log)
}

// dumpLogs writes the logs of all containers to files and shows what they complained of last.
func (c *Cluster) dumpLogs(ctx context.Context, t testing.TB) {
	dir := filepath.Join(cmp.Or(os.Getenv("BALLAST_LOGS"), filepath.Join(os.TempDir(), "ballast-logs")), filepath.FromSlash(t.Name()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Logf("no logs kept: %v", err)
		return
	}
	t.Logf("logs of the cluster: %s", dir)
	keep := func(name, log string) {
		if err := os.WriteFile(filepath.Join(dir, name+".log"), []byte(log), 0o644); err != nil {
			t.Logf("log of %s not kept: %v", name, err)
		}
		t.Logf("last complaints of %s:\n%s", name, tail(complaints(log), 10))
	}
	keep("meta", c.containerLog(ctx, c.meta))
	for _, b := range c.Brokers() {
		keep(b.Name, b.log(ctx))
	}
}

func complaints(log string) string {
	var lines []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, " WARN ") || strings.Contains(line, " ERROR ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
