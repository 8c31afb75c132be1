//go:build integration

package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
)

// All brokers are stopped and started again at once. Whoever is up first would be given what clients ask for; the leader that acts
// through the ownership log gives the bundles that lost their owner the next one evenly, before anybody asks.
func TestMassRestart(t *testing.T) {
	if !harness.Full() {
		t.Skip("restarts a whole cluster twice: only at full length (make verify)")
	}
	const bundles = 48
	for _, governed := range []bool{false, true} {
		name := map[bool]string{false: "without Ballast", true: "with Ballast"}[governed]
		t.Run(name, func(t *testing.T) {
			c := alone(t, harness.Options{})
			ns := c.CreateNamespace(t, bundles)
			brokers := c.Brokers()
			c.Place(t, ns, brokers...)
			if governed {
				p := start(t, c, "run", "--mode", "govern", "--take-over", "--via", "channel", "--set", "ballastHttpListenAddress=", "--set", "ballastCycleInterval=2s")
				p.says(t, "took over", 2*time.Minute)
				p.says(t, "msg=cycle", 3*time.Minute)
			}
			c.StopAll(t, brokers...)
			begun := time.Now()
			c.StartAll(t, brokers...)
			up := time.Since(begun)
			if governed {
				rest, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}})
				if err != nil {
					t.Fatal(err)
				}
				defer rest.Close()
				harness.Eventually(t, 5*time.Minute, "the bundles have owners before anybody asks", func(ctx context.Context) error {
					owners, err := (&channelRig{c: c, admin: rest}).holds(ctx, ns)
					if err == nil && len(owners) < bundles {
						err = fmt.Errorf("%d of %d bundles have an owner", len(owners), bundles)
					}
					return err
				})
				harness.Figure(t, "seconds from the registry until all bundles have owners", int((time.Since(begun) - up).Seconds()))
			}
			layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), TopicsPerBundle: 1, Rate: 48})
			load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})
			load.AwaitFlow(t)
			if err := load.Stop(t).Err(); err != nil {
				t.Error(err)
			}
			counts := map[string]int{}
			for _, owner := range c.Owners(t, ns) {
				counts[owner]++
			}
			least, most := bundles, 0
			for _, b := range brokers {
				least, most = min(least, counts[b.ID]), max(most, counts[b.ID])
			}
			harness.Figure(t, "fewest and most of 48 bundles on a broker, "+name, fmt.Sprintf("%d and %d", least, most))
			if governed && most-least > bundles/8 {
				t.Errorf("from %d to %d bundles are on a broker", least, most)
			}
		})
	}
}
