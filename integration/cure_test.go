//go:build integration

package integration

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/ownership"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
	"github.com/ballast-lb/ballast/watch"
)

// sleeping is a configuration with which the brokers' leader looks for what is stuck when it begins to lead, and then not
// for an hour: what mends a bundle during a test is known. Ballast reads it, too, and gives that leader its time.
func sleeping() map[string]string {
	return map[string]string{
		"loadBalancerServiceUnitStateMonitorIntervalInSeconds": "3600",
		"brokerServiceCompactionMonitorIntervalInSeconds":      "3600", // of the ownership topic, from which a test takes what it holds
	}
}

// forgedAge is how long ago the records of these tests say that they were written: by then that leader should have looked twice.
const forgedAge = 24 * time.Hour

// curing starts a Ballast that governs and looks every two seconds.
func curing(t *testing.T, c *harness.Cluster, more ...string) *program {
	t.Helper()
	args := append([]string{"run", "--mode", "govern", "--take-over"}, settings("ballastHttpListenAddress=", "ballastCycleInterval=2s",
		"ballastVerifyTimeout=10s", "ballastUnloadTimeout=20s", "ballastMaxPublishLatency=0s")...)
	p := start(t, c, append(args, settings(more...)...)...)
	p.says(t, "took over", 3*time.Minute)
	return p
}

// ownershipLog is what the ownership topic says of bundles while a test runs.
type ownershipLog struct {
	views *control.Views

	mu     sync.Mutex
	events []control.OwnershipEvent
}

func hearOwnership(t *testing.T, c *harness.Cluster) *ownershipLog {
	t.Helper()
	l := &ownershipLog{views: follow(t, c)}
	l.views.Watch(func(e control.OwnershipEvent) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.events = append(l.events, e)
	})
	return l
}

// after is what was heard of a bundle after a record of a producer, and whether that was heard at all.
func (l *ownershipLog) after(bundle, producer string) (out []control.OwnershipEvent, heard bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.events {
		switch {
		case e.Bundle != bundle:
		case e.Producer == producer:
			out, heard = nil, true
		default:
			out = append(out, e)
		}
	}
	return out, heard
}

func tellEvents(events []control.OwnershipEvent) string {
	var b strings.Builder
	for _, e := range events {
		if e.Data == nil {
			fmt.Fprintf(&b, "tombstone by %s; ", e.Producer)
			continue
		}
		fmt.Fprintf(&b, "%s v%d %q to %q force %v accepted %v (%v) by %s; ", e.Data.State, e.Data.VersionID, e.Data.SourceBroker, e.Data.DstBroker, e.Data.Force, !e.Keep, e.Rule, e.Producer)
	}
	return b.String()
}

// record waits for the record of a bundle, which must be owned by a broker.
func (l *ownershipLog) record(t *testing.T, bundle string, owner *harness.Broker) (r *ownership.Record) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, bundle+" is known", func(context.Context) error {
		if r, _ = l.views.Ownership().Get(bundle); r.State() != event.Owned || r.Owner() != owner.ID {
			return fmt.Errorf("it is %s by %q", r.State(), r.Owner())
		}
		return nil
	})
	return r
}

// treated is what the decision log holds about the cures of a bundle.
type treated struct {
	cycles   int // plans that were decided about
	codes    []string
	plans    []plan.Decision
	intents  []control.Record
	outcomes []control.Record
}

func treatment(records []control.Record, bundle string) (x treated) {
	for _, r := range records {
		switch {
		case r.Kind == control.KindPlan && len(r.Frozen) == 0:
			x.cycles++
			for _, l := range r.LeftOut {
				if l.Bundle == bundle && !slices.Contains(x.codes, l.Why.Code) {
					x.codes = append(x.codes, l.Why.Code)
				}
			}
			for _, d := range r.Cures {
				if d.Bundle == bundle {
					x.plans = append(x.plans, d)
				}
			}
		case r.Kind == control.KindIntent && r.Decision.Bundle == bundle:
			x.intents = append(x.intents, r)
		case r.Kind == control.KindOutcome && r.Outcome.Decision.Bundle == bundle:
			x.outcomes = append(x.outcomes, r)
		}
	}
	return x
}

// untouched checks that nothing was decided or begun.
func (x treated) untouched(t *testing.T, when string) {
	t.Helper()
	if len(x.plans)+len(x.intents)+len(x.outcomes) > 0 {
		t.Errorf("%s: cures %+v, intents %+v, outcomes %+v", when, x.plans, x.intents, x.outcomes)
	}
}

// once checks that a bundle was cured once, by the rule, with its code, its intent and after that its outcome.
func (x treated) once(t *testing.T) control.Outcome {
	t.Helper()
	if len(x.plans) != 1 || len(x.intents) != 1 || len(x.outcomes) != 1 {
		t.Fatalf("%d cures decided, %d intents, %d outcomes, want one of each: %+v %+v %+v", len(x.plans), len(x.intents), len(x.outcomes), x.plans, x.intents, x.outcomes)
	}
	for _, d := range []plan.Decision{x.plans[0], *x.intents[0].Decision, x.outcomes[0].Outcome.Decision} {
		if d.Action != plan.Unload || d.Destination != "" || d.Why.Code != watch.CureStuck.ID || !strings.Contains(d.Why.Text, watch.InFlight.ID) ||
			!strings.Contains(d.Why.Text, "attempt 1 of 3") {
			t.Errorf("the cure is %+v", d)
		}
	}
	if x.intents[0].Seq >= x.outcomes[0].Seq || x.intents[0].Limit <= 0 {
		t.Errorf("the intent is %+v, the outcome %+v", x.intents[0], x.outcomes[0])
	}
	return *x.outcomes[0].Outcome
}

// awaits reads the decision log until it says of a bundle what is wanted.
func awaits(t *testing.T, c *harness.Cluster, since time.Time, bundle, what string, enough func(treated) bool) (x treated) {
	t.Helper()
	harness.Eventually(t, 4*time.Minute, what, func(context.Context) error {
		if x = treatment(decisions(t, c, since), bundle); !enough(x) {
			return fmt.Errorf("after %d cycles: passed over because of %v, cures %+v, intents %d, outcomes %d", x.cycles, x.codes, x.plans, len(x.intents), len(x.outcomes))
		}
		time.Sleep(time.Second)
		return nil
	})
	return x
}

// A bundle that is stuck on its way is cured once, and not while cures are off or held back. What helps depends on what brokers
// see: one that is stuck to them, too, is their leader's to mend, and the cure says that it was ignored; one that is stuck only
// by a log that has lost records is mended by the cure, and by nobody else.
func TestCureOfAStuckBundle(t *testing.T) {
	c := pool.Get(t, harness.Options{Conf: sleeping()})
	c.SetDynamic(t, reportThreshold, "0")
	t.Run("to brokers, too", func(t *testing.T) {
		full(t) // it waits for the brokers' own leaders
		cureIsIgnored(t, c)
	})
	t.Run("by a log that lost records", func(t *testing.T) { cureMends(t, c) })
}

// cureIsIgnored leaves a bundle with a record that a broker which is not there should give it up.
func cureIsIgnored(t *testing.T, c *harness.Cluster) {
	const gone = "10.255.255.1:8080"
	ns := c.CreateNamespace(t, 4)
	c.Place(t, ns, c.Brokers()...)
	log := hearOwnership(t, c)
	bundle := c.Bundles(t, ns)[0]
	owned := log.record(t, bundle, c.Brokers()[0])
	f := newForeign(t, c)
	f.write(t, bundle, event.ServiceUnitStateData{State: event.Releasing, SourceBroker: gone, VersionID: owned.Data.VersionID + 7,
		Timestamp: time.Now().Add(-forgedAge).UnixMilli()})
	producer := f.producer.Name()

	// Off: it is told, and nothing else.
	begun := time.Now()
	p := curing(t, c, "ballastCure=false")
	x := awaits(t, c, begun, bundle, "cycles without cures", func(x treated) bool { return x.cycles >= 3 })
	x.untouched(t, "with ballastCure=false")
	if stdout, stderr, code := run(t, c, "pause", "--reason", "looking at a stuck bundle"); code != 0 {
		t.Fatalf("pause ended with %d: %s %s", code, stdout, tail(stderr))
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}

	// Paused: it says why it does nothing.
	begun = time.Now()
	p = curing(t, c)
	x = awaits(t, c, begun, bundle, "cycles of a pause", func(x treated) bool { return x.cycles >= 3 && slices.Contains(x.codes, control.CurePaused.ID) })
	x.untouched(t, "during a pause")
	if events, heard := log.after(bundle, producer); !heard || len(events) > 0 {
		t.Errorf("the record of the test was heard: %v; after it %s", heard, tellEvents(events))
	}
	if stdout, stderr, code := run(t, c, "resume"); code != 0 {
		t.Fatalf("resume ended with %d: %s %s", code, stdout, tail(stderr))
	}

	// Cured once, which brokers ignore; then it backs off.
	p.says(t, "code="+watch.InFlight.ID+" bundle="+bundle, time.Minute)
	awaits(t, c, begun, bundle, "an outcome of the cure", func(x treated) bool { return len(x.outcomes) > 0 })
	after := time.Now()
	awaits(t, c, after, bundle, "cycles of the back-off", func(x treated) bool { return x.cycles >= 3 && slices.Contains(x.codes, watch.CureBacksOff.ID) })
	out := treatment(decisions(t, c, begun), bundle).once(t)
	if out.Result != control.TimedOut || !strings.Contains(out.Why, "still Releasing") {
		t.Errorf("the cure ended with %s: %s", out.Result, out.Why)
	}
	harness.Figure(t, "what came of a cure that brokers ignore", out.Why)
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	events, _ := log.after(bundle, producer)
	if r, _ := log.views.Ownership().Get(bundle); r.State() != event.Releasing || r.Data.SourceBroker != gone || slices.ContainsFunc(events, accepted) {
		t.Errorf("nobody should have mended it, but after the test's record there is %s", tellEvents(events))
	}

	// A leader that looks mends it by force.
	id, err := c.Leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Broker(id).Stop(t)
	harness.Eventually(t, 4*time.Minute, "the next leader of the brokers mends the bundle", func(ctx context.Context) error {
		events, _ = log.after(bundle, producer)
		if !slices.ContainsFunc(events, forced) {
			return fmt.Errorf("no record by force: %s", tellEvents(events))
		}
		_, err := c.Owner(ctx, bundle)
		return err
	})
	serves(t, c, bundle)
	c.Broker(id).Start(t)
}

// accepted and forced are records that brokers obey, and those by which a leader overrides what is stuck.
func accepted(e control.OwnershipEvent) bool { return !e.Keep }
func forced(e control.OwnershipEvent) bool   { return !e.Keep && e.Data != nil && e.Data.Force }

// serves checks that messages pass through a bundle.
func serves(t *testing.T, c *harness.Cluster, bundle string) {
	t.Helper()
	load := traffic.Start(t, c.ServiceURL(), traffic.MustLayout(t, traffic.Shape{Bundles: []string{bundle}, Rate: 20, Seed: 3}), traffic.Options{Drain: 3 * time.Minute})
	load.AwaitFlow(t)
	if err := load.Stop(t).Err(); err != nil {
		t.Errorf("traffic of %s: %v", bundle, err)
	}
}

// cureMends takes from the ownership topic what it holds, as its retention or a mistake may, and leaves a record there that brokers
// ignore, as it is no newer than what they know: a bundle that they serve is stuck on its way to whoever reads the log.
func cureMends(t *testing.T, c *harness.Cluster) {
	ns := c.CreateNamespace(t, 4)
	c.Place(t, ns, c.Brokers()...)
	bundles, owner := c.Bundles(t, ns), c.Brokers()[1]
	bundle := bundles[1]
	version := int64(0)
	t.Run("before", func(t *testing.T) { version = hearOwnership(t, c).record(t, bundle, owner).Data.VersionID })
	load := traffic.Start(t, c.ServiceURL(), traffic.MustLayout(t, traffic.Shape{Bundles: bundles, Rate: 40, Seed: 4}), traffic.Options{Drain: 3 * time.Minute})
	load.AwaitFlow(t)

	emptyTopic(t, c, topics.ServiceUnitState)
	c.Move(t, bundles[2], c.Brokers()[0]) // the topic works
	log := hearOwnership(t, c)
	log.record(t, bundles[2], c.Brokers()[0])
	if r, ok := log.views.Ownership().Get(bundle); ok {
		t.Fatalf("the log has a record of the bundle: %+v", r)
	}
	f := newForeign(t, c)
	f.write(t, bundle, event.ServiceUnitStateData{State: event.Releasing, SourceBroker: owner.ID, VersionID: version,
		Timestamp: time.Now().Add(-forgedAge).UnixMilli()})
	harness.Eventually(t, time.Minute, "the bundle is on its way by the log", func(context.Context) error {
		if r, _ := log.views.Ownership().Get(bundle); r.State() != event.Releasing {
			return fmt.Errorf("it is %s", r.State())
		}
		return nil
	})
	if now, err := c.Owner(t.Context(), bundle); err != nil || now != owner.ID {
		t.Fatalf("by the brokers it is on %s, %v", now, err)
	}

	begun := time.Now()
	p := curing(t, c)
	awaits(t, c, begun, bundle, "an outcome of the cure", func(x treated) bool { return len(x.outcomes) > 0 })
	after := time.Now()
	awaits(t, c, after, bundle, "more cycles", func(x treated) bool { return x.cycles >= 3 })
	out := treatment(decisions(t, c, begun), bundle).once(t)
	if out.Result != control.Done {
		t.Errorf("the cure ended with %s: %s", out.Result, out.Why)
	}
	harness.Figure(t, "until a cure had mended a bundle, ms", out.Millis)
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	harness.Eventually(t, 2*time.Minute, "log and brokers agree about the bundle", func(ctx context.Context) error {
		now, err := c.Owner(ctx, bundle)
		if r, _ := log.views.Ownership().Get(bundle); err == nil && (r.State() != event.Owned || r.Owner() != now) {
			err = fmt.Errorf("it is on %s, and by the log %s by %q", now, r.State(), r.Owner())
		}
		return err
	})
	events, heard := log.after(bundle, f.producer.Name())
	if !heard || slices.ContainsFunc(events, forced) || !slices.ContainsFunc(events, func(e control.OwnershipEvent) bool {
		return e.Data != nil && e.Data.State == event.Releasing && e.Data.SourceBroker == owner.ID && e.Data.VersionID == version+1
	}) {
		t.Errorf("it should have been unloaded on request, without force: %s", tellEvents(events))
	}
	report := load.Stop(t)
	t.Log(report)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
}

// emptyTopic takes what a topic holds from it, while it is in use.
func emptyTopic(t *testing.T, c *harness.Cluster, topic string) {
	t.Helper()
	path := "/admin/v2/" + strings.Replace(topic, "://", "/", 1)
	for _, step := range []struct{ method, path string }{
		{http.MethodPut, path + "/unload"}, // it goes on in a new ledger
		{http.MethodDelete, path + "/truncate"},
	} {
		harness.Eventually(t, time.Minute, step.method+" "+step.path, func(ctx context.Context) error { return c.Do(ctx, step.method, step.path, nil) })
	}
}
