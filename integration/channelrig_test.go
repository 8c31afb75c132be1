//go:build integration

package integration

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
	"github.com/ballast-lb/ballast/plan"
	ballast "github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/topics"
)

// channelRig is what acts through the ownership topic of a real cluster.
type channelRig struct {
	c       *harness.Cluster
	admin   *admin.Client
	views   *control.Views
	log     topics.Log
	lock    *control.Lock
	channel *control.Channel
}

func newChannelRig(t *testing.T, c *harness.Cluster, wrap func(control.Cluster) control.Cluster) *channelRig {
	t.Helper()
	ctx := t.Context()
	quiet := slog.New(slog.DiscardHandler)
	adm, err := admin.New(admin.Options{URLs: []string{c.AdminURL()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { adm.Close() })
	r := &channelRig{c: c, admin: adm, log: connect(t, c)}
	r.views = control.NewViews(control.ViewOptions{Cluster: adm, Log: r.log, Settings: ballast.Defaults(), Version: harness.Version(), Logger: quiet})
	if err := r.views.Open(ctx); err != nil {
		t.Fatal(err)
	}
	follow, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- r.views.Run(follow) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		r.views.Close()
	})
	if err := adm.CreateTopic(ctx, topics.Leader); err != nil {
		t.Fatal(err)
	}
	r.lock = control.NewLock(r.log, "test", 10*time.Second, time.Now)
	if err := r.lock.Acquire(ctx, true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.lock.Release() })
	var asked control.Cluster = adm
	if wrap != nil {
		asked = wrap(adm)
	}
	r.channel = control.NewChannel(control.ChannelOptions{Cluster: asked, Topic: r.views, Log: r.log, Lock: r.lock, Clock: control.SystemClock{}, Logger: quiet,
		Limits: control.ChannelLimits{Concurrent: 50, Seen: 10 * time.Second, Verify: 2 * time.Minute, Poll: 10 * time.Millisecond}})
	t.Cleanup(func() { r.channel.Close() })
	harness.Eventually(t, 2*time.Minute, "the ownership topic is read to its end", func(ctx context.Context) error {
		if reading, err := r.views.Reading(ctx); err != nil || !reading.CaughtUp {
			return fmt.Errorf("%+v, %w", reading, err)
		}
		return nil
	})
	return r
}

// carry carries decisions out, some at once; each must be done.
func (r *channelRig) carry(t *testing.T, ds []plan.Decision, atOnce int) (slowest time.Duration) {
	t.Helper()
	n := 0
	err := r.channel.RunAll(t.Context(), ds, control.Hooks{Width: func() int { return atOnce }, End: func(o control.Outcome) error {
		n++
		slowest = max(slowest, time.Duration(o.Millis)*time.Millisecond)
		if o.Result != control.Done || o.Owner != o.Decision.Destination {
			t.Errorf("%s to %s: %s, owner %s (%s)", o.Decision.Bundle, o.Decision.Destination, o.Result, o.Owner, o.Why)
		}
		return nil
	}})
	if err != nil || n != len(ds) {
		t.Fatalf("%d outcomes of %d decisions: %v", n, len(ds), err)
	}
	return slowest
}

// holds is what the brokers themselves say they own of a namespace: broker by bundle. Each of them hears of a move in its own time,
// so for a moment two may say that they own a bundle, or none.
func (r *channelRig) holds(ctx context.Context, ns string) (map[string]string, error) {
	out := map[string]string{}
	var twice error
	for _, b := range r.c.Brokers() {
		owned, err := r.admin.Owned(ctx, b.ID)
		if err != nil {
			return nil, err
		}
		for _, bundle := range owned {
			if event.NamespaceOf(bundle) == ns {
				if other, ok := out[bundle]; ok {
					twice = fmt.Errorf("%s is owned by %s and by %s", bundle, other, b.ID)
				}
				out[bundle] = b.ID
			}
		}
	}
	return out, twice
}

// arrived waits until the brokers themselves agree that bundles are where they should be, and nowhere else.
func (r *channelRig) arrived(t *testing.T, ds []plan.Decision) {
	t.Helper()
	harness.Eventually(t, time.Minute, "the brokers say themselves who has what", func(ctx context.Context) error {
		owners, err := r.holds(ctx, event.NamespaceOf(ds[0].Bundle))
		for _, d := range ds {
			if err == nil && owners[d.Bundle] != d.Destination {
				err = fmt.Errorf("%s is on %q, not on %s", d.Bundle, owners[d.Bundle], d.Destination)
			}
		}
		return err
	})
}

// loaded makes a namespace whose bundles are all on the first broker, with a producer and a consumer in each.
func (r *channelRig) loaded(t *testing.T, n int) ([]string, *traffic.Run) {
	t.Helper()
	bundles := r.c.Bundles(t, r.c.CreateNamespace(t, n))
	var ds []plan.Decision
	for _, bundle := range bundles {
		ds = append(ds, plan.Decision{Action: plan.Place, Bundle: bundle, Destination: r.c.Brokers()[0].ID})
	}
	err := r.channel.RunAll(t.Context(), ds, control.Hooks{End: func(o control.Outcome) error {
		if o.Result != control.Done {
			t.Logf("placing %s: %s (%s)", o.Decision.Bundle, o.Result, o.Why)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	// A broker that reads the policies of the new namespace assigns the bundle of their topic by itself.
	owners := map[string]string{}
	harness.Eventually(t, time.Minute, "every bundle has one owner", func(ctx context.Context) (err error) {
		if owners, err = r.holds(ctx, event.NamespaceOf(bundles[0])); err == nil && len(owners) != n {
			err = fmt.Errorf("%d of %d have one", len(owners), n)
		}
		return err
	})
	for _, bundle := range bundles {
		if owners[bundle] != r.c.Brokers()[0].ID {
			r.c.Move(t, bundle, r.c.Brokers()[0])
		}
	}
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: bundles, TopicsPerBundle: 1, Rate: 2 * float64(n)})
	load := traffic.Start(t, r.c.ServiceURL(), layout, traffic.Options{})
	load.AwaitFlow(t)
	harness.Eventually(t, time.Minute, "the ownership topic shows it, too", func(context.Context) error {
		for _, bundle := range bundles {
			if o, _ := r.views.Ownership().Get(bundle); o.State() != event.Owned || o.Owner() != r.c.Brokers()[0].ID {
				return fmt.Errorf("%s is %s by %q", bundle, o.State(), o.Owner())
			}
		}
		return nil
	})
	return bundles, load
}
