//go:build !integration

package pulsar

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain checks that no goroutine is left. On a real cluster that is TestNoGoroutineLeft: the library ends some late.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
