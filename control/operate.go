package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ballast-lb/ballast/guard"
)

// How often a leader looks for commands between cycles, and proves to itself that it still leads.
const (
	attendEvery = 250 * time.Millisecond
	beatEvery   = 5 * time.Second
)

// idle waits for the next cycle. A leader meanwhile does what operators ask, and ends what is over.
func (c *Controller) idle(ctx context.Context, d time.Duration) error {
	return c.rest(ctx, d, c.attend)
}

// rest waits for a time. A leader meanwhile does something again and again, and proves to itself that it still leads.
func (c *Controller) rest(ctx context.Context, d time.Duration, meanwhile func(context.Context) error) error {
	if c.elector == nil {
		return c.o.Clock.Sleep(ctx, d)
	}
	for end := c.o.Clock.Now().Add(d); ; {
		if err := meanwhile(ctx); err != nil {
			return err
		}
		if now := c.o.Clock.Now(); now.Sub(c.beat) >= beatEvery {
			if err := c.confirm(ctx, "leads"); err != nil {
				return err
			}
			c.beat = now
		}
		left := end.Sub(c.o.Clock.Now())
		if left <= 0 {
			return nil
		}
		if err := c.o.Clock.Sleep(ctx, min(left, attendEvery)); err != nil {
			return err
		}
	}
}

// attend does what operators ask, looks at what earlier leaders began, and empties the brokers that are drained.
func (c *Controller) attend(ctx context.Context) error {
	if err := c.interrupt(ctx); err != nil {
		return err
	}
	for {
		r, ok := c.elector.next(func(Command) bool { return true })
		if !ok {
			break
		}
		if err := c.survive(ctx, "command "+r.ID, c.obey(ctx, r)); err != nil {
			return err
		}
	}
	if err := c.survive(ctx, "what earlier leaders began", c.settleHeld(ctx)); err != nil {
		return err
	}
	return c.survive(ctx, "a round of drains", c.drainRound(ctx))
}

// survive logs an error that does not end the leadership, and returns those that do: the end of ctx, the loss of the lock, and what
// keeps this process from leading. Whatever else goes wrong in one piece of work, the next cycle comes.
func (c *Controller) survive(ctx context.Context, what string, err error) error {
	if err == nil || ends(ctx, err) {
		return err
	}
	c.o.Logger.Error("failed, and the loop goes on", "what", what, "error", err)
	return nil
}

// ends says whether an error ends the loop of a controller.
func ends(ctx context.Context, err error) bool { return ctx.Err() != nil || leaderless(err) }

// leaderless says whether an error means that this process leads no longer.
func leaderless(err error) bool { return errors.Is(err, ErrNotHolder) || errors.Is(err, ErrStepDown) }

// interrupt does what cannot wait until a plan is carried out: pausing, the end of a pause, and that of a drain.
func (c *Controller) interrupt(ctx context.Context) error {
	if c.elector == nil {
		return nil
	}
	if err := c.elector.Follow(ctx); err != nil {
		return stepDown(ctx, err)
	}
	for {
		r, ok := c.elector.next(c.urgent())
		if !ok {
			break
		}
		if err := c.survive(ctx, "command "+r.ID, c.obey(ctx, r)); err != nil {
			return err
		}
	}
	if p := c.pause; p != nil && p.Until > 0 && c.o.Clock.Now().UnixMilli() >= p.Until {
		return c.survive(ctx, "the end of a pause", c.setPause(ctx, Pause{Reason: "its time is over", At: c.o.Clock.Now().UnixMilli()}))
	}
	return nil
}

// obey carries a command out and answers it.
func (c *Controller) obey(ctx context.Context, r received) error {
	if err := c.confirm(ctx, r.What+" "+r.ID); err != nil {
		return err
	}
	var then func(context.Context) error
	var text string
	var err error
	if age := c.o.Clock.Now().Sub(r.at); r.Wait > 0 && age.Milliseconds() > r.Wait {
		err = fmt.Errorf("its sender waited for %v and is gone", time.Duration(r.Wait)*time.Millisecond)
	} else {
		text, then, err = c.perform(ctx, r.Command)
	}
	if ends(ctx, err) {
		return err
	}
	answer := c.record(KindCommand, c.n)
	answer.Command, answer.Answer = &r.Command, &Answer{Done: err == nil, Text: text}
	if err != nil {
		answer.Answer.Text = err.Error()
	}
	c.o.Logger.Info("command", "what", r.What, "id", r.ID, "by", r.By, "reason", r.Reason, "done", err == nil, "answer", answer.Answer.Text)
	if _, err := c.remember(ctx, answer); err != nil {
		return err
	}
	if err := c.elector.forget(ctx, r.ID); err != nil {
		c.o.Logger.Warn("an answered command stays on its topic", "id", r.ID, "error", err)
	}
	if then == nil {
		return nil
	}
	return then(ctx)
}

// perform does what a command asks. What takes long is returned, to be done after the answer.
func (c *Controller) perform(ctx context.Context, k Command) (text string, then func(context.Context) error, err error) {
	switch k.What {
	case CommandPause:
		p := Pause{On: true, Reason: k.Reason, By: k.By, At: c.o.Clock.Now().UnixMilli()}
		if p.Reason == "" {
			return "", nil, errors.New("a pause needs a reason")
		}
		text = "paused until it is resumed"
		if k.For > 0 {
			p.Until = p.At + k.For
			text = "paused until " + clockTime(p.Until)
		}
		return text, nil, c.setPause(ctx, p)
	case CommandResume:
		held := guard.Held(c.guard, c.o.Clock.Now().UnixMilli(), c.o.Limits)
		if held.Code != "" {
			c.guard = guard.LetGo(c.guard)
			text = "moves go on that were held: " + held.Text
		}
		switch {
		case c.pause == nil && text == "":
			return "", nil, errors.New("it is not paused, and nothing is held after moves that ended badly")
		case c.pause == nil:
			return text, nil, nil
		case text != "":
			text = "; " + text
		}
		text = fmt.Sprintf("resumed; it was paused since %s: %s%s", clockTime(c.pause.At), c.pause.Reason, text)
		return text, nil, c.setPause(ctx, Pause{Reason: k.Reason, By: k.By, At: c.o.Clock.Now().UnixMilli()})
	case CommandApprove:
		return c.approve(ctx, k)
	case CommandDiscard:
		return c.discard(ctx, k)
	case CommandDrain, CommandUndrain:
		text, err = c.orderDrain(ctx, k)
		return text, nil, err
	}
	if h := c.o.Handlers[k.What]; h != nil {
		text, err = h(ctx, k, c.orders)
		return text, nil, err
	}
	return "", nil, fmt.Errorf("this leader (version of %s) knows no command %q", c.o.Instance, k.What)
}

// setPause begins or ends a pause.
func (c *Controller) setPause(ctx context.Context, p Pause) error {
	c.pause, c.guard = nil, guard.Resume(c.guard)
	if p.On {
		c.pause, c.guard = &p, guard.Stop(c.guard, guard.Pause{Reason: p.Reason, By: p.By, Since: p.At, Until: p.Until})
	}
	r := c.record(KindPause, c.n)
	r.Pause = &p
	_, err := c.remember(ctx, r)
	return err
}

func clockTime(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05 UTC") }
