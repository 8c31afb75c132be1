package main

import (
	"context"
	"errors"
	"testing"
)

// The end of ctx ends nothing, stop ends everything, and a failure is told.
func TestBackground(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	seen := make(chan error)
	stop := background(ctx, func(ctx context.Context) error {
		seen <- ctx.Err()
		<-ctx.Done()
		return ctx.Err()
	})
	cancel()
	if err := <-seen; err != nil {
		t.Errorf("after the end of the outer context: %v", err)
	}
	if err := stop(); err != nil {
		t.Errorf("stop: %v", err)
	}

	broken, ended := errors.New("broken"), make(chan struct{})
	stop = background(t.Context(), func(context.Context) error { return broken }, func(ctx context.Context) error {
		defer close(ended)
		<-ctx.Done()
		return ctx.Err()
	})
	<-ended
	if err := stop(); !errors.Is(err, broken) {
		t.Errorf("stop after a failure: %v, want %v", err, broken)
	}
}
