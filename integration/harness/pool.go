package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// Pool keeps one cluster up between tests. The zero value is ready; a TestMain ends with os.Exit(pool.Run(m)).
type Pool struct {
	mu     sync.Mutex
	live   *Cluster
	failed map[Manager]error // a manager's default cluster that did not start is not tried again in every test
}

// Run runs the tests and then ends the cluster.
func (p *Pool) Run(m *testing.M) int {
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.end(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

func (p *Pool) end(ctx context.Context) error {
	c := p.live
	p.live = nil
	if c == nil {
		return nil
	}
	return c.Close(ctx)
}

// Get gives the test a cluster with the options, the one of the test before if it has the same. After the test the cluster
// is put back into its original state; when the test failed, its logs are kept. Where the image cannot be made for want of
// a JDK the test is skipped.
func (p *Pool) Get(t testing.TB, options Options) *Cluster {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.live != nil && !p.live.options.equal(options) {
		if err := p.end(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if p.live == nil {
		c, err := p.start(t, options)
		if errors.Is(err, ErrNoJDK) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		p.live = c
	}
	c := p.live
	t.Cleanup(func() {
		// The test's own context is over by now.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if t.Failed() {
			c.dumpLogs(ctx, t)
		}
		if err := c.restore(ctx); err != nil {
			t.Errorf("putting the cluster back: %v; the next test gets a new one", err)
			p.mu.Lock()
			defer p.mu.Unlock()
			if err := p.end(ctx); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

func (p *Pool) start(t testing.TB, options Options) (*Cluster, error) {
	if err := p.failed[options.Manager]; err != nil {
		return nil, fmt.Errorf("not tried again: %w", err)
	}
	begun := time.Now()
	c, err := Start(t.Context(), options)
	if err != nil {
		if p.failed == nil {
			p.failed = map[Manager]error{}
		}
		p.failed[options.Manager] = err
		return nil, err
	}
	t.Logf("%s cluster of %d brokers, Pulsar %s, ready after %v", options.Manager, options.withDefaults().Brokers, Version(),
		time.Since(begun).Round(100*time.Millisecond))
	return c, nil
}

// restore undoes what a test did: brokers that were added go, the others come back, namespaces and dynamic configuration go.
func (c *Cluster) restore(ctx context.Context) error {
	var errs []error
	for _, b := range c.Brokers() {
		if b.extra {
			errs = append(errs, b.remove(ctx))
		} else if err := b.start(ctx); err != nil {
			errs = append(errs, fmt.Errorf("starting %s: %w", b.Name, err))
		}
	}
	errs = append(errs, c.awaitRegistry(ctx), c.resetDynamic(ctx), c.deleteNamespaces(ctx))
	return errors.Join(errs...)
}
