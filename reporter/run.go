package reporter

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"regexp"

	"github.com/ballast-lb/ballast/topics"
)

// digits are what differs in an error that is the same: ports, positions, times.
var digits = regexp.MustCompile(`\d+`)

// Run reports until ctx ends, whose error it then returns, joined with what went wrong when everything was taken back. With a
// lock it reports only while it holds it, and else stands by: when the lock is lost nothing is taken back, as the next holder
// publishes under the same keys.
func (r *Reporter) Run(ctx context.Context) error {
	r.policies.background = true
	defer r.policies.work.Wait()
	var before string
	for stood := 1; ; stood++ { // times in a row that it could not report for the same reason
		err := r.hold(ctx)
		if err == nil {
			err = r.serve(ctx)
			before = ""
		}
		r.o.Metrics.active(false)
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), r.leave(ctx))
		}
		if why := digits.ReplaceAllString(err.Error(), ""); why != before {
			before, stood = why, 1
		}
		if bits.OnesCount(uint(stood)) == 1 { // the 1st, 2nd, 4th, ... time: a standby stands by for days
			r.o.Logger.Info("not reporting", "code", NotHolder.ID, "why", err, "times", stood)
		}
		r.again()
		if err := r.release(); err != nil {
			r.o.Logger.Warn("release the reporter's lock", "error", err)
		}
		if err := r.o.Clock.Sleep(ctx, r.o.Standby); err != nil {
			return errors.Join(err, r.leave(ctx))
		}
	}
}

// hold takes the lock, if there is one.
func (r *Reporter) hold(ctx context.Context) error {
	if r.o.Lock == nil {
		return nil
	}
	if err := r.o.Cluster.CreateTopic(ctx, topics.Reporter); err != nil {
		return fmt.Errorf("create %s: %w", topics.Reporter, err)
	}
	return r.o.Lock.Acquire(ctx, false)
}

// serve makes rounds while the lock is held.
func (r *Reporter) serve(ctx context.Context) error {
	r.o.Logger.Info("reading the brokers' load reports", "interval", r.o.Interval)
	r.o.Metrics.active(true)
	for {
		begun := r.o.Clock.Now()
		if r.o.Lock != nil {
			if err := r.o.Lock.Confirm(ctx, "report"); err != nil {
				return err
			}
		}
		if _, err := r.Poll(ctx, begun); err != nil && ctx.Err() == nil {
			r.o.Logger.Warn("a round of reports went wrong", "error", err)
		}
		if err := r.o.Clock.Sleep(ctx, max(0, r.o.Interval-r.o.Clock.Now().Sub(begun))); err != nil {
			return err
		}
	}
}

// leave takes everything back and gives the lock up.
func (r *Reporter) leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Leave)
	defer cancel()
	var err error
	if r.o.Lock == nil || r.o.Lock.Confirm(ctx, "leave") == nil {
		err = r.Close(ctx)
	} else {
		err = r.sinks.close()
	}
	if err != nil {
		err = fmt.Errorf("take the reports back: %w", err)
	}
	return errors.Join(err, r.release())
}

func (r *Reporter) release() error {
	if r.o.Lock == nil {
		return nil
	}
	return r.o.Lock.Release()
}

// again makes everything due again, for when it is our turn to report: meanwhile another process may have.
func (r *Reporter) again() {
	r.tookOver = false
	for _, m := range r.brokers {
		m.Again()
	}
}
