//go:build integration

package integration

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/plan"
)

// Bundles that lost their owner together, as after a mass restart, get the next one from the leader that acts through the ownership
// log: evenly, and before a client asks for any.
func TestPlaceWhatLostItsOwner(t *testing.T) {
	full(t)
	const bundles = 24
	c := shared(t)
	ns := c.CreateNamespace(t, bundles)
	c.Place(t, ns, c.Brokers()[0])
	rest, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}})
	if err != nil {
		t.Fatal(err)
	}
	defer rest.Close()
	p := start(t, c, append([]string{"run", "--mode", "govern", "--take-over", "--via", "channel"},
		settings("ballastHttpListenAddress=", "ballastCycleInterval=1s", "ballastMaxBundlesPerCycle=50", "ballastNewBrokerTime=0s", "ballastPrePlace=true")...)...)
	p.says(t, "msg=cycle", 3*time.Minute)
	begun := time.Now()
	if err := c.Do(t.Context(), http.MethodPut, "/admin/v2/namespaces/"+ns+"/unload", nil); err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	harness.Eventually(t, 3*time.Minute, "the bundles have owners before anybody asks", func(ctx context.Context) error {
		owners, err := (&channelRig{c: c, admin: rest}).holds(ctx, ns)
		if err != nil {
			return err
		}
		clear(counts)
		for _, id := range owners {
			counts[id]++
		}
		least, most := bundles, 0
		for _, b := range c.Brokers() {
			least, most = min(least, counts[b.ID]), max(most, counts[b.ID])
		}
		if len(owners) != bundles || most-least > 2 {
			return fmt.Errorf("%d of %d bundles have an owner, from %d to %d on a broker", len(owners), bundles, least, most)
		}
		return nil
	})
	harness.Figure(t, "until bundles that lost their owner have the next one, ms", time.Since(begun).Milliseconds())
	harness.Figure(t, "bundles on each broker then", fmt.Sprint(counts))
	placed := 0
	for _, r := range decisions(t, c, begun) {
		if r.Kind == control.KindOutcome && r.Outcome.Decision.Action == plan.Place && r.Outcome.Result == control.Done {
			placed++
		}
	}
	if placed < bundles/2 {
		t.Errorf("%d placements are on record for %d bundles", placed, bundles)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
