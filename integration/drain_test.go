//go:build integration

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/integration/harness"
)

// A broker is drained by the leader: it is empty when the command ends, what arrives later leaves again, also under the next leader,
// and after undrain it stays.
func TestDrainByTheLeader(t *testing.T) {
	c := shared(t)
	ns := c.CreateNamespace(t, 12)
	brokers := c.Brokers()
	c.Place(t, ns, brokers...)
	id := brokers[2].ID
	begun := time.Now()
	govern := []string{"run", "--mode", "govern", "--take-over", "--set", "ballastHttpListenAddress=", "--set", "ballastCycleInterval=5s"}
	leader := start(t, c, govern...)
	leader.says(t, "took over", 2*time.Minute)
	refuses(t, c, "it must be a registered one", "drain", "nobody:8080", "--execute")
	refuses(t, c, "is not drained", "undrain", id)
	refuses(t, c, "--hold is for a drain while no Ballast governs", "drain", id, "--execute", "--hold", "5s")

	d := command(t, c, 0, "drain", "http://"+id, "--execute", "--reason", "new disks")
	if len(d.Outcomes) < 4 || !slices.Contains(d.left(), "NAMESPACE_OF_A_BROKER") {
		t.Errorf("the drain ended with %d outcomes, left are %v", len(d.Outcomes), d.left())
	}
	for _, x := range d.Outcomes {
		if x.Result != string(control.Done) {
			t.Errorf("%s: %s %s", x.Decision.Bundle, x.Result, x.Why)
		}
	}
	leaves := func(bundle string) {
		t.Helper()
		if err := c.Unload(t.Context(), bundle, brokers[2]); err != nil {
			t.Error(err)
		}
		at := time.Now()
		harness.Eventually(t, 3*time.Minute, "the bundle has left the drained broker", func(ctx context.Context) error {
			owner, err := c.Owner(ctx, bundle)
			if err == nil && owner == id {
				err = fmt.Errorf("%s is on the drained broker", bundle)
			}
			return err
		})
		harness.Figure(t, "until a bundle has left a drained broker again, ms", time.Since(at).Milliseconds())
	}
	count := 0
	for bundle, owner := range c.Owners(t, ns) {
		if owner == id {
			t.Errorf("%s is on the drained broker", bundle)
		}
		count++
	}
	if count != 12 {
		t.Errorf("%d of 12 bundles have owners", count)
	}
	back := c.Bundles(t, ns)[0]
	leaves(back)
	if code := leader.stop(t); code != 0 {
		t.Errorf("the leader ended with %d", code)
	}
	refuses(t, c, "the next leader goes on with it", "undrain", id)
	next := start(t, c, govern...)
	next.says(t, "took over", 2*time.Minute)
	leaves(back)

	if stdout, stderr, code := run(t, c, "undrain", id, "--reason", "done"); code != 0 {
		t.Fatalf("undrain ended with %d: %s %s", code, stdout, tail(stderr))
	}
	if err := c.Unload(t.Context(), back, brokers[2]); err != nil {
		t.Error(err)
	}
	time.Sleep(8 * time.Second) // rounds of a drain that has ended would come every second
	if owner, err := c.Owner(t.Context(), back); err != nil || owner != id {
		t.Errorf("after undrain the bundle is on %s, %v", owner, err)
	}
	var what []string
	for _, r := range decisions(t, c, begun) {
		if r.Kind == control.KindCommand && r.Answer.Done {
			what = append(what, r.Command.What+" "+r.Command.Reason)
		}
	}
	if !slices.Equal(what, []string{"drain new disks", "undrain done"}) {
		t.Errorf("commands on record are %q", what)
	}
	if code := next.stop(t); code != 0 {
		t.Errorf("the next leader ended with %d", code)
	}
}
