//go:build integration

package integration

import (
	"os"
	"testing"

	"github.com/ballast-lb/ballast/integration/harness"
)

var pool harness.Pool

func TestMain(m *testing.M) { os.Exit(pool.Run(m)) }

// shared is the cluster that most tests use: three brokers, Extensible.
func shared(t *testing.T) *harness.Cluster {
	t.Helper()
	return pool.Get(t, harness.Options{})
}
