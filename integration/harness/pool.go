package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A pool keeps some clusters up while the machine has memory for a further one: to start one takes longer than most tests, and
// an idle one costs memory and about a tenth of a processor.
const (
	kept = 3
	room = 4 << 30 // bytes: what one takes, and the tests beside it
)

// Pool keeps clusters up between tests. The zero value is ready; a TestMain ends with os.Exit(pool.Run(m)).
type Pool struct {
	mu     sync.Mutex
	live   []*Cluster        // the one that was used last comes last
	failed map[Manager]error // a manager's default cluster that did not start is not tried again in every test
}

// Run runs the tests and then ends the clusters.
func (p *Pool) Run(m *testing.M) int {
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, c := range slices.Clone(p.live) {
		if err := p.end(ctx, c); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	return code
}

func (p *Pool) end(ctx context.Context, c *Cluster) error {
	p.live = slices.DeleteFunc(p.live, func(x *Cluster) bool { return x == c })
	return c.Close(ctx)
}

// Get gives the test a cluster with the options, that of an earlier test if one with the same is still up. After the test the
// cluster is put back into its original state. When the test failed its logs are kept and the cluster ends: it may have left a
// drain or a pause on record, and the next test should not fail of it. Where the image cannot be made for want of a JDK the test
// is skipped.
func (p *Pool) Get(t testing.TB, options Options) *Cluster {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	var c *Cluster
	if i := slices.IndexFunc(p.live, func(c *Cluster) bool { return c.options.equal(options) }); i >= 0 {
		c = p.live[i]
		p.live = slices.Delete(p.live, i, i+1)
	} else {
		if len(p.live) == kept || len(p.live) > 0 && available() < room {
			if err := p.end(t.Context(), p.live[0]); err != nil {
				t.Error(err)
			}
		}
		var err error
		c, err = p.start(t, options)
		if errors.Is(err, ErrNoJDK) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p.live = append(p.live, c)
	t.Cleanup(func() {
		// The test's own context is over by now.
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if t.Failed() {
			c.dumpLogs(ctx, t)
		} else if err := c.restore(ctx); err != nil {
			t.Errorf("putting the cluster back: %v", err)
		}
		if t.Failed() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if err := p.end(ctx, c); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

// available is the memory that is free, in bytes; 0 where it is not known.
func available() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "MemAvailable:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64) // 0: not known
			return kib << 10
		}
	}
	return 0
}

func (p *Pool) start(t testing.TB, options Options) (*Cluster, error) {
	if err := p.failed[options.Manager]; err != nil {
		return nil, fmt.Errorf("not tried again: %w", err)
	}
	begun := time.Now()
	c, err := Start(t.Context(), options)
	if err != nil && !errors.Is(err, ErrNoJDK) {
		t.Logf("tried once more, it may only have been late: %v", err)
		c, err = Start(t.Context(), options)
	}
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
