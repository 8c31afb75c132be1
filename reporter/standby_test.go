package reporter_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
)

// counted is a clock whose sleeps end at once, and that ends a run after some of them.
type counted struct {
	*fake
	left int
	stop func()
}

func (c *counted) Sleep(ctx context.Context, _ time.Duration) error {
	if c.left--; c.left == 0 {
		c.stop()
	}
	return ctx.Err()
}

// taken is a lock that somebody else has.
type taken struct{}

func (taken) Acquire(context.Context, bool) error   { return control.ErrNotHolder }
func (taken) Confirm(context.Context, string) error { return control.ErrNotHolder }
func (taken) Release() error                        { return nil }

// A standby stands by for days: it says so the 1st, 2nd, 4th, 8th, ... time.
func TestAStandbyIsQuiet(t *testing.T) {
	w := newWorld(t, newFake(a), nil)
	ctx, cancel := context.WithCancel(t.Context())
	var said bytes.Buffer
	r := reporter.New(reporter.Options{Cluster: w.fake, Log: w.log, Settings: settings.Defaults(), Clock: &counted{w.fake, 100, cancel}, Lock: taken{},
		Logger: slog.New(slog.NewTextHandler(&said, nil))})
	if err := r.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if n := strings.Count(said.String(), "not reporting"); n != 7 || !strings.Contains(said.String(), "times=64") {
		t.Errorf("in 100 times it said so %d times:\n%s", n, said.String())
	}
}
