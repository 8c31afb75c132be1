package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/manager"
)

// stepClock moves on when somebody sleeps.
type stepClock struct {
	now    time.Time
	pauses []time.Duration
	each   func() // at each sleep; may be nil
}

func (c *stepClock) Now() time.Time { return c.now }

func (c *stepClock) Sleep(ctx context.Context, d time.Duration) error {
	if c.each != nil {
		c.each()
	}
	c.now = c.now.Add(d)
	c.pauses = append(c.pauses, d)
	return ctx.Err()
}

func quietLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A change is believed when two looks in a row show it on every broker, by what they really run; the looks have a bounded rate.
func TestManagerWatch(t *testing.T) {
	const m, e = manager.Modular, manager.Extensible
	type look struct {
		configured, runs []manager.Kind
		err              error
	}
	through := look{configured: []manager.Kind{e, e}, runs: []manager.Kind{e, e}}
	for _, x := range []struct {
		name  string
		looks []look
		after int // looks until it ends
	}{
		{"a rolling migration", []look{{configured: []manager.Kind{m, m}}, {configured: []manager.Kind{e, m}}, {configured: []manager.Kind{e, m}}, through, through}, 5},
		{"once is not enough", []look{through, {configured: []manager.Kind{m, e}}, through, through}, 4},
		{"nor beside a failure", []look{through, {err: errors.New("refused")}, through, through}, 4},
		{"the configuration shows what no broker has followed", []look{{configured: []manager.Kind{e, e}, runs: []manager.Kind{m, m}},
			{configured: []manager.Kind{e, e}, runs: []manager.Kind{m, m}}, {configured: []manager.Kind{e, e}, runs: []manager.Kind{manager.Unknown, e}}, through, through}, 5},
	} {
		n, really := 0, 0
		clock := &stepClock{now: time.Unix(0, 0)}
		w := &managerWatch{followed: m, clock: clock, logger: quietLogger(),
			configured: func(context.Context) ([]manager.Kind, error) { n++; return x.looks[n-1].configured, x.looks[n-1].err },
			runs:       func(context.Context) ([]manager.Kind, error) { really++; return x.looks[n-1].runs, nil }}
		err := w.run(t.Context())
		if !errors.Is(err, control.ErrOtherManager) || !strings.Contains(err.Error(), "extensible") || !strings.Contains(err.Error(), "modular") {
			t.Errorf("%s: %v", x.name, err)
		}
		if n != x.after || clock.now.Sub(time.Unix(0, 0)) != time.Duration(n)*managerEvery {
			t.Errorf("%s: %d looks in %v, want %d, one every %v", x.name, n, clock.now.Sub(time.Unix(0, 0)), x.after, managerEvery)
		}
		if really == 0 || really > n {
			t.Errorf("%s: what runs was asked %d times", x.name, really)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	clock := &stepClock{each: cancel}
	if err := (&managerWatch{clock: clock}).run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the run: %v", err)
	}
}

var errMoved = fmt.Errorf("%w: extensible, it was followed as modular", control.ErrOtherManager)

// A run ends, and the next one begins in the same process only when everything of the one before has ended. One line says so.
func TestRunBeginsAnew(t *testing.T) {
	var log bytes.Buffer
	n, under := 0, 0
	ctx, stop := context.WithCancel(t.Context())
	err := anew(ctx, &stepClock{now: time.Unix(0, 0)}, slog.New(slog.NewTextHandler(&log, nil)), func(ctx context.Context) error {
		if n++; under != 0 {
			t.Error("the run before has not ended")
		}
		under++
		return together(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			if cause := context.Cause(ctx); errors.Is(cause, control.ErrOtherManager) != (n == 1) {
				t.Errorf("service %d is told to end because of %v", n, cause)
			}
			under--
			return ctx.Err()
		}, func(ctx context.Context) error {
			if n == 1 {
				return errMoved
			}
			stop()
			<-ctx.Done()
			return ctx.Err()
		})
	})
	if !errors.Is(err, context.Canceled) || n != 2 || under != 0 {
		t.Errorf("%d runs, %d not ended, %v", n, under, err)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "begins anew") || !strings.Contains(text, "it was followed as modular") {
		t.Errorf("the log says %q", text)
	}
}

// However often the brokers seem to run something else, there is a growing pause between two runs.
func TestNoRestartLoop(t *testing.T) {
	clock := &stepClock{now: time.Unix(0, 0)}
	n := 0
	err := anew(t.Context(), clock, quietLogger(), func(context.Context) error {
		if n++; n == 12 {
			return nil
		}
		clock.now = clock.now.Add(2 * managerEvery)
		if n == 10 {
			clock.now = clock.now.Add(anewSteady)
		}
		return errMoved
	})
	if err != nil || n != 12 {
		t.Fatalf("%d runs, %v", n, err)
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 1, 2}
	for i, p := range clock.pauses {
		if p != want[i]*time.Second {
			t.Errorf("pause %d is %v, want %vs", i, p, int(want[i]))
		}
	}
}

// What fails after the change is tried again for a while; what fails without one is not, nor what an operator has to decide.
func TestRunThatCannotBeginAgain(t *testing.T) {
	broken := errors.New("broken")
	for _, x := range []struct {
		name    string
		first   error
		then    error
		atLeast int
		atMost  int
	}{
		{"without a change", broken, nil, 1, 1},
		{"after a change", errMoved, broken, 5, 20},
		{"the built-in shedder is on", errMoved, control.ErrBuiltInShedding, 2, 2},
	} {
		clock, n := &stepClock{now: time.Unix(0, 0)}, 0
		err := anew(t.Context(), clock, quietLogger(), func(context.Context) error {
			if n++; n == 1 {
				return x.first
			}
			return x.then
		})
		if want := errors.Join(x.then, x.first); err == nil || n < x.atLeast || n > x.atMost || x.then != nil && !errors.Is(err, x.then) {
			t.Errorf("%s: %d runs, %v, want %d to %d and %v", x.name, n, err, x.atLeast, x.atMost, want)
		}
		if lasted := clock.now.Sub(time.Unix(0, 0)); lasted > anewGiveUp+2*anewMost {
			t.Errorf("%s: tried for %v", x.name, lasted)
		}
	}
}

// What goes wrong while the others end is told, and an end from outside is no error of its own.
func TestTogether(t *testing.T) {
	left := errors.New("the settings are not put back")
	end := func(err error) func(context.Context) error {
		return func(ctx context.Context) error { <-ctx.Done(); return err }
	}
	err := together(t.Context(), end(left), end(nil), end(context.Canceled), func(context.Context) error { return errMoved })
	if !errors.Is(err, left) || !errors.Is(err, control.ErrOtherManager) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := together(ctx, end(nil), end(context.Canceled)); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
	if err := together(ctx, end(nil), end(left), end(context.Canceled)); !errors.Is(err, left) {
		t.Errorf("stopped, and something is left: %v", err)
	}
}
