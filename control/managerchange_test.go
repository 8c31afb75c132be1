package control_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ballast-lb/ballast/control"
)

// A run that ends because the brokers were moved to another load manager leaves as at a stop: the take-over is put back, the lock is
// free, and the decision log has why.
func TestAChangeOfTheLoadManagerEndsAsAStop(t *testing.T) {
	e := small(t, nil)
	before := dynamic(t, e)
	w := process(t, e, "one", control.Govern, script{}, true)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	w.service.Each = func(*control.Cycle) {
		if cmp.Equal(before, dynamic(t, e)) {
			t.Error("nothing was taken over")
		}
		cancel(fmt.Errorf("%w: extensible, it was followed as modular", control.ErrOtherManager))
	}
	if err := w.service.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, dynamic(t, e)); diff != "" {
		t.Errorf("the take-over is not put back:\n%s", diff)
	}
	last := w.journal.records[len(w.journal.records)-1]
	if last.Kind != control.KindLeader || last.Leader.What != control.Stops || !strings.Contains(last.Leader.Why, "followed as modular") {
		t.Errorf("the last record is %+v, %+v", last, last.Leader)
	}
	next := process(t, e, "one", control.Govern, script{}, true)
	if err := next.service.Lock.Acquire(t.Context(), false); err != nil {
		t.Errorf("the lock: %v", err)
	}
}
