//go:build integration

package integration

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/integration/harness"
	"github.com/ballast-lb/ballast/integration/traffic"
)

// shares watches how the topics of a namespace are spread while a test restarts brokers.
type shares struct {
	c    *harness.Cluster
	ns   string
	mu   sync.Mutex
	most float64 // largest part of all topics that one broker had
	who  string
	stop func()
}

// watchShares looks every second until stop is called.
func watchShares(t *testing.T, c *harness.Cluster, ns string) *shares {
	t.Helper()
	s := &shares{c: c, ns: ns}
	total := len(c.Bundles(t, ns))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.look(ctx, total)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(s.stop)
	return s
}

// look asks each broker what it owns: a lookup would assign what nobody owns. All bundles have the same number of topics.
func (s *shares) look(ctx context.Context, total int) {
	for _, b := range s.c.Live() {
		owned := map[string]struct{}{}
		if err := s.c.Get(ctx, "/admin/v2/brokers/"+s.c.Name()+"/"+b.ID+"/ownedNamespaces", &owned); err != nil {
			continue // it is going or coming
		}
		n := 0
		for bundle := range owned {
			if strings.HasPrefix(bundle, s.ns+"/") {
				n++
			}
		}
		s.mu.Lock()
		if part := float64(n) / float64(total); part > s.most {
			s.most, s.who = part, b.Name
		}
		s.mu.Unlock()
	}
}

// Three brokers are restarted one after the other under load: each is drained, restarted when the gate opens, and takes load again. No
// broker has more than its part of the topics while one is away, nothing is lost, and the cluster is even at the end. The
// same restart by Pulsar alone is measured beside it.
func TestRollingRestart(t *testing.T) {
	full(t)
	t.Run("with Ballast", func(t *testing.T) { testRolling(t, true) })
	t.Run("without Ballast", func(t *testing.T) { testRolling(t, false) })
}

func testRolling(t *testing.T, ballast bool) {
	c := pool.Get(t, harness.Options{Conf: evenConf()})
	ns := c.CreateNamespace(t, 32)
	c.Place(t, ns, c.Brokers()...)
	// All topics alike: else brokers whose load is even need not have the same number of topics.
	layout := traffic.MustLayout(t, traffic.Shape{Bundles: c.Bundles(t, ns), Rate: evenRate, Seed: 21})
	load := traffic.Start(t, c.ServiceURL(), layout, traffic.Options{Size: evenSize, Drain: 3 * time.Minute})
	load.AwaitFlow(t)
	meter := traffic.Meter{Namespace: ns, URLs: urls(c.Brokers())}
	begun := time.Now()
	var p *program
	if ballast {
		p = launch(t, nil, slices.Concat([]string{"run", "--mode", "govern", "--take-over", "--set", "ballastHttpListenAddress="}, derived, everywhere(c))...)
		p.says(t, "took over", 2*time.Minute)
	}
	beside := func(want int, args ...string) {
		t.Helper()
		q := launch(t, nil, append(args, everywhere(c)...)...)
		select {
		case <-q.done:
		case <-time.After(10 * time.Minute):
			t.Fatalf("%s does not end", strings.Join(args, " "))
		}
		if code := q.wait(t); code != want {
			stdout, stderr := q.text()
			t.Fatalf("%s ended with %d: %s %s", strings.Join(args, " "), code, stdout, tail(stderr))
		}
	}
	var most float64
	for _, b := range c.Brokers() {
		if ballast {
			beside(0, "drain", b.ID, "--execute", "--wait", "2m", "--reason", "rolling restart")
			beside(0, "restart-gate", "--brokers", "3", "--wait", "5m")
		}
		watch := watchShares(t, c, ns)
		b.Stop(t)
		b.AwaitGone(t)
		time.Sleep(20 * time.Second) // as long as an upgrade of the host takes at least
		b.Start(t)
		watch.stop()
		t.Logf("while %s was away %s had %.0f %% of the topics", b.Name, watch.who, 100*watch.most)
		most = max(most, watch.most)
		if ballast {
			beside(0, "undrain", b.ID, "--wait", "2m", "--reason", "rolling restart")
			beside(0, "restart-gate", "--brokers", "3", "--wait", "5m")
		}
	}
	restarted := time.Since(begun)
	now := meter.MaxOverMean(t, 10*time.Second)
	for end := time.Now().Add(10 * time.Minute); now > 1.25 && time.Now().Before(end); {
		now = meter.MaxOverMean(t, 10*time.Second)
	}
	name := map[bool]string{true: "with Ballast", false: "without Ballast"}[ballast]
	harness.Figure(t, "most topics on one broker while one is away, percent, "+name, int(100*most+0.5))
	harness.Figure(t, "seconds for the restart of three brokers, "+name, int(restarted.Seconds()))
	harness.Figure(t, "seconds from then until even or given up, "+name, int(time.Since(begun).Seconds()-restarted.Seconds()))
	harness.Figure(t, "max/mean after the restart, "+name, round(now))
	if ballast {
		if code := p.stop(t); code != 0 {
			t.Errorf("exit code %d", code)
		}
		everyIntentHasAnOutcome(t, decisions(t, c, begun))
	}
	report := load.Stop(t)
	t.Log(report)
	sum := report.Sum()
	harness.Figure(t, "messages, "+name, sum.Sent)
	harness.Figure(t, "messages lost, "+name, len(sum.Missing))
	harness.Figure(t, "longest stall of a consumer, ms, "+name, sum.Stall.Milliseconds())
	if !ballast {
		return // figures, no requirements
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if limit := 1/2.0 + 0.05; most > limit {
		t.Errorf("one broker had %.0f %% of the topics, want at most %.0f", 100*most, 100*limit)
	}
	if now > 1.25 {
		t.Errorf("max/mean is %.2f at the end, want at most 1.25", now)
	}
}
