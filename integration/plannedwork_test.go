//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
)

// done is what an operator's command prints with -o json, as far as tests look at it.
type done struct {
	Plan    []struct{ Action, Bundle, Source, Destination string }
	Refused []struct {
		Decision struct{ Bundle string }
		Why      struct{ Code, Text string }
	}
	LeftOut []struct {
		Bundle, Broker string
		Why            struct{ Code, Text string }
	}
	Executed bool
	Outcomes []struct {
		Result, Owner, Why string
		Decision           struct{ Bundle, Destination string }
	}
}

func (d done) left() (codes []string) {
	for _, l := range d.LeftOut {
		codes = append(codes, l.Why.Code)
	}
	return codes
}

// command runs an operator's command and reads its JSON.
func command(t *testing.T, c *harness.Cluster, want int, args ...string) done {
	t.Helper()
	stdout, stderr, code := run(t, c, append(args, "-o", "json")...)
	var d done
	if err := json.Unmarshal([]byte(stdout), &d); err != nil {
		t.Fatalf("%v: exit %d, output is no JSON: %v\n%s\n%s", args, code, err, stdout, tail(stderr))
	}
	if code != want {
		t.Errorf("%v: exit %d, want %d: %s\n%s", args, code, want, stdout, tail(stderr))
	}
	return d
}

// refuses runs a command that must fail, and checks what it says.
func refuses(t *testing.T, c *harness.Cluster, text string, args ...string) {
	t.Helper()
	_, stderr, code := run(t, c, args...)
	if code != 1 || !strings.Contains(stderr, text) {
		t.Errorf("%v: exit %d, want 1 and %q: %s", args, code, text, tail(stderr))
	}
}

// Moving, unloading and splitting: nothing without --execute, done with it, on record with its reason; names that are wrong
// are refused; beside a process that acts only when told to.
func TestMoveUnloadSplit(t *testing.T) {
	c := shared(t)
	ns := c.CreateNamespace(t, 4)
	brokers := c.Brokers()
	c.Place(t, ns, brokers[0])
	bundles := c.Bundles(t, ns)
	begun := time.Now()

	to := brokers[1].ID
	if d := command(t, c, 2, "move", bundles[0], "--to", to); len(d.Plan) != 1 || d.Plan[0].Source != brokers[0].ID || d.Plan[0].Destination != to || d.Executed {
		t.Errorf("the plan of a move is %+v", d)
	}
	if owner, err := c.Owner(t.Context(), bundles[0]); err != nil || owner != brokers[0].ID {
		t.Errorf("without --execute the bundle went to %s, %v", owner, err)
	}
	if d := command(t, c, 0, "move", bundles[0], "--to", to, "--execute", "--reason", "disk of the first broker"); len(d.Outcomes) != 1 || d.Outcomes[0].Result != "done" || d.Outcomes[0].Owner != to {
		t.Errorf("the move ended with %+v", d.Outcomes)
	}
	if owner, err := c.Owner(t.Context(), bundles[0]); err != nil || owner != to {
		t.Errorf("the bundle is on %s, %v; want %s", owner, err, to)
	}
	var kinds []control.Kind
	for _, r := range decisions(t, c, begun) {
		kinds = append(kinds, r.Kind)
		if r.Decision != nil && !strings.Contains(r.Decision.Why.Text, "disk of the first broker") {
			t.Errorf("the reason on record is %q", r.Decision.Why.Text)
		}
	}
	if !slices.Contains(kinds, control.KindIntent) || !slices.Contains(kinds, control.KindOutcome) {
		t.Errorf("records of the move are %v", kinds)
	}
	if d := command(t, c, 0, "move", bundles[0], "--to", to); len(d.Plan) > 0 || !slices.Equal(d.left(), []string{"ALREADY_THERE"}) {
		t.Errorf("a move to where it is: %+v", d)
	}
	refuses(t, c, "is not a bundle", "move", "nonsense", "--to", to)
	refuses(t, c, "does not exist", "move", ns+"/0x00000000_0x00000001", "--to", to)
	refuses(t, c, "it must be a registered broker", "move", bundles[0], "--to", "nobody:8080")
	refuses(t, c, "--to is missing", "move", bundles[0])
	refuses(t, c, "neither a bundle nor a namespace", "unload", "persistent://a/b/c")

	if d := command(t, c, 0, "unload", ns, "--execute"); len(d.Outcomes)+len(d.LeftOut) != 4 || len(d.Outcomes) == 0 {
		t.Errorf("unloading a namespace: %+v", d)
	}
	c.Owners(t, ns) // looks all of them up, so that they have owners again

	if d := command(t, c, 0, "split", bundles[3], "--execute"); len(d.Outcomes) != 1 || d.Outcomes[0].Result != "done" {
		t.Errorf("the split ended with %+v", d.Outcomes)
	}
	if n := len(c.Bundles(t, ns)); n != 5 {
		t.Errorf("%d bundles after a split of one of four", n)
	}
	refuses(t, c, "did you mean LARGEST", "split", "largest")
	refuses(t, c, "--at", "split", c.Bundles(t, ns)[0], "--at", "0xffffffff")

	leader := start(t, c, "run", "--mode", "govern", "--take-over", "--set", "ballastHttpListenAddress=")
	leader.says(t, "took over", 2*time.Minute)
	target := brokers[2].ID
	if c.Owners(t, ns)[bundles[1]] == target {
		target = brokers[1].ID // there is nothing to refuse where it is already
	}
	refuses(t, c, "a Ballast process acts", "move", bundles[1], "--to", target, "--execute")
	if owner := c.Owners(t, ns)[bundles[1]]; owner != target {
		if d := command(t, c, 0, "move", bundles[1], "--to", target, "--execute", "--beside-leader"); len(d.Outcomes) != 1 || d.Outcomes[0].Owner != target {
			t.Errorf("beside the leader: %+v", d)
		}
	}
	if code := leader.stop(t); code != 0 {
		t.Errorf("the leader ended with %d", code)
	}
}

// A broker under load is drained: it is empty, nothing is lost, and what arrives while the drain holds leaves again. The gate
// is open before and after a restart, and shut in between.
func TestDrainAndRestart(t *testing.T) {
	c := shared(t)
	c.SetDynamic(t, "loadBalancerSheddingEnabled", "false")
	ns := c.CreateNamespace(t, 12)
	brokers := c.Brokers()
	c.Place(t, ns, brokers...)
	load := traffic.Start(t, c.ServiceURL(), traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: 100, Seed: 5}), traffic.Options{})
	load.AwaitFlow(t)
	id := brokers[2].ID
	if d := command(t, c, 2, "drain", id); len(d.Plan) < 4 || d.Executed {
		t.Errorf("the plan of a drain is %+v", d.Plan)
	}
	p := start(t, c, "drain", id, "--execute", "--hold", "20s", "-o", "json")
	p.says(t, "the broker is empty", 3*time.Minute)
	back := c.Bundles(t, ns)[0]
	if err := c.Unload(t.Context(), back, brokers[2]); err != nil {
		t.Error(err)
	}
	if code := p.wait(t); code != 0 {
		_, stderr := p.text()
		t.Errorf("drain ended with %d: %s", code, tail(stderr))
	}
	for bundle, owner := range c.Owners(t, ns) {
		if owner == id {
			t.Errorf("%s is on the drained broker", bundle)
		}
	}
	if stdout, stderr, code := run(t, c, "restart-gate", "--brokers", "3", "--wait", "2m"); code != 0 {
		t.Errorf("the gate ended with %d before the restart: %s %s", code, stdout, tail(stderr))
	}
	brokers[2].Stop(t)
	if stdout, stderr, code := run(t, c, "restart-gate", "--brokers", "3"); code != 2 || !strings.Contains(stdout, "GATE_BROKERS_MISSING") {
		t.Errorf("the gate ended with %d while a broker is down: %s %s", code, stdout, tail(stderr))
	}
	brokers[2].Start(t)
	if stdout, stderr, code := run(t, c, "restart-gate", "--brokers", "3", "--wait", "3m"); code != 0 {
		t.Errorf("the gate ended with %d after the restart: %s %s", code, stdout, tail(stderr))
	}
	report := load.Stop(t)
	t.Log(report)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	harness.Figure(t, "longest stall of a consumer during drain and restart, ms", report.Sum().Stall.Milliseconds())
}

// What whatif says of the loss of a broker, beside what happens when it is killed.
func TestWhatifBesideReality(t *testing.T) {
	c := shared(t)
	ns := c.CreateNamespace(t, 12)
	brokers := c.Brokers()
	c.Place(t, ns, brokers...)
	lost := brokers[1]
	owned := 0
	for _, owner := range c.Owners(t, ns) {
		if owner == lost.ID {
			owned++
		}
	}
	var said struct {
		Moved         int
		Before, After []struct {
			Broker  string
			Bundles int
			Lost    bool
		}
		Losses []struct{ Broker string }
	}
	stdout, stderr, code := run(t, c, "whatif", "--lose", lost.ID, "--traffic", "x1.5", "-o", "json")
	if err := json.Unmarshal([]byte(stdout), &said); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s", code, err, tail(stderr))
	}
	if said.Moved < owned || len(said.After) != 2 || len(said.Losses) != 2 {
		t.Errorf("of %d bundles of the broker it says %+v", owned, said)
	}
	refuses(t, c, "it must be a factor", "whatif", "--traffic", "fast")
	refuses(t, c, "it must be a registered broker", "whatif", "--lose", "nobody:8080")
	lost.Kill(t)
	lost.AwaitGone(t)
	harness.Eventually(t, 4*time.Minute, "the bundles have other owners", func(ctx context.Context) error {
		for _, b := range c.Bundles(t, ns) {
			owner, err := c.Owner(ctx, b)
			if err != nil {
				return err
			}
			if owner == lost.ID {
				return fmt.Errorf("%s is still said to be on %s", b, owner)
			}
		}
		return nil
	})
	now := map[string]int{}
	for _, owner := range c.Owners(t, ns) {
		now[owner]++
	}
	total := 0
	for _, b := range said.After {
		harness.Figure(t, "bundles of all namespaces on a survivor, as whatif said", b.Bundles)
		harness.Figure(t, "bundles of the test's namespace on a survivor, in reality", now[b.Broker])
		total += now[b.Broker]
		if now[b.Broker] < 4 {
			t.Errorf("%s has %d bundles, it had 4 before", b.Broker, now[b.Broker])
		}
	}
	if total != 12 {
		t.Errorf("the survivors that whatif named have %d of 12 bundles", total)
	}
}
