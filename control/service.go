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

// Service runs a controller in one of the modes: it waits for the lock, takes the built-in shedder over and gives it back.
type Service struct {
	Cluster    Cluster
	Controller *Controller
	Lock       *Lock
	TakeOvers  *TakeOvers
	TakeOver   bool
	Interval   time.Duration
	Standby    time.Duration // between two tries to get the lock
	Leave      time.Duration // limit of putting everything back when leaving
	Clock      Clock
	Metrics    *Metrics
	Logger     *slog.Logger
	Each       func(*Cycle) // called after every cycle; may be nil
}

// Run runs until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	if s.Controller.o.Mode != Govern {
		return s.Controller.Run(ctx, s.Interval, func(cy *Cycle) {
			s.watchBuiltIn(ctx)
			s.each(cy)
		})
	}
	for {
		err := s.govern(ctx)
		if !errors.Is(err, ErrNotHolder) || ctx.Err() != nil {
			return err
		}
		s.Logger.Info("standing by: another process acts", "topic", topics.Leader)
		if err := s.Clock.Sleep(ctx, s.Standby); err != nil {
			return err
		}
	}
}

func (s *Service) each(cy *Cycle) {
	if s.Each != nil {
		s.Each(cy)
	}
}

// govern acts while the lock is held.
func (s *Service) govern(ctx context.Context) error {
	for _, topic := range []string{topics.Leader, topics.Takeover, topics.Decisions} {
		if err := s.Cluster.CreateTopic(ctx, topic); err != nil {
			return fmt.Errorf("create %s: %w", topic, err)
		}
	}
	if err := s.Lock.Acquire(ctx, false); err != nil {
		return err
	}
	defer func() {
		if err := s.Lock.Release(); err != nil {
			s.Logger.Warn("release the lock", "error", err)
		}
	}()
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.Metrics.Unwatched(false)
	err := s.Controller.Run(ctx, s.Interval, s.each)
	return errors.Join(err, s.leave(ctx, err))
}

// begin undoes what a process that died left behind, then takes over if told to.
func (s *Service) begin(ctx context.Context) error {
	restored, err := s.TakeOvers.Release(ctx)
	if err != nil {
		return fmt.Errorf("undo an earlier take-over: %w", err)
	}
	s.report("an earlier take-over is undone", restored)
	if s.TakeOver {
		record, err := s.TakeOvers.Begin(ctx)
		if err != nil {
			_, undo := s.TakeOvers.Release(ctx)
			return errors.Join(fmt.Errorf("take over: %w", err), undo)
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

// leave puts everything back. Who has lost the lock changes nothing: the next holder undoes what it finds.
func (s *Service) leave(ctx context.Context, why error) error {
	if errors.Is(why, ErrNotHolder) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Leave)
	defer cancel()
	if err := s.Lock.Confirm(ctx, "leaving"); err != nil {
		return nil
	}
	restored, err := s.TakeOvers.Release(ctx)
	s.report("put back", restored)
	if err != nil {
		return fmt.Errorf("put the cluster's settings back (ballast release does it later): %w", err)
	}
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
