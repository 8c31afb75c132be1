package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ballast-lb/ballast/control"
)

func newRelease(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "release",
		Short: "Put back the cluster's settings that a take-over changed",
		Long: `Puts back exactly what was there before Ballast took the built-in balancer over: a value that was absent is deleted, one that
somebody else has changed since is left alone. Refuses while a Ballast process acts: stop that first, it puts everything
back by itself.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.release(cmd.Context()) },
	}
}

func (a *app) release(ctx context.Context) (err error) {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	lock := control.NewLock(s.log, s.instance, lockTimeout, time.Now)
	takeOvers := control.NewTakeOvers(s.log, control.Locked(s.cluster, lock), s.instance, time.Now)
	if current, err := takeOvers.Current(ctx); err != nil || current == nil {
		if err == nil {
			_, err = fmt.Fprintln(a.stdout, "nothing to put back: no take-over is in force")
		}
		return err
	}
	if err := lock.Acquire(ctx, false); err != nil {
		if errors.Is(err, control.ErrNotHolder) {
			return fmt.Errorf("a Ballast process acts on this cluster; stop it and it puts everything back: %w", err)
		}
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	restored, err := takeOvers.Release(ctx)
	for _, r := range restored {
		fmt.Fprintln(a.stdout, r)
	}
	return err
}
