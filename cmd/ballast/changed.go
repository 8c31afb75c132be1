package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/manager"
)

// How a run goes on when the cluster was moved to another load manager.
const (
	managerEvery = 15 * time.Second // between two looks at what the brokers run
	managerLooks = 2                // in a row say that they run another one before that is believed
	anewPause    = time.Second      // before the run begins anew; doubled with each time
	anewMost     = time.Minute
	anewSteady   = 10 * time.Minute // a run that lasted so long begins the pauses from the start
	anewGiveUp   = 5 * time.Minute  // for so long a run that does not begin is tried again
)

// managerWatch looks whether the brokers still run the load manager that the cluster is followed as.
type managerWatch struct {
	followed manager.Kind
	// configured are the kinds of the brokers that answer by their configuration, and runs by what they really run, which
	// takes more requests. The configuration can show what a broker has not followed.
	configured, runs func(context.Context) ([]manager.Kind, error)
	clock            control.Clock
	logger           *slog.Logger
}

// run returns an error that wraps control.ErrOtherManager once every broker that answers runs one other load manager, and that of ctx
// when it ends before. While brokers are mixed the views say why nothing is decided, and this waits.
func (w *managerWatch) run(ctx context.Context) error {
	for seen := 0; ; {
		if err := w.clock.Sleep(ctx, managerEvery); err != nil {
			return err
		}
		to, moved, err := w.look(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil: // the views say so, too, when they cannot look
			w.logger.Debug("cannot tell which load manager the brokers run", "error", err)
			seen = 0
		case !moved:
			seen = 0
		default:
			if seen++; seen == managerLooks {
				return fmt.Errorf("%w: %s, it was followed as %s", control.ErrOtherManager, to, w.followed)
			}
		}
	}
}

func (w *managerWatch) look(ctx context.Context) (to manager.Kind, moved bool, err error) {
	for _, ask := range []func(context.Context) ([]manager.Kind, error){w.configured, w.runs} {
		kinds, err := ask(ctx)
		if err != nil {
			return manager.Unknown, false, err
		}
		if to, moved = manager.Moved(w.followed, kinds); !moved {
			return manager.Unknown, false, nil
		}
	}
	return to, true, nil
}

// managerWatch watches the session's cluster.
func (s *session) managerWatch() *managerWatch {
	return &managerWatch{
		followed: manager.OfClass(s.class), clock: control.SystemClock{}, logger: s.logger,
		configured: func(ctx context.Context) ([]manager.Kind, error) {
			brokers, silent, err := s.cluster.Answers(ctx)
			var out []manager.Kind
			for i := range brokers {
				if silent[brokers[i].ID] == nil {
					out = append(out, manager.OfClass(brokers[i].LoadManager))
				}
			}
			return out, err
		},
		runs: func(ctx context.Context) ([]manager.Kind, error) {
			c, err := s.managers(ctx)
			if err != nil {
				return nil, err
			}
			var out []manager.Kind
			for _, b := range c.Brokers {
				if b.Version != "" {
					out = append(out, b.Runs())
				}
			}
			return out, nil
		},
	}
}

// anew runs once, and again whenever that ends because the cluster was moved to another load manager.
func anew(ctx context.Context, clock control.Clock, logger *slog.Logger, once func(context.Context) error) error {
	pause := anewPause
	var moved time.Time // when the cluster was last seen to have moved
	for {
		begun := clock.Now()
		err := once(ctx)
		now := clock.Now()
		steady := now.Sub(begun) >= anewSteady
		switch other := errors.Is(err, control.ErrOtherManager); {
		case ctx.Err() != nil || err == nil || !other && moved.IsZero():
			return err
		case other:
			moved = now
		case steady || now.Sub(moved) >= anewGiveUp || errors.Is(err, control.ErrBuiltInShedding):
			return fmt.Errorf("after the change of the load manager: %w", err)
		}
		if steady {
			pause = anewPause
		}
		logger.Warn("begins anew", "in", pause, "why", err)
		if err := clock.Sleep(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, anewMost)
	}
}

// together runs functions until one of them ends, which ends the others, with its error as the cause. What went wrong is returned,
// and if nothing did, that ctx has ended.
func together(ctx context.Context, runs ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, len(runs))
	for _, run := range runs {
		go func() { ended <- run(ctx) }()
	}
	var errs []error
	for range runs {
		err := <-ended
		cancel(err) // the first one counts
		if !errors.Is(err, context.Canceled) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return ctx.Err()
}
