package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/cluster"
	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/event"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
	"github.com/ballast-lb/ballast/settings"
)

// wayward is a cluster that puts each unloaded bundle where a script says, "" = nowhere for ever.
type wayward struct {
	control.Cluster
	owner   string
	script  []string
	asked   []string // destinations of the requests
	fail    error
	leaving string // a broker that is registered no more after the first request
}

func (w *wayward) Brokers(context.Context) (out []cluster.Broker, err error) {
	for _, id := range []string{a, b, c} {
		if id != w.leaving || len(w.asked) == 0 {
			out = append(out, cluster.Broker{ID: id, Version: "4.2.4"})
		}
	}
	return out, nil
}

func (w *wayward) Unload(_ context.Context, _, destination string) error {
	next := w.script[min(len(w.asked), len(w.script)-1)]
	w.asked = append(w.asked, destination)
	w.owner = next
	return w.fail
}

func (w *wayward) Owner(_ context.Context, bundle string) (control.Ownership, error) {
	if w.owner == "" {
		return control.Ownership{Bundle: bundle, State: event.Free}, nil
	}
	return control.Ownership{Bundle: bundle, Owner: w.owner, State: event.Owned}, nil
}

type testClock struct{ now time.Time }

func (c *testClock) Now() time.Time { return c.now }

func (c *testClock) Sleep(ctx context.Context, d time.Duration) error {
	c.now = c.now.Add(d)
	return ctx.Err()
}

// A move on a cluster that is not bound by destinations: how often it is asked for, and what is said of it.
func TestCoax(t *testing.T) {
	for _, tc := range []struct {
		name         string
		destinations control.Destinations
		destination  string
		script       []string
		leaving      string
		result       control.Result
		owner        string
		asked        string
	}{
		{"the hint is taken", control.Hinted, c, []string{c}, "", control.Done, c, c},
		{"the hint is taken at the second time", control.Hinted, c, []string{b, c}, "", control.Done, c, c + " " + c},
		{"it came back, then the hint is taken", control.Hinted, c, []string{a, c}, "", control.Done, c, c + " " + c},
		{"never", control.Hinted, c, []string{b, a, b}, "", control.Elsewhere, b, c + " " + c + " " + c},
		{"it always comes back", control.Hinted, c, []string{a}, "", control.Failed, a, c + " " + c + " " + c},
		{"the destination has left", control.Hinted, c, []string{b}, c, control.Elsewhere, b, c},
		{"nobody asks for it", control.Hinted, c, []string{""}, "", control.Done, "", c},
		{"no destination", control.Hinted, "", []string{b}, "", control.Done, b, "-"},
		{"ignored: where it goes is right", control.Ignored, "", []string{b}, "", control.Done, b, "-"},
		{"ignored: no bouncing", control.Ignored, c, []string{b, c}, "", control.Elsewhere, b, "-"},
		{"ignored: it came back", control.Ignored, "", []string{a, b}, "", control.Done, b, "- -"},
		{"ignored: it always comes back", control.Ignored, "", []string{a}, "", control.Failed, a, "- - -"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &wayward{owner: a, script: tc.script, leaving: tc.leaving}
			clock := &testClock{now: time.Unix(0, 0)}
			x := control.NewCoaxer(w, w, clock, control.ExecLimits{Request: time.Minute, Verify: 10 * time.Second, Poll: time.Second}, tc.destinations, 3)
			out := x.Run(t.Context(), plan.Decision{Action: plan.Transfer, Bundle: ns + "/0x00000000_0x40000000", Source: a, Destination: tc.destination})
			if rested, want := clock.now.Sub(time.Unix(0, 0)), time.Duration(len(w.asked)-1)*3*time.Second; rested < want {
				t.Errorf("asked %d times within %v: clients come back meanwhile, want %v at least", len(w.asked), rested, want)
			}
			var asked []string
			for _, d := range w.asked {
				if d == "" {
					d = "-"
				}
				asked = append(asked, d)
			}
			if out.Result != tc.result || out.Owner != tc.owner || strings.Join(asked, " ") != tc.asked || out.Attempts != len(asked) {
				t.Errorf("%s, owner %q, %d attempts, asked %v: %s", out.Result, out.Owner, out.Attempts, asked, out.Why)
			}
			l := x.Landings()
			if n := l.Honoured + l.Elsewhere + l.Back + l.Nowhere; l.Requests != int64(len(asked)) || n != l.Requests {
				t.Errorf("counted %+v", l)
			}
		})
	}
}

// What changed since the plan is not unloaded.
func TestCoaxLooksFirst(t *testing.T) {
	w := &wayward{owner: b, script: []string{c}}
	x := control.NewCoaxer(w, w, &testClock{}, control.ExecLimits{Verify: time.Second, Poll: time.Second}, control.Hinted, 3)
	if out := x.Run(t.Context(), transfer(ns+"/0x00000000_0x40000000", a, c)); out.Result != control.Skipped || len(w.asked) > 0 {
		t.Errorf("%+v, asked %v", out, w.asked)
	}
}

// stopped is a cluster during whose first unload the process is told to stop.
type stopped struct {
	*wayward
	stop context.CancelFunc
}

func (s stopped) Unload(ctx context.Context, bundle, to string) error {
	s.stop()
	return errors.Join(ctx.Err(), s.wayward.Unload(ctx, bundle, to))
}

// Told to stop, it sees a request through and asks for nothing again.
func TestCoaxIsStopped(t *testing.T) {
	for _, tc := range []struct {
		to   string
		want control.Result
	}{{c, control.Done}, {b, control.Elsewhere}, {a, control.Failed}} {
		ctx, stop := context.WithCancel(t.Context())
		w := stopped{&wayward{owner: a, script: []string{tc.to}}, stop}
		x := control.NewCoaxer(w, w, &testClock{now: time.Unix(0, 0)}, control.ExecLimits{Request: time.Minute, Verify: time.Minute, Poll: time.Second}, control.Hinted, 3)
		d := transfer(ns+"/0x00000000_0x40000000", a, c)
		if out := x.Run(ctx, d); out.Result != tc.want || out.Attempts != 1 || len(w.asked) != 1 || strings.Contains(out.Why, "canceled") {
			t.Errorf("it went to %s: %+v, asked %v, want %s", tc.to, out, w.asked, tc.want)
		}
		if out := x.Run(ctx, d); out.Result != control.Skipped || out.Why != control.NotBegun {
			t.Errorf("after the stop: %+v", out)
		}
	}
}

// A cluster that ignores destinations gets none; plans say what can be promised.
func TestPromises(t *testing.T) {
	snap := &cluster.Snapshot{Now: 1, Settings: settings.Defaults(), Brokers: []cluster.Broker{{ID: a}, {ID: b}, {ID: c,
		Stale: control.StaleNoAnswer.Because(policy.S("broker", c))}}}
	planned := [][]plan.Decision{{transfer("t/n/0x00000000_0x40000000", a, b), transfer("t/n/0x40000000_0x80000000", b, a), transfer("t/n/0x80000000_0xffffffff", c, b)}}
	landings := func() control.Landings { return control.Landings{Requests: 9, Honoured: 7, Back: 2} }
	for _, tc := range []struct {
		destinations control.Destinations
		moves        int
		code, text   string
	}{
		{control.Hinted, 3, "DESTINATION_IS_A_HINT", "each of 3 moves is verified and asked for up to 4 times; so far 7 of 9 requests"},
		{control.Ignored, 1, "DESTINATION_IGNORED", "places by leastLoadedServer whatever"},
	} {
		m := control.OnReports(script{planned}, control.EngineOptions{Destinations: tc.destinations, Attempts: 4, Landings: landings})
		trace := new(plan.Trace)
		p, _ := m.Shed(snap.Index(), m.NewState(), nil, trace)
		if len(p.Decisions) != tc.moves || len(p.Advice) != 1 || p.Advice[0].Why.Code != tc.code || !strings.Contains(p.Advice[0].Why.Text, tc.text) {
			t.Errorf("%s: %d decisions, advice %v", tc.destinations, len(p.Decisions), p.Advice)
		}
		for _, d := range p.Decisions {
			if (d.Destination == "") != (tc.destinations == control.Ignored) {
				t.Errorf("%s: %+v", tc.destinations, d)
			}
		}
		if trace.Entries[0].Broker != c || trace.Entries[0].Why.Code != "STALE_NO_ANSWER" {
			t.Errorf("trace %v", trace.Entries)
		}
		quiet := control.OnReports(script{}, control.EngineOptions{Destinations: tc.destinations})
		if p, _ := quiet.Shed(snap, quiet.NewState(), nil, nil); len(p.Advice) > 0 {
			t.Errorf("a plan without moves promises something: %v", p.Advice)
		}
	}
}
