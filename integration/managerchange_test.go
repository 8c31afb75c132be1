//go:build integration

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/manager"
)

// The brokers of a Modular cluster are restarted one by one with the Extensible load manager. The same process follows it all the time:
// it decides nothing while brokers are mixed, and plans on what the brokers publish afterwards.
func TestManagerChange(t *testing.T) {
	c := alone(t, harness.Options{Manager: harness.Modular, Conf: keeperConf()})
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, c.CreateNamespace(t, 8)), Rate: 50, Seed: 1})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{})
	load.AwaitFlow(t)
	p := launch(t, nil, append([]string{"run", "--mode", "advise", "--set", "ballastCycleInterval=3s", "--set", "ballastReportInterval=5s", "--set", "ballastLogFormat=text"},
		everywhere(c)...)...)
	const anew, cycle = "begins anew", "msg=cycle "
	p.says(t, "manager=modular", time.Minute)
	p.says(t, cycle, time.Minute)

	brokers := c.Brokers()
	for i, b := range brokers {
		b.RunManager(t, harness.Extensible)
		if i == len(brokers)-1 {
			break
		}
		if _, stderr := p.text(); strings.Contains(stderr, anew) {
			t.Fatalf("it begins anew after %d of %d brokers: %s", i+1, len(brokers), tail(stderr))
		}
	}
	through := time.Now()
	runsAll(t, c, manager.Extensible)
	p.says(t, anew, 90*time.Second)
	harness.Figure(t, "last broker restarted until the run begins anew, s", int64(time.Since(through).Seconds()))
	harness.Eventually(t, 2*time.Minute, "the same process plans on what the brokers publish", func(context.Context) error {
		select {
		case <-p.done:
			t.Fatalf("the program has ended: %v", p.err)
		default:
		}
		_, stderr := p.text()
		_, after, _ := strings.Cut(stderr, anew)
		if !strings.Contains(after, "manager=extensible") || !strings.Contains(after, cycle) {
			return fmt.Errorf("it said: %s", tail(after))
		}
		return nil
	})
	harness.Figure(t, "last broker restarted until the first plan on Extensible, s", int64(time.Since(through).Seconds()))
	_, stderr := p.text()
	before, after, _ := strings.Cut(stderr, anew)
	if !strings.Contains(before, "STALE_OTHER_MANAGER") {
		t.Errorf("it did not say that brokers run another load manager: %s", tail(before))
	}
	if strings.Contains(after, anew) {
		t.Errorf("it began anew more than once: %s", tail(after))
	}
	load.AwaitFlow(t)
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	load.Stop(t)
}
