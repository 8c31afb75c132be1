package simulate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func embedded(t *testing.T, o simulate.EmbeddedOptions) *simulate.Embedded {
	t.Helper()
	ns := simulate.Namespace{Name: "public/sim"}
	for range 4 {
		ns.Bundles = append(ns.Bundles, simulate.Bundle{Traffic: simulate.Messages(100, 1000), NumTopics: 3, Owner: "a:1"})
	}
	c, err := simulate.New(simulate.Config{System: -1, Namespaces: []simulate.Namespace{ns},
		Brokers: []simulate.Broker{{ID: "a:1", Cores: 2}, {ID: "b:1", Cores: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := simulate.NewEmbedded(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// owners folds the ownership topic as any program would read it.
func owners(t *testing.T, e *simulate.Embedded) map[string]string {
	t.Helper()
	sub, err := e.Log().Subscribe(t.Context(), topics.ServiceUnitState, topics.SubscribeOptions{From: topics.Earliest})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	out := map[string]string{}
	for {
		m, ok, err := sub.(*topics.MemorySubscription).TryReceive()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		if m.Tombstone() {
			delete(out, m.Key)
			continue
		}
		d, err := event.Decode[event.ServiceUnitStateData](m.Payload)
		if err != nil {
			t.Fatal(err)
		}
		out[m.Key] = d.DstBroker
	}
}

func TestEmbeddedUnloadIsSeenOnTheLog(t *testing.T) {
	e := embedded(t, simulate.EmbeddedOptions{SelfDriven: true})
	ctx := t.Context()
	bundles, err := e.Bundles(ctx, "public/sim")
	if err != nil || len(bundles) != 4 {
		t.Fatalf("bundles %q, %v", bundles, err)
	}
	before := e.Now()
	if err := e.Unload(ctx, bundles[1], "b:1"); err != nil {
		t.Fatal(err)
	}
	if !e.Now().After(before) {
		t.Error("the unload took no time")
	}
	if got := owners(t, e)[bundles[1]]; got != "b:1" {
		t.Errorf("the log says %q owns it", got)
	}
	owned, err := e.Owned(ctx, "b:1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bundles[1:2], owned); diff != "" {
		t.Errorf("owned by b (-want +got):\n%s", diff)
	}
}

func TestEmbeddedRefusals(t *testing.T) {
	e := embedded(t, simulate.EmbeddedOptions{SelfDriven: true})
	ctx := t.Context()
	bundles, err := e.Bundles(ctx, "public/sim")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name   string
		do     func() error
		status int
	}{
		{"unload to where it is", func() error { return e.Unload(ctx, bundles[0], "a:1") }, 500},
		{"unload to nobody", func() error { return e.Unload(ctx, bundles[0], "c:1") }, 409},
		{"unload of nothing", func() error { return e.Unload(ctx, "public/sim/0x1", "b:1") }, 412},
		{"split of nothing", func() error { return e.Split(ctx, "public/sim/0x1", "", nil, false) }, 412},
		{"no such namespace", func() error { _, err := e.Bundles(ctx, "public/other"); return err }, 404},
		{"no such broker", func() error { _, err := e.Owned(ctx, "c:1"); return err }, 404},
		{"not dynamic", func() error { return e.SetDynamicConfig(ctx, "loadBalancerEnabled", "false") }, 412},
		{"no such key", func() error { return e.DeleteDynamicConfig(ctx, "loadBalancerEnabledd") }, 412},
		{"not a number", func() error { return e.SetDynamicConfig(ctx, "loadBalancerSheddingIntervalMinutes", "soon") }, 412},
	} {
		var refusal *simulate.Error
		if err := x.do(); !errors.As(err, &refusal) || refusal.Status != x.status || !refusal.Refused() {
			t.Errorf("%s: got %v, want a refusal with %d", x.name, err, x.status)
		}
	}
	for _, b := range bundles {
		if owner := owners(t, e)[b]; owner != "a:1" {
			t.Errorf("%s moved to %s", b, owner)
		}
	}
}

func TestEmbeddedFaults(t *testing.T) {
	ctx := t.Context()
	for _, x := range []struct {
		name    string
		faults  simulate.AdminFaults
		wrong   func(error) bool
		refused bool
	}{
		{"ignored", simulate.AdminFaults{Ignore: 1}, func(err error) bool { return err == nil }, false},
		{"hung", simulate.AdminFaults{Hang: 1}, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, false},
		{"failed", simulate.AdminFaults{Fail: 1}, func(err error) bool { return err != nil }, false},
		{"down", simulate.AdminFaults{Down: true}, func(err error) bool { return err != nil }, true},
	} {
		e := embedded(t, simulate.EmbeddedOptions{SelfDriven: true, Patience: 20 * time.Second})
		bundles, err := e.Bundles(ctx, "public/sim")
		if err != nil {
			t.Fatal(err)
		}
		if err := e.With(ctx, func(c *simulate.Cluster) { c.SetAdminFaults(x.faults) }); err != nil {
			t.Fatal(err)
		}
		err = e.Unload(ctx, bundles[0], "b:1")
		var answer *simulate.Error
		if !x.wrong(err) || errors.As(err, &answer) && answer.Refused() != x.refused {
			t.Errorf("%s: got %v", x.name, err)
		}
		if owner := owners(t, e)[bundles[0]]; owner != "a:1" {
			t.Errorf("%s: moved to %s", x.name, owner)
		}
	}
}

func TestEmbeddedConfiguration(t *testing.T) {
	e := embedded(t, simulate.EmbeddedOptions{SelfDriven: true})
	ctx := t.Context()
	const key = "loadBalancerSheddingEnabled"
	value := func() string {
		all, err := e.RuntimeConfig(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return all[key]
	}
	if v := value(); v != "true" {
		t.Fatalf("at first %s", v)
	}
	if err := e.SetDynamicConfig(ctx, key, "false"); err != nil {
		t.Fatal(err)
	}
	dynamic, err := e.DynamicConfig(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{key: "false"}, dynamic); diff != "" || value() != "false" {
		t.Errorf("after setting: %s (-want +got):\n%s", value(), diff)
	}
	if err := e.DeleteDynamicConfig(ctx, key); err != nil {
		t.Fatal(err)
	}
	if dynamic, err = e.DynamicConfig(ctx); err != nil || len(dynamic) != 0 || value() != "true" {
		t.Errorf("after deleting: %s, dynamic %v, %v", value(), dynamic, err)
	}
}

func TestEmbeddedObeysTheLog(t *testing.T) {
	e := embedded(t, simulate.EmbeddedOptions{SelfDriven: true})
	ctx := t.Context()
	bundles, err := e.Bundles(ctx, "public/sim")
	if err != nil {
		t.Fatal(err)
	}
	pub, err := e.Log().Publisher(ctx, topics.ServiceUnitState, topics.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"2", "3"} { // the first is out of date
		record := `{"state":"Releasing","sourceBroker":"a:1","dstBroker":"b:1","versionId":` + version + `}`
		if _, err := pub.Publish(ctx, bundles[2], []byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Sleep(ctx, time.Second); err != nil {
		t.Fatal(err)
	}
	got, err := e.Owned(ctx, "b:1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(bundles[2:3], got); diff != "" {
		t.Errorf("owned by b (-want +got):\n%s", diff)
	}
}

// One goroutine lets time pass while another waits for an unload and a sleep.
func TestEmbeddedDriven(t *testing.T) {
	e := embedded(t, simulate.EmbeddedOptions{})
	ctx := t.Context()
	bundles, err := e.Bundles(ctx, "public/sim")
	if err != nil {
		t.Fatal(err)
	}
	finished := make(chan error, 1)
	go func() {
		err := e.Unload(ctx, bundles[0], "b:1")
		if err == nil {
			err = e.Sleep(ctx, time.Minute)
		}
		finished <- err
	}()
	for {
		select {
		case err := <-finished:
			if err != nil {
				t.Fatal(err)
			}
			if owner := owners(t, e)[bundles[0]]; owner != "b:1" {
				t.Errorf("the log says %q owns it", owner)
			}
			return
		default:
			if err := e.Advance(ctx, 10*time.Millisecond); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestEmbeddedCloseEndsWaiting(t *testing.T) {
	e := embedded(t, simulate.EmbeddedOptions{})
	finished := make(chan error, 1)
	go func() { finished <- e.Sleep(t.Context(), time.Hour) }()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-finished; !errors.Is(err, topics.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
