package control_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/topics"
)

// halting is a cluster during whose split the process is told to stop; after it, what is asked with the process's own context fails.
type halting struct {
	*listing
	stop context.CancelFunc
}

func (h halting) Split(ctx context.Context, bundle, algorithm string, at []string, unload bool) error {
	h.stop()
	return h.listing.Split(ctx, bundle, algorithm, at, unload)
}

func (h halting) Bundles(ctx context.Context, namespace string) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.listing.Bundles(ctx, namespace)
}

// Told to stop, it still sees what came of a split that it has asked for, for a bounded time.
func TestAStoppedSplitIsSeenThrough(t *testing.T) {
	parent := ns + "/0x00000000_0xffffffff"
	parts := []string{ns + "/0x00000000_0x80000000", ns + "/0x80000000_0xffffffff"}
	for _, tc := range []struct {
		lists  [][]string
		result control.Result
	}{{[][]string{{parent}, {parent}, parts}, control.Done}, {[][]string{{parent}}, control.TimedOut}} {
		ctx, stop := context.WithCancel(t.Context())
		clock := &testClock{now: time.Unix(0, 0)}
		w := halting{&listing{wayward: wayward{owner: a, script: []string{a}}, lists: tc.lists}, stop}
		x := control.NewExecutor(w, w, clock, control.ExecLimits{Request: time.Minute, Verify: time.Minute, Poll: time.Second})
		out := x.Run(ctx, plan.Decision{Action: plan.Split, Bundle: parent, Source: a})
		if out.Result != tc.result || strings.Contains(out.Why, "canceled") || tc.result == control.TimedOut && !strings.Contains(out.Why, "told to stop") {
			t.Errorf("%+v, want %s", out, tc.result)
		}
		if took := clock.now.Sub(time.Unix(0, 0)); took > 15*time.Second {
			t.Errorf("%s: it took %v after the stop", tc.result, took)
		}
	}
}

// A split that an earlier leader asked for, of a bundle that another broker has by now, was not made.
func TestAnInheritedSplitThatWasNotMade(t *testing.T) {
	w := drainTown(7)
	defer w.stop()
	bundle := w.bundles()[0]
	w.owners[bundle] = b
	intent := control.Record{Version: control.RecordVersion, Kind: control.KindIntent, At: w.now.UnixMilli(), Instance: "before", Epoch: 1, Seq: 1, Cycle: 1,
		Mode: control.Govern, Decision: &plan.Decision{Action: plan.Split, Bundle: bundle, Source: a}, Limit: 15_000}
	payload, err := json.Marshal(intent)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := w.log.Publisher(t.Context(), topics.Decisions, topics.PublishOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pub.Publish(t.Context(), intent.Key(), payload); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.run(5 * time.Second)
	out := w.outcomes(time.UnixMilli(town0))
	if len(out) != 1 || !out[0].Inherited || out[0].Result != control.Failed || out[0].Owner != b || !strings.Contains(out[0].Why, "undivided") {
		t.Errorf("came of it: %+v", out)
	}
}
