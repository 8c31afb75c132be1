package topics

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// drainPause is how long Drain waits for a message before it looks again whether the subscription has caught up: the end
// of a topic can be reached without a further message, when what came last was compacted away.
const drainPause = 20 * time.Millisecond

// Drain hands out messages until the subscription has caught up with its topic. It returns what each returns, ctx.Err() with what
// the subscription has trouble with, or ErrClosed. A non-persistent topic has no history, so there it returns as soon as nothing is waiting.
func Drain(ctx context.Context, s Subscription, each func(Message) error) error {
	for {
		caught := s.Status().CaughtUp
		wait, cancel := context.WithTimeout(ctx, drainPause)
		msg, err := s.Receive(wait)
		cancel()
		switch {
		case err == nil:
			if err := each(msg); err != nil {
				return err
			}
		case ctx.Err() != nil:
			if trouble := s.Status().LastError; trouble != "" {
				return fmt.Errorf("%w; %s", ctx.Err(), trouble)
			}
			return ctx.Err()
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		case caught:
			return nil
		}
	}
}
