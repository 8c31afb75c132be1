package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// permanent is an error that poll does not wait out.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// poll calls f until it returns nil, at most as long as the limit. The error names what f said last.
func poll(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last error
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if p := (permanent{}); errors.As(err, &p) {
			return p.error
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %v: %w", limit, last)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Eventually waits until f returns nil and fails the test with its last error when that takes longer than the limit. The
// limit is only there to end what hangs: choose it far above what is usual.
func Eventually(t testing.TB, limit time.Duration, what string, f func(context.Context) error) {
	t.Helper()
	if err := poll(t.Context(), limit, f); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Full says whether the tests run at full length (make verify).
func Full() bool { return os.Getenv("BALLAST_FULL") != "" }

// Length is the short length, or the full one in a run at full length.
func Length(short, full time.Duration) time.Duration {
	if Full() {
		return full
	}
	return short
}

// Figure logs a figure that a test measured. Those of a run at full length go into docs/verification.md. The name is a
// short phrase with its unit, such as "longest gap, ms".
func Figure(t testing.TB, name string, value any) {
	t.Helper()
	// An attribute's key has no spaces and its value no line breaks.
	t.Attr(strings.ReplaceAll(name, " ", "_"), strings.ReplaceAll(fmt.Sprint(value), "\n", " "))
	t.Logf("%s: %v", name, value)
}
