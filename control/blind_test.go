package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
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
