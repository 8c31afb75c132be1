//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/topics"
)

// What a take-over changes is put back: when the program stops, at the next start after it was killed, and by release.
func TestTakeOverIsUndone(t *testing.T) {
	c := shared(t)
	args := []string{"run", "--mode", "govern", "--set", "ballastCycleInterval=2s", "--set", "ballastHttpListenAddress="}
	if _, stderr, code := run(t, c, args...); code != 1 || !strings.Contains(stderr, "--take-over") {
		t.Errorf("beside the built-in shedder it ended with %d and %q, want 1 and a word about --take-over", code, stderr)
	}
	c.SetDynamic(t, "loadBalancerReportUpdateMaxIntervalMinutes", "3")
	found := conf(t, c)
	taken := func(t *testing.T) *program {
		p := start(t, c, append(args, "--take-over")...)
		p.says(t, "took over", time.Minute)
		if now := conf(t, c); now["loadBalancerSheddingEnabled"] != "false" || now["loadBalancerReportUpdateMaxIntervalMinutes"] != "1" {
			t.Errorf("while governing the configuration is %v", now)
		}
		return p
	}
	undone := func(t *testing.T) {
		t.Helper()
		if diff := cmp.Diff(found, conf(t, c)); diff != "" {
			t.Errorf("afterwards (-found +now):\n%s", diff)
		}
	}
	t.Run("clean stop", func(t *testing.T) {
		if code := taken(t).stop(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
		undone(t)
	})
	kill := func(t *testing.T) {
		p := taken(t)
		if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-p.done
	}
	t.Run("kill -9, then the next start", func(t *testing.T) {
		kill(t)
		if p := start(t, c, args...); p.wait(t) != 1 {
			t.Error("without --take-over the next start did not refuse: the built-in shedder should be on again")
		}
		undone(t)
	})
	t.Run("kill -9, then release", func(t *testing.T) {
		kill(t)
		stdout, stderr, code := run(t, c, "release")
		if code != 0 || !strings.Contains(stdout, "loadBalancerSheddingEnabled was deleted") {
			t.Errorf("release ended with %d: %s %s", code, stdout, stderr)
		}
		undone(t)
		if stdout, _, code := run(t, c, "release"); code != 0 || !strings.Contains(stdout, "nothing to put back") {
			t.Errorf("a second release ended with %d: %s", code, stdout)
		}
	})
	t.Run("kill -9, its record compacted and the topic opened anew", func(t *testing.T) {
		kill(t)
		reopen(t, c, topics.Takeover)
		stdout, stderr, code := run(t, c, "release")
		if code != 0 || !strings.Contains(stdout, "loadBalancerSheddingEnabled was deleted") {
			t.Errorf("release ended with %d: %s %s", code, stdout, stderr)
		}
		undone(t)
	})
}

// reopen compacts a topic and unloads it, until nothing of it is left but what was compacted: as when the broker of a topic on which
// nothing happens dies.
func reopen(t *testing.T, c *harness.Cluster, topic string) {
	t.Helper()
	path := "/admin/v2/" + strings.Replace(topic, "://", "/", 1)
	do := func(ctx context.Context, method, what string) error { return c.Do(ctx, method, path+"/"+what, nil) }
	var refused *harness.StatusError
	if err := do(t.Context(), http.MethodPut, "compaction"); err != nil && (!errors.As(err, &refused) || refused.Code != http.StatusConflict) {
		t.Fatal(err) // a conflict: it is under way
	}
	harness.Eventually(t, time.Minute, "the topic is compacted", func(ctx context.Context) error {
		var state struct{ Status, LastError string }
		if err := c.Get(ctx, path+"/compaction", &state); err != nil || state.Status != "SUCCESS" {
			return fmt.Errorf("compaction is %+v, %v", state, err)
		}
		return nil
	})
	harness.Eventually(t, 2*time.Minute, "only what was compacted is left", func(ctx context.Context) error {
		if err := do(ctx, http.MethodPut, "unload"); err != nil {
			return err
		}
		var stats struct {
			Ledgers         []struct{ Entries int64 }
			CompactedLedger struct{ Entries int64 }
		}
		if err := c.Get(ctx, path+"/internalStats", &stats); err != nil {
			return err
		}
		if len(stats.Ledgers) != 1 || stats.Ledgers[0].Entries != 0 || stats.CompactedLedger.Entries == 0 {
			return fmt.Errorf("it has %+v", stats)
		}
		return nil
	})
}
