//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/manager"
)

// into runs ballast, decodes what it prints as JSON, and gives its exit code.
func into(t *testing.T, c *harness.Cluster, out any, args ...string) int {
	t.Helper()
	stdout, stderr, code := run(t, c, append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(stdout), out); err != nil {
		t.Fatalf("ballast %s: exit %d, output is no JSON: %v\n%s\n%s", strings.Join(args, " "), code, err, stdout, stderr)
	}
	return code
}

// shown is what `ballast manager show -o json` prints.
type shown struct {
	Leader   string
	Runs     []manager.Kind
	Dynamic  *string
	Brokers  []manager.Broker
	Findings []manager.Finding
}

// runsAll checks that every broker is found to run one load manager.
func runsAll(t *testing.T, c *harness.Cluster, want manager.Kind) shown {
	t.Helper()
	var s shown
	if code := into(t, c, &s, "manager", "show"); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if len(s.Runs) != 1 || s.Runs[0] != want || len(s.Brokers) != len(c.Live()) || s.Leader == "" {
		t.Errorf("want %v on all brokers: %+v", want, s)
	}
	for _, b := range s.Brokers {
		if b.Configured != want.Class() || b.Version != harness.Version() || b.Error != "" {
			t.Errorf("want %v: %+v", want, b)
		}
	}
	return s
}

// switchResult is what `ballast manager switch -o json` prints.
type switchResult struct {
	manager.Check
	Executed, Verified bool
	TopicsLookedUp     int
	Millis             int64
	Unverified         []manager.Finding
}

// One load manager to the other at run time: planned first, done with --execute, verified on every broker while messages go on.
// A change to Extensible is refused and leaves nothing behind, and so is the way back, which would empty the registry.
func TestManagerSwitch(t *testing.T) {
	for _, x := range []struct {
		begin      harness.Manager
		from, to   manager.Kind
		fromReport string
	}{{harness.Modular, manager.Modular, manager.Simple, `"loadReportType":"LoadReport"`}, {harness.Simple, manager.Simple, manager.Modular, `"loadReportType":"LocalBrokerData"`}} {
		t.Run(fmt.Sprintf("%v to %v", x.from, x.to), func(t *testing.T) {
			c := alone(t, harness.Options{Manager: x.begin, Conf: keeperConf()}) // statistics come often: topics to look up are taken from them
			testSwitch(t, c, x.from, x.to, x.fromReport)
		})
	}
}

// alone is a cluster that no other test gets: what a test did to its brokers' processes or their load manager cannot be put back.
func alone(t *testing.T, options harness.Options) *harness.Cluster {
	t.Helper()
	c, err := harness.Start(t.Context(), options)
	if errors.Is(err, harness.ErrNoJDK) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

func testSwitch(t *testing.T, c *harness.Cluster, from, to manager.Kind, report string) {
	ns := c.CreateNamespace(t, 8)
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 100, Seed: 1})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})
	load.AwaitFlow(t)
	harness.Eventually(t, 2*time.Minute, "the brokers' statistics have the topics", func(ctx context.Context) error {
		for _, b := range c.Brokers() {
			if text, err := getAt(ctx, b, "/admin/v2/broker-stats/topics"); err != nil || strings.Contains(text, ns) {
				return err
			}
		}
		return errors.New("none has")
	})
	before := runsAll(t, c, from)
	if before.Dynamic != nil || len(before.Findings) > 0 {
		t.Errorf("a fresh cluster: %+v", before)
	}
	for _, name := range []string{"extensible", "org.example.NoSuchManager"} {
		var check manager.Check
		if code := into(t, c, &check, "manager", "check", name); code != 2 || !check.Refused {
			t.Errorf("check %s: exit code %d, %+v", name, code, check)
		}
		var refused switchResult
		if code := into(t, c, &refused, "manager", "switch", name, "--execute"); code != 1 || refused.Executed || !refused.Refused {
			t.Errorf("switch %s: exit code %d, %+v", name, code, refused)
		}
	}
	var planned switchResult
	if code := into(t, c, &planned, "manager", "switch", string(to)); code != 2 || planned.Executed || planned.Refused || len(planned.Steps) == 0 {
		t.Errorf("exit code %d, %+v", code, planned)
	}
	if values, err := c.DynamicConfig(t.Context()); err != nil || len(values) > 0 {
		t.Fatalf("what was refused or planned changed the cluster: %v, %v", values, err)
	}
	switched(t, c, to, report)
	load.AwaitFlow(t)

	// The processes have run it before: it could not start in them again.
	var refused switchResult
	if code := into(t, c, &refused, "manager", "switch", string(from), "--execute"); code != 1 || !refused.Refused || refused.Executed ||
		refused.Findings[0].Why.Code != manager.RanIt.ID {
		t.Fatalf("back without a restart: exit code %d, %+v", code, refused)
	}
	runsAll(t, c, to)
	if err := load.Stop(t).Err(); err != nil {
		t.Error(err)
	}
}

// switched switches to a load manager, and checks on every broker that it runs.
func switched(t *testing.T, c *harness.Cluster, to manager.Kind, report string) {
	t.Helper()
	var done switchResult
	begun, why := time.Now(), "a test switches to "+string(to)
	if code := into(t, c, &done, "manager", "switch", string(to), "--execute", "--reason", why); code != 0 || !done.Executed || !done.Verified || len(done.Unverified) > 0 {
		t.Fatalf("to %v: exit code %d, %+v", to, code, done)
	}
	if done.TopicsLookedUp == 0 {
		t.Error("no topic was looked up")
	}
	harness.Figure(t, fmt.Sprintf("switch to %v until verified, ms", to), done.Millis)
	switchRecorded(t, c, begun, done.From, to, why)
	after := runsAll(t, c, to)
	if after.Dynamic == nil || *after.Dynamic != to.Class() {
		t.Errorf("the dynamic value is %v", after.Dynamic)
	}
	for _, b := range c.Brokers() {
		if text, err := getAt(t.Context(), b, "/admin/v2/broker-stats/load-report"); err != nil || !strings.Contains(text, report) {
			t.Errorf("%s: %v, %s", b.Name, err, text)
		}
	}
	var again switchResult
	if code := into(t, c, &again, "manager", "switch", string(to), "--execute"); code != 0 || !again.Done || again.Executed {
		t.Errorf("again to %v: exit code %d, %+v", to, code, again)
	}
}

// switchRecorded checks that the decision log says who switched from what to what and why, and what came of it.
func switchRecorded(t *testing.T, c *harness.Cluster, begun time.Time, from []manager.Kind, to manager.Kind, why string) {
	t.Helper()
	records := decisions(t, c, begun)
	if len(records) != 2 {
		t.Fatalf("%d records of the switch: %+v", len(records), records)
	}
	for i, r := range records {
		if r.Kind != control.KindCommand || r.Command.What != control.CommandSwitchManager || r.Command.By == "" || r.Command.Reason != why {
			t.Errorf("record %d is %+v, %+v", i, r, r.Command)
			continue
		}
		var change control.ManagerSwitch
		if err := json.Unmarshal(r.Command.Args, &change); err != nil || len(from) != 1 || len(change.From) != 1 || change.From[0] != string(from[0]) ||
			change.To != string(to) || change.Class != to.Class() {
			t.Errorf("record %d: %v, %+v, want from %v to %v", i, err, change, from, to)
		}
		if last := i == 1; r.Command.ID != records[0].Command.ID || r.Answer.Begun == last || r.Answer.Done != last || r.Answer.Text == "" {
			t.Errorf("record %d: command %s, answer %+v", i, r.Command.ID, r.Answer)
		}
	}
	stdout, stderr, code := run(t, c, "log", "--kind", "command")
	if code != 0 || !strings.Contains(stdout, "begun: from "+string(from[0])+" to "+string(to)) || !strings.Contains(stdout, "done: every broker runs "+string(to)) || !strings.Contains(stdout, why) {
		t.Errorf("ballast log: exit code %d\n%s\n%s", code, stdout, stderr)
	}
}

// getAt asks one broker for a path and gives the text of its answer.
func getAt(ctx context.Context, b *harness.Broker, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.AdminURL()+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s of %s: %s", path, b.Name, resp.Status)
	}
	return string(answer), err
}
