package control_test

import (
	"errors"
	"testing"
	"time"

	"github.com/ballast-lb/ballast/control"
	"github.com/ballast-lb/ballast/topics"
)

// TestLocksOnTwoTopics: who reports does not keep another from governing, but keeps a second one from reporting.
func TestLocksOnTwoTopics(t *testing.T) {
	log := topics.NewMemory(topics.MemoryOptions{})
	defer log.Close()
	take := func(l *control.Lock) error { return l.Acquire(t.Context(), false) }
	reports := control.NewLockOn(log, topics.Reporter, "one", time.Second, time.Now)
	if err := take(reports); err != nil {
		t.Fatal(err)
	}
	if err := take(control.NewLock(log, "two", time.Second, time.Now)); err != nil {
		t.Errorf("the leader's lock: %v", err)
	}
	second := control.NewLockOn(log, topics.Reporter, "two", time.Second, time.Now)
	if err := take(second); !errors.Is(err, control.ErrNotHolder) {
		t.Errorf("%v", err)
	}
	if err := reports.Release(); err != nil {
		t.Fatal(err)
	}
	if err := take(second); err != nil {
		t.Error(err)
	}
}
