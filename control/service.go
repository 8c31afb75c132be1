package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/ballast-lb/ballast/topics"
)

// ErrBuiltInShedding is returned when Ballast should govern while the cluster's own shedder is on.
var ErrBuiltInShedding = errors.New("the cluster's own shedder is on (loadBalancerSheddingEnabled=true): two balancers would undo each other's moves; " +
	"switch it off, or let Ballast do so with --take-over, which puts back what was there when it leaves")

// ErrOtherManager is the cause of the end of a run that is to begin anew: brokers that publish their load and their ownership are followed
// in another way than those that only report.
var ErrOtherManager = errors.New("every broker that answers runs another load manager")

// Service runs a controller in one of the modes: it waits for the lock, takes the built-in shedder over and gives it back.
type Service struct {
	Cluster    Cluster
	Controller *Controller
	Lock       *Lock
	Elector    *Elector // reads back what the leader before left; nil = every leader begins anew
	TakeOvers  *TakeOvers
	TakeOver   bool
	Interval   time.Duration
	Standby    time.Duration // between two tries to get the lock
	Leave      time.Duration // limit of putting everything back when leaving
	Clock      Clock
	Metrics    *Metrics
	Logger     *slog.Logger
	Each       func(*Cycle) // called after every cycle; may be nil
	// Leaving is called when the run ends, before another process may act; nil = nothing is left to do.
	Leaving func(ctx context.Context) error

	owes bool // there may be a take-over to put back when leaving
	made bool // the topics exist
	idle bool // it stands by, and has said so
	been bool // it has led, or stood by for another: what fails now did work
}

// unfitPauses is how many pauses between two tries a process waits that could not lead any more, so that another one gets
// its turn.
const unfitPauses = 10

// Run runs until ctx ends, whose error it then returns. What went wrong while leaving is returned instead of that: it is
// what an operator has to know.
func (s *Service) Run(ctx context.Context) error {
	if s.Controller.o.Mode != Govern {
		return s.Controller.Run(ctx, s.Interval, func(cy *Cycle) {
			s.watchBuiltIn(ctx)
			s.each(cy)
		})
	}
	defer func() {
		s.warn("release the lock", s.Lock.Release())
		if s.Elector != nil {
			s.warn("close the decision log", s.Elector.Close())
		}
	}()
	for {
		err := s.govern(ctx)
		lost, unfit := errors.Is(err, ErrNotHolder), errors.Is(err, ErrStepDown)
		s.been = s.been || lost
		if ctx.Err() == nil && (lost || unfit) {
			if !s.idle || unfit {
				s.Logger.Info("standing by", "topic", topics.Leader, "why", err)
			}
			s.idle = true
			s.warn("release the lock", s.Lock.Release())
			s.warn("write the decision log", s.Controller.end(ctx, StepsDown, err.Error()))
			pause := s.Standby
			if unfit {
				pause *= unfitPauses
			}
			if err = s.Clock.Sleep(ctx, pause); err == nil {
				continue
			}
		}
		left := s.leave(ctx)
		if left == nil {
			s.warn("write the decision log", s.Controller.end(ctx, Stops, stopWhy(ctx, err)))
		}
		switch {
		case left == nil:
			return err
		case ctx.Err() != nil:
			return left
		}
		return errors.Join(err, left)
	}
}

func stopWhy(ctx context.Context, err error) string {
	if cause := context.Cause(ctx); errors.Is(cause, ErrOtherManager) {
		return cause.Error()
	}
	if ctx.Err() != nil || err == nil {
		return "stopped"
	}
	return err.Error()
}

func (s *Service) warn(what string, err error) {
	if err != nil {
		s.Logger.Warn(what, "error", err)
	}
}

func (s *Service) each(cy *Cycle) {
	if s.Each != nil {
		s.Each(cy)
	}
}

// govern acts while the lock is held.
func (s *Service) govern(ctx context.Context) error {
	if err := s.createTopics(ctx); err != nil {
		return err
	}
	if err := s.elect(ctx); err != nil {
		return s.later(ctx, err)
	}
	if err := s.begin(ctx); err != nil {
		return s.later(ctx, err)
	}
	s.been, s.idle = true, false
	if s.Elector != nil {
		if err := s.Controller.goOn(ctx, s.Interval); err != nil {
			return err
		}
	}
	s.Metrics.Unwatched(false)
	cycles, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	on := 0
	err := s.Controller.Run(cycles, s.Interval, func(cy *Cycle) {
		s.each(cy)
		if on = s.switchedOn(cycles, on); on >= 2 {
			stop(ErrBuiltInShedding)
		}
	})
	if ctx.Err() == nil && cycles.Err() != nil {
		return fmt.Errorf("it was switched on while Ballast governed: %w", context.Cause(cycles))
	}
	return err
}

// later makes an error one after which this process tries again, if what failed has worked before. At the first start an
// operator has to see it.
func (s *Service) later(ctx context.Context, err error) error {
	if !s.been || errors.Is(err, ErrBuiltInShedding) {
		return err
	}
	return stepDown(ctx, err)
}

func (s *Service) createTopics(ctx context.Context) error {
	if s.made {
		return nil
	}
	for _, topic := range []string{topics.Leader, topics.Takeover, topics.Decisions, topics.Commands} {
		if err := s.Cluster.CreateTopic(ctx, topic); err != nil {
			return fmt.Errorf("create %s: %w", topic, err)
		}
	}
	s.made = true
	return nil
}

// elect takes the lock, and goes on with what the leader before left.
func (s *Service) elect(ctx context.Context) error {
	if s.Elector == nil {
		return s.Lock.Acquire(ctx, false)
	}
	h, err := s.Elector.Elect(ctx, s.Controller.lead)
	if err != nil {
		return err
	}
	if err := s.Controller.restore(ctx, s.Elector); err != nil {
		return err
	}
	s.Logger.Info("leads", "epoch", h.Epoch, "cycle", h.Cycle, "unsettled", len(h.open), "left", len(h.batch.left))
	return s.Controller.inherit(ctx)
}

// switchedOn counts in how many cycles in a row the built-in shedder was seen on. Once is not enough to believe it: brokers
// take over what was set dynamically one after the other.
func (s *Service) switchedOn(ctx context.Context, before int) int {
	on, err := builtInShedding(ctx, s.Cluster)
	switch {
	case err != nil && ctx.Err() == nil:
		s.Logger.Warn("cannot tell whether the built-in shedder is off", "error", err)
		return before
	case on:
		return before + 1
	}
	return 0
}

// begin undoes what a process that died left behind, then takes over if told to.
func (s *Service) begin(ctx context.Context) error {
	s.owes = true // also when what follows fails half-way
	restored, err := s.TakeOvers.Release(ctx)
	if err != nil {
		return fmt.Errorf("undo an earlier take-over: %w", err)
	}
	s.report("an earlier take-over is undone", restored)
	if s.TakeOver {
		record, err := s.TakeOvers.Begin(ctx)
		if err != nil {
			return fmt.Errorf("take over: %w", err)
		}
		s.Logger.Info("took over", "set", record.Set)
		return nil
	}
	on, err := builtInShedding(ctx, s.Cluster)
	if err != nil {
		return err
	}
	if on {
		return ErrBuiltInShedding
	}
	return nil
}

// leave puts everything back, whatever ended the run. Who has lost the lock meanwhile takes it again for that; if another
// process holds it, that one has undone the take-over already, or will.
func (s *Service) leave(ctx context.Context) error {
	if !s.owes {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Leave)
	defer cancel()
	const later = "put the cluster's settings back (ballast release does it later)"
	if s.Lock.Confirm(ctx, "leaving") != nil {
		err := errors.Join(s.Lock.Release(), s.Lock.Acquire(ctx, false))
		if errors.Is(err, topics.ErrFenced) {
			s.Logger.Info("the take-over is left to the process that acts now")
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", later, err)
		}
	}
	if s.Leaving != nil {
		if err := s.Leaving(ctx); err != nil {
			s.Logger.Warn("not everything could be left to the next process", "error", err)
		}
	}
	restored, err := s.TakeOvers.Release(ctx)
	s.report("put back", restored)
	if err != nil {
		return fmt.Errorf("%s: %w", later, err)
	}
	s.owes = false
	return nil
}

func (s *Service) report(what string, restored []Restored) {
	for _, r := range restored {
		s.Logger.Info(what, "restored", r.String())
	}
}

// String is what was done with the key.
func (r Restored) String() string {
	switch {
	case r.Kept && r.Value == nil:
		return r.Key + " was left absent: somebody else had deleted it"
	case r.Kept:
		return fmt.Sprintf("%s was left at %s: somebody else had set it", r.Key, *r.Value)
	case r.Value == nil:
		return r.Key + " was deleted, as it was absent before"
	}
	return fmt.Sprintf("%s is %s again", r.Key, *r.Value)
}

// watchBuiltIn raises the alarm when the built-in shedder is off and no Ballast acts.
func (s *Service) watchBuiltIn(ctx context.Context) {
	alarm, err := Unwatched(ctx, s.Cluster)
	if err != nil {
		s.Logger.Warn("cannot tell whether anybody balances", "error", err)
		return
	}
	s.Metrics.Unwatched(alarm)
	if alarm {
		s.Logger.Error("ALARM: the built-in balancing is off and no Ballast is alive; run ballast release, or ballast run --mode govern")
	}
}

// Unwatched says whether the built-in shedder is off while no Ballast holds the lock: nobody balances the cluster.
func Unwatched(ctx context.Context, c Cluster) (bool, error) {
	on, err := builtInShedding(ctx, c)
	if err != nil || on {
		return false, err
	}
	n, err := c.Publishers(ctx, topics.Leader)
	return n == 0, err
}

// builtInShedding says whether the cluster's own shedder is on.
func builtInShedding(ctx context.Context, c Cluster) (bool, error) {
	config, err := c.RuntimeConfig(ctx)
	if err != nil {
		return false, fmt.Errorf("read the runtime configuration: %w", err)
	}
	for _, key := range []string{"loadBalancerEnabled", "loadBalancerSheddingEnabled"} {
		if strings.EqualFold(config[key], "false") {
			return false, nil
		}
	}
	return true, nil
}
