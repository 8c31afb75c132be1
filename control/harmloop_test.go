package control_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/cluster/admin"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
)

// clients are what the metrics of the town's brokers say: clients open rate connections a second, from the beginning on.
type clients struct {
	*proc
	rate float64
	fail bool
}

func (c clients) Metrics(_ context.Context, broker string, _ ...string) ([]admin.Sample, error) {
	if err := c.point(); err != nil {
		return nil, err
	}
	if c.fail {
		return nil, errors.New("401 to the metrics of " + broker)
	}
	return []admin.Sample{{Name: "pulsar_broker_publish_latency", Labels: map[string]string{"quantile": "0.99"}, Value: 7},
		{Name: "pulsar_connection_created_total_count", Value: c.rate * c.Now().Sub(time.UnixMilli(town0)).Seconds()}}, nil
}

// harmTown is a town whose leaders look at what clients see.
func harmTown(seed uint64, rate float64, fail bool, logger *slog.Logger) *town {
	w := newTown(seed, 12)
	w.options = func(o *control.Options) {
		o.Lock.Lease = time.Second
		o.Harm = control.NewHarmReader(clients{o.Viewer.(*proc), rate, fail}, time.Minute, logger)
		o.Limits = guard.Limits{BundleCoolDown: 35_000, MovesAtOnce: 4, MaxLatency: 500, MaxReconnects: 50}
	}
	return w
}

// Clients that reconnect after moves keep the number of moves at once low; what was seen is on record.
func TestClientsHarmSlowsALeader(t *testing.T) {
	for _, test := range []struct {
		rate float64
		hurt bool
	}{{rate: 10}, {rate: 200, hurt: true}} {
		w := harmTown(5, test.rate, false, quiet)
		w.start()
		w.run(100 * time.Second)
		rates, slowed, wide := 0, 0, 0
		for _, r := range w.since(time.UnixMilli(town0), control.KindPlan) {
			if r.Harm != nil {
				for _, c := range r.Harm.Brokers {
					if c.Latency != 7 {
						t.Errorf("cycle %d: clients are %+v", r.Cycle, c)
					}
					if c.Reconnects > test.rate*0.99 && c.Reconnects < test.rate*1.01 {
						rates++
					}
				}
			}
			if r.Verdict != nil {
				for _, l := range r.Verdict.Slowed {
					if l.Why.Code == guard.Slower.ID && strings.Contains(l.Why.Text, "connections a second") {
						slowed++
					}
				}
				wide = max(wide, r.Verdict.AtOnce)
			}
		}
		w.stop()
		if rates < 5 || test.hurt != (slowed > 3) || test.hurt != (wide < 3) {
			t.Errorf("at %v connections a second: %d rates on record, %d cycles slowed, at most %d moves at once", test.rate, rates, slowed, wide)
		}
	}
}

// Metrics that cannot be read do not stop a cycle; each broker is logged once, and nothing is known of its clients.
func TestUnknownHarmDoesNotStopALeader(t *testing.T) {
	var log strings.Builder
	w := harmTown(6, 200, true, slog.New(slog.NewTextHandler(&log, nil)))
	defer w.stop()
	w.start()
	w.run(100 * time.Second)
	for _, r := range w.since(time.UnixMilli(town0), control.KindPlan) {
		if r.Harm == nil || len(r.Harm.Brokers) > 0 {
			t.Errorf("cycle %d: clients are %+v", r.Cycle, r.Harm)
		}
	}
	if n := len(w.since(w.now.Add(-50*time.Second), control.KindIntent)); n < 4 {
		t.Errorf("%d moves in the last cycles", n)
	}
	for _, id := range w.brokers {
		if n := strings.Count(log.String(), "broker="+id); n != 1 {
			t.Errorf("%s is logged %d times", id, n)
		}
	}
}

// The leader is changed at every point at which it calls the outside (every 37th in short): what it sees of clients, and what the guard
// makes of it, is the same as without a change.
func TestANewLeaderSeesTheSameHarm(t *testing.T) {
	scripted := func(killAt int) (w *town, points int) {
		w = harmTown(7, 200, false, quiet)
		w.dieAt(killAt, &points)
		w.start()
		for w.planned() < 10 {
			w.step()
		}
		w.run(5 * time.Second)
		w.stop()
		return w, points
	}
	tell := func(w *town) []string {
		out := w.told()
		for _, e := range w.records() {
			if e.Kind == control.KindPlan {
				line := fmt.Sprintf("cycle %d: at once %d", e.Cycle, e.Verdict.AtOnce)
				for _, c := range e.Harm.Brokers {
					line += fmt.Sprintf(" %s %.0f", c.Broker, c.Reconnects)
				}
				for _, l := range e.Verdict.Slowed {
					line += " " + l.Why.Code
				}
				out = append(out, line)
			}
		}
		return upTo(out, 10)
	}
	plain, points := scripted(0)
	want := tell(plain)
	if text := strings.Join(want, "\n"); !strings.Contains(text, guard.Slower.ID) || !strings.Contains(text, " 200") {
		t.Fatalf("nobody is hurt in the run without a change:\n%s", text)
	}
	every := 37
	if os.Getenv("BALLAST_FULL") != "" {
		every = 1
	}
	for at := 1; at <= points; at += every {
		w, _ := scripted(at)
		if diff := cmp.Diff(want, tell(w)); diff != "" {
			t.Fatalf("the leader was changed at point %d of %d (-want +got):\n%s\n%s", at, points, diff, w.dump())
		}
	}
	t.Logf("%d points", points)
}
