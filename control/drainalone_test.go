package control_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/guard"
	"github.com/ballast-lb/ballast/plan"
	"github.com/ballast-lb/ballast/policy"
)

// unreadable is a cluster whose policies cannot be read.
type unreadable struct{ *reported }

func (unreadable) Policies(context.Context) (*policy.Set, error) {
	return policy.New(nil, nil, nil, map[string]string{"": "503"}), nil
}

// reporting is a clock on which some brokers report as time passes.
type reporting struct {
	*reported
	brokers []string
}

func (r reporting) Sleep(ctx context.Context, d time.Duration) error {
	if err := r.Embedded.Sleep(ctx, d); err != nil {
		return err
	}
	r.report(r.brokers...)
	return ctx.Err()
}

// Without a leader the same holds: a broker that never reported is asked, and is not empty when it does not answer, when policies
// cannot be read, or while the picture is frozen.
func TestALoneDrain(t *testing.T) {
	for _, tc := range []struct {
		name  string
		wait  time.Duration
		fails error
		blind bool   // policies cannot be read
		want  string // in the error
	}{
		{"it never reported", time.Minute, nil, false, ""},
		{"nor answers", time.Minute, errors.New("connection refused"), false, "DRAIN_NOT_TOLD"},
		{"policies cannot be read", time.Minute, nil, true, policy.Frozen.ID},
		{"it may report yet", 10 * time.Second, nil, false, control.NotHeard.ID},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := modularCluster(t, nil)
			v := r.views(nil, func(o *control.ReportOptions) {
				if tc.blind {
					o.Cluster = unreadable{r}
				}
			})
			r.report(b, c)
			clock := reporting{r, []string{b, c}}
			d := &control.LoneDrain{Broker: a, Wait: tc.wait, Viewer: v, Logger: quiet, Asks: control.DrainAsks{Reported: true,
				Owned: func(ctx context.Context, id string) ([]string, error) {
					owned, err := r.Owned(ctx, id)
					return owned, errors.Join(err, tc.fails)
				}},
				Manual: &control.Manual{Instance: "desk", Cluster: r.Embedded, Journal: control.NewTopicJournal(r.log), Clock: clock, Limits: guard.Limits{BundlesPerCycle: 3},
					Actor: control.NewCoaxer(r.Embedded, v, clock, control.ExecLimits{Request: 5 * time.Second, Verify: 10 * time.Second, Poll: time.Second}, control.Hinted, 3)}}
			done, err := d.Run(t.Context())
			left, failed := r.Owned(t.Context(), a)
			if failed != nil {
				t.Fatal(failed)
			}
			left = slices.DeleteFunc(left, func(name string) bool { return !strings.HasPrefix(name, ns+"/") })
			switch {
			case tc.want == "" && (err != nil || !done.Empty || len(left) > 0 || len(done.Outcomes) < 4):
				t.Errorf("empty %v, left %v, outcomes %+v: %v", done.Empty, left, done.Outcomes, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || done.Empty || len(done.Outcomes) > 0):
				t.Errorf("empty %v, %d outcomes: %v", done.Empty, len(done.Outcomes), err)
			}
			if frozen := tc.want == control.NotHeard.ID; errors.Is(err, control.ErrFrozen) != frozen {
				t.Errorf("frozen: %v", err)
			}
		})
	}
}

// frozenView is a picture that thaws, or does not.
type frozenView struct {
	control.Viewer
	thaws time.Time
}

func (v frozenView) Look(_ context.Context, now time.Time) (*control.Look, error) {
	if now.Before(v.thaws) {
		return &control.Look{Frozen: []plan.Reason{control.LostEvents.Because(plan.S("topic", "x"), plan.N("count", 2))}}, nil
	}
	return &control.Look{}, nil
}

// idleClock is time that passes in sleep alone.
type idleClock struct{ now *time.Time }

func (c idleClock) Now() time.Time { return *c.now }
func (c idleClock) Sleep(ctx context.Context, d time.Duration) error {
	*c.now = c.now.Add(d)
	return ctx.Err()
}

func TestTrusted(t *testing.T) {
	start := time.UnixMilli(town0)
	for after, ok := range map[time.Duration]bool{0: true, 9 * time.Second: true, 20 * time.Second: false} {
		now := start
		look, err := control.Trusted(t.Context(), frozenView{thaws: start.Add(after)}, idleClock{&now}, start.Add(10*time.Second), nil)
		if ok != (err == nil && look != nil) || !ok && (!errors.Is(err, control.ErrFrozen) || !strings.Contains(err.Error(), "2 events of x are lost")) {
			t.Errorf("a picture that can be judged after %v: %v, %v", after, look, err)
		}
	}
}
