package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ballast-lb/ballast/control"
)

// unseeing is a Viewer whose looks fail after a time.
type unseeing struct {
	control.Viewer // what is not asked for panics
	clock          *testClock
	takes          time.Duration
}

func (v *unseeing) Look(context.Context, time.Time) (*control.Look, error) {
	v.clock.now = v.clock.now.Add(v.takes)
	return nil, errors.New("no broker answers")
}

// A leader that cannot look at the cluster steps down after three cycles, or after 30 s if its looks take long to fail; who only
// advises goes on.
func TestALeaderThatCannotLookStepsDown(t *testing.T) {
	for _, test := range []struct {
		name  string
		mode  control.Mode
		takes time.Duration // one look
		rest  time.Duration // between two
		want  int           // cycles, 0 = it goes on
	}{
		{"refused at once", control.Govern, 0, time.Second, 3},
		{"refused at once, long cycles", control.Govern, 0, time.Minute, 2},
		{"times out", control.Govern, 14 * time.Second, 2 * time.Second, 2},
		{"times out late", control.Govern, 45 * time.Second, time.Second, 1},
		{"advises", control.Advise, 45 * time.Second, time.Second, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			clock := &testClock{now: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)}
			c := control.New(control.Options{Mode: test.mode, Manager: script{}, Viewer: &unseeing{clock: clock, takes: test.takes}, Clock: clock,
				Journal: &memoryJournal{}, Logger: quiet})
			for n := 1; n <= 5; n++ {
				_, err := c.Step(t.Context())
				if err == nil || !strings.Contains(err.Error(), "no broker answers") {
					t.Fatalf("cycle %d: error %v", n, err)
				}
				if down := errors.Is(err, control.ErrStepDown); down != (n == test.want) {
					t.Fatalf("cycle %d: error %v, want it to step down in cycle %d", n, err, test.want)
				}
				if n == test.want {
					return
				}
				clock.now = clock.now.Add(test.rest)
			}
		})
	}
}

// hanging is a Viewer that looks once and then gets no answer.
type hanging struct {
	*crowd
	looks int
}

func (v *hanging) Look(ctx context.Context, now time.Time) (*control.Look, error) {
	if v.looks++; v.looks == 1 {
		return v.crowd.Look(ctx, now)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A leader whose look gets no answer gives it up after 30 s and steps down, whatever the requests themselves would wait for.
func TestALookWithoutAnAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := control.New(control.Options{Mode: control.Govern, Manager: script{}, Viewer: &hanging{crowd: newCrowd(3)}, Clock: control.SystemClock{},
			Journal: &memoryJournal{}, Logger: quiet})
		if _, err := c.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err := c.Step(t.Context())
		if took := time.Since(began); !errors.Is(err, control.ErrStepDown) || took != 30*time.Second {
			t.Errorf("after %v: %v, want it to step down after 30s", took, err)
		}
	})
}
