package reporter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ballast-lb/ballast/policy"
)

const (
	policyAge   = time.Minute      // how old policies may be: reading them takes a request for every namespace
	policyLimit = 30 * time.Second // of reading them
)

// policies are the cluster's, read when they are needed and old.
type policies struct {
	o          *Options
	background bool // Run: after the first time they are read beside the rounds
	work       sync.WaitGroup

	mu      sync.Mutex
	set     *policy.Set
	err     error     // of the last try
	tried   time.Time // when that began
	reading bool
}

// has says whether a namespace has a policy. The error is of the last try, when none has gone well yet.
func (c *policies) has(ctx context.Context, now time.Time, namespace string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := now.Sub(c.tried) >= policyAge || c.set == nil && !c.tried.Equal(now); old && !c.reading {
		c.renew(ctx, now)
	}
	switch {
	case c.set != nil:
		return c.set.HasPolicy(namespace), nil
	case c.err != nil:
		return false, c.err
	}
	return false, errNotYet
}

var errNotYet = errors.New("they are being read")

// renew reads the policies, or begins to. The lock is held.
func (c *policies) renew(ctx context.Context, now time.Time) {
	first := c.tried.IsZero()
	c.tried = now
	switch {
	case !c.background:
		c.keep(c.read(ctx, policyLimit))
	case first:
		c.keep(c.read(ctx, c.o.Timeout))
	default:
		c.reading = true
		c.work.Go(func() {
			set, err := c.read(ctx, policyLimit)
			c.mu.Lock()
			defer c.mu.Unlock()
			c.reading = false
			c.keep(set, err)
		})
	}
}

func (c *policies) keep(set *policy.Set, err error) {
	if c.err = err; err == nil {
		c.set = set
	}
}

func (c *policies) read(ctx context.Context, limit time.Duration) (*policy.Set, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	set, err := c.o.Cluster.Policies(limited)
	if err != nil && ctx.Err() == nil {
		c.o.Logger.Warn("the policies cannot be read", "error", err)
	}
	return set, err
}
