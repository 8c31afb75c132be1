package reporter_test

import (
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/reporter"
	"github.com/ballast-lb/ballast/settings"
	"github.com/ballast-lb/ballast/simulate"
	"github.com/ballast-lb/ballast/topics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ reporter.Lock    = (*control.Lock)(nil)
	_ reporter.Cluster = (*simulate.Embedded)(nil)
)

const (
	a, b, c = "a:8080", "b:8080", "c:8080"
	ns      = "public/ns"
)

var quiet = slog.New(slog.DiscardHandler)

// modular is a simulated Modular cluster of three brokers whose time moves by itself; each owns two bundles.
func modular(t *testing.T, kind simulate.Kind) *simulate.Embedded {
	t.Helper()
	space := simulate.Namespace{Name: ns}
	for i, owner := range []string{a, a, b, b, c, c} {
		space.Bundles = append(space.Bundles, simulate.Bundle{Traffic: simulate.Messages(float64(100*(i+1)), 1000), NumTopics: 3, Owner: owner})
	}
	cl, err := simulate.New(simulate.Config{Kind: kind, Namespaces: []simulate.Namespace{space},
		Brokers: []simulate.Broker{{ID: a, Cores: 2}, {ID: b, Cores: 2}, {ID: c, Cores: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	e, err := simulate.NewEmbedded(t.Context(), cl, simulate.EmbeddedOptions{SelfDriven: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := e.Advance(t.Context(), 3*time.Minute); err != nil {
		t.Fatal(err)
	}
	return e
}

// memory is a private log that goes by a clock.
func memory(t *testing.T, now func() time.Time) *topics.Memory {
	t.Helper()
	log := topics.NewMemory(topics.MemoryOptions{Now: now})
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// clusterSettings are the settings of the simulated brokers.
func clusterSettings(t *testing.T, e *simulate.Embedded) (set *settings.Settings) {
	t.Helper()
	if err := e.With(t.Context(), func(c *simulate.Cluster) { set = c.Settings() }); err != nil {
		t.Fatal(err)
	}
	return set
}
